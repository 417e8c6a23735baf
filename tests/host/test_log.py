"""No secret passes through the log, however it is written."""

import json
import time
from urllib.parse import quote

import pytest

from madplug import log
from madplug.log import hide

KEY = "sk-proj/abc\"123+DEF"


def percent(text):
    return "".join(f"%{byte:02X}" for byte in text.encode())


def escaped(text):
    return "".join(f"\\u{ord(character):04X}" for character in text)


@pytest.mark.parametrize("form", [
    KEY, quote(KEY, safe=""), percent(KEY), percent(KEY).lower(), escaped(KEY), escaped(KEY).lower(),
    KEY[:5] + percent(KEY[5:9]) + escaped(KEY[9:]), json.dumps(KEY)[1:-1], KEY.replace("/", "\\/"),
    json.dumps(escaped(KEY))[1:-1], "".join(f"\\x{ord(c):02x}" for c in KEY)])
def test_a_secret_is_hidden_in_every_form(form):
    assert hide(f"before {form} after {form}", [KEY]) == "before [secret] after [secret]"


def test_a_secret_that_is_not_ascii_is_hidden_in_every_form():
    key = "Schl\u00fcssel-\U0001f511"
    for form in (key, percent(key), json.dumps(key)[1:-1]):
        assert hide(f"a {form} b", [key]) == "a [secret] b"


def test_other_text_is_left_as_it_is():
    text = "100 % of \\u0041 and %41, C:\\temp, sk-proj"
    assert hide(text, [KEY, "none"]) == text
    assert hide("none", ["none"]) == "none"


@pytest.mark.parametrize("before", [99_970, 99_990, 100_000, 200_001])
def test_a_secret_between_two_portions_is_hidden(before):
    assert hide("x" * before + percent(KEY) + "y" * 10, [KEY]) == "x" * before + "[secret]" + "y" * 10


@pytest.mark.parametrize("unit", ["%", "\\", "%73", "\\u0073", "s%6b", "sk-proj%2fabc"])
def test_the_time_to_hide_grows_with_the_length_and_no_faster(unit):
    def seconds(length):
        text = (unit * length)[:length]
        return min(_timed(text) for _ in range(5))

    def _timed(text):
        began = time.process_time()
        hide(text, [KEY])
        return time.process_time() - began

    assert seconds(400_000) < 12 * max(seconds(100_000), 1e-4)


@pytest.mark.parametrize("address", ["http://me:{}@127.0.0.1:3128", "postgres+tls://me:{}@host/base", "http://:{}@host"])
@pytest.mark.parametrize("password", ["a-long-password", "with/slash@and-at", "percent%2Fencoded"])
def test_a_password_in_an_address_of_the_environment_is_hidden(address, password, monkeypatch):
    monkeypatch.setenv("ANY_NAME", address.format(password))
    assert password not in log.redact(f"cannot connect to {address.format(password)}")


@pytest.mark.parametrize("name", [
    "LATE_API_KEY", "OPENAI_API_KEY_2", "OPENAI_KEY1", "API_KEYS", "X_PASSWD", "X_PASSPHRASE"])
def test_a_secret_that_is_set_after_the_first_look_is_hidden(name, monkeypatch):
    log.redact("an earlier study of this process")
    monkeypatch.setenv(name, "sk-set-in-the-next-cell")
    assert log.redact("refused: sk-set-in-the-next-cell") == "refused: [secret]"
