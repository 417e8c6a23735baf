"""The driver's side of a worker process: starts it, and carries bytes over a pair of connected sockets."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable

from madplug import python_command
from madplug_processes.frames import FrameProtocol

_MAIN = """
from madplug_processes.child import main
main(*map(int, sys.argv[1:]))
"""
_POLL = 0.05


async def start_worker(number: int, receive: Callable[[bytes], None],
                       lost: Callable[[str], None]) -> WorkerProcess:
    """Start a worker process."""
    here, there = socket.socketpair()
    watched, alive = os.pipe()
    try:
        process = _spawn(there.fileno(), watched)
    except OSError:
        here.close()
        os.close(alive)
        raise
    finally:
        there.close()
        os.close(watched)
    worker = WorkerProcess(process, alive, lost)
    here.setblocking(False)
    _, protocol = await asyncio.get_running_loop().connect_accepted_socket(
        lambda: FrameProtocol(receive, worker.disconnected), here)
    worker.connection = protocol
    return worker


def _spawn(*handles: int) -> subprocess.Popen[bytes]:
    """A process that has these file descriptors."""
    return subprocess.Popen(python_command(_MAIN, *map(str, handles)), pass_fds=handles, stdin=subprocess.DEVNULL)


class WorkerProcess:
    """A worker process, and the connection to it.

    `alive` is the end of a pipe that is never written to: when this process ends, however it does, the worker notices.
    """

    connection: FrameProtocol

    def __init__(self, process: subprocess.Popen[bytes], alive: int, lost: Callable[[str], None]) -> None:
        self._process = process
        self._alive = alive
        self._lost = lost
        self._reaping: asyncio.Task[None] | None = None

    def send(self, data: bytes) -> None:
        """Send a batch."""
        self.connection.send(data)

    def disconnected(self) -> None:
        """The connection has ended, and so has the worker, or it is about to."""
        self._reaping = self._reaping or asyncio.ensure_future(self._reap())

    async def _reap(self) -> None:
        """Wait for the end of the process, and report it."""
        for _ in range(100):
            if self._process.poll() is not None:
                break
            await asyncio.sleep(_POLL)
        else:
            self._process.kill()
            self._process.wait()
        self._close()
        status = self._process.returncode
        self._lost(f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}")

    async def end(self) -> None:
        """Wait until the worker has ended."""
        self.disconnected()
        if self._reaping is not None:
            await self._reaping

    def kill(self) -> None:
        """End the worker at once."""
        self._lost = lambda reason: None
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self.connection.abort()
        self._close()
        if self._reaping is not None:
            self._reaping.cancel()

    def _close(self) -> None:
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
