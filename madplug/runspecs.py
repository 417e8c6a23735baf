"""What happens in a run: the hooks around a debate, and its events.

Who takes part: the extensions that the run file names, in its order, and every other component it names
that has methods marked `@hookimpl`. Three kinds:

* *around* hooks ask for one result. The host's own implementation is the innermost; an extension is a
  wrapper (`@hookimpl(wrapper=True)`: `result = yield`, then return what is to stand). The first extension of
  the run file is applied first. A wrapper around an awaitable returns an awaitable of its own.
* *questions* are answered by the first extension that has an answer other than None.
* *events* tell; what they return is ignored. An exception in an event is recorded as a problem of the
  study and the debate goes on; an exception in any other hook fails the debate.

Every hook but the events may return an awaitable; the host awaits it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug.hookspecs import hookspec

if TYPE_CHECKING:
    from madplug.debate import Debate
    from madplug.records import (
        Completion,
        DebateResult,
        Decision,
        Message,
        Reply,
        Request,
        Review,
        Sample,
        Turn,
    )
    from madplug.setup import Setup

Sampled = tuple["Sample", tuple[str, ...]]


# Around

@hookspec(firstresult=True)
def madplug_samples(setup: Setup) -> Iterable[Sampled] | Awaitable[Iterable[Sampled]]:  # type: ignore[empty-body]
    """The cell's samples, before the first debate: drop some, reorder them, present one twice.

    setup: the cell's. Around: the host's own result is an iterator of (sample, references), as the
    data set streams them; wrap it in a generator rather than a list. A sample presented twice needs a second
    id and `metadata["pair"]` naming the first, as where a pair of replies is judged in both orders.
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

    debate: its transcript is the same for every turn of a wave. turn: whose view it is. Around: the innermost
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

    debate: whose request it is. request: as the component made it. Around: return the request to send; what is
    returned is what is stored and compared with the record. Wrapped by `madplug-som`.
    """


@hookspec(firstresult=True)
def madplug_complete(debate: Debate, request: Request) -> Awaitable[Completion]:  # type: ignore[empty-body]
    """One model call: the last place before the gateway, and the first after it.

    debate: whose request it is. request: as it is sent. Around: the innermost result awaits the record, or the
    model. Wrapped by the tests' own extensions.
    """


# Questions

@hookspec
def madplug_round_ended(debate: Debate) -> Review | Awaitable[Review | None] | None:
    """What becomes of a round, after the decision protocol has left it undecided.

    debate: `debate.round` has ended. Return a `Review`, or None to leave it as it is. Extensions are heard in
    the order of the run file, and the first answer that is not None counts. Answered by `madplug-som`, `madplug-judge`.
    """


# Events

@hookspec
def madplug_study_started(study: Setup) -> None:
    """The study's components are prepared; no debate has begun. study: what is being run."""


@hookspec
def madplug_study_finished(study: Setup, summary: Mapping[str, Any]) -> None:
    """The study has ended or stopped. study: what was run. summary: as in `summary.json`."""


@hookspec
def madplug_debate_started(debate: Debate) -> None:
    """The agents are cast and the openings are on record. debate: the one that begins."""


@hookspec
def madplug_debate_finished(debate: Debate, result: DebateResult) -> None:
    """The debate is decided, scored and stored. debate: the one that ended. result: as it is stored."""


@hookspec
def madplug_debate_failed(debate: Debate, error: BaseException) -> None:
    """The debate could not be held to its end. debate: the one that failed. error: why."""


@hookspec
def madplug_message(debate: Debate, message: Message) -> None:
    """A message went on record. debate: whose. message: with its id."""


@hookspec
def madplug_decided(debate: Debate, decision: Decision) -> None:
    """The debate has its decision. debate: whose. decision: before the phases."""


EVENTS = (
    "madplug_study_started", "madplug_study_finished", "madplug_debate_started", "madplug_debate_finished",
    "madplug_debate_failed", "madplug_message", "madplug_decided",
)
