"""Frozen dataclasses that are made quickly.

The `__init__` of a frozen dataclass sets each field through `object.__setattr__`, which takes most of the time that a
call of a model costs in records. Here a new record is writable while its fields are set, and frozen ever after.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
_UNSET: Any = object()


def quick(cls: type[T]) -> type[T]:
    """Give a dataclass with `frozen=True, slots=True` a quicker `__init__`, with the same arguments."""
    careful = cls.__init__
    scope: dict[str, Any] = {"_careful": careful, "_frozen": cls, "_set": object.__setattr__, "_unset": _UNSET,
                             "_writable": type(cls.__name__, (), {"__slots__": cls.__slots__})}  # type: ignore[attr-defined]
    parameters, settings, given = [], [], []
    for field in fields(cls):  # type: ignore[arg-type]
        name = field.name
        parameter, value = name, name
        if field.default is not MISSING:
            scope[f"_{name}"] = field.default
            parameter = f"{name}=_{name}"
        elif field.default_factory is not MISSING:
            scope[f"_{name}"] = field.default_factory
            parameter, value = f"{name}=_unset", f"_{name}() if {name} is _unset else {name}"
        parameters.append(parameter)
        settings.append(f"    self.{name} = {value}")
        given.append(f"{name}={value}")
    exec("\n".join([
        f"def __init__(self, {', '.join(parameters)}):",
        "    if self.__class__ is not _frozen:",  # a subclass has another layout
        f"        return _careful(self, {', '.join(given)})",
        "    _set(self, '__class__', _writable)", *settings, "    self.__class__ = _frozen"]), scope)
    cls.__init__ = wraps(careful)(scope["__init__"])  # type: ignore[method-assign]
    return cls
