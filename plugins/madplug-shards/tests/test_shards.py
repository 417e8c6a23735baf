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
SETTINGS = ("--set", "dataset.size=24", "--set", "repeats=2")


class TestPart(ExecutorContract):
    component = Part
    options = {"part": 1, "of": 1}


def program(*words):
    """The program: its exit status and what it printed."""
    return CliRunner().invoke(main, list(map(str, words)))


def run(folder, *words, text=RUN + MATCHED):
    """Run the study, or a part of it, in a directory."""
    file = folder.with_name("study.toml")
    file.write_text(text)
    ledger = f"models.m.ledger={folder.with_name('ledger.txt')}"
    return program("run", file, *SETTINGS, "--set", ledger, "--output", folder, "--quiet", *words)


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


@pytest.mark.parametrize("output", ["link", "locked"])
def test_an_empty_directory_becomes_the_merged_study(shards, tmp_path, output):
    """One behind a link, and one in which a study was about to be run."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "study.lock").touch()
    done = program("merge", *shards, "--output", tmp_path / output)
    assert done.exit_code == 0, done.output
    assert "96 done" in done.stdout
    assert (tmp_path / output / "summary.json").exists()


def test_the_directory_that_the_program_runs_in_is_not_replaced(shards, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = program("merge", *shards, "--output", ".")
    assert done.exit_code == 2
    assert "name another" in done.stderr


def test_a_merge_that_is_killed_leaves_no_study_and_can_be_repeated(parts, shards, tmp_path):
    words = f"{[str(shard) for shard in shards]!r}, {str(tmp_path / 'merged')!r}"
    killed = subprocess.run([sys.executable, "-c", "import os, signal\nfrom pathlib import Path\n"
                             "from madplug_shards import merging\n"
                             "merging.read_manifest = lambda folder: os.kill(os.getpid(), signal.SIGKILL)\n"
                             f"merge = lambda shards, output: merging.merge([*map(Path, shards)], Path(output))\n"
                             f"merge({words})"], check=False)
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


def test_shards_that_were_run_on_different_data_are_named(tmp_path, monkeypatch, madplug_plugin):
    madplug_plugin("rows", ROWS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.replace("kit.numbered", "rows.file").replace("size = 6", 'path = "n"'))
    for i, size in ((1, 8), (2, 12)):
        (tmp_path / "n").write_text(str(size))
        assert program("run", "study.toml", "--shard", f"{i}/2", "--output", f"part{i}", "--quiet").exit_code == 0
    done = program("merge", "part1", "part2", "--output", "merged", "--quiet")
    assert "part2: run on other data than part1" in done.stderr
    summary = json.loads((tmp_path / "merged/summary.json").read_text())
    assert summary["problems"] == done.stderr.splitlines()[:1]
    assert program("run", "study.toml", "--output", "merged", "--quiet").exit_code == 0
    assert json.loads((tmp_path / "merged/summary.json").read_text())["problems"] == []
    assert len(debates(tmp_path / "merged")) == 12


ROWS = """
from madplug import Dataset, Options, RunPath, Sample, hookimpl

class FileOptions(Options):
    path: RunPath

class File(Dataset):
    \'\'\'As many questions as a file says.\'\'\'
    name = "file"
    answers = "kit.stripped"
    Options = FileOptions
    def samples(self, split=None):
        for n in range(int(self.options.path.read_text())):
            yield Sample(f"q{n}", f"number {n}?"), ("A",)
    def fingerprint(self):
        return self.options.path.read_text()

@hookimpl
def madplug_register_datasets():
    return [File]
"""


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
    before = facts_of(mine)
    with closing(sqlite3.connect(mine / "study.db")) as db, db:
        scope = {**before["scope"], "hidden": {"pair": ["removed"]}}
        db.execute("INSERT OR REPLACE INTO facts VALUES ('scope', ?)", (json.dumps(scope),))
    merge([shards[0], mine, *shards[2:]], tmp_path / "merged")
    assert facts_of(tmp_path / "merged")["scope"]["hidden"]["pair"] == ["removed"]


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
    with closing(sqlite3.connect(mine / "study.db")) as db, db:
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (fact, json.dumps(value)))
    with pytest.raises(UserError, match=r"mine: is .*damaged"):
        merge([mine, *shards[1:]], tmp_path / "merged")


@pytest.mark.parametrize("summary", ["[]", '{"cells": 3}', '{"cells": [1, {}]}', "[" * 99_999])
def test_a_damaged_summary_of_a_shard_is_left_out(parts, shards, tmp_path, summary):
    mine = shutil.copytree(shards[0], tmp_path / "mine")
    (mine / "summary.json").write_text(summary)
    merge([mine, *shards[1:]], tmp_path / "merged")
    assert of_one_run(tmp_path / "merged") == of_one_run(parts[0] / "whole")


def test_a_directory_keeps_to_its_shard(parts, shards):
    for folder, words, text in ((shards[0], ["--shard", "2/4"], "contains part 1-of-4 and not part 2-of-4"),
                                (shards[0], [], "contains part 1-of-4 and not the whole study"),
                                (parts[0] / "whole", ["--shard", "1/4"], "contains the whole study and not part")):
        done = run(folder, *words)
        assert done.exit_code == 2
        assert text in done.stderr


@pytest.mark.parametrize(("words", "text"), [
    (["--shard", "0/4"], "--shard 0/4: expected I/N with I from 1 to N, such as 3/16"),
    (["--shard", "5/4"], "expected I/N"), (["--shard", "one"], "expected I/N"),
    (["--shard", ""], "expected I/N"), (["--shard", "\uff11/\uff14"], "expected I/N"),
    (["--prepare", "--shard", "1/4"], "--prepare: runs no debate"),
    (["--prepared", "x"], "--prepared: requires --shard I/N"),
    (["--set", 'execution={use="shards.part", part=3, of=2}'], "there are only 2 shards, and this is number 3")])
def test_mistakes_on_the_command_line_are_named(words, text, tmp_path):
    done = run(tmp_path / "study", *words)
    assert done.exit_code == 2
    assert text in done.stderr


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
    text = RUN + '[[extensions]]\nuse = "preparing.ask"\n'
    shards = [tmp_path / "one", tmp_path / "two"]
    assert run(tmp_path / "whole", text=text).exit_code == 0
    whole = calls_made(tmp_path)
    assert run(tmp_path / "prepared", "--prepare", text=text).exit_code == 0
    for i, shard in enumerate(shards):
        done = run(shard, "--shard", f"{i + 1}/2", "--prepared", tmp_path / "prepared", text=text)
        assert done.exit_code == 0, done.stderr
    assert calls_made(tmp_path) == whole
    assert run(shards[1], "--shard", "2/2", "--prepared", tmp_path / "prepared", text=text).exit_code == 0
    with closing(sqlite3.connect(shards[1] / "study.db")) as db:
        numbers = [db.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("calls", "contents")]
    assert numbers[0] == numbers[1]
    merge(shards, tmp_path / "merged")
    assert of_one_run(tmp_path / "merged") == of_one_run(tmp_path / "whole")


def test_shards_that_prepared_differently_are_named(tmp_path, madplug_plugin):
    madplug_plugin("preparing", PREPARING)
    text = RUN + '[[extensions]]\nuse = "preparing.ask"\n'
    shards = [tmp_path / "one", tmp_path / "two"]
    for i, shard in enumerate(shards):
        assert run(shard, "--shard", f"{i + 1}/2", text=text).exit_code == 0
    with closing(sqlite3.connect(shards[1] / "study.db")) as db, db:
        db.execute("UPDATE facts SET value = '\"Z\"' WHERE name = 'kept.preparing.letter'")
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


def test_figures_of_whole_cells_are_computed_when_the_merged_study_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CALIBRATED)
    (tmp_path / "study.toml").write_text(f'metrics = ["./mine.py:Calibrated"]\n{STUDY}')

    def madplug(*words):
        done = program(*words)
        assert done.exit_code == 0, done.output
        return done.stdout

    madplug("run", "study.toml", "--prepare", "--output", "prepared", "--quiet")
    for i in (1, 2):
        madplug("run", "study.toml", "--shard", f"{i}/2", "--prepared", "prepared", "--output", f"part{i}", "--quiet")
    assert "run the same run file with --output merged to compute the figures of whole cells of mine.py:Calibrated" \
        in madplug("merge", "part1", "part2", "--output", "merged")
    madplug("run", "study.toml", "--output", "merged", "--quiet")
    madplug("run", "study.toml", "--output", "whole", "--quiet")
    figures = [json.loads((tmp_path / name / "summary.json").read_text())["cells"][0]["figures"]
               for name in ("merged", "whole")]
    assert figures[0] == figures[1]
    assert figures[0]["mine.py:Calibrated"]["said"] in ("A", "B")
    assert figures[0]["mine.py:Calibrated"]["debates"] == 6
