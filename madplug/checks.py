"""What components and hooks return, checked where it comes back to the host; and in whose code an error arose."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

from madplug.components import Component
from madplug.errors import ComponentError
from madplug.records import Agent, Decision, Persona, Reply

T = TypeVar("T")
HOST = "madplug."
_TEXT, _TRUTH, _NUMBER = (str, type(None)), (bool, type(None)), (float, int, type(None))


def method_name(component: object, method: str) -> str:
    """A method as errors name it."""
    return f"{type(component).__module__}.{type(component).__qualname__}.{method}"


def check_returned(value: Any, kind: type[T], component: Component, method: str) -> T:
    """The value, if a component kept its contract."""
    if isinstance(value, kind):
        return value
    raise type_error(f"{method_name(component, method)} returned", value, kind.__name__)


def check_returned_all(values: Any, kind: type[T], component: Component, method: str) -> tuple[T, ...]:
    """The values, if a component gave a sequence of what its contract says."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise type_error(f"{method_name(component, method)} returned", values, f"a sequence of {kind.__name__}")
    made = tuple(values)
    for value in made:
        if not isinstance(value, kind):
            check_returned(value, kind, component, method)
    return made


def check_hook_result(value: Any, kind: type[T] | tuple[type[Any], ...], hook: str) -> T:
    """What a hook gave, if it is what the hook is for."""
    if isinstance(value, kind):
        return value
    wanted = kind.__name__ if isinstance(kind, type) else "a sequence"
    raise type_error(f"the hook 'madplug_{hook}' gave", value,
                f"{wanted}; a wrapper returns what is to stand: `result = yield`, then `return result`")


def check_iterable(values: Any, given: str) -> Any:
    """What can be gone through: a generator, plain or not, or a sequence. given: who gave it, with the verb."""
    if hasattr(values, "__iter__") or hasattr(values, "__aiter__"):
        return values
    raise type_error(given, values, "a generator, or a sequence")


def type_error(what: str, value: Any, wanted: str) -> ComponentError:
    """The error to raise for a value of the wrong kind."""
    more = ""
    if inspect.iscoroutine(value):
        value.close()  # it will never be awaited
        more = "; is an `await` missing?"
    return ComponentError(f"{what} {type(value).__name__} {value!r:.80}; expected {wanted}{more}")


def check_reply(reply: Reply, given: str) -> Reply:
    """A reply whose fields are what they should be. given: who gave it, with the verb."""
    _field(reply, "content", (str,), given)
    _field(reply, "answer", _TEXT, given)
    _field(reply, "agreement", _TRUTH, given)
    _field(reply, "confidence", _NUMBER, given)
    _field(reply, "data", (Mapping,), given)
    if reply.confidence is not None and not 0 <= reply.confidence <= 1:
        raise ComponentError(f"{given} a Reply whose confidence is {reply.confidence!r}; "
                             "expected a number from 0 to 1, or None where none could be read")
    if odd := [key for key in reply.data if not isinstance(key, str)]:
        raise ComponentError(f"{given} a Reply whose data has the key {odd[0]!r:.80}; expected text")
    return reply


def check_decision(value: Any, component: Component, method: str) -> Decision:
    """A decision whose fields are what they should be."""
    decision = check_returned(value, Decision, component, method)
    for field in ("key", "answer"):
        _field(decision, field, _TEXT, f"{method_name(component, method)} returned")
    return decision


def _field(record: Any, field: str, kinds: tuple[type, ...], given: str) -> None:
    value = getattr(record, field)
    if not isinstance(value, kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise type_error(f"{given} a {type(record).__name__} whose {field} is", value, wanted)


def check_agents(agents: tuple[Agent, ...], wanted: int, models: Iterable[str],
                 casting: Component) -> tuple[Agent, ...]:
    """The agents, if there is one for each persona, numbered in order, on a model of the cell."""
    known = set(models)
    for agent in agents:
        _field(agent, "persona", (Persona,), f"{method_name(casting, 'cast')} returned")
        _field(agent, "model", _TEXT, f"{method_name(casting, 'cast')} returned")
    odd = next((a for i, a in enumerate(agents) if a.id != i or (a.model is not None and a.model not in known)), None)
    if len(agents) != wanted or odd is not None:
        found = f"{len(agents)} agents" if odd is None else f"agent {odd.id} on model '{odd.model}'"
        raise ComponentError(f"{method_name(casting, 'cast')} returned {found}; expected {wanted} agents with "
                             f"ids from 0 in the order of the personas, on models of {', '.join(sorted(known))}")
    return agents


def locate_error(error: BaseException) -> str:
    """The method of a plugin's component in which an error arose, and the line; nothing where it is the host's."""
    found, trace = "", error.__traceback__
    while trace is not None:
        code, owner = trace.tb_frame.f_code, trace.tb_frame.f_locals.get("self")
        if isinstance(owner, Component) and not trace.tb_frame.f_globals["__name__"].startswith(HOST):
            found = f"{method_name(owner, code.co_name)}, {PurePath(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
