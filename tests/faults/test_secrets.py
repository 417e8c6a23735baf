"""A key that an endpoint repeats, in whatever form, reaches neither the terminal nor a file."""

import json
import os
import subprocess
import sys
from urllib.parse import quote

import pytest

from madplug import UserError
from madplug.testing.endpoint import completion, running_endpoint
from tests.faults import studies

KEY = "sk-proj/abc123+DEF456ghi789"


def percent(text):
    return "".join(f"%{byte:02x}" for byte in text.encode())


def escaped(text):
    return "".join(f"\\u{ord(character):04x}" for character in text)


FORMS = [KEY, percent(KEY), quote(KEY, safe=""), escaped(KEY), KEY[:9] + escaped(KEY[9:]), KEY[:9] + percent(KEY[9:]),
         KEY[:9] + "\x1b[0m" + KEY[9:], KEY.replace("/", "\\/")]


def in_text(form):
    return completion(f"you sent {form}, A")


def in_usage(form):
    return {**completion("A"), "usage": {"prompt_tokens": 3, form: [form, {"key": form}]}}


def in_model(form):
    return {**completion("A", reasoning_content=f"because {form}"), "model": form}


def in_error(form):
    return {"error": {"message": f"wrong key {form}", "code": 400}}


def in_no_json(form):
    return f"the key {form} is wrong".encode()


def in_escaped_json(form):
    return json.dumps(in_text("{here}")).replace("{here}", escaped(form)).encode()


def run(tmp_path, url, **environ):
    """The output of a run, and everything that it wrote."""
    file = tmp_path / "study.toml"
    file.write_text(studies.RUN.replace('model = "fake"', 'model = "fake"\nattempts = 2'), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "madplug", "run", file, "--set", f'models.m.base_url="{url}"',
                           "--set", "dataset.size=1", "--watch", "--trace", "--output", tmp_path / "out"], text=True,
                          capture_output=True, timeout=120, check=False, env={**os.environ, **environ})
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    return done, done.stdout + done.stderr + written.decode("utf-8", "replace")


def check_no_key(text):
    """Nor any form of it that somebody may turn back into the key."""
    for form in (KEY, percent(KEY), percent(KEY).upper(), escaped(KEY), KEY[9:], percent(KEY[9:]), escaped(KEY[9:]),
                 quote(KEY, safe="")):
        assert form not in text
        assert json.dumps(form)[1:-1] not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("place", [in_text, in_usage, in_model, in_error, in_no_json, in_escaped_json])
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "LAB"])
def test_a_key_that_is_repeated_is_written_nowhere(place, variable, tmp_path, monkeypatch):
    replies = iter(FORMS * 100)
    monkeypatch.setattr(studies, "RUN", studies.RUN.replace(
        'model = "fake"', f'model = "fake"\napi_key_env = "{variable}"'))
    with running_endpoint(lambda asked: place(next(replies)), keep=1) as endpoint:
        done, text = run(tmp_path, endpoint.url, **{variable: KEY})
        assert endpoint.seen[0][0]["authorization"] == f"Bearer {KEY}"
    assert done.returncode in (0, 1), done.stderr
    check_no_key(text)
    if place is in_text:
        assert "[key]" in text


@pytest.mark.parametrize("forms", [FORMS, [form for form in FORMS if form.isprintable()]])
@pytest.mark.parametrize("status", [400, 500])
def test_a_key_in_a_header_is_written_nowhere(forms, status, tmp_path):
    lines = "".join(f"Retry-After: {form}\r\nContent-Encoding: {form}\r\nX-{quote(form)}: {form}\r\n" for form in forms)
    with running_endpoint(faults=[str(status)] * 100, headers=lines) as endpoint:
        done, text = run(tmp_path, endpoint.url, OPENAI_API_KEY=KEY)
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
