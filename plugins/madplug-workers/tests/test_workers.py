"""The protocol between the driver and workers elsewhere, here with both ends on one event loop."""

import asyncio
import json
import pickle
from dataclasses import dataclass, replace

import pytest
from tests_support import STUDY

from madplug import Executor, Sample, StudyError, TransientError
from madplug.calls.driver import StudyDriver
from madplug.config import load
from madplug.errors import AccessError, ComponentError
from madplug.records import Caller, Completion, DebateResult, Decision, Message, Persona, Usage, frozen
from madplug.rows import to_json
from madplug.store import Call, CallRow, DebateId, MemoryStore, Recorder, open_recorder
from madplug.study.run import StudyRun
from madplug_testing.clock import on_virtual_clock
from madplug_testing.contracts import ExecutorContract
from madplug_workers import Pool, WorkerEnd, wire
from madplug_workers.client import mismatches, versions_here
from madplug_workers.link import WorkerLink


class Beside:
    """A worker on the driver's own event loop."""

    def __init__(self, receive, lost):
        self.end_here, self.lost, self.receive = WorkerEnd(self.take), lost, receive
        self.alive = True

    def take(self, data):
        self._later(self.receive, data)

    def send(self, data):
        self._later(self.end_here.receive, data)

    def _later(self, receive, data):
        if self.alive:
            asyncio.get_running_loop().call_soon(lambda: self.alive and receive(data))

    async def end(self):
        await self.end_here.closed.wait()

    def kill(self):
        """As the end of a process does: nothing goes on, and nothing watches the loop any longer."""
        self.alive = False
        for task in self.end_here._tasks:
            task.cancel()
        self.end_here._around.close()


async def start_beside(number, receive, lost):
    return Beside(receive, lost)


class InPlace(Executor):
    """An executor with two workers here."""

    name = "in_place"

    def __init__(self, pool=Pool):
        super().__init__()
        self.pool = pool

    def check(self, cell):
        return ()

    async def run(self, jobs, driver):
        await self.pool(driver, 2, start_beside).run(jobs)


def test_debates_end_as_they_do_in_one_process(tmp_path, monkeypatch):
    contract = type("Under", (ExecutorContract,), {"component": InPlace, "make": lambda self: InPlace()})()
    contract.test_debates_end_as_they_do_without_it(tmp_path, monkeypatch)


# Messages

MESSAGE = Message(0, 1, 0, 2, "improve", "text", key="A", data=frozen({"plugin": {"a": (1, 2)}}))


@pytest.mark.parametrize("value", [
    MESSAGE, Caller("c", 0, "q", 1, "discuss", 0, 2, 1), DebateId("c", 0, "q"), {"a": [1.5, None, b"x", {1}]},
    CallRow(b"k", Caller("c", 0, "q"), "m", "{}"), Call(Completion("x", Usage(1, 2, raw={"a": 1}), (0.5,)), 1, 0.5),
    DebateResult("c", 0, Sample("q", "?", metadata={"a": [1]}), (), messages=(MESSAGE,), decision=Decision("A"))])
def test_records_arrive_as_they_were(value):
    [(found,)] = wire.unpack(wire.pack([(value,)]))
    assert found == value
    assert type(found) is type(value)


@dataclass
class Own:
    """A record of a plugin."""

    number: int


def test_what_a_plugin_puts_into_a_record_is_recorded_as_in_one_process():
    class Text(str):
        pass

    data = {"own": Own(3), "text": Text("a"), "set": {"b"}, "path": Persona("A"), "type": Own, "complex": 1j}
    [(found,)] = wire.unpack(wire.pack([(replace(MESSAGE, data=frozen(data)),)]))
    assert to_json(found) == to_json(replace(MESSAGE, data=frozen(data)))


def test_what_cannot_be_recorded_says_so_where_it_is_recorded():
    class Broken:
        def __str__(self):
            raise OSError("no text")

    [(found,)] = wire.unpack(wire.pack([({"x": Broken()},)]))
    with pytest.raises(Exception, match="no text") as caught:
        str(found["x"])
    assert type(caught.value).__name__ == "OSError"


@pytest.mark.parametrize("bad", [print, pickle.loads, Own(1), ValueError("x"), DebateId])
def test_nothing_but_records_is_read(bad):
    with pytest.raises(pickle.UnpicklingError, match="which is not a record"):
        wire.unpack(pickle.dumps([(bad, Own)]))


class OwnError(ComponentError):
    """An error of a plugin."""


@pytest.mark.parametrize(("error", "kind", "text"), [
    (TransientError("503", retry_after=2.0), TransientError, "503"), (AccessError("401"), AccessError, "401"),
    (StudyError("disk"), StudyError, "disk"), (OwnError("x"), ComponentError, "x"),
    (KeyError("x"), RuntimeError, "KeyError: 'x'")])
def test_errors_arrive_as_the_nearest_of_madplugs(error, kind, text):
    back = wire.to_error(wire.to_failure(error))
    assert (type(back), str(back), vars(back)) == (kind, text, vars(error))


# Workers

def run(folder, pool=Pool, text=STUDY):
    """Run a study on two workers; its debates, and the run."""
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text.replace("mine.py:", f"{folder}/mine.py:"))
    (folder / "mine.py").write_text(MINE)
    (folder / "manifest.json").write_text(json.dumps(
        {"components": {"x": {"distribution": "madplug-kit", "version": "0.1.0"}}, "runs": []}))
    recorder = open_recorder(folder)
    try:
        plan = replace(load(folder / "study.toml", environ={}).plan, executor=InPlace(pool))
        study = StudyRun(plan, recorder)
        asyncio.run(asyncio.wait_for(study.run(), 30))
        return [{**json.loads(to_json(result)), "seconds": None} for result in recorder.results()], study
    finally:
        recorder.close()


def test_versions_are_compared_by_name():
    here = versions_here(["madplug-kit"])
    assert mismatches(here) == []
    assert mismatches({**here, "madplug-kit": "9.9"}) == [
        "madplug-kit 0.1.0 is installed here, and the study runs with madplug-kit 9.9"]
    assert mismatches({**here, "madplug-none": "1.0"}) == [
        "madplug-none is not installed here, and the study runs with madplug-none 1.0"]


@pytest.mark.parametrize(("change", "said"), [
    (lambda facts: facts["versions"].update({"madplug-kit": "9.9"}),
     r"worker 1: madplug-kit 0\.1\.0 is installed here, and .* madplug-kit 9\.9"),
    (lambda facts: facts.update(study=facts["study"].replace("kit.hash", "kit.hush")),
     r"worker 1: models\.m: .*kit\.hush")])
def test_a_worker_with_other_versions_or_without_a_component_is_refused_by_name(tmp_path, change, said):
    class Other(Pool):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            change(self._facts)

    with pytest.raises(StudyError, match=said):
        run(tmp_path / "study", Other)


@pytest.mark.parametrize("what", ["keep_message", "start_debate", "keep_agents"])
def test_a_study_ends_when_nothing_can_be_recorded_any_more(what, tmp_path, monkeypatch):
    def refuse(*_):
        raise StudyError("cannot write: disk full")

    monkeypatch.setattr(Recorder, what, refuse)
    with pytest.raises(StudyError, match="cannot write: disk full"):
        run(tmp_path / "study")


def test_a_line_of_the_log_that_cannot_be_written_loses_no_worker(tmp_path):
    (tmp_path / "study" / "log.jsonl").mkdir(parents=True)

    class Logs(Pool):
        async def run(self, jobs):
            link = WorkerLink(1, self._driver, print)
            link.receive(wire.pack([("log", "a line"), ("problem", "read all the same")]))
            await super().run(jobs)

    _, study = run(tmp_path / "study", Logs)
    assert "read all the same" in study.problems


def test_workers_that_end_at_once_end_the_study(tmp_path):
    async def start_dead(number, receive, lost):
        asyncio.get_running_loop().call_soon(lost, "ended with status 1")
        return Beside(receive, lost)

    class Dead(Pool):
        def __init__(self, driver, workers, start):
            super().__init__(driver, workers, start_dead)

    with pytest.raises(StudyError, match="3 workers in a row ended before they could run a debate; the last one ended"):
        run(tmp_path / "study", Dead)


@pytest.mark.parametrize(("which", "instances"), [("Once", 1), ("Each", 3)])
def test_a_service_that_lives_once_is_asked_through_the_driver(which, instances, tmp_path):
    found, study = run(tmp_path / "study", text=SERVED.format(which=which))
    assert {debate["error"] for debate in found} == {None}
    assert [debate["notes"]["lengths"] for debate in found] == [[[11.0]]] * 6
    assert type(study.plan.cells[0].services["words"]).opened == instances


def test_a_service_that_lives_once_and_exits_fails_a_debate(tmp_path):
    found, _ = run(tmp_path / "study", text=SERVED.format(which="Exits"))
    assert len(found) == 6
    assert all("a component called sys.exit" in debate["error"] for debate in found)


def test_a_rate_holds_over_four_workers_and_loses_two_percent_at_most(tmp_path, monkeypatch):
    class OfFour(Pool):
        def __init__(self, driver, workers, start):
            super().__init__(driver, 4, start)

    (tmp_path / "mine.py").write_text(MINE)
    model = f'"{tmp_path}/mine.py:Strict"\nrequests_per_minute = 30000\nmax_in_flight = 400'
    (tmp_path / "study.toml").write_text(STUDY.replace('"kit.hash"', model).replace("size = 6", "size = 500"))
    plan = replace(load(tmp_path / "study.toml", environ={}).plan, executor=InPlace(OfFour))
    store = MemoryStore()
    # On a virtual clock no time may pass on a disk: the records are in memory, and the workers are given a directory.
    monkeypatch.setattr(StudyDriver, "folder", tmp_path)
    summary, _ = on_virtual_clock(StudyRun(plan, store).run())
    model = plan.models["m"]
    assert summary["cells"][0]["done"] == 500
    assert (store.totals().calls, model.refused) == (2000, 0)
    assert model.started[-1] - model.first <= 2000 / 500 * 1.02


SERVED = STUDY + '''
[services.words]
use = "mine.py:{which}"
[[extensions]]
use = "mine.py:Lengths"
embedder = "words"
'''
MINE = '''
import asyncio
from collections import deque
from typing import Annotated
from madplug import (Completion, Embedder, Extension, Model, Offers, Options, Service, ServiceName, TransientError,
                     Usage, hookimpl, maybe_await)
from pydantic import Field

class Once(Service):
    """Counts letters, in one place."""
    once = True
    opened = 0
    def open(self):
        type(self).opened += 1
        self.ready = True
    async def embed(self, texts):
        return [[float(len(text))] for text in texts if self.ready]

class Each(Once):
    """Counts letters, everywhere."""
    once = False

class Exits(Once):
    """Ends the program."""
    async def embed(self, texts):
        raise SystemExit(9)

class LengthsOptions(Options):
    embedder: Annotated[ServiceName, Offers(Embedder)] = Field(description="counts")

class Lengths(Extension):
    """Notes how long the question is."""
    Options = LengthsOptions
    @hookimpl(wrapper=True)
    def madplug_opening(self, debate):
        opening = yield
        async def noted():
            found = debate.service(self.options.embedder, Embedder)
            debate.notes["lengths"] = await found.embed([debate.sample.question])
            return await maybe_await(opening)
        return noted()

class Strict(Model):
    """Answers at most 500 requests in any second."""
    started = deque(maxlen=500)
    refused = first = 0
    async def complete(self, request):
        now = asyncio.get_running_loop().time()
        if len(self.started) == 500 and now - self.started[0] < 1:
            type(self).refused += 1
            raise TransientError("429", retry_after=1.0)
        type(self).first = self.first or now
        self.started.append(now)
        await asyncio.sleep(0.2)
        return Completion("A", Usage(1, 1))
'''
