"""A model and an endpoint that it talks to."""

import asyncio

import pytest

from madplug import ModelError, Request
from madplug_openai import Chat
from madplug_testing.endpoint import running_endpoint

KEY = "sk-proj-abc123DEF456ghi789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    """The key in the environment; no proxy is."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


@pytest.fixture
def talk():
    """Runs `script(call)`, where `call(text)` or `call(request)` gives a completion or an error, with an open model."""
    def talk(url, script, **options):
        async def run():
            model = Chat(**{"model": "fake", "base_url": url, "timeout": 5.0, **options})

            async def call(asked):
                if isinstance(asked, str):
                    asked = Request(({"role": "user", "content": asked},), "discuss", "m")
                try:
                    return await model.complete(asked)
                except ModelError as error:
                    return error

            try:
                await model.open()
                return await script(call)
            finally:
                await model.close()

        return asyncio.run(run())

    return talk


@pytest.fixture
def ask(talk):
    """The outcomes of requests, one after the other."""
    def ask(url, *asked, **options):
        async def script(call):
            return [await call(one) for one in asked or ("2+2?",)]

        return talk(url, script, **options)

    return ask


@pytest.fixture
def outcome(ask):
    """The outcome of one request at an endpoint with a fault, or that gives this reply."""
    def outcome(fault=None, reply=None, *, retry_after="0.05", **options):
        replies = None if reply is None else lambda asked: reply
        with running_endpoint(replies, faults=[fault], retry_after=retry_after) as endpoint:
            return ask(endpoint.url, **options)[0]

    return outcome
