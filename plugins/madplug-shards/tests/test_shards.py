"""A study run in parts, each by itself, and merged: the study run in one piece."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner
from tests_support import RUN, STUDY

from madplug import Sample, UserError, open_study, to_json
from madplug.cli.program import main
from madplug.store import open_recorder
from madplug_shards.copying import copy_records, facts_of
from madplug_shards.executors import Part
from madplug_shards.merging import building, merge
from madplug_testing import play
from madplug_testing.contracts import ExecutorContract

MATCHED = """
[[cells]]
name = "pair"
[[cells]]
name = "alone"
debate.agents = 1
debate.turns = "kit.budgeted"
match = {cell = "pair", by = "calls"}
"""
MINE = """
from madplug import Dataset, Extension, Metric, Options, RunPath, Sample, hookimpl

class FileOptions(Options):
    path: RunPath

class File(Dataset):
    '''As many questions as a file says.'''
    answers = "kit.stripped"
    Options = FileOptions
    def samples(self, split=None):
        for n in range(int(self.options.path.read_text())):
            yield Sample(f"q{n}", f"number {n}?"), ("A",)
    def fingerprint(self):
        return self.options.path.read_text()

class Ask(Extension):
    '''Asks once, and notes the answer with every debate.'''
    def calls(self, plan):
        return 0
    async def prepare(self, setup):
        async def ask():
            return (await setup.ask("which letter?", purpose="calibrate")).text
        self.letter = await setup.keep("letter", ask)
    @hookimpl(wrapper=True)
    def madplug_opening(self, debate):
        debate.notes["letter"] = self.letter
        return (yield)

class Calibrated(Metric):
    '''Its figures of a cell rest on what a model said in preparation.'''
    prepare = Ask.prepare
    def score(self, debate, references):
        return 1.0
    def summarise(self, results):
        return {"said": self.letter, "debates": sum(1 for _ in results)}
"""
SETTINGS = ("--set", "dataset.size=24", "--set", "repeats=2")


class TestPart(ExecutorContract):
    component = Part
    options = {"part": 1, "of": 1}


def program(*words):
    """The program: its exit status and what it printed."""
    return CliRunner().invoke(main, list(map(str, words)))


def run(folder, *words, text=RUN + MATCHED, settings=SETTINGS):
    """Run the study, or a part of it, in a directory."""
    file = folder.with_name("study.toml")
    file.write_text(text)
    folder.with_name("mine.py").write_text(MINE)
    ledger = f"models.m.ledger={folder.with_name('ledger.txt')}"
    return program("run", file, *settings, "--set", ledger, "--output", folder, "--quiet", *words)


def keep_fact(folder, name, value):
    """Change what a study says of itself."""
    with closing(sqlite3.connect(folder / "study.db")) as db, db:
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))


def calls_made(folder):
    """How many calls the models of the studies in a folder have answered since the last time."""
    ledger = folder / "ledger.txt"
    made = len(ledger.read_text().splitlines()) if ledger.exists() else 0
    ledger.unlink(missing_ok=True)
    return made


def lasting(value):
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if key not in ("seconds", "prepared")}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def debates(folder):
    """The debates in the order of their records."""
    with open_study(folder) as study:
        return [lasting(json.loads(line)) for line in study.records()]


def of_one_run(folder):
    """Everything about a study that does not depend on when and in how many parts it was run."""
    with open_study(folder) as study:
        keys = sorted(call["key"] for call in study.calls())
    return debates(folder), lasting(json.loads((folder / "summary.json").read_text())), keys


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with the whole study and its four shards, and the number of calls of each way."""
    folder = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
        assert run(folder / "whole").exit_code == 0
        whole = calls_made(folder)
        for i in range(1, 5):
            assert run(folder / f"shard{i}", "--shard", f"{i}/4").exit_code == 0
    return folder, whole, calls_made(folder)


@pytest.fixture
def shards(parts):
    return [parts[0] / f"shard{i}" for i in range(1, 5)]


def test_four_shards_merged_are_the_study_in_one_piece_and_resumed_like_any_other(parts, shards, tmp_path):
    folder, whole, sharded = parts
    done = program("merge", *reversed(shards), "--output", tmp_path / "merged")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "96 done, 0 failed, 0 left" in done.stdout
    assert of_one_run(tmp_path / "merged") == of_one_run(folder / "whole")
    assert whole == sharded > 0
    assert run(tmp_path / "merged").exit_code == 0
    assert calls_made(tmp_path) == 0
    assert of_one_run(tmp_path / "merged") == of_one_run(folder / "whole")


def test_a_sample_is_in_one_shard_with_every_cell_and_repeat(shards):
    found = [{line["sample"]["id"] for line in debates(shard)} for shard in shards]
    assert sum(map(len, found)) == len(set.union(*found)) == 24
    assert all(len(debates(shard)) == 4 * len(ids) for shard, ids in zip(shards, found, strict=True))


def test_a_shard_that_was_stopped_leaves_its_debates_to_the_merged_study(parts, shards, tmp_path):
    assert run(tmp_path / "part", "--shard", "1/4", "--set", "limits.calls=10").exit_code == 3
    done = program("merge", tmp_path / "part", *shards[1:], "--output", tmp_path / "merged", "--quiet")
    assert "debates not run yet" in done.stderr
    assert run(tmp_path / "merged").exit_code == 0
    assert debates(tmp_path / "merged") == debates(parts[0] / "whole")


def test_an_empty_directory_becomes_the_merged_study_but_not_the_current_one(shards, tmp_path, monkeypatch):
    """One behind a link, and one in which a study was about to be run."""
    for name in ("empty", "locked", "here"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "locked" / "study.lock").touch()
    monkeypatch.chdir(tmp_path / "here")
    for output in ("link", "locked"):
        done = program("merge", *shards, "--output", tmp_path / output)
        assert (done.exit_code, "96 done" in done.stdout) == (0, True), done.output
        assert (tmp_path / output / "summary.json").exists()
    done = program("merge", *shards, "--output", ".")
    assert (done.exit_code, "name another" in done.stderr) == (2, True)


KILLED = """
import os, signal, sys
from pathlib import Path
from madplug_shards import merging
merging.read_manifest = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
output, *shards = map(Path, sys.argv[1:])
merging.merge(shards, output)
"""


def test_a_merge_that_is_killed_leaves_no_study_and_can_be_repeated(parts, shards, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "merged", *shards], check=False)
    assert killed.returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == [".merged.merging"]
    assert merge(shards, tmp_path / "merged").left == 0
    assert [path.name for path in tmp_path.iterdir()] == ["merged"]
    assert of_one_run(tmp_path / "merged") == of_one_run(parts[0] / "whole")


def test_two_merges_into_one_directory_do_not_meet(shards, tmp_path):
    output = tmp_path / "merged"
    with building(output) as folder:
        with pytest.raises(UserError, match="another process"):
            merge(shards, output)
        assert folder.is_dir()


def test_shards_that_were_run_on_different_data_are_named(tmp_path):
    text = STUDY.replace("kit.numbered", "./mine.py:File").replace("size = 6", 'path = "n"')
    parts, merged = [tmp_path / "part1", tmp_path / "part2"], tmp_path / "merged"
    for i, size in ((1, 8), (2, 12)):
        (tmp_path / "n").write_text(str(size))
        assert run(parts[i - 1], "--shard", f"{i}/2", text=text, settings=()).exit_code == 0
    said = program("merge", *parts, "--output", merged, "--quiet").stderr
    assert f"{parts[1]}: run on other data than {parts[0]}" in said
    assert json.loads((merged / "summary.json").read_text())["problems"] == said.splitlines()[:1]
    assert run(merged, text=text, settings=()).exit_code == 0
    assert json.loads((merged / "summary.json").read_text())["problems"] == []
    assert len(debates(merged)) == 12


def test_missing_and_repeated_shards_are_named(shards, tmp_path):
    shutil.copytree(shards[0], tmp_path / "again")
    with pytest.raises(UserError) as caught:
        merge([shards[0], tmp_path / "again", shards[2]], tmp_path / "merged")
    assert [str(problem) for problem in caught.value.problems] == [
        f"shard 1/4 is given 2 times: {shards[0]}, {tmp_path / 'again'}", "2 shards missing: 2/4, 4/4"]
    assert not (tmp_path / "merged").exists()


def test_what_is_not_a_shard_or_one_of_another_study_is_named(parts, shards, tmp_path):
    assert run(tmp_path / "foreign", "--shard", "2/4", "--set", "seed=9").exit_code == 0
    assert run(tmp_path / "third", "--shard", "2/3").exit_code == 0
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


def test_to_merge_executes_nothing_that_a_shard_names(shards, tmp_path):
    mine = [shutil.copytree(shard, tmp_path / shard.name) for shard in shards]
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n")
    for shard in mine:
        text = (shard / "study.toml").read_text().replace("kit.stripped", f"{tmp_path}/evil.py:Evil")
        assert "evil.py" in text
        (shard / "study.toml").write_text(text)
    assert merge(mine, tmp_path / "merged").left == 0
    assert not (tmp_path / "evil.ran").exists()


def test_a_metric_that_one_shard_is_without_is_gone(shards, tmp_path):
    """Shards that were run again with other metrics, one of them not to its end."""
    mine = shutil.copytree(shards[1], tmp_path / "mine")
    keep_fact(mine, "scope", {**facts_of(mine)["scope"], "metrics": {"pair": []}})
    merge([shards[0], mine, *shards[2:]], tmp_path / "merged")
    assert facts_of(tmp_path / "merged")["scope"]["metrics"]["pair"] == []


def test_requests_of_merged_studies_are_whole(tmp_path):
    """Each is stored by what differs from an earlier one, whose number changes."""
    asked = []
    for name in "abc":
        store = open_recorder(tmp_path / name)
        played = play(replies=lambda request: f"{request.agent} says {'the same at length, ' * 40}", agents=5, rounds=3,
                      sample=Sample(name, f"{name}?"), store=store)
        store.close()
        asked += played.requests
    copy_records([tmp_path / name for name in "abc"], tmp_path / "all")
    with open_study(tmp_path / "all") as reader:
        requests = [to_json(row["request"]["messages"]) for row in reader.calls()]
        assert all(len(debate.messages) == 15 for debate in reader.debates())
    assert sorted(requests) == sorted(to_json(request.messages) for request in asked)


@pytest.mark.parametrize(("fact", "value"), [
    ("part", {"number": 1}), ("part", "0-of-4"), ("part", "5-of-4"), ("part", f"{10**30}-of-4"), ("identity", "text"),
    ("planned", "many"), ("planned", [1]), ("scope", {"cells": 3}), ("scope", [[]])])
def test_facts_of_a_shard_that_cannot_be_read_are_told(shards, tmp_path, fact, value):
    mine = shutil.copytree(shards[0], tmp_path / "mine")
    keep_fact(mine, fact, value)
    with pytest.raises(UserError, match=r"mine: is .*damaged"):
        merge([mine, *shards[1:]], tmp_path / "merged")


@pytest.mark.parametrize("summary", ["[]", '{"cells": 3}', '{"cells": [1, {}]}', "[" * 99_999])
def test_a_damaged_summary_of_a_shard_is_left_out(parts, shards, tmp_path, summary):
    mine = shutil.copytree(shards[0], tmp_path / "mine")
    (mine / "summary.json").write_text(summary)
    merge([mine, *shards[1:]], tmp_path / "merged")
    assert of_one_run(tmp_path / "merged") == of_one_run(parts[0] / "whole")


@pytest.mark.parametrize(("folder", "words", "text"), [
    ("shard1", ["--shard", "2/4"], "contains part 1-of-4 and not part 2-of-4"),
    ("shard1", [], "contains part 1-of-4 and not the whole study"),
    ("whole", ["--shard", "1/4"], "contains the whole study and not part"),
    ("new", ["--shard", "0/4"], "--shard 0/4: expected I/N with I from 1 to N, such as 3/16"),
    ("new", ["--shard", "5/4"], "expected I/N"), ("new", ["--shard", "one"], "expected I/N"),
    ("new", ["--shard", ""], "expected I/N"), ("new", ["--shard", "\uff11/\uff14"], "expected I/N"),
    ("new", ["--prepare", "--shard", "1/4"], "--prepare: runs no debate"),
    ("new", ["--prepared", "x"], "--prepared: requires --shard I/N"),
    ("new", ["--set", 'execution={use="shards.part", part=3, of=2}'], "there are only 2 shards, and this is number 3")])
def test_mistakes_on_the_command_line_are_named(parts, folder, words, text):
    done = run(parts[0] / folder, *words)
    assert (done.exit_code, text in done.stderr) == (2, True), done.stderr


def test_a_shard_runs_where_the_run_file_says_in_a_directory_named_after_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(f'execution = {{use = "shards.part", part = 1, of = 1}}\n{STUDY}')
    assert program("run", "study.toml", "--shard", "2/3", "--quiet").exit_code == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["study.2-of-3"]
    assert 0 < len(debates(tmp_path / "runs/study.2-of-3")) < 6


def test_a_sample_presented_twice_stays_with_its_pair():
    pairs = [(Sample(f"q{i}", "?"), Sample(f"q{i}-swapped", "?", metadata={"pair": f"q{i}"})) for i in range(20)]
    shards = [Part.from_slot(Part.Options(part=k, of=3), full_name="shards.part") for k in (1, 2, 3)]
    assert all(shard.includes(a) is shard.includes(b) for a, b in pairs for shard in shards)


ASKING = RUN + '[[extensions]]\nuse = "./mine.py:Ask"\n'


def test_what_components_prepare_is_made_once_and_given_to_every_shard(tmp_path):
    shards, prepared, merged = [tmp_path / "one", tmp_path / "two"], tmp_path / "prepared", tmp_path / "merged"
    assert run(tmp_path / "whole", text=ASKING).exit_code == 0
    whole = calls_made(tmp_path)
    assert run(prepared, "--prepare", text=ASKING).exit_code == 0
    for i, shard in [*enumerate(shards, 1), (2, shards[1])]:
        assert run(shard, "--shard", f"{i}/2", "--prepared", prepared, text=ASKING).exit_code == 0
    assert calls_made(tmp_path) == whole
    with closing(sqlite3.connect(shards[1] / "study.db")) as db:
        calls, contents = (db.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("calls", "contents"))
    assert calls == contents
    merge(shards, merged)
    assert of_one_run(merged) == of_one_run(tmp_path / "whole")
    keep_fact(shards[1], "kept.letter", "Z")
    with pytest.raises(UserError, match=r"'letter' was prepared differently .* --prepared DIR"):
        merge(shards, tmp_path / "other")


def test_figures_of_whole_cells_are_computed_when_the_merged_study_is_run(tmp_path):
    text = f'metrics = ["./mine.py:Calibrated"]\n{STUDY}'
    prepared, parts, merged = tmp_path / "prepared", [tmp_path / "part1", tmp_path / "part2"], tmp_path / "merged"
    assert run(prepared, "--prepare", text=text, settings=()).exit_code == 0
    for i, part in enumerate(parts, 1):
        assert run(part, "--shard", f"{i}/2", "--prepared", prepared, text=text, settings=()).exit_code == 0
    assert f"run the same run file with --output {merged} to compute the figures of whole cells of mine.py:Calibrated" \
        in program("merge", *parts, "--output", merged).stdout
    found = []
    for folder in (merged, tmp_path / "whole"):
        assert run(folder, text=text, settings=()).exit_code == 0
        found.append(json.loads((folder / "summary.json").read_text())["cells"][0]["figures"]["mine.py:Calibrated"])
    assert found[0] == found[1]
    assert (found[0]["said"] in ("A", "B"), found[0]["debates"]) == (True, 6)
