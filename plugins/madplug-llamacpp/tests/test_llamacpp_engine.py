"""The engine with real weights; skipped where the small ones are not installed."""

import asyncio
import json
import math
import os
import re
import urllib.error
import urllib.request
import warnings

import pytest
from structlog.testing import capture_logs

from madplug import ModelError, RefusedError, Request
from madplug_llamacpp import Chat
from madplug_llamacpp.engine import Answer
from madplug_llamacpp.weights import found

QUESTION = "Ann is taller than Bo, and Bo is taller than Cy. Who is tallest?\n(A) Ann\n(B) Bo\n(C) Cy\nBriefly."
CLOSING = r"(?:[\s\S]{0,50}\n)?Final answer: \((A|B|C)\)"


def request(text=QUESTION, *, form=None, seed=1, **params):
    messages = ({"role": "user", "content": text},) if isinstance(text, (str, list)) else text
    return Request(messages, "test", "small", params={"max_tokens": 16, **params}, form=form, seed=seed)


def opened(**options):
    try:
        found("qwen-0-5b")
    except ModelError as error:
        pytest.skip(f"no weights: {str(error)[:60]}...")
    model = Chat(batch_threads=1, **options)  # threads that wait for each other are slow where cores are shared
    asyncio.run(model.open())
    return model


@pytest.fixture(scope="module")
def model():
    model = opened(context=512)
    yield model
    asyncio.run(model.close())


@pytest.fixture(scope="module")
def single():
    """One slot and nothing cached: what reproduces."""
    model = opened(context=1024, max_in_flight=1, prompt_cache=False)
    yield model
    asyncio.run(model.close())


def ask(model, *requests):
    async def together():
        return await asyncio.gather(*map(model.complete, requests))

    return asyncio.run(together())


def test_a_regular_expression_a_schema_and_a_grammar_are_enforced(model):
    schema = {"type": "object", "properties": {"answer": {"enum": ["A", "B"]}, "sure": {"type": "boolean"}},
              "required": ["answer", "sure"], "additionalProperties": False}
    *closed, shaped, spelled = ask(
        model, *(request(form={"regex": CLOSING}, seed=seed, max_tokens=70) for seed in range(2)),
        request(form={"json_schema": schema}, max_tokens=60), request(form={"grammar": 'root ::= "<" [a-c]{3} ">"'}))
    assert all(re.fullmatch(CLOSING, reply.text) for reply in closed)
    assert {reply.usage.raw["finish_reason"] for reply in closed} == {"stop"}
    said = json.loads(shaped.text)
    assert (said["answer"] in ("A", "B"), type(said["sure"])) == (True, bool)
    assert re.fullmatch(r"<[a-c]{3}>", spelled.text)


def test_a_form_that_cannot_be_enforced_is_left_out_with_one_warning(model):
    forms = [{"regex": r"(?=a)b"}, {"grammar": "root ::= ((("}, {"json_schema": {"type": "odd"}}, {"shape": "round"}]
    with capture_logs() as logs:
        replies = ask(model, *(request(form=form, max_tokens=4) for form in [*forms, *forms]))
    assert [bool(reply.text) for reply in replies] == [True] * 8
    reasons = [reply.usage.raw["unsupported_form"] for reply in replies[:4]]
    for reason, said in zip(reasons, ("(?=a)b: assert", "parse grammar", "type odd", "not 'shape'"), strict=True):
        assert said in reason
    assert sorted(log["reason"] for log in logs) == sorted(reasons)


def test_calls_run_side_by_side_and_the_loop_stays_free(model):
    async def watched():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        requests = [request(f"Say something about {n}.", max_tokens=12) for n in range(8)]
        replies = await asyncio.gather(*map(model.complete, requests))
        ticking.cancel()
        return ticks, replies

    ticks, replies = asyncio.run(watched())
    assert all(reply.text for reply in replies)
    assert ticks > 20  # a loop that waits for calls gets a turn after each of them, at most


def test_usage_is_counted_with_what_the_cache_saved(model):
    first, again = (ask(model, request("Name three rivers of Europe, please.", temperature=0))[0] for _ in range(2))
    assert first.usage.prompt == again.usage.prompt > 20
    assert again.usage.cached >= again.usage.prompt - 1
    assert 0 < first.usage.completion <= 16
    assert first.usage.raw["total_tokens"] == first.usage.prompt + first.usage.completion
    assert model.price == {"prompt": 0.0, "completion": 0.0}


def test_log_probabilities_come_where_they_are_asked_for(model):
    long, short, without, letter = ask(model, request(logprobs=True, form={"regex": "[a-z ]{200}"}, max_tokens=6),
        request(logprobs=True, form={"grammar": 'root ::= "yes"'}), request(max_tokens=2),
        request(logprobs=True, top_logprobs=5, max_tokens=1, temperature=0))
    assert len(long.logprobs) == long.usage.completion == 6
    assert len(short.logprobs) == short.usage.completion - 1  # the token that ends a reply is none of its own
    assert all(0 < math.exp(p) <= 1 for p in long.logprobs)
    assert without.logprobs is long.top_logprobs is None
    [top] = letter.top_logprobs
    assert len(top) == 5
    assert letter.logprobs[0] == top[letter.text] == max(top.values())


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.parametrize(("text", "params", "said"), [
    ("word " * 2000, {}, r"the prompt has \d{4} tokens and a slot has room for 512.*raise context"),
    ([{"type": "text", "text": "What is this?"}, IMAGE], {}, "text only"),
    (QUESTION, {"temperature": "hot"}, "temperature")])
def test_a_prompt_that_is_too_long_an_image_and_a_senseless_parameter_are_refused(model, text, params, said):
    with pytest.raises(RefusedError, match=said):
        ask(model, request(text, **params))


def test_parts_of_text_are_lines_and_text_that_is_not_unicode_or_has_control_characters_is_answered(model):
    two = [{"type": "text", "text": text} for text in ("One.", "Two.")]
    parts, lines, *odd = ask(model, *(request(text, max_tokens=1) for text in (
        two, "One.\nTwo.", "a\x00b", "\ud800", "\x1b[31m")))
    assert parts.usage.prompt == lines.usage.prompt
    assert all(reply.usage.prompt for reply in odd)


def test_a_reply_stops_at_a_text_that_ends_it(model):
    form = {"grammar": 'root ::= "one two three"'}
    single, several = ask(model, request(form=form, stop=" two"), request(form=form, stop=(" three", " nine")))
    assert (single.text, several.text) == ("one", "one two")


def test_no_other_process_can_use_the_port_that_the_engine_opens(model):
    address = model._engine._server.listening_address
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{address}/v1/models", timeout=10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_call_after_a_fork_is_refused_at_once(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that forking beside threads is unwise is the point
        child = os.fork()
    if child == 0:
        try:
            ask(model, request())
        except ModelError as error:
            os._exit(7 if "after a fork" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_seed_reproduces_a_reply_with_one_slot_and_no_cache(single):
    asked = [request(seed=5), request("Something else.", seed=9, max_tokens=5), request(seed=5), request(seed=6)]
    first, _, again, other = (ask(single, one)[0] for one in asked)
    assert first.text == again.text != other.text
    assert again.usage.cached == 0


def test_a_call_that_is_no_longer_wanted_stops_writing(single, monkeypatch):
    answers = []

    async def interrupted():
        loop, writes = asyncio.get_running_loop(), asyncio.Event()

        class Kept(Answer):
            def __init__(self, shown=None):
                super().__init__(shown)
                answers.append(self)

            def __call__(self, chunk):
                loop.call_soon_threadsafe(writes.set)
                return super().__call__(chunk)

        monkeypatch.setattr("madplug_llamacpp.chat.Answer", Kept)
        call = single.complete(request("Tell a story.", form={"regex": "[a-z ]{900}"}, max_tokens=200))
        writing = asyncio.create_task(call)
        await asyncio.wait({writing, asyncio.ensure_future(writes.wait())}, return_when=asyncio.FIRST_COMPLETED)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await single.complete(request(max_tokens=1))  # has to wait for the only slot

    asyncio.run(interrupted())
    assert 0 < len(answers[0].text) < 20


@pytest.mark.parametrize(("content", "said"), [
    (b"PK", "is not a GGUF file"), (b"GGUF" + bytes(99), "cannot load these weights")])
def test_what_is_no_model_is_refused_when_it_is_loaded_and_one_that_is_not_open_says_so(tmp_path, content, said):
    (tmp_path / "broken.gguf").write_bytes(content)
    model = Chat(weights=str(tmp_path / "broken.gguf"))
    with pytest.raises(ModelError, match="not open"):
        ask(model, request())
    with pytest.raises(ModelError, match=said):
        asyncio.run(model.open())
