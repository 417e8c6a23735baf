"""What the tests of every plugin share."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from madplug_testing.endpoint import running_endpoint

# No property is judged by the clock.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # under nohup: programs that tests start would ignore it, too
KIT = Path(__file__).parents[1] / "tests" / "kit"

sys.path.insert(0, str(KIT))  # the plugin `kit`, and what the host's tests share, for plugins that test with them


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    """No test writes into the user's home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture
def in_proportion():
    """Checks that a text is read in time in proportion to its length: `in_proportion(read, text)`.

    A sixteenth of the text takes a sixteenth of the time; where reading is quadratic, a 256th.
    """
    def check(read, text):
        if (long := _seconds(read, text)) > 0.1:
            long = min(long, _seconds(read, text))  # the first run may have been delayed
            assert long < 64 * _seconds(read, text[:len(text) // 16]), f"{text[:20]!r}...: {long:.2f} s"
    return check


def _seconds(read, text):
    gc.disable()  # what it goes through grows with the whole program
    started = time.thread_time()
    read(text)
    used = time.thread_time() - started
    gc.enable()
    return used


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Runs the program in this process: `program("run", "study.toml", status=0)`, with the plugin and a run file of the
    host's tests. Both are there for child processes, too.
    """
    from click.testing import CliRunner

    from madplug import main

    kit = str(Path(__file__).parents[1] / "tests" / "kit")
    monkeypatch.syspath_prepend(kit)
    monkeypatch.setenv("PYTHONPATH", kit)
    monkeypatch.chdir(tmp_path)
    from tests_support import RUN

    Path("study.toml").write_text(RUN)

    def program(*words, status=None):
        done = CliRunner().invoke(main, [str(word) for word in words], prog_name="madplug")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert status in (None, done.exit_code), done.stderr
        return done

    return program


@pytest.fixture(scope="session")
def registry():
    """What is installed, looked through once."""
    from madplug.study import Registry

    return Registry()


TRACKED = """
name = "small"
[dataset]
use = "puzzles.ordering"
size = {size}
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
[debate]
paradigm = "som.debate"
agents = 2
rounds = 2
[[metrics]]
use = "qa.accuracy"
[[observers]]
{observer}
every = 0
[[cells]]
name = "two"
[[cells]]
name = "one"
debate.rounds = 1
"""


@pytest.fixture(scope="session")
def run_tracked():
    """Runs a study that a tracker observes, as users do: `run_tracked(folder, observer, size, environ, *runs)`.

    observer: the lines of `[[observers]]`. size: questions; a debate of the cell `two` makes 4 calls, of `one` 2. runs:
    pairs of the most calls and the exit status, one for each run; by default one that finishes. Gives what was printed.
    """
    def run(folder, observer, size, environ, *runs):
        for plugin in ("openai", "puzzles", "som", "qa", "report"):
            pytest.importorskip(f"madplug_{plugin}")
        printed = ""
        with running_endpoint() as endpoint:
            (folder / "small.toml").write_text(TRACKED.format(size=size, url=endpoint.url, observer=observer))
            for limit, status in runs or ((1000, 0),):
                command = [sys.executable, "-m", "madplug", "run", "small.toml", "--set", f"limits.calls={limit}"]
                for _ in range(5):  # on a busy machine the report may come too late; the next run attaches it
                    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=300,
                                          check=False, env={**os.environ, **environ})
                    if "the report took longer" not in done.stderr:
                        break
                printed += done.stdout + done.stderr
                assert done.returncode == status, printed
        return printed
    return run


@pytest.fixture
def run_debate(tmp_path, registry):
    """Loads a run file with this `[debate]` and one question, and runs its debate with these replies.

    Gives the result, the requests that were sent, and the plan. Skips where a plugin that the file names is missing.
    """
    for plugin in ("answers", "files", "openai"):
        pytest.importorskip(f"madplug_{plugin}")
    from madplug.store import MemoryStore
    from madplug.study import StudyRun, load
    from madplug_testing import Scripted

    def run(debate, replies, models=("m",), more="", answers="choice", **row):
        question = {"id": "q1", "question": "Which?", "choices": ["one", "two"], "reference": "B"} | row
        (tmp_path / "q.jsonl").write_text(json.dumps({k: v for k, v in question.items() if v is not None}) + "\n")
        named = "".join(f'[models.{m}]\nuse = "openai.chat"\nmodel = "{m}"\nbase_url = "http://127.0.0.1:9/v1"\n'
                        for m in models)
        (tmp_path / "run.toml").write_text(f"""{named}
[dataset]
use = "files.table"
path = "q.jsonl"
answers = "{answers}"
{more}
[debate]
models = {json.dumps(list(models))}
{debate}""")
        plan = load(tmp_path / "run.toml", registry=registry).plan
        scripted, store = Scripted(replies), MemoryStore()
        asyncio.run(StudyRun(replace(plan, models=dict.fromkeys(plan.models, scripted)), store).run())
        result = list(store.results())[-1]
        assert result.error is None, result.error
        return result, scripted.requests, plan

    return run


@pytest.fixture(params=["choice", "number", "free"])
def kind_of_answer(request):
    """An answer format as a run file names it, a question for it, and an answer to that."""
    row = {"id": "q1", "question": "Which?"}
    return {"choice": ('"choice"', row | {"choices": ["one", "two"], "reference": "B"}, "B"),
            "number": ('"number"', row | {"reference": "2"}, "2"),
            "free": ('"free"', row | {"reference": "So."}, "So")}[request.param]


@pytest.fixture
def run_on_endpoint(tmp_path, registry):
    """Runs a study's run file against an endpoint that records what it is asked: `run(toml, rows, replies)`.

    rows: the questions, as rows of `files.table`. replies: the reply to a request's body. Gives the results, in the
    order of cells, and the bodies of all requests, in the order of arrival. A run file that names no data set has
    these rows, this answer format, and models of these names at the endpoint, whose address is `{url}` in it.
    """
    for plugin in ("answers", "files", "openai"):
        pytest.importorskip(f"madplug_{plugin}")
    from madplug.store import MemoryStore
    from madplug.study import StudyRun, load
    from madplug_testing.endpoint import running_endpoint

    def run(toml, rows, replies, models="m", answers='"choice"'):
        wrong = []
        if "dataset = {" not in toml:
            toml = f'dataset = {{use = "files.table", path = "q.jsonl", answers = {answers}}}\n' + "".join(
                f'models.{m} = {{use = "openai.chat", model = "{m}", base_url = "{{url}}"}}\n' for m in models) + toml

        def reply(body):
            try:
                return replies(body)
            except Exception as error:  # as an answer of the server, it would be tried again for 15 minutes
                wrong.append(error)
                return {"error": {"message": repr(error), "code": "insufficient_quota"}}

        (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with running_endpoint(reply, keep=10_000) as endpoint:
            (tmp_path / "run.toml").write_text(toml.replace("{url}", endpoint.url))
            plan, store = load(tmp_path / "run.toml", registry=registry).plan, MemoryStore()
            summary = asyncio.run(StudyRun(plan, store).run())
            if wrong:
                raise wrong[0]
            results = list(store.results())
            assert results, summary["reason"]
            assert not any(r.error for r in results), [r.error for r in results]
            return results, [body for _, body in endpoint.endpoint.seen]

    return run
