"""Observers are told what happens, in order, as records that can be pickled; they change nothing and hold up nobody."""

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import nullcontext

import pytest
from tests_support import made

from madplug import ModelError, Observer, Persona, PersonaGenerator, Sample, StudyError
from madplug.config.plan import StudyPlan
from madplug.events import (
    METHODS,
    AgentsCast,
    CallAnswered,
    DebateFinished,
    DebateStarted,
    MessageRecorded,
    StudyFinished,
    StudyStarted,
)
from madplug.records import Ending
from madplug.store import MemoryStore
from madplug.study.observers import CAPACITY, Observers
from madplug.study.run import StudyRun
from madplug_testing import play
from madplug_testing.debates import Scripted


class Notebook(Observer):
    """Writes everything down."""

    name = "notebook"

    def __init__(self):
        super().__init__()
        self.events, self.threads, self.opened, self.closed = [], set(), None, False

    def open(self, run):
        self.opened = run

    def close(self):
        self.closed = True

    def write(self, event):
        self.events.append(event)
        self.threads.add(threading.current_thread())

    study_started = debate_started = agents_cast = call_answered = message_recorded = decided = write
    debate_finished = study_finished = write


def test_every_event_arrives_beside_the_loop_and_can_be_pickled():
    book = Notebook()
    played = play(replies=lambda r: "A", agents=2, rounds=2, observers=[book])
    assert {type(e) for e in book.events} == set(METHODS)
    assert pickle.loads(pickle.dumps(book.events)) == book.events
    assert tuple(e.message for e in book.events if isinstance(e, MessageRecorded)) == played.result.messages
    assert (type(book.events[0]), type(book.events[-1])) == (StudyStarted, StudyFinished)
    assert (book.opened.study, book.opened.folder, book.closed) == ("play", None, True)
    assert threading.main_thread() not in book.threads


class Caster(PersonaGenerator):
    """Asks a model who takes part."""

    name = "caster"

    async def generate(self, debate, roster):
        return Persona((await debate.ask("who?", purpose="persona")).text)

    def calls(self, plan):
        return 1


def failing(request):
    if "q2" in str(request.messages):
        raise ModelError("no answer")
    return "A"


def test_every_debate_that_starts_finishes_once_and_in_order():
    book = Notebook()
    samples = [Sample(f"q{i}", f"question q{i}") for i in range(4)]
    play(replies=failing, sample=samples, personas=[Caster()], agents=2, observers=[book], expect_failure=True)
    by_debate = defaultdict(list)
    for event in book.events:
        if hasattr(event, "debate"):
            by_debate[event.debate.sample].append(event)
    assert sorted(by_debate) == ["q0", "q1", "q2", "q3"]
    for sample, events in by_debate.items():
        kinds = [type(e) for e in events]
        assert (kinds[0], kinds[-1], kinds.count(DebateStarted), kinds.count(DebateFinished)) == (
            DebateStarted, DebateFinished, 1, 1)
        assert events[-1].outcome == ("failed" if sample == "q2" else "done")
        assert kinds.index(CallAnswered) < kinds.index(AgentsCast), "calls made while casting are events, too"


def test_an_exception_is_a_problem_of_the_study_and_the_debate_goes_on():
    class Cry(Observer):
        """Fails."""

        name = "cry"

        def message_recorded(self, event):
            raise RuntimeError("no pencil")

        async def decided(self, event):
            raise RuntimeError("no paper")

    played = play(replies=lambda r: "A", observers=[Cry()])
    assert played.result.error is None
    assert len(played.problems) == 2
    assert "message_recorded: RuntimeError: no pencil" in played.problems[0]


def test_a_slow_observer_holds_up_no_debate_and_says_what_it_missed():
    class Slow(Observer):
        """Sleeps."""

        name = "slow"
        seen = 0

        def message_recorded(self, event):
            time.sleep(0.2)
            Slow.seen += 1

        def debate_finished(self, event):
            Slow.finished = True

    async def main():
        problems = []
        observers = Observers([Slow()], problems.append)
        await observers.open(None)
        message = MessageRecorded(None, None, None)
        for _ in range(CAPACITY + 7):
            observers.emit(message)
        observers.emit(DebateFinished(None, "done"))
        follower = observers._followers[0]
        assert len(follower._queue) == CAPACITY + 1, "the end of a debate is never left out"
        follower._queue.clear()
        await observers.close()
        return problems

    assert asyncio.run(main()) == ["observer slow: fell behind; 7 calls and messages were not delivered"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot tell whether a task is cancelled")
@pytest.mark.parametrize("error", [OSError("no disk"), asyncio.CancelledError(), BaseException()])
@pytest.mark.parametrize("kind", ["open", "close"])
def test_open_and_close_may_raise_whatever_they_like_and_it_is_a_problem(kind, error):
    async def fail(self, *arguments):
        raise error

    played = play(replies=lambda r: "A", observers=[made(Observer, **{kind: fail})])
    assert any(f"observer made: {kind}: {type(error).__name__}" in p for p in played.problems)


def outcomes(book):
    """How often each debate started, and how it ended."""
    started = [e.debate.sample for e in book.events if isinstance(e, DebateStarted)]
    ended = [e.debate.sample for e in book.events if isinstance(e, DebateFinished)]
    assert len(set(started)) == len(started) > 0
    assert sorted(started) == sorted(ended)
    return [e.outcome for e in book.events if isinstance(e, DebateFinished)]


def test_a_study_that_breaks_off_finishes_its_debates_and_closes_its_observers():
    class Full(MemoryStore):
        """Has room for three debates."""

        async def finish_debate(self, result):
            if len(list(self.results())) == 3:
                raise StudyError("no space left")
            await super().finish_debate(result)

    book = Notebook()
    with pytest.raises(StudyError, match="no space left"):
        play(replies=lambda r: "A", sample=[Sample(f"q{i}", "?") for i in range(9)], observers=[book], store=Full())
    found = outcomes(book)
    assert (found[:3], set(found[3:]), book.closed) == (["done"] * 3, {"stopped"}, True)


@pytest.mark.parametrize("cancelled", [False, True], ids=["stopped", "cancelled"])
def test_a_study_that_is_stopped_or_cancelled_finishes_its_debates_and_closes_its_observers(cancelled):
    cell, book = play(replies=lambda r: "A", rounds=3).debate.cell, Notebook()

    class Stopping(Scripted):
        """Answers, but the study is being stopped; or never does."""

        async def complete(self, request):
            await asyncio.sleep(1000 if cancelled else 0)
            run.driver.stop(Ending("interrupted", "enough"))
            return await super().complete(request)

    async def main():
        nonlocal run
        run = StudyRun(StudyPlan("s", [cell], {"model": Stopping(lambda r: "A")}), MemoryStore(), [book])
        await asyncio.wait_for(run.run(), 0.3 if cancelled else 20)

    run = None
    with pytest.raises((asyncio.TimeoutError, TimeoutError)) if cancelled else nullcontext():
        asyncio.run(main())
    assert (outcomes(book), book.closed) == (["stopped"], True)


class Panic(BaseException):
    """What libraries in Rust raise."""


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, Panic])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_whatever_an_observer_raises_the_next_events_arrive(error, asynchronous):
    if asynchronous and error is asyncio.CancelledError and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 cannot tell whether a task is cancelled")

    class Odd(Notebook):
        """Raises what is no `Exception`."""

        def fail(self, event):
            raise error

        async def fail_later(self, event):
            raise error

        decided = fail_later if asynchronous else fail

    book = Odd()
    played = play(replies=lambda r: "A", observers=[book])
    assert [f"notebook: decided: {error.__name__}" in p for p in played.problems] == [True]
    assert [type(e) for e in book.events[-2:]] == [DebateFinished, StudyFinished]


HANGS = """
import time
import madplug.study.observers
from madplug import Observer
from madplug_testing import play

class Stuck(Observer):
    "Never returns."
    name = "stuck"
    def {method}(self, *arguments):
        time.sleep(1000)

madplug.study.observers.PATIENCE = 0.3
print(play(replies=lambda r: "A", observers=[Stuck()]).problems)
"""


def test_an_observer_that_never_returns_does_not_keep_the_program_from_ending():
    done = subprocess.run([sys.executable, "-c", HANGS.format(method="decided")], timeout=30, text=True, check=False,
                          capture_output=True)
    assert "still busy 0.3 s after the end of the study" in done.stdout, done.stderr
