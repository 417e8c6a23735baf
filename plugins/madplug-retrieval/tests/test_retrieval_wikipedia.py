"""Wikipedia's API, on a local server that answers in its schema."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from madplug import ComponentError
from madplug.services import Retriever, lacks
from madplug_retrieval import Wikipedia
from madplug_retrieval.wikipedia import shortened
from madplug_testing import wait_for

PAGES = {"batchcomplete": True, "query": {"pages": [
    {"pageid": 2, "ns": 0, "title": "Lyon", "index": 2, "extract": "Lyon is a city in France."},
    {"pageid": 1, "ns": 0, "title": "Paris", "index": 1, "extract": "Paris is the capital of France.\nIt is large."},
    {"pageid": 3, "ns": 0, "title": "Disambiguation", "index": 3, "extract": ""}]}}


@pytest.fixture
def server():
    """A server with a script of (status, headers, body); the last one stays. It keeps what it was asked."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            http.asked.append((dict(self.headers), parse_qs(urlsplit(self.path).query)))
            status, headers, body = http.script.pop(0) if len(http.script) > 1 else http.script[0]
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *words):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.asked, http.script = [], [(200, {}, PAGES)]
    http.url = f"http://127.0.0.1:{http.server_port}/w/api.php"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield http
    http.shutdown()
    http.server_close()
    thread.join()


def passages(server, *queries, k=2, **options):
    """The passages that are found for each query at the same time."""
    async def all_of():
        service = Wikipedia(url=server.url, **options)
        await service.open()
        try:
            return await asyncio.gather(*(service.retrieve(query, k) for query in queries))
        finally:
            await service.close()

    return wait_for(all_of())


def found(*arguments, **options):
    return [[passage.text for passage in one] for one in passages(*arguments, **options)]


def test_introductions_come_in_the_order_of_the_search(server):
    [given] = passages(server, "What is the capital of France?")
    page = server.url.replace("api.php", "index.php?title=")
    assert [(passage.text, passage.source) for passage in given] == [
        ("Paris: Paris is the capital of France.\nIt is large.", f"{page}Paris"),
        ("Lyon: Lyon is a city in France.", f"{page}Lyon")]
    headers, asked = server.asked[0]
    assert {name: asked[name] for name in ("gsrsearch", "gsrlimit", "generator", "prop", "formatversion")} == {
        "gsrsearch": ["What is the capital of France?"], "gsrlimit": ["2"], "generator": ["search"],
        "prop": ["extracts"], "formatversion": ["2"]}
    assert headers["User-Agent"].startswith("madplug-retrieval/")
    assert lacks(Wikipedia, Retriever) == []
    server.script = [(200, {}, {"batchcomplete": True})]
    assert found(server, "zzzz", "  ") == [[], []]


def test_the_same_question_is_searched_once_with_the_contact_in_the_language(server):
    assert len(found(server, "x y", " x  y ", "z", contact="mail@example.org")) == 3
    assert len(server.asked) == 2
    assert "mail@example.org" in server.asked[0][0]["User-Agent"]
    assert Wikipedia(language="de").url == "https://de.wikipedia.org/w/api.php"


def test_long_introductions_and_questions_are_cut(server):
    long = {"query": {"pages": [{"title": "Paris", "index": 1, "extract": "Paris. " * 50_000}]}}
    server.script[:] = [(200, {}, long)]
    assert found(server, "word " * 200, characters=100) == [["Paris: " + ("Paris. " * 50)[:100]]]
    assert len(server.asked[-1][1]["gsrsearch"][0]) <= 300
    assert shortened("a" * 400) == "a" * 300
    assert shortened(" a\n b ") == "a b"


@pytest.mark.parametrize("busy", [
    (429, {"Retry-After": "0"}, b""), (503, {"Retry-After": "0"}, b"busy"),
    (200, {"Retry-After": "0"}, {"error": {"code": "maxlag", "info": "Waiting for a database server"}})])
def test_a_busy_server_is_asked_again(server, busy):
    server.script = [busy, busy, (200, {}, PAGES)]
    assert len(found(server, "x")[0]) == 2
    assert len(server.asked) == 3


@pytest.mark.parametrize(("reply", "message"), [
    ((503, {"Retry-After": "0"}, b""), "gave up after 3 attempts: status 503"), ((404, {}, b""), "status 404"),
    ((200, {}, []), "the reply is not a table"),
    ((200, {}, {"error": {"code": "badvalue", "info": "Unrecognized value"}}), "Unrecognized value"),
    *(((200, {}, body), "the reply is not JSON") for body in (
        b"<html>", b"[" * 200_000, b"\xff{}", b'{"query":' * 50_000)),
    *(((200, {}, body), "the reply has no list of pages") for body in (
        {"query": [1]}, {"query": "x"}, {"query": {"pages": 3}}, {"query": {"pages": "abc"}}))])
def test_a_search_that_cannot_be_answered_says_why(server, reply, message):
    server.script = [reply]
    with pytest.raises(ComponentError) as error:
        found(server, "x", attempts=3)
    assert message in str(error.value)
    assert server.url in str(error.value)


@pytest.mark.parametrize("index", ["x", [1], None, 1.5, float("inf"), float("nan")])
def test_a_page_without_a_place_comes_last(server, index):
    pages = [{"title": "Lyon", "index": index, "extract": "L"}, {"title": "Paris", "index": 1, "extract": "P"}]
    server.script[:] = [(200, {}, {"query": {"pages": pages}})]
    assert found(server, "Paris") == [["Paris: P", "Lyon: L"]]
