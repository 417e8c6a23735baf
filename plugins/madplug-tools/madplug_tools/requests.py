"""Which functions a reply calls, and how results go back to the model: in text, or as an endpoint's own tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from madplug import Completion, parse_json, safe
from madplug_tools.tool import Function

_BLOCK = re.compile(r"```[ \t]*tool[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_LONGEST, _DEEPEST = 100_000, 50
"""Characters of arguments that are read, and levels."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that a model asks for."""

    name: str
    arguments: Mapping[str, Any] | None
    """None if they cannot be read."""
    id: str = ""
    """The endpoint's name for the call."""
    problem: str = ""
    """Why the arguments cannot be read."""


def in_text(text: str) -> list[Wanted]:
    """The calls in a text: blocks that begin with ```tool and then `{"name": ..., "arguments": {...}}`."""
    return [_read_block(block.strip()) for block in _BLOCK.findall(text)]


def before_calls(text: str) -> str:
    """What a text says before its first call."""
    found = _BLOCK.search(text)
    return text if found is None else text[:found.start()].rstrip()


def native(completion: Completion) -> list[Wanted]:
    """The tool calls of a reply, as an OpenAI-compatible endpoint gives them."""
    given = completion.usage.raw.get("tool_calls")
    found = [call for call in given if isinstance(call, Mapping)] if isinstance(given, list | tuple) else []
    return [_read_native(call, f"call_{i}") for i, call in enumerate(found)]


def as_parameters(functions: Sequence[Function]) -> dict[str, Any]:
    """The parameters of a request that offers functions."""
    return {"tool_choice": "auto", "tools": [
        {"type": "function", "function": {"name": f.name, "description": f.description,
                                          "parameters": dict(f.parameters)}} for f in functions]}


def native_messages(text: str, wanted: Sequence[Wanted], results: Sequence[str]) -> list[dict[str, Any]]:
    """The reply that called functions, and one message for the result of each."""
    calls = [{"id": call.id, "type": "function", "function": {
        "name": call.name, "arguments": json.dumps(call.arguments or {})}} for call in wanted]
    return [{"role": "assistant", "content": text, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": call.id, "content": result}
              for call, result in zip(wanted, results, strict=True))]


def describe(functions: Sequence[Function]) -> str:
    """The functions for a model that is told in text: name, description and how a call is written."""
    return "\n".join(f"- {f.name}: {f.description}{_how(f)}" for f in functions)


def _how(function: Function) -> str:
    """A call to copy, with its arguments explained, since small models copy what they see, even a schema; the schema
    where an argument is more than one plain value."""
    properties, required = function.parameters.get("properties"), function.parameters.get("required", ())
    if not (isinstance(properties, Mapping) and isinstance(required, list | tuple)
            and all(map(_plain, properties.values()))):
        return f" Arguments: {json.dumps(function.parameters)}"
    call = json.dumps({"name": function.name, "arguments": dict.fromkeys(properties, "...")})
    told = (f"\n  {name} ({schema['type']}{'' if name in required else ', may be left out'})"
            f"{': ' * ('description' in schema)}{schema.get('description', '')}" for name, schema in properties.items())
    return f"\n  {call}{''.join(told)}"


def _plain(schema: Any) -> bool:
    return (isinstance(schema, Mapping) and schema.keys() <= {"type", "description", "title", "default"}
            and schema.get("type") in ("string", "integer", "number", "boolean"))


def _read_block(block: str) -> Wanted:
    """The call that a block begins with; small models write on inside it."""
    with suppress(ValueError, RecursionError):
        block = block[:json.JSONDecoder().raw_decode(block[:_LONGEST])[1]]
    table, problem = _table(block)
    if table is None:
        return Wanted("", None, problem=problem)
    name = table.get("name")
    arguments = table.get("arguments", {})
    if not isinstance(name, str):
        return Wanted("", None, problem="the call has no \"name\"")
    if not isinstance(arguments, Mapping):
        return Wanted(_named(name), None, problem="the \"arguments\" are not an object")
    return Wanted(_named(name), arguments)


def _read_native(call: Mapping[str, Any], otherwise: str) -> Wanted:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    id, name, given = call.get("id"), function.get("name"), function.get("arguments")
    arguments, problem = (given, "") if isinstance(given, Mapping) else _table(given or "{}")
    id = id if isinstance(id, str) and id else otherwise
    return Wanted(_named(name) if isinstance(name, str) else "", arguments, id, problem)


def _table(text: Any) -> tuple[Mapping[str, Any] | None, str]:
    """The object that a text is, or None and why it is none."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None, "the arguments are not text, or too long"
    try:
        found = parse_json(text)
        if _depth(found) > _DEEPEST:
            raise ValueError("too many levels")
    except (ValueError, RecursionError) as error:
        return None, f"the arguments are not JSON: {error}"[:200]
    return (found, "") if isinstance(found, Mapping) else (None, "the arguments are not an object")


def _named(name: str) -> str:
    """A name as it is told and recorded: one line of bounded length."""
    return " ".join(safe(name[:128]).split())


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)
