"""litellm, imported once and kept quiet: no download, no banner, no retries of its own, no limit of its own."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Awaitable, Callable
from typing import Any


def load(connections: int) -> Any:
    """The library, able to keep this many connections open."""
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
