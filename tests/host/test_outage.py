"""An endpoint that is down is tried by one caller at a time, and everyone goes on as soon as it is back."""

import asyncio

from madplug import UnreachableError
from madplug.calls.quota import Quota
from madplug.records import Caller
from madplug_testing.clock import on_virtual_clock


async def uninterrupted(waiting):
    await waiting


def quota_of():
    from madplug_kit import Hash

    return Quota(Hash().options)


def test_calls_that_fail_together_leave_one_caller_that_tries_again():
    async def main():
        quota, trying, first = quota_of(), [], asyncio.Event()
        callers = [Caller("c", 0, f"q{i}") for i in range(30)]

        async def call(caller):
            quota.failed(UnreachableError("refused"), caller)
            if await quota.wait_reachable(caller, 60, uninterrupted):
                trying.append(caller)
                first.set()

        tasks = [asyncio.ensure_future(call(caller)) for caller in callers]
        await first.wait()
        await asyncio.sleep(1)
        assert len(trying) == 1
        assert sum(task.done() for task in tasks) == 1
        quota.reached()
        await asyncio.wait_for(asyncio.gather(*tasks), 5)
        assert len(trying) == 1

    asyncio.run(main())


def test_the_user_is_told_once_when_the_third_try_was_in_vain():
    async def main():
        quota, caller, told = quota_of(), Caller("c", 0, "q"), []
        for _ in range(6):
            told.append(quota.failed(UnreachableError("refused"), caller))
            await quota.wait_reachable(caller, 600, uninterrupted)
        return told

    assert on_virtual_clock(main())[0] == [False, False, False, True, False, False]


def test_who_waits_to_try_goes_on_when_another_call_is_answered():
    async def main():
        quota, caller = quota_of(), Caller("c", 0, "q")
        for _ in range(6):  # each try that fails doubles the wait for the next
            quota._probes += 1
        quota.failed(UnreachableError("refused"), caller)
        waiting = asyncio.ensure_future(quota.wait_reachable(caller, 600, uninterrupted))
        await asyncio.sleep(0.01)
        quota.reached()  # a call that was under way
        assert not await asyncio.wait_for(waiting, 5)

    asyncio.run(main())
