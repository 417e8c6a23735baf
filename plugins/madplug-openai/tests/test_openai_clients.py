"""Which client is chosen for an address, and what the quick one has to do by itself: connections, TLS, names."""

import asyncio
import shutil
import ssl
import subprocess
import time
import tracemalloc
from contextlib import asynccontextmanager, suppress

import pytest

from madplug import AccessError, Completion, Request, UnreachableError
from madplug_openai import Chat
from madplug_openai.network import is_plain
from madplug_openai.wire import WireClient
from madplug_testing.endpoint import completion, running_endpoint
from madplug_testing.faults import http


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def request(text="2+2?"):
    return Request(({"role": "user", "content": text},), "discuss", "m")


async def opened(url, **options):
    model = Chat(**{"model": "fake", "base_url": url, "timeout": 5.0, **options})
    await model.open()
    return model


@pytest.mark.parametrize("url", [
    "https://api.openai.com/v1/chat/completions", "http://127.0.0.1:8000/v1", "http://[::1]:8000/v1",
    "http://gpu_3.inside/v1/tenants/a:b@c~d", "http://host"])
def test_an_address_that_can_be_sent_as_it_is_is_plain(url):
    assert is_plain(url)


@pytest.mark.parametrize("url", [
    "http://host/a b", "http://host/a/../b", "http://host/./b", "http://host/%41", "http://höst/v1",
    "http://[fe80::1%25eth0]/v1", "http://host/\u0661", "http://host/a\r\nb", "http://host//v1"])
def test_an_address_that_has_to_be_encoded_is_not(url):
    assert not is_plain(url)


def test_an_address_behind_a_proxy_is_not(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example.org:3128")
    assert not is_plain("https://api.example.org/v1")
    assert is_plain("https://127.0.0.1/v1")


def test_a_proxy_is_asked_for_the_whole_address(monkeypatch):
    """The endpoint plays the proxy: it is sent the address of a machine that does not exist."""
    with running_endpoint(keep=1) as endpoint:
        monkeypatch.setenv("http_proxy", endpoint.url.removesuffix("/v1"))

        async def talk():
            model = await opened("http://gpu.invalid:8000/v1")
            try:
                return await model.complete(request())
            finally:
                await model.close()

        assert isinstance(asyncio.run(talk()), Completion)
        (headers, _), = endpoint.seen
    assert headers["host"] == "gpu.invalid:8000"


def test_a_connection_that_was_closed_while_idle_costs_nothing():
    async def talk(url):
        model = await opened(url)
        first = await model.complete(request("a"))
        time.sleep(0.1)  # noqa: ASYNC251 - the end of the connection arrives, and the event loop does not see it
        second = await model.complete(request("b"))
        await model.close()
        return first, second

    with running_endpoint(faults=["closed_after"]) as endpoint:
        assert all(isinstance(made, Completion) for made in asyncio.run(talk(endpoint.url)))
        assert endpoint.stats()["requests"] == 2


def test_a_reply_that_nothing_asked_for_is_no_reply_to_the_next_request():
    async def talk(url):
        model = await opened(url)
        texts = [(await model.complete(request(text))).text for text in "abcdef"]
        await model.close()
        return texts

    with running_endpoint(lambda asked: "right", faults=["another_reply", None] * 3) as endpoint:
        assert asyncio.run(talk(endpoint.url)) == ["right"] * 6


@asynccontextmanager
async def server(answer, **options):
    """A server whose connections are closed before its loop is; its port."""
    writers = []

    async def serve(reader, writer):
        writers.append(writer)
        await answer(reader, writer)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
            with suppress(Exception):
                await writer.wait_closed()


def test_a_connection_that_is_to_be_closed_is_not_used_again():
    reply = http(200, b"", "Connection: close\r\n").replace(b"Content-Length: 0\r\n", b"")

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply + completion_bytes())
        await writer.drain()
        writer.close()

    async def talk():
        async with server(serve) as port:
            model = await opened(f"http://127.0.0.1:{port}/v1")
            made = [await model.complete(request(text)) for text in "abc"]
            await model.close()
        return made

    assert [made.text for made in asyncio.run(talk())] == ["yes"] * 3


def completion_bytes():
    import json

    return json.dumps(completion("yes")).encode()


def test_a_host_name_is_looked_up():
    async def talk(url):
        model = await opened(url)
        made = await asyncio.gather(*(model.complete(request(str(i))) for i in range(20)))
        await model.close()
        return made

    with running_endpoint() as endpoint:
        assert len(asyncio.run(talk(endpoint.url.replace("127.0.0.1", "localhost")))) == 20


def test_a_client_that_is_closed_leaves_no_connection_open():
    async def talk(url):
        model = await opened(url)
        waiting = [asyncio.ensure_future(model.complete(request(str(i)))) for i in range(5)]
        await asyncio.sleep(0.1)
        for task in waiting[:2]:
            task.cancel()
        await asyncio.sleep(0.3)
        await model.close()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.05)

    with running_endpoint(latency_ms=200) as endpoint:
        asyncio.run(talk(endpoint.url))
        assert not endpoint.endpoint.open


def test_a_deadline_counts_from_each_requests_own_beginning():
    async def talk(url):
        model = await opened(url, timeout=0.6)
        first = asyncio.ensure_future(model.complete(request("a")))
        await asyncio.sleep(0.4)
        second = asyncio.ensure_future(model.complete(request("b")))
        made = await asyncio.gather(first, second, return_exceptions=True)
        await model.close()
        return made

    with running_endpoint(latency_ms=400, faults=["hang"]) as endpoint:
        first, second = asyncio.run(talk(endpoint.url))
    assert "no answer within 0.6 s" in str(first)
    assert isinstance(second, Completion)


# TLS

@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for localhost, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made, "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True,
                   capture_output=True)
    return made, key


def over_tls(certificate, host, calls=3):
    """The outcomes of calls to an endpoint behind TLS, and how many connections they took."""
    connections = 0

    async def serve(reader, writer):
        nonlocal connections
        connections += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(http(200, completion_bytes()))

    async def talk():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # of the server's connections
        async with server(serve, ssl=context) as port:
            model = await opened(f"https://{host}:{port}/v1")
            try:
                return [await model.complete(request(str(i))) for i in range(calls)]
            finally:
                await model.close()

    return asyncio.run(talk()), connections


def test_a_certificate_that_is_trusted_is_enough(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    made, connections = over_tls(certificate, "localhost")
    assert [m.text for m in made] == ["yes"] * 3
    assert connections == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_certificate_that_is_not_trusted_or_of_another_host_is_refused(certificate, host, monkeypatch):
    if host != "localhost":
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with pytest.raises(AccessError, match="certificate verify failed"):
        over_tls(certificate, host)


def test_an_endpoint_without_tls_is_unreachable_over_it():
    async def talk(url):
        model = await opened(url)
        try:
            await model.complete(request())
        finally:
            await model.close()

    with running_endpoint() as endpoint, pytest.raises(UnreachableError):
        asyncio.run(talk(endpoint.url.replace("http://", "https://")))


def test_a_body_in_tiny_chunks_takes_memory_for_its_bytes_only():
    size, head = 200_000, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = head + b"2\r\nab\r\n" * size + b"0\r\n\r\n"

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole)
        await writer.drain()

    async def post():
        async with server(answer) as port:
            client = WireClient(f"http://127.0.0.1:{port}/", {}, timeout=60, limits=(10**6, 10**6))
            tracemalloc.start()
            try:
                return (await client.post(b"")).body, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
                await client.close()

    body, peak = asyncio.run(post())
    assert body == b"ab" * size
    assert peak < 10 * len(body)


def test_a_connection_that_is_reset_as_soon_as_it_is_made_is_unreachable_at_once():
    """An endpoint that is killed: the request comes after the end, of which nothing is said again."""
    class Late(WireClient):
        async def _open_connection(self):
            connection = await super()._open_connection()
            while not connection._transport.is_closing():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)  # connection_lost has been called
            return connection

    async def reset(reader, writer):
        writer.transport.abort()

    async def post():
        async with server(reset) as port:
            client = Late(f"http://127.0.0.1:{port}/", {}, timeout=60, limits=(10**6, 10**6))
            try:
                await asyncio.wait_for(client.post(b"{}"), 20)
            finally:
                await client.close()

    with pytest.raises(UnreachableError):
        asyncio.run(post())


def test_what_a_trailer_says_of_the_body_is_not_believed():
    body = completion_bytes()
    reply = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nContent-Encoding: gzip\r\n\r\n"
             % (len(body), body))

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)

    async def talk():
        async with server(serve) as port:
            model = await opened(f"http://127.0.0.1:{port}/v1")
            made = await model.complete(request())
            await model.close()
        return made.text

    assert asyncio.run(talk()) == "yes"
