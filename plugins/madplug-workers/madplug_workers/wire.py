"""Messages between the driver and a worker, as bytes.

A batch of messages is one pickle that names only the records listed here, and is refused if it names anything else: no
code runs because bytes arrived. What a plugin put into a record, and JSON has no type for, travels in the form in which
the store would record it.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from io import BytesIO
from operator import attrgetter
from typing import Any

import madplug
from madplug import DebateId, Frozen, MadplugError, TransientError, plain
from madplug.store import Call, CallRow
from madplug.study import Ending, Job, error_text

Item = tuple[Any, ...]
"""A message: its kind, then its parts."""


class Unrecordable:
    """What the store could not record either: recording it raises what it raised."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        raise type(self.kind, (Exception,), {})(self.text)


def as_recorded(value: Any) -> Any:
    """The value itself: what marks a value that was converted when it was packed."""
    return value


def _values_of(cls: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Returns the arguments that make an equal record."""
    if cls is DebateId:
        return tuple
    if cls is Frozen:
        return lambda value: (dict(value),)
    if cls is Unrecordable:
        return lambda value: (value.kind, value.text)
    names = [f.name for f in fields(cls)]
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


_PUBLIC = [value for value in (getattr(madplug, name) for name in madplug.__all__) if isinstance(value, type)]


def _records() -> list[type[Any]]:
    found = [value for value in _PUBLIC
             if is_dataclass(value) and value.__module__ in ("madplug.records", "madplug.events")]
    return [*found, Frozen, DebateId, Ending, Job, Call, CallRow, Unrecordable]


_REDUCE = {cls: _values_of(cls) for cls in _records()}
_NAMED: dict[tuple[str, str], Any] = {(cls.__module__, cls.__qualname__): cls for cls in _REDUCE}
_NAMED[__name__, "as_recorded"] = as_recorded


class _Packer(pickle.Pickler):
    """Writes the listed records as they are, and anything else as it would be recorded."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is written that is neither text, nor a number, nor a plain collection."""
        values_of = _REDUCE.get(type(value))
        if values_of is not None:
            return type(value), values_of(value)
        if value is as_recorded or (isinstance(value, type) and value in _REDUCE):
            return NotImplemented
        try:
            return as_recorded, (plain(value),)
        except Exception as error:  # objects of components may raise anything
            return Unrecordable, (type(error).__name__, error_text(error))


class _Unpacker(pickle.Unpickler):
    """Reads the listed records, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        """The record of this name."""
        try:
            return _NAMED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"a message names {module}.{name}, which is not a record") from None


def pack(items: Sequence[Item]) -> bytes:
    """A batch of messages as bytes."""
    buffer = BytesIO()
    _Packer(buffer, 5).dump(items)
    return buffer.getvalue()


def unpack(data: bytes) -> list[Item]:
    """The messages of a batch. Raises `pickle.UnpicklingError` for bytes that are not one."""
    items: list[Item] = _Unpacker(BytesIO(data)).load()
    return items


class Outbox:
    """Messages on their way: all those of one step of the event loop leave as one batch.

    refused: called with a message that cannot be packed, and the error.
    """

    def __init__(self, send: Callable[[bytes], None], refused: Callable[[Item, Exception], None]) -> None:
        self._send = send
        self._refused = refused
        self._items: list[Item] = []

    def post(self, *item: Any) -> None:
        """Send a message, soon."""
        self._items.append(item)
        if len(self._items) == 1:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Send what has been posted."""
        items, self._items = self._items, []
        if not items:
            return
        try:
            data = pack(items)
        except Exception:  # nested too deeply, or a record that a plugin has put an unfit value into
            data = pack([item for item in items if self._fits(item)])
        self._send(data)

    def _fits(self, item: Item) -> bool:
        try:
            pack([item])
        except Exception as error:
            self._refused(item, error)
            return False
        return True


Failure = tuple[str, str, float | None]
"""An error on the wire: its class, its text, and the seconds to wait before a retry."""
_ERRORS = {cls.__name__: cls for cls in _PUBLIC if issubclass(cls, MadplugError)}


def to_failure(error: BaseException) -> Failure:
    """An error in the form in which it travels: as the nearest of madplug's own classes, if it has one."""
    name = next((cls.__name__ for cls in type(error).__mro__ if _ERRORS.get(cls.__name__) is cls), "")
    text = error_text(error) if name else f"{type(error).__name__}: {error_text(error)}"
    return name, text.encode("utf-8", "replace").decode(), getattr(error, "retry_after", None)


def to_error(failure: Failure) -> Exception:
    """The error that a failure stands for."""
    name, text, retry_after = failure
    made: Exception = _ERRORS.get(name, RuntimeError)(text)
    if isinstance(made, TransientError):
        made.retry_after = retry_after
    return made
