"""Replies that are too large or too much work leave the other calls alone."""

import asyncio
import gzip
import json
import time

import pytest

from madplug import Completion, ModelError, RefusedError, Request, TransientError
from madplug_openai import Chat
from madplug_openai.failures import failure
from madplug_testing.endpoint import completion, running_endpoint


async def outcome(model, text="2+2?"):
    try:
        return await model.complete(Request(({"role": "user", "content": text},), "discuss", "m"))
    except ModelError as error:
        return error


def ask(url, **options):
    async def talk():
        model = Chat(model="fake", base_url=url, **options)
        await model.open()
        try:
            return await outcome(model)
        finally:
            await model.close()

    return asyncio.run(talk())


@pytest.mark.parametrize("fault", ["huge", "gzip_bomb", "endless_chunks", "endless_body"])
def test_a_reply_that_is_too_large_is_refused_and_names_the_limit(fault):
    with running_endpoint(faults=[fault]) as endpoint:
        error = ask(endpoint.url, max_reply_mb=3)
    assert isinstance(error, RefusedError)
    assert "max_reply_mb, 3 MB" in str(error)


@pytest.mark.parametrize("size", [900_000, 1_100_000])
@pytest.mark.parametrize("packed", [False, True])
def test_the_limit_counts_what_is_unpacked(size, packed):
    body = json.dumps(completion("x" * (size - 300))).encode()
    body += b" " * (size - len(body))
    with running_endpoint(lambda asked: body, faults=["gzip" if packed else None]) as endpoint:
        answered = ask(endpoint.url, max_reply_mb=1)
    assert isinstance(answered, Completion if size < 1_000_000 else RefusedError)
    assert not packed or len(gzip.compress(body)) < 10_000


def test_large_replies_do_not_stall_the_calls_of_another_model():
    """Four replies of nearly the limit: the longest time between two answers of another model is a part of theirs."""
    async def talk(big, small):
        busy, other = Chat(model="fake", base_url=big), Chat(model="fake", base_url=small)
        await asyncio.gather(busy.open(), other.open())
        await outcome(other)
        began, ends = time.perf_counter(), []
        tasks = [asyncio.ensure_future(outcome(busy, str(n))) for n in range(4)]
        while not all(task.done() for task in tasks):
            assert isinstance(await outcome(other), Completion)
            ends.append(time.perf_counter())
        took = time.perf_counter() - began
        await asyncio.gather(busy.close(), other.close())
        return took, [b - a for a, b in zip([began, *ends], ends, strict=False)], [task.result() for task in tasks]

    # In processes of their own, so that this one's interpreter only reads.
    with running_endpoint(process=True, text="a few words more " * 900_000) as big, \
            running_endpoint(process=True) as small:
        took, gaps, answered = asyncio.run(talk(big.url, small.url))
    assert all(isinstance(a, Completion) for a in answered), answered
    assert max(gaps) < took / 3
    assert len(gaps) > 10


BODIES = ["<", "<script ", "<script>", "</", "<style><", "\x1b]", "\x1b[", "sk-", "request id: ", "(", "a", "%", "\\"]


@pytest.mark.parametrize("unit", BODIES)
def test_the_time_for_an_error_does_not_grow_faster_than_its_body(unit):
    def seconds(length):
        text = (unit * length)[:length]
        return min(_timed(text) for _ in range(3))

    def _timed(text):
        began = time.thread_time()
        failure(500, None, text, {}, ["sk-proj-abc123DEF456ghi789"])
        failure(500, {"error": {"message": text}}, text, {}, ["sk-proj-abc123DEF456ghi789"])
        return time.thread_time() - began

    assert seconds(20_000) < 16 * max(seconds(5_000), 2e-4)


@pytest.mark.parametrize("fault", ["error_tags", "error_big", "tags", "error_list"])
def test_the_message_of_an_error_is_short(fault):
    with running_endpoint(faults=[fault]) as endpoint:
        error = ask(endpoint.url)
    assert isinstance(error, TransientError)
    assert len(str(error)) < 400
