"""Endpoints that go away and come back, refuse some and serve others: over real HTTP, with real processes."""

import json
import random
import time

from madplug_testing.endpoint import running_endpoint
from tests.faults import studies


def test_an_endpoint_that_is_down_for_seconds_fails_no_debate(tmp_path):
    with studies.EndpointProcess(tmp_path, "--latency-ms", 150, "--text", "{letter}") as endpoint:
        study = studies.start(tmp_path / "study", endpoint.url, "dataset.size=100")
        studies.wait_until(lambda: len(endpoint.answered()) > 100)
        endpoint.kill()
        before = len(endpoint.answered())
        time.sleep(4)
        assert study.poll() is None
        endpoint.start()
        output, errors = study.communicate(timeout=120)
    assert study.returncode == 0, errors
    assert "Traceback" not in output + errors
    answered = endpoint.answered()
    assert len(studies.debates(tmp_path / "study")) == 100
    assert len(studies.calls(tmp_path / "study")) == len(set(answered)) == 400 > before
    assert len(answered) - 400 <= 100  # replies that were on their way when it was killed are asked for again


def test_an_endpoint_that_never_comes_back_fails_the_study_with_a_message(tmp_path):
    with running_endpoint() as endpoint:
        url = endpoint.url
    folder = tmp_path / "study"
    study = studies.start(folder, url, "models.m.deadline=2", "dataset.size=20")
    output, errors = study.communicate(timeout=120)
    assert study.returncode == 1
    assert "Traceback" not in output + errors
    assert json.loads((folder / "summary.json").read_text())["cells"][0]["failed"] == 20
    assert "gave up after" in errors
    assert "connection failed" in errors
    assert studies.calls(folder) == []


def test_a_run_that_begins_with_refused_debates_serves_the_others(tmp_path):
    def refuse(asked):
        refused = "question 7" not in str(asked["messages"])
        return json.dumps({"error": {"message": "flagged", "code": "content_filter"}}).encode() if refused else "A"

    folder = tmp_path / "study"
    with running_endpoint(refuse) as endpoint:
        for _ in range(2):  # the second run begins with what the first left
            assert studies.run(folder, endpoint.url, max_in_flight=1) == 1
            found = studies.debates(folder)
            assert [id for id, debate in found.items() if not debate["error"]] == ["q0007 0"]
        assert endpoint.stats()["requests"] > 8


def test_a_key_that_is_refused_ends_the_study_soon(tmp_path):
    folder = tmp_path / "study"
    with running_endpoint(faults=["401"] * 1000) as endpoint:
        assert studies.run(folder, endpoint.url, "dataset.size=200", max_in_flight=4) == 1
        assert endpoint.stats()["requests"] < 30
    assert "refuses every request, whatever on_failed_agent says: HTTP 401" in (folder / "log.jsonl").read_text()


def test_an_endpoint_that_refuses_half_of_its_requests_does_not_end_the_study(tmp_path):
    folder, which = tmp_path / "study", random.Random(7)
    with running_endpoint(faults=[None, *(which.choice([None, "401"]) for _ in range(2000))]) as endpoint:
        studies.run(folder, endpoint.url, "dataset.size=150", max_in_flight=1)
    found = [bool(debate["error"]) for debate in studies.debates(folder).values()]
    assert len(found) == 150
    assert 5 < sum(found) < 150


def test_the_wait_that_is_asked_for_is_kept(tmp_path):
    arrived = []

    def note(asked):
        arrived.append(time.monotonic())
        return "A"

    with running_endpoint(note, faults=["429"], retry_after="1.5") as endpoint:
        assert studies.run(tmp_path / "study", endpoint.url, "dataset.size=1", "debate.rounds=1",
                           "debate.agents=1") == 0
        assert endpoint.stats()["requests"] == 2
    assert arrived[1] - arrived[0] >= 1.5


def test_a_redirect_is_not_followed_with_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-abc123DEF456ghi789")
    with running_endpoint() as elsewhere:
        to = elsewhere.url + "/chat/completions"
        with running_endpoint(faults=["301", "302", "307", "308"] * 50, location=to) as endpoint:
            assert studies.run(tmp_path / "study", endpoint.url) == 1
            assert endpoint.stats()["requests"] > 0
        assert elsewhere.stats()["requests"] == 0
    assert "name the final one" in str(studies.debates(tmp_path / "study"))


def test_a_limit_of_calls_is_used_up_exactly_where_attempts_fail(tmp_path):
    with running_endpoint(text="{letter}", latency_ms=20, faults=["503"], by="body", share=0.5) as endpoint:
        settings = "dataset.size=60", "limits.calls=50"
        assert studies.run(tmp_path / "study", endpoint.url, *settings, max_in_flight=30) == 3
        stats = endpoint.stats()
    assert stats["faults"]["503"] > 0
    assert stats["ok"] == len(studies.calls(tmp_path / "study")) == 50
