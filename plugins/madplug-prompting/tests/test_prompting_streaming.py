"""Replies that are shown while they are written."""

import asyncio

from madplug import Request
from madplug_prompting.streaming import begin_reply, listening_to
from madplug_testing import Scripted, play

REQUEST = Request((), "discuss", "m")


def test_nothing_listens_unless_a_program_does():
    heard = []
    assert begin_reply(REQUEST) is None
    with listening_to(lambda request: heard.append):
        begin_reply(REQUEST)("piece")
    assert heard == ["piece"]
    assert begin_reply(REQUEST) is None


def test_a_model_passes_on_what_it_writes_and_the_result_is_the_same():
    class Streaming(Scripted):
        async def complete(self, request):
            completion = await super().complete(request)
            if shown := begin_reply(request):
                await asyncio.sleep(0)
                shown(completion.text)
            return completion

    heard = []
    alone = play(model=Streaming(["A"] * 6), agents=2, rounds=3)
    with listening_to(lambda request: lambda text: heard.append((request.agent, text))):
        listened = play(model=Streaming(["A"] * 6), agents=2, rounds=3)
    assert listened.result.messages == alone.result.messages
    assert heard == [(0, "A"), (1, "A")] * 3
