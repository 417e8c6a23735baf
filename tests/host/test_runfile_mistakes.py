"""Mistakes in run files: each is a message with its place, and none is a traceback."""

import os

import pytest
from tests_support import RUN, problems

from madplug import UserError
from madplug.config import load
from madplug.config.check import notes
from madplug.config.problems import secret_part
from madplug.errors import listed, message_of, nearest
from madplug.options import path_digest


def top(line, text=RUN):
    return line + "\n" + text.replace('name = "study"\n', "")


@pytest.mark.parametrize(("setting", "message"), [
    ("debate.agents=true", "debate.agents: expected a whole number"),
    ("repeats=true", "repeats: expected a whole number"),
    ("dataset.size=true", "dataset.size: expected a whole number"),
    ("models.m.latency=true", "models.m.latency: expected a number"),
    ("models.m.latency=nan", "models.m.latency: expected a number that is not infinite or NaN"),
    ("models.m.latency=inf", "models.m.latency: expected a number that is not infinite or NaN"),
    ("limits.cost_usd=nan", "limits.cost_usd: expected a number that is not infinite or NaN"),
    ("models.m.price={promtp = 1}", "models.m.price.promtp: kit.hash has no such option; did you mean 'prompt'?"),
    ("models.m.price={prompt = -1}", "models.m.price.prompt: should be greater than or equal to 0"),
    ("models.m.price={prompt = 1}", "models.m.price.completion: is required"),
    ("debate.agents=1000000000", "debate.agents: should be less than or equal to 10000"),
    ("debate.visibility='kit'", "debate.visibility: no installed plugin offers a visibility 'kit'; did you "
     "mean 'kit.everything'?"),
    ("debate.visibility='kit.nobody'", "debate.visibility: no installed plugin offers a visibility 'kit.nobody'; 'kit' "
     "offers kit.everything"),
    ("limits.clals=3", "limits.clals: nothing in this study counts that; did you mean 'calls'?"),
    ("limits.cost=0.3", "limits.cost: nothing in this study counts that; did you mean 'cost_usd'?"),
    ("limits.xyzzy=3", "limits.xyzzy: nothing in this study counts that; choose from calls, tokens, cost_usd, seconds"),
    ("dataset.xyzzy=3", "dataset.xyzzy: kit.numbered has no such option; there is only size"),
    ("phases=['a.b']", "phases: a run file has no such key here; did you mean 'debate.phases'?"),
    ("debate.metrics=['a.b']",
     "debate.metrics: a run file has no such key here; did you mean 'metrics', at the top of the file?"),
    ("sweep={'debate.rounds' = []}", "sweep.debate.rounds: list should have at least 1 item, not 0"),
    ("match={cell = 'a', by = 'call'}", "match.by: should be 'calls' or 'tokens'"),
    ("debate.decision={use=kit.x}", "debate.decision: no installed plugin offers a decision protocol '{use=kit.x}'"),
    *((f"debate.styles=[{{use = 'kit.plain', for = {odd}}}]",
       f"debate.styles[0].for: {shown} is not an agent; name agents by id (a whole number from 0), name or role")
      for odd, shown in (("true", "True"), ("[0, 0.5]", "0.5"), ("{a = 1}", "{'a': 1}"))),
    (r"metrics=[{use = 'kit.graded', rubric = '{anwser} \boxed{x}'}]",
     "metrics[0].rubric: there is no placeholder {anwser}; it has {answer}; did you mean 'answer'?"),
    ("sweep={debate = {agents = [2, 3]}}",
     'sweep.debate: expected a list of values; a dotted key stands in quotes: "debate.KEY" = [...]'),
    (f"metrics.{'9' * 5000}.use='kit.right'",
     'metrics: expected a list, even of one: ["..."], or [[...]] of tables; with --set, KEY=["..."] in single quotes'),
])
def test_a_value_that_cannot_be_is_refused_where_it_stands(write, setting, message):
    assert message in problems(write(), setting)


@pytest.mark.parametrize(("setting", "message"), [
    ("models.n.letters=AB", "models.n: does not name a model, so that it changes nothing; there is only m"),
    ("models.M.letters=AB", "models.M: does not name a model, so that it changes nothing; did you mean 'm'?"),
    ("services.n.size=1", "services.n: does not name a service, so that it changes nothing; there are none"),
    ("sweep={'models.n.letters' = ['AB', 'CD']}",
     "models.n: does not name a model, so that it changes nothing; there is only m"),
    ("cells=[{name = 'a', models = {n = {letters = 'AB'}}}]",
     "models.n: does not name a model, so that it changes nothing; there is only m"),
])
def test_options_of_what_there_is_not_are_refused(write, setting, message):
    assert problems(write(), "debate.models=['m']", setting) == [message]


def test_a_huge_sweep_is_refused_at_once(write):
    values = ", ".join(map(str, range(1000)))
    [found] = problems(write(RUN + f'[sweep]\n"debate.rounds" = [{values}]\n"debate.agents" = [{values}]\n"seed" = '
                             f"[{values}]\n"))
    assert found == "sweep: makes more than 10,000 cells, the most that a study has"


@pytest.mark.parametrize("text", ['[[cells]]\n"debate.rounds" = 5', '[debate]\n"turns.use" = "x"'])
def test_a_quoted_key_with_dots_is_told_to_lose_its_quotes(write, text):
    key = text.split('"')[1]
    [found] = problems(write(RUN.replace("[debate]", text) if "[debate]" in text else RUN + text))
    assert f"has no such key; write {key} = ... without quotes" in found


@pytest.mark.parametrize(("name", "why"), [
    ("a/b", "cannot contain '/'"), ("a\\\\b", "cannot contain '\\\\'"), ("a\\u0000b", "cannot contain '\\x00'"),
    ("..", "cannot be '..'"), ("", "cannot be ''"), (" ", "cannot be ' '"), ("a\\u001bb", "cannot contain '\\x1b'"),
    ("x" * 101, "has 101 characters; at most 100")])
def test_the_name_of_a_study_is_one_segment_of_a_path(write, name, why):
    [found] = problems(write(top(f'name = "{name}"')))
    assert found.startswith("name: ")
    assert why in found


def test_a_cell_has_a_printable_name(write):
    [found] = problems(write(RUN + '[[cells]]\nname = "a\\u0000"\n'))
    assert found == "cells[0]: a cell's name cannot contain '\\x00'"
    assert problems(write(RUN + "[[cells]]\nname = 5\n")) == ["cells[0]: a cell's name must be a string"]


def test_two_cells_never_have_one_name(write):
    cells = '[[cells]]\ndebate.rounds = 2\n[[cells]]\ndebate.rounds = 2\n[[cells]]\nname = "rounds=2#2"\n'
    assert [c.slug for c in load(write(RUN + cells)).plan.cells] == ["rounds=2", "rounds=2#2", "rounds=2#2#2"]
    assert problems(write(RUN + '[[cells]]\nname = "a"\n[[cells]]\nname = "a"\n')) == [
        "cells[1].name: 'a' is the name of another cell"]


def test_a_value_of_no_type_that_an_option_takes_is_one_problem(write):
    assert problems(write(), "models.m.deadline=-1", "models.m.start_in_flight=-3") == [
        "models.m.start_in_flight: should be greater than or equal to 1", "models.m.deadline: should be greater than 0"]


def test_a_mark_at_the_start_of_the_file_does_no_harm(write):
    path = write()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path).plan.name == "study"


@pytest.mark.parametrize(("text", "message"), [
    ("a = " + "[" * 100_000 + "]" * 100_000, "not valid TOML"),
    ("a = " + "1" * 5000, "not valid TOML: Exceeds the limit"),
    ("\x00 = 1", "not valid TOML"),
])
def test_a_file_that_no_reader_expects_is_a_message(write, text, message):
    [found] = problems(write(text + "\n" + RUN))
    assert message in found


def test_a_directory_in_the_place_of_a_run_file_is_told_as_such(tmp_path):
    assert problems(tmp_path) == [f"{tmp_path}: is a directory, not a run file"]


def test_a_nul_in_a_name_is_an_unknown_name(write, program):
    done = program("check", write(RUN + '[debate.turns]\nuse = "a\\u0000.b"\n'))
    assert done.returncode == 2
    assert "no installed plugin offers" in done.stderr
    assert "\0" not in done.stderr
    assert problems(write(), 'models.m.ledger="a\\u0000b"') == [
        "models.m.ledger: a path cannot contain a NUL character"]


@pytest.mark.parametrize(("address", "part"), [
    ("https://user:hunter2@host/v1", "the user name or password"), ("https://key@host/v1", "the user name or password"),
    ("https://host/v1/sk-abcdefghijklm4nopqrstuv", "a part"), ("https://host/a1b2c3d4e5f6a7b8c9d0e1f2a3/v1", "a part"),
    ("https://host/v1?api_key=xyz", "a parameter"), ("http://127.0.0.1:8000/v1", None),
    ("https://host/openai/deployments/gpt-4o-mini-2024-07-18/chat", None),
    ("https://host/v1?api-version=2024-06-01", None),
    ("see https://user:name@host/ for more", None), ("/data/a1b2c3d4e5f6a7b8c9d0e1f2a3.jsonl", None)])
def test_a_key_in_an_address_is_refused(write, address, part):
    assert secret_part(address) == part
    found = problems(write(), f'models.m.letters="{address}"') if part else []
    assert [p.partition(":")[0] for p in found] == ["models.m.letters"] * bool(part)
    assert address not in repr(found)


def test_an_error_that_cannot_be_put_into_words_does_not_break_the_message():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    assert message_of(Odd()) == "Odd: (its text is not available: RuntimeError)"
    assert message_of(ValueError("a\nb")) == "ValueError: a b"


WRAPPERS = '''
from madplug import Extension, hookimpl
class Async(Extension):
    @hookimpl(wrapper=True)
    async def madplug_reply(self, debate, turn, view):
        yield
class Returns(Extension):
    @hookimpl(wrapper=True)
    def madplug_reply(self, debate, turn, view):
        return None
'''


def test_a_wrapper_that_pluggy_would_refuse_is_told_how_to_write_it(write):
    write(WRAPPERS, "mine.py")
    assert problems(write(), 'extensions=["./mine.py:Async"]')[0].startswith(
        "extensions[0]: mine.py:Async: the hook 'madplug_reply' is wrapped by an `async def`; a wrapper is a plain "
        "generator")
    assert "marked wrapper=True but never yields" in problems(write(), 'extensions=["./mine.py:Returns"]')[0]


def test_list_finds_the_components_of_a_plugin(program, madplug_plugin):
    madplug_plugin("s2", """
from madplug import hookimpl
from madplug_testing import LastRound, SeeAll
@hookimpl
def madplug_register_components():
    return [LastRound, SeeAll]
""", distribution="madplug-second")
    for name in ("s2", "madplug-second"):
        listed = program("list", name).stdout
        assert all(component in listed for component in ("s2.last_round", "s2.see_all"))
        assert "kit." not in listed
    done = program("list", "s3")
    assert done.returncode == 2
    assert "there is no kind or plugin 's3'" in done.stderr


def test_check_says_what_is_shared_and_what_the_cell_gives(program, write):
    two = write(RUN + '[sweep]\n"debate.rounds" = [1, 2]\n')
    assert "share_completions" not in program("check", write(name="one.toml")).stdout
    shown = program("check", two).stdout
    assert "share_completions = true: identical requests of different cells are sent once" in shown
    shown = program("check", two, "--set", "share_completions=false").stdout
    assert "share_completions = false: each cell gets its own completions" in shown


def test_check_warns_of_images_that_no_style_shows(program, write):
    write('''
from madplug_kit import Numbered, Style
class Photos(Numbered):
    has_images = True
class Seeing(Style):
    shows_images = True
''', "mine.py")
    path = write(RUN.replace("kit.numbered", "./mine.py:Photos"))
    done = program("check", path)
    assert done.returncode == 0
    assert "warning: cell 'main': the questions of mine.py:Photos can have images" in done.stdout
    assert "warning" not in program("check", path, "--set", 'debate.styles=["./mine.py:Seeing"]').stdout


@pytest.mark.parametrize(("agents", "personas", "made"), [
    (3, ["Two"], 2), (4, ["Two"], 2), (1, ["Two"], 2), (2, ["Two", "One"], 3)])
def test_agents_that_are_not_as_many_as_their_personas_are_refused(write, tmp_path, agents, personas, made):
    (tmp_path / "mine.py").write_text("""
from madplug import Persona, PersonaGenerator
class One(PersonaGenerator):
    name = "one"
    def generate(self, debate, roster):
        return [Persona(f"{len(roster) + i}") for i in range(self.count or 1)]
class Two(One):
    name = "two"
    count = 2
""")
    slots = [f"./mine.py:{name}" for name in personas]
    assert problems(write(), f"debate.agents={agents}", f"debate.personas={slots}") == [
        f"debate.agents: is {agents}, but debate.personas makes {made} personas; make it {made}, or change "
        "debate.personas"]


def test_check_warns_of_rows_with_equal_choices_and_of_answers_that_nothing_scores(program, write, tmp_path):
    (tmp_path / "mine.py").write_text("""
from madplug import Dataset, Sample
class Twice(Dataset):
    name = "twice"
    answers = "kit.stripped"
    def samples(self, split=None):
        return ((Sample(f"s{i}", "?", ("Rome", "Rome" if i % 2 else "Oslo")), ("A",)) for i in range(6))
""")
    path = write(RUN.replace("use = \"kit.numbered\"\nsize = 6", 'use = "./mine.py:Twice"'))
    done = program("check", path)
    assert "warning: dataset: sample 's1' (and 2 more) has two equal choices" in done.stdout
    assert "metrics" not in done.stdout
    assert 'for example metrics = ["qa.accuracy"]' in program("check", path, "--set", "metrics=[]").stdout


def test_an_error_among_many_names_lists_a_few_and_counts_the_rest(write):
    models = "".join(f'[models.m{i:03}]\nuse = "kit.hash"\n' for i in range(500))
    text, few = RUN.replace('[models.m]\nuse = "kit.hash"\n', models), ", ".join(f"m{i:03}" for i in range(12))
    assert problems(write(text))[0].endswith(f"of {few} and 488 more")
    assert problems(write(text), 'debate.models=["x"]')[0].endswith(f"choose from {few} and 488 more")


def test_of_many_names_the_closest_are_listed_first():
    names = [f"cell-{i}" for i in range(100)]
    assert listed(["b", "a"]) == "b, a"
    assert listed([]) == ""
    assert listed(names, 2) == "cell-0, cell-1 and 98 more"
    assert listed(names, 3, near="cell-77x").startswith("cell-77, ")
    assert listed(names, 3, near="cell-77x").endswith(" and 97 more")


@pytest.mark.parametrize(("name", "known", "near"), [
    ("mallm.ranked", ["moa.rank", "voting.ranked"], "voting.ranked"),
    ("som.debat", ["som.debate", "mad.debate"], "som.debate"),
    ("mallm.debate", ["som.debate", "dar.debate", "mallm.debates"], "mallm.debates")])
def test_the_nearest_name_may_be_the_same_one_of_another_plugin(name, known, near):
    assert nearest(name, known) == f"; did you mean '{near}'?"


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_a_path_without_an_end_is_not_read_for_the_identity_of_a_study(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    assert path_digest(tmp_path / path) == "not a file"


def test_an_empty_list_of_models_is_the_only_model_there_is(write):
    assert load(write(), ("debate.models=[]",)).plan.cells[0].models == ("m",)


# Keys of `[debate]` that no cell takes

CELLS = '[[cells]]\nname = "a"\ndebate = {paradigm = "kit.pair", agents = 2}\n'
OWN = '[[cells]]\nname = "b"\ndebate.rounds = 2\n'


@pytest.mark.parametrize(("text", "settings", "key", "place"), [
    (CELLS, ["debate.agents=3"], "debate.agents", "cells.0.debate.agents"),
    (OWN, ["debate.rounds=3"], "debate.rounds", "cells.0.debate.rounds"),
    (OWN, {"debate.rounds": 3}, "debate.rounds", "cells.0.debate.rounds"),
    ("[sweep]\n'debate.decision' = ['kit.last_round']\n", ["debate.decision.keep=2"], "debate.decision.keep",
     "sweep.'debate.decision.keep' = [...]"),
    ("[sweep]\n'models.m.letters' = ['AB', 'CD']\n", ["models.m.letters=EF"], "models.m.letters",
     "sweep.'models.m.letters' = [...]"),
    ("[sweep]\n'debate.paradigm' = ['kit.pair']\n", ["debate.agents=3"], "debate.agents",
     "sweep.'debate.agents' = [...]"),
])
def test_a_setting_that_no_cell_takes_is_refused_with_the_place_that_a_cell_has_for_it(write, text, settings, key,
                                                                                       place):
    with pytest.raises(UserError) as caught:
        load(write(RUN + text), settings)
    assert str(caught.value.problems[0]) == (
        f"{key}: reaches no cell: each sets its own, or starts from the paradigm that it names alone; set it there: "
        f"{place}")


def test_a_key_of_the_file_that_no_cell_takes_is_a_warning(write):
    resolved = load(write(RUN + CELLS))
    [found] = [line for line in notes(resolved.plan, resolved.table) if "reaches" in line]
    assert found.startswith("warning: debate.paradigm: reaches no cell: each sets its own, or starts from the paradigm")


def test_a_setting_may_reach_some_cells_only(write):
    assert load(write(RUN + CELLS + OWN), ["debate.agents=3"])
