"""Connections: how long they may take, how many the machine allows, and the way out of its network."""

from __future__ import annotations

import re
import socket
import time
from typing import Any
from urllib.parse import urlsplit

from madplug import TransientError, UnreachableError

CONNECT_WITHIN = 30.0
"""Seconds within which an endpoint has to accept a connection."""
IDLE = 4.0
"""Seconds after which an idle connection is not used again: servers drop idle connections after 5 s or more."""
_RESOLVED_FOR = 10.0
"""Seconds for which the addresses of a host are used without asking again."""
_PLAIN = re.compile(r"(?a:https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d+)?(?:/[\w.~!$&'()*+,;=:@-]+)*)", re.IGNORECASE)

_OTHER_FILES = 200
"""Open files besides the connections."""


def allow_connections(number: int) -> None:
    """Raise this process's limit of open files, often 1,024, to what this many connections need."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    highest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address; never one for this machine itself.

    Looked up once: aiohttp's own look-up reads the environment and a file for every request.
    """
    from ipaddress import ip_address
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if local or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy.startswith("socks"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_plain(url: str) -> bool:
    """Whether an address needs no proxy and no part of it has to be encoded for a request."""
    steps = url.split("/")[3:]
    return _PLAIN.fullmatch(url) is not None and not {".", ".."} & set(steps) and proxy_for(url) is None


class Addresses:
    """The addresses of a host, looked up by one caller for all."""

    def __init__(self, host: str, port: int) -> None:
        from asyncio import Lock

        self._host, self._port = host, port
        self._found: list[Any] = []
        self._until = 0.0
        self._looking = Lock()

    async def look_up(self) -> list[Any]:
        """The addresses, as `socket.getaddrinfo` gives them. Raises `OSError`."""
        from asyncio import get_running_loop

        async with self._looking:
            if time.monotonic() >= self._until:
                self._found = await get_running_loop().getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
                self._until = time.monotonic() + _RESOLVED_FOR
        return list(self._found)


def late(seconds: float) -> TransientError:
    """The error of an exchange that took too long."""
    return TransientError(f"no answer within {seconds:g} s")


def not_accepted() -> UnreachableError:
    """The error of a connection that took too long."""
    return UnreachableError("the endpoint could not be reached: it did not accept the connection in time")
