"""A server accepts what it has room for, and goes on when there is room again."""

import socket
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager

import pytest

from madplug import UserError
from madplug_view.listening import Listening

SERVER = """
import asyncio, sys
from madplug_view import listening
from madplug_view.listening import Listening

async def greet(reader, writer):
    writer.write(b"hello")
    await reader.read()
    writer.close()

async def main():
    listener = Listening("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    async with await asyncio.start_server(greet, sock=listener) as server:
        await server.serve_forever()
"""


@contextmanager
def serving(setting):
    process = subprocess.Popen([sys.executable, "-c", f"{SERVER}\n{setting}\nasyncio.run(main())"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        yield process, ("127.0.0.1", int(process.stdout.readline()))
        process.kill()


def greeting(connection):
    """What a server says; nothing if it closes the connection."""
    try:
        return connection.recv(5)
    except ConnectionResetError:
        return b""


def is_greeted(address):
    with closing(socket.create_connection(address, timeout=30)) as connection:
        return greeting(connection) == b"hello"


def test_connections_beyond_those_of_an_address_are_closed_until_one_ends():
    with serving("listening.EACH = 2") as (_, address), ExitStack() as stack:
        found = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(3)]
        assert list(map(greeting, found)) == [b"hello", b"hello", b""]
        found[0].close()
        while not is_greeted(address):  # the server has to hear of the end first
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_without_files_a_server_waits_and_goes_on_later():
    setting = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))"
    with serving(setting) as (process, address):
        with ExitStack() as stack:
            found = [stack.enter_context(socket.create_connection(address, timeout=2)) for _ in range(60)]
            with pytest.raises(TimeoutError):
                list(map(greeting, found))
        assert is_greeted(address)
        process.kill()
        assert 0 < process.stderr.read().count("out of system resource") < 20


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a..b", "203.0.113.1"])
def test_an_address_that_is_not_ours_is_a_message(host):
    with pytest.raises(UserError, match="cannot listen there"):
        Listening(host, 0)
