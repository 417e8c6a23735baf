"""A network observer as a third party would write it, and an endpoint that is slow, dead, and comes back."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from madplug import Sample
from madplug_testing import play
from madplug_testing.contracts import ObserverContract
from madplug_tracking import NetworkObserver, RejectedError

KEY = "sk-a-very-secret-key"
SAMPLES = [Sample(f"q{i}", "?") for i in range(8)]


class Poster(NetworkObserver):
    """Posts the debates that have ended to a web hook."""

    name = "poster"
    batch = 3
    url = "http://127.0.0.1:9"
    between = staticmethod(lambda: None)

    def open(self, run):
        super().open(run)
        self.noted = []

    def debate_finished(self, event):
        self.noted.append(event.debate.sample)
        self.put(event.debate.sample)
        self.between()

    def send(self, records):
        try:
            request = Request(f"{self.url}/?k={KEY}", json.dumps(records).encode())
            build_opener(ProxyHandler({})).open(request, timeout=20).close()
        except HTTPError as error:
            if error.code == 422:
                raise RejectedError(f"{error} for {self.url}/?k={KEY}") from None
            raise


class Hook(ThreadingHTTPServer):
    """Notes what is posted. `statuses` and `seconds`: of the first replies, before 200 at once."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, statuses=(), seconds=(), port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.statuses, self.seconds, self.posted, self.asked = list(statuses), list(seconds), [], 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        records = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hook = self.server
        hook.asked += 1
        time.sleep(hook.seconds.pop(0) if hook.seconds else 0)
        status = hook.statuses.pop(0) if hook.statuses else 200
        if status == 200:
            hook.posted.append(records)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def serving(hook):
    thread = threading.Thread(target=hook.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.shutdown()
        hook.server_close()


def run(url, between=None, **options):
    """The observer after a study of eight debates, and the problems it said."""
    poster = Poster(**options)
    poster.url = url
    poster.between = between or poster.between
    return poster, play(replies=lambda request: "A", sample=SAMPLES, agents=1, observers=[poster]).problems


def ids(hook):
    return [sample for records in hook.posted for sample in records]


@pytest.mark.parametrize("hook", [{}, {"seconds": [0.3, 0.3, 0.3]}, {"statuses": [503, 500, 429]}])
def test_all_records_arrive_in_order_and_in_batches_also_where_the_receiver_is_slow_or_fails_and_comes_back(hook):
    with serving(Hook(**hook)) as endpoint:
        poster, problems = run(endpoint.url)
    assert (problems, ids(endpoint), max(map(len, endpoint.posted)) <= 3) == ([], poster.noted, True)
    assert (poster.ledger.taken, poster.ledger.delivered, poster.ledger.missing) == (8, 8, 0)


def test_a_receiver_that_is_gone_and_comes_back_gets_what_waited():
    with serving(Hook()) as gone:
        url, port = gone.url, gone.server_address[1]
    back = []

    def between():
        if not back:
            time.sleep(0.3)  # nothing listens while the first records wait
            back.append(serving(Hook(port=port)))
            back.append(back[0].__enter__())

    poster, problems = run(url, between)
    back[0].__exit__(None, None, None)
    assert (problems, ids(back[1])) == ([], poster.noted)


@pytest.mark.parametrize(("hook", "options", "lost", "why"), [
    ({"seconds": [30]}, {"patience": 0.5}, {8}, "without success in time"),
    ({"seconds": [30]}, {"patience": 0}, {8}, "without success in time"),
    ({"statuses": [503] * 99}, {"patience": 0.5}, {8},
     "without success in time; the last error: HTTPError: HTTP Error 503"),
    ({"statuses": [422] * 99}, {"patience": 0.5}, {8}, "rejected; the last error: HTTP Error 422"),
    ({"statuses": [422]}, {}, {1, 2, 3}, "rejected"),  # a rejected batch does not stop the next
    ({"seconds": [1]}, {"queue": 2}, {3, 4, 5, 6}, "beyond the queue")])
def test_what_was_not_delivered_is_counted_and_said_without_secrets(hook, options, lost, why, monkeypatch):
    monkeypatch.setenv("HOOK_API_KEY", KEY)
    with serving(Hook(**hook)) as endpoint:
        poster, (problem,) = run(endpoint.url, **options)
    missing, ledger = 8 - len(ids(endpoint)), poster.ledger
    assert missing in lost
    assert (ledger.delivered, ledger.missing) == (8 - missing, missing)
    assert f"{missing} of 8 records were not delivered: {missing} {why}" in problem
    assert KEY not in problem


def test_what_is_lost_is_said_also_where_the_host_waits_less_long(monkeypatch):
    """As after an error, when an observer has a second instead of 30."""
    monkeypatch.setattr("madplug.study.observers.PATIENCE", 0.3)
    with serving(Hook(seconds=[30])) as hook:
        _, problems = run(hook.url, patience=28)
    assert any("8 of 8 records were not delivered" in problem for problem in problems)


def test_an_observer_that_could_not_be_opened_says_only_why():
    class Closed(Poster):
        def open(self, run):
            raise OSError("no such host")

    [problem] = play(replies=["A"], agents=1, observers=[Closed()]).problems
    assert "open: OSError: no such host" in problem


class TestPoster(ObserverContract):
    component = Poster
    options = {"patience": 0}
