"""Calls through litellm, over real HTTP to the repository's own endpoint."""

import asyncio
import logging
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from madplug import (
    AccessError,
    Completion,
    EmptyReplyError,
    ModelError,
    OverloadedError,
    RefusedError,
    Request,
    TransientError,
    UnreachableError,
    Volatile,
)
from madplug_litellm import Chat
from madplug_litellm.prices import price_of
from madplug_prompting.streaming import listening_to
from madplug_testing.endpoint import completion, running_endpoint

# Not importorskip: litellm would be imported before it is told to fetch nothing.
pytestmark = pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed")
KEY = "sk-proj-abc123DEF456ghi789"
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
          "additionalProperties": False}
QUESTION = {"role": "user", "content": "2+2?"}
ASKED = Request((QUESTION,), "discuss", "m", 0, {}, None, 1234)


@pytest.fixture(autouse=True)
def _a_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def ask(url, *requests, **options):
    """The outcomes of the requests, made at the same time: completions and errors."""
    async def talk():
        model = Chat(**{"model": "openai/fake", "api_base": url, "timeout": 5.0, **options})
        await model.open()
        try:
            outcomes = await asyncio.gather(*map(model.complete, requests or [ASKED]), return_exceptions=True)
        finally:
            await model.close()
        assert all(isinstance(outcome, Completion | ModelError) for outcome in outcomes), outcomes
        return outcomes

    return asyncio.run(talk())


def exchange(replies=None, *, form=None, params=None, messages=(QUESTION,), **options):
    """One call: the headers and the body that were sent, and the completion."""
    with running_endpoint(replies, keep=1) as endpoint:
        answered, = ask(endpoint.url, Request(messages, "discuss", "m", 0, params or {}, form, 1234), **options)
        assert isinstance(answered, Completion), answered
        (headers, body), = endpoint.seen
    return headers, body, answered


def outcome_of(fault, **options):
    with running_endpoint(faults=[fault], retry_after="7.5") as endpoint:
        outcome, = ask(endpoint.url, **options)
        assert endpoint.stats()["requests"] == 1
    return outcome


# Faults

KINDS = {
    RefusedError: "400 413 422 context filter huge gzip_bomb endless_chunks",
    AccessError: "401 402 403 404 quota",
    OverloadedError: "429",
    TransientError: "408 409 500 502 503 529 closed_in_body reset_in_body malformed no_choices error_in_200 utf8",
    EmptyReplyError: "empty",
    UnreachableError: "reset closed",
}


@pytest.mark.parametrize(("fault", "kind"), [(fault, kind) for kind, all_ in KINDS.items() for fault in all_.split()])
def test_a_failure_is_of_its_kind_is_tried_once_here_and_says_nothing_of_the_key(fault, kind):
    error = outcome_of(fault, max_reply_mb=1.0)
    assert type(error) is kind
    assert KEY[:12] not in str(error) + repr(error)
    assert error.__cause__ is None


@pytest.mark.parametrize(("fault", "said", "wait"), [
    ("context", "HTTP 400 Bad Request: the context length is 8192 tokens, got 9001", None),
    ("401", "HTTP 401 Unauthorized: incorrect API key provided: Bearer [key]", None),
    ("huge", "the reply is larger than max_reply_mb, 16 MB", None),
    ("429", "HTTP 429 Too Many Requests: the endpoint says 429", 7.5),
    ("503", "HTTP 503 Service Unavailable: the endpoint says 503", 7.5),
    ("500", "HTTP 500 Internal Server Error: the endpoint says 500", None)])
def test_a_failure_says_the_status_what_the_endpoint_says_and_the_wait_it_asks_for(fault, said, wait):
    error = outcome_of(fault, timeout=60.0)
    assert (str(error), getattr(error, "retry_after", None)) == (said, wait)


def test_replies_that_no_terminal_or_store_likes_break_nothing_and_a_hang_ends_with_the_timeout():
    assert outcome_of("escapes").text == "\x1b[2J\x00\u202e\ufffd A"
    assert len(outcome_of("big", timeout=60.0).text) == 10_000_000
    assert isinstance(outcome_of("hang", timeout=0.3), TransientError)


@pytest.mark.parametrize(("model", "url", "kind", "said"), [
    ("nosuch/fake", None, RefusedError, "nosuch/fake"), ("openai/gpt-4o-mini", None, RefusedError, "credentials"),
    ("openai/fake", "http://127.0.0.1:9/v1", UnreachableError, "")])
def test_a_provider_or_a_key_that_is_missing_is_refused_and_an_endpoint_unreachable(monkeypatch, model, url, kind,
                                                                                    said):
    monkeypatch.delenv("OPENAI_API_KEY")
    error, = ask(url, model=model)
    assert isinstance(error, kind)
    assert said in str(error).lower()


@pytest.mark.parametrize("form", [str, lambda key: quote(key, safe="")])
def test_a_key_that_is_repeated_in_a_reply_is_left_out_also_while_it_streams(form, monkeypatch):
    key = "sk-proj-abc/123+DEF456ghi789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = form(key)
    answered = exchange(lambda asked: completion(f"you sent {text}", reasoning_content=text))[2]
    assert answered.text == "you sent [key]"
    assert key[12:] not in str(answered)
    said = f"you sent {text}!"
    streamed, shown, _ = listen([*map(piece, (said[i:i + 4] for i in range(0, len(said), 4))), *PIECES[3:]])
    assert "".join(shown) == streamed.text == "you sent [key]!"


# Requests

def test_every_option_that_was_chosen_is_sent_and_nothing_else(monkeypatch):
    monkeypatch.setenv("LAB_KEY", "lab-key")
    headers, body, _ = exchange(temperature=0.5, top_p=0.9, max_tokens=64, stop=["\n"], api_key_env="LAB_KEY",
                                params={"max_tokens": 5}, extra={"frequency_penalty": 0.5})
    assert headers["authorization"] == "Bearer lab-key"
    assert body == {"model": "fake", "messages": [QUESTION], "temperature": 0.5, "top_p": 0.9, "max_tokens": 5,
                    "stop": ["\n"], "frequency_penalty": 0.5, "seed": 1234}
    monkeypatch.delenv("OPENAI_API_KEY")  # which a server of one's own does not need
    assert exchange(seed=False)[1] == {"model": "fake", "messages": [QUESTION]}


def test_images_pass_through_and_the_request_is_left_alone():
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
    message = {"role": "user", "content": parts}
    before = repr(message)
    assert exchange(messages=(message,))[1]["messages"] == [message]
    assert repr(message) == before


@pytest.mark.parametrize(("model", "structured", "form", "sent"), [
    *(("openai/fake", structured, {"json_schema": SCHEMA}, sent) for structured, sent in (
        ("auto", False), ("always", True))),
    ("openai/fake", "always", {"regex": "a"}, False), ("openai/gpt-4o-mini", "auto", {"json_schema": SCHEMA}, True),
    ("openai/gpt-4o-mini", "never", {"json_schema": SCHEMA}, False)])
def test_a_schema_is_sent_to_models_that_support_it_and_no_regular_expression(model, structured, form, sent):
    _, body, _ = exchange(model=model, structured=structured, form=form)
    expected = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}
    assert body.get("response_format") == (expected if sent else None)


def test_parameters_a_model_does_not_take_are_refused_or_dropped():
    with running_endpoint() as endpoint:
        error, = ask(endpoint.url, model="openai/gpt-5", temperature=0.3)
        assert isinstance(error, RefusedError)
        assert endpoint.stats()["requests"] == 0
    assert "temperature" not in exchange(model="openai/gpt-5", temperature=0.3, drop_params=True)[1]


def test_as_many_are_in_flight_as_are_asked_for():
    requests = [Request(({"role": "user", "content": str(i)},), "discuss", "m") for i in range(510)]
    with running_endpoint(gather=510) as endpoint:
        ask(endpoint.url, *requests, max_in_flight=510, timeout=60.0)
        assert endpoint.stats()["max_in_flight"] == 510


# Replies

@pytest.mark.parametrize(("model", "price", "cost"), [
    ("openai/gpt-4o-mini", None, (936 * 0.15 + 64 * 0.075 + 2 * 0.60) / 1e6), ("openai/fake", None, None),
    ("openai/gpt-4o-mini", {"prompt": 1.0, "completion": 2.0}, None)])  # a price of the run file is left to the host
def test_tokens_are_counted_and_priced_by_litellms_map_and_reasoning_and_probabilities_are_kept(model, price, cost):
    def reply(asked):
        made = completion("a b", 1000, asked["logprobs"], asked["top_logprobs"], reasoning_content="because")
        made["usage"]["prompt_tokens_details"] = {"cached_tokens": 64}
        return made

    answered = exchange(reply, model=model, params={"logprobs": 1, "top_logprobs": 2},
                        **({"price": price} if price else {}))[2]
    usage = answered.usage
    assert (usage.prompt, usage.completion, usage.cached) == (1000, 2, 64)
    assert usage.cost_usd == (None if cost is None else pytest.approx(cost))
    assert [usage.raw[name] for name in ("total_tokens", "finish_reason", "reasoning")] == [1002, "stop", "because"]
    assert (answered.logprobs, answered.top_logprobs) == ((-0.5, -1 / 3), ({"a": -0.5}, {"b": -1 / 3}))


# Replies that are shown while they are written

def piece(text=None, finish=None, **more):
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small", **more,
            "choices": [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}]}


PIECES = [piece("Final "), piece("answer: "), piece("B"), piece(finish="stop"),
          {**piece(), "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}]


def listen(events, *, listening=True):
    """The outcome, what was shown, and what was asked for, of an endpoint that streams these events."""
    shown = []
    whole = completion("Final answer: B", 7)
    with running_endpoint(lambda body: events if events and body.get("stream") else whole, keep=10) as endpoint:
        with listening_to(lambda request: shown.append) if listening else nullcontext():
            outcome, = ask(endpoint.url, model="openai/gpt-4o-mini")
        return outcome, shown, [body for _, body in endpoint.seen]


def test_a_reply_is_shown_piece_by_piece_with_its_usage_and_cost_where_something_listens_and_the_endpoint_streams():
    streamed, shown, asked = listen(PIECES)
    assert (streamed.text, shown) == ("Final answer: B", ["Final ", "answer: ", "B"])
    assert (streamed.usage.prompt, streamed.usage.completion) == (7, 3)
    assert streamed.usage.cost_usd == pytest.approx((7 * 0.15 + 3 * 0.60) / 1e6)
    assert asked[0]["stream"]
    answered, _, asked = listen(PIECES, listening=False)
    assert (answered.text, "stream" in asked[0]) == ("Final answer: B", False)
    answered, shown, asked = listen(None)
    assert (answered.text, shown, len(asked)) == ("Final answer: B", [], 2)


@pytest.mark.parametrize("events", [PIECES[:2], [piece("Fin"), {"error": {"message": "overloaded", "code": 503}}]])
def test_a_stream_that_breaks_off_may_be_tried_again(events):
    error, _, _ = listen(events)
    assert isinstance(error, TransientError), error


# Prices and the import

def test_prices_come_from_the_map_without_importing_litellm():
    code = ("import sys, madplug_litellm; print(madplug_litellm.Chat(model='openai/gpt-4o-mini').price, "
            "[m for m in ('litellm', 'aiohttp', 'httpx', 'openai') if m in sys.modules])")
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "{'prompt': 0.15, 'completion': 0.6, 'cached': 0.075} []\n"


def test_a_price_is_that_of_the_run_file_or_of_the_provider_that_was_named():
    price = {"prompt": 1.0, "completion": 2.0}
    assert Chat(model="openai/gpt-4o-mini", price=price).price == price
    assert price_of("mistral/gpt-4o-mini") is price_of("openai/fake") is None
    assert price_of("gpt-4o-mini") == price_of("openai/gpt-4o-mini")


def test_nothing_is_fetched_and_nothing_printed():
    code = ("import asyncio, socket, sys\n"
            "def no(*args, **more): raise SystemExit(f'looked up {args}')\n"
            "socket.getaddrinfo = no\n"
            "from madplug import Request\n"
            "from madplug_litellm import Chat\n"
            "async def go():\n"
            "    model = Chat(model='openai/fake', api_base=sys.argv[1])\n"
            "    await model.open()\n"
            "    for _ in range(2):\n"
            "        try: await model.complete(Request(({'role': 'user', 'content': '?'},), 'discuss', 'm'))\n"
            "        except Exception: pass\n"
            "    await model.close()\n"
            "asyncio.run(go())\n")
    with running_endpoint(faults=["500"]) as endpoint:
        command = [sys.executable, "-W", "default::UserWarning", "-c", code, endpoint.url]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        assert endpoint.stats()["ok"] == 1


def test_litellm_logs_nothing_of_a_call_that_fails(capfd, caplog):
    with caplog.at_level(logging.INFO):
        outcome_of("500")
    assert capfd.readouterr() == ("", "")
    assert not [r for r in caplog.records if r.name.startswith("LiteLLM")]


# What a run file may say

@pytest.mark.parametrize("wrong", [{"api_key_env": KEY}, {"api_base": f"http://me:{KEY}@host/v1"},
                                   {"extra": {"api_key": KEY}}])
def test_keys_and_credentials_are_refused_unechoed(wrong):
    with pytest.raises(ValidationError, match="must") as caught:
        Chat(model="openai/fake", **wrong)
    assert KEY not in str(caught.value)


def test_what_may_change_between_runs_is_marked():
    marked = {name for name, info in Chat.Options.model_fields.items() if Volatile in info.metadata}
    assert marked >= {"api_base", "api_key_env", "timeout", "max_in_flight"}
    assert not marked & {"model", "temperature", "top_p", "max_tokens", "stop", "seed", "structured", "drop_params"}
