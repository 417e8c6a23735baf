"""Several samples in one request, over HTTP."""

import asyncio

import pytest

import madplug
from madplug import Completion, Request
from madplug_testing.endpoint import completion, running_endpoint
from madplug_testing.faults import error

RUN = """
name = "s"
dataset = {{use = "puzzles.ordering", size = 4}}
models.m = {{use = "openai.chat", model = "fake", base_url = "{url}", samples_per_request = {n}}}
debate = {{paradigm = "baselines.self_consistency", agents = 5}}
metrics = ["qa.accuracy"]
"""


def several(asked):
    """A reply with as many choices as were asked for; they say which they are."""
    whole = completion("one", 100)
    about, choice = asked["messages"][-1]["content"][:30], whole["choices"][0]
    texts = [f"sample {i} of {about}\nFinal answer: (A)" for i in range(asked.get("n", 1))]
    whole["choices"] = [{**choice, "message": {"role": "assistant", "content": text}} for text in texts]
    whole["usage"] = {"prompt_tokens": 100, "completion_tokens": 4 * asked.get("n", 1),
                      "prompt_tokens_details": {"cached_tokens": 64}}
    return whole


def asked_together(talk, replies, texts, **options):
    """The outcomes of requests with different seeds that are made at the same time, and the bodies that were sent."""
    async def script(call):
        return await asyncio.gather(*(call(Request(({"role": "user", "content": text},), "discuss", "m", seed=seed))
                                      for seed, text in enumerate(texts)))

    with running_endpoint(replies, keep=20) as endpoint:
        return talk(endpoint.url, script, **options), [body for _, body in endpoint.seen]


def test_requests_that_differ_in_their_seeds_are_sent_as_one_and_share_its_usage(talk):
    found, sent = asked_together(talk, several, ["x"] * 7 + ["y"], samples_per_request=5)
    assert sorted((body["messages"][0]["content"], body.get("n"), body["seed"]) for body in sent) == [
        ("x", 2, 5), ("x", 5, 0), ("y", None, 7)]
    assert [one.text.partition("\n")[0] for one in found] == [
        *(f"sample {i} of x" for i in (0, 1, 2, 3, 4, 0, 1)), "sample 0 of y"]
    assert [sum(getattr(one.usage, name) for one in found) for name in ("prompt", "completion", "cached")] == [
        300, 32, 192]
    assert [one.usage.prompt for one in found] == [20] * 5 + [50, 50, 100]


def test_an_endpoint_that_ignores_n_is_asked_for_the_others_one_by_one_from_then_on_which_is_said_once(talk, caplog):
    async def script(call):
        async def five(text):
            return await asyncio.gather(*(call(text) for _ in range(5)))

        return [*await five("x"), *await five("y")]

    with running_endpoint(lambda asked: several({**asked, "n": 1}), keep=20) as endpoint:
        found = talk(endpoint.url, script, samples_per_request=5)
        assert [body.get("n") for _, body in endpoint.seen] == [5] + [None] * 9
    assert [one.usage.prompt for one in found] == [100] * 10
    assert caplog.text.count("model 'fake': the endpoint gave 1 of 5 samples") == 1


@pytest.mark.parametrize("reply", [b"{}", b"not JSON", error("n must be 1", 400), {"choices": {"a": 1}}])
def test_what_is_wrong_with_a_reply_for_several_is_said_to_each(talk, reply):
    found, sent = asked_together(talk, lambda asked: reply, ["x"] * 3, samples_per_request=3)
    assert len(sent) == 1
    assert not [one for one in found if isinstance(one, Completion)]


def test_a_study_pays_a_prompt_once_for_its_samples_and_goes_on_with_those_that_are_missing(tmp_path):
    for plugin in ("baselines", "puzzles", "qa"):
        pytest.importorskip(f"madplug_{plugin}")
    with running_endpoint(several, keep=99) as endpoint:
        (tmp_path / "s.toml").write_text(RUN.format(url=endpoint.url, n=5))

        def run(**settings):
            return madplug.run(tmp_path / "s.toml", output=tmp_path / "out", settings=settings, quiet=True).summary

        stopped = run(limits={"calls": 13})
        assert stopped["paid"]["calls"] == 13
        sent = len(endpoint.seen)
        (tmp_path / "s.toml").write_text(RUN.format(url=endpoint.url, n=4))  # the same study
        done = run()
        numbers = [body.get("n", 1) for _, body in endpoint.seen]
    assert sum(numbers[:sent]) == 13
    assert sum(numbers) == done["paid"]["calls"] == 20
    assert done["cells"][0]["tokens"]["prompt"] == 100 * len(numbers) < 100 * 10
