"""The requests and messages of a debate, each line of them stored once.

Most of a request is what earlier requests of the same debate contained. A long request is recorded as a series of
references to a book of the debate's lines, to which its new lines are added: what is stored grows with what is new.
Lines that a model has written are not added: the book refers to the call with this reply, and so does a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from madplug.rows import to_json

REFER_FROM = 100
"""Characters from which on a reply is referred to."""
FOLD_FROM = 1_000
"""Characters from which on a request is recorded as references."""
SPELL_OUT = 16
"""Up to so many ids are recorded one by one."""
_SHORT = 20
"""Characters: a shorter piece, such as the end of a line, is looked for only beside a longer one."""
SEPARATOR = "\n"
"""Between the pieces of a part: one line of JSON does not contain it."""
_LONGEST = 200_000_000
_MOST_IDS = 1_000_000
"""Characters and ids that references may lead to: a file that leads to more was not written by a study."""
_BREAK = "\\n"
_BETWEEN = re.compile(r'("\},\{"role":"\w+","content":")')
"""In JSON: the end of a line, and the end of a message that another one follows."""
_SAYS, _LONGEST_NAME = ": ", 60
"""What follows the name of a speaker; an agent's own messages are shown to it without."""


Part = tuple[int, Optional[str], Optional[bytes]]  # noqa: UP045 - evaluated on Python 3.10
"""Lines of a book: the number of the first one, and their text, or else the key of the call with this reply."""


class Book:
    """The lines of a debate's requests, in the order in which they first occurred."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._first: dict[str, int] = {}
        self._replies: dict[str, tuple[bytes, list[str]]] = {}

    def fold(self, request: str) -> tuple[str, list[Part]]:
        """A request as references, and what to add to the book."""
        lines, before = divide(request), len(self._lines)
        ranges: list[tuple[int, int]] = []
        new = at = 0  # lines[new:at] were not found so far
        while at < len(lines):
            known = self._first.get(lines[at])
            if known is None:
                at += 1
                continue
            length = _common(self._lines, known, lines, at)
            while known and at > new and self._lines[known - 1] == lines[at - 1]:
                known, at, length = known - 1, at - 1, length + 1
            ranges += [self._add(lines[new:at]), (known, length)]
            at = new = at + length
        ranges.append(self._add(lines[new:]))
        return _written(ranges), list(self._parts(before))

    def expect(self, key: bytes, reply: str) -> None:
        """A reply that later requests may show; the book then refers to it."""
        lines = reply_lines(reply)
        self._replies.setdefault(lines[0], (key, lines))

    def _parts(self, start: int) -> Iterator[Part]:
        """The lines from a number on: replies by their key, the others as text."""
        lines, at = self._lines, start if self._replies else len(self._lines)
        while at < len(lines):
            key, reply = self._replies.get(lines[at], (None, []))
            if key is not None and lines[at:at + len(reply)] == reply:
                if start < at:
                    yield start, SEPARATOR.join(lines[start:at]), None
                yield at, None, key
                start = at = at + len(reply)
            else:
                at += 1
        if start < at:
            yield start, SEPARATOR.join(lines[start:at]), None

    def _add(self, lines: Sequence[str]) -> tuple[int, int]:
        start = len(self._lines)
        for number, line in enumerate(lines, start):
            if len(line) >= _SHORT:
                self._first.setdefault(line, number)
        self._lines += lines
        return start, len(lines)


def divide(text: str) -> list[str]:
    """The pieces of a request: lines without their speakers, and what stands between them."""
    found: list[str] = []
    for line in text.split(_BREAK):
        for piece in _BETWEEN.split(line) if '"},{' in line else (line,):
            said = piece.find(_SAYS, 0, _LONGEST_NAME) + len(_SAYS)
            if said >= len(_SAYS) and said < len(piece):
                found += (piece[:said], piece[said:])
            elif piece:
                found.append(piece)
        found.append(_BREAK)
    found.pop()
    return found


def reply_lines(text: str) -> list[str]:
    """The pieces of a reply as they occur in a request that shows it, and what stands between them."""
    first, *others = to_json(text)[1:-1].split(_BREAK)
    return [piece for piece in (first, *(piece for line in others for piece in (_BREAK, line))) if piece]


def lines_of(parts: Iterable[tuple[int, str | None, str | None]]) -> list[str]:
    """The lines of a book: of each part the number of its first line, its text, and the reply that it refers to.

    Raises `ValueError` if some are missing.
    """
    lines: list[str] = []
    for line, text, reply in parts:
        if line != len(lines) or (text is None) == (reply is None):
            raise ValueError("lines of its requests are missing")
        lines += reply_lines(reply) if text is None else text.split(SEPARATOR)  # type: ignore[arg-type]
    return lines


def unfold(references: str, lines: Sequence[str]) -> str:
    """The request that references to the lines of a book stand for. Raises `ValueError` if they lead nowhere."""
    parts, length = [], 0
    for start, count in _read(references):
        if not 0 <= start < start + count <= len(lines):
            raise ValueError("its request refers to lines that are not there")
        parts.append("".join(lines[start:start + count]))
        length += len(parts[-1])
        if length > _LONGEST:
            raise ValueError("its request is too long")
    return "".join(parts)


def last_line(references: str) -> int:
    """How many lines a book must have for the references. Raises `ValueError`."""
    return max((start + count for start, count in _read(references)), default=0)


def fold_ids(ids: Sequence[int]) -> str:
    """Ids in their order, those in a row as their first and their number."""
    ranges: list[tuple[int, int]] = []
    for id in ids:
        if ranges and id == sum(ranges[-1]):
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
        else:
            ranges.append((id, 1))
    return _written(ranges)


def with_seen(record: str, seen: str) -> str:
    """The JSON of a message that was recorded without the ids it saw, with them. Raises `ValueError`."""
    ids: list[str] = []
    for start, count in _read(seen):
        if count > _MOST_IDS - len(ids):
            raise ValueError("it has seen too much")
        ids += map(str, range(start, start + count))
    return record.replace('"seen":[]', f'"seen":[{",".join(ids)}]', 1)


def restore(record: str, seen: str | None, reply: bytes | None, text: str | None) -> str:
    """The JSON of a message with what was left out of it. text: of the call that it refers to. Raises `ValueError`."""
    if seen is not None:
        record = with_seen(record, seen)
    if reply is None:
        return record
    if not isinstance(text, str):
        raise ValueError("the call whose reply it is is not there")
    return record.replace('"content":""', f'"content":{to_json(text)}', 1)


def _common(book: Sequence[str], first: int, lines: Sequence[str], at: int) -> int:
    """How many lines from two places on are the same."""
    most = min(len(book) - first, len(lines) - at)
    same, step = 1, 4
    while step:  # in steps that grow while lines are the same, and shrink after that
        end = min(same + step, most)
        if end > same and book[first + same:first + end] == lines[at + same:at + end]:
            same, step = end, step * 4
        else:
            step = min(step // 4, most - same)
    return same


def _written(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges of numbers, those joined that follow upon each other."""
    joined: list[tuple[int, int]] = []
    for start, count in ranges:
        if not count:
            continue
        if joined and start == sum(joined[-1]):
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((start, count))
    return ",".join(str(start) if count == 1 else f"{start}+{count}" for start, count in joined)


def _read(ranges: str) -> list[tuple[int, int]]:
    return [(int(start), int(count or 1)) for start, _, count in (each.partition("+") for each in ranges.split(","))]
