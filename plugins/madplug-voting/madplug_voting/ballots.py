"""Reading a ballot: which solutions an agent stated, as numbers of the list it was shown.

A ballot comes in words or as JSON. Only what is stated is read: "I vote for 0, not 1" is a vote for 0, "2 because
3 is bad" one for 2. What could mean two things, or names a number that is not on the list, is refused with the
reason, and the agent is asked again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from madplug_prompting.patterns import regex
from madplug_prompting.replies import read_json, without_thoughts

ENDS = 4000
"""This many characters at either end of a reply are read."""


class Refused(ValueError):
    """A reply that is not a valid ballot; the message says why."""


# A number of the list, with the noun and the brackets around it, is written as `@2` before anything is looked for.
_NOUN = r"(?:solutions?|candidates?|options?|choices?|answers?|proposals?)"
_NUMBER = r"(?:numbers?|no\.|nr\.|#)"
_ITEM = regex(rf"(?:{_NOUN} ?)?(?:{_NUMBER} ?)?[#(\[\"'`]{{0,2}}"
              r"(?<![\w.\-])(-?\d{1,6})(?!\w|\.\d|%| ?[-–] ?\d)[)\]\"'`]{0,2}")
# What follows a number in brackets and names no other: `1 (green)`; or denies one: `1 (not 2)`.
_REMARK = regex(r"(?<![\w.\-])(\d{1,6}[)\]\"'`]{0,2}) ?\((?:[^()\d\n]{1,200}|(?:not|and not) [^()\n]{1,60})\)")
_RUN = r"@-?\d+(?:(?: ?(?:, ?and|,|;|>|&|\n|\band\b) ?| )@-?\d+)*"
_QUOTED = regex(r"[\"“„«][^\"“”„«»\n]*[a-z] [^\"“”„«»\n]*[\"”“»]"
                r"|(?<!\w)'[^'\n]{0,300}[a-z][ :][^'\n]{0,300}'(?!\w)")
_QUOTED_LINE = regex(r"(?m)^ ?>.*\n?")
_DENIED = regex(r"(?:\b(?:not|never|no|cannot|against|instead of|rather than)\b|n't)[^.,;:\n]{0,25}$"
                r"|\b(?:worst|weakest|wrong|incorrect|flawed) \w?$")


# One solution

_VOTES = tuple(regex(words + r"(?: (?:is|goes|to|for|the|with|in|favou?r|of)\b)*[ :=\-]*@(-?\d+)") for words in (
    # What is called final counts before what is said in the first person, and that before the rest.
    r"\bfinal (?:vote|ballot|answer|choice|decision)",
    r"\b(?:my (?:vote|ballot|choice)|i(?:'ll|'d|'m| am)?(?: (?:will|would|do|must|can|now|therefore|thus|hereby))*"
    r" (?:vote|voting|cast my vote|choose|pick|select|support|prefer|favou?r|go))",
    r"\bvot(?:e|es|ing)",
    r"\b(?:best|right|correct) (?:solution|one|answer|candidate|option)",
))
_BEST = regex(r"(?<!agent )(?<!participant )(?<!expert )@(-?\d+) "
              r"(?:is|seems|looks) (?:clearly |definitely )?(?:the )?(?:best|right|correct)\b")
_REASON = regex(r"[\W_]*@(-?\d+)(?:,? (?:because|since|as|due)\b|,? not @)")
_ANSWER = regex(r"\b(?:answer|solution|choice)(?: (?:is|to|for|the|this|that|would|be)\b)*[ :=\-]*@(-?\d+)")
_FIRST = regex(r"[\W_]*@(-?\d+)(?: ?[.,:;\n\-–—]|\Z)")
_LONE = regex(r"[\W_]*(?:(?:final |my )?vote(?: for)?[ :=]*)?@(-?\d+)[\W_]*")
_ANOTHER = regex(r" ?(?:,? ?\b(?:or|and)\b|,|/|&) ?(?:maybe |perhaps |also )?@(-?\d+)")


def one(text: str, allowed: Collection[int]) -> int:
    """The one solution a reply votes for."""
    for numbers in _choices(clean(text)):
        if len(set(numbers)) > 1:
            raise Refused(f"it names more than one solution: {listed(dict.fromkeys(numbers))}")
        if numbers:
            return checked(numbers, allowed)[0]
    raise Refused("it names no solution")


def _choices(text: str) -> Iterator[list[int]]:
    """The numbers a text states, form by form, the most explicit first."""
    yield _from_json(text, "vote", "solution", "choice", "answer", "ballot")
    whole, said = mark(text), mark(_QUOTED.sub(" ", text))
    yield _alone(whole)
    for form in _VOTES:
        yield _stated(form, said)
    yield _stated(_BEST, said)
    yield [n for line in _outer_lines(whole) for n in _alone(line)]
    yield _found(_REASON.match(whole))
    if len(set(re.findall(r"@-?\d+", whole))) == 1:
        yield _found(_FIRST.match(whole))
        yield _stated(_ANSWER, said)  # could be about the question, too, where other numbers are named


def _stated(form: re.Pattern[str], text: str) -> list[int]:
    """The numbers of all statements of a form that are not denied, and those joined to them."""
    found: list[int] = []
    for match in form.finditer(text):
        if not _denied(text, match):
            found += [*_found(match), *_found(_ANOTHER.match(text, match.end()))]
    return found


def _alone(text: str) -> list[int]:
    return _found(_LONE.fullmatch(text))


# Several solutions

_APPROVES = regex(r"\b(?:approv(?:e|ed|al|als|ing)|accept)(?: (?:of|is|are|for|both|the|to)\b)*[ :=]*"
                  rf"({_RUN})")
_RANKS = regex(r"\b(?:rank(?:s|ed|ing)?|order)"
               r"(?: (?:the|of|is|are|would|be|as|them|solutions|from|best|to|worst)\b)*"
               rf"[ :=]*({_RUN})")
_LIST = regex(rf"[^\w@]*({_RUN})[^\w@]*")
_GIVES = regex(r"\b(?:answers?|votes?|ballot|choices?|selection|picks?)(?: (?:is|are|goes|go|to|for)\b)*[ :=]*"
               rf"({_RUN})")
_NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ALL = regex(
    r"[^\w\n]*(?:i |we )?(?:vote for |(?:approve|accept|choose|support)(?: of)? )?(?P<how>all|every|each|both)(?: of)?"
    rf"(?: (?:the|these|those|them|{'|'.join(_NAMES)}|\d+|proposed|given|listed))*"
    rf"(?: {_NOUN})?"
    r"(?: (?:is|are|seem|seems|look|looks) (?:acceptable|approved|fine|good|right|correct|valid|reasonable|ok|okay))?"
    r"[^\w\n]*")
_PLACED = regex(r"@(\d+)\W*@(-?\d+)\W*")


_REVERSED = regex(r"\b(?:revers\w+|inverse) (?:order|rank\w*)|\brank(?:s|ed|ing)?(?: the)? worst"
                  r"|\b(?:from )?(?:the )?worst(?: one)?,? (?:first|to(?: the)? best)")


def several(text: str, allowed: Collection[int]) -> list[int]:
    """The solutions a reply approves, each once and in the order of the list; what is not on it does not count."""
    text = clean(text)
    whole = mark(text)
    if _approves_all(text, allowed):
        return sorted(allowed)
    found = _from_json(text, "approve", "approved", "approval", "solutions", "vote", "votes", "ballot") or _list(whole)
    found = found or [n for run in _runs(_APPROVES, text) for n in run] or _listed_line(whole)
    found = found or _given(whole, text)
    if not found:
        raise Refused("it names no solution")
    if not set(found) & set(allowed):
        raise Refused(f"it names {listed(dict.fromkeys(found))}, and the list has {listed(sorted(allowed))}")
    return sorted(set(found) & set(allowed))


def _approves_all(text: str, allowed: Collection[int]) -> bool:
    """Whether the reply, or its first line or last, says no more than that all are approved."""
    said = [match for line in [text, *_outer_lines(text)] if (match := _ALL.fullmatch(line))]
    return any((match["how"] != "both" or len(allowed) == 2) and _fits(match[0], len(allowed)) for match in said)


def _fits(text: str, count: int) -> bool:
    """Whether a number of solutions that is named, as in "all three", is theirs."""
    named = [int(n) for n in re.findall(r"\d+", text)] + [i for i, word in enumerate(_NAMES, 1) if word in text.split()]
    return all(number == count for number in named)


def ranking(text: str, allowed: Collection[int], longest: int) -> list[int]:
    """The solutions a reply ranks, best first; it need not rank all."""
    text = clean(text)
    whole = mark(text)
    found = _from_json(text, "ranking", "rank", "ranked", "order", "vote", "ballot")
    found = found or _numbered(whole) or _list(whole)
    if not found:
        if _REVERSED.search(text):
            raise Refused("it may begin with the worst")
        runs = list(dict.fromkeys(map(tuple, _runs(_RANKS, text))))
        if len(runs) > 1:
            raise Refused("it gives more than one ranking")
        if runs and not set(_numbers(" ".join(re.findall(r"@-?\d+", whole)))) & set(allowed) <= set(runs[0]):
            raise Refused("it names more solutions than those of its ranking")
        found = list(runs[0]) if runs else _listed_line(whole) or _given(whole, text)
    if not found:
        raise Refused("it ranks no solution")
    if len(set(found)) < len(found):
        raise Refused("it ranks a solution twice")
    if len(found) > longest:
        raise Refused(f"it ranks more than {longest} solutions")
    return checked(found, allowed)


def _runs(form: re.Pattern[str], text: str) -> Iterator[list[int]]:
    text = mark(_QUOTED.sub(" ", text))
    return (_numbers(match[1]) for match in form.finditer(text) if not _denied(text, match))


def _list(text: str) -> list[int]:
    """The numbers of a text that is nothing but a list of them."""
    match = _LIST.fullmatch(text)
    return _numbers(match[1]) if match else []


def _given(whole: str, text: str) -> list[int]:
    """The list of "the answer is 1, 2" or "my vote: 1, 2"; none where the reply names other numbers, too."""
    runs = [*_runs(_GIVES, text)]
    return runs[0] if runs and sorted(_numbers(" ".join(re.findall(r"@-?\d+", whole)))) == sorted(runs[0]) else []


def _listed_line(text: str) -> list[int]:
    """The list that is the first line or the last; none where these are two lists."""
    found = [numbers for line in _outer_lines(text) if (numbers := _list(line))]
    return found[0] if found and found.count(found[0]) == len(found) else []


def _numbered(text: str) -> list[int]:
    """A ranking as a numbered list: `1. Solution 2`, one a line."""
    lines = [_PLACED.fullmatch(line) for line in text.split("\n") if line]
    places = [int(line[1]) for line in lines if line]
    if len(lines) < 2 or places != list(range(1, len(lines) + 1)):
        return []
    return [int(line[2]) for line in lines if line]


# Points

_PAIR = regex(rf"[\"'`(]?(?:{_NOUN} ?)?(?:{_NUMBER} ?)?#?(-?\d{{1,6}})[\"'`)]{{0,2}} ?[:=] ?[\"'`]?"
              r"(-?\d{1,9}(?:\.\d{1,9})?)[\"'`]?(?: points?)?(?![\w.])")
_BRACES = regex(r"\{([^{}]{0,2000})\}")


def points(text: str, allowed: Collection[int]) -> dict[int, int]:
    """The points a reply gives, by solution: whole numbers, none below zero."""
    text = clean(text)
    given: dict[int, int] = {}
    for number, amount in _in_braces(text) or _in_json(text) or _in_lines(text):
        if number in given:
            raise Refused(f"it gives points to {number} twice")
        if amount < 0 or amount != int(amount):
            raise Refused("points must be whole numbers from 0")
        given[number] = int(amount)
    if not given:
        raise Refused("it gives no points")
    checked(given, allowed)
    return given


def _in_braces(text: str) -> list[tuple[int, float]]:
    """The pairs in the last braces, if these have nothing else."""
    blocks = _BRACES.findall(text)
    return _pairs(blocks[-1]) if blocks else []


def _in_lines(text: str) -> list[tuple[int, float]]:
    """The pairs of those lines that have nothing else."""
    return [pair for line in text.split("\n") for pair in _pairs(line)]


def _pairs(text: str) -> list[tuple[int, float]]:
    rest = _PAIR.sub("", text).replace("points", "").strip(" \n,;.*_:")
    return [(int(n), float(amount)) for n, amount in _PAIR.findall(text)] if not rest else []


def _in_json(text: str) -> list[tuple[int, float]]:
    table: Any = read_json(text) or {}
    table = next((v for v in table.values() if isinstance(v, dict)), table)
    found = [(re.findall(r"\d{1,6}", str(key)), value) for key, value in table.items() if re.search(r"\d", str(key))]
    valid = all(len(key) == 1 and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
                for key, value in found)
    return [(int(key[0]), float(value)) for key, value in found] if valid else []


# Shared

def clean(text: str) -> str:
    """What was said, without thoughts, quoted lines and remarks in brackets.

    In lower case, with digits of any script as 0 to 9 and single spaces; of a very long reply both ends.
    """
    text = without_thoughts(text)
    text = text if len(text) <= 2 * ENDS else f"{text[:ENDS]}\n{text[-ENDS:]}"
    text = unicodedata.normalize("NFKC", text).lower().translate({0x2019: "'", 0x2212: "-", ord("*"): ""})
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text.replace("\\boxed", ""))
    text = re.sub(r" ?\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()
    text = _QUOTED_LINE.sub("", text).strip() or text
    return _REMARK.sub(r"\1", re.sub(r"(?m)^[\-•] ", "", text))


def mark(text: str) -> str:
    """The text with every number that could be one of the list as `@2`."""
    return _ITEM.sub(r"@\1", text.replace("@", " "))


def checked(numbers: Iterable[int], allowed: Collection[int]) -> list[int]:
    """The numbers, if all are on the list."""
    numbers = list(numbers)
    for number in numbers:
        if number not in allowed:
            raise Refused(f"it names {number}, and the list has {listed(sorted(allowed))}")
    return numbers


def listed(numbers: Iterable[int]) -> str:
    """`0, 1 and 2`."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def _denied(text: str, match: re.Match[str]) -> bool:
    return _DENIED.search(text, max(0, match.start() - 60), match.start() + 1) is not None


def _outer_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [lines[0], lines[-1]] if len(lines) > 1 else []


def _found(match: re.Match[str] | None) -> list[int]:
    return [int(match[1])] if match else []


def _numbers(run: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", run)]


def _from_json(text: str, *names: str) -> list[int]:
    """The number or numbers under one of these names."""
    table = read_json(text)
    value = next((v for k, v in (table or {}).items() if k in names), None)
    values = value if isinstance(value, list) else [] if value is None else [value]
    found = [_whole(v) for v in values]
    return [n for n in found if n is not None] if None not in found else []


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        return next(iter(_alone(mark(value))), None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 1e6 and value == int(value) else None
