"""From MALLM's configurations to run files."""

import json
import sys

import click
import pytest
import tomli_w
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import UserError
from madplug.config import load
from madplug.registry.installed import Registry
from madplug_mallm import madplug_register_commands
from madplug_mallm.convert import convert
from madplug_mallm.names import DECISIONS, DEFAULTS, INSTRUCTIONS, PARADIGMS, PERSONAS, STYLES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ONE = {
    "input_json_file_path": "data/strategyqa.json", "output_json_file_path": "out/first try.json",
    "task_instruction_prompt": "Answer the question with A) Yes or B) No.", "endpoint_url": "http://127.0.0.1:8080/v1/",
    "model_name": "meta-llama/Llama-3.3-70B-Instruct", "api_key": "-", "max_turns": 5, "discussion_paradigm": "memory",
    "response_generator": "simple", "decision_protocol": "simple_voting", "num_agents": 3, "agent_generator": "expert",
    "num_samples": 100, "concurrent_api_requests": 250}


def converted(**changes):
    return convert({**ONE, **changes})


def debate(**changes):
    return converted(**changes).table["debate"]


def notes(**changes):
    return {note.partition(":")[0] for note in converted(**changes).notes}


def test_a_run_becomes_a_run_file():
    assert converted().table == {
        "name": "first-try", "metrics": ["qa.accuracy"],
        "dataset": {"use": "files.table", "path": "data/strategyqa.json", "answers": "answers.choice", "limit": 100,
                    "instruction": "Answer the question with A) Yes or B) No.",
                    "columns": {"id": "example_id", "question": "inputs.0", "reference": "references",
                                "context": "context"}},
        "models": {"main": {"use": "openai.chat", "model": "meta-llama/Llama-3.3-70B-Instruct", "temperature": 1.0,
                            "base_url": "http://127.0.0.1:8080/v1", "top_p": 1.0, "max_tokens": 1024,
                            "max_in_flight": 250}},
        "debate": {"paradigm": "mallm.memory", "agents": 3, "rounds": 5, "personas": ["personas.expert"],
                   "styles": [{"use": "styles.simple"}], "decision": "voting.simple"}}


EXPECTED = {
    "discussion_paradigm": ("paradigm", {name: f"mallm.{name}" for name in PARADIGMS}),
    "decision_protocol": ("decision", {
        "majority_consensus": "consensus.majority", "supermajority_consensus": "consensus.supermajority",
        "unanimity_consensus": "consensus.unanimity", "hybrid_consensus": "consensus.hybrid",
        "simple_voting": "voting.simple", "approval_voting": "voting.approval", "ranked_voting": "voting.ranked",
        "cumulative_voting": "voting.cumulative", "judge": "judge.synthesis"}),
    "response_generator": ("styles", {
        "simple": "styles.simple", "freetext": "styles.freetext", "splitfreetext": "styles.split",
        "critical": "styles.critical", "reasoning": "styles.reasoning"})}


@pytest.mark.parametrize("setting", EXPECTED)
def test_every_paradigm_decision_and_response_generator_has_its_component(setting):
    option, expected = EXPECTED[setting]
    found = {name: debate(**{setting: name})[option] for name in expected}
    assert {name: one[0]["use"] if option == "styles" else one for name, one in found.items()} == expected


COLLECTIVE = {"discussion_paradigm": "collective_refinement"}
MIXED = {"agent_generators_list": ["expert", "ipip", "nopersona", "nopersona"], "num_agents": 7}


@pytest.mark.parametrize(("changes", "place", "value"), [
    ({"visible_turns_in_memory": 1}, "debate.visibility", {"window": 1}),
    ({"visible_turns_in_memory": 2}, "debate.visibility", None),
    ({"discussion_paradigm": "debate", "debate_rounds": 3}, "debate.turns", {"inner": 3}),
    ({"discussion_paradigm": "memory", "debate_rounds": 3}, "debate.turns", None),
    (COLLECTIVE | {"response_generator": "critical"}, "debate.styles", [{"use": "mallm.collective"}]),
    (COLLECTIVE | {"visible_turns_in_memory": 9}, "debate.visibility", None),
    # agents that are not asked whether they agree vote
    (COLLECTIVE | {"decision_protocol": "hybrid_consensus"}, "debate.decision", "voting.simple"),
    # mixed generators set the number of agents; neutral ones come first and on top
    (MIXED, "debate.agents", 4), (MIXED, "debate.personas", ["personas.expert", "personas.ipip", "personas.none"]),
    ({"num_neutral_agents": 1}, "debate.personas", ["personas.neutral", "personas.expert"]),
    ({"num_neutral_agents": 2}, "debate.agents", 5),
    ({"num_neutral_agents": 2}, "debate.personas", [{"use": "personas.neutral", "count": 2}, "personas.expert"]),
    ({"agent_generator": "paraphrasetypes"}, "debate.personas", ["personas.none"]),
    ({"num_agents": 10**40}, "debate.agents", 10**40),  # which madplug check refuses
    ({"all_agents_generate_first_draft": True}, "extensions", ["visibility.blind_first_round"]),
    ({"all_agents_generate_draft": True}, "extensions", [{"use": "visibility.blind_first_round", "rounds": 5}]),
    # the challenge is a phase; the model of the debate writes the wrong answer, as in MALLM
    ({"challenge_final_results": True}, "debate.phases", [
        {"use": "challenge.final", "challenger_model": "main", "retriever": "wikipedia"}]),
    ({"challenge_final_results": True}, "services", {"wikipedia": {"use": "retrieval.wikipedia"}}),
    ({"task_instruction_prompt_template": "xsum", "calculate_persona_diversity": True}, "metrics", [
        "text.rouge", "text.bleu", "text.meteor", "text.bertscore", "dynamics.persona_diversity"]),
    ({"task_instruction_prompt_template": "xsum"}, "dataset.answers", "answers.free"),
    ({"task_instruction_prompt_template": "strategyqa"}, "dataset.instruction", ONE["task_instruction_prompt"]),
    ({"task_instruction_prompt": "", "task_instruction_prompt_template": "strategyqa"}, "dataset.instruction",
     INSTRUCTIONS["strategyqa"]),
    ({"use_baseline": True}, "debate.paradigm", "baselines.cot"),
    ({"use_baseline": True, "use_chain_of_thought": False}, "debate.paradigm", "baselines.io"),
    ({"use_chain_of_thought": False}, "debate.styles", [{"use": "styles.simple", "step_by_step": False}]),
    # discussing to the end puts the vote there
    ({"skip_decision_making": True}, "debate.decision", {"use": "voting.simple", "vote_round": 5}),
    ({"skip_decision_making": True, "decision_protocol": "hybrid_consensus"}, "debate.decision", {
        "use": "consensus.hybrid", "fixed_rounds": True})])
def test_a_setting_becomes_what_the_run_file_calls_it(changes, place, value):
    table = converted(**changes).table
    *parents, last = place.split(".")
    for name in parents:
        table = table[name]
    assert table.get(last) == value


def test_a_judge_that_steps_in_gets_its_own_model():
    made = converted(judge_intervention="regenerate", judge_metric="bertscore", judge_endpoint_url="http://judge/v1",
                     judge_model_name="wise", judge_api_key="secret-of-the-judge", judge_always_intervene=True)
    assert made.table["extensions"] == [
        {"use": "judge.intervention", "model": "judge", "action": "regenerate", "always": True}]
    assert made.table["models"]["judge"]["api_key_env"] == "JUDGE_API_KEY"
    assert made.table["debate"]["models"] == ["main"]
    assert {"judge_metric", "judge_api_key", "judge_intervention"} <= {n.partition(":")[0] for n in made.notes}
    assert "extensions" not in converted(judge_intervention="policy").table


def test_the_ablation_is_a_second_cell_matched_to_the_first_with_the_model_of_its_run():
    first, second = converted(use_ablation=True).table["cells"]
    assert first == {"name": "first-try", "debate": debate()}
    assert second == {"name": "first-try-ablation", "debate": {"paradigm": "baselines.self_improvement"},
                      "extensions": [], "match": {"cell": "first-try", "by": "calls"}}
    runs = [{"model_name": "a"}, {"model_name": "b", "use_ablation": True, "challenge_final_results": True}]
    *_, second, ablation = convert({"common": ONE, "runs": runs}).table["cells"]
    assert second["debate"]["phases"][0]["challenger_model"] == "main2"
    assert ablation["debate"] == {"paradigm": "baselines.self_improvement", "models": ["main2"]}


def test_alterations_are_options_of_the_vote():
    made = debate(voting_protocols_with_alterations=True)["decision"]
    assert made["alterations"] == ["public", "history", "confidence", "confidence_log_probs", "confidence_prompted"]
    assert "voting_protocols_with_alterations" in notes(voting_protocols_with_alterations=True)
    assert debate(voting_protocols_with_alterations=True, decision_protocol="judge")["decision"] == "judge.synthesis"


def test_a_data_set_of_the_hub():
    made = converted(input_json_file_path="cais/mmlu", hf_dataset_version="all", hf_dataset_split="test",
                     hf_dataset_input_column="question", hf_dataset_reference_column="answer", num_samples=None,
                     hf_token="hf_abc", shuffle_input_samples=True)
    assert made.table["dataset"] == {
        "use": "datasets.hub", "id": "cais/mmlu", "config": "all", "split": "test", "answers": "answers.choice",
        "columns": {"question": "question", "reference": "answer"}, "shuffle": 0,
        "instruction": "Answer the question with A) Yes or B) No."}
    assert "hf_abc" not in json.dumps([made.table, made.notes])


@pytest.mark.parametrize(("row", "columns"), [
    ({"exampleId": "1", "datasetId": None, "input": "2+2?", "context": None, "references": ["4"], "personas": None},
     {"id": "exampleId", "question": "input", "reference": "references", "context": "context"}),
    ({"exampleId": "1", "input": ["2+2?"], "references": ["4"]},
     {"id": "exampleId", "question": "input.0", "reference": "references"}),
    ({"example_id": "1", "dataset_id": None, "inputs": ["2+2?"], "context": None, "references": ["4"]},
     {"id": "example_id", "question": "inputs.0", "reference": "references", "context": "context"})])
@pytest.mark.parametrize("as_list", [True, False])
def test_the_columns_of_a_file_that_is_there_are_looked_up(tmp_path, row, columns, as_list):
    file = tmp_path / "data.json"
    file.write_text(json.dumps([row]) if as_list else f"{json.dumps(row)}\n{json.dumps(row)}\n")
    made = convert({**ONE, "input_json_file_path": str(file)}, tmp_path)
    assert made.table["dataset"]["path"] == "data.json"
    assert made.table["dataset"]["columns"] == columns


@pytest.mark.parametrize(("reference", "answers"), [
    ("B) Mackenzie", "choice"), ("(B) Mackenzie", "choice"), ("B", "choice"), ("Mackenzie", "text"), ("A man", "text")])
def test_musr_is_scored_by_accuracy_however_its_references_are_written(tmp_path, reference, answers):
    file = tmp_path / "musr.json"
    file.write_text(json.dumps([{"example_id": "1", "inputs": ["Who?"], "references": [reference]}]))
    made = convert({**ONE, "input_json_file_path": str(file)}, tmp_path).table
    assert (made["dataset"]["answers"], made["metrics"]) == (f"answers.{answers}", ["qa.accuracy"])
    guessed = converted(input_json_file_path="data/MuSR.json").table
    assert (guessed["dataset"]["answers"], guessed["metrics"]) == ("answers.choice", ["qa.accuracy"])


@pytest.mark.parametrize(("changes", "note"), [
    (COLLECTIVE | {"decision_protocol": "hybrid_consensus"}, "decision_protocol"),
    ({"agent_generator": "paraphrasetypes"}, "agent_generator"),
    ({"input_json_file_path": "own.json"}, "input_json_file_path"), ({"max_tums": 3}, "max_tums"),
    ({"task_instruction_prompt": "", "task_instruction_prompt_template": "x"}, "task_instruction_prompt_template")])
def test_what_is_different_missing_or_unknown_is_noted(changes, note):
    assert note in notes(**changes)


def test_names_that_mallm_does_not_have_are_errors_all_at_once():
    with pytest.raises(UserError) as error:
        convert({**ONE, "decision_protocol": "dictator", "paradigm": "shouting"})
    assert len(error.value.problems) == 2
    assert "there is no 'dictator' (there is majority_consensus" in str(error.value)


@pytest.mark.parametrize(("changes", "said"), [
    ({"num_agents": "<number>"}, "num_agents: Input should be a valid integer, got '<number>'"),
    ({"max_turns": None}, "max_turns: "), ({"use_baseline": "true"}, "use_baseline: "), ({"model": 3}, "model: "),
    ({"agent_generators_list": "expert"}, "agent_generators_list: "), ({"decision_protocol": []}, "decision_protocol"),
    ({"num_samples": "all"}, "num_samples: "), ({"repeats": "three"}, "repeats: "), ({"runs": [1]}, "'runs' is a list"),
    ({"common": "x", "runs": [{}]}, "'common' is an object"), ({"runs": [{"max_turns": "?"}]}, "runs[0].max_turns: ")])
def test_what_was_not_filled_in_is_named(changes, said):
    with pytest.raises(UserError) as error:
        converted(**changes)
    assert said in str(error.value)


def test_earlier_spellings_are_understood_and_what_is_not_said_is_mallms_default():
    made = convert({"data": "x.json", "out": "o.json", "instruction": "Do it.", "context_length": 1}).table
    assert made["name"] == "o"
    assert made["dataset"]["instruction"] == "Do it."
    assert made["models"]["main"]["model"] == "gpt-3.5-turbo"
    assert made["debate"] == {
        "paradigm": "mallm.memory", "agents": 3, "rounds": 10, "personas": ["personas.expert"],
        "styles": [{"use": "styles.simple"}], "decision": "consensus.hybrid", "visibility": {"window": 1}}


BATCH = {"name": "study", "repeats": 3, "common": ONE, "runs": [
    {"decision_protocol": "majority_consensus", "output_json_file_path": "majority.json"},
    {"decision_protocol": "ranked_voting", "output_json_file_path": "ranked.json"},
    {"use_baseline": True, "output_json_file_path": "cot.json"}]}


def test_a_batch_becomes_cells_of_one_study():
    made = convert(BATCH).table
    assert (made["name"], made["repeats"]) == ("study", 3)
    assert [cell["name"] for cell in made["cells"]] == ["majority", "ranked", "cot"]
    assert [cell["debate"].get("decision") for cell in made["cells"]] == ["consensus.majority", "voting.ranked", None]
    assert made["dataset"]["limit"] == 100
    assert (made["share_completions"], "share_completions" in converted().table) == (False, False)
    assert "debate" not in made
    assert "dataset" not in made["cells"][0]


def test_runs_with_different_models_name_them_and_a_batch_needs_runs():
    runs = [{"model_name": "a"}, {"model_name": "b"}, {"model_name": "a"}]
    made = convert({"common": ONE, "runs": runs}).table
    assert {name: model["model"] for name, model in made["models"].items()} == {"main": "a", "main2": "b"}
    assert [cell["debate"]["models"] for cell in made["cells"]] == [["main"], ["main2"], ["main"]]
    assert len({cell["name"] for cell in made["cells"]}) == 3
    with pytest.raises(UserError, match="the batch has none"):
        convert({"common": ONE, "runs": []})


@pytest.fixture
def config(tmp_path):
    """A configuration with a key, and a prompt that is not Unicode."""
    given = {**ONE, "api_key": "sk-very-secret", "task_instruction_prompt": "\ud800!"}
    (tmp_path / "config.json").write_text(json.dumps(given))
    return tmp_path / "config.json"


def run(*arguments):
    group = click.Group("madplug")
    madplug_register_commands(group)
    return CliRunner().invoke(group, ["import", "mallm", *map(str, arguments)])


def test_the_command_writes_the_run_file_beside_the_configuration_without_the_key(config):
    result = run(config)
    assert result.exit_code == 0, result.output
    text = config.with_suffix(".toml").read_text()
    assert tomllib.loads(text) == converted(task_instruction_prompt="?!").table
    assert text.startswith("# From MALLM's config.json.\n# Not carried over, or different:\n#   ")
    assert "api_key: not copied" in result.output
    assert "sk-very-secret" not in text + result.output


def test_the_command_overwrites_nothing_unless_it_is_told_where(config):
    config.with_suffix(".toml").write_text("mine")
    assert isinstance(run(config).exception, UserError)
    assert config.with_suffix(".toml").read_text() == "mine"
    assert run(config, "--output", config.with_name("other.toml")).exit_code == 0


@pytest.mark.parametrize("text", ["", "[]", "{", "3", "[" * 100_000])
def test_what_is_no_configuration_is_an_error_with_its_place(config, text):
    config.write_text(text)
    error = run(config).exception
    assert isinstance(error, UserError)
    assert str(config) in str(error)
    assert isinstance(run(config.with_name("none.json")).exception, UserError)


def test_the_command_joins_a_group_that_is_there():
    group = click.Group("madplug", commands={"import": click.Group(commands={"other": click.Command("other")})})
    madplug_register_commands(group)
    assert sorted(group.commands["import"].commands) == ["mallm", "other"]


@pytest.fixture
def data(tmp_path):
    """A data set in the form of MALLM's current release."""
    for plugin in ("answers", "baselines", "challenge", "files", "judge", "openai", "personas", "retrieval"):
        pytest.importorskip(f"madplug_{plugin}")
    row = {"example_id": "q1", "dataset_id": None, "inputs": ["2+2? A) 3 B) 4"], "context": None, "references": ["B"]}
    (tmp_path / "mmlu.json").write_text(json.dumps([row]))
    return tmp_path / "mmlu.json"


@pytest.mark.parametrize("changes", [
    {}, *({"discussion_paradigm": name} for name in PARADIGMS), *({"response_generator": name} for name in STYLES),
    *({"decision_protocol": name} for name in DECISIONS), {"num_neutral_agents": 2, "agent_generator": "ipip"},
    {"agent_generators_list": ["expert", "ipip", "nopersona"]}, {"visible_turns_in_memory": 0},
    {"discussion_paradigm": "debate", "debate_rounds": 1, "all_agents_drafting": False, "num_neutral_agents": 1},
    {"all_agents_generate_first_draft": True}, {"all_agents_generate_draft": True}, {"use_baseline": True},
    {"use_baseline": True, "use_chain_of_thought": False}, {"skip_decision_making": True}, {"use_ablation": True},
    {"voting_protocols_with_alterations": True}, {"shuffle_input_samples": True}, {"challenge_final_results": True},
    {"discussion_paradigm": "collective_refinement", "decision_protocol": "hybrid_consensus"},
    {"judge_intervention": "policy", "judge_endpoint_url": "http://judge/v1", "judge_model_name": "wise"}])
def test_the_run_file_is_one_that_can_be_run(data, changes, registry):
    made = convert({**ONE, "input_json_file_path": str(data), **changes}, data.parent)
    made.table["metrics"] = []
    (data.parent / "run.toml").write_text(tomli_w.dumps(made.table))
    cell, *_ = load(data.parent / "run.toml", registry=registry).plan.cells
    assert [sample.question for sample, _ in cell.dataset.samples()] == ["2+2? A) 3 B) 4"]


@pytest.fixture(scope="module")
def registry():
    return Registry()


CHOICES = {
    "discussion_paradigm": st.sampled_from(sorted(PARADIGMS)), "response_generator": st.sampled_from(sorted(STYLES)),
    "decision_protocol": st.sampled_from(sorted(DECISIONS)), "max_turns": st.integers(1, 12),
    "agent_generators_list": st.lists(st.sampled_from(sorted(PERSONAS)), max_size=5),
    "num_neutral_agents": st.integers(0, 2), "visible_turns_in_memory": st.integers(0, 4),
    "debate_rounds": st.integers(1, 4),
    **{name: st.booleans() for name, value in DEFAULTS.items() if isinstance(value, bool)}}


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries({}, optional=CHOICES))
def test_every_configuration_becomes_valid_toml_without_a_change(config):
    table = convert({**ONE, **config}).table
    assert tomllib.loads(tomli_w.dumps(table)) == table
