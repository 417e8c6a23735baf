"""Debates over HTTP with scripted agents, and what was really sent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

from madplug.config import load
from madplug.registry.installed import Registry
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug_testing import Scripted
from madplug_testing.endpoint import Endpoint

REGISTRY = Registry()


class Sent(Scripted):
    """The model of the run file, asked over HTTP for one reply after the other; notes what was sent for whom."""

    def __init__(self, model, script, done):
        super().__init__(model=model)
        self.script, self.done = script, done

    async def complete(self, request):
        async with self.done.lock:  # so that the order of the calls is that of the debate
            self.done.next_reply = self.script(request)
            completion = await super().complete(request)
            self.done.calls.append((request, self.done.endpoint.seen[-1][1]))
            return completion


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
    done, store = SimpleNamespace(lock=asyncio.Lock(), calls=[], next_reply=""), MemoryStore()

    async def run():
        async with Endpoint(lambda body: done.next_reply, keep=1) as done.endpoint:
            models = "\n".join(f'models.{m} = {{use = "openai.chat", model = "{m}", base_url = "{done.endpoint.url}"}}'
                               for m in "mxy")
            (folder / "q.jsonl").write_text(json.dumps(row) + "\n")
            (folder / "run.toml").write_text(f'''
dataset = {{use = "files.table", path = "q.jsonl", answers = "answers.{answers}"{images}{dataset}}}
{models}
{top}
[debate]
{"" if "models = " in debate else 'models = ["m"]'}
{debate}
''')
            done.plan = load(folder / "run.toml", registry=REGISTRY).plan
            sent = {name: Sent(model, script, done) for name, model in done.plan.models.items()}
            await StudyRun(replace(done.plan, models=sent), store).run()

    asyncio.run(run())
    done.results = list(store.results())
    assert not any(result.error for result in done.results), [result.error for result in done.results]
    return done
