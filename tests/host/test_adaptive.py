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


def happen(slots, event, times):
    """An event for each of so many requests, whose slots others take; how many are in use then."""
    for _ in range(times):
        event()
        slots.release()
        fill(slots)
    return slots.in_use


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


def test_it_doubles_with_every_generation_up_to_the_most():
    slots, adaptive = window(start=2, most=10)
    sizes = [fill(slots), *(happen(slots, adaptive.succeeded, slots.in_use) for _ in range(3))]
    assert sizes == [2, 4, 8, 10]


def test_it_does_not_grow_beyond_what_is_used():
    slots, adaptive = window(start=4)
    slots.take()
    for _ in range(10):
        adaptive.succeeded()
    assert fill(slots) == 4


def test_an_overload_halves_it_once_for_all_requests_in_flight_down_to_one():
    slots, adaptive = window(start=8)
    sizes = [fill(slots)]
    for _ in range(4):
        for _ in range(slots.in_use):
            adaptive.overloaded(None)
            slots.release()
        sizes.append(fill(slots))
    assert sizes == [8, 4, 2, 1, 1]


def test_after_an_overload_it_grows_by_one_with_each_generation():
    slots, adaptive = window(start=8)
    fill(slots)
    adaptive.overloaded(None)
    slots.release()
    for _ in range(7):  # answers to what was in flight before do not count
        adaptive.succeeded()
        slots.release()
    assert fill(slots) == 4
    assert happen(slots, adaptive.succeeded, 4) in (4, 5)
    assert happen(slots, adaptive.succeeded, 6) in (5, 6)


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


@pytest.mark.parametrize(("cap", "options"), [(8, "start_in_flight = 2\nmax_in_flight = 100"),
                                              (0, "start_in_flight = 1\nmax_in_flight = 16")])
def test_a_study_stays_close_to_what_the_endpoint_can_take(tmp_path, cap, options):
    """cap: how many requests at a time it answers; more get a 429. 0: any number."""
    for plugin in ("openai", "puzzles", "baselines"):
        pytest.importorskip(f"madplug_{plugin}")
    from madplug.config import load
    from madplug.store import MemoryStore
    from madplug.study.run import StudyRun
    from madplug_testing.endpoint import running_endpoint

    store = MemoryStore()
    with running_endpoint(cap=cap, latency_ms=100, retry_after="0.05") as endpoint:
        (tmp_path / "s.toml").write_text(f"""
            dataset = {{use = "puzzles.arithmetic", size = 40}}
            debate.paradigm = "baselines.io"
            [models.m]
            use = "openai.chat"
            model = "fake"
            base_url = "{endpoint.url}"
            attempts = 100
            {options}""")
        summary = asyncio.run(StudyRun(load(tmp_path / "s.toml").plan, store).run())
        stats = endpoint.stats()
    assert (summary["status"], summary["cells"][0]["done"]) == ("finished", 40)
    assert (stats["faults"].get("429", 0) > 0) is bool(cap)
    assert 1 < stats["max_in_flight"] <= (2 * cap + 1 if cap else 16), "twice the cap, where the last doubling finds it"
    assert 1 <= store.fact("in_flight.m") <= (2 * cap + 1 if cap else 16)


def test_the_option_is_not_part_of_the_study():
    assert is_volatile(ModelOptions, "start_in_flight")
