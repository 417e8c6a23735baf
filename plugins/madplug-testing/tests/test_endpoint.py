"""The endpoint the tests and benchmarks talk to: deterministic, and counting right."""

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from madplug_testing.endpoint import running_endpoint


def send(endpoint, text):
    """The text of a reply, or the status or name of what came instead."""
    request = Request(endpoint.url + "/chat/completions", data=json.dumps({"messages": text}).encode())
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=5) as response:
            return json.load(response)["choices"][0]["message"]["content"]
    except (URLError, HTTPException, OSError) as error:
        return getattr(error, "code", type(error).__name__)


@pytest.mark.parametrize("process", [False, True])
def test_the_same_request_gets_the_same_answer_anywhere(process):
    with running_endpoint(process=process, text="{letter} {number} {hash}") as endpoint:
        assert send(endpoint, "a") == send(endpoint, "a") == "B 55 d19bc1f6"
        assert send(endpoint, "b") != send(endpoint, "a")


def test_a_script_says_what_befalls_the_first_requests():
    with running_endpoint(faults=["429", None, "500"]) as endpoint:
        assert [isinstance(send(endpoint, t), str) for t in "abcd"] == [False, True, False, True]
        assert endpoint.stats()["faults"] == {"429": 1, "500": 1}


def test_a_script_may_go_by_the_tries_of_each_request():
    with running_endpoint(faults=["500"], by="body") as endpoint:
        assert [send(endpoint, t) == 500 for t in "aabab"] == [True, False, True, False, False]


@pytest.mark.parametrize("by", ["arrival", "body"])
def test_faults_by_chance_are_the_same_in_every_run(by):
    def run(seed):
        with running_endpoint(rates={"500": 0.3, "429": 0.2}, by=by, seed=seed) as endpoint:
            return [send(endpoint, str(i)) in (500, 429) for i in range(60)]

    first = run(1)
    assert first == run(1) != run(2)
    assert 15 < sum(first) < 45


def test_duplicates_and_answers_given_twice_are_counted():
    with running_endpoint(faults=["500"]) as endpoint:
        for text in "aab":
            send(endpoint, text)
        stats = endpoint.stats()
        assert (stats["requests"], stats["ok"], stats["duplicates"], stats["answered_twice"]) == (3, 2, 1, 0)
        send(endpoint, "b")
        stats = endpoint.stats()
        assert (stats["duplicates"], stats["answered_twice"]) == (2, 1)


def test_more_than_the_cap_is_turned_away():
    with running_endpoint(cap=2, latency_ms=500) as endpoint, ThreadPoolExecutor(5) as pool:
        outcomes = list(pool.map(lambda t: send(endpoint, t), "abcde"))
        assert sum(o == 429 for o in outcomes) == 3
        assert endpoint.stats()["max_in_flight"] == 3


def test_gathered_requests_are_answered_together():
    with running_endpoint(gather=4) as endpoint, ThreadPoolExecutor(4) as pool:
        assert all(isinstance(o, str) for o in pool.map(lambda t: send(endpoint, t), "abcd"))
        assert endpoint.stats()["max_in_flight"] == 4


def test_a_running_endpoint_can_be_changed_and_reset():
    with running_endpoint(process=True) as endpoint:
        send(endpoint, "a")
        endpoint.reset()
        assert endpoint.stats()["requests"] == 0
        endpoint.configure(faults=["404"])
        assert send(endpoint, "a") == 404


def test_replies_can_be_made_by_the_test():
    with running_endpoint(lambda asked: asked["messages"].upper(), keep=2) as endpoint:
        assert [send(endpoint, t) for t in "xyz"] == ["X", "Y", "Z"]
        assert [body["messages"] for _, body in endpoint.seen] == ["y", "z"]


def test_a_reset_ends_the_connection_without_a_reply():
    with running_endpoint(faults=["reset"]) as endpoint:
        assert send(endpoint, "a") in ("ConnectionResetError", "RemoteDisconnected", "URLError")
        assert isinstance(send(endpoint, "a"), str)


def test_a_reply_may_be_a_stream_of_events():
    events = [{"choices": [{"delta": {"content": "no"}}]}, "[DONE]"]
    with running_endpoint(lambda body: events if body.get("stream") else "whole", faults=["500"]) as endpoint:
        assert send(endpoint, "a") == 500
        assert send(endpoint, "a") == "whole"
        request = Request(endpoint.url + "/chat/completions", data=b'{"stream": true}')
        with build_opener(ProxyHandler({})).open(request, timeout=5) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.read().decode() == f"data: {json.dumps(events[0])}\n\ndata: [DONE]\n\n"
        assert endpoint.stats()["ok"] == 2
