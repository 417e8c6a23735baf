"""Replies that are shown while they are written: the same completion as at once, from an endpoint that streams."""

import asyncio
from contextlib import nullcontext

import pytest

from madplug import Request, TransientError
from madplug.streaming import listening_to
from madplug_openai import Chat
from madplug_testing.endpoint import running_endpoint

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
WHOLE = {"id": "1", "model": "small", "usage": USAGE,
         "choices": [{"message": {"role": "assistant", "content": "Final answer: B"}, "finish_reason": "stop"}]}


def piece(text=None, finish=None, **more):
    return {"id": "1", "model": "small",
            "choices": [{"delta": {"content": text} if text else {}, "finish_reason": finish}], **more}


PIECES = [piece("Final "), piece("answer: "), piece("B"), piece(finish="stop"),
          {"id": "1", "choices": [], "usage": USAGE}, "[DONE]"]


def ask(events, *, listening=True, status=200):
    """The completion, what was shown, and the requests that the endpoint got."""
    shown = []

    async def talk(url):
        model = Chat(model="small", base_url=url)
        try:
            await model.open()
            return await model.complete(Request(({"role": "user", "content": "?"},), "discuss", "m"))
        finally:
            await model.close()

    with running_endpoint(lambda body: events if events and body.get("stream") else WHOLE, keep=10,
                          faults=[] if status == 200 else [str(status)] * 10) as endpoint:
        with listening_to(lambda request: shown.append) if listening else nullcontext():
            completion = asyncio.run(talk(endpoint.url))
        return completion, shown, [body for _, body in endpoint.seen]


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


@pytest.mark.parametrize(("events", "status", "words"), [
    (PIECES[:2], 200, "broke in the middle"), (None, 503, "the endpoint says 503"),
    ([piece("Fin"), {"error": {"message": "overloaded", "code": 503}}, "[DONE]"], 200, "overloaded")])
def test_a_reply_that_breaks_off_or_is_an_error_may_be_tried_again(events, status, words):
    with pytest.raises(TransientError, match=words):
        ask(events, status=status)


@pytest.mark.parametrize("event", [
    {"object": "error", "message": "oops", "code": 500}, {"message": "boom"}, {"choices": 5}, {"choices": [[1]]},
    {"choices": [{"delta": {"content": "lost"}, "logprobs": {"content": 5}}]}, ["lost"], "Internal error",
    '{"choices": [{"delta": {"content": "lost', '{"choices": ' + "[" * 100_000])
def test_a_reply_of_which_a_piece_is_missing_may_be_tried_again(event):
    with pytest.raises(TransientError):
        ask([piece("Final "), event, *PIECES[1:]])


@pytest.mark.parametrize("events", [
    [piece([{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "Final "}]), *PIECES[1:]],
    [*PIECES[:2], {"choices": [{"index": 1, "delta": {"content": "other"}}]}, *PIECES[2:]],
    [*PIECES, piece("more")], ["", *PIECES]])
def test_an_answer_in_parts_beside_others_or_before_more_is_the_same_completion(events):
    streamed, shown, _ = ask(events)
    assert (streamed.text, streamed.usage.prompt) == ("Final answer: B", 7)
    assert shown == ["Final ", "answer: ", "B"]
