"""No secret passes through the log, however it is written."""

import json
import re
from urllib.parse import quote

import pytest

from madplug.redaction import hide, redact

KEY = "sk-proj/abc\"123+DEF"


@pytest.mark.parametrize("key", [KEY, "Schl\u00fcssel/\U0001f511"])
def test_a_secret_is_hidden_as_it_is_as_json_and_percent_encoded(key):
    in_json = json.dumps(key)[1:-1]
    for form in (key, in_json, json.dumps(key, ensure_ascii=False)[1:-1], json.dumps(in_json)[1:-1],
                 in_json.replace("/", "\\/"), quote(key, safe=""), quote(key),
                 re.sub("%..", lambda found: found[0].lower(), quote(key, safe=""))):
        assert hide(f"before {form} after {form}", [key]) == "before [secret] after [secret]"


def test_other_text_is_left_as_it_is():
    text = "100 % of \\u0041 and %41, C:\\temp, sk-proj"
    assert hide(text, [KEY, "none"]) == text
    for word in ("none", "anything", "Placeholder", "EMPTY"):
        assert hide(f"it is {word}", [word]) == f"it is {word}"
    assert hide("it is correcthorsebattery", ["correcthorsebattery"]) == "it is [secret]"


@pytest.mark.parametrize(("name", "shown"), [
    ("LAB_PASSWORD", "for [secret] else"), ("LAB_API_KEY", "for anything else")])
def test_a_word_may_be_a_password_and_is_no_key(name, shown, monkeypatch):
    monkeypatch.setenv(name, "anything")
    assert redact("for anything else") == shown


@pytest.mark.parametrize("address", ["http://me:{}@127.0.0.1:3128", "postgres+tls://me:{}@host/base", "http://:{}@host"])
@pytest.mark.parametrize("password", ["a-long-password", "with/slash@and-at", "percent%2Fencoded"])
def test_a_password_in_an_address_of_the_environment_is_hidden(address, password, monkeypatch):
    monkeypatch.setenv("ANY_NAME", address.format(password))
    assert password not in redact(f"cannot connect to {address.format(password)}")


@pytest.mark.parametrize("name", [
    "LATE_API_KEY", "OPENAI_API_KEY_2", "OPENAI_KEY1", "API_KEYS", "X_PASSWD", "X_PASSPHRASE"])
def test_a_secret_that_is_set_after_the_first_look_is_hidden(name, monkeypatch):
    redact("an earlier study of this process")
    monkeypatch.setenv(name, "sk-set-in-the-next-cell")
    assert redact("refused: sk-set-in-the-next-cell") == "refused: [secret]"
