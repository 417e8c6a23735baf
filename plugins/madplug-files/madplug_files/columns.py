"""From a row to a sample: which column holds what, and what a reference means."""

from __future__ import annotations

import ast
import base64
import json
import math
import mimetypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from madplug import Problem, Sample, UserError

Row = Mapping[str, Any]
Wanted = Literal["auto", "letter", "index", "position", "text", "verbatim"]
PARTS = ("id", "question", "choices", "reference", "context", "images", "group")
REQUIRED = ("question", "reference")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KINDS = {b"\x89PN": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF": "image/gif", b"RIF": "image/webp"}
"""An image's kind by how its bytes begin: a name is not always there, and not always right."""


def problem(place: str, message: str) -> UserError:
    """An error with its place."""
    return UserError([Problem(place, message)])


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?`, or nothing."""
    found = get_close_matches(name.lower(), by_lower := {k.lower(): k for k in known}, n=1)
    return f"; did you mean '{by_lower[found[0]]}'?" if found else ""


def known_columns(value: Any) -> Any:
    """`[dataset.columns]` as the option keeps it; refuses a key that is no part of a sample."""
    if not isinstance(value, Mapping):
        return value
    for key in value:
        if key not in PARTS:
            raise ValueError(f"there is no '{key}' in a sample{nearest(str(key), PARTS)} (it has {', '.join(PARTS)})")
    return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}


@dataclass(frozen=True)
class Columns:
    """The columns of one file."""

    named: Mapping[str, tuple[str, ...]]
    """By part of a sample: the column, or the columns, that hold it. Parts the file does not have are left out."""
    kept: tuple[str, ...]
    wanted: Wanted
    folder: Path

    @classmethod
    def chosen(cls, options: Any, present: Row) -> Columns:
        """What the options name; of the rest what is required, and what the file has under the part's own name."""
        named = {part: (name,) if isinstance(name, str) else tuple(name) for part, name in options.columns.items()}
        for part in PARTS:
            if part not in named and (part in REQUIRED or part in present):
                named[part] = (part,)
        return cls(named, options.metadata, options.reference_as, options.path.parent)

    def missing(self, present: Row) -> Iterator[str]:
        """What is wrong with the names, given every column the first rows have."""
        there = ", ".join(map(str, present))
        for part, names in [*self.named.items(), ("metadata", self.kept)]:
            for name in names:
                if not _has(present, name):
                    setting = "" if name != part else f"; say which one is with columns.{part} = \"...\""
                    yield (f"has no column '{name}' for the {part}{nearest(name, map(str, present))}{setting} "
                           f"(it has {there})")

    def sample(self, row: Row, place: str, name: str) -> tuple[Sample, tuple[str, ...]]:
        """The sample of a row and its references. Raises `UserError` with the place of what is wrong."""
        try:
            return self._sample(row, name)
        except ValueError as error:
            raise problem(place, str(error)) from None

    def _sample(self, row: Row, name: str) -> tuple[Sample, tuple[str, ...]]:
        choices = as_choices(self.value(row, "choices"))
        if "id" in self.named:
            name = as_text(self.value(row, "id"), "id")
        group = self.value(row, "group")
        sample = Sample(
            name, as_text(self.value(row, "question"), "question"), choices.texts,
            tuple(as_text(v, "context") for v in as_list(self.value(row, "context"))),
            tuple(as_image(v, self.folder) for v in as_list(self.value(row, "images"))),
            "" if _empty(group) else as_text(group, "group"),
            {column: _at(row, column) for column in self.kept if _has(row, column)})
        return sample, references(self.value(row, "reference"), choices, self.wanted)

    def value(self, row: Row, part: str) -> Any:
        """What the columns of a part hold: one value, or the list of several columns' values."""
        names = self.named.get(part, ())
        if len(names) == 1:
            return _at(row, names[0])
        values = [_at(row, name) for name in names]
        return [value for value in values if not _empty(value)] if values else None


def taken_twice(name: str, place: str, seen: dict[str, str]) -> None:
    """Refuses an id that another row has; `seen` keeps who has which."""
    if name in seen:
        raise problem(place, f"the id '{name}' is taken by {seen[name]}; ids must differ")
    seen[name] = place.rpartition(": ")[2]


def group_of(row: Row, column: str, place: str) -> str:
    """The value of the column by which a sample is divided."""
    if not _has(row, column):
        raise problem(place, f"has no column '{column}' to stratify by{nearest(column, map(str, row))} "
                             f"(it has {', '.join(map(str, row))})")
    value = _at(row, column)
    return "" if _empty(value) else as_text(value, column)


# References

@dataclass(frozen=True)
class Choices:
    """The choices of a row."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """In upper case; empty where the choices are a plain list."""
    numbers: bool = False
    """The choices were written as numbers, so that a number may mean one of them."""

    def readings(self, value: Any, text: str) -> dict[str, int]:
        """Which choice a reference could mean, by how it is read."""
        found: dict[str, int] = {}
        label, letters = text.strip("()[]{}.: ").upper(), self.labels or tuple(LETTERS[:len(self.texts)])
        if label in letters:
            found["letter"] = letters.index(label)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        same = [i for i, choice in enumerate(self.texts) if choice == text] or \
            [i for i, choice in enumerate(self.texts) if choice.casefold() == text.casefold()]
        if len(same) == 1 and (self.numbers or not number):
            found["text"] = same[0]
        if number or text.isdecimal():
            index = int(float(text))
            found |= {"index": index} if 0 <= index < len(self.texts) else {}
            found |= {"position": index - 1} if 1 <= index <= len(self.texts) else {}
        return found

    def only(self, found: Mapping[str, int], value: Any) -> int | None:
        """The one choice that all readings agree on. A position from 1 is never assumed; a label of the file's
        own is always meant."""
        if self.labels and "letter" in found:
            return found["letter"]
        found = {how: choice for how, choice in found.items() if how != "position"}
        if len(set(found.values())) > 1:
            meant = " or ".join(f"{how} {LETTERS[choice]}" for how, choice in found.items())
            raise ValueError(f"the reference {value!r:.80} can be read as {meant}; say which with reference_as")
        return next(iter(found.values()), None)


def references(value: Any, choices: Choices, wanted: Wanted) -> tuple[str, ...]:
    """The references in a cell: several in a list, an empty list for a question without an answer."""
    if isinstance(value, str) and value.startswith("[") and choices.texts:
        value = _written(value)
    if not isinstance(value, list | tuple):
        return (reference(value, choices, wanted),)
    return tuple(dict.fromkeys(reference(v, choices, wanted) for v in value))


def reference(value: Any, choices: Choices, wanted: Wanted) -> str:
    """One reference as text; the letter of the right choice where there are choices."""
    text = as_text(value, "reference")
    if not choices.texts or wanted == "verbatim":
        return text
    found = choices.readings(value, text)
    chosen = choices.only(found, value) if wanted == "auto" else found.get(wanted)
    if chosen is None:
        hint = "; reference_as = \"position\" counts from 1" if wanted == "auto" and "position" in found else ""
        raise ValueError(f"the reference {value!r:.80} is no {'choice' if wanted == 'auto' else wanted} of this row "
                         f"(A to {LETTERS[len(choices.texts) - 1]}: {'; '.join(choices.texts):.200}){hint}")
    return LETTERS[chosen]


# Cells

def as_text(value: Any, part: str) -> str:
    """A cell as text; nothing in it is an error."""
    if _empty(value):
        raise ValueError(f"has no {part}")
    if isinstance(value, str):
        text = value if part in ("question", "context") else value.strip()
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        text = str(int(value))
    elif isinstance(value, Mapping | list | tuple):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.encode("utf-8", "replace").decode()  # a lone surrogate from JSON could not be stored


def as_list(value: Any) -> list[Any]:
    """A cell as a list: a list, one written as JSON or Python in a cell, a single value, or nothing."""
    if _empty(value):
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        written = _written(value)
        several = isinstance(written, list) and all(isinstance(v, str) for v in written)
        return written if several else [value]
    return list(value) if isinstance(value, list | tuple) else [value]


def as_choices(value: Any) -> Choices:
    """The choices in a cell: a list, a table of label to text, lists of `label` and `text`, or these as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = _written(value)
    if _empty(value):
        return Choices()
    labels: Sequence[Any] = ()
    if isinstance(value, Mapping):
        labels, value = (value.get("label") or (), value["text"]) if isinstance(value.get("text"), list) \
            else (list(value), list(value.values()))
    if not isinstance(value, list | tuple):
        raise ValueError(f"the choices are {value!r:.80}; expected a list, a table of label to text, or either as "
                         "JSON")
    if not 2 <= len(value) <= len(LETTERS):
        raise ValueError(f"has {len(value)} choices; expected 2 to {len(LETTERS)}")
    return Choices(tuple(as_text(choice, "choice").strip() for choice in value),
                   tuple(str(label).strip().upper() for label in labels),
                   all(isinstance(choice, int | float) for choice in value))


def as_image(value: Any, folder: Path) -> str:
    """An image as an address: an address as it is, a file or bytes as a `data:` address."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path") or value.get("url")
    if isinstance(value, str) and value.startswith(("data:", "http://", "https://")):
        return value
    name, data = "image.png", value
    if isinstance(value, str):
        name = value
        try:
            data = (folder / value).read_bytes()
        except (OSError, ValueError) as error:
            raise ValueError(f"the image '{value:.200}' cannot be read: {getattr(error, 'strerror', error)}") from None
    if not isinstance(data, bytes):
        raise ValueError(f"the image is {value!r:.80}; expected an address, a file's path or bytes")
    kind = _KINDS.get(data[:3]) or mimetypes.guess_type(name)[0] or "image/png"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _written(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) \
        or (isinstance(value, str | bytes) and not value.strip())


def _at(row: Any, name: str) -> Any:
    """The value under a name; dots lead into tables and, with a number, into lists."""
    if isinstance(row, Mapping) and name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if isinstance(row, list) and first.isdecimal() and int(first) < len(row):
        inner = row[int(first)]
    elif dot and isinstance(row, Mapping):
        inner = row.get(first)
    else:
        return None
    if isinstance(inner, str) and dot and inner.lstrip()[:1] in ("[", "{"):
        inner = _written(inner)
    return _at(inner, rest) if dot else inner


def _has(row: Row, name: str) -> bool:
    return name in row or ("." in name and name.partition(".")[0] in row)
