"""What becomes of every way an endpoint can fail, over real HTTP."""

import asyncio
import socket
import sys
import time
from email.utils import formatdate

import pytest

from madplug import (
    AccessError,
    Completion,
    ModelError,
    OverloadedError,
    RefusedError,
    Request,
    TransientError,
    UnreachableError,
)
from madplug_openai import Chat
from madplug_openai.keys import presentable
from madplug_testing.endpoint import completion, running_endpoint

KEY = "sk-proj-abc123DEF456ghi789"


def request(text="2+2?", **more):
    return Request(({"role": "user", "content": text},), "discuss", "m", **more)


CLIENTS = {"wire": "", "general": "/a b"}
"""What to add to an address so that this client is chosen for it: only one of them can encode a space."""
added = ""


@pytest.fixture(autouse=True, params=CLIENTS)
def _with_each_client(request, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "added", CLIENTS[request.param])


def ask(url, *requests, **options):
    """The outcomes of the requests, one after the other: completions and errors."""
    async def talk():
        model = Chat(**{"model": "fake", "base_url": url + added, "timeout": 5.0, **options})
        await model.open()
        try:
            return [await _outcome(model, r) for r in requests or (request(),)]
        finally:
            await model.close()

    return asyncio.run(talk())


async def _outcome(model, r):
    try:
        return await model.complete(r)
    except ModelError as error:
        return error


def outcome_of(fault, **options):
    settings = {k: options.pop(k) for k in ("retry_after", "latency_ms") if k in options}
    with running_endpoint(faults=[fault], **settings) as endpoint:
        return ask(endpoint.url, **options)[0]


@pytest.fixture(autouse=True)
def _a_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize("fault", ["408", "409", "425", "429", "500", "502", "503", "504", "529", "reset",
                                   "malformed", "no_choices", "empty", "error_in_200"])
def test_what_may_pass_is_worth_another_try(fault):
    with running_endpoint(faults=[fault]) as endpoint:
        first, second = ask(endpoint.url, request(), request())
    assert isinstance(first, TransientError)
    assert isinstance(second, Completion)


@pytest.mark.parametrize("fault", ["400", "401", "402", "403", "404", "413", "422", "context", "quota"])
def test_what_will_not_change_is_refused(fault):
    assert isinstance(outcome_of(fault), RefusedError)


@pytest.mark.parametrize(("fault", "kind"), [
    *((status, RefusedError) for status in ("400", "413", "422", "context", "filter", "flagged", "filter_in_200")),
    *((status, AccessError) for status in ("301", "307", "401", "402", "403", "404", "405", "quota")),
    ("429", OverloadedError),
    *((status, TransientError) for status in ("408", "409", "425", "500", "502", "503", "504", "529")),
    *((cut, TransientError) for cut in ("reset_in_body", "closed_in_body", "cut_chunks", "cut_gzip", "malformed")),
    *((broken, UnreachableError) for broken in ("reset", "closed"))])
def test_a_failure_is_of_its_kind(fault, kind):
    assert type(outcome_of(fault)) is kind


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
def test_an_endpoint_that_cannot_be_reached_is_unreachable(url):
    error, = ask(url)
    assert type(error) is UnreachableError


def test_a_connection_that_is_not_accepted_in_time_is_unreachable():
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:  # fill the queue: the kernel then lets further connections wait
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        time.sleep(0.05)
        error, = ask(f"http://127.0.0.1:{full.getsockname()[1]}/v1", timeout=0.5)
        for one in waiting:
            one.close()
    assert isinstance(error, UnreachableError | TransientError)
    assert "in time" in str(error) or "no answer within" in str(error)


def test_a_hang_ends_with_the_timeout():
    began = time.monotonic()
    error = outcome_of("hang", timeout=0.3)
    assert isinstance(error, TransientError)
    assert "no answer within 0.3 s" in str(error)
    assert time.monotonic() - began < 3


def test_a_connection_that_nobody_accepts_is_transient():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error, = ask(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
    assert isinstance(error, TransientError)
    assert "connection failed" in str(error)


def test_the_wait_asked_for_is_handed_on():
    assert outcome_of("429", retry_after="7.5").retry_after == 7.5
    assert outcome_of("503", retry_after="3").retry_after == 3
    assert outcome_of("500").retry_after is None


def test_the_wait_may_be_a_date():
    error = outcome_of("429", retry_after=formatdate(time.time() + 60, usegmt=True))
    assert 50 < error.retry_after <= 61


@pytest.mark.parametrize("nonsense", ["soon", "nan", "inf", "-3", "Thu, 99 Foo 2020"])
def test_a_wait_that_is_none_is_ignored(nonsense):
    assert outcome_of("429", retry_after=nonsense).retry_after is None


def test_a_refusal_says_the_status_and_what_the_endpoint_says():
    assert str(outcome_of("context")) == "HTTP 400 Bad Request: the context length is 8192 tokens, got 9001"
    assert str(outcome_of("404")) == "HTTP 404 Not Found: the endpoint says 404"


@pytest.mark.parametrize("fault", ["400", "401", "403", "404", "429", "500", "malformed", "context", "quota", "reset"])
def test_the_key_is_in_no_error(fault):
    error = outcome_of(fault)
    assert KEY not in str(error) + repr(error)
    assert KEY[:12] not in str(error)
    assert error.__cause__ is None  # the client's own errors hold the headers that were sent


def test_a_key_that_the_endpoint_repeats_is_blotted_out():
    assert str(outcome_of("401")) == "HTTP 401 Unauthorized: incorrect API key provided: Bearer [key]"


def test_a_refusal_for_want_of_a_key_says_so(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert str(outcome_of("401")).endswith("no key was sent, because the variable OPENAI_API_KEY is not set")


def test_the_same_refusal_reads_the_same_each_time():
    def refuse(asked):
        return {"error": {"message": f"no credit left (request id: req_{abs(hash(str(asked))):x}abcdef)", "code": 402}}

    with running_endpoint(refuse) as endpoint:
        first, second = ask(endpoint.url, request("a"), request("b"))
    assert str(first) == str(second) == "HTTP 402 Payment Required: no credit left"
    assert isinstance(first, RefusedError)


def test_an_endpoints_message_cannot_reach_the_terminal():
    def attack(asked):
        return {"error": {"message": "a\x1b[2J\x1b]0;title\x07b\r\nc\u202ed\x00" + "long " * 1000, "code": 400}}

    with running_endpoint(attack) as endpoint:
        error, = ask(endpoint.url)
    assert str(error).startswith("HTTP 400 Bad Request: ab c d long")
    assert str(error).isprintable()
    assert len(str(error)) < 340


def test_bytes_that_are_no_text_are_replaced():
    assert outcome_of("utf8").text == "A \ufffd\ufffd\ufffd( B"


def test_control_characters_are_data_and_half_characters_are_replaced():
    text = outcome_of("escapes").text
    assert text == "\x1b[2J\x00\u202e\ufffd A"
    text.encode()


def test_ten_megabytes_arrive_whole():
    assert len(outcome_of("big", timeout=30.0).text) == 10_000_000


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"text"', b'{"choices": []}', b'{"choices": [null]}',
                                  b'{"choices": [{"message": null}]}', b'{"choices": {"0": 1}}', b"[" * 100_000,
                                  b'{"choices": [{"message": {"content": 5}}]}', b"<html>gateway</html>"])
def test_replies_of_another_shape_are_worth_another_try(body):
    with running_endpoint(lambda asked: body) as endpoint:
        error, = ask(endpoint.url)
    assert isinstance(error, TransientError)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_that_never_began_is_not_paid_for_again(finish):
    def silent(asked):
        reply = completion(None)
        reply["choices"][0]["finish_reason"] = finish
        return reply

    with running_endpoint(silent) as endpoint:
        error, = ask(endpoint.url)
    assert isinstance(error, RefusedError)


def test_a_client_goes_on_after_every_fault():
    faults = ["reset", "500", "malformed", "429", "empty", "utf8", "error_in_200"]
    with running_endpoint(faults=faults) as endpoint:
        outcomes = ask(endpoint.url, *(request(str(i)) for i in range(10)))
        stats = endpoint.stats()
    assert [isinstance(o, Completion) for o in outcomes] == [False] * 5 + [True, False] + [True] * 3
    assert stats["requests"] == 10
    assert stats["faults"] == dict.fromkeys(faults, 1)


def test_an_address_that_leads_elsewhere_is_refused_and_not_followed():
    with running_endpoint(faults=["307"]) as endpoint:
        error, = ask(endpoint.url)
    assert isinstance(error, RefusedError)
    assert "name the final one" in str(error)


@pytest.mark.parametrize(("said", "advice"), [
    ("'max_tokens' is not supported; use 'max_completion_tokens'", 'set max_tokens_field = "max_completion_tokens"'),
    ("response_format of type json_schema is not supported", 'set structured = "none"')])
def test_a_refusal_that_an_option_would_avoid_names_the_option(said, advice):
    with running_endpoint(lambda asked: {"error": {"message": said, "code": 400}}) as endpoint:
        error, = ask(endpoint.url)
    assert isinstance(error, RefusedError)
    assert advice in str(error)


def test_a_call_that_is_cancelled_leaves_the_others_alone():
    async def talk(url):
        model = Chat(model="fake", base_url=url + added)
        await model.open()
        first, second = (asyncio.ensure_future(model.complete(request(text))) for text in "ab")
        await asyncio.sleep(0.05)
        first.cancel()
        answered = await second
        again = await model.complete(request("c"))
        await model.close()
        return first.cancelled(), answered, again

    with running_endpoint(latency_ms=300) as endpoint:
        cancelled, answered, again = asyncio.run(talk(endpoint.url))
    assert cancelled
    assert isinstance(answered, Completion)
    assert isinstance(again, Completion)


def test_a_model_that_was_never_opened_can_be_closed():
    asyncio.run(Chat(model="fake").close())


@pytest.mark.parametrize("password", ["short", "with/slash@and-at", "percent%2Fencoded", ""])
@pytest.mark.parametrize("around", ["{}", "url='{}', again", "({})", "proxy={} and {}"])
def test_no_password_of_an_address_is_in_a_message(password, around):
    said = presentable("failed: " + around.replace("{}", f"http://someone:{password}@host:1"))
    assert "someone" not in said
    assert not password or password not in said
    assert "http://[key]@" in said
