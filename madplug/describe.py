"""What is installed, in words: `madplug list`, `madplug show`, and the generated reference."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from madplug.components import KINDS, Component, Paradigm, Volatile
from madplug.registry import Offer, Registry
from madplug.rows import plain

_TABLE = {"model": "models.NAME", "service": "services.NAME", "dataset": "dataset", "answers": "answers",
          "casting": "debate.casting", "turns": "debate.turns", "visibility": "debate.visibility",
          "decision": "debate.decision", "executor": "execution", "personas": "[debate.personas]",
          "style": "[debate.styles]", "phase": "[debate.phases]", "metric": "[metrics]",
          "extension": "[extensions]"}


_LIMITS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"), ("pattern", "matches"))


WIDTH = 100
_TYPES = {str: "text", int: "integer", float: "number", bool: "true/false", type(None): "none", Path: "path",
          Any: "anything", dict: "table", list: "list"}


def kinds() -> dict[str, str]:
    """Kind by every spelling a user may try: `decision`, `decisions`."""
    return {**{base.kind: base.kind for base in KINDS.values()},
            **{plural: base.kind for plural, base in KINDS.items()}}


def listing(registry: Registry, kind: str | None) -> dict[str, Any]:
    """Components and problems, as `madplug list --json` prints them."""
    found = registry.offers(kind)
    return {"components": [{"kind": o.kind, "name": o.name, "distribution": o.distribution, "version": o.version,
                            "summary": o.summary} for o in found],
            "problems": [str(p) for p in registry.problems]}


def component(offer: Offer) -> dict[str, Any]:
    """Everything about one component, as `madplug show --json` prints it."""
    cls = offer.component
    text = inspect.getdoc(cls) or ""
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
    """Name, type, limits, default and meaning of each option."""
    cls.Options.model_rebuild(force=False)
    known = cls.Options.model_fields
    for name in sorted(known, key=lambda n: n not in cls.Options.__annotations__):  # its own first, in their order
        field = known[name]
        required = field.is_required()
        limits = [f"{sign} {getattr(m, attribute)}" for m in field.metadata
                  for attribute, sign in _LIMITS
                  if getattr(m, attribute, None) is not None]
        yield {"name": name, "type": type_name(field.annotation), "limits": ", ".join(limits),
               "required": required,
               "default": None if required else plain(field.get_default(call_default_factory=True)),
               "may_change": Volatile in field.metadata, "description": " ".join((field.description or "").split())}


def default_text(option: Mapping[str, Any]) -> str:
    """A default as a run file could spell it, or `none`."""
    return "none" if option["default"] is None else json.dumps(option["default"], ensure_ascii=False)


def type_name(annotation: Any) -> str:
    """A type as a user would say it."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(parts[0])
    if origin is Literal:
        return " | ".join(json.dumps(part) for part in parts)
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(type_name, parts)))
    if origin in (list, tuple, set, frozenset, Sequence):
        return f"list of {type_name(parts[0])}" if parts else "list"
    if origin in (dict, Mapping):
        return f"table of {type_name(parts[-1])}"
    return _TYPES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def paste(offer: Offer) -> str:
    """TOML that names the component, with its required options."""
    import tomli_w

    if issubclass(offer.component, Paradigm):
        return f'[debate]\nparadigm = "{offer.name}"\n'
    needed = [o["name"] for o in options(offer.component) if o["required"]]
    table = _TABLE[offer.kind]
    lines = [f"[{table}]", tomli_w.dumps({"use": offer.name}).strip(), *(f"{name} = ..." for name in needed)]
    return "\n".join(lines) + "\n"


def page(facts: Mapping[str, Any]) -> str:
    """A component as text for a person."""
    lines = [f"{facts['name']}  ({facts['kind']}, {facts['distribution']} {facts['version']})", "",
             facts["description"], ""]
    if facts["source"]:
        lines += [f"Source: {facts['source']}", ""]
    for name, words in (("moves", "Moves"), ("needs", "Needs"), ("gives", "Gives")):
        if name in facts:
            lines += [f"{words}: {', '.join(facts[name])}", ""]
    if facts["options"]:
        lines += ["Options:", "", *(line for option in facts["options"] for line in _option(option))]
    if "debate" in facts:
        import tomli_w

        lines += ["Stands for:", "", tomli_w.dumps({"debate": facts["debate"]}).strip(), ""]
    lines += ["In a run file:", "", facts["toml"].strip()]
    return "\n".join(lines)


def _option(option: Mapping[str, Any]) -> Iterator[str]:
    """An option: name, type and default on a line, then its meaning, then a default that is a text of its own."""
    limits = f" ({option['limits']})" if option["limits"] else ""
    default = default_text(option)
    long = len(default) > WIDTH // 2
    ending = "required" if option["required"] else "default below" if long else f"default {default}"
    yield f"{option['name']}  {option['type']}{limits}, {ending}"
    yield from wrap(option["description"] + (" (may change within a study)" if option["may_change"] else ""), WIDTH,
                    initial_indent="    ", subsequent_indent="    ")
    if long and not option["required"]:
        text = option["default"] if isinstance(option["default"], str) else default
        yield from (piece for line in text.splitlines()
                    for piece in wrap(line, WIDTH, initial_indent="  | ", subsequent_indent="  | ") or ["  |"])
    yield ""
