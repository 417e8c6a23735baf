"""A server accepts what it has room for, and goes on when there is room again."""

import os
import socket
import sys
from contextlib import ExitStack, closing

import pytest

from madplug import UserError
from madplug_view import listening
from madplug_view.listening import Listening


def connect(server, seconds=30):
    return socket.create_connection(("127.0.0.1", server.port), timeout=seconds)


def is_answered(connection):
    """Whether a request is answered; not if the server closes the connection."""
    try:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(5) == b"HTTP/"
    except (ConnectionResetError, BrokenPipeError):
        return False


def is_open(server):
    with closing(connect(server)) as connection:
        return is_answered(connection)


def test_connections_beyond_those_of_an_address_are_closed_until_one_ends(kit, folder, monkeypatch):
    monkeypatch.setattr(listening, "EACH", 2)
    with kit.serving_here(folder) as server, ExitStack() as stack:
        found = [stack.enter_context(connect(server)) for _ in range(3)]
        assert list(map(is_answered, found)) == [True, True, False]
        found[0].close()
        while not is_open(server):  # the server has to hear of the end first
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit another process")
def test_without_files_a_server_waits_and_goes_on_later(kit, folder):
    import resource

    with kit.serving(folder) as server:
        most = len(os.listdir(f"/proc/{server.process.pid}/fd")) + 20
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (most, most))
        with ExitStack() as stack:
            found = [stack.enter_context(connect(server, 2)) for _ in range(60)]
            with pytest.raises(TimeoutError):
                list(map(is_answered, found))
        assert is_open(server)
        server.process.terminate()
        assert server.process.stderr.read().count("out of system resource") < 20


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a..b", "203.0.113.1"])
def test_an_address_that_is_not_ours_is_a_message(host):
    with pytest.raises(UserError, match="cannot listen there"):
        Listening(host, 0)
