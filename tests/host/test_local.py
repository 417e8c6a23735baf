"""Components in a file beside the run file: any kind, without a distribution, and marked in the manifest."""

import json
from hashlib import sha256

import pytest
from tests_support import RUN, problems, summary

from madplug import UserError, open_study, run
from madplug.config import load

MINE = '''
from madplug import Decision, DecisionProtocol, Metric, Options
from madplug_testing import PlainStyle
from pydantic import Field

class Firmest(DecisionProtocol):
    class Options(Options):
        keep: int = Field(default=1, ge=1, description="rounds")

    def at_end(self, debate):
        return Decision(debate.transcript.messages[0].key, reason="the first")

class Half(Metric):
    """Half a point."""
    def score(self, debate, references):
        return 0.5

class Loud(PlainStyle):
    async def respond(self, debate, turn, view):
        reply = await super().respond(debate, turn, view)
        return type(reply)(reply.content.upper() + "!")

class Unready(DecisionProtocol):
    pass

value = 3
'''
TEXT = RUN.replace('[[metrics]]\nuse = "kit.right"', '''[debate.decision]
use = "./mine.py:Firmest"
[[metrics]]
use = "kit.right"
[[metrics]]
use = "./mine.py:Half"''')


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_a_class_in_a_file_is_a_component_of_any_kind(program, write, mine, tmp_path):
    styles = '[debate]\nstyles = [{use = "./mine.py:Loud", for = "participant"}]'
    done = program("run", write(TEXT.replace("[debate]", styles, 1)))
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path)["cells"][0]["metrics"]["mine.py:Half"]["mean"] == 0.5
    manifest = json.loads((tmp_path / "runs/study/manifest.json").read_text())
    version = f"sha256 {sha256(MINE.encode()).hexdigest()}"
    assert manifest["components"]["decision mine.py:Firmest"] == {"distribution": "mine.py", "version": version}
    assert manifest["runs"][0]["local"][f"{mine}:Loud"] == version


def test_an_edited_metric_scores_again_and_an_edited_decision_is_pointed_out(program, write, mine, tmp_path):
    program("run", write(TEXT))
    mine.write_text(MINE.replace("return 0.5", "return 0.75"))
    done = program("run", write(TEXT))
    assert done.returncode == 0
    assert "decision mine.py:Firmest was mine.py sha256" in done.stderr
    assert summary(tmp_path)["cells"][0]["metrics"]["mine.py:Half"]["mean"] == 0.75


def test_an_edit_of_an_installed_plugin_counts_like_one_of_a_file(madplug, madplug_plugin, write, tmp_path):
    source = f"""{MINE}
from madplug import hookimpl
Firmest.name, Firmest.__doc__, Half.name = "firmest", "The first answer.", "half"
@hookimpl
def madplug_register_components():
    return [Firmest, Half]
"""
    folder = madplug_plugin("mine", source)
    text = TEXT.replace("./mine.py:Firmest", "mine.firmest").replace("./mine.py:Half", "mine.half")
    assert madplug("run", write(text)).stderr.count("code") == 0
    (folder / "madplug_mine_under_test.py").write_text(source.replace("return 0.5", "return 0.75"))
    done = madplug("run", write(text))
    edited = "the code of madplug-mine 1.0 has changed since this study began"
    told = " ".join(done.stderr.split())
    assert f"decision mine.firmest: {edited}; debates on record stay as they are, and may not be comparable " \
           "with new ones; with another --output all are new" in told
    assert f"metric mine.half: {edited}; debates on record are scored again" in told
    assert summary(tmp_path)["cells"][0]["metrics"]["mine.half"]["mean"] == 0.75
    kept = []
    for more in ((), ("--set", "repeats=2"), ()):
        madplug("run", write(text), *more)
        with open_study(tmp_path / "runs/study") as study:
            kept.append(study.edited())
    assert kept[0] == [], "no debate was run with the edited code"
    assert [text.partition(";")[0] for text in kept[1]] == [f"decision mine.firmest: {edited}"]
    assert kept[2] == kept[1]


def test_an_edit_stays_on_record_only_if_debates_of_before_and_after_depend_on_it(program, write, mine, tmp_path):
    cells = [TEXT, *(f'[[cells]]\nname = "{name}"\ndebate = {{{own}}}\n' for name, own in (
        ("a", "rounds = 1"), ("b", 'decision = "kit.last_round"'), ("c", "rounds = 1, agents = 1")))]
    kept = []
    program("run", write("".join(cells[:2])))
    mine.write_text(MINE.replace("the first", "the other"))
    for n, repeats in ((3, 1), (4, 1), (4, 2)):
        done = program("run", write("".join(cells[:n])), "--set", f"repeats={repeats}")
        assert (done.returncode, "decision mine.py:Firmest was mine.py" in done.stderr) == (0, True)
        with open_study(tmp_path / "runs/study") as study:
            kept.append([text.partition(" was ")[0] for text in study.edited()])
    assert kept == [[], ["decision mine.py:Firmest"], ["decision mine.py:Firmest"]]


def test_the_expanded_run_file_finds_it_and_the_study_is_the_same_in_any_folder(program, write, mine, tmp_path):
    program("run", write(TEXT))
    assert program("run", "runs/study/study.toml", "--output", "runs/again").returncode == 0
    assert summary(tmp_path, "again")["cells"][0]["metrics"] == summary(tmp_path)["cells"][0]["metrics"]
    (tmp_path / "moved").mkdir()
    mine.rename(tmp_path / "moved/mine.py")
    write(TEXT, "moved/study.toml")
    assert program("run", "moved/study.toml").returncode == 0


@pytest.mark.parametrize(("use", "words"), [
    ("./mien.py:Firmest", "mien.py: no such file; did you mean 'mine.py'?"),
    ("./mine.py:Firmst", "mine.py has no class 'Firmst'; did you mean 'Firmest'?"),
    ("./mine.py", "names no class; expected ./FILE.py:CLASS"),
    ("./mine.py:Half", "Half as a decision protocol; expected a subclass of madplug.DecisionProtocol"),
    ("./mine.py:value", "3 as a decision protocol"),
    ("./mine.py:Unready", "Unready does not implement at_end"),
    ("./broken.py:X", "broken.py: does not load: ZeroDivisionError: division by zero (line 2)"),
    ("./syntax.py:X", "syntax.py: does not load: SyntaxError"),
    ("./exits.py:X", "exits.py: does not load: SystemExit: 9 (line 1)"),
    ("./a\\u0000.py:X", "cannot be read: embedded null byte"), ("./folder.py:X", "cannot be read: [Errno 21]"),
    ('./mine.py:Firmest"\nkeeep = "2', "mine.py:Firmest has no such option; did you mean 'keep'"),
    ("python:Mine", "was defined in a Python session; run the study there, with madplug.run(..., components=[Mine])")])
def test_mistakes_are_named_at_their_place(write, mine, tmp_path, use, words):
    (tmp_path / "broken.py").write_text("x = 1\nx / 0\n")
    (tmp_path / "syntax.py").write_text("class X(:\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(9)")
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(UserError) as error:
        load(write(TEXT.replace("./mine.py:Firmest", use)))
    assert words in str(error.value)
    assert "debate.decision" in str(error.value)


@pytest.mark.parametrize(("method", "message"), [
    ("def __init__(self, *a, **k): {}[2]", "debate.decision: mine.py:Firmest cannot be made: KeyError: 2"),
    ("class Options(Options):\n    @model_validator(mode='after')\n    def checked(self): {}[2]",
     "debate.decision: mine.py:Firmest: checking its options failed: KeyError: 2")])
def test_whatever_making_a_component_raises_is_told(write, mine, method, message):
    mine.write_text(f"from madplug import Options\nfrom madplug_testing import LastRound\n"
                    f"from pydantic import model_validator\nclass Firmest(LastRound):\n  {method}")
    assert problems(write(), "debate.decision='./mine.py:Firmest'") == [message]


SAYS = '''
from madplug import Completion, Model
class Says(Model):
    async def complete(self, request):
        return Completion("{}")
'''
EMBEDS = '''
from madplug import Service
class Embeds(Service):
    async def embed(self, texts):
        return [[{}] for text in texts]
'''
NEAR = '''
from madplug import Metric, Options, ServiceName
class Near(Metric):
    class Options(Options):
        embedder: ServiceName
    async def score(self, debate, references):
        return (await debate.service(self.options.embedder).embed(["x"]))[0][0]
'''


def study(**changes):
    return {"name": "study", "dataset": {"use": "kit.numbered", "size": 2}, "models": {"m": "./says.py:Says"},
            "debate": {"paradigm": "kit.pair"}, "metrics": ["kit.right"], **changes}


def answers(folder):
    with open_study(folder) as found:
        return {result.cell: {m.content for m in result.messages} for result in found.debates()}


def test_two_models_in_files_of_one_name_are_two_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "says.py").write_text(SAYS.format(name))
    run(study(sweep={"models.m": ["./one/says.py:Says", "./two/says.py:Says"]}), output="out", quiet=True)
    assert sorted(map(tuple, answers("out").values())) == [("one",), ("two",)]


def test_calls_of_a_model_whose_file_has_changed_are_not_reused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "says.py").write_text(SAYS.format("before"))
    run(study(), output="first", quiet=True)
    (tmp_path / "says.py").write_text(SAYS.format("after"))
    run(study(reuse=["first"]), output="second", quiet=True)
    assert answers("second") == {"main": {"after"}}


@pytest.mark.filterwarnings("ignore:service embeds.py")
def test_a_metric_scores_again_when_its_service_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "says.py").write_text(SAYS.format("A"))
    (tmp_path / "near.py").write_text(NEAR)
    for value in (0.25, 0.75):
        (tmp_path / "embeds.py").write_text(EMBEDS.format(value))
        found = run(study(services={"e": "./embeds.py:Embeds"},
                          metrics=[{"use": "./near.py:Near", "embedder": "e"}]), output="out", quiet=True)
        assert found.metrics == {"main": {"near.py:Near": value}}
