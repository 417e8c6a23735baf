"""Replies shown while they are being written, for models that can stream and programs that want to show it.

A program listens with `listening_to`; a model that can stream calls `begin_reply(request)` when it starts an attempt
and passes on what it gets. Nothing depends on it: the reply that counts is the one that `Model.complete` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from madplug import Request

Listener = Callable[[Request], Callable[[str], None]]
"""Called when an attempt at a request starts; returns what is called with each piece of the reply, in any thread."""
_listener: ContextVar[Listener | None] = ContextVar("madplug_prompting_listener", default=None)


def begin_reply(request: Request) -> Callable[[str], None] | None:
    """What to call with each piece of the reply to a request, or None if nothing listens."""
    listener = _listener.get()
    return None if listener is None else listener(request)


@contextmanager
def listening_to(listener: Listener) -> Iterator[None]:
    """Have replies passed on that are written by tasks started in this block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
