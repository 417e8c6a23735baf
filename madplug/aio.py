"""Small helpers for values that may or may not have to be awaited."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from inspect import iscoroutine
from typing import Any, TypeVar

from madplug.errors import ComponentError

T = TypeVar("T")


async def maybe_await(value: Any) -> Any:
    """The value itself, or what it resolves to if it is awaitable."""
    return await value if hasattr(value, "__await__") else value


def ends_the_run(error: BaseException) -> bool:
    """Whether an error has to end the run: the user interrupts, or the current task is cancelled or dropped.

    A component may raise `CancelledError` itself, which from Python 3.11 on can be told from a cancellation.
    """
    from asyncio import CancelledError, current_task  # a plugin that is only listed needs no event loop

    if isinstance(error, CancelledError):
        cancelling = getattr(current_task(), "cancelling", None)
        return cancelling is None or cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


async def iterate(values: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """The items of a plain or an asynchronous iterable."""
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order, awaited concurrently.

    When one fails, the others still run to completion, since their calls may be paid for; then its error is raised.
    """
    waiting = list(awaitables)
    if len(waiting) == 1:
        return [await without_exit(waiting[0])]
    from asyncio import gather  # a plugin that is only listed needs no event loop

    try:
        results = await gather(*map(without_exit, waiting), return_exceptions=True)
    finally:
        for one in filter(iscoroutine, waiting):
            one.close()  # one that was cancelled before it began would warn that nothing awaited it
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


async def without_exit(awaitable: Awaitable[T]) -> T:
    """What an awaitable gives. `SystemExit` would end the event loop, and with it every debate."""
    try:
        return await awaitable
    except SystemExit as error:
        raise ComponentError("a component called sys.exit").with_traceback(error.__traceback__) from None
