"""Ten third-party plugins: built as wheels, found by their entry points, and used in real studies."""

import ast
import json
import re
import sys
import zipfile
from collections import Counter
from hashlib import blake2b
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import madplug as public
from madplug_testing.endpoint import running_endpoint

HERE = Path(__file__).parent
PLUGINS = sorted(HERE.glob("madplug-*"))
PUBLIC_MODULES = {"madplug", "madplug_prompting.prompts", "madplug_workers"}


def replies(body):
    """What the models say: a name where one is asked for, a grade, or one of three options."""
    text = "\n".join(str(m["content"]) for m in body["messages"])
    drawn = blake2b(repr(body).encode(), digest_size=4).digest()[0]
    if "Reply with one name of: " in text:
        names = text.rpartition("Reply with one name of: ")[2].split(", ")
        return f"I would like to hear {names[drawn % len(names)].strip()}."
    return "8" if "Reply with a grade" in text else f"It seems so.\n\nFinal answer: ({'ABC'[drawn % 3]})"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with all ten wheels unpacked, which is what installing them does."""
    folder = tmp_path_factory.mktemp("third_party")
    for plugin in PLUGINS:
        for wheel in WheelBuilder(str(plugin)).build(directory=str(folder / "wheels"), versions=["standard"]):
            zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(replies) as endpoint:
        yield endpoint


@pytest.fixture
def run(site, monkeypatch, program):
    """Run the program with the ten plugins installed, of which no module has been imported from anywhere else."""
    monkeypatch.setattr(sys, "path", [str(site), *(folder for folder in sys.path if not folder.startswith(str(HERE)))])
    for plugin in PLUGINS:
        monkeypatch.delitem(sys.modules, plugin.name.replace("-", "_"), raising=False)
    return program


@pytest.fixture
def debates_of(run, endpoint, tmp_path):
    """The debates of a plugin's study, which is checked and run, as exported."""
    def debates_of(name):
        models = ["small", "large"] if "models.large" in (HERE / name / "study.toml").read_text() else ["small"]
        addresses = [word for model in models for word in ("--set", f"models.{model}.base_url={endpoint.url}")]
        checked = run("check", HERE / name / "study.toml")
        assert ("at most" in checked.stdout, checked.returncode, checked.stderr) == (True, 0, "")
        done = run("run", HERE / name / "study.toml", *addresses, "--output", "study", "--quiet")
        assert (done.returncode, done.stderr) == (0, "")
        run("export", "study", "--output", "debates.jsonl")
        return [json.loads(line) for line in (tmp_path / "debates.jsonl").read_text().splitlines()]

    return debates_of


def rounds(messages):
    return max(m["round"] for m in messages)


def sees_only_what_differs(debate, said):
    by_id, own = {m["id"]: m for m in said}, {}
    for m in said:
        others = {by_id[i]["key"] for i in m["seen"] if by_id[i]["agent"] != m["agent"]}
        assert own.get(m["agent"]) not in others
        own[m["agent"]] = m["key"]
    return len(own) == 3


TAKES_PART = {
    "madplug-chair": lambda debate, said: [m["move"] for m in said] == ["call", "improve"] * 4 and all(
        call["data"]["chair"]["called"] == after["agent"] for call, after in zip(said[::2], said[1::2], strict=True)),
    "madplug-advocate": lambda debate, said: [m["key"] for m in said if "advocate" in m["data"]] == [None] * 3,
    "madplug-stall": lambda debate, said: debate["decision"]["key"] and debate["notes"].get("stall", {}).get(
        "stopped_after", 8) == rounds(said),
    "madplug-delphi": lambda debate, said: Counter(m["agent"] for m in said) == {0: 3, 1: 3, 2: 3, None: 3},
    "madplug-dissent": sees_only_what_differs,
    "madplug-folder": lambda debate, said: debate["references"] in (["6"], ["Oslo"], ["a piano"]),
}
"""What a debate of its study, and its messages, have from a plugin."""


@pytest.mark.parametrize("name", TAKES_PART)
def test_a_plugin_takes_part_in_every_debate_of_its_study(debates_of, name):
    debates = debates_of(name)
    assert len(debates) == 3
    for debate in debates:
        assert TAKES_PART[name](debate, debate["messages"]), debate
    assert name != "madplug-stall" or min(rounds(debate["messages"]) for debate in debates) < 8


def test_all_ten_are_listed_without_problems(run):
    listed = json.loads(run("list", "--json").stdout)
    assert listed["problems"] == []
    distributions = {c["distribution"] for c in listed["components"]}
    assert len(PLUGINS) == 10
    assert {plugin.name for plugin in PLUGINS} <= distributions


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.name)
def test_a_plugin_imports_public_names_only(plugin):
    module = plugin / f"{plugin.name.replace('-', '_')}.py"
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("madplug") for alias in node.names)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("madplug"):
            assert node.module in PUBLIC_MODULES
            assert node.module != "madplug" or {alias.name for alias in node.names} <= set(public.__all__)


def test_votes_weigh_what_was_measured_once(debates_of, run, endpoint):
    debates, asked = debates_of("madplug-record"), endpoint.stats()["requests"]
    weights = {weight for d in debates for vote in d["decision"]["votes"] for weight in vote["weights"].values()}
    assert weights <= {0.05, 0.25, 0.5, 0.75, 1.0}
    assert len(debates_of("madplug-record")) == 3
    assert endpoint.stats()["requests"] == asked  # neither debates nor calibration are paid for again


def test_the_second_model_grades(debates_of, run, tmp_path):
    assert {d["metrics"]["grader.grade"] for d in debates_of("madplug-grader")} == {0.8}
    run("export", "study", "--calls", "--output", "calls.jsonl")
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert {(c["model"], c["purpose"]) for c in calls} >= {("large", "grade")}
    assert {c["model"] for c in calls if c["purpose"] != "grade"} == {"small"}


def test_a_kind_of_a_plugin_is_listed_shown_checked_and_stored(debates_of, run, endpoint, tmp_path):
    debates_of("madplug-hints")
    run("export", "study", "--calls", "--output", "calls.jsonl")
    said = re.findall(r"A hint says: ([\w ]+)", (tmp_path / "calls.jsonl").read_text())
    assert "there are three runners" in said
    assert any(re.fullmatch(r"the question has \d+ words", text) for text in said)
    assert [c["name"] for c in json.loads(run("list", "hints", "--json").stdout)["components"]] == [
        "hints.count", "hints.fact"]
    assert '[hints.NAME]\nuse = "hints.fact"\ntext = ...' in run("show", "hints.fact").stdout
    assert "hint  hint name, required" in run("show", "hints.informed").stdout
    assert "runners" in (tmp_path / "study" / "study.toml").read_text()
    assert run("check", tmp_path / "study" / "study.toml").returncode == 0
    again = run("run", HERE / "madplug-hints" / "study.toml", "--set", f"models.small.base_url={endpoint.url}", "--set",
                "hints.runners.text=other", "--output", "study")
    assert 'hints.runners.text was "there are three runners" and is now other' in again.stderr


@pytest.mark.parametrize(("setting", "words"), [
    ("hints.runners.text=3", "hints.runners.text: expected text"),
    ("hints.runners.txt=3", "hints.runners.txt: hints.fact has no such option; did you mean 'text'?"),
    ("hints.runners={use='fakt'}",
     "hints.runners: no installed plugin offers a hint 'fakt'; did you mean 'hints.fact'?"),
    ("hints.other.text='x'", "hints.other: does not name a hint, so that it changes nothing"),
    ("debate.styles.0.hint='runers'", "debate.styles[0].hint: there is no [hints.runers]; did you mean 'runners'?"),
    ("debate.styles.1.hint='som.debate'", "'som.debate' is a paradigm, not a hint")])
def test_a_table_of_a_plugins_kind_is_validated_like_any_other(run, setting, words):
    done = run("check", HERE / "madplug-hints" / "study.toml", "--set", setting)
    assert done.returncode == 2
    assert words in done.stderr
