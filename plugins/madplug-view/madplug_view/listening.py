"""A socket that accepts connections as long as there is room for them."""

from __future__ import annotations

import errno
import socket
import time
from typing import Any

from typing_extensions import override

from madplug import UserError

MOST = 500
"""Connections at a time, in all: fewer than the files that a process may usually have open."""
EACH = 250
"""Connections at a time from one address."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listening(socket.socket):
    """Listens at an address; connections beyond `MOST`, or beyond `EACH` of one address, are closed at once.

    When the system has no more files, it accepts none for a second: event loops try again at once otherwise, and report
    each failure. Raises `UserError` if nobody can listen there. port: 0 is a free one.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
            self.listen()
        except (OSError, UnicodeError) as error:
            self.close()
            raise UserError(f"--host {host} --port {port}: cannot listen there: "
                            f"{getattr(error, 'strerror', None) or error}; port 0 is a free one") from None
        self._peers: dict[socket.socket, str] = {}
        self._full_until = 0.0

    @override
    def accept(self) -> tuple[socket.socket, Any]:
        if time.monotonic() < self._full_until:
            raise BlockingIOError
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in _NO_ROOM:
                self._full_until = time.monotonic() + 1.0
            raise
        self._peers = {open: host for open, host in self._peers.items() if open.fileno() >= 0}
        if len(self._peers) >= MOST or list(self._peers.values()).count(address[0]) >= EACH:
            connection.close()
            raise ConnectionAbortedError
        self._peers[connection] = address[0]
        return connection, address
