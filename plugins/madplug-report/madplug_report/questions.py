"""Which debates are on the same question."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Questions:
    """The questions of debates, in 16 bytes for each debate, whatever the length of ids and texts.

    Only hashes of 64 bits are kept: among a million questions, two that differ pass for the same once in 40 million
    reports.
    """

    def __init__(self) -> None:
        self._names, self._hashes = array("q"), array("q")

    def add(self, name: str, parts: Sequence[str]) -> None:
        """The question of the next debate. name: its id. parts: its text, and whatever else tells it from others."""
        self._names.append(hash(name))
        self._hashes.append(hash((name, *parts)))

    def number(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of each debate's question, from 0 in the order in which they first occur; a hash of each name."""
        _, first, of_debate = np.unique(np.asarray(self._hashes), return_index=True, return_inverse=True)
        order = np.argsort(first)
        numbers = np.empty(len(first), np.int64)
        numbers[order] = np.arange(len(first))
        return numbers[of_debate], np.asarray(self._names)[first[order]]
