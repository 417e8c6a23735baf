"""Output tokens, by round and agent, with the models' counts or with one tokenizer."""

from types import SimpleNamespace

import pytest

from madplug import Decision, Metric, Phase
from madplug_dynamics import OutputTokens
from madplug_testing import play

STUDY = 'debate = {paradigm = "som.debate", agents = 2, rounds = 3}\nmetrics = ["dynamics.output_tokens"]'


def reply(body):
    """As many tokens as there are messages: more in every round."""
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": "Final answer: A"}}],
            "usage": {"prompt_tokens": 5, "completion_tokens": len(body["messages"]), "total_tokens": 9}}


def test_tokens_that_models_report_are_added_up(run_on_endpoint):
    pytest.importorskip("madplug_som")
    rows = [{"id": "q1", "question": "Which?", "choices": ["one", "two"], "reference": "B"}]
    (result,), bodies = run_on_endpoint(STUDY, rows, reply)
    assert len(bodies) == 6
    assert result.metrics == {
        "dynamics.output_tokens.total": 18.0, "dynamics.output_tokens.exchange": 16.0,
        "dynamics.output_tokens.before": 0.0, "dynamics.output_tokens.round_1": 2.0,
        "dynamics.output_tokens.round_2": 6.0, "dynamics.output_tokens.round_3": 10.0,
        "dynamics.output_tokens.agent_0": 9.0, "dynamics.output_tokens.agent_1": 9.0}
    assert result.tokens.completion == 18
    assert result.notes["dynamics.output_tokens"]["2"] == {"0": {"discuss": 3}, "1": {"discuss": 3}}


def test_one_tokenizer_counts_all_replies_and_a_file_that_is_none_is_a_problem(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(path))
    played = play(replies=["one", "two words", "three words here"], metrics={"t": OutputTokens(tokenizer=path)})
    assert played.metrics == {"t.total": 6.0, "t.exchange": 0.0, "t.before": 0.0, "t.round_1": 6.0, "t.agent_0": 1.0,
                              "t.agent_1": 2.0, "t.agent_2": 3.0}
    path.write_text('{"a": 1}')
    (problem,) = OutputTokens(tokenizer=path).check(None)
    assert problem.startswith(f"'tokenizer' names {path}, which cannot be read as a tokenizer.json")


@pytest.mark.parametrize("order", ["ta", "at"])
def test_calls_of_metrics_do_not_count_whichever_comes_first(order):
    class Asks(Metric):
        name = "asks"

        async def score(self, debate, references):
            await debate.ask("Grade this", purpose="grade")
            return 1.0

    made = {"t": OutputTokens(), "a": Asks()}
    played = play(replies=["a", "b", "c", "d"], metrics={name: made[name] for name in order})
    assert (played.metrics["t.total"], played.result.notes["t"].keys()) == (3.0, {"1"})
    assert len(played.requests) == 4


def test_calls_of_no_agent_are_in_the_total_and_a_debate_without_calls_has_no_figures():
    class Asking(Phase):
        name = "asking"

        async def run(self, debate, decision):
            await debate.ask("What now?", purpose="judge")
            return Decision("A")

    played = play(replies=["a", "b", "c", "d"], metrics={"t": OutputTokens()}, phases=[Asking()])
    assert (played.metrics["t.total"], played.metrics["t.agent_0"]) == (4.0, 1.0)
    assert played.result.notes["t"]["1"]["none"] == {"judge": 1}
    assert OutputTokens().score(play(replies=["a", "b", "c"]).debate, ()) is None


@pytest.mark.parametrize(("notes", "counted"), [({}, False), ({"dynamics.output_tokens": {"1": {}}}, True)])
def test_a_new_decision_s_calls_are_not_taken_for_all_of_a_debate_that_was_recorded_without_counts(notes, counted):
    answered = object()
    wrapped = OutputTokens().madplug_complete(SimpleNamespace(scored=False, recorded=True, notes=notes), None)
    next(wrapped)
    with pytest.raises(StopIteration) as ended:
        wrapped.send(answered)
    assert (ended.value.value is not answered) is counted
    if counted:
        ended.value.value.close()
