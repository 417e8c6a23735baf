"""Studies as processes: resuming, killing, limits, interrupts, and directories that cannot be used."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tests_support import RUN, counts, exported, paid


def start(tmp_path, *words):
    return subprocess.Popen([sys.executable, "-m", "madplug", *map(str, words)], cwd=tmp_path,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


LEDGER = ("--set", "models.m.ledger=calls.txt")


def test_a_study_is_run_kept_and_shown(madplug, write, tmp_path):
    done = madplug("run", write(), *LEDGER)
    assert done.returncode == 0, done.stderr
    assert "study: finished" in done.stdout
    assert "results saved in runs/study/" in done.stdout
    folder = tmp_path / "runs" / "study"
    kept = {p.name for p in folder.iterdir()}
    assert kept >= {"study.db", "study.toml", "manifest.json", "summary.json", "log.jsonl"}
    summary = json.loads((folder / "summary.json").read_text())
    cell = summary["cells"][0]
    assert (summary["status"], cell["done"], cell["failed"], cell["calls"]) == ("finished", 6, 0, 24)
    assert set(cell["metrics"]["kit.right"]) == {"mean", "std", "ci95", "ci_method", "median", "n", "proportion",
                                                 "per_repeat"}
    assert counts(folder) == {"done": 6, "failed": 0, "left": 0, "calls": 24}
    rows = exported(folder)
    assert len(rows) == 6
    assert set(rows[0]) >= {"cell", "repeat", "sample", "references", "agents", "messages", "decision", "metrics",
                                "calls", "tokens", "error"}


def test_the_expanded_run_file_is_a_run_file(program, write, tmp_path):
    program("run", write())
    done = program("run", tmp_path / "runs" / "study" / "study.toml", "--output", "again")
    assert done.returncode == 0, done.stderr
    assert exported(tmp_path / "again") == exported(tmp_path / "runs/study")


def test_results_do_not_depend_on_scheduling(program, write, tmp_path):
    for wide in (1, 100):
        program("run", write(), "--output", f"wide{wide}", "--set", f"models.m.max_in_flight={wide}", "--set",
                "models.m.latency=0.01")
    assert exported(tmp_path / "wide1") == exported(tmp_path / "wide100")


def test_an_installed_but_unnamed_plugin_changes_no_byte_of_a_result(madplug, write, tmp_path, madplug_plugin):
    madplug("run", write(), "--output", "before")
    madplug_plugin("meddler", '''
from madplug import Extension, Reply, hookimpl
class Meddle(Extension):
    """Would change everything."""
    name = "meddle"
    @hookimpl(wrapper=True)
    def madplug_reply(self, debate, turn, view):
        yield
        async def other():
            return Reply("MEDDLED")
        return other()
@hookimpl
def madplug_register_extensions():
    return [Meddle]
''')
    madplug("run", write(), "--output", "after")
    assert exported(tmp_path / "before") == exported(tmp_path / "after")
    named = madplug("run", write(), "--output", "named", "--set", 'extensions=["meddler.meddle"]')
    assert named.returncode == 0
    assert "MEDDLED" in repr(exported(tmp_path / "named"))


def test_killed_at_twenty_random_moments_it_ends_equal_to_the_undisturbed_study(madplug, write, tmp_path):
    file, more = write(), ("--set", "dataset.size=60", "--set", "models.m.max_in_flight=4", *LEDGER)
    calm = madplug("run", file, "--output", "calm", "--set", "dataset.size=60")
    assert calm.returncode == 0
    earlier = tmp_path / "killed" / "summary.json"
    first = ("--set", "dataset.size=60", "--set", "limits.calls=0")
    assert madplug("run", file, "--output", "killed", *first).returncode == 3
    assert earlier.exists()
    dice, kills = random.Random(20), 0
    while kills < 20:
        before = paid(tmp_path)
        process = start(tmp_path, "run", file, "--output", "killed", "--quiet", "--set", "models.m.latency=0.2", *more)
        until(lambda before=before, process=process: paid(tmp_path) > before or process.poll() is not None)
        time.sleep(dice.random() * 0.15)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        assert not earlier.exists()  # the figures of an earlier run are not those of this one
    done = madplug("run", file, "--output", "killed", *more)
    assert done.returncode == 0, done.stderr
    assert kills == 20
    assert json.loads(earlier.read_text())["status"] == "finished"
    assert exported(tmp_path / "killed") == exported(tmp_path / "calm")
    assert 240 <= paid(tmp_path) <= 240 + 20 * 4


def test_identical_requests_of_two_cells_share_one_completion(program, write, tmp_path):
    text = RUN + '[sweep]\n"debate.rounds" = [1, 2]\n'
    program("run", write(text), *LEDGER)
    assert paid(tmp_path) == 24  # round 1 is paid once: 12 + 12
    program("run", write("share_completions = false\n" + text), "--output", "apart", *LEDGER)
    assert paid(tmp_path) == 24 + 36


def test_repeats_and_agents_draw_independently(program, write, tmp_path):
    program("run", write("repeats = 2\n" + __import__("tests_support").RUN), "--set", "models.m.letters=ABCDEFGH")
    found = exported(tmp_path / "runs/study")
    first = {(r["repeat"], m["agent"]): m["content"] for r in found if r["sample"]["id"] == "q0000"
             for m in r["messages"] if m["round"] == 1}
    assert len(first) == 4
    assert len(set(first.values())) > 1


@pytest.mark.parametrize(("price", "calls"), [("1e6", 4), ("1e20", 1)])
def test_a_cost_limit_counts_the_price_however_absurd_it_is(program, write, tmp_path, price, calls):
    price = ("--set", f"models.m.price={{prompt = {price}, completion = 0}}", "--set", "models.m.max_in_flight=1")
    done = program("run", write(), "--set", "limits.cost_usd=35", *price, *LEDGER)
    assert (done.returncode, paid(tmp_path)) == (3, calls)
    assert "with the calls in flight); everything so far is saved; run the same command with a higher limit to resume" \
        in done.stderr


def test_calls_without_a_price_cannot_count_for_a_cost_limit_and_that_is_told(program, write):
    program("run", write(), "--set", "limits.calls=4", "--set", "models.m.max_in_flight=1")
    done = program("run", write(), "--set", "models.m.price={prompt = 1e6, completion = 0}", "--set",
                   "limits.cost_usd=35", "--set", "models.m.max_in_flight=1")
    assert "limits.cost_usd: 4 calls of earlier runs had no price and cannot count" in done.stderr
    assert (done.returncode, "($" in done.stderr) == (3, False), "what was spent in all is not known"


def test_a_second_interrupt_stops_at_once(write, tmp_path):
    process = start(tmp_path, "run", write(), "--set", "models.m.latency=30", *LEDGER)
    until(lambda: (tmp_path / "runs/study/log.jsonl").is_file())
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_model_that_stays_silent_fails_the_debate_and_the_next_run_retries_it(madplug, write, tmp_path):
    done = madplug("run", write(), "--set", "models.m.fault=fail", "--set", "models.m.attempts=1")
    assert done.returncode == 1
    assert "gave up after 1 attempt: 503 try again" in done.stderr
    summary = json.loads((tmp_path / "runs/study/summary.json").read_text())["cells"][0]
    assert (summary["failed"], summary["done"]) == (6, 0)
    assert not summary["metrics"], "a debate that failed is not wrong"
    assert madplug("run", write()).returncode == 0


@pytest.mark.parametrize("place", ["/proc/nowhere/study", "file/study"])
def test_a_directory_that_cannot_be_written_is_a_clear_message(program, write, tmp_path, place):
    (tmp_path / "file").write_text("")
    done = program("run", write(), "--output", place)
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_loses_nothing(madplug, write, tmp_path):
    command = f"ulimit -f 200; exec {sys.executable} -m madplug run {write()} --set dataset.size=400"
    full = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          check=False)
    assert full.returncode == 1, full.stderr
    assert "cannot write" in full.stderr
    assert "Traceback" not in full.stderr
    kept = counts(tmp_path / "runs/study")["calls"]
    assert kept > 0
    done = madplug("run", write(), "--set", "dataset.size=400", *LEDGER)
    assert done.returncode == 0, done.stderr
    assert paid(tmp_path) == 1600 - kept


def test_secrets_in_the_environment_never_reach_disk(madplug, write, tmp_path, madplug_plugin):
    madplug_plugin("leak", '''
import os
from madplug import Extension, Observer, hookimpl
class Leak(Extension):
    """Puts a key into an error."""
    name = "leak"
    @hookimpl
    def madplug_round_ended(self, debate):
        raise ValueError("refused " + os.environ["SERVICE_API_KEY"])
class Sieve(Observer):
    """Puts a key into a problem."""
    name = "sieve"
    def message_recorded(self, event):
        raise ValueError("logged " + os.environ["SERVICE_API_KEY"])
@hookimpl
def madplug_register_extensions():
    return [Leak]
@hookimpl
def madplug_register_observers():
    return [Sieve]
''')
    environment = {**os.environ, "SERVICE_API_KEY": "verysecretvalue123"}
    done = madplug("run", write(), "--set", 'extensions=["leak.leak"]', "--set",
                   'observers=["leak.sieve"]', env=environment)
    assert done.returncode == 1
    kept = b"".join(p.read_bytes() for p in (tmp_path / "runs/study").iterdir())
    assert b"verysecretvalue123" not in kept + done.stderr.encode() + done.stdout.encode()
    assert b"[secret]" in kept


@pytest.mark.parametrize(("wrong", "why"), [
    ("answers=./mine.py:Number", "no reference is an answer of the format: 'A'"),
    ("extensions=[\"./mine.py:Even\"]", "sample 'q0005' does not fit mine.py:Even: it is odd")])
def test_rows_that_do_not_fit_a_component_are_named_before_anything_is_paid(program, write, tmp_path, wrong, why):
    from tests_support import RUN

    (tmp_path / "mine.py").write_text("""
from madplug import AnswerFormat, Extension
class Even(Extension):
    name = "even"
    def misfit(self, sample, references):
        return None if int(sample.id[1:]) % 2 == 0 else "it is odd"
class Number(AnswerFormat):
    name = "number"
    def instruction(self, sample):
        return ""
    def canonical(self, text, sample):
        return text if text.isdecimal() else None
""")
    file = write(RUN)
    for done in (program("run", file, "--yes", "--set", wrong), program("check", file, "--set", wrong)):
        assert done.returncode == 2
        assert f"{why}\n" in done.stderr
        assert "sample 'q0005'" in done.stderr
    one = program("check", file, "--set", f'cells=[{{name="plain"}}, {{name="odd", {wrong}}}]').stderr
    assert ("of cell 'odd': " in one, "of cell 'plain'" in one) == (wrong.startswith("extensions"), False)
    many = program("check", file, "--set", wrong, "--set", "dataset.size=60")
    assert (many.stderr.count("does not fit"), "no row after 'q00" in many.stderr) == (20, True)
    assert program("run", file, "--quiet").returncode == 0  # the directory is no other study's


def test_a_matched_cell_waits_for_the_other_and_sees_its_cost(program, write, tmp_path, madplug_plugin):
    madplug_plugin("cost", '''
from madplug import Metric, hookimpl
class Cost(Metric):
    """The calls of the matched debate."""
    name = "matched"
    gives = frozenset({"budget"})
    def score(self, debate, references):
        return debate.matched.calls if debate.matched else None
@hookimpl
def madplug_register_metrics():
    return [Cost]
''')

    text = RUN.replace('[[metrics]]', '[[metrics]]\nuse = "cost.matched"\n[[metrics]]')
    done = program("run", write(text + '''
[[cells]]
name = "after"
debate.rounds = 1
match = {cell = "before", by = "calls"}
[[cells]]
name = "before"
debate.rounds = 3
'''))
    assert done.returncode == 0, done.stderr
    by_cell = {c["cell"]: c for c in json.loads((tmp_path / "runs/study/summary.json").read_text())["cells"]}
    assert by_cell["after"]["metrics"]["cost.matched"]["mean"] == 6.0
