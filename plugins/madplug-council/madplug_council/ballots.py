"""Rankings: how they are read from reviews, and what they add up to. Functions of numbers, without a debate."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from statistics import mean
from typing import Literal

Rank = Literal["mean", "borda", "copeland"]
"""How rankings are added up."""
Ballot = Sequence[int | None]
"""The ids of those ranked, best first; None where the ranking has a letter that no answer has."""
HEADING = "FINAL RANKING:"
_ITEM = re.compile(r"^\s*(\d{1,3})[.)]\s*\W*Answer\s+([A-Z]+)\b", re.MULTILINE)
_NAMED = re.compile(r"\bAnswer\s+([A-Z]+)\b")
_LIST = re.compile(r"(?:^[^\S\n]*\d+[.)][^\w\n]*Answer[^\S\n]+[A-Z]+[^\w\n]*(?:\n\s*|\Z)){2,}\Z", re.MULTILINE)
"""Items and nothing else, to the end of the text."""


def read_ranking(text: str, labels: Mapping[str, int]) -> tuple[list[int | None], list[str]]:
    """The ranking in a review, and what is odd about it.

    It stands after the last heading: numbered items by their numbers, else every label in its order. Without a heading
    it is a numbered list of labels alone that ends the text: a review that was cut off names its labels too, in the
    order it was shown them. The first mention of a label counts. labels: the ids of those reviewed, by letter.
    """
    *_, part = re.split(re.escape(HEADING), text, flags=re.IGNORECASE)
    odd = ["no heading"] if part == text else []
    if odd:
        part = found[0] if (found := _LIST.search(text)) else ""
    items = _ITEM.findall(part)
    if len({number for number, _ in items}) == len(items):  # else several lists, or a number for all
        items.sort(key=lambda item: int(item[0]))
    said = [label for _, label in items] or _NAMED.findall(part)
    once = list(dict.fromkeys(said))
    ranking = [labels.get(label) for label in once]
    if len(once) < len(said):
        odd.append("a repeat")
    if None in ranking:
        odd.append("an unknown letter")
    if set(labels.values()) - set(ranking):
        odd.append("not all are ranked")
    return (ranking, odd) if any(id is not None for id in ranking) else ([], ["no ranking"])


def scores(ballots: Sequence[Ballot], rank: Rank) -> dict[int, float]:
    """A number for everybody who is ranked by anybody, the higher the better.

    `mean`: minus the mean place, over the ballots that rank it. `borda`: the mean share of those it is ranked above,
    over these ballots. `copeland`: pairwise majorities won, minus those lost.
    """
    if rank == "mean":
        return {id: -place for id, place in mean_places(ballots).items()}
    known = sorted({id for ballot in ballots for id in ballot if id is not None})
    if rank == "borda":
        return {id: mean(1 - b.index(id) / max(len(b) - 1, 1) for b in ballots if id in b) for id in known}
    return {a: float(sum(_majority(ballots, a, b) for b in known if b != a)) for a in known}


def _majority(ballots: Sequence[Ballot], a: int, b: int) -> int:
    """1 if more ballots rank a above b than b above a, -1 if fewer; those that rank only one of them do not count."""
    lead = sum(1 if x.index(a) < x.index(b) else -1 for x in ballots if a in x and b in x)
    return (lead > 0) - (lead < 0)


def mean_places(ballots: Sequence[Ballot], but: Collection[int] = ()) -> dict[int, float]:
    """The mean place, from 1, of everybody who is ranked; a letter that nobody has keeps its place.

    but: positions of ballots that are left out.
    """
    used = [ballot for i, ballot in enumerate(ballots) if i not in but]
    known = dict.fromkeys(id for ballot in used for id in ballot if id is not None)
    return {id: mean(b.index(id) + 1 for b in used if id in b) for id in sorted(known)}


def order(ballots: Sequence[Ballot], rank: Rank) -> list[list[int]]:
    """Groups of equals, best first. In a group, those with more first places come first, then lower ids."""
    found = scores(ballots, rank)
    firsts = {id: sum(ballot[0] == id for ballot in ballots if ballot) for id in found}
    groups: dict[float, list[int]] = {}
    for id in sorted(found, key=lambda id: (-found[id], -firsts[id], id)):
        groups.setdefault(round(found[id], 9), []).append(id)
    return list(groups.values())


def agreement(ballots: Sequence[Ballot]) -> float | None:
    """Kendall's W of the rankings that are complete, from 0 (none) to 1; None unless there are two of two or more."""
    everybody = {id for ballot in ballots for id in ballot if id is not None}
    full = [b for b in ballots if len(b) == len(everybody) and set(b) == everybody]
    n, m = len(everybody), len(full)
    if n < 2 or m < 2:
        return None
    sums = [sum(b.index(id) + 1 for b in full) for id in everybody]
    return 12 * sum((s - mean(sums)) ** 2 for s in sums) / (m ** 2 * (n ** 3 - n))
