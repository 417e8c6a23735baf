"""A study run in parts, each by itself, and merged: the study run in one piece."""

import json
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest
import tomli_w
from click.testing import CliRunner
from tests_support import STUDY

from madplug import UserError
from madplug.cli.program import main
from madplug.merge import merge
from madplug.shards import Shard
from madplug_testing.endpoint import running_endpoint
from tests.faults import studies

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MATCHED = """
[[cells]]
name = "pair"
[[cells]]
name = "alone"
debate.agents = 1
match = {cell = "pair", by = "calls"}
"""
SETTINGS = ("dataset.size=24", "repeats=2")


def run(folder, url, *words, text=studies.RUN + MATCHED):
    """The program; its exit status and what it printed."""
    file = folder.with_name("study.toml")
    file.write_text(text)
    settings = [word for setting in (f'models.m.base_url="{url}"', *SETTINGS) for word in ("--set", setting)]
    return CliRunner().invoke(main, ["run", str(file), *settings, "--output", str(folder), "--quiet", *words])


def lines(folder):
    """The study as it is exported, but for times."""
    with studies.open_study(folder) as study:
        return [json.dumps({**json.loads(line), "seconds": None}) for line in study.records()]


def of_one_run(folder):
    """Everything about a study that does not depend on when and in how many parts it was run."""
    summary = studies.summary(folder)
    keys = sorted(call["key"] for call in studies.calls(folder))
    return lines(folder), summary, keys, {name.split("-")[0] for name in studies.files(folder)} - {"log.jsonl"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with the whole study and its four shards, and the numbers of requests for each way."""
    folder = tmp_path_factory.mktemp("parts")
    with running_endpoint(text="{letter}") as endpoint:
        done = run(folder / "whole", endpoint.url)
        assert done.exit_code == 0, done.stderr
        whole = endpoint.stats()["requests"]
        endpoint.reset()
        for i in range(1, 5):
            assert run(folder / f"shard{i}", endpoint.url, "--shard", f"{i}/4").exit_code == 0
        return folder, whole, endpoint.stats()["requests"]


@pytest.fixture
def shards(parts):
    return [parts[0] / f"shard{i}" for i in range(1, 5)]


def test_four_shards_merged_are_the_study_in_one_piece(parts, shards, tmp_path):
    _, whole, sharded = parts
    done = CliRunner().invoke(main, ["merge", *map(str, reversed(shards)), "--output", str(tmp_path / "merged")])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "study: finished" in done.stdout
    assert of_one_run(tmp_path / "merged") == of_one_run(parts[0] / "whole")
    assert whole == sharded
    assert "24" in CliRunner().invoke(main, ["status", str(tmp_path / "merged")]).stdout


def test_a_sample_is_in_one_shard_with_every_cell_and_repeat(shards):
    found = [{line["sample"]["id"] for line in map(json.loads, lines(shard))} for shard in shards]
    assert sum(map(len, found)) == len(set.union(*found)) == 24
    assert all(len(lines(shard)) == 4 * len(ids) for shard, ids in zip(shards, found, strict=True))


def test_a_merged_study_is_resumed_like_any_other(parts, shards, tmp_path):
    merge(shards, tmp_path / "merged")
    with running_endpoint(text="{letter}") as endpoint:
        assert run(tmp_path / "merged", endpoint.url).exit_code == 0
        assert endpoint.stats()["requests"] == 0
    assert of_one_run(tmp_path / "merged") == of_one_run(parts[0] / "whole")


def test_a_shard_that_was_stopped_leaves_its_debates_to_the_merged_study(parts, shards, tmp_path):
    with running_endpoint(text="{letter}") as endpoint:
        assert run(tmp_path / "part", endpoint.url, "--shard", "1/4", "--set", "limits.calls=10").exit_code == 3
        done = CliRunner().invoke(main, ["merge", str(tmp_path / "part"), *map(str, shards[1:]), "--output",
                                         str(tmp_path / "merged"), "--quiet"])
        assert "debates not run yet" in done.stderr
        assert run(tmp_path / "merged", endpoint.url).exit_code == 0
    assert lines(tmp_path / "merged") == lines(parts[0] / "whole")


def test_shards_that_were_run_on_different_data_are_named(tmp_path, monkeypatch):
    pytest.importorskip("madplug_files")
    monkeypatch.chdir(tmp_path)
    text = STUDY.replace('use = "kit.numbered"\nsize = 6', 'use = "files.table"\npath = "q.jsonl"\nanswers = "text"')
    (tmp_path / "study.toml").write_text(text)
    for i, size in ((1, 8), (2, 12)):
        rows = [{"id": f"q{n}", "question": f"number {n}?", "reference": "A"} for n in range(size)]
        (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
        words = ["run", "study.toml", "--shard", f"{i}/2", "--output", f"part{i}", "--quiet"]
        assert CliRunner().invoke(main, words).exit_code == 0
    done = CliRunner().invoke(main, ["merge", "part1", "part2", "--output", "merged", "--yes"])
    assert done.exit_code == 0, done.output
    assert "part2: run on other data than part1" in done.stderr
    [problem] = studies.summary(tmp_path / "merged")["problems"]
    assert problem == done.stderr.strip()
    assert CliRunner().invoke(main, ["run", "study.toml", "--output", "merged", "--quiet"]).exit_code == 0
    assert studies.summary(tmp_path / "merged")["problems"] == []
    assert len(lines(tmp_path / "merged")) == 12


def test_missing_and_repeated_shards_are_named(shards, tmp_path):
    shutil.copytree(shards[0], tmp_path / "again")
    with pytest.raises(UserError) as caught:
        merge([shards[0], tmp_path / "again", shards[2]], tmp_path / "merged")
    assert [str(problem) for problem in caught.value.problems] == [
        f"shard 1/4 is given 2 times: {shards[0]}, {tmp_path / 'again'}", "2 shards missing: 2/4, 4/4"]
    assert not (tmp_path / "merged").exists()


def test_what_is_not_a_shard_or_one_of_another_study_is_named(parts, shards, tmp_path):
    with running_endpoint(text="{letter}") as endpoint:
        assert run(tmp_path / "foreign", endpoint.url, "--shard", "2/4", "--set", "seed=9").exit_code == 0
        assert run(tmp_path / "third", endpoint.url, "--shard", "2/3").exit_code == 0
    with pytest.raises(UserError, match=r"foreign: is a shard of another study than .*shard1: seed was 0 and is now 9"):
        merge([shards[0], tmp_path / "foreign", *shards[2:]], tmp_path / "merged")
    with pytest.raises(UserError, match=r"in different ways: .* is one of 4 shards, .*third is one of 3 shards"):
        merge([shards[0], tmp_path / "third"], tmp_path / "merged")
    with pytest.raises(UserError, match="whole: is not a shard of a study; run the study with --shard I/N"):
        merge([parts[0] / "whole"], tmp_path / "merged")
    with pytest.raises(UserError, match="is one of the shards"):
        merge(shards, shards[0])
    with pytest.raises(UserError, match="has a study in it already"):
        merge(shards, parts[0] / "whole")


EVIL = """
from pathlib import Path
from madplug import AnswerFormat
Path(__file__).with_suffix(".ran").touch()
class Evil(AnswerFormat):
    name = "evil"
"""


@pytest.mark.parametrize("use", ["./evil.py:Evil", "../evil.py:Evil", "{tmp_path}/shard2/evil.py:Evil"])
def test_a_file_beside_a_shard_is_not_executed_to_merge_it(shards, tmp_path, use):
    mine = [shutil.copytree(shard, tmp_path / shard.name) for shard in shards]
    for place in (tmp_path, *mine):
        (place / "evil.py").write_text(EVIL)
    for shard in mine:
        table = tomllib.loads((shard / "study.toml").read_text())
        table["cells"][0]["answers"] = {"use": use.format(tmp_path=tmp_path)}
        (shard / "study.toml").write_text(tomli_w.dumps(table))
    done = CliRunner().invoke(main, ["merge", *map(str, mine), "--output", str(tmp_path / "merged")])
    assert not list(tmp_path.rglob("evil.ran"))
    assert done.exit_code == 2
    assert "is executed" in done.stderr


@pytest.mark.parametrize(("fact", "value"), [
    ("shard", {"number": "x", "of": 4}), ("shard", {"of": 4}), ("shard", {"number": [], "of": {}}),
    ("shard", {"number": "1", "of": 4}), ("shard", {"number": 1, "of": "4"}),
    ("shard", {"number": 10**30, "of": 4}), ("shard", {"number": 1, "of": 10**12}), ("identity", "text"),
    ("planned", "many"), ("planned", [1]), ("scope", {"cells": 3}), ("scope", [[]])])
def test_facts_of_a_shard_that_cannot_be_read_are_told(shards, tmp_path, fact, value):
    mine = shutil.copytree(shards[0], tmp_path / "mine")
    with closing(sqlite3.connect(mine / "study.db")) as db, db:
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (fact, json.dumps(value)))
    with pytest.raises(UserError, match="mine: is damaged"):
        merge([mine, *shards[1:]], tmp_path / "merged")


@pytest.mark.parametrize("summary", ["[]", '{"cells": 3}', '{"cells": [1, {}]}', "[" * 99_999])
def test_a_damaged_summary_of_a_shard_is_left_out(shards, tmp_path, summary):
    mine = shutil.copytree(shards[0], tmp_path / "mine")
    (mine / "summary.json").write_text(summary)
    assert merge([mine, *shards[1:]], tmp_path / "merged").left == 0


def test_a_directory_keeps_to_its_shard(parts, shards):
    for folder, words, text in ((shards[0], ["--shard", "2/4"], "contains shard 1/4 and not shard 2/4"),
                                (shards[0], [], "contains shard 1/4 and not the whole study"),
                                (parts[0] / "whole", ["--shard", "1/4"], "contains the whole study and not shard 1/4")):
        done = run(folder, "http://127.0.0.1:9/v1", *words)
        assert done.exit_code == 2
        assert text in done.stderr


@pytest.mark.parametrize(("words", "text"), [
    (["--shard", "0/4"], "--shard 0/4: expected I/N with I from 1 to N, such as 3/16"),
    (["--shard", "5/4"], "expected I/N"), (["--shard", "one"], "expected I/N"),
    (["--shard", ""], "expected I/N"), (["--shard", "\uff11/\uff14"], "expected I/N"),
    (["--prepare", "--shard", "1/4"], "--prepare: runs no debate"), (["--prepared", "x"], "add --shard I/N")])
def test_mistakes_on_the_command_line_are_named(words, text, tmp_path):
    done = run(tmp_path / "study", "http://127.0.0.1:9/v1", *words)
    assert done.exit_code == 2
    assert text in done.stderr


def test_a_sample_presented_twice_stays_with_its_pair():
    from madplug import Sample

    pairs = [(Sample(f"q{i}", "?"), Sample(f"q{i}-swapped", "?", metadata={"pair": f"q{i}"})) for i in range(20)]
    assert all(Shard(k, 3).has(a) is Shard(k, 3).has(b) for a, b in pairs for k in (1, 2, 3))


PREPARING = '''
from madplug import Extension, hookimpl, maybe_await

class Ask(Extension):
    """Asks once, and notes the answer with every debate."""
    name = "ask"
    def calls(self, plan):
        return 0
    async def prepare(self, setup):
        async def ask():
            return (await setup.ask("which letter?", purpose="calibrate")).text
        self.letter = await setup.keep("preparing.letter", ask)
    @hookimpl(wrapper=True)
    def madplug_opening(self, debate):
        debate.notes["preparing"] = self.letter
        return (yield)

@hookimpl
def madplug_register_extensions():
    return [Ask]
'''


def test_what_components_prepare_is_made_once_and_given_to_every_shard(tmp_path, madplug_plugin):
    madplug_plugin("preparing", PREPARING)
    text = studies.RUN + '[[extensions]]\nuse = "preparing.ask"\n'
    shards = [tmp_path / "one", tmp_path / "two"]
    with running_endpoint(text="{letter}") as endpoint:
        assert run(tmp_path / "whole", endpoint.url, text=text).exit_code == 0
        whole = endpoint.stats()["requests"]
        endpoint.reset()
        assert run(tmp_path / "prepared", endpoint.url, "--prepare", text=text).exit_code == 0
        assert endpoint.stats()["requests"] == 1
        for i, shard in enumerate(shards):
            done = run(shard, endpoint.url, "--shard", f"{i + 1}/2", "--prepared", str(tmp_path / "prepared"),
                       text=text)
            assert done.exit_code == 0, done.stderr
        assert endpoint.stats()["requests"] == whole
    merge(shards, tmp_path / "merged")
    assert of_one_run(tmp_path / "merged") == of_one_run(tmp_path / "whole")


def test_shards_that_prepared_differently_are_named(tmp_path, madplug_plugin):
    madplug_plugin("preparing", PREPARING)
    text = studies.RUN + '[[extensions]]\nuse = "preparing.ask"\n'
    shards = [tmp_path / "one", tmp_path / "two"]
    for i, shard in enumerate(shards):
        with running_endpoint(text="AB"[i]) as endpoint:
            assert run(shard, endpoint.url, "--shard", f"{i + 1}/2", text=text).exit_code == 0
    with pytest.raises(UserError, match=r"'preparing\.letter' was prepared differently .* --prepared DIR"):
        merge(shards, tmp_path / "merged")


CALIBRATED = '''
from madplug import Metric
class Calibrated(Metric):
    """A metric whose figures rest on what a model said in preparation."""
    said = None
    async def prepare(self, setup):
        async def ask():
            return (await setup.ask("how good?", purpose="calibrate")).text
        self.said = await setup.keep("calibrated", ask)
    def score(self, debate, references):
        return 1.0
    def summarise(self, results):
        return {"said": self.said, "debates": sum(1 for _ in results)}
'''


def test_figures_that_rest_on_what_was_prepared_are_in_the_merged_summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CALIBRATED)
    (tmp_path / "study.toml").write_text(f'metrics = ["./mine.py:Calibrated"]\n{STUDY}')

    def madplug(*words):
        done = CliRunner().invoke(main, [*words])
        assert done.exit_code == 0, done.output
        return done.output

    madplug("run", "study.toml", "--prepare", "--output", "prepared", "--quiet")
    for i in (1, 2):
        madplug("run", "study.toml", "--shard", f"{i}/2", "--prepared", "prepared", "--output", f"part{i}", "--quiet")
    madplug("merge", "part1", "part2", "--output", "merged", "--yes")
    madplug("run", "study.toml", "--output", "whole", "--quiet")
    figures = [studies.summary(tmp_path / name)["cells"][0]["figures"] for name in ("merged", "whole")]
    assert figures[0] == figures[1] == {"mine.py:Calibrated": {"said": figures[0]["mine.py:Calibrated"]["said"],
                                                               "debates": 6}}
    assert figures[0]["mine.py:Calibrated"]["said"] in ("A", "B")
