"""litellm, imported once, without downloads, banners, its own retries or its own limits."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Awaitable, Callable
from typing import Any


def load(connections: int) -> Any:
    """The library, set up for this many open connections."""
    # Read while it is imported: its map of prices is not fetched, and no .env file is loaded.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm
    from litellm.llms.custom_httpx import http_handler

    # Of its own types, to its own developers; raised when a call first needs them.
    warnings.filterwarnings("ignore", message=r"(?s)Item '.*' on TypedDict class", category=UserWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.num_retries = 0
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in ("AIOHTTP_CONNECTOR_LIMIT", "AIOHTTP_CONNECTOR_LIMIT_PER_HOST"):
        setattr(http_handler, name, max(connections, getattr(http_handler, name, 0)))
    return litellm


async def unload(litellm: Any) -> None:
    """Close every client that litellm keeps for later: it belongs to the loop that now ends."""
    from litellm.llms.custom_httpx import async_client_cleanup

    close_all: Callable[[], Awaitable[None]] = async_client_cleanup.close_litellm_async_clients
    await close_all()
    litellm.in_memory_llm_clients_cache.flush_cache()


def never_reached(error: BaseException) -> bool:
    """Whether an error of litellm comes of an endpoint that could not be reached or did not begin to reply.

    litellm says the same of this as of many other failures; the clients below it do not.
    """
    import aiohttp
    import httpx

    below: BaseException | None = error
    seen: set[int] = set()
    while below is not None and id(below) not in seen:
        seen.add(id(below))
        if isinstance(below, aiohttp.ClientPayloadError | httpx.ReadTimeout):
            return False
        if isinstance(below, httpx.ConnectError | httpx.ConnectTimeout | httpx.RemoteProtocolError
                      | aiohttp.ClientConnectorError | aiohttp.ServerDisconnectedError | aiohttp.ConnectionTimeoutError
                      | ConnectionResetError | ConnectionRefusedError):
            return True
        below = below.__cause__ or below.__context__
    return False
