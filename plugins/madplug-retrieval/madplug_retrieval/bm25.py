"""Passages of local files, found with BM25."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field

from madplug import ComponentError, Options, Passage, RunPath, Service, UserError
from madplug_retrieval.passages import files_of, passages_of


class Bm25Options(Options):
    """Options of `retrieval.bm25`."""

    path: RunPath = Field(description=(
        "a file or a folder of files: .txt and .md, of which every paragraph is a passage, and .jsonl, of which every "
        "row is one; relative to the run file"))
    column: str = Field(default="text", min_length=1, description="the column of .jsonl rows that has the text")
    words: int = Field(default=200, ge=10, le=10_000, description="the most words in a passage; longer ones are cut")
    stopwords: Literal["en", "none"] = Field(default="en", description=(
        "words that do not count: the frequent ones of English, or none"))
    k1: float = Field(default=1.5, ge=0, le=10, description="how much repetitions of a word count")
    b: float = Field(default=0.75, ge=0, le=1, description="how much long passages are discounted")


class Bm25(Service):
    """Finds the passages of local files that share the most telling words with a question.

    The files are read and indexed once, before the first debate. Passages that share no word with the question are
    not returned. Results depend on nothing but the files and the question.
    """

    name = "bm25"
    source = "Robertson and Zaragoza 2009 (BM25); bm25s"
    Options = Bm25Options

    _index: Any = None
    _passages: Sequence[Passage] = ()

    def check(self, cell: Any) -> Iterable[str]:
        """There are files to read."""
        try:
            files_of(self.options.path)
        except UserError as error:
            yield from (f"'path': {problem}" for problem in error.problems)

    async def open(self) -> None:
        """Read and index the files. Raises `ComponentError` if one cannot be read."""
        from asyncio import to_thread

        await to_thread(self._load)

    def _load(self) -> None:
        import bm25s  # type: ignore[import-untyped]

        options = self.options
        try:
            self._passages = list(passages_of(options.path, options.column, options.words))
        except UserError as error:
            raise ComponentError(f"retrieval.bm25: {error}") from None
        if not self._passages:
            raise ComponentError(f"retrieval.bm25: {options.path} is empty")
        self._index = bm25s.BM25(k1=options.k1, b=options.b)
        self._index.index(self._tokens([passage.text for passage in self._passages]), show_progress=False)

    def _tokens(self, texts: Sequence[str]) -> Any:
        import bm25s

        stopwords = None if self.options.stopwords == "none" else self.options.stopwords
        return bm25s.tokenize(list(texts), stopwords=stopwords, show_progress=False)

    async def retrieve(self, query: str, k: int) -> Sequence[Passage]:
        """At most `k` passages, best first."""
        if self._index is None:
            await self.open()
        from asyncio import to_thread

        return await to_thread(self._find, query, k)

    def _find(self, query: str, k: int) -> list[Passage]:
        found, scores = self._index.retrieve(
            self._tokens([query]), k=min(k, len(self._passages)), show_progress=False, sorted=True)
        return [self._passages[i] for i, score in zip(found[0], scores[0], strict=True) if score > 0]
