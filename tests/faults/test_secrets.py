"""A key that an endpoint repeats, in whatever form, reaches neither the terminal nor a file."""

import json
import socket
import threading
from urllib.parse import quote

import pytest

from madplug import UserError
from madplug_testing.endpoint import completion, running_endpoint
from tests.faults import studies

KEY = "sk-proj/abc123+DEF456ghi789"
FORMS = [KEY, quote(KEY, safe=""), quote(KEY), KEY.replace("/", "\\/")]


PLACES = {
    "text": lambda form: completion(f"you sent {form}, A"),
    "usage": lambda form: {**completion("A"), "usage": {"prompt_tokens": 3, form: [form, {"key": form}]}},
    "model": lambda form: {**completion("A", reasoning_content=f"because {form}"), "model": form},
    "error": lambda form: {"error": {"message": f"wrong key {form}", "code": 400}},
    "no JSON": lambda form: f"the key {form} is wrong".encode(),
    "escaped JSON": lambda form: json.dumps(completion("you sent {here}, A")).replace(
        "{here}", json.dumps(form)[1:-1]).encode(),
}
"""Where an endpoint may repeat a key."""


@pytest.fixture
def run(program, write, tmp_path, monkeypatch):
    """Makes the output of a run, and everything that it wrote, one text."""
    def run(url, more="", **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        file = write(studies.RUN.replace('model = "fake"', f'model = "fake"\nattempts = 2\n{more}'))
        done = program("run", file, "--set", f'models.m.base_url="{url}"', "--set", "dataset.size=1", "--watch",
                       "--trace", "--output", "out")
        written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
        return done, done.stdout + done.stderr + written.decode("utf-8", "replace")

    return run


def check_no_key(text):
    """Nor any form of it that somebody may turn back into the key."""
    for form in FORMS:
        assert form not in text
        assert json.dumps(form)[1:-1] not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "LAB"])
def test_a_key_that_is_repeated_is_written_nowhere(place, variable, run):
    replies = iter(FORMS * 100)
    with running_endpoint(lambda asked: PLACES[place](next(replies)), keep=1) as endpoint:
        done, text = run(endpoint.url, f'api_key_env = "{variable}"', **{variable: KEY})
        assert endpoint.seen[0][0]["authorization"] == f"Bearer {KEY}"
    assert done.returncode in (0, 1), done.stderr
    check_no_key(text)
    assert place != "text" or "[key]" in text


@pytest.mark.parametrize("forms", [FORMS, [form for form in FORMS if form.isprintable()]])
@pytest.mark.parametrize("status", [400, 500])
def test_a_key_in_a_header_is_written_nowhere(forms, status, run):
    lines = "".join(f"Retry-After: {form}\r\nContent-Encoding: {form}\r\nX-{quote(form)}: {form}\r\n" for form in forms)
    with running_endpoint(faults=[str(status)] * 100, headers=lines) as endpoint:
        done, text = run(endpoint.url, OPENAI_API_KEY=KEY)
    assert done.returncode == 1
    check_no_key(text)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/{}/v1", "http://127.0.0.1:9/v1?key={}",
                                     "http://127.0.0.1:9/v1#{}", "http://me:{}@127.0.0.1:9/v1"])
@pytest.mark.parametrize("key", [KEY, quote(KEY, safe=""), "0123456789abcdef-LAB"])
def test_a_key_in_the_address_is_refused_and_not_repeated(address, key, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "0123456789abcdef-LAB" if "LAB" in key else KEY)
    with pytest.raises(UserError) as caught:
        studies.run(tmp_path / "study", address.format(key))
    assert key not in str(caught.value)
    check_no_key(str(caught.value))
    assert not (tmp_path / "study").exists()


def refuse_tunnel(listener, status):
    """Answers every connection like a proxy that lets nothing through."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65_536)
            connection.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())


@pytest.mark.parametrize(("password", "status"), [(KEY, 407), ("hunter2", 407), (KEY, None)])
def test_the_password_of_a_proxy_is_written_nowhere(password, status, run):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refuse_tunnel, args=(listener, status), daemon=True).start()
        port = listener.getsockname()[1] if status else 99_999
        proxy = f"http://me:{quote(password, safe='')}@127.0.0.1:{port}"
        done, text = run("https://api.example.invalid/v1", OPENAI_API_KEY="sk-another-0123456789",
                         MADPLUG_MODELS__M__DEADLINE="2", https_proxy=proxy)
    assert done.returncode == 1
    assert "the connection failed" in text
    for form in (password, quote(password, safe="")):
        assert form not in text
    assert "Traceback" not in text
