"""Batches of Anthropic, over HTTP to a fake provider."""

import json
import threading
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import pytest

import madplug

pytestmark = pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed")
RUN = """
name = "s"
dataset = {{use = "puzzles.ordering", size = 4}}
debate = {{paradigm = "som.debate", agents = 2, rounds = 2}}
[models.m]
use = "litellm.chat"
model = "anthropic/claude-sonnet-4-5"
api_base = "http://127.0.0.1:{port}"
max_tokens = 99
extra.cache_control_injection_points = [{{location = "message", role = "user"}}]
"""
BATCHED = {"execution": {"use": "batch.rounds", "poll": 0.02, "patience": 0.3}}
CALLS = 16


class Provider(ThreadingHTTPServer):
    """Messages, and batches of them that have ended when they are looked at for the second time."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.live, self.batches, self.answered = [], {}, []
        self.outcomes = {}
        """What becomes of the first requests of a batch instead of an answer, by their places."""
        self.breaks = False
        """Whether the reply to the next batch is lost."""

    def message(self, params):
        digest = blake2b(json.dumps(params, sort_keys=True).encode()).digest()
        self.answered.append(digest)
        return {"id": "msg", "type": "message", "role": "assistant", "model": params["model"],
                "stop_reason": "end_turn", "usage": {"input_tokens": 100, "output_tokens": 10,
                                                     "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0},
                "content": [{"type": "text", "text": f"So be it.\nFinal answer: ({'ABC'[digest[0] % 3]})"}]}

    def handle_one(self, method, path, body):
        """The reply, as an object or as lines."""
        match path.partition("?")[0].removeprefix("/v1/messages").strip("/").split("/"):
            case [""]:
                self.live.append(body)
                return self.message(body)
            case ["batches"] if method == "POST":
                id = f"msgbatch_{len(self.batches)}"
                self.batches[id] = {"id": id, "processing_status": "in_progress", "requests": body["requests"],
                                    "expires_at": "2026-11-24T10:00:00Z", "rows": None}
                return None if self.breaks else self.shown(id)
            case ["batches"]:
                found = [self.shown(id) for id in list(self.batches)[::-1]]
                self.breaks = False
                for id in self.batches:
                    self.end(id)
                return {"data": found, "has_more": False}
            case ["batches", id, "results"]:
                return self.batches[id]["rows"]
            case ["batches", id]:
                shown = self.shown(id)
                self.end(id)
                return shown

    def end(self, id):
        batch = self.batches[id]
        if batch["rows"] is None:
            batch["rows"] = [{"custom_id": one["custom_id"], "result": self.outcomes.pop(place, None) or {
                "type": "succeeded", "message": self.message(one["params"])}}
                for place, one in enumerate(batch["requests"])][::-1]
            batch["processing_status"] = "ended"

    def shown(self, id):
        return {name: value for name, value in self.batches[id].items() if name not in ("requests", "rows")}


class Handler(BaseHTTPRequestHandler):
    """Passes requests on to the provider."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert self.headers["x-api-key"] == "sk-ant-1"
        found = self.server.handle_one(self.command, self.path, json.loads(body) if body else None)
        if found is None:
            self.connection.close()
            return
        text = "\n".join(map(json.dumps, found)) if isinstance(found, list) else json.dumps(found)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST

    def log_message(self, *_):
        pass


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1")
    for plugin in ("batch", "puzzles", "som"):
        pytest.importorskip(f"madplug_{plugin}")
    with Provider() as provider:
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        yield provider
        provider.shutdown()


@pytest.fixture
def run(tmp_path, provider):
    """Runs the study of 4 debates with 16 calls; gives its only cell and the debates."""
    def run(output, **settings):
        (tmp_path / "s.toml").write_text(RUN.format(port=provider.server_port))
        summary = madplug.run(tmp_path / "s.toml", output=tmp_path / output, settings=settings, quiet=True).summary
        with madplug.open_study(tmp_path / output) as study:
            return summary["cells"][0], [(d.error, d.decision, [m.content for m in d.messages])
                                         for d in sorted(study.results(), key=lambda d: d.sample.id)]

    return run


def test_a_batched_study_sends_what_a_live_one_does_for_half_the_dollars(run, provider):
    live, debates = run("live")
    batched, same = run("batched", **BATCHED)
    assert same == debates
    assert batched["cost_usd"] == pytest.approx(live["cost_usd"] / 2) != 0
    assert batched["tokens"] == live["tokens"] == {"prompt": 120 * CALLS, "completion": 10 * CALLS,
                                                   "cached": 20 * CALLS}
    sent = [one["params"] for batch in provider.batches.values() for one in batch["requests"]]
    assert sorted(map(json.dumps, sent)) == sorted(map(json.dumps, provider.live))
    assert all("cache_control" in json.dumps(body) for body in sent)
    assert len(provider.batches) == 2


def test_what_a_batch_leaves_unanswered_is_asked_again_and_a_refused_request_fails_its_debate(run, provider):
    provider.outcomes = {0: {"type": "expired"}, 1: {"type": "canceled"},
                         2: {"type": "errored", "error": {"type": "error", "error": {"type": "overloaded_error"}}},
                         3: {"type": "errored", "error": {"type": "error", "error": {
                             "type": "invalid_request_error", "message": "too long"}}}}
    _, debates = run("batched", **BATCHED)
    assert [error for error, *_ in debates if error] == ["HTTP 400 Bad Request: too long"]
    asked = [one["custom_id"][:32] for batch in provider.batches.values() for one in batch["requests"]]
    assert sorted(map(asked.count, set(asked))) == [1] * 11 + [2] * 3  # one debate has made no second round


def test_a_batch_whose_submission_was_not_answered_is_found_by_its_requests_once_it_has_ended(run, provider):
    provider.breaks = True
    _, debates = run("batched", **BATCHED)
    assert not [error for error, *_ in debates if error]
    assert len(provider.answered) == CALLS
    assert len(provider.batches) == 2
