"""The tools of an MCP server."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import Options, UserError, Volatile, message_of
from madplug_tools.tool import Function, Result, Tool

if TYPE_CHECKING:
    import asyncio

    from madplug import Debate

_MOST_TOOLS = 128
"""Tools of a server that are offered, which is also the most that OpenAI's endpoints take."""


class McpOptions(Options):
    """Options of `tools.mcp`."""

    server: str = Field(min_length=1, description=(
        "the address of a server that speaks streamable HTTP; or the command line that starts one, which gets a few "
        "variables of the environment (PATH, HOME and the like) only"))
    only: tuple[str, ...] | None = Field(default=None, min_length=1, description=(
        "the server's tools that are offered, by name; default: all"))
    repeatable: bool = Field(default=False, description=(
        "a call that was interrupted may be made again; true only for tools that change nothing"))
    seconds: Annotated[float, Volatile] = Field(default=30.0, gt=0, le=3600, description=(
        "the longest the server may take to start"))


class Mcp(Tool):
    """Offers the tools of an MCP server under their own names.

    The server is started, or connected to, once before the first debate. Text in its results is passed on; other
    content is named. Needs the official SDK: `pip install 'madplug-tools[mcp]'`.
    """

    name = "mcp"
    source = "Model Context Protocol; its Python SDK"
    Options = McpOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.repeatable = self.options.repeatable  # type: ignore[misc]
        self._client: Any = None
        self._found: list[Function] = []
        self._serving: asyncio.Task[None] | None = None
        self._closing: asyncio.Event | None = None

    async def open(self) -> None:
        """Start the server and list its tools. Raises `UserError` if it cannot be reached, or lacks one of `only`."""
        from asyncio import Event, create_task, wait_for

        opened, self._closing = Event(), Event()
        self._serving = create_task(self._serve(opened))
        waiting = create_task(opened.wait())
        try:
            from asyncio import FIRST_COMPLETED, wait

            await wait_for(wait([waiting, self._serving], return_when=FIRST_COMPLETED), self.options.seconds)
            if self._serving.done():
                self._serving.result()
        except Exception as error:
            self._serving.cancel()
            why = message_of(error) or f"no answer in {self.options.seconds:g} seconds"
            raise UserError(f"tools.mcp: {self.options.server}: cannot be reached: {why}") from None
        finally:
            waiting.cancel()
        missing = set(self.options.only or ()) - {f.name for f in self._found}
        if missing:
            raise UserError(f"tools.mcp: the server has no tool {sorted(missing)[0]!r}; it has "
                            f"{', '.join(f.name for f in self._found) or 'none'}")

    async def _serve(self, opened: asyncio.Event) -> None:
        """Hold the connection: the SDK wants it opened and closed by one task."""
        try:
            from mcp import Client, StdioServerParameters
        except ImportError:
            raise UserError("tools.mcp needs the MCP SDK: pip install 'madplug-tools[mcp]'") from None
        program, *words = shlex.split(self.options.server)
        is_address = program.startswith(("http://", "https://"))
        async with Client(program if is_address else StdioServerParameters(command=program, args=words)) as client:
            cursor = None
            while len(self._found) < _MOST_TOOLS:
                page = await client.list_tools(cursor=cursor)
                self._found += [Function(t.name, t.description or "", t.input_schema) for t in page.tools]
                if not (cursor := page.next_cursor):
                    break
            self._client = client
            opened.set()
            assert self._closing is not None
            await self._closing.wait()

    async def close(self) -> None:
        """Disconnect, and end a server that was started."""
        if self._serving is not None and self._closing is not None:
            self._closing.set()
            await self._serving

    def functions(self, name: str) -> Sequence[Function]:
        """The server's tools."""
        only = self.options.only
        return [f for f in self._found[:_MOST_TOOLS] if only is None or f.name in only]

    async def call(self, debate: Debate, function: str, arguments: Mapping[str, Any]) -> Result:
        """What the server's tool gives."""
        given = await self._client.call_tool(function, dict(arguments))
        texts = [part.text if part.type == "text" else f"[{part.type}]" for part in given.content]
        return Result("\n".join(texts), error=bool(given.is_error))
