"""Embeddings of answers."""

from __future__ import annotations

from madplug import ComponentError, Embedder

Vector = tuple[float, ...]
KEPT = 4096
"""Vectors that are remembered."""
PATIENCE = 60.0
"""Seconds that comparing two answers waits for a vector."""


class AnswerVectors:
    """Vectors of answers, remembered. They depend on the text alone, so all debates of a cell share them."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vector] = {}

    async def embed(self, text: str) -> Vector:
        """The vector of a text, from the embedder unless it is known."""
        vector = self._known.get(text)
        if vector is None:
            (numbers,) = await self._embedder.embed([text])
            vector = self._known[text] = tuple(map(float, numbers))
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]
        return vector

    def of(self, text: str) -> Vector:
        """The vector of a text, for the plain methods that compare answers.

        What agents answer is known, since it was embedded when it was read. Other texts, such as references, are
        embedded on an event loop in a thread of their own, while this one waits.
        """
        known = self._known.get(text)
        if known is not None:
            return known
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, "answers.free") as thread:
            return thread.submit(asyncio.run, self._in_time(text)).result()

    async def _in_time(self, text: str) -> Vector:
        import asyncio

        try:
            return await asyncio.wait_for(self.embed(text), PATIENCE)
        except asyncio.TimeoutError:
            raise ComponentError(f"answers.free: the embedder gave no vector of {text!r:.80} within {PATIENCE:g} "
                                 "seconds while answers were compared") from None
