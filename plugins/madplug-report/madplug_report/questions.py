"""Which debates are on the same question."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class Questions:
    """The questions of debates, in 32 bytes for each debate, whatever the length of ids and texts.

    Only hashes of 64 bits are kept: among a million questions, two that differ pass for the same once in 40 million
    reports.
    """

    def __init__(self) -> None:
        self._names, self._hashes = array("q"), array("q")
        self._studies, self._contents = array("q"), array("q")

    def add(self, name: str, parts: Sequence[str], study: int, content: tuple[Hashable, ...]) -> None:
        """The question of the next debate.

        name: its id. parts: its text, and whatever else tells it from others. content: what else has to be the same in
        two studies for their debates to be on one question.
        """
        self._names.append(hash(name))
        self._hashes.append(hash((name, *parts)))
        self._studies.append(study)
        self._contents.append(hash(content))

    def number(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of each debate's question, from 0 in the order in which they first occur; a hash of each name."""
        _, first, of_debate = np.unique(self._apart(), return_index=True, return_inverse=True)
        order = np.argsort(first)
        numbers = np.empty(len(first), np.int64)
        numbers[order] = np.arange(len(first))
        return numbers[of_debate], np.asarray(self._names)[first[order]]

    def _apart(self) -> NDArray[np.int64]:
        """The hash of each debate's question, another one in studies that share no content of it."""
        hashes, studies, contents = (np.array(column) for column in (self._hashes, self._studies, self._contents))
        _, first = np.unique(hashes ^ contents, return_index=True)
        several, times = np.unique(hashes[first], return_counts=True)
        unsure = np.flatnonzero(np.isin(hashes, several[times > 1])).tolist()
        found: dict[int, dict[int, set[int]]] = {}
        for i in unsure:
            found.setdefault(int(hashes[i]), {}).setdefault(int(studies[i]), set()).add(int(contents[i]))
        versions = {question: _versions(of_study) for question, of_study in found.items()}
        for i in unsure:
            question = int(hashes[i])
            version = versions[question][int(studies[i])]
            hashes[i] = hash((question, version)) if version else question
        return hashes


def _versions(contents: Mapping[int, set[int]]) -> dict[int, int]:
    """By study, which version of a question it has, from 0; studies that share content have the same."""
    known: list[set[int]] = []
    found = {}
    for study, own in contents.items():
        found[study] = next((i for i, version in enumerate(known) if version & own), len(known))
        if found[study] == len(known):
            known.append(set())
        known[found[study]] |= own
    return found
