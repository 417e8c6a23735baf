"""What is sent, what is read, and what a run file may say."""

import types

import pytest
from pydantic import ValidationError

from madplug import Request, UserError, Volatile
from madplug_openai import Chat
from madplug_testing.endpoint import completion, running_endpoint

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
          "additionalProperties": False}
QUESTION = {"role": "user", "content": "2+2?"}


@pytest.fixture
def exchange(ask):
    """One call: the headers and the body that were sent, and the completion."""
    def exchange(replies=None, *, form=None, params=None, messages=(QUESTION,), **options):
        with running_endpoint(replies, keep=1) as endpoint:
            answered, = ask(endpoint.url, Request(messages, "discuss", "m", 0, params or {}, form, 1234), **options)
            (headers, body), = endpoint.seen
        return headers, body, answered

    return exchange


# What is sent

@pytest.mark.parametrize(("options", "params", "sent"), [
    ({}, {}, {"seed": 1234}),
    ({"temperature": 0.5, "top_p": 0.9, "max_tokens": 64, "stop": ["\n"], "seed": False,
      "extra": {"reasoning_effort": "low"}}, {},
     {"temperature": 0.5, "top_p": 0.9, "max_tokens": 64, "stop": ["\n"], "reasoning_effort": "low"}),
    ({"temperature": 0.5, "max_tokens": 64}, {"temperature": 0, "max_tokens": 5, "min_p": 0.1},
     {"seed": 1234, "temperature": 0, "max_tokens": 5, "min_p": 0.1}),
    ({"max_tokens_field": "max_completion_tokens", "max_tokens": 64}, {"max_tokens": 5},
     {"seed": 1234, "max_completion_tokens": 5})])
def test_only_what_the_options_and_the_call_say_is_sent(exchange, options, params, sent):
    assert exchange(params=params, **options)[1] == {"model": "fake", "messages": [QUESTION], **sent}


def test_images_read_only_messages_and_text_of_every_script_arrive_unchanged(exchange):
    parts = [{"type": "text", "text": "Größe 大きさ 🙂 \x00 \u2028"},
             {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
    _, body, _ = exchange(messages=(types.MappingProxyType({"role": "user", "content": parts}),))
    assert body["messages"] == [{"role": "user", "content": parts}]


@pytest.mark.parametrize(("value", "sent"), [(" right\n", "Bearer right"), (None, None), ("", None), ("  ", None)])
def test_the_key_comes_from_the_variable_that_was_named_and_none_is_sent_where_it_is_not_set(
        exchange, monkeypatch, value, sent):
    if value is not None:
        monkeypatch.setenv("LAB_KEY", value)
    headers, _, _ = exchange(api_key_env="LAB_KEY", organization="org-1")
    assert (headers.get("authorization"), headers["openai-organization"]) == (sent, "org-1")


def test_there_is_one_request_to_a_call_and_one_connection_to_many(ask):
    with running_endpoint() as endpoint:
        ask(endpoint.url, *"abc")
        stats = endpoint.stats()
    assert (stats["requests"], stats["connections"]) == (3, 2)  # the other one asks for the statistics


@pytest.mark.parametrize(("schema", "strict"), [
    (SCHEMA, True), ({**SCHEMA, "required": []}, False), ({**SCHEMA, "additionalProperties": True}, False),
    ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, False)])
def test_a_schema_is_sent_as_openai_takes_it_and_called_strict_where_it_is_closed(exchange, schema, strict):
    _, body, _ = exchange(form={"json_schema": schema})
    assert body["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": strict}}


@pytest.mark.parametrize(("structured", "form", "further"), [
    ("none", {"json_schema": SCHEMA}, {}), ("json_schema", {"regex": "a+"}, {}),
    ("json_schema", {"grammar": 'root ::= "a"'}, {}), ("none", {"regex": "a+"}, {}),
    ("vllm", {"regex": "a+"}, {"structured_outputs": {"regex": "a+"}}),
    ("vllm", {"grammar": 'root ::= "a"'}, {"structured_outputs": {"grammar": 'root ::= "a"'}}),
    ("sglang", {"regex": "a+"}, {"regex": "a+"}), ("sglang", {"grammar": 'root ::= "a"'}, {"ebnf": 'root ::= "a"'}),
    ("llamacpp", {"grammar": 'root ::= "a"'}, {"grammar": 'root ::= "a"'}),
    ("llamacpp", {"regex": "a+"}, {"grammar": 'root ::= ("a")+'}),
    ("llamacpp", {"regex": "[ab]{0,1001}"}, {"grammar": "root ::= [ab]*"}),
    ("llamacpp", {"regex": "(?=a)a"}, {})])
def test_a_form_goes_where_the_server_expects_it(exchange, structured, form, further):
    _, body, _ = exchange(form=form, structured=structured)
    assert body == {"model": "fake", "messages": [QUESTION], "seed": 1234, **further}


# What is read

def test_tokens_are_counted_and_the_account_is_kept(exchange):
    def reply(asked):
        made = {**completion("four", 100), "model": "fake-2026-01-01"}
        made["usage"]["prompt_tokens_details"] = {"cached_tokens": 64}
        return made

    usage = exchange(reply)[2].usage
    assert (usage.prompt, usage.completion, usage.cached, usage.cost_usd) == (100, 1, 64, None)
    assert [usage.raw[name] for name in ("total_tokens", "finish_reason", "model")] == [101, "stop", "fake-2026-01-01"]


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": None, "completion_tokens": "x"},
                                   {"prompt_tokens": -1, "prompt_tokens_details": {"cached_tokens": 5}}])
def test_usage_that_says_nothing_counts_nothing(exchange, usage):
    made = exchange(lambda asked: {**completion("four"), "usage": usage})[2]
    assert (made.usage.prompt, made.usage.completion, made.usage.cached) == (0, 0, 0)


@pytest.mark.parametrize(("message", "text", "reasoning"), [
    ({"content": "yes", "reasoning": "because"}, "yes", "because"),
    ({"content": "yes", "reasoning_content": "because"}, "yes", "because"),
    ({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ye"},
                  {"type": "text", "text": "s"}]}, "yes", None),
    ({"content": None, "refusal": "I would rather not"}, "I would rather not", None)])
def test_reasoning_is_kept_beside_the_answer_and_a_refusal_is_an_answer(exchange, message, text, reasoning):
    def reply(asked):
        return {"choices": [{"message": message}]}

    made = exchange(reply)[2]
    assert (made.text, made.usage.raw.get("reasoning")) == (text, reasoning)
    assert "reasoning" not in exchange(reply, keep_reasoning=False)[2].usage.raw


def test_log_probabilities_come_where_they_are_asked_for(exchange):
    def reply(asked):
        return completion("a b", 1, asked.get("logprobs", False), asked.get("top_logprobs", 0))

    _, body, answered = exchange(reply, params={"logprobs": 1})
    assert body["logprobs"] is True
    assert (answered.logprobs, answered.top_logprobs) == ((-0.5, -1 / 3), None)
    assert exchange(reply, params={"logprobs": True, "top_logprobs": 1})[2].top_logprobs == ({"a": -0.5}, {"b": -1 / 3})
    assert exchange()[2].logprobs is None


# What a run file may say

@pytest.mark.parametrize(("option", "value", "what"), [
    *(("api_key_env", key, "must be the name of an environment variable") for key in (
        "sk-proj-abc123DEF456", "hf_AbCdEfGhIjKlMn", "0123456789abcdef", "Bearer x", "a b", "AKIA" + "X" * 80)),
    *(("base_url", url, what) for url, what in (
        ("http://me:secret@host/v1", "user name or password"), ("http://secret@host/v1", "user name or password"),
        ("http://host/v1?key=secret", "must not contain"), ("host:8000/secret", "must begin with"),
        ("ftp://host/secret", "must begin with"), ("http:///secret", "name a host"), ("http://host:secret/", "no"))),
    *(("organization", name, "is sent as a header: no line breaks") for name in (
        "org-1\r\nX-Injected: yes", "org\n1", "org\x001", "örg")),
    *(("extra", {field: "secret"}, f"must not set {field}") for field in (
        "stream", "messages", "model", "n", "api_key", "Authorization"))])
def test_a_key_in_the_wrong_place_and_what_would_break_the_request_are_refused_unechoed(option, value, what):
    with pytest.raises(ValidationError, match=what) as caught:
        Chat(**{"model": "fake", option: value})
    assert "secret" not in str(caught.value)
    assert str(value) not in str(caught.value)


def test_a_key_that_would_break_the_request_is_refused_unechoed(exchange, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\nHost: evil")
    with pytest.raises(UserError, match="OPENAI_API_KEY has characters") as caught:
        exchange()
    assert "secret" not in str(caught.value)


def test_what_may_change_between_runs_is_marked():
    fields = Chat.Options.model_fields
    marked = {name for name, info in fields.items() if Volatile in info.metadata}
    assert marked >= {"base_url", "api_key_env", "organization", "timeout", "max_in_flight", "requests_per_minute"}
    assert not marked & {"model", "temperature", "top_p", "max_tokens", "stop", "seed", "structured", "extra"}


def test_the_address_may_come_from_the_environment_as_for_every_client_of_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")
    assert Chat(model="m").options.base_url == "http://127.0.0.1:1/v1"
    assert Chat(model="m", base_url="http://127.0.0.1:2").options.base_url == "http://127.0.0.1:2"


def test_a_key_that_is_not_set_is_told_before_anything_is_asked(monkeypatch):
    for name in ("OPENAI_API_KEY", "MY_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert "OPENAI_API_KEY is not set" in (Chat(model="m").missing() or "")
    assert "MY_KEY is not set" in (Chat(model="m", base_url="http://h/v1", api_key_env="MY_KEY").missing() or "")
    local = Chat(model="m", base_url="http://h/v1")
    assert local.missing() is None
    assert Chat(**local.options.model_dump()).missing() is None, "as study.toml has it, with every option"


@pytest.mark.parametrize(("key", "hidden"), [("anything", False), ("EMPTY", False), ("Placeholder", False),
                                             ("sk-local-0", True), ("correcthorsebattery", True)])
def test_a_placeholder_in_the_place_of_a_key_is_a_word_that_replies_keep(ask, key, hidden, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with running_endpoint(lambda asked: completion(f"I do not know {key}."), keep=1) as endpoint:
        made, = ask(endpoint.url)
        assert endpoint.seen[0][0]["authorization"] == f"Bearer {key}"
    assert made.text == f"I do not know {'[key]' if hidden else key}."
