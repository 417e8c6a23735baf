"""What there is to say about an installed component: for `madplug show`, and for the pages of `docs/components`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from madplug import Component, Names, Paradigm, Volatile, plain
from madplug.study import Offer, complete

_LIMITS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"), ("pattern", "matches"))
_PLURALS = {"table": "tables", "list of anything": "lists"}
"""Plurals for `list of ...`; other types stay as they are, as in `list of text`."""
_TYPES = {str: "text", int: "integer", float: "number", bool: "true/false", type(None): "none", Path: "path",
          Any: "anything", dict: "table", list: "list"}


def component(offer: Offer) -> dict[str, Any]:
    """Everything about one component, as `madplug show --json` prints it."""
    cls = offer.component
    text = inspect.cleandoc(cls.__doc__ or "")
    facts: dict[str, Any] = {
        "kind": offer.kind, "name": offer.name, "distribution": offer.distribution, "version": offer.version,
        "summary": offer.summary, "description": text, "source": cls.source, "options": list(options(cls)),
        "toml": paste(offer)}
    for name in ("needs", "gives", "moves"):
        value = getattr(cls, name, None)
        if isinstance(value, frozenset) and value:
            facts[name] = sorted(value)
    if issubclass(cls, Paradigm):
        facts["debate"] = plain(cls.debate)
    return facts


def options(cls: type[Component]) -> Iterator[dict[str, Any]]:
    """Name, type, limits, default and meaning of each option; a component's own come before inherited ones."""
    own = cls.Options.__annotations__
    yield from sorted(field_facts(cls.Options), key=lambda fact: fact["name"] not in own)


def field_facts(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """The same of each field of a model, such as a table of the run file."""
    complete(model)
    for name, field in model.model_fields.items():
        required = field.is_required()
        limits = [f"{sign} {getattr(m, attribute)}" for m in field.metadata
                  for attribute, sign in _LIMITS
                  if getattr(m, attribute, None) is not None]
        yield {"name": name, "type": type_name(field.annotation, field.metadata), "limits": ", ".join(limits),
               "required": required,
               "default": None if required else plain(_table(field.get_default(call_default_factory=True))),
               "may_change": Volatile in field.metadata, "description": " ".join((field.description or "").split())}


def _table(value: Any) -> Any:
    """A default with every component in it as a table."""
    if isinstance(value, Component):
        return value.to_table()
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_defaults=True)
    return [_table(one) for one in value] if isinstance(value, list | tuple) else value


def default_text(option: Mapping[str, Any]) -> str:
    """A default as it could be written in a run file, or `none`."""
    return "none" if option["default"] is None else json.dumps(option["default"], ensure_ascii=False)


def type_name(annotation: Any, marks: Sequence[Any] = ()) -> str:
    """A type in words, for users. marks: what it is annotated with."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if named := next((mark.kind for mark in marks if isinstance(mark, Names)), None):
        return type_name(annotation).replace("text", f"{named} name")
    if origin is Annotated:
        return type_name(parts[0], parts[1:])
    if origin is Literal:
        return " | ".join(json.dumps(part) for part in parts)
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(type_name, parts)))
    if origin in (list, tuple, set, frozenset, Sequence):
        return f"list of {_plural(parts[0])}" if parts else "list"
    if origin in (dict, Mapping):
        return f"table of {_plural(parts[-1])}" if parts and parts[-1] is not Any else "table"
    if inspect.isclass(annotation) and issubclass(annotation, Component):
        return str(annotation.label)
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return "table"
    return _TYPES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _plural(annotation: Any) -> str:
    """A type in words, of several values."""
    inner = next((part for part in (annotation, *get_args(annotation)) if inspect.isclass(part)), None)
    if inner is not None and issubclass(inner, Component):
        return inner.plural.replace("_", " ")
    name = type_name(annotation)
    return f"{name}s" if name.endswith(" name") else _PLURALS.get(name, name)


def paste(offer: Offer) -> str:
    """TOML that names the component, with its required options."""
    import tomli_w

    cls = offer.component
    if issubclass(cls, Paradigm):
        return f'[debate]\nparadigm = "{offer.name}"\n'
    needed = [o["name"] for o in options(cls) if o["required"]]
    table = f"[{cls.slot}]" if cls.how_many == "list" else cls.slot
    lines = [f"[{table}]", tomli_w.dumps({"use": offer.name}).strip(), *(f"{name} = ..." for name in needed)]
    return "\n".join(lines) + "\n"
