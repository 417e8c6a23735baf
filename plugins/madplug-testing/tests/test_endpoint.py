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


@pytest.mark.parametrize(("faults", "by", "texts", "ok"), [
    (["429", None, "500"], "arrival", "abcd", [False, True, False, True]),
    (["500"], "body", "aabab", [False, True, False, True, True]), (["reset"], "arrival", "ab", [False, True])])
def test_a_script_says_what_befalls_the_first_requests_or_the_tries_of_each(faults, by, texts, ok):
    with running_endpoint(lambda asked: "said", faults=faults, by=by) as endpoint:
        assert [send(endpoint, text) == "said" for text in texts] == ok
        struck = endpoint.stats()["faults"]
    assert sum(struck.values()) == ok.count(False)
    assert set(struck) == set(filter(None, faults))


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
        counts = []
        for texts in ("aab", "b"):
            for text in texts:
                send(endpoint, text)
            stats = endpoint.stats()
            counts.append([stats[name] for name in ("requests", "ok", "duplicates", "answered_twice")])
        assert counts == [[3, 2, 1, 0], [4, 3, 2, 1]]


def test_more_than_the_cap_is_turned_away_and_gathered_requests_are_answered_together():
    for options, refused, most in (({"cap": 2, "latency_ms": 500}, 3, 3), ({"gather": 5}, 0, 5)):
        with running_endpoint(**options) as endpoint, ThreadPoolExecutor(5) as pool:
            outcomes = list(pool.map(lambda t, endpoint=endpoint: send(endpoint, t), "abcde"))
            assert (outcomes.count(429), endpoint.stats()["max_in_flight"]) == (refused, most)


def test_a_running_endpoint_can_be_changed_and_reset():
    with running_endpoint(process=True) as endpoint:
        send(endpoint, "a")
        endpoint.reset()
        assert endpoint.stats()["requests"] == 0
        endpoint.configure(faults=["404"])
        assert send(endpoint, "a") == 404


def test_replies_can_be_made_by_the_test_also_as_a_stream_of_events():
    events = [{"choices": [{"delta": {"content": "no"}}]}, "[DONE]"]
    with running_endpoint(lambda body: events if body.get("stream") else body["messages"].upper(), keep=2) as endpoint:
        assert [send(endpoint, t) for t in "xyz"] == ["X", "Y", "Z"]
        assert [body["messages"] for _, body in endpoint.seen] == ["y", "z"]
        request = Request(endpoint.url + "/chat/completions", data=b'{"stream": true}')
        with build_opener(ProxyHandler({})).open(request, timeout=5) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.read().decode() == f"data: {json.dumps(events[0])}\n\ndata: [DONE]\n\n"
        assert endpoint.stats()["ok"] == 4
