"""Checks of what components and hooks return to the host, and the place in a plugin where an error arose."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

from pydantic import ValidationError

from madplug.component import Component
from madplug.errors import ComponentError, MadplugError, error_text, listed
from madplug.records import Agent, Message, Record, Review, Sample
from madplug.redaction import redact
from madplug.rows import place_in, validator_of
from madplug.text import a

T = TypeVar("T")
HOST = "madplug."


def method_name(component: object, method: str) -> str:
    """A method as errors name it."""
    return f"{type(component).__module__}.{type(component).__qualname__}.{method}"


def check_returned(value: Any, kind: type[T], component: Component, method: str) -> T:
    """The value, if it is what the component's contract promises."""
    given = f"{method_name(component, method)} returned"
    if not isinstance(value, kind):
        raise type_error(given, value, kind.__name__)
    return check_record(value, given)


def check_returned_all(values: Any, kind: type[T], component: Component, method: str) -> tuple[T, ...]:
    """The values, if a component returned a sequence of what its contract promises."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise type_error(f"{method_name(component, method)} returned", values, f"a sequence of {kind.__name__}")
    return tuple([value if type(value) is kind is Message else check_returned(value, kind, component, method)
                  for value in values])


def check_record(value: T, given: str) -> T:
    """The value; a record with its fields converted to their types. given: where it comes from, with the verb."""
    if not isinstance(value, Record):
        return value
    kind: Any = type(value)
    try:
        checked: T = validator_of(kind).validate_python(value)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        raise type_error(f"{given} {a(kind.__name__)} whose {place_in(found['loc'])} is", found["input"],
                         found["msg"].removeprefix("Input should be ").removeprefix("a dictionary or ")) from None
    return checked


def check_hook_result(value: Any, kind: type[T] | tuple[type[Any], ...], hook: str) -> T:
    """The result of a hook, if it is what the hook promises."""
    if isinstance(value, kind):
        return check_record(value, f"the hook 'madplug_{hook}' gave")
    wanted = kind.__name__ if isinstance(kind, type) else "a sequence"
    raise type_error(f"the hook 'madplug_{hook}' gave", value,
                f"{wanted}; a wrapper returns the result to use: `result = yield`, then `return result`")


def check_iterable(values: Any, given: str) -> Any:
    """The values, if they can be iterated, with `async for` too. given: where they come from, with the verb."""
    if hasattr(values, "__iter__") or hasattr(values, "__aiter__"):
        return values
    raise type_error(given, values, "a generator, or a sequence")


def type_error(what: str, value: Any, wanted: str) -> ComponentError:
    """The error to raise for a value of the wrong type."""
    more = ""
    if inspect.iscoroutine(value):
        value.close()  # it will never be awaited
        more = "; is an `await` missing?"
    return ComponentError(f"{what} {type(value).__name__} {value!r:.80}; expected {wanted}{more}")


def leaving(review: Review, agents: int) -> list[int]:
    """The ids of the agents that are to leave. agents: how many there are."""
    ids = [one.id if isinstance(one, Agent) else one for one in review.leave]
    if odd := [id for id in ids if not 0 <= id < agents]:
        raise ComponentError(f"the hook 'madplug_round_ended' gave a Review in which {odd[0]} leaves; expected agents, "
                             f"or their ids from 0 to {agents - 1}")
    return ids


def check_sample(sample: Sample, given: str) -> Sample:
    """The sample, if its fields are valid. given: where it comes from, with the verb."""
    sample = check_record(sample, given)
    for column in sample.hidden_from:
        if column not in ("choices", "context", "images", *sample.metadata):
            raise ComponentError(f"{given} the sample '{sample.id}', with {column!r:.80} hidden; expected choices, "
                                 "context, images or a column of its metadata")
    return sample


def check_view(view: Any, recorded: int) -> tuple[Message, ...]:
    """The messages of a view, if each is on record. recorded: how many messages are on record."""
    shown: Sequence[Any] = check_hook_result(view, (tuple, list), "view")
    for message in shown:
        if not isinstance(message, Message):
            check_hook_result(message, Message, "view")
        if not 0 <= message.id < recorded:
            raise ComponentError(f"the hook 'madplug_view' gave a message with the id {message.id}, which is not on "
                                 f"record (ids are below {recorded}); show messages of debate.transcript, changed with "
                                 "replace(message, content=...) if need be")
    return tuple(shown)


def check_agents(agents: tuple[Agent, ...], wanted: int, models: Iterable[str], given: str) -> tuple[Agent, ...]:
    """The agents, if there is one for each persona, numbered in order, on a model of the cell.

    given: where they come from, with the verb.
    """
    known = set(models)
    odd = next((a for i, a in enumerate(agents) if a.id != i or (a.model is not None and a.model not in known)), None)
    if len(agents) != wanted or odd is not None:
        found = f"{len(agents)} agents" if odd is None else f"agent {odd.id} on model '{odd.model}'"
        raise ComponentError(f"{given} {found}; expected {wanted} agents with ids from 0 in the order of the personas, "
                             f"on models of {listed(sorted(known))}")
    return agents


def locate_error(error: BaseException) -> str:
    """The method of a plugin's component in which an error arose, and the line; empty for an error of the host."""
    found, trace = "", error.__traceback__
    while trace is not None:
        code, owner = trace.tb_frame.f_code, trace.tb_frame.f_locals.get("self")
        if isinstance(owner, Component) and not trace.tb_frame.f_globals["__name__"].startswith(HOST):
            found = f"{method_name(owner, code.co_name)}, {PurePath(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def describe_error(error: BaseException) -> str:
    """An error as one line: what it is, and in which component it arose."""
    text = redact(" ".join(error_text(error).split()))[:2000].encode("utf-8", "replace").decode()
    if isinstance(error, MadplugError) and not isinstance(error, ComponentError):
        return text
    own = text if isinstance(error, ComponentError) else f"{type(error).__name__}: {text}"
    place = locate_error(error)
    return own if not place or place.partition(",")[0] in own else f"{own} (in {place})"
