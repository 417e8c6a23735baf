"""Replies that are shown while they are written: the same completion as at once, from an endpoint that streams."""

import json
from contextlib import nullcontext
from urllib.parse import quote

import pytest

from madplug import EmptyReplyError, Request, TransientError
from madplug_prompting.streaming import listening_to
from madplug_testing.endpoint import running_endpoint

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
WHOLE = {"id": "1", "model": "small", "usage": USAGE,
         "choices": [{"message": {"role": "assistant", "content": "Final answer: B"}, "finish_reason": "stop"}]}


def piece(text=None, finish=None, **more):
    return {"id": "1", "model": "small",
            "choices": [{"delta": {"content": text} if text else {}, "finish_reason": finish}], **more}


PIECES = [piece("Final "), piece("answer: "), piece("B"), piece(finish="stop"),
          {"id": "1", "choices": [], "usage": USAGE}, "[DONE]"]


@pytest.fixture
def stream(ask):
    """The outcome, what was shown, and the requests that the endpoint got."""
    def stream(events, *, listening=True, status=None):
        shown = []
        with running_endpoint(lambda body: events if events and body.get("stream") else WHOLE, keep=10,
                              faults=[status]) as endpoint:
            with listening_to(lambda request: shown.append) if listening else nullcontext():
                outcome, = ask(endpoint.url, model="small")
            return outcome, shown, [body for _, body in endpoint.seen]

    return stream


def test_a_streamed_reply_is_the_same_completion_and_is_shown_piece_by_piece(stream):
    streamed, shown, asked = stream(PIECES)
    at_once, _, plain = stream(PIECES, listening=False)
    assert (streamed.text, streamed.usage.prompt, streamed.usage.completion) == (
        at_once.text, at_once.usage.prompt, at_once.usage.completion) == ("Final answer: B", 7, 3)
    assert shown == ["Final ", "answer: ", "B"]
    assert (asked[0]["stream"], "stream" in plain[0]) == (True, False)
    whole, shown, _ = stream(None)
    assert (whole.text, shown) == ("Final answer: B", []), "the endpoint does not stream"


@pytest.mark.parametrize(("events", "status", "words"), [
    (PIECES[:2], None, "broke in the middle"), (None, "503", "the endpoint says 503"),
    ([piece("Fin"), {"error": {"message": "overloaded", "code": 503}}, "[DONE]"], None, "overloaded"),
    *(([piece("Final "), event, *PIECES[1:]], None, "") for event in (
        {"object": "error", "message": "oops", "code": 500}, {"message": "boom"}, {"choices": 5}, {"choices": [[1]]},
        {"choices": [{"delta": {"content": "lost"}, "logprobs": {"content": 5}}]}, ["lost"], "Internal error",
        '{"choices": [{"delta": {"content": "lost', '{"choices": ' + "[" * 100_000))])
def test_a_reply_that_breaks_off_lacks_a_piece_or_is_an_error_may_be_tried_again(stream, events, status, words):
    error = stream(events, status=status)[0]
    assert isinstance(error, TransientError)
    assert words in str(error)


@pytest.mark.parametrize("events", [
    [piece([{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "Final "}]), *PIECES[1:]],
    [*PIECES[:2], {"choices": [{"index": 1, "delta": {"content": "other"}}]}, *PIECES[2:]],
    [*PIECES, piece("more")], ["", *PIECES]])
def test_an_answer_in_parts_beside_others_or_before_more_is_the_same_completion(stream, events):
    streamed, shown, _ = stream(events)
    assert (streamed.text, streamed.usage.prompt) == ("Final answer: B", 7)
    assert shown == ["Final ", "answer: ", "B"]


AWKWARD = 'sk-proj/abc+123"DEF456'
JSON = json.dumps(AWKWARD)[1:-1]


@pytest.mark.parametrize("escaped", [AWKWARD, quote(AWKWARD, safe=""), JSON, json.dumps(JSON)[1:-1],
                                     JSON.replace("/", r"\/")])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_key_that_the_endpoint_repeats_is_blotted_out_in_pieces_as_in_one(stream, escaped, size, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", AWKWARD)
    text = f"It is {escaped}, {escaped}!"
    pieces = [piece(text[i:i + size]) for i in range(0, len(text), size)]
    completion, shown, _ = stream([*pieces, piece(finish="stop"), "[DONE]"])
    assert "".join(shown) == completion.text == "It is [key], [key]!"


def test_what_only_begins_like_a_key_is_shown_in_the_end(stream, key):
    text = f"{key[:5]} {key[:-1]}"
    completion, shown, _ = stream([*(piece(c) for c in text), piece(finish="stop"), "[DONE]"])
    assert "".join(shown) == completion.text == text


def delta(**fields):
    return {"choices": [{"delta": fields, "finish_reason": None}]}


def test_a_refusal_is_shown_and_a_call_of_a_tool_is_no_empty_answer_without_reason(stream):
    completion, shown, _ = stream([delta(refusal="I would "), delta(refusal="rather not"), *PIECES[3:]])
    assert completion.text == "".join(shown) == "I would rather not"
    error, _, _ = stream([delta(tool_calls=[{"function": {"name": "look"}}]), *PIECES[3:]])
    assert type(error) is EmptyReplyError
    assert "called the tool 'look'" in str(error)


def test_calls_of_tools_that_were_offered_are_part_of_the_reply_in_pieces_as_at_once(ask):
    look = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}}
    see = {"id": "c2", "type": "function", "function": {"name": "see", "arguments": "{}"}}
    begun = {**look, "index": 0, "function": {"name": "look", "arguments": "{\"at\""}}
    pieces = [delta(tool_calls=[begun]), delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
              delta(tool_calls=[{**see, "index": 1}]), *PIECES[3:]]
    whole = {**WHOLE, "choices": [{"message": {"content": None, "tool_calls": [look, see]}}]}
    request = Request(({"role": "user", "content": "?"},), "discuss", "m", params={"tools": [look]})
    for streams in (True, False):
        with running_endpoint(lambda body: pieces if body.get("stream") else whole) as endpoint, \
                listening_to(lambda request: str) if streams else nullcontext():
            [completion] = ask(endpoint.url, request)
        calls = completion.usage.raw["tool_calls"]
        assert [(c["id"], c["function"]) for c in calls] == [("c1", look["function"]), ("c2", see["function"])]
