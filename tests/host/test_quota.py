"""Rates, and an endpoint that cannot be reached: on a clock that jumps, so that minutes cost nothing."""

import asyncio
from types import SimpleNamespace

import pytest

from madplug import (
    Completion,
    ComponentError,
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
from madplug.calls.quota import Quota, limiter
from madplug.records import Caller, Ending
from madplug.store import Call, CallRow, MemoryStore, open_recorder
from madplug_testing import play
from madplug_testing.clock import on_virtual_clock


class Faulty(Model):
    """Answers, after what `trouble` does with the number of the attempt, from 1, and the request."""

    name = "faulty"
    Options = ModelOptions

    def __init__(self, trouble=None, **options):
        super().__init__(**options)
        self.trouble, self.attempts = trouble, 0

    async def complete(self, request):
        self.attempts += 1
        if self.trouble is not None:
            await self.trouble(self.attempts, request)
        return Completion("A", Usage(1, 1))


def driver_of(store=None, **options):
    return StudyDriver({"m": Faulty(**options)}, store or MemoryStore(), print)


def caller(sample):
    return Caller("c", 0, str(sample))


async def uninterrupted(waiting):
    await waiting


# Rates

def starts(count, **options):
    """When each of so many calls is admitted, in virtual seconds."""
    async def main():
        driver = driver_of(max_in_flight=count, **options)
        times = []

        async def call(i):
            await driver.admit("m", caller(i), 10, 900.0)
            times.append(asyncio.get_running_loop().time())
            driver.quotas["m"].succeeded(Usage(100, 0))
            driver.quotas["m"].slots.release()

        await asyncio.gather(*(call(i) for i in range(count)))
        return times

    return on_virtual_clock(main())[0]


def most_within(seconds, times):
    return max(sum(t <= other < t + seconds for other in times[i:i + 2000]) for i, t in enumerate(times))


@pytest.mark.parametrize("rate", [0.5, 1, 1.5, 7, 60, 99.5, 600])
def test_no_window_of_a_minute_has_more_calls_than_promised(rate):
    assert most_within(60, starts(min(int(rate * 3) + 4, 400), requests_per_minute=rate)) <= max(rate, 1)


@pytest.mark.parametrize("rate", [60, 600, 6000, 31_007])
def test_little_of_a_rate_is_given_away_and_no_second_has_more_than_its_share(rate):
    times = starts(max(rate // 15, 120), requests_per_minute=rate)
    assert times[-1] - times[0] <= len(times) / rate * 60 * 1.05
    assert most_within(0.999_999, times) <= max(rate / 60, 1)


def test_tokens_that_were_used_are_made_up_for():
    """Each call uses 100 tokens of 6,000 a minute: the estimate of the first one does not matter in the long run."""
    assert most_within(60, starts(180, tokens_per_minute=6000)) * 100 <= 6000 + 1000


@pytest.mark.parametrize(("event", "options", "most"), [
    (lambda quota: quota.succeeded(Usage(10**9, 0)), {"tokens_per_minute": 6000}, 180),
    (lambda quota: quota.failed(OverloadedError("429", retry_after=1e12), caller(0)), {"start_in_flight": 4}, 0)])
def test_absurd_claims_of_an_endpoint_do_not_stop_the_study(event, options, most):
    """A usage of a thousand million tokens, and a wish to be left alone for years."""
    async def main():
        driver = driver_of(**options)
        await driver.admit("m", caller(0), 10, 900.0)
        before = asyncio.get_running_loop().time()
        event(driver.quotas["m"])
        driver.quotas["m"].slots.release()
        await driver.admit("m", caller(1), 10, 900.0)
        return asyncio.get_running_loop().time() - before

    assert on_virtual_clock(main())[0] <= most


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.2, 3.7, 1e6, 1e300])
def test_a_rate_of_any_size_admits_a_call(rate):
    asyncio.run(asyncio.wait_for(limiter(rate).acquire(), 30))


# An endpoint that is down

def study(samples, monkeypatch, trouble, **options):
    monkeypatch.setattr("madplug.calls.quota.FIRST_PROBE", 0.001)
    monkeypatch.setattr("madplug.calls.quota.LAST_PROBE", 0.002)
    model, rows = Faulty(trouble, **options), [Sample(f"q{i}", f"question {i}") for i in range(samples)]
    played = play(model=model, sample=rows, agents=1, expect_failure=True)
    return played, played.summary["cells"][0], model


def down_for(attempts):
    async def trouble(attempt, request):
        if attempt <= attempts:
            raise UnreachableError("connection refused")
    return trouble


def test_an_endpoint_that_comes_back_has_failed_no_debate(monkeypatch):
    """Forty calls find the endpoint down at once; after that one of them tries it and the others wait."""
    _, cell, model = study(100, monkeypatch, down_for(40 + 60), max_in_flight=40, attempts=1)
    assert (cell["done"], cell["failed"], model.attempts) == (100, 0, 200)


def test_an_endpoint_that_never_comes_back_fails_its_debates_after_the_deadline(monkeypatch):
    played, cell, _ = study(8, monkeypatch, down_for(10**9), max_in_flight=4, deadline=0.2)
    assert cell["failed"] == 8
    assert "model 'model': gave up after 0.2 s (deadline): connection refused" in played.result.error


def test_patience_may_end_between_looking_at_the_clock_and_waiting(monkeypatch):
    async def main():
        quota = Quota(ModelOptions())
        quota.down, quota.why, quota._prober = True, "refused", caller("another")
        monkeypatch.setattr("madplug.calls.quota.time", SimpleNamespace(monotonic=iter([0.0, 0.9, 1.1, 1.2]).__next__))
        with pytest.raises(UnreachableError, match="refused"):
            await quota.wait_reachable(caller("one"), 1.0, uninterrupted)

    on_virtual_clock(main())


def test_a_stop_ends_all_waiting_for_an_endpoint_at_once_even_while_one_caller_is_trying_it():
    """Those who wait must neither wait for the attempt under way, which may hang, nor keep the processor busy."""
    async def main():
        driver = driver_of()
        driver.quotas["m"].down = True
        await driver.admit("m", caller("first"), 1, 900.0)  # tries it, and gets no reply
        waiting = [asyncio.ensure_future(driver.admit("m", caller(i), 1, 900.0)) for i in range(5)]
        await asyncio.sleep(1)
        driver.stop(Ending("interrupted", "interrupted"))
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)

    assert [type(e) for e in on_virtual_clock(main())[0]] == [StudyStopped] * 5


def test_calls_that_fail_together_leave_one_caller_that_tries_again():
    async def main():
        quota, trying, first = Quota(ModelOptions()), [], asyncio.Event()

        async def call(caller):
            quota.failed(UnreachableError("refused"), caller)
            if await quota.wait_reachable(caller, 60, uninterrupted):
                trying.append(caller)
                first.set()

        tasks = [asyncio.ensure_future(call(caller(i))) for i in range(30)]
        await first.wait()
        await asyncio.sleep(1)
        assert (len(trying), sum(task.done() for task in tasks)) == (1, 1)
        quota.reached()
        await asyncio.wait_for(asyncio.gather(*tasks), 5)
        assert len(trying) == 1

    asyncio.run(main())


def test_the_user_is_told_once_when_the_third_try_was_in_vain_and_who_waits_goes_on_when_another_call_is_answered():
    async def main():
        quota, told = Quota(ModelOptions()), []
        for _ in range(6):
            told.append(quota.failed(UnreachableError("refused"), caller(0)))
            await quota.wait_reachable(caller(0), 600, uninterrupted)
        quota.failed(UnreachableError("refused"), caller(0))
        waiting = asyncio.ensure_future(quota.wait_reachable(caller(0), 600, uninterrupted))
        await asyncio.sleep(0.01)  # each try that fails doubles the wait for the next
        quota.reached()  # a call that was under way
        assert not await asyncio.wait_for(waiting, 5)
        return told

    assert on_virtual_clock(main())[0] == [False, False, False, True, False, False]


def test_the_user_is_told_why_twenty_attempts_in_a_row_have_failed():
    async def main():
        told = []
        driver = StudyDriver({"m": Faulty()}, MemoryStore(), print, warn=told.append)
        for n in range(45):
            await driver.admit("m", caller(n), 1, 900.0)
            if n == 19:
                await driver.keep("m", CallRow(b"k", caller(n), "m", "{}"), Call(Completion("A")))
            else:
                driver.release("m", caller(n), TransientError("not JSON"))
        return told

    assert asyncio.run(main()) == [
        "model 'm': the last 20 attempts failed; trying again, for 900 s at most (deadline): not JSON"]


# What is paid

def test_a_reply_that_cannot_be_recorded_still_shows_that_the_endpoint_is_up():
    """Otherwise nobody would try the endpoint again, and every caller would wait for its deadline."""
    class Picky(MemoryStore):
        """Refuses every call."""

        async def keep_call(self, row, call):
            raise ComponentError("cannot be recorded")

    async def main():
        driver = driver_of(Picky())
        driver.quotas["m"].down = True
        await driver.admit("m", caller("first"), 1, 900.0)
        with pytest.raises(ComponentError):
            await driver.keep("m", CallRow(b"k", caller("first"), "m", "{}"), Call(Completion("A")))
        await asyncio.wait_for(driver.admit("m", caller("second"), 1, 900.0), 60)
        assert driver.folder is None

    on_virtual_clock(main())


class Slow(MemoryStore):
    """Takes a moment."""

    async def keep_call(self, row, call):
        await asyncio.sleep(0.2)
        await super().keep_call(row, call)


class Breaking(Slow):
    """Fails once, after a moment."""

    broken = False

    async def keep_call(self, row, call):
        await asyncio.sleep(0.2)
        if not self.broken:
            self.broken = True
            raise ComponentError("cannot be recorded")
        await super().keep_call(row, call)


@pytest.mark.parametrize(("opened", "source"), [(lambda folder: Slow(), "shared"), (open_recorder, "shared"),
                                                (lambda folder: Breaking(), "paid")])
def test_a_component_that_stops_waiting_while_its_answer_is_being_stored_has_nothing_paid_twice(
        tmp_path, opened, source):
    """The answer counts, and those who wait for the same one get it; if it cannot be stored, one of them asks again."""
    async def main(recorder):
        driver = driver_of(recorder)
        call = Call(Completion("A", Usage(1, 1)))

        async def ask():
            found = await driver.claim(b"key")
            if found[0] is not None:
                return found[:2]
            try:
                await driver.admit("m", caller("first"), 1, 900.0)
                await driver.keep("m", CallRow(b"key", caller("first"), "m", "{}"), call)
            except BaseException as error:
                driver.give_up(b"key", error)
                raise
            return call, "paid"

        first, second = asyncio.ensure_future(ask()), asyncio.ensure_future(ask())
        for _ in range(4):
            await asyncio.sleep(0)
        first.cancel()
        assert await second == (call, source)
        assert (driver.paid, driver.in_flight, driver.totals.tokens) == (1, 0, 2)
        assert await ask() == (call, "stored")

    recorder = opened(tmp_path)
    asyncio.run(main(recorder))
    recorder.close()


# Deadlines

def test_the_deadline_of_a_request_begins_with_its_first_attempt(monkeypatch):
    """Waiting for a slot is nobody's fault: a request that had to queue for long is retried like any other."""
    tried = set()

    async def trouble(attempt, request):
        await asyncio.sleep(0.1)
        if request.seed not in tried:
            tried.add(request.seed)
            raise TransientError("503", retry_after=0.0)

    _, cell, _ = study(20, monkeypatch, trouble, max_in_flight=1, deadline=2.0)
    assert cell["done"] == 20


def test_an_attempt_that_fails_after_the_deadline_is_followed_by_another(monkeypatch):
    """The deadline is about the pause between attempts: one of a batch fails after hours in a queue."""
    async def trouble(attempt, request):
        await asyncio.sleep(1.2)
        if attempt == 1:
            raise TransientError("500")

    assert study(1, monkeypatch, trouble, deadline=1.0)[1]["done"] == 1
