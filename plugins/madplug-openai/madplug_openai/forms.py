"""The form of an answer, in the fields of the server that is to hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from madplug import RefusedError
from madplug_openai.gbnf import grammar_of

Structured = Literal["none", "json_schema", "vllm", "sglang", "llamacpp"]


def fields(form: Mapping[str, Any] | None, structured: Structured) -> dict[str, Any]:
    """The fields of the request's body that hold a form; none where the server cannot hold it."""
    if not form or structured == "none":
        return {}
    if "json_schema" in form:
        return {"response_format": response_format(form["json_schema"])}
    kind, value = next(iter(form.items()))
    if kind not in ("regex", "grammar"):
        raise RefusedError(f"no such form of an answer: '{kind}'")
    if structured == "vllm":
        return {"structured_outputs": {kind: value}}
    if structured == "sglang":
        return {"regex" if kind == "regex" else "ebnf": value}
    if structured == "llamacpp":
        grammar = value if kind == "grammar" else grammar_of(value)
        return {"grammar": grammar} if grammar else {}
    return {}


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema as OpenAI takes it."""
    named = {"name": "reply", "schema": schema, "strict": _strict(schema)}
    return {"type": "json_schema", "json_schema": named}


def _strict(schema: Any) -> bool:
    """Whether the schema is closed, as OpenAI demands of those it holds: nothing optional or extra."""
    if isinstance(schema, Mapping):
        if "properties" in schema and (schema.get("additionalProperties") is not False
                                       or set(schema["properties"]) != set(schema.get("required", ()))):
            return False
        return all(map(_strict, schema.values()))
    return all(map(_strict, schema)) if isinstance(schema, list | tuple) else True
