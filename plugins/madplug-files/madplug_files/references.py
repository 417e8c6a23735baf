"""Choices, and which of them a reference means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from madplug_files.cells import as_list, as_word, is_empty, parse

_TEXT = {str}
Wanted = Literal["auto", "letter", "index", "position", "text", "set", "verbatim"]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS = [tuple(LETTERS[:number]) for number in range(len(LETTERS) + 1)]


class Choices(NamedTuple):
    """The choices of a row."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """In upper case; empty where the choices are a plain list."""
    numbers: bool = False
    """The choices were written as numbers, so that a number may mean one of them."""

    def readings(self, value: Any, text: str) -> dict[str, int]:
        """Which choice a reference could mean, by how it is read."""
        found: dict[str, int] = {}
        label, letters = text.strip("()[]{}.: ").upper(), self.labels or _LETTERS[len(self.texts)]
        if label in letters:
            found["letter"] = letters.index(label)
        number = type(value) is not str and isinstance(value, int | float) and not isinstance(value, bool)
        texts, wanted = self.texts, text
        if text not in texts:
            texts, wanted = tuple([choice.casefold() for choice in texts]), text.casefold()
        if (self.numbers or not number) and texts.count(wanted) == 1:
            found["text"] = texts.index(wanted)
        if text.isdecimal() and len(text) < 8:
            index = int(text)
            found |= {"index": index} if 0 <= index < len(self.texts) else {}
            found |= {"position": index - 1} if 1 <= index <= len(self.texts) else {}
        return found

    def only(self, found: Mapping[str, int], value: Any) -> int | None:
        """The one choice that all readings agree on, or None.

        A position from 1 is never assumed; a label of the file's own is always meant.
        """
        if self.labels and "letter" in found:
            return found["letter"]
        found = {how: choice for how, choice in found.items() if how != "position"} if "position" in found else found
        if len(set(found.values())) > 1:
            meant = " or ".join(f"{how} {LETTERS[choice]}" for how, choice in found.items())
            raise ValueError(f"the reference {value!r:.80} can be read as {meant}; say which with reference_as")
        return next(iter(found.values()), None)


def as_choices(value: Any) -> Choices:
    """The choices in a cell: a list, a table of label to text, lists of `label` and `text`, or these as JSON."""
    if type(value) is list and 2 <= len(value) <= len(LETTERS) and {*map(type, value)} == _TEXT:  # nearly every row
        texts = tuple(map(as_word, value)) if all(map(str.strip, value)) else ()
        if texts:
            return Choices(texts)
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = parse(value)
    if is_empty(value):
        return Choices()
    labels: Any = ()
    if isinstance(value, Mapping):
        labels, value = (value.get("label") or (), value["text"]) if isinstance(value.get("text"), list) \
            else (list(value), list(value.values()))
    if not isinstance(value, list | tuple) or not isinstance(labels, list | tuple):
        raise ValueError(f"the choices are {value!r:.80}; expected a list, a table of label to text, or either as "
                         "JSON")
    if not 2 <= len(value) <= len(LETTERS):
        raise ValueError(f"has {len(value)} choices; expected 2 to {len(LETTERS)}")
    if labels and len(labels) != len(value):
        raise ValueError(f"has {len(labels)} labels for {len(value)} choices")
    for position, choice in enumerate(value, start=1):
        if is_empty(choice):
            raise ValueError(f"choice {position} is empty")
    names = tuple(str(label).strip().upper() for label in labels)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the label '{twice}' occurs twice")
    return Choices(tuple(map(as_word, value)), names,
                   all(isinstance(choice, int | float) for choice in value))


def references(value: Any, choices: Choices, wanted: Wanted) -> tuple[str, ...]:
    """The references in a cell: several in a list, an empty list for a question without an answer."""
    if isinstance(value, str) and value.startswith("[") and (choices.texts or wanted != "verbatim"):
        value = parse(value) if choices.texts else as_list(value)
    if wanted == "set" and choices.texts:
        return together(value, choices)
    if not isinstance(value, list | tuple):
        return (reference(value, choices, wanted),)
    return tuple(dict.fromkeys(reference(v, choices, wanted) for v in value))


def together(value: Any, choices: Choices) -> tuple[str, ...]:
    """One reference, the letters of all right choices: from a list, or from letters as in `AC` or `A, C`."""
    if not isinstance(value, list | tuple):
        text = as_word(value)
        letters = [part.strip("()[]") for part in re.split(r"[\s,;]+", text)]
        letters = list(letters[0]) if len(letters) == 1 else letters
        known = choices.labels or _LETTERS[len(choices.texts)]
        value = letters if {letter.upper() for letter in letters} <= set(known) else [value]
    right = {reference(v, choices, "auto") for v in value}
    return ("".join(sorted(right)),) if right else ()


def reference(value: Any, choices: Choices, wanted: Wanted) -> str:
    """One reference as text; the letter of the right choice where there are choices."""
    text = as_word(value)
    if not choices.texts or wanted == "verbatim":
        return text
    found = choices.readings(value, text)
    chosen = choices.only(found, value) if wanted == "auto" else found.get(wanted)
    same = [LETTERS[i] for i, choice in enumerate(choices.texts) if choice == text]
    if chosen is None and len(same) > 1:
        raise ValueError(f"the reference {value!r:.80} is choice {' and '.join(same)} of this row; write the letter "
                         "of one")
    if chosen is None:
        hint = "; reference_as = \"position\" counts from 1" if wanted == "auto" and "position" in found else ""
        parts = re.split(r"[\s,;]+", text)
        if wanted == "auto" and len(parts) > 1 and all("letter" in choices.readings(part, part) for part in parts):
            hint = "; reference_as = \"set\", and several = true of the answers, where all of them together are right"
        kind = "a choice" if wanted == "auto" else f"the {wanted} of a choice"
        raise ValueError(f"the reference {value!r:.80} is not {kind} of this row "
                         f"(A to {LETTERS[len(choices.texts) - 1]}: {'; '.join(choices.texts):.200}){hint}")
    return LETTERS[chosen]
