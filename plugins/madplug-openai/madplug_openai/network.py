"""Connections: how long they may take, how many the machine allows, and the way out of its network."""

from __future__ import annotations

from urllib.parse import urlsplit

from madplug import UserError

CONNECT_WITHIN = 30.0
"""Seconds within which an endpoint has to accept a connection."""
IDLE = 4.0
"""Seconds after which an idle connection is not used again: servers drop idle connections after 5 s or more."""

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

    Looked up once: aiohttp's own look-up reads the environment and a file for every request. Raises `UserError` for a
    SOCKS proxy.
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
    if not proxy:
        return None
    if proxy.startswith("socks"):
        raise UserError(f"the environment names a SOCKS proxy for {parts.scheme}://{host}, which is not supported; set "
                        f"{parts.scheme}_proxy to an HTTP proxy, or add {host} to no_proxy")
    return proxy if "://" in proxy else f"http://{proxy}"
