"""Connections: kept and closed, through TLS and proxies, and bodies that would take too much."""

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import time
from contextlib import asynccontextmanager, suppress

import pytest

from madplug import AccessError, Completion, TransientError, UnreachableError, UserError
from madplug_openai.client import Client
from madplug_openai.network import proxy_for
from madplug_testing.endpoint import completion, running_endpoint
from madplug_testing.faults import http

YES = json.dumps(completion("yes")).encode()


@asynccontextmanager
async def serving(reply, host="127.0.0.1", **options):
    """A client of a server that sends these bytes in reply to every request, and the server's connections so far."""
    writers = []

    async def serve(reader, writer):
        writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                writer.write(reply)
                await writer.drain()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    port = listening.sockets[0].getsockname()[1]
    client = Client(f"http{'s' if options else ''}://{host}:{port}/", {}, timeout=60, limits=(10**6, 10**6))
    try:
        yield client, writers
    finally:
        await client.close()
        listening.close()
        for writer in writers:
            writer.transport.abort()
            with suppress(Exception):
                await writer.wait_closed()


def test_a_call_that_is_cancelled_leaves_the_others_alone_and_a_closed_model_no_connection_open(talk):
    async def script(call):
        first, second = (asyncio.ensure_future(call(text)) for text in "ab")
        await asyncio.sleep(0.05)
        first.cancel()
        answered = await second
        waiting = asyncio.ensure_future(call("c"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        return first.cancelled(), type(answered), type(await call("d"))

    with running_endpoint(latency_ms=300) as endpoint:
        assert talk(endpoint.url, script) == (True, Completion, Completion)
        deadline = time.monotonic() + 20
        while endpoint.endpoint.open and time.monotonic() < deadline:  # it runs in a thread of its own
            time.sleep(0.01)
        assert not endpoint.endpoint.open


def test_a_body_of_thousands_of_gzip_members_is_given_up():
    async def call():
        packed = http(200, gzip.compress(b"") * 50_000, "Content-Encoding: gzip\r\n")
        async with serving(packed) as (client, _):
            await client.post(b"{}")

    with pytest.raises(TransientError, match="gzip"):
        asyncio.run(call())


def test_as_many_are_in_flight_as_are_asked_for(talk):
    async def script(call):
        await asyncio.gather(*(call(str(i)) for i in range(1000)))

    with running_endpoint(gather=1000) as endpoint:
        talk(endpoint.url, script, max_in_flight=1000, timeout=60.0)
        assert endpoint.stats()["max_in_flight"] == 1000


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


@pytest.mark.parametrize(("host", "trusted"), [("localhost", True), ("localhost", False), ("127.0.0.1", True)])
def test_a_certificate_has_to_be_trusted_and_the_hosts_own(certificate, host, trusted, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    async def call():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # of the server's connections
        async with serving(http(200, YES), host, ssl=context) as (client, connections):
            try:
                return [(await client.post(b"{}")).body for _ in range(3)], len(connections)
            except AccessError as error:
                return str(error)

    made = asyncio.run(call())
    if trusted and host == "localhost":
        assert made == ([YES] * 3, 1)
    else:
        assert "certificate verify failed" in made


def test_an_endpoint_without_tls_is_unreachable_over_it(ask):
    with running_endpoint() as endpoint:
        error, = ask(endpoint.url.replace("http://", "https://"), timeout=60)
    assert type(error) is UnreachableError


# Proxies

def test_a_proxy_is_asked_for_the_whole_address_of_other_machines(ask, monkeypatch):
    """The endpoint plays the proxy: it is sent the address of a machine that does not exist."""
    with running_endpoint(keep=1) as endpoint:
        monkeypatch.setenv("http_proxy", endpoint.url.removesuffix("/v1"))
        made, = ask("http://gpu.invalid:8000/v1")
        (headers, _), = endpoint.seen
    assert isinstance(made, Completion)
    assert headers["host"] == "gpu.invalid:8000"
    monkeypatch.setenv("https_proxy", "proxy.example.org:3128")
    monkeypatch.setenv("no_proxy", ".inside.example.org")
    assert proxy_for("https://api.example.org/v1") == "http://proxy.example.org:3128"
    assert proxy_for("https://gpu.inside.example.org/v1") is None
    assert [proxy_for(f"http://{host}:8000/v1") for host in ("localhost", "127.0.0.1", "[::1]")] == [None] * 3


def test_a_socks_proxy_is_an_error_that_says_what_to_set(ask, monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5h://me:secret@proxy.example.org:1080")
    with pytest.raises(UserError, match=r"SOCKS proxy for https://api\.example\.org.*set https_proxy") as caught:
        ask("https://api.example.org/v1")
    assert "secret" not in str(caught.value)
