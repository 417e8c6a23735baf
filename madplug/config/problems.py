"""Problems of a run file in words, and secrets that must not be in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from madplug.errors import Problem, nearest, nearest_or_all
from madplug.options import unions
from madplug.rows import place_in, without_members

_WORDS = {"missing": "is required", "int_type": "expected a whole number", "int_parsing": "expected a whole number",
          "int_parsing_size": "expected a whole number",
          "int_from_float": "expected a whole number", "finite_number": "expected a number that is not infinite or NaN",
          "string_type": "expected text", "bool_type": "expected true or false",
          "list_type": 'expected a list, even of one: ["..."], or [[...]] of tables; with --set, KEY=["..."] in single '
                       'quotes',
          "bool_parsing": "expected true or false", "dict_type": "expected a table", "model_type": "expected a table",
          "float_type": "expected a number", "float_parsing": "expected a number", "tuple_type": "expected a list"}
_SECRET = re.compile(r"((sk|rk|pk|xai)-|(hf|gsk|ghp|sk|pk)_|AIza|Bearer )(?=\S*\d)[-_A-Za-z0-9]{15,}")
_SECRET_NAME = re.compile(r"(^|[_-])(api[_-]?key|access[_-]?token|auth[_-]?token|password|secret|authorization)$",
                          re.IGNORECASE)
_SECRET_PARAMETER = re.compile(r"(^|[?&;])(api[_-]?key|key|token|access[_-]?token|secret|password)=[^&;]+",
                               re.IGNORECASE)
_PLACEHOLDER = re.compile(r"(?<![\w\\])\{(\w+)(?::\w+)?\}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_LONG_RUN = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{24,}")
"""An unbroken run of letters and digits, longer than the words and dates that URLs contain."""


def problems_of(error: ValidationError, place: str, model: type[BaseModel], what: str,
                more: Iterable[str] = ()) -> Iterator[Problem]:
    """What pydantic found, in words; values are never repeated, since one of them may be a secret.

    model: what was validated. what: its name in messages. more: the keys of other tables in full, one of
    which may have been meant.
    """
    for found in _of_one_member(error.errors(include_url=False, include_input=False, include_context=False)):
        where = place_in(found["loc"], place)
        last = str(found["loc"][-1]) if found["loc"] else ""
        if found["type"] == "extra_forbidden":
            known = fields_at(model, found["loc"][:-1])
            yield Problem(where, key_refused(last) if _SECRET_NAME.search(last) else _unknown(last, known, what, more)
                          if known else f"{what} has no such key")
        else:
            bare = found["type"] == "list_type" and found["loc"][0] == "sweep" and "." not in last
            yield Problem(where, f'expected a list of values; a dotted key stands in quotes: "{last}.KEY" = [...]'
                          if bare else _WORDS.get(found["type"], _lower(found["msg"])))


def _of_one_member(errors: Sequence[Any]) -> Iterator[Any]:
    """The errors, with one for a value that is of no type of a union: that of a type which it could have been."""
    by_place: dict[Any, list[Any]] = {}
    for found in errors:
        place = without_members(found["loc"])
        by_place.setdefault(place, []).append({**found, "loc": place})
    for same in by_place.values():
        yield next((found for found in same if not found["type"].endswith(("_type", "_parsing"))), same[0])


def unfilled(options: BaseModel, place: str) -> Iterator[Problem]:
    """Placeholders in prompts of a run file that nothing fills: neither the description of the option nor its default
    has them. A brace that follows a letter or a backslash is LaTeX."""
    for name in options.model_fields_set:
        field, value = type(options).model_fields[name], getattr(options, name)
        known = sorted({*_PLACEHOLDER.findall(f"{field.description} {field.default}")})
        if not known and not (field.description or "").startswith("prompt"):
            continue
        texts = [value] if isinstance(value, str) else value.values() if isinstance(value, Mapping) else value or ()
        used = dict.fromkeys(odd for text in texts if isinstance(text, str) for odd in _PLACEHOLDER.findall(text))
        for odd in [odd for odd in used if odd not in known]:
            has = f"it has {', '.join(f'{{{one}}}' for one in known)}" if known else "it has none"
            yield Problem(f"{place}.{name}", f"there is no placeholder {{{odd}}}; {has}{nearest(odd, known)}")


def _unknown(name: str, known: Sequence[str], what: str, more: Iterable[str]) -> str:
    if "." in name:
        return f"{what} has no such key; write {name} = ... without quotes: in them, a dot does not lead into a table"
    thing = "option" if "." in what else "key"
    elsewhere = next((full for full in more if full.rpartition(".")[2] == name), None)
    if elsewhere is not None:
        return f"{what} has no such {thing} here; did you mean '{elsewhere}'" + \
            ("?" if "." in elsewhere else ", at the top of the file?")
    near = nearest_or_all(name, known)
    absent = what == "a run file" and "choose from" in near
    return f"{what} has no such {thing}{near}{', or install the plugin that has it' * absent}"


def fields_at(model: Any, place: Sequence[str | int]) -> list[str]:
    """The keys that a table nested in a model may have."""
    for step in place:
        model = _inside(model, step)
    return [name for kind in unions(model) for name in getattr(kind, "model_fields", {})]


def _inside(model: Any, step: str | int) -> Any:
    for kind in unions(model):
        fields = getattr(kind, "model_fields", {})
        if step in fields:
            return fields[step].annotation
        if get_origin(kind) in (list, tuple, dict) and get_args(kind):
            return get_args(kind)[-1]
    return None


def key_refused(option: str) -> str:
    """The message about a secret in a run file."""
    return (f"this looks like a secret, which must not be in a run file; remove '{option}', put the key into an "
            "environment variable: the one that api_key_env names, or a library reads, such as HF_TOKEN")


def secrets(table: Any, place: str = "") -> Iterator[Problem]:
    """Values anywhere in the file that look like secrets, including URLs that contain one."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            if _SECRET.fullmatch(str(key).strip()):  # not named: it would be shown
                yield Problem(place, key_refused("this key"))
                continue
            where = f"{place}.{key}".strip(".")
            if _SECRET_NAME.search(key) and isinstance(value, str):
                yield Problem(where, key_refused(key))
            else:
                yield from secrets(value, where)
    elif isinstance(table, list):
        for i, value in enumerate(table):
            yield from secrets(value, f"{place}[{i}]")
    elif isinstance(table, str) and _SECRET.fullmatch(table.strip()):
        yield Problem(place, key_refused(place.rpartition(".")[2]))
    elif isinstance(table, str) and (part := secret_part(table)):
        yield Problem(place, f"{part} of this address looks like a secret, which must not be in a run file; remove it, "
                      "put the key into an environment variable: the one that api_key_env names, or a library reads")


def secret_part(text: str) -> str | None:
    """The part of a URL that looks like a secret, or None."""
    if not _ADDRESS.fullmatch(text.strip()):
        return None
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return None
    if "@" in parts.netloc:
        return "the user name or password"
    if _SECRET_PARAMETER.search(parts.query) or _looks_secret(re.split(r"[&;=]", parts.query)):
        return "a parameter"
    return "a part" if _looks_secret(parts.path.split("/")) else None


def _looks_secret(segments: Iterable[str]) -> bool:
    return any(_SECRET.fullmatch(s) or _LONG_RUN.search(s) for s in segments)


def _lower(message: str) -> str:
    message = message.removeprefix("Value error, ").removeprefix("Input ").replace(" after validation", "")
    return message[:1].lower() + message[1:]
