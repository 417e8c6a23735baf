"""What a study may cost is told before it is run, and the prices that are built in."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import madplug
from madplug import DecisionProtocol
from madplug.study import Registry, load
from madplug_prices import price_of
from madplug_prices.forecast import forecast, recorded
from madplug_testing.endpoint import running_endpoint

HELLO = "https://api.openai.com/v1"
RUN = {"name": "s", "dataset": {"use": "puzzles.ordering", "size": 6}, "metrics": ["qa.accuracy"]}
MODEL = {"use": "openai.chat", "model": "gpt-4o-mini", "max_tokens": 200}
CELLS = {"name": "debate", "debate": {"paradigm": "som.debate", "agents": 3, "rounds": 2}}, {
    "name": "vote", "match": {"cell": "debate", "by": "tokens"}, "debate": {"paradigm": "baselines.self_consistency"}}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for plugin in ("openai", "puzzles", "som", "qa", "baselines"):
        pytest.importorskip(f"madplug_{plugin}")
    monkeypatch.chdir(tmp_path)


def test_what_a_study_takes_lies_between_the_figures_that_were_told(tmp_path):
    with running_endpoint(lambda body: "Words. " * 90 + "Final answer: (A)") as endpoint:
        small = {**MODEL, "base_url": endpoint.url, "price": {"prompt": 1.0, "completion": 2.0}}
        table = {**RUN, "models": {"small": small}, "cells": list(CELLS)}
        found = forecast(load(table))
        paid = madplug.run(table, output=tmp_path / "out", quiet=True).summary["paid"]
    assert found.tokens[0] < paid["tokens"] < found.tokens[1]
    assert found.usd[0] < paid["cost_usd"] < found.usd[1]


def test_the_same_request_to_two_models_counts_twice():
    cells = [{"name": name, "debate": {**CELLS[0]["debate"], "models": [name]}} for name in ("a", "b")]
    one, two = (forecast(load({**RUN, "cells": cells[:n], "models": {
        name: {**MODEL, "model": name} for name in ("a", "b")[:n]}})) for n in (1, 2))
    assert two.tokens == (2 * one.tokens[0], 2 * one.tokens[1])


def test_a_request_that_cells_share_counts_once():
    def found(*rounds, **more):
        return forecast(load({**RUN, **more, "models": {"small": MODEL}, "cells": [
            {"name": f"r{n}", "debate": {**CELLS[0]["debate"], "rounds": n}} for n in rounds]})).tokens
    assert found(1, 2, 3) == found(3)
    assert found(1, 2, share_completions=False) == tuple(map(sum, zip(found(1), found(2), strict=True)))


def test_the_least_that_a_gate_takes_is_a_sure_answer():
    pytest.importorskip("madplug_gate")
    gate, one = (forecast(load({**RUN, "models": {"small": MODEL}, "debate": debate})) for debate in (
        {"paradigm": "gate.debate"}, {"paradigm": "som.debate", "agents": 1, "rounds": 1}))
    assert one.tokens[0] < gate.tokens[0] < 1.5 * one.tokens[0], "the request for a confidence is longer"
    assert gate.tokens[1] > 8 * one.tokens[1]


def test_check_tells_tokens_and_dollars_of_built_in_prices_and_who_has_none():
    file = Path("s.toml")
    table = {**RUN, "debate": CELLS[0]["debate"]}
    file.write_text("debate = {paradigm = 'som.debate', agents = 3}\ndataset = {use = 'puzzles.ordering', size = 6}\n"
                    f"models.small = {{use = 'openai.chat', model = 'gpt-4o-mini', base_url = '{HELLO}'}}\n")
    said = CliRunner().invoke(madplug.main, ["check", str(file)]).stdout
    assert re.search(r" tokens, \$0\.00\d+ to \$0\.0\d+; tried .*\n  low: every reply has 100 tokens", said)
    assert said.endswith(f"\n{forecast(load('s.toml')).text}\n")
    found = forecast(load({**table, "models": {"small": {**MODEL, "model": "unheard-of"}}}))
    assert "(no price is known for small)" in found.text
    assert not found.usd[1]


def test_of_a_study_with_records_the_rest_is_told_and_what_it_may_share():
    def said(*settings, words=()):
        words = [*words, *(word for one in settings for word in ("--set", one))]
        done = CliRunner().invoke(madplug.main, ["check", "s.toml", *words])
        assert done.exit_code == 0
        return next((line for line in done.stdout.splitlines() if "; tried on " in line), "")

    with running_endpoint(lambda body: "Words. " * 90 + "Final answer: (A)") as endpoint:
        Path("s.toml").write_text(
            f"models.small = {{use = 'openai.chat', model = 'm', max_tokens = 200, base_url = '{endpoint.url}'}}\n"
            "dataset = {use = 'puzzles.ordering', size = 6}\n[[cells]]\nname = 'debate'\n"
            "debate = {paradigm = 'som.debate', agents = 3}\n")
        assert said().startswith("about ")
        before = madplug.run("s.toml", quiet=True).summary["paid"]["tokens"]
        assert said() == "", "nothing is left"
        assert said(words=("--output", "runs/new")).startswith("about "), "everything is"
        assert said("repeats=2").startswith("for the 6 of 12 debates that are left, about ")
        assert said("cells.0.debate.rounds=3").startswith("about "), "which run refuses"
        cell = '{{name = "{}", debate = {{paradigm = "{}", agents = 3}}}}'.format
        both = f"{cell('debate', 'som.debate')}, {cell('vote', 'baselines.self_consistency')}"
        grown = ["dataset.size=8", f"cells=[{both}]"]
        assert re.match(r"for the 10 of 16 debates that are left, about \S+ to \S+ tokens.*, or less", said(*grown))
        assert re.match("about .*, or less where calls are on record already", said("name=other", "reuse=['runs/s']"))
        resolved = load("s.toml", ["dataset.size=8"])
        done, mean = recorded(resolved)
        found = forecast(resolved, done, mean)
        assert f"low: every reply has {mean} tokens, the mean of those on record, and agents agree" in found.text
        low, high = found.tokens
        assert low < forecast(resolved, done).tokens[0], "a reply of this model is shorter than others'"
        paid = madplug.run(resolved, quiet=True).summary["paid"]["tokens"] - before
    assert low < paid < high < forecast(resolved).tokens[1]


def test_the_run_files_price_goes_before_the_built_in_one():
    known = {**RUN, "debate": CELLS[0]["debate"], "models": {"small": {**MODEL, "base_url": HELLO}}}
    assert load(known).plan.models["small"].price == price_of(HELLO, "gpt-4o-mini")
    known["models"]["small"]["price"] = {"prompt": 7.0, "completion": 8.0}
    assert load(known).plan.models["small"].price["prompt"] == 7.0


class Picky(DecisionProtocol):
    """Takes only what a model would say."""

    name = "picky"

    def at_end(self, debate):
        """Refuse the trial's words."""
        raise ValueError("a word too many")


def test_of_a_trial_that_fails_it_is_said_why_nothing_is_known():
    table = {**RUN, "models": {"small": MODEL}, "debate": {**CELLS[0]["debate"], "decision": "Picky"}}
    found = forecast(load(table, registry=Registry(classes=[Picky])))
    assert "not known beforehand: a trial without a model failed, as the run may: " in found.text
    assert "a word too many" in found.text


def test_a_trial_that_takes_too_long_says_so(monkeypatch):
    monkeypatch.setattr("madplug_prices.forecast.PATIENCE", 0.001)
    found = forecast(load({**RUN, "models": {"small": MODEL}, "cells": list(CELLS)}))
    assert found.text.endswith("a trial without a model took longer than 0.001 s")


def test_prices_are_shown_by_word_with_their_date():
    *rows, date = CliRunner().invoke(madplug.main, ["prices", "OPENAI.com", "4o-mini-2024"]).stdout.splitlines()
    assert "gpt-4o-mini-2024-07-18" in rows[-1]
    assert all("4o-mini-2024" in row for row in rows[1:])
    assert "litellm" in date
    missing = CliRunner().invoke(madplug.main, ["prices", "gpt-nope"])
    assert "no model has 'gpt-nope' in its name" in missing.stderr + str(missing.exception)
