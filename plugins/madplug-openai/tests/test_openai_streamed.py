"""Replies that are shown while they are written: the same completion as at once, from an endpoint that streams."""

import asyncio
import json

import pytest
from aiohttp import web

from madplug import Request, TransientError
from madplug.streaming import listening_to
from madplug_openai import Chat

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
WHOLE = {"id": "1", "model": "small", "usage": USAGE,
         "choices": [{"message": {"role": "assistant", "content": "Final answer: B"}, "finish_reason": "stop"}]}


def piece(text=None, finish=None, **more):
    return {"id": "1", "model": "small",
            "choices": [{"delta": {"content": text} if text else {}, "finish_reason": finish}], **more}


PIECES = [piece("Final "), piece("answer: "), piece("B"), piece(finish="stop"),
          {"id": "1", "choices": [], "usage": USAGE}]


def ask(events, *, listening=True, status=200, done=True):
    """The completion, what was shown, and the requests that the endpoint got."""
    asked, shown = [], []

    async def answer(request):
        body = await request.json()
        asked.append(body)
        if not body.get("stream") or events is None:
            return web.json_response(WHOLE if status == 200 else {"error": {"message": "no"}}, status=status)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + ("data: [DONE]\n\n" if done else "")
        for i in range(0, len(text), 17):  # events arrive in any portions
            await response.write(text[i:i + 17].encode())
        return response

    async def main():
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        model = Chat(model="small", base_url=f"http://127.0.0.1:{port}/v1")
        try:
            await model.open()
            return await model.complete(Request(({"role": "user", "content": "?"},), "discuss", "m"))
        finally:
            await model.close()
            await runner.cleanup()

    if not listening:
        return asyncio.run(main()), shown, asked
    with listening_to(lambda request: shown.append):
        return asyncio.run(main()), shown, asked


def test_a_streamed_reply_is_the_same_completion_and_is_shown_piece_by_piece():
    streamed, shown, asked = ask(PIECES)
    at_once, _, plain = ask(PIECES, listening=False)
    assert (streamed.text, streamed.usage.prompt, streamed.usage.completion) == (
        at_once.text, at_once.usage.prompt, at_once.usage.completion) == ("Final answer: B", 7, 3)
    assert shown == ["Final ", "answer: ", "B"]
    assert (asked[0]["stream"], "stream" in plain[0]) == (True, False)


def test_an_endpoint_that_does_not_stream_answers_at_once():
    completion, shown, _ = ask(None)
    assert (completion.text, shown) == ("Final answer: B", [])


@pytest.mark.parametrize(("events", "options", "words"), [
    (PIECES[:2], {"done": False}, "broke in the middle"), (None, {"status": 503}, "no"),
    ([piece("Fin"), {"error": {"message": "overloaded", "code": 503}}], {}, "overloaded")])
def test_a_reply_that_breaks_off_or_is_an_error_may_be_tried_again(events, options, words):
    with pytest.raises(TransientError, match=words):
        ask(events, **options)
