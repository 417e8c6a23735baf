"""Who may ask the server for what: checked before any request is answered."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
          "trusted-types 'none'")
"""Scripts and styles only from files of the server, nothing from another host, and no text that becomes markup."""
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY", "cache-control": "no-store"}


class Guard:
    """Answers only GET and HEAD, only for its own address, only to pages of its own origin, only with the token.

    PUT is for addresses that end with `writes`, by default the reader's notes, and POST for those below /ask/. Both are
    taken only from a request that names its own origin, and POST only with a header that no form can send.

    The token comes once in the address (`?token=...`), becomes a cookie that scripts cannot read, and leaves the
    address bar. names: the host names under which the server may be asked for. home: where the token leads to.
    """

    def __init__(self, app: App, token: str, port: int, names: frozenset[str], writes: str = "/note",
                 home: str = "/") -> None:
        self.app = app
        self.writes = writes
        self.home = home
        self.token = token
        self.port = port
        self.names = names
        self.cookie = f"madplug-view-{port}"  # browsers send a cookie to every port of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
                return
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] += [(name.encode(), value.encode()) for name, value in HEADERS.items()
                                       if name.encode() not in given]
            await send(message)

        answer = self._refusal(scope) or self._entrance(scope)
        await (answer or self.app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        posts = scope["method"] == "POST" and scope["path"].startswith("/ask/")
        writes = posts or (scope["method"] == "PUT" and scope["path"].endswith(self.writes))
        if scope["method"] not in ("GET", "HEAD") and not writes:
            return PlainTextResponse("only GET and HEAD", 405, {"allow": "GET, HEAD"})
        host = headers.get("host", "")
        if not self._is_ours(host):
            return PlainTextResponse("this address is not served here", 421)
        if headers.get("origin", "" if writes else None) not in (None, f"http://{host}"):
            return PlainTextResponse("pages of other origins are refused", 403)
        if posts and "x-madplug" not in headers:
            return PlainTextResponse("the header X-Madplug is missing", 403)
        navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not navigates:
            return PlainTextResponse("pages of other origins are refused", 403)
        return None

    def _entrance(self, scope: Scope) -> Response | None:
        """A redirect that turns the token in the address into a cookie; a refusal without either."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if any(self._is_token(text) for text in given):
            answer = RedirectResponse(self.home, 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return answer
        if any(self._is_token(text) for text in cookies(Headers(scope=scope).get("cookie", ""), self.cookie)):
            return None
        return PlainTextResponse("open the address that was printed at the start: it ends with ?token=...", 401)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this server: an attacker's name that resolves to this address does not."""
        name, port = _split(host)
        if port != self.port:
            return False
        if name in self.names:
            return True
        if "*" not in self.names:
            return False
        try:  # an address is no name that another could let point here
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def cookies(header: str, name: str) -> Iterator[str]:
    """The values of a cookie.

    `http.cookies` loses every cookie behind an odd one, and other programs set cookies for the same host; some of its
    versions take quadratic time for one.
    """
    for part in header.split(";"):
        found, _, value = part.strip().partition("=")
        if found == name:
            yield value


def _split(host: str) -> tuple[str, int]:
    """The name and the port of a Host header."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").lower(), 80 if parts.port is None else parts.port
    except ValueError:
        return "", -1


def host_names(host: str) -> frozenset[str]:
    """The names under which a server that listens at this address may be asked for; `*` stands for any address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return frozenset({host.lower()})
    if address.is_unspecified:
        import socket

        return frozenset({"localhost", socket.gethostname().lower(), "*"})
    return frozenset({host, "localhost"} if address.is_loopback else {host})
