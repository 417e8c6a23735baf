"""The form of a reply, in the request fields of each server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from madplug import RefusedError
from madplug_prompting.grammar import NoGrammarError, grammar_of

MOST_REPETITIONS = 1000
"""A server of llama.cpp refuses grammars with more than 2,000; this leaves room for nested repetitions."""
Structured = Literal["none", "json_schema", "vllm", "sglang", "llamacpp"]


def fields(form: Mapping[str, Any] | None, structured: Structured) -> dict[str, Any]:
    """The fields of the request's body that constrain a reply to a form; none where the server cannot."""
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
        return {"grammar": value} if kind == "grammar" else _grammar(value)
    return {}


def _grammar(pattern: str) -> dict[str, Any]:
    """A regular expression for llama.cpp's server, which takes grammars only; none where no grammar says it."""
    try:
        return {"grammar": grammar_of(pattern, MOST_REPETITIONS)}
    except NoGrammarError:
        return {}


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema as OpenAI takes it."""
    named = {"name": "reply", "schema": schema, "strict": _strict(schema)}
    return {"type": "json_schema", "json_schema": named}


def _strict(schema: Any) -> bool:
    """Whether the schema is closed, as OpenAI demands: nothing optional or extra."""
    if isinstance(schema, Mapping):
        if "properties" in schema and (schema.get("additionalProperties") is not False
                                       or set(schema["properties"]) != set(schema.get("required", ()))):
            return False
        return all(map(_strict, schema.values()))
    return all(map(_strict, schema)) if isinstance(schema, list | tuple) else True
