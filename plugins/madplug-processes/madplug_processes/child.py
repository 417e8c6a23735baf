"""The worker process."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
import threading

from madplug_processes.frames import FrameProtocol

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when the thread that has started it ends."""
LOST_DRIVER = 70
"""The exit status of a worker whose driver is gone."""


def main(connection: int, watched: int) -> None:
    """Run jobs until the driver closes the worker, or is gone. Arguments: file descriptors."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # the driver stops the study; its workers finish calls in flight
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if sys.platform == "linux":  # ends also a process that stands still
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_with_driver, args=(watched,), daemon=True).start()
    asyncio.run(_work(connection))


def _end_with_driver(watched: int) -> None:
    """End the process when the driver's end of a pipe is closed, whatever a component is doing."""
    os.read(watched, 1)
    os._exit(LOST_DRIVER)


async def _work(connection: int) -> None:
    from madplug_workers import WorkerEnd

    gc.set_threshold(50_000, 20, 20)
    end = WorkerEnd(lambda data: protocol.send(data))
    disconnected = asyncio.Event()
    sock = socket.socket(fileno=connection)
    sock.setblocking(False)
    _, protocol = await asyncio.get_running_loop().connect_accepted_socket(
        lambda: FrameProtocol(end.receive, disconnected.set), sock)
    waits = [asyncio.ensure_future(event.wait()) for event in (end.closed, disconnected)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    protocol.close()
