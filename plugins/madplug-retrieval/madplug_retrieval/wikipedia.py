"""Passages of Wikipedia, found by its own search."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from pydantic import Field

from madplug import ComponentError, Options, Passage, Service, Volatile

if TYPE_CHECKING:
    import asyncio

    import aiohttp
    from tenacity import RetryCallState

LONGEST_QUERY = 300
"""Characters that the search of MediaWiki takes."""
AGENT = "madplug-retrieval/0.1 (a research tool for debates between language models)"
MOST_EXTRACTS = 20
"""Introductions that the API returns with one request."""
LONGEST_REPLY = 10_000_000


class WikipediaOptions(Options):
    """Options of `retrieval.wikipedia`."""

    language: str = Field(default="en", pattern=r"^[a-z][a-z-]{1,20}$", description="the Wikipedia of this language")
    url: Annotated[str | None, Volatile] = Field(default=None, pattern=r"^https?://", description=(
        "the address of a MediaWiki API, such as that of a mirror; default: Wikipedia's"))
    characters: int = Field(default=2000, ge=100, le=100_000, description="the most characters of an introduction")
    attempts: Annotated[int, Volatile] = Field(default=5, ge=1, le=50, description="attempts at one search")
    seconds: Annotated[float, Volatile] = Field(default=30.0, gt=0, le=600, description="the longest one may take")
    contact: Annotated[str, Volatile] = Field(default="", max_length=200, description=(
        "an address at which you can be reached, sent along as Wikimedia asks of programs that search a lot"))


class _AgainError(Exception):
    """Another attempt may succeed. `wait`: seconds that the API asks for, or None."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Wikipedia(Service):
    """Finds articles of Wikipedia about a question, and returns their introductions.

    One search for a question, with its first 300 characters; the same question is searched once in a study. One
    search at a time, as Wikimedia asks; a search that is refused for the moment is tried again. Articles change, so a
    study that is run again later may find other passages: for results that can be repeated, use `retrieval.bm25`.
    """

    name = "wikipedia"
    source = "the MediaWiki Action API (TextExtracts)"
    Options = WikipediaOptions

    _session: aiohttp.ClientSession | None = None

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._found: dict[tuple[str, int], asyncio.Task[list[Passage]]] = {}

    async def open(self) -> None:
        """Connect."""
        from asyncio import Semaphore

        import aiohttp

        contact = f"; {self.options.contact}" if self.options.contact else ""
        self._one_at_a_time = Semaphore(1)
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": AGENT + contact}, trust_env=True,
            timeout=aiohttp.ClientTimeout(total=self.options.seconds))

    async def close(self) -> None:
        """Disconnect."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def retrieve(self, query: str, k: int) -> Sequence[Passage]:
        """At most `k` introductions, each after its article's title, best first; `k` counts up to 20.

        Raises `ComponentError` if no attempt is answered.
        """
        from asyncio import ensure_future, shield

        if self._session is None:
            await self.open()
        key = (shortened(query), min(k, MOST_EXTRACTS))
        if key not in self._found:
            self._found[key] = ensure_future(self._searched(*key))
        try:
            return await shield(self._found[key])
        except ComponentError:
            self._found.pop(key, None)  # another debate may try again
            raise

    async def _searched(self, query: str, k: int) -> list[Passage]:
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

        if not query:
            return []
        attempts = AsyncRetrying(stop=stop_after_attempt(self.options.attempts), wait=_pause, reraise=True,
                                 retry=retry_if_exception_type(_AgainError))
        async with self._one_at_a_time:
            try:
                return await attempts(self._search, query, k)
            except _AgainError as error:
                raise ComponentError(f"retrieval.wikipedia: {self.url}: gave up after {self.options.attempts} "
                                     f"attempts: {error}") from None

    @property
    def url(self) -> str:
        """The address of the API."""
        return self.options.url or f"https://{self.options.language}.wikipedia.org/w/api.php"

    async def _search(self, query: str, k: int) -> list[Passage]:
        """One attempt. Raises `_AgainError` if another may succeed, `ComponentError` if none will."""
        import aiohttp

        assert self._session is not None
        asked = {"action": "query", "format": "json", "formatversion": "2", "generator": "search", "gsrsearch": query,
                 "gsrlimit": str(k), "prop": "extracts", "exintro": "1", "explaintext": "1", "exlimit": "max",
                 "redirects": "1", "maxlag": "5"}
        try:
            async with self._session.get(self.url, params=asked) as response:
                body = await _whole(response.content)
                wait = _seconds(response.headers.get("Retry-After"))
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _AgainError(f"{type(error).__name__}: {error}") from None
        if len(body) > LONGEST_REPLY:
            raise ComponentError(f"retrieval.wikipedia: {self.url}: the reply is larger than {LONGEST_REPLY:,} bytes")
        if status == 429 or status >= 500:
            raise _AgainError(f"status {status}", wait)
        if status != 200:
            raise ComponentError(f"retrieval.wikipedia: {self.url}: status {status}")
        return self._read(body, wait)

    def _read(self, body: bytes, wait: float | None) -> list[Passage]:
        """The introductions of a reply, in the order of the search."""
        try:
            found: Any = json.loads(body)
        except (ValueError, RecursionError):
            raise ComponentError(f"retrieval.wikipedia: {self.url}: the reply is not JSON") from None
        error = found.get("error") if isinstance(found, Mapping) else {"info": "the reply is not a table"}
        if error:
            if isinstance(error, Mapping) and error.get("code") in ("maxlag", "ratelimited"):
                raise _AgainError(str(error.get("info", "")), wait)
            info = error.get("info", error) if isinstance(error, Mapping) else error
            raise ComponentError(f"retrieval.wikipedia: {self.url}: {info}"[:500])
        query = found.get("query") or {}
        pages = (query.get("pages") or []) if isinstance(query, Mapping) else None
        if not isinstance(pages, list):
            raise ComponentError(f"retrieval.wikipedia: {self.url}: the reply has no list of pages")
        ordered = sorted((p for p in pages if isinstance(p, Mapping)), key=_place)
        texts = [(str(p.get("title") or ""), str(p.get("extract") or "").strip()) for p in ordered]
        longest = self.options.characters
        return [Passage(f"{title}: {text[:longest]}", self._page(title)) for title, text in texts if text]

    def _page(self, title: str) -> str:
        """The address of an article."""
        return f"{self.url.removesuffix('api.php')}index.php?title={quote(title.replace(' ', '_'))}"


def shortened(query: str) -> str:
    """A question as the search takes it: in one line, cut after a word."""
    line = " ".join(query.split())
    return line if len(line) <= LONGEST_QUERY else line[:LONGEST_QUERY + 1].rpartition(" ")[0] or line[:LONGEST_QUERY]


async def _whole(content: aiohttp.StreamReader) -> bytes:
    """A body in however many parts it comes, or somewhat more of it than is accepted."""
    parts, size = [], 0
    async for part in content.iter_any():
        parts.append(part)
        size += len(part)
        if size > LONGEST_REPLY:
            break
    return b"".join(parts)


def _place(page: Mapping[str, Any]) -> int:
    """The place of a page among the results, which are not in order; last if it has none."""
    index = page.get("index")
    return index if isinstance(index, int) else sys.maxsize


def _pause(state: RetryCallState) -> float:
    """Seconds to the next attempt: what the API asks for, else twice as many each time."""
    error = state.outcome.exception() if state.outcome is not None else None
    wait = error.wait if isinstance(error, _AgainError) else None
    return min(60.0, 0.5 * 2 ** (state.attempt_number - 1)) if wait is None else min(wait, 600.0)


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
