"""What happens in a run: the hooks that an extension can wrap.

The extensions named in the run file take part, in its order, and so does every other component of the run file
that has methods marked `@hookimpl`.

Every hook asks for one result. The host's own implementation is the innermost one and delegates to the component
chosen in the run file; an extension is a wrapper around it (`@hookimpl(wrapper=True)`: `result = yield`, then return
the result to use). The first extension of the run file is the innermost wrapper, so its change is applied first and
the last one sees, and may change, what all the others have made of it.

A result may be an awaitable; the host awaits it. A wrapper around an awaitable returns an awaitable of its own, since
a wrapper is a plain generator and cannot await: `return changed(result)`, with `async def changed(result)` that
awaits it (`await maybe_await(result)` where it may be a plain value). An exception fails the debate.

To be notified without changing anything, write an `Observer` instead: its events are in `events.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING

from madplug.hookspecs import hookspec

if TYPE_CHECKING:
    from madplug.context import Debate, Sampled, Setup
    from madplug.records import (
        Completion,
        Message,
        Reply,
        Request,
        Review,
        Turn,
    )

# Around

@hookspec(firstresult=True)
def madplug_samples(setup: Setup) -> Iterable[Sampled] | Awaitable[Iterable[Sampled]]:  # type: ignore[empty-body]
    """The cell's samples, before the first debate: drop some, reorder them, present one twice.

    setup: what `prepare` gets too. Around: the host's own result is an iterator of (sample, references), as the
    data set streams them; wrap it in a generator rather than a list. A sample presented twice needs a second
    id, and `metadata["pair"]` naming the first: for example, a pair of replies judged in both orders.
    """


@hookspec(firstresult=True)
def madplug_opening(debate: Debate) -> Sequence[Message] | Awaitable[Sequence[Message]]:  # type: ignore[empty-body]
    """What is on record before round 1.

    debate: its agents are known, its transcript is empty. Around: return the messages to record, in order;
    the host gives ids and round 0. Wrapped by `madplug-replay`.
    """


@hookspec(firstresult=True)
def madplug_view(debate: Debate, turn: Turn) -> Sequence[Message]:  # type: ignore[empty-body]
    """The messages an agent is shown for a turn, in order.

    debate: its transcript is the same for every turn of a wave. turn: the turn the view is for. Around: the innermost
    result is the visibility's. Never call a model here. Wrapped by `madplug-visibility`, `madplug-attack`.
    """


@hookspec(firstresult=True)
def madplug_reply(debate: Debate, turn: Turn, view: Sequence[Message]) -> Awaitable[Reply]:  # type: ignore[empty-body]
    """One turn, from the view to what goes on record.

    debate, turn: as for `madplug_view`. view: what the agent is shown. Around: the innermost result awaits
    the style. Wrapped by `madplug-attack`.
    """


@hookspec(firstresult=True)
def madplug_request(debate: Debate, request: Request) -> Request:  # type: ignore[empty-body]
    """A request about to be sent: add a sentence, change a parameter.

    debate: the debate that makes it. request: as the component made it. Around: return the request to send, which is
    also what is stored and looked up in the record. Wrapped by `madplug-som`.
    """


@hookspec(firstresult=True)
def madplug_complete(debate: Debate, request: Request) -> Awaitable[Completion]:  # type: ignore[empty-body]
    """One model call: the last step before the gateway, and the first after it.

    debate: the debate that makes it. request: exactly as it is sent, with every change of `madplug_request`. Around:
    the innermost result takes the completion from the record or awaits the model. A guard checks here, before its
    `yield`, and is the last extension of the run file. Wrapped by `madplug-dynamics`.
    """


@hookspec(firstresult=True)
def madplug_round_ended(debate: Debate) -> Review | Awaitable[Review | None] | None:
    """What happens after a round that the decision protocol has left undecided.

    debate: `debate.round` has ended. Around: the innermost result is None, which leaves the round as it is; return
    a `Review` to retract it, to end the debate, or to put a message on record. The result of an inner extension
    may be None, a `Review`, or an awaitable of either (`await maybe_await(review)`). Wrapped by
    `madplug-som`, `madplug-judge`.
    """
