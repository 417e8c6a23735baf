"""Embeddings without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import hypot

from pydantic import Field

from madplug import Options, Service

_WORD = re.compile(r"\w+")


class HashingOptions(Options):
    """Options of `embeddings.hashing`."""

    dimensions: int = Field(default=512, ge=2, le=65_536, description="length of a vector")
    pieces: int = Field(default=3, ge=0, le=10, description="letters in a piece of a word; 0 for whole words only")


class Hashing(Service):
    """Embeds a text by its words and the pieces of its words; needs nothing and always gives the same.

    Each word, and each run of `pieces` letters in it, adds or takes away 1 at a place that its hash names; the vector
    has the length 1. Texts with the same words are close, also in other forms of a word; synonyms are not. For tests,
    and where texts are to be compared by wording.
    """

    name = "hashing"
    source = "Weinberger et al. 2009 (feature hashing)"
    Options = HashingOptions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; zeros for a text without words."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.options.dimensions
        for feature, times in Counter(self._features(text)).items():
            number = int.from_bytes(blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            vector[(number >> 1) % len(vector)] += times if number & 1 else -times
        length = hypot(*vector)
        return [x / length for x in vector] if length else vector

    def _features(self, text: str) -> Iterator[str]:
        """Words, and their pieces; the ends of a word are part of its pieces."""
        size = self.options.pieces
        for word in _WORD.findall(text.lower()):
            yield word
            marked = f"<{word}>"
            yield from (marked[i:i + size] for i in range(len(marked) - size + 1) if size)
