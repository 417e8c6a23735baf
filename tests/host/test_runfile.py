"""Run files: layers, cells, presets, and every mistake at once."""

import re

import pytest
from tests_support import RUN, problems

from madplug import run
from madplug.config import load
from madplug.config.check import notes
from madplug.config.read import cells, overlay, read
from madplug.config.shape import tables
from madplug.errors import UserError


def test_several_mistakes_are_reported_together_each_with_its_place_and_the_nearest_name(write):
    text = RUN.replace('size = 6', 'sise = 6').replace("kit.pair", "kit.pear").replace("kit.right", "kit.rihgt")
    text = 'repeats = "three"\nnme = 1\n' + text + '\n[debate.decision]\nuse = "last_round"\nkeeep = 2\n'
    found = problems(write(text))
    assert "repeats: expected a whole number" in found
    assert "nme: a run file has no such key; did you mean 'name'?" in found
    assert "dataset.sise: kit.numbered has no such option; did you mean 'size'?" in found
    assert "debate.paradigm: no installed plugin offers a paradigm 'kit.pear'; did you mean 'kit.pair'?" in found
    assert "debate.decision.keeep: kit.last_round has no such option; did you mean 'keep'?" in found
    assert "metrics[0]: no installed plugin offers a metric 'kit.rihgt'; did you mean 'kit.right'?" in found
    assert len(found) == 6


@pytest.mark.parametrize("line", ['api_key = "sk-abcdefghijklm4nopqrstuv"', 'letters = "sk-abcdefghijklm4nopqrstuv"',
                                  'password = "hunter2hunter2"'])
def test_a_key_is_refused_without_being_echoed(write, line):
    found = problems(write(RUN.replace('use = "kit.hash"', f'use = "kit.hash"\n{line}')))
    assert len(found) == 1
    assert "which must not be in a run file" in found[0]
    assert "sk-a" not in repr(found)
    assert "hunter2" not in repr(found)


def test_a_key_in_a_table_that_nothing_uses_or_as_the_name_of_one_is_refused_too(write):
    found = problems(write(RUN + '[models.other]\nuse = "kit.hash"\napi_key = "x"\n'), 'debate.models=["m"]',
                     "models.m.extra.sk-0123456789abcdefghijklmn=1")
    assert [p.partition(":")[0] for p in found] == ["models.m.extra", "models.other.api_key", "models.m.extra"]
    assert "0123456789" not in str(found)


@pytest.mark.parametrize(("name", "hint"), [
    ("stduy.toml", "did you mean 'study.toml'?"), ("study", "did you mean 'study.toml'?"),
    ("nope.toml", "its folder has study.toml")])
def test_a_missing_file_names_the_nearest_or_those_that_are_there(write, name, hint):
    path = write().with_name(name)
    assert problems(path) == [f"{path}: no such file; {hint}"]


@pytest.mark.parametrize(("name", "meant"), [
    ("MADPLUG_REPEAT", "MADPLUG_REPEATS"), ("MADPLUG_SEDE", "MADPLUG_SEED"), ("MADPLUG_METRIC", "MADPLUG_METRICS"),
    ("MADPLUG_DATASET_LIMIT", "MADPLUG_DATASET__LIMIT"), ("MADPLUG_LIMITS_COST_USD", "MADPLUG_LIMITS__COST_USD")])
def test_an_environment_variable_that_is_nearly_a_key_is_refused(write, name, meant):
    with pytest.raises(UserError, match=rf"{name}: .* did you mean {meant}\?"):
        load(write(), environ={name: "3", "MADPLUG_SERVE_KEY": "k"})


def test_the_command_line_wins_over_the_environment_and_both_over_the_file(write):
    path = write()
    environment = {"MADPLUG_DEBATE__ROUNDS": "5", "MADPLUG_SEED": "3", "MADPLUG_DISABLE": "no key",
                   "MADPLUG_DEBATE__AGENTS": "4", "MADPLUG_METRICS": '["qa.f1"]'}
    table = read(path, ["debate.rounds=7"], environment)
    assert table["debate"]["rounds"] == 7
    assert table["debate"]["agents"] == 4
    assert (table["seed"], table["metrics"], "disable" in table) == (3, ["qa.f1"], False)


def test_set_reads_toml_or_else_text_keeps_quoted_parts_of_a_key_together_and_clears_with_an_empty_table(write):
    file = write(RUN + '[sweep]\n"debate.rounds" = [1, 2]\n"debate.agents" = [2, 3]\n')
    table = read(file, ["a.b=[1, 2]", "a.c=voting.ranked", "a.d=true", 'sweep."debate.rounds"=[5]', "#=1"], {})
    assert (table["a"], table["#"]) == ({"b": [1, 2], "c": "voting.ranked", "d": True}, 1)
    assert table["sweep"] == {"debate.rounds": [5], "debate.agents": [2, 3]}
    assert read(file, ["sweep={}"], {})["sweep"] == {}
    assert len(load(file, ["sweep={}"]).plan.cells) == 1


def test_an_empty_table_of_a_cell_takes_nothing_away(write):
    plan = load(write(RUN + '[[cells]]\nname = "a"\n[[cells]]\nname = "b"\n[cells.debate]\n')).plan
    assert [c.wanted for c in plan.cells] == [2, 2]


def test_a_model_checks_the_cell_like_every_component(write):
    write('''
from madplug_kit import Hash
class Strict(Hash):
    def check(self, cell):
        if cell.wanted > 2:
            yield f"has two voices, not {cell.wanted}"
''', "mine.py")
    path = write(RUN.replace("kit.hash", "./mine.py:Strict"))
    load(path)
    assert problems(path, "debate.agents=3") == ["models.m: has two voices, not 3"]


def test_a_slot_with_use_replaces_and_without_use_changes_options():
    preset = {"visibility": {"use": "x.y", "window": 2}, "decision": "a.b"}
    assert overlay(preset, {"visibility": {"window": 3}})["visibility"] == {"use": "x.y", "window": 3}
    assert overlay(preset, {"visibility": {"use": "z.z"}})["visibility"] == {"use": "z.z"}
    assert overlay(preset, {"visibility": "z.z"})["visibility"] == "z.z"
    assert overlay(preset, {"decision": {"keep": 1}})["decision"] == {"use": "a.b", "keep": 1}


def test_an_item_of_a_list_is_changed_by_its_position_or_its_name():
    base = {"extensions": ["a.b", {"use": "c.d", "share": 0.5, "kind": "x"}]}
    changed = overlay(base, {"extensions": {"1": {"share": 0.2}, "0": {"on": True}}})["extensions"]
    assert changed == [{"use": "a.b", "on": True}, {"use": "c.d", "share": 0.2, "kind": "x"}]
    assert overlay(base, {"extensions": {"0": {"use": "e.f"}}})["extensions"][0] == {"use": "e.f"}
    assert overlay(base, {"extensions": []})["extensions"] == []
    with pytest.raises(UserError) as error:
        overlay(base, {"extensions": {"2": {"share": 0.2}}})
    assert str(error.value) == "extensions.2: there is no such item; the list has 2 items, counted from 0"
    cells = {"cells": [{"name": "a"}, {"name": "b", "debate": {"rounds": 2}}]}
    assert overlay(cells, {"cells": {"b": {"debate": {"rounds": 3}}, "0": {"seed": 1}}}) == {
        "cells": [{"name": "a", "seed": 1}, {"name": "b", "debate": {"rounds": 3}}]}
    odd = overlay({"cells": [{"name": ["not a name"]}]}, {"cells": {"0": {"seed": 1}}})
    assert odd == {"cells": [{"name": ["not a name"], "seed": 1}]}
    with pytest.raises(UserError, match=r"cells\.c: there is no such item; the list has 2 items, counted from 0, or by "
                                        "name: a, b"):
        overlay(cells, {"cells": {"c": {"seed": 1}}})


def test_a_sweep_changes_an_option_of_a_style_of_the_preset(write):
    plan = load(write(RUN + '[sweep]\n"debate.styles.0.tone" = ["calm", "stern"]\n')).plan
    assert [(c.slug, c.styles[0].style.options.tone) for c in plan.cells] == [
        ("tone=calm", "calm"), ("tone=stern", "stern")]


def test_a_preset_and_its_pasted_expansion_are_equal_studies(write):
    import tomli_w

    from madplug_kit import Pair

    short = load(write())
    table = read(write(), (), {})
    table["debate"] = dict(Pair.debate)
    pasted = load(write(tomli_w.dumps(table), "pasted.toml"))
    assert short.identity == pasted.identity


def test_a_sweep_makes_every_combination_and_listed_cells_are_added(write):
    plan = load(write(RUN + '''
[sweep]
"debate.rounds" = [1, 2]
"debate.decision" = ["kit.last_round", {use = "kit.last_round", keep = 2}]
[[cells]]
name = "extra"
debate.agents = 5
''')).plan
    assert [c.slug for c in plan.cells] == [
        "rounds=1,decision=kit.last_round", "rounds=1,decision=kit.last_round(keep=2)",
        "rounds=2,decision=kit.last_round", "rounds=2,decision=kit.last_round(keep=2)", "extra"]
    assert plan.cells[-1].wanted == 5
    assert plan.cells[1].settings == {"debate.rounds": 1, "debate.decision": {"use": "kit.last_round", "keep": 2}}


def test_only_listed_cells_run_where_there_is_no_sweep(write):
    listed = '[[cells]]\nname = "a"\ndebate.rounds = 1\n[[cells]]\nname = "b"\ndebate.rounds = 3\n'
    plan = load(write(RUN + listed)).plan
    assert [(c.slug, c.rounds) for c in plan.cells] == [("a", 1), ("b", 3)]


def test_a_cell_that_sets_the_paradigm_starts_from_it_alone(write):
    text = RUN.replace('paradigm = "kit.pair"', 'paradigm = "kit.pair"\nrounds = 9\nagents = 7\nmodels = ["m"]')
    table = read(write("extensions = [\"kit.shout\"]\n" + text +
                       '[[cells]]\nname = "own"\ndebate.paradigm = "kit.pair"\n[[cells]]\nname = "same"\n'), (), {})
    by_slug = {slug: cell for slug, _, cell in cells(table, tables().cell.model_fields)}
    assert by_slug["own"]["debate"] == {"models": ["m"], "paradigm": "kit.pair"}
    assert by_slug["own"]["extensions"] == ["kit.shout"]
    assert by_slug["same"]["debate"]["rounds"] == 9


@pytest.mark.parametrize(("needy", "which"), [("b", "cell 'b': "), ("ac", "cells 'a', 'c': "), ("abc", "")])
def test_a_problem_of_some_cells_is_told_once_and_names_them(write, needy, which):
    decisions = {name: "needy" if name in needy else "last_round" for name in "abc"}
    cells = (f'[[cells]]\nname = "{name}"\ndebate.decision = "kit.{one}"\n' for name, one in decisions.items())
    [found] = problems(write(RUN + "".join(cells)))
    assert found.startswith(
        f"{which}debate.decision: kit.needy needs 'agreement', which no component of this cell gives")


def test_what_is_needed_is_told_with_what_gives_it_and_by_which_option(write, madplug_plugin):
    madplug_plugin("doubts", '''
from typing import Literal
from madplug import Options, Visibility, hookimpl
from madplug_testing import LastRound, SeeAll
class Verdict(LastRound):
    """Needs doubt."""
    name = "verdict"
    needs = frozenset({"doubt", "faith"})
class Sceptic(SeeAll):
    """Always doubts."""
    name = "sceptic"
    gives = frozenset({"doubt"})
class Asked(SeeAll):
    """Doubts if asked to."""
    name = "asked"
    gives = frozenset({"doubt"})
    class Options(Options):
        share: float = 0.5
        doubt: Literal["no", "yes"] | None = None
    def __init__(self, options=None, **values):
        super().__init__(options, **values)
        self.gives = frozenset({"doubt"} if self.options.doubt == "yes" else ())
class Owing(Asked):
    """Cannot be made without options."""
    name = "owing"
    class Options(Options):
        share: float
@hookimpl
def madplug_register_visibilities():
    return [Sceptic, Asked, Owing]
@hookimpl
def madplug_register_decisions():
    return [Verdict]
''')
    said = "debate.decision: doubts.verdict needs '{}', which no component of this cell gives{}".format
    assert problems(write(), "debate.decision=doubts.verdict") == [
        said("doubt", '; of those installed, these do: in debate.visibility doubts.asked (doubt = "yes"), '
             "doubts.owing, doubts.sceptic"), said("faith", ", nor does any that is installed")]


def test_a_bare_name_works_while_one_plugin_offers_it(write, madplug_plugin):
    path = write()
    assert load(path, ["debate.decision=last_round"]).plan.cells[0].decision.full_name == "kit.last_round"
    madplug_plugin("kin", '''
from madplug import hookimpl
from madplug_testing import LastRound
class Last(LastRound):
    """Another."""
@hookimpl
def madplug_register_decisions():
    return [Last]
''')
    found = problems(path, "debate.decision=last_round")
    assert found == ["debate.decision: 'last_round' is offered by several plugins: kin.last_round, kit.last_round; "
                     "write one of these"]


def test_several_models_need_to_be_named(write):
    found = problems(write(RUN + '[models.n]\nuse = "kit.hash"\n'))
    assert found == ["debate.models: name the models the agents use, of m, n"]
    found = problems(write(RUN), 'debate.models=["mm"]')
    assert found == ["debate.models[0]: there is no [models.mm]; did you mean 'm'?"]


def test_components_that_ask_a_model_need_one(write):
    found = problems(write(re.sub(r"(?s)\[models\.m\].*?(?=\[|$)", "", RUN)))
    assert found == ["models: a debate may make 4 calls, but there is no model; add [models.NAME]"]


def test_a_decision_that_may_ask_a_model_needs_none_where_no_agent_does(write, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from madplug_testing import LastRound, PlainStyle\n"
        "class Asks(LastRound):\n    def calls(self, plan):\n        return 3\n"
        "class Silent(PlainStyle):\n    def calls(self, plan):\n        return 0\n")
    text = re.sub(r"(?s)\[models\.m\].*?(?=\[|$)", "", RUN)
    settings = ["debate.decision='./mine.py:Asks'", "debate.styles=['./mine.py:Silent']"]
    assert load(write(text), settings).plan.cells[0].worst_calls() == 3


@pytest.mark.parametrize(("whom", "calls"), [("[0]", 10 + 1 + 1), ("[0, 2]", 10 + 1 + 10), ("'judge'", 3 * 10)])
def test_the_calls_of_styles_that_are_for_agents_by_id_are_counted_for_these(write, tmp_path, whom, calls):
    (tmp_path / "mine.py").write_text("from madplug_testing import PlainStyle\n"
                                      "class Dear(PlainStyle):\n    def calls(self, plan):\n        return 10\n")
    settings = [f"debate.styles=[{{use = './mine.py:Dear', for = {whom}}}, 'kit.plain']", "debate.agents=3"]
    cell = load(write(RUN), [*settings, "debate.rounds=2"]).plan.cells[0]
    assert cell.worst_calls() == 2 * calls


def test_an_iterator_is_no_value_of_a_run_file(write):
    with pytest.raises(UserError, match="cannot be used in a run file; give a list"):
        load(write(), {"debate.models": (name for name in "m")})


def test_a_cost_limit_needs_a_price(write):
    assert problems(write(), "limits.cost_usd=1")[0].startswith("limits.cost_usd: the price of model 'm' is unknown")
    load(write(), ["limits.cost_usd=1", "models.m.price={prompt = 1, completion = 2}"])


@pytest.mark.parametrize("sweep", [
    '"debate.decision.keep" = [1, 2]\n"debate.decision" = ["kit.kept"]\n',
    '"debate.decision" = ["kit.kept"]\n"debate.decision.keep" = [1, 2]\n',
    '"debate.decision.keep" = [1, 2]\n"debate.decision" = [{use = "kit.kept"}]\n'])
def test_a_sweep_sets_a_slot_before_its_options(write, sweep):
    table = read(write(RUN + f"[sweep]\n{sweep}"), (), {})
    found = [change["debate"]["decision"] for _, _, change in cells(table, tables().cell.model_fields)]
    assert found == [{"use": "kit.kept", "keep": 1}, {"use": "kit.kept", "keep": 2}]


def test_a_part_with_dots_is_quoted_in_a_sweep_as_everywhere(write):
    text = RUN.replace("[models.m]", '[models."m-1.5"]') + "[sweep]\n'models.\"m-1.5\".letters' = [\"AB\", \"CD\"]\n"
    plan = load(write(text)).plan
    assert [plan.models[cell.channels["m-1.5"]].options.letters for cell in plan.cells] == ["AB", "CD"]


@pytest.mark.parametrize(("limit", "told"), [("cost_us", True), ("tool_calls", False)])
def test_a_misspelt_limit_is_told_beside_other_mistakes_and_one_that_a_broken_cell_may_count_is_not(write, limit, told):
    with pytest.raises(UserError) as error:
        load(write(RUN), [f"limits.{limit}=5", "debate.decision=nothing"])
    assert [problem.place for problem in error.value.problems][1:] == [f"limits.{limit}"] * told


@pytest.mark.parametrize(("last", "told"), [(1, True), (2, False), (0, False)])
def test_rounds_in_which_nobody_has_a_turn_are_a_warning(write, last, told, monkeypatch):
    resolved = load(write(RUN), ["debate.rounds=2"])
    monkeypatch.setattr(type(resolved.plan.cells[0].turns), "turns", lambda self, agents, round: int(round <= last))
    warned = [text for text in notes(resolved.plan, resolved.table) if "has no turn after round 1" in text]
    assert warned == ["warning: cell 'main': debate.rounds: kit.everybody has no turn after round 1, so 2 rounds are "
                      "the same debate"] * told


@pytest.mark.parametrize(("agents", "models", "told"), [
    (2, ["m", "n", "o"], [
        "warning: cell 'main': debate.models: 2 agents cannot take so many models in turn; nobody asks o"]),
    (1, ["m", "m"], ["models: no cell uses n, o"]), (3, ["m", "n", "o"], [])])
def test_models_that_nobody_asks_are_told(write, agents, models, told):
    more = "".join(f'[models.{name}]\nuse = "kit.hash"\nletters = "{name.upper()}"\n' for name in "no")
    resolved = load(write(RUN + more), [f"debate.agents={agents}", f"debate.models={models}"])
    assert [text for text in notes(resolved.plan, resolved.table) if "models: " in text] == told


def test_a_reserve_is_no_spare_model_and_none_is_a_warning(write):
    more = '[models.n]\nuse = "kit.hash"\nletters = "N"\n'
    for models, told in ((["m", "n"], False), (["m"], True)):
        resolved = load(write(RUN + more), [f"debate.models={models}", "debate.agents=1",
                                            "debate.on_failed_agent=replace"])
        said = [text for text in notes(resolved.plan, resolved.table) if "models" in text and "no cell" not in text]
        assert [text.startswith("warning: cell 'main': debate.on_failed_agent") for text in said] == [True] * told


def test_named_tables_that_no_cell_uses_and_keys_that_a_cell_of_its_own_paradigm_does_not_take_are_told(write):
    more = '[services.spare]\nuse = "kit.ledger"\n[[cells]]\nname = "same"\n[[cells]]\nname = "own"\n' \
        'debate.paradigm = "kit.pair"\n'
    resolved = load(write(RUN + more), ["debate.on_failed_agent=drop"])
    said = [*notes(resolved.plan, resolved.table)]
    assert "services: no cell uses spare" in said
    assert ("cells that start from their own paradigms (own) do not take debate.on_failed_agent of the file") in said


def test_a_style_that_is_for_no_agent_is_a_warning(write, tmp_path):
    def warned(only):
        resolved = load(write(RUN), [f"debate.styles=[{{use = 'kit.plain', for = {only}}}, 'kit.plain']"])
        return [text for text in notes(resolved.plan, resolved.table) if text.startswith("warning")]

    assert warned("[0, 9]") == warned("'judge'") == []
    assert warned("9") == ["warning: cell 'main': the style kit.plain is for 9, and so for no agent; ids are whole "
                           "numbers from 0 to 1"]
    assert "for '1', and" in warned("'1'")[0]
    with pytest.warns(UserWarning, match="kit.plain is for 9, and so for no agent"):
        run(write(RUN), settings={"debate.styles": [{"use": "kit.plain", "for": 9}, "kit.plain"]},
            output=tmp_path / "out", quiet=True)
    assert "for none, and" in warned("[]")[0]


def test_addresses_rates_and_limits_may_change_within_a_study_and_nothing_else(write):
    path = write()
    same = load(path).identity
    assert load(path, ["models.m.latency=2", "models.m.max_in_flight=7", "limits.calls=9"]).identity == same
    assert load(path, ["models.m.letters=XY"]).identity != same
    assert load(path, ["seed=1"]).identity != same


@pytest.mark.parametrize(("other", "message"), [
    ("aa", "there is no cell 'aa'; did you mean 'a'?"),
    ("a", "cannot hold: kit.everybody makes as many calls as its own settings say, whatever 'a' uses; remove match, "
          "and choose a size of about as many calls")])
def test_a_match_names_a_cell_and_needs_a_component_that_spends_a_budget(write, other, message):
    cells = f'[[cells]]\nname = "a"\n[[cells]]\nname = "b"\nmatch = {{cell = "{other}", by = "calls"}}\n'
    assert problems(write(RUN + cells)) == [f"cell 'b': match.cell: {message}"]


def test_a_match_to_a_cell_with_a_problem_of_its_own_is_no_second_problem(write):
    found = problems(write(RUN + '[[cells]]\nname = "a"\ndebate = {roundz = 1}\n'
                           '[[cells]]\nname = "b"\nmatch = {cell = "a", by = "calls"}\n'))
    assert len(found) == 1
    assert "roundz" in found[0]


def test_relative_paths_are_relative_to_the_run_file(write):
    resolved = load(write(), ["models.m.ledger=calls.txt"])
    assert resolved.plan.models["m"].options.ledger == write().parent / "calls.txt"


def test_models_that_cells_make_different_are_called_after_what_sets_them_apart(write):
    found = load(write(RUN + '[sweep]\n"models.m.tokens" = [1, 2]\n"debate.rounds" = [1, 2]\n'
                       '[[cells]]\nmodels.m = {use = "kit.hash", letters = "XY"}\n')).plan
    third = 'm (letters="XY", no tokens)'
    assert [(name, model.options.tokens) for name, model in found.models.items()] == [
        ("m", 1), ("m (tokens=2)", 2), (third, 10)]
    assert [cell.channels["m"] for cell in found.cells] == ["m", "m", "m (tokens=2)", "m (tokens=2)", third]
