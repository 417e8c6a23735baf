"""Debates over HTTP with scripted agents, and what was really sent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from madplug.config import load
from madplug.registry.installed import Registry
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug_testing import Scripted
from madplug_testing.endpoint import Endpoint

REGISTRY = Registry()


class Sent(Scripted):
    """The model of the run file, asked over HTTP for one reply after the other; notes what was sent for whom."""

    def __init__(self, model, script, exchange):
        super().__init__(model=model)
        self.script, self.exchange = script, exchange

    async def complete(self, request):
        async with self.exchange.lock:
            self.exchange.next_reply = self.script(request)
            completion = await super().complete(request)
            self.exchange.calls.append((request, self.exchange.endpoint.seen[-1][1]))
            return completion


class Exchange:
    """One call at a time, so that the order of the calls is that of the debate."""

    def __init__(self):
        self.lock, self.next_reply = asyncio.Lock(), ""
        self.calls = []

    async def run(self, resolve, script):
        """Run the study that `resolve(url)` makes."""
        async with Endpoint(lambda body: self.next_reply, keep=1) as self.endpoint:
            self.plan = resolve(self.endpoint.url).plan
            models = {name: Sent(model, script, self) for name, model in self.plan.models.items()}
            store = MemoryStore()
            await StudyRun(replace(self.plan, models=models), store).run()
        self.results = list(store.results())
        for result in self.results:
            assert result.error is None, result.error


def exchange(*arguments, **named):
    """The calls of `exchanged`, each with the body that was sent, and the results."""
    done = exchanged(*arguments, **named)
    return done.calls, done.results


def exchanged(folder, debate, script, row, *, dataset="", top=""):
    """One study of one question over HTTP: its plan, its calls and its results.

    debate: the `[debate]` table. script: the reply to a request. row: the question, with its choices if it has any.
    dataset: further options of the data set, as in an inline table. top: further lines of the run file.
    """
    answers = "choice" if "choices" in row else "text"
    images = ', columns = {images = "images"}' if "images" in row else ""

    def resolve(url):
        (folder / "q.jsonl").write_text(json.dumps(row) + "\n")
        models = "\n".join(f'models.{m} = {{use = "openai.chat", model = "{m}", base_url = "{url}"}}' for m in "mxy")
        (folder / "run.toml").write_text(f'''
dataset = {{use = "files.table", path = "q.jsonl", answers = "answers.{answers}"{images}{dataset}}}
{models}
{top}
[debate]
{"" if "models = " in debate else 'models = ["m"]'}
{debate}
''')
        return load(folder / "run.toml", registry=REGISTRY)

    done = Exchange()
    asyncio.run(done.run(resolve, script))
    return done
