"""An executor that runs debates in other processes, connected by pipes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

from madplug import Executor, hookimpl
from madplug_workers import Pool, WorkerEnd


class Pipes(Executor):
    """Runs debates in two other processes; `Pool` does what is owed when one is lost."""

    name = "pipes"

    async def run(self, jobs, driver):
        """Run every job."""
        await Pool(driver, 2, start).run(jobs)


async def start(number, receive, lost):
    """Start a worker process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there,), daemon=True)
    process.start()
    there.close()
    return Piped(here, process, receive, lost)


class Piped:
    """A worker process at the other end of a pipe."""

    def __init__(self, pipe, process, receive, lost):
        self.process = process
        self.sender = ThreadPoolExecutor(1)  # a full pipe blocks
        self.send = lambda data: self.sender.submit(pipe.send_bytes, data)
        self.ended = asyncio.ensure_future(self.read(pipe, receive, lost))

    async def read(self, pipe, receive, lost):
        """Pass on what the worker sends, until it is gone."""
        try:
            while True:
                receive(await asyncio.to_thread(pipe.recv_bytes))
        except (EOFError, OSError):
            await asyncio.to_thread(self.process.join)
            self.sender.shutdown()
            lost(f"ended with status {self.process.exitcode}")

    async def end(self):
        """Wait until the worker has ended."""
        await self.ended

    def kill(self):
        """End the worker at once."""
        self.process.kill()


def work(pipe):
    """The worker process."""
    asyncio.run(serve(pipe))


async def serve(pipe):
    """Do what the driver says until it closes the pipe, or is gone."""
    def receive():
        try:
            end.receive(pipe.recv_bytes())
        except EOFError:
            os._exit(1)

    end = WorkerEnd(pipe.send_bytes)
    asyncio.get_running_loop().add_reader(pipe.fileno(), receive)
    await end.closed.wait()


@hookimpl
def madplug_register_executors():
    """Register executors."""
    return [Pipes]
