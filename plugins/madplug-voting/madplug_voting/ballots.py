"""Reading a ballot: which solutions an agent stated, as numbers of the list it was shown.

A ballot comes in words or as JSON. Only what is stated is read: "I vote for 0, not 1" is a vote for 0, "2 because
3 is bad" one for 2. What could mean two things, or names a number that is not on the list, is refused with the
reason, and the agent is asked again.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from madplug_prompting.patterns import regex
from madplug_prompting.replies import read_json, without_thoughts

ENDS = 4000
"""This many characters at either end of a reply are read."""


class Refused(ValueError):
    """A reply that is not a valid ballot; the message says why."""


class Abstained(Refused):
    """A reply that says that its author does not vote; asking again would not be honest."""

    def __init__(self) -> None:
        super().__init__("it abstains")


# A number of the list, with the noun and the brackets around it, is written as `@2` before anything is looked for.
_NOUN = r"(?:solutions?|candidates?|options?|choices?|answers?|proposals?|responses?)"
_NUMBER = r"(?:numbers?|no\.|nr\.|#)"
_ITEM = regex(rf"(?:{_NOUN} ?)?(?:{_NUMBER} ?)?[#(\[\"'`]{{0,2}}"
              r"(?<![\w.\-])(-?\d{1,6})(?!\w|\.\d|%| ?[-–] ?\d)[)\]\"'`]{0,2}")
# What follows a number in brackets and names no other: `1 (green)`; or denies one: `1 (not 2)`.
_REMARK = regex(r"(?<![\w.\-])(\d{1,6}[)\]\"'`]{0,2}) ?\((?:[^()\d\n]{1,200}|(?:not|and not) [^()\n]{1,60})\)")
_RUN = r"@-?\d+(?:(?: ?(?:, ?and|,|;|>|&|\n|\band\b) ?| )@-?\d+)*"
_NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# `solution one would` may be about anyone.
_WORDED = regex(rf"\b({_NOUN} (?:{_NUMBER} ?)?)(?:({'|'.join(_NAMES[1:])})\b|(one)\b(?! ?[a-z])"
                r"|(one)(?= (?:is|and|because|first)\b))|\A(\W*)(" + "|".join(_NAMES) + r")(\W*)\Z")
_AGENT = regex(r"(\W*(?:(?:i vote for|my vote(?: is| goes to)?|vote)\W{0,3} ?)?)"
               r"(?:agent|participant|expert) (\d{1,6}\W*)")
"""A ballot that calls the solution by its author; in a sentence an agent's number may be its place in the debate."""
_TAGS = regex(r"<(vote|ballot|answer|choice|ranking|approve|solution|points)>([^<>]{0,300})</\1>")
_ARROW = regex(r" ?(?:-{1,2}>|=>|\u2192|\u27f6|\u227b) ?")
_FENCE = regex(r"```\w{0,10}")
_ABSTAINS = regex(r"\W{0,9}(?:\"?(?:my )?(?:vote|ballot|answer|choice|ranking|approved?)\"?\W{1,4})?"
                  r"(?:i(?:'ll| (?:will|must|choose to|prefer to|would (?:like|prefer) to|have to|want to|do))? )?"
                  r"(?:hereby )?(?:abstain(?:ed|ing|s)?|abstention)\b|\W{0,9}(?:i am|i'm) abstaining\b"
                  r"|\W{0,9}i (?:do not|don't|will not|won't) vote\W{0,3}\Z")
_QUOTED = regex(r"[\"“„«][^\"“”„«»\n]*[a-z] [^\"“”„«»\n]*[\"”“»]"
                r"|(?<!\w)'[^'\n]{0,300}[a-z][ :][^'\n]{0,300}'(?!\w)")
_QUOTED_LINE = regex(r"(?m)^ ?>.*\n?")
_DENIED = regex(r"(?:\b(?:not|never|no|cannot|against|instead of|rather than)\b|n't)[^.,;:\n]{0,25}$"
                r"|\b(?:worst|weakest|wrong|incorrect|flawed) \w?$")


def as_numbers(text: str, names: Mapping[str, int]) -> str:
    """A ballot with the numbers of the solutions in the place of their names, where it names no number itself."""
    if not names or any(c.isdecimal() for c in text):
        return text
    each = sorted(names, key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in each), re.IGNORECASE)
    numbers = {name.lower(): number for name, number in names.items()}
    return pattern.sub(lambda found: f"Solution {numbers[found[0].lower()]}", text)


# One solution

_VOTES = tuple(regex(words + r"(?: (?:is|goes|to|for|the|with|in|favou?r|of)\b)*[ :=\-]*@(-?\d+)") for words in (
    # What is called final counts before what is said in the first person, and that before the rest.
    r"\bfinal (?:vote|ballot|answer|choice|decision)",
    r"\b(?:my (?:vote|ballot|choice)|i(?:'ll|'d|'m| am)?(?: (?:will|would|do|must|can|now|therefore|thus|hereby))*"
    r" (?:vote|voting|cast my vote|choose|pick|select|support|prefer|favou?r|go))",
    r"\bvot(?:e|es|ing)",
    r"\b(?:best|right|correct) (?:solution|one|answer|candidate|option)",
))
_BEST = regex(r"(?<!agent )(?<!participant )(?<!expert )@(-?\d+) (?:is|seems|looks|gives|provides|has) "
              r"(?:clearly |definitely |by far |also )?(?:the |my )?"
              r"(?:best|right|correct|strongest|winner|choice|favou?rite|preferred|superior"
              r"|most (?!flawed|wrong|incorrect|inaccurate|problematic|misleading|confus|unlikely|unclear|incomplete)"
              r"[a-z])")
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

_APPROVES = regex(r"\b(?:approv(?:e|ed|al|als|ing)|accept)(?: (?:of|is|are|for|both|only|just|the|to)\b)*[ :=]*"
                  rf"({_RUN})")
_RANKS = regex(r"\b(?:rank(?:s|ed|ing)?|order|preferences?|best (?:to|>) worst|best first)"
               r"(?: (?:the|of|is|are|would|be|as|them|solutions|from|best|to|worst)\b)*"
               rf"[ :=]*({_RUN})")
_LIST = regex(rf"[^\w@]*({_RUN})[^\w@]*")
_GIVES = regex(r"\b(?:answers?|votes?|ballot|choices?|selection|picks?)(?: (?:is|are|goes|go|to|for)\b)*[ :=]*"
               rf"({_RUN})")
_ALL = regex(
    r"[^\w\n]*(?:i |we )?(?:vote for |(?:approve|accept|choose|support)(?: of)? )?(?P<how>all|every|each|both)(?: of)?"
    rf"(?: (?:the|these|those|them|{'|'.join(_NAMES)}|\d+|proposed|given|listed))*"
    rf"(?: {_NOUN})?"
    r"(?: (?:is|are|seem|seems|look|looks) (?:acceptable|approved|fine|good|right|correct|valid|reasonable|ok|okay))?"
    r"[^\w\n]*")
_PLACED = regex(r"@(\d+)\W*@(-?\d+)\b(.*)")
_BLAMED = regex(r"\b(?:worst|weakest|wrong|incorrect|flawed|false|bad|poor|fails|errors?|mistakes?)\b")
_THEN = (r"(?: the most| the best| best| first| most| comes? first| is (?:the )?best)?[,;.]? ?(?:and |but )?"
         r"(?:then|followed by|next|after (?:that|it)|second(?:ly)?|third(?:ly)?|finally|lastly|last)"
         r"(?: (?:by|comes?|is|are|i|would|put|like|prefer|choose|rank|place))*,? ")
_SEQUENCE = regex(rf"@-?\d+(?:{_THEN}@-?\d+)+")
_REFUSES = regex(r"\b(?:not|never|least|worst)\b|n't\b")
_JUDGED = regex(r"\W*@(-?\d+)\W+(?:is )?(?:(yes|true|approved?|accept(?:ed|able)?|agree|ok|good)"
                r"|(?:no|false|not [a-z]+|disapproved?|reject(?:ed)?|unacceptable|disagree|bad))\b.*")


_REVERSED = regex(r"\b(?:revers\w+|inverse) (?:order|rank\w*)|\brank(?:s|ed|ing)?(?: the)? worst"
                  r"|\b(?:from )?(?:the )?worst(?: one)?,? (?:first|to(?: the)? best)")


def several(text: str, allowed: Collection[int]) -> list[int]:
    """The solutions a reply approves, each once and in the order of the list; what is not on it does not count."""
    text = clean(text)
    whole = mark(text)
    if _approves_all(text, allowed):
        return sorted(allowed)
    found = _judged(text, whole)
    found = found or _from_json(text, "approve", "approved", "approval", "solutions", "vote", "votes", "ballot")
    found = found or _list(whole) or [number for number, _ in _numbered(whole)]
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
    found = found or _placed(whole) or _list(whole) or _sequence(whole)
    if not found:
        if _REVERSED.search(text):
            raise Refused("it may begin with the worst")
        runs = list(dict.fromkeys(map(tuple, _runs(_RANKS, text))))
        if len(runs) > 1:
            raise Refused("it gives more than one ranking")
        if runs and not set(_marked(whole)) & set(allowed) <= set(runs[0]):
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
    return runs[0] if runs and sorted(_marked(whole)) == sorted(runs[0]) else []


def _listed_line(text: str) -> list[int]:
    """The list that is the first line or the last; none where these are two lists."""
    found = [numbers for line in _outer_lines(text) if (numbers := _list(line))]
    return found[0] if found and found.count(found[0]) == len(found) else []


def _numbered(text: str) -> list[tuple[int, str]]:
    """The entries of a numbered list with what is said of each: `1. Solution 2: the best`, one a line."""
    lines = [line for line in map(_PLACED.fullmatch, text.split("\n")) if line]
    places = [int(line[1]) for line in lines]
    if len(places) < 2 or places != list(range(1, len(lines) + 1)):
        return []
    return [(int(line[2]), line[3]) for line in lines]


def _placed(text: str) -> list[int]:
    """A ranking as a numbered list; none where what is said of the entries is about something else than places."""
    entries = _numbered(text)
    if not entries or _BLAMED.search(entries[0][1]) or _REVERSED.search(text) \
            or any(re.search(r"\bbest\b", said) for _, said in entries[1:]):
        return []
    return [number for number, _ in entries]


def _sequence(text: str) -> list[int]:
    """The ranking of "2 the most, then 1, and finally 3"; none where other numbers are named, too."""
    found = [_marked(match[0]) for match in _SEQUENCE.finditer(_QUOTED.sub(" ", text))]
    if len(found) != 1 or not set(_marked(text)) <= set(found[0]) or _REVERSED.search(text) or _REFUSES.search(text):
        return []
    return found[0]


def _judged(text: str, whole: str) -> list[int]:
    """The approved of solutions that are judged one by one: in lines, or as an object or objects of JSON."""
    lines = [line for line in whole.split("\n") if "@" in line]
    judged = [match for match in map(_JUDGED.fullmatch, lines) if match and match[0].count("@") == 1]
    if judged and len(judged) == len(lines):
        return [int(match[1]) for match in judged if match[2]]
    pairs = [(_whole(key), said) for key, said in _json_pairs(text, "approve", "approved", "approval", "vote")]
    if not pairs or not all(number is not None and _verdict(said) is not None for number, said in pairs):
        return []
    return [number for number, said in pairs if number is not None and _verdict(said)]


def _verdict(said: object) -> bool | None:
    """Whether a value of JSON approves; None if it says neither."""
    if isinstance(said, str):
        match = _JUDGED.fullmatch(f"@0 {said.lower()}")
        return None if match is None else match[2] is not None
    return said if isinstance(said, bool) else None


# Points

_PAIR = regex(rf"[\"'`(]?(?:{_NOUN} ?)?(?:{_NUMBER} ?)?#?(-?\d{{1,6}})[\"'`)]{{0,2}} ?[:=] ?[\"'`]?"
              r"(-?\d{1,9}(?:\.\d{1,9})?)[\"'`]?(?: points?)?(?![\w.])")
_BRACES = regex(r"\{([^{}]{0,2000})\}")


def points(text: str, allowed: Collection[int]) -> dict[int, int]:
    """The points a reply gives, by solution: whole numbers, none below zero."""
    text = clean(text)
    given: dict[int, int] = {}
    for number, amount in _in_braces(text) or _in_json(text) or _in_lines(text) or _in_table(text):
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


_ROW = regex(r" ?\|? ?(?:" + _NOUN + r" ?)?#?(\d{1,6}) ?\| ?(\d{1,9}(?:\.\d{1,9})?)(?: points?)? ?\|? ?")


def _in_table(text: str) -> list[tuple[int, float]]:
    """The pairs of a table in Markdown: `| Solution 1 | 5 |`."""
    return [(int(row[1]), float(row[2])) for row in map(_ROW.fullmatch, text.split("\n")) if row]


def _in_json(text: str) -> list[tuple[int, float]]:
    pairs = _json_pairs(text, "points", "score", "scores", "weight")
    found = [(re.findall(r"\d{1,6}", str(key)), value) for key, value in pairs if re.search(r"\d", str(key))]
    valid = all(len(key) == 1 and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
                for key, value in found)
    return [(int(key[0]), float(value)) for key, value in found] if valid else []


def _json_pairs(text: str, *names: str) -> list[tuple[Any, Any]]:
    """What JSON gives by solution: the items of an object, or objects with a solution and, under `names`, a value."""
    table: Any = read_json(text) or {}
    rows = _json_list(text) or next((v for v in table.values() if isinstance(v, list)), [])
    if rows and all(isinstance(row, dict) for row in rows):
        pairs = [([v for k, v in row.items() if k in ("solution", "number", "candidate", "option", "answer", "id")],
                  [v for k, v in row.items() if k in names]) for row in rows]
        return [(who[0], what[0]) for who, what in pairs] if all(len(a) == len(b) == 1 for a, b in pairs) else []
    return list(next((v for v in table.values() if isinstance(v, dict)), table).items())


def _json_list(text: str) -> list[Any]:
    """The list that a text is, if it is one."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


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
    text = _ARROW.sub(" > ", _FENCE.sub("", text)).strip()
    text = _TAGS.sub(lambda tag: f"{tag[1].replace('ballot', 'vote')}: {tag[2].strip()}", text)
    if _ABSTAINS.match(text):
        raise Abstained
    text = _WORDED.sub(_in_digits, text)
    if (named := _AGENT.fullmatch(text)) is not None:
        text = f"{named[1]}solution {named[2]}"
    return _REMARK.sub(r"\1", re.sub(r"(?m)^[\-•] ", "", text))


def _in_digits(found: re.Match[str]) -> str:
    """A number word of the list in digits."""
    word = next(group for group in found.groups() if group in _NAMES)
    number = str(_NAMES.index(word) + 1)
    return f"{found[1]}{number}" if found[1] else f"{found[5]}{number}{found[7]}"


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


def _marked(text: str) -> list[int]:
    """All numbers that could be of the list."""
    return _numbers(" ".join(re.findall(r"@-?\d+", text)))


def _from_json(text: str, *names: str) -> list[int]:
    """The number or numbers under one of these names, or of a list."""
    table = {names[0]: bare} if (bare := _json_list(text)) else read_json(text)
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
