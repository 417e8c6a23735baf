"""An executor that runs debates in one other process, connected by a pipe."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

from pydantic import Field

from madplug import Executor, Options, StudyError, hookimpl
from madplug.study import Worker

WAITS = ("claim", "admit", "keep", "pause", "finish", "recall", "remember")
"""Methods of the driver whose result the worker awaits; calls of the others are only sent."""


class OneProcessOptions(Options):
    """Options of `apart.one_process`."""

    debates: int = Field(default=10, ge=1, description="debates that the process runs at the same time")


class OneProcess(Executor):
    """Runs every debate in one other process."""

    name = "one_process"

    Options = OneProcessOptions

    async def run(self, jobs, driver):
        """Send jobs to the process, and carry out its calls of the driver."""
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, driver.folder / "study.toml"), daemon=True)
        process.start()
        there.close()
        try:
            await Server(here, driver, jobs, self.options.debates).serve()
        finally:
            here.close()
            await asyncio.to_thread(process.join, 10)
            process.kill()


class Server:
    """The driver's end of the pipe."""

    def __init__(self, pipe, driver, jobs, room):
        self.pipe, self.driver, self.jobs, self.room = pipe, driver, jobs, asyncio.Semaphore(room)
        self.tasks, self.open, self.fed = set(), 0, False

    async def serve(self):
        """Serve until every job has ended."""
        self.driver.when_stopped.append(lambda: self.pipe.send(("ending", self.driver.ending)))
        reader = ThreadPoolExecutor(1)
        feeding = asyncio.ensure_future(self.feed())
        loop = asyncio.get_running_loop()
        try:
            while not (feeding.done() and self.open == 0):
                message = await loop.run_in_executor(reader, self.receive)
                if message is not None:
                    self.handle(*message)
            await feeding
            await asyncio.gather(*self.tasks)
            self.pipe.send(("over", None))
        finally:
            feeding.cancel()
            reader.shutdown(wait=True)

    def receive(self):
        """The next message, or None after a while."""
        try:
            return self.pipe.recv() if self.pipe.poll(0.05) else None
        except EOFError:
            raise StudyError("the worker process has died") from None

    async def feed(self):
        """Hand out jobs as there is room for them."""
        async for job in self.jobs:
            await self.room.acquire()
            self.open += 1
            self.pipe.send(("job", job))

    def handle(self, number, name, arguments):
        """Carry out a call of the worker."""
        if name == "ended":
            self.open -= 1
            self.room.release()
        elif name in WAITS:
            task = asyncio.ensure_future(self.answer(number, name, arguments))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            getattr(self.driver, name)(*arguments)

    async def answer(self, number, name, arguments):
        """Send back what a method of the driver returns, or raises."""
        try:
            reply = (await getattr(self.driver, name)(*arguments), None)
        except Exception as error:
            reply = (None, error)
        self.pipe.send(("answer", (number, *reply)))


class RemoteDriver:
    """The worker's end of the pipe: every method of a driver, as a message."""

    def __init__(self, pipe):
        self.pipe, self.numbers, self.waiting, self.ending = pipe, itertools.count(), {}, None

    def __getattr__(self, name):
        return (lambda *a: self.ask(name, *a)) if name in WAITS else lambda *a: self.pipe.send((0, name, a))

    async def ask(self, name, *arguments):
        """Send a request and wait for its answer."""
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        self.pipe.send((number, name, arguments))
        return await self.waiting[number]

    def answered(self, number, value, error):
        """An answer has come."""
        future = self.waiting.pop(number)
        future.set_result(value) if error is None else future.set_exception(error)


def work(pipe, path):
    """The worker process."""
    asyncio.run(work_through(pipe, path))


async def work_through(pipe, path):
    """Prepare the worker, then run jobs until there are no more."""
    loop, driver, tasks = asyncio.get_running_loop(), RemoteDriver(pipe), set()
    worker = Worker.from_file(path, driver)
    opening = asyncio.ensure_future(worker.open())

    async def run(job):
        await asyncio.shield(opening)
        await worker.run(job)
        pipe.send((0, "ended", ()))

    with ThreadPoolExecutor(1) as reader:
        while True:
            kind, content = await loop.run_in_executor(reader, pipe.recv)
            if kind == "over":
                break
            if kind == "answer":
                driver.answered(*content)
            elif kind == "ending":
                driver.ending = content
            else:
                task = asyncio.ensure_future(run(content))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        await worker.close()


@hookimpl
def madplug_register_executors():
    """Register executors."""
    return [OneProcess]
