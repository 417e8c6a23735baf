"""What becomes of every way an endpoint can fail, over real HTTP; `tests/faults/test_modes.py` has whole studies."""

import socket
import time
from email.utils import formatdate

import pytest

from madplug import (
    AccessError,
    EmptyReplyError,
    OverloadedError,
    RefusedError,
    TransientError,
    UnreachableError,
    Usage,
)
from madplug_openai.keys import presentable
from madplug_testing.endpoint import completion, running_endpoint

KINDS = {
    RefusedError: "400 413 422 context filter flagged filter_in_200",
    AccessError: "301 307 401 402 403 404 405 quota",
    OverloadedError: "429",
    TransientError: "408 409 425 500 502 503 504 529 reset_in_body closed_in_body cut_chunks cut_gzip malformed "
                    "no_choices error_in_200 brotli blank json_null json_array json_text no_choice null_choice "
                    "null_message object_choices number_content deep html",
    EmptyReplyError: "empty null_content filtered",
    UnreachableError: "reset closed",
}


@pytest.mark.parametrize(("fault", "kind"), [(fault, kind) for kind, all_ in KINDS.items() for fault in all_.split()])
def test_a_failure_is_of_its_kind_and_says_nothing_of_the_key(outcome, key, fault, kind):
    error = outcome(fault)
    assert type(error) is kind
    assert key[:12] not in str(error) + repr(error)
    assert error.__cause__ is None  # the client's own errors hold the headers that were sent


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
def test_an_endpoint_that_cannot_be_reached_is_unreachable(ask, url):
    error, = ask(url)
    assert type(error) is UnreachableError


def test_a_connection_that_is_not_accepted_in_time_may_be_tried_again(ask):
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
    assert isinstance(error, TransientError)
    assert "in time" in str(error) or "no answer within" in str(error)


@pytest.mark.parametrize(("fault", "kind", "message"), [
    ("hang", TransientError, "no answer within 0.3 s"),
    ("context", RefusedError, "HTTP 400 Bad Request: the context length is 8192 tokens, got 9001"),
    ("401", AccessError, "HTTP 401 Unauthorized: incorrect API key provided: Bearer [key]"),
    ("307", AccessError, "HTTP 307 Temporary Redirect: the endpoint says 307; the address in base_url leads "
                         "elsewhere: name the final one")])
def test_a_failure_says_the_status_and_what_the_endpoint_says(outcome, fault, kind, message):
    error = outcome(fault, timeout=0.3 if fault == "hang" else 5.0)
    assert (type(error), str(error)) == (kind, message)


@pytest.mark.parametrize(("fault", "asked", "wait"), [
    ("429", "7.5", 7.5), ("503", "3", 3), ("500", "3", None),
    *(("429", nonsense, None) for nonsense in ("soon", "nan", "inf", "-3", "Thu, 99 Foo 2020"))])
def test_the_wait_that_an_endpoint_asks_for_is_handed_on(outcome, fault, asked, wait):
    assert outcome(fault, retry_after=asked).retry_after == wait


def test_the_wait_may_be_a_date(outcome):
    assert 50 < outcome("429", retry_after=formatdate(time.time() + 60, usegmt=True)).retry_after <= 61


@pytest.mark.parametrize(("said", "code", "kind", "shown"), [
    ("'max_tokens' is not supported; use 'max_completion_tokens'", 400, RefusedError,
     'set max_tokens_field = "max_completion_tokens"'),
    ("response_format of type json_schema is not supported", 400, RefusedError, 'set structured = "none"'),
    ("who?", 401, AccessError, "no key was sent, because the variable OPENAI_API_KEY is not set"),
    # The same refusal reads the same each time.
    ("no credit left (request id: req_1f2e3dabcdef)", 402, AccessError, "HTTP 402 Payment Required: no credit left")])
def test_a_refusal_says_what_the_user_can_do_about_it(outcome, monkeypatch, said, code, kind, shown):
    monkeypatch.delenv("OPENAI_API_KEY")
    error = outcome(reply={"error": {"message": said, "code": code}})
    assert type(error) is kind
    assert shown in str(error)
    assert "req_" not in str(error)


@pytest.mark.parametrize(("message", "told"), [("File Not Found", True), ("The model `m` does not exist", False)])
def test_a_404_at_an_address_without_v1_asks_whether_it_is_right_unless_the_model_is_named(ask, message, told):
    with running_endpoint(lambda asked: {"error": {"message": message, "code": 404}}) as endpoint:
        error, = ask(endpoint.url.removesuffix("/v1"), model="m")
    assert str(error).endswith("(is base_url right? Most end in /v1)") is told


def test_an_endpoints_message_cannot_reach_the_terminal(outcome):
    message = "a\x1b[2J\x1b]0;title\x07b\r\nc\u202ed\x00" + "long " * 1000
    said = str(outcome(reply={"error": {"message": message, "code": 400}}))
    assert said.startswith("HTTP 400 Bad Request: ab c d long")
    assert said.isprintable()
    assert len(said) < 340


def test_bytes_that_are_no_text_are_replaced_and_ten_megabytes_arrive_whole(outcome):
    assert outcome("utf8").text == "A \ufffd\ufffd\ufffd( B"
    assert outcome("escapes").text.encode() == "\x1b[2J\x00\u202e\ufffd A".encode()
    assert len(outcome("big", timeout=30.0).text) == 10_000_000


@pytest.mark.parametrize(("finish", "message", "why"), [
    ("length", {}, "its tokens were used up before it began; raise max_tokens"),
    ("content_filter", {}, "the endpoint's content filter withheld it"),
    ("stop", {"reasoning_content": "hm"}, "the model reasoned and then said nothing"),
    ("tool_calls", {"tool_calls": [{"function": {"name": "get_time"}}, {"function": {"name": "x\x1b[2J"}}]},
     "the model called the tool 'get_time', 'x' instead; offer it no tools"),
    ("function_call", {"function_call": {"name": "look"}}, "the model called the tool 'look' instead"),
    ("tool_calls", {"tool_calls": ["?"]}, "the model called a tool instead")])
def test_an_empty_reply_says_why_and_what_it_used(outcome, finish, message, why):
    reply = completion(None, 90, **message)
    reply["choices"][0]["finish_reason"] = finish
    error = outcome(reply=reply)
    assert type(error) is EmptyReplyError
    assert str(error).startswith(f"the answer is empty: {why}")
    assert (error.usage.prompt, error.usage.raw["finish_reason"]) == (90, finish)


@pytest.mark.parametrize(("usage", "billed"), [
    ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(7, 3)), ("much", None), (None, None)])
def test_a_reply_that_cannot_be_read_is_paid_if_it_says_what_it_used(outcome, usage, billed):
    assert outcome(reply={"choices": [], "usage": usage}).usage == billed


@pytest.mark.parametrize("password", ["short", "with/slash@and-at", "percent%2Fencoded", ""])
@pytest.mark.parametrize("around", ["{}", "url='{}', again", "({})", "proxy={} and {}"])
def test_no_password_of_an_address_is_in_a_message(password, around):
    said = presentable("failed: " + around.replace("{}", f"http://someone:{password}@host:1"))
    assert "someone" not in said
    assert not password or password not in said
    assert "http://[key]@" in said
