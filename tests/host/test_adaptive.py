"""A model's requests at a time are found out while it runs: doubled, halved at a 429, and never above the option."""

import asyncio

import pytest

from madplug import ModelOptions
from madplug.calls.slots import AdaptiveWindow, Slots
from madplug.options import is_volatile


def window(start=2, most=64, clock=lambda: 0.0):
    slots = Slots(most)
    return slots, AdaptiveWindow(slots, start, clock)


def fill(slots):
    """Take every free slot; how many are in use."""
    while slots.take():
        pass
    return slots.in_use


def answer(slots, window, times):
    """Requests are answered, and others take their slots."""
    for _ in range(times):
        window.succeeded()
        slots.release()
        fill(slots)


# Slots that can be withdrawn

@pytest.mark.parametrize(("taken", "sizes", "released", "left"), [
    (8, [3], 0, (8, 0)), (8, [3], 5, (3, 0)), (8, [3], 6, (2, 1)),  # those in use are not taken away
    (1, [3], 0, (1, 2)), (1, [3, 8], 0, (1, 7)),  # free ones go first, and come back
    (8, [2, 5], 3, (5, 0))])  # it grows while some are still to be given up
def test_slots_are_withdrawn_and_come_back(taken, sizes, released, left):
    slots = Slots(8)
    assert all(slots.take() for _ in range(taken))
    for size in sizes:
        slots.resize(size)
    for _ in range(released):
        slots.release()
    assert (slots.in_use, slots.free) == left
    assert slots.take() == bool(left[1])


def test_a_new_slot_goes_to_the_next_in_line():
    async def main():
        slots = Slots(4)
        slots.resize(1)
        assert slots.take()
        waiting = asyncio.ensure_future(slots.acquire(0, 0))
        await asyncio.sleep(0)
        assert not waiting.done()
        slots.resize(2)
        await waiting
        assert (slots.in_use, slots.free) == (2, 0)

    asyncio.run(main())


# The window

def test_it_doubles_with_every_generation_up_to_the_most():
    slots, adaptive = window(start=2, most=10)
    sizes = [fill(slots)]
    for _ in range(3):
        answer(slots, adaptive, slots.in_use)
        sizes.append(slots.in_use)
    assert sizes == [2, 4, 8, 10]


def test_it_does_not_grow_beyond_what_is_used():
    slots, adaptive = window(start=4)
    slots.take()
    for _ in range(10):
        adaptive.succeeded()
    fill(slots)
    assert slots.in_use == 4


def test_an_overload_halves_it_once_for_all_requests_in_flight():
    slots, adaptive = window(start=8)
    fill(slots)
    for _ in range(8):
        adaptive.overloaded(None)
        slots.release()
    assert fill(slots) == 4
    adaptive.overloaded(None)
    slots.release()
    assert [c.in_flight for c in adaptive.history] == [8, 4, 2]


def test_after_an_overload_it_grows_by_one_with_each_generation():
    slots, adaptive = window(start=8)
    fill(slots)
    adaptive.overloaded(None)
    slots.release()
    for _ in range(7):  # answers to what was in flight before do not count
        adaptive.succeeded()
        slots.release()
    assert fill(slots) == 4
    answer(slots, adaptive, 4)
    assert slots.in_use in (4, 5)
    answer(slots, adaptive, 6)
    assert slots.in_use in (5, 6)


def test_there_is_always_one():
    slots, adaptive = window(start=1)
    for _ in range(5):
        fill(slots)
        adaptive.overloaded(None)
        slots.release()
    assert fill(slots) == 1


def test_it_waits_as_long_as_the_endpoint_asks():
    now = [100.0]
    _, adaptive = window(clock=lambda: now[0])
    slept = []

    async def interruptible(waiting):
        waiting.close()
        slept.append(adaptive._not_before - now[0])
        now[0] += 2

    adaptive.overloaded(5.0)
    adaptive.overloaded(1.0)
    asyncio.run(adaptive.wait(interruptible))
    assert slept == [5, 3, 1]


def test_the_history_has_the_turning_points():
    slots, adaptive = window(start=2)
    fill(slots)
    answer(slots, adaptive, 14)
    adaptive.overloaded(None)
    assert [(c.in_flight, c.reason) for c in adaptive.history] == [(2, "start"), (16, "growth"), (8, "overload")]


# In a study

STUDY = """
[dataset]
use = "puzzles.arithmetic"
size = 40
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
attempts = 100
{more}
[debate]
paradigm = "baselines.io"
"""


@pytest.fixture
def run(tmp_path):
    """Runs a study against an endpoint that answers 429 above so many requests at a time."""
    for plugin in ("openai", "puzzles", "baselines"):
        pytest.importorskip(f"madplug_{plugin}")
    from madplug.config import load
    from madplug.store import MemoryStore
    from madplug.study.run import StudyRun
    from madplug_testing.endpoint import running_endpoint

    def run(cap, more=""):
        with running_endpoint(cap=cap, latency_ms=20, retry_after="0.05") as endpoint:
            (tmp_path / "s.toml").write_text(STUDY.format(url=endpoint.url, more=more))
            store = MemoryStore()
            summary = asyncio.run(StudyRun(load(tmp_path / "s.toml").plan, store).run())
            assert (summary["status"], summary["cells"][0]["done"]) == ("finished", 40)
            return endpoint.stats(), store

    return run


def test_a_study_stays_close_to_what_the_endpoint_can_take(run):
    adaptive, store = run(8, "start_in_flight = 2\nmax_in_flight = 100")
    assert adaptive["max_in_flight"] <= 17, "twice the cap, where the last doubling finds it"
    assert adaptive["faults"]["429"] > 0
    history = store.fact("in_flight.m")
    assert history[0]["in_flight"] == 2
    assert {"growth", "overload"} <= {change["reason"] for change in history}


def test_without_an_overload_it_grows_as_far_as_there_is_work(run):
    stats, store = run(0, "start_in_flight = 1\nmax_in_flight = 16")
    assert 1 < stats["max_in_flight"] <= 16
    assert [c["reason"] for c in store.fact("in_flight.m")] == ["start", "growth"]


def test_the_option_is_not_part_of_the_study(tmp_path):
    assert is_volatile(ModelOptions, "start_in_flight")
