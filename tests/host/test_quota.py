"""Rates, and an endpoint that cannot be reached: on a clock that jumps, so that minutes cost nothing."""

import asyncio
import time
from itertools import pairwise

import pytest

from madplug import (
    Completion,
    Model,
    ModelOptions,
    OverloadedError,
    Sample,
    StudyStopped,
    TransientError,
    UnreachableError,
    Usage,
)
from madplug.calls.driver import StudyDriver
from madplug.calls.quota import Pace, limiter
from madplug.records import Caller, Ending
from madplug.store import MemoryStore
from madplug_testing import play
from madplug_testing.clock import on_virtual_clock


class Quiet(Model):
    """Never asked itself."""

    name = "quiet"
    Options = ModelOptions

    async def complete(self, request):
        return Completion("A")


def starts(count, **options):
    """When each of so many calls is admitted, in virtual seconds."""
    async def main():
        driver = StudyDriver({"m": Quiet(max_in_flight=count, **options)}, MemoryStore(), print)
        times = []

        async def call(i):
            await driver.admit("m", Caller("c", 0, str(i)), 10, 900.0)
            times.append(asyncio.get_running_loop().time())
            driver.quotas["m"].succeeded(Usage(100, 0))
            driver.quotas["m"].slots.release()

        await asyncio.gather(*(call(i) for i in range(count)))
        return times

    return on_virtual_clock(main())[0]


@pytest.mark.parametrize("rate", [0.5, 1, 1.5, 7, 60, 99.5, 600])
def test_no_window_of_a_minute_has_more_calls_than_promised(rate):
    times = starts(min(int(rate * 3) + 4, 400), requests_per_minute=rate)
    most = max(sum(t <= other < t + 60 for other in times) for t in times)
    assert most <= max(rate, 1)


@pytest.mark.parametrize("rate", [6000, 30_000, 31_007])
def test_no_second_has_more_calls_than_its_share_of_a_high_rate_and_two_percent_at_most_are_given_away(rate):
    times = starts(rate // 15, requests_per_minute=rate)
    most = max(sum(t <= other < t + 0.999_999 for other in times[i:i + 2000]) for i, t in enumerate(times))
    assert most <= rate / 60
    assert times[-1] - times[0] <= 4 * 1.02


def test_what_a_busy_machine_misses_of_a_high_rate_is_made_up_for():
    async def main():
        pace, admitted = Pace(12_000), []

        async def call():
            for _ in range(10):
                await pace.acquire()
                admitted.append(time.monotonic())

        async def hog():
            while len(admitted) < 100:
                time.sleep(0.04)  # noqa: ASYNC251 - other work, in which no call can be started
                await asyncio.sleep(0.001)

        await asyncio.gather(hog(), *(call() for _ in range(20)))
        return admitted

    admitted = asyncio.run(main())
    assert max(sum(t <= other < t + 1 for other in admitted) for t in admitted) <= 200
    stalls = sum(later - sooner > 0.5 for sooner, later in pairwise(admitted))
    assert stalls or admitted[-1] - admitted[0] <= 200 / 198 + 0.1


@pytest.mark.parametrize("rate", [60, 600])
def test_little_of_a_rate_is_given_away(rate):
    times = starts(rate * 2, requests_per_minute=rate)
    assert times[-1] - times[0] <= 120 * 1.05


def test_tokens_that_were_used_are_made_up_for():
    """Each call uses 100 tokens of 6,000 a minute: the estimate of the first one does not matter in the long run."""
    times = starts(180, tokens_per_minute=6000)
    assert max(sum(t <= other < t + 60 for other in times) * 100 for t in times) <= 6000 + 1000


def admitted_after(event, **options):
    """The virtual seconds that a second call waits after what has happened to the first."""
    async def main():
        driver = StudyDriver({"m": Quiet(**options)}, MemoryStore(), print)
        await driver.admit("m", Caller("c", 0, "q0"), 10, 900.0)
        before = asyncio.get_running_loop().time()
        event(driver.quotas["m"])
        driver.quotas["m"].slots.release()
        await driver.admit("m", Caller("c", 0, "q1"), 10, 900.0)
        return asyncio.get_running_loop().time() - before

    return on_virtual_clock(main())[0]


def test_an_endpoint_that_claims_an_absurd_usage_does_not_stop_the_study():
    wait = admitted_after(lambda quota: quota.succeeded(Usage(10**9, 0)), tokens_per_minute=6000)
    assert wait <= 180


def test_an_endpoint_that_asks_to_wait_for_years_does_not_stop_the_study():
    def refuse(quota):
        quota.failed(OverloadedError("429", retry_after=1e12), Caller("c", 0, "q0"))

    assert admitted_after(refuse, start_in_flight=4) == 0


def test_a_limiter_takes_rates_of_any_size():
    for rate in (0.01, 0.5, 1, 1.2, 3.7, 1e6):
        assert limiter(rate).max_rate >= 1
    assert limiter(None) is None


class Flaky(Model):
    """Cannot be reached until enough attempts were made."""

    name = "flaky"
    Options = ModelOptions

    def __init__(self, down_for, **options):
        super().__init__(**options)
        self.down_for, self.attempts, self.answered = down_for, 0, 0

    async def complete(self, request):
        self.attempts += 1
        if self.attempts <= self.down_for:
            raise UnreachableError("connection refused")
        self.answered += 1
        return Completion("A", Usage(1, 1))


def study(model, samples, monkeypatch):
    monkeypatch.setattr("madplug.calls.quota.FIRST_PROBE", 0.001)
    monkeypatch.setattr("madplug.calls.quota.LAST_PROBE", 0.002)
    rows = [Sample(f"q{i}", f"question {i}") for i in range(samples)]
    return play(model=model, sample=rows, agents=1, expect_failure=True)


def test_an_endpoint_that_comes_back_has_failed_no_debate(monkeypatch):
    """Forty calls find the endpoint down at once; after that one of them tries it and the others wait."""
    model = Flaky(down_for=40 + 60, max_in_flight=40, attempts=1)
    played = study(model, 100, monkeypatch)
    cell = played.summary["cells"][0]
    assert (cell["done"], cell["failed"], model.answered) == (100, 0, 100)
    assert model.attempts == 200


def test_an_endpoint_that_never_comes_back_fails_its_debates_after_the_deadline(monkeypatch):
    played = study(Flaky(down_for=10**9, max_in_flight=4, deadline=0.2), 8, monkeypatch)
    assert played.summary["cells"][0]["failed"] == 8
    assert "model 'model': gave up after 0.2 s (deadline): connection refused" in played.result.error


def down_driver(**options):
    """A driver whose endpoint was found to be down."""
    driver = StudyDriver({"m": Quiet(**options)}, MemoryStore(), print)
    driver.quotas["m"].down = True
    return driver


def test_a_stop_ends_all_waiting_for_an_endpoint_at_once_even_while_one_caller_is_trying_it():
    """Those who wait must neither wait for the attempt under way, which may hang, nor keep the processor busy."""
    async def main():
        driver = down_driver()
        await driver.admit("m", Caller("c", 0, "first"), 1, 900.0)  # tries it, and gets no reply
        waiting = [asyncio.ensure_future(driver.admit("m", Caller("c", 0, str(i)), 1, 900.0)) for i in range(5)]
        await asyncio.sleep(1)
        driver.stop(Ending("interrupted", "interrupted"))
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)

    assert [type(e) for e in on_virtual_clock(main())[0]] == [StudyStopped] * 5


def test_a_reply_that_cannot_be_recorded_still_shows_that_the_endpoint_is_up():
    """Otherwise nobody would try the endpoint again, and every caller would wait for its deadline."""
    from madplug import ComponentError
    from madplug.store import Call, CallRow

    class Picky(MemoryStore):
        """Refuses the first call."""

        async def keep_call(self, row, call):
            raise ComponentError("cannot be recorded")

    async def main():
        driver = down_driver()
        driver.recorder = Picky()
        caller = Caller("c", 0, "first")
        await driver.admit("m", caller, 1, 900.0)
        with pytest.raises(ComponentError):
            await driver.keep("m", CallRow(b"k", caller, "m", "{}"), Call(Completion("A")))
        await asyncio.wait_for(driver.admit("m", Caller("c", 0, "second"), 1, 900.0), 60)

    on_virtual_clock(main())


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_component_that_stops_waiting_while_its_answer_is_being_stored_has_nothing_paid_twice(store, tmp_path):
    """The answer counts, and those who wait for the same one get it."""
    from madplug.store import Call, CallRow, open_recorder

    class Slow(MemoryStore):
        """Takes a moment."""

        async def keep_call(self, row, call):
            await asyncio.sleep(0.2)
            await super().keep_call(row, call)

    async def main(recorder):
        driver = StudyDriver({"m": Quiet()}, recorder, print)
        caller, call = Caller("c", 0, "first"), Call(Completion("A", Usage(1, 1)))

        async def ask():
            found = await driver.claim(b"key")
            if found[0] is not None:
                return found[:2]
            try:
                await driver.admit("m", caller, 1, 900.0)
                await driver.keep("m", CallRow(b"key", caller, "m", "{}"), call)
            except BaseException as error:
                driver.give_up(b"key", error)
                raise
            return call, "paid"

        first, second = asyncio.ensure_future(ask()), asyncio.ensure_future(ask())
        for _ in range(4):
            await asyncio.sleep(0)
        first.cancel()
        assert await second == (call, "shared")
        assert (driver.paid, driver.in_flight, driver.totals.tokens) == (1, 0, 2)
        assert await ask() == (call, "stored")

    recorder = Slow() if store == "memory" else open_recorder(tmp_path)
    asyncio.run(main(recorder))
    recorder.close()


def test_the_deadline_of_a_request_begins_with_its_first_attempt():
    """Waiting for a slot is nobody's fault: a request that had to queue for long is retried like any other."""
    class Hiccup(Model):
        """Fails every first attempt, after a while."""

        name = "hiccup"
        Options = ModelOptions
        tried: set[str] = set()

        async def complete(self, request):
            await asyncio.sleep(0.1)
            asked = repr((request.messages, request.agent))
            if asked not in self.tried:
                self.tried.add(asked)
                raise TransientError("503", retry_after=0.0)
            return Completion("A", Usage(1, 1))

    rows = [Sample(f"q{i}", f"question {i}") for i in range(20)]
    played = play(model=Hiccup(max_in_flight=1, deadline=2.0), sample=rows, agents=1, expect_failure=True)
    assert played.summary["cells"][0]["done"] == 20


def test_an_attempt_that_fails_after_the_deadline_is_followed_by_another():
    """The deadline is about the pause between attempts: one of a batch fails after hours in a queue."""
    class Late(Model):
        """Fails its first attempt, after longer than the deadline."""

        name = "late"
        Options = ModelOptions
        tried = 0

        async def complete(self, request):
            self.tried += 1
            await asyncio.sleep(1.2)
            if self.tried == 1:
                raise TransientError("500")
            return Completion("A", Usage(1, 1))

    assert play(model=Late(deadline=1.0), agents=1).summary["cells"][0]["done"] == 1


def test_a_rate_beyond_any_endpoint_is_no_error():
    async def admitted():
        await asyncio.wait_for(Pace(1e300).acquire(), 30)

    asyncio.run(admitted())
