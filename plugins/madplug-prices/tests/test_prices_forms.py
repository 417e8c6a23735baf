"""The trial of a forecast replies as an agreeing model does: in the form that was asked for."""

import json
import re

import pytest

from madplug.study import load
from madplug_prices.forecast import forecast
from madplug_prices.forms import reply_in


@pytest.mark.parametrize(("regex", "first"), [
    (r"\[(?:AGREE|DISAGREE)\] (?:[\s\S]*\n)?Final answer: \([A-D]\)", "[AGREE] some words\nFinal answer: (A)"),
    (r"[\s\S]{1,200}", "some words"), (r"[1-3](?: [1-3]){2}", "1 1 1"), (r"\d+\.?\s", "1 "), (r"[^\n]x*", "x")])
def test_a_reply_matches_a_regular_expression_and_has_its_prose(regex, first):
    assert reply_in({"regex": regex}, "some words", "", 7) == first
    assert re.fullmatch(regex, first)


def test_a_reply_fits_a_schema():
    schema = {"type": "object", "properties": {
        "agreement": {"enum": ["agree", "disagree"]}, "answer": {"type": "string"}, "confidence": {"type": "number"},
        "ranking": {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 2}, "sure": {"type": "boolean"}}}
    assert json.loads(reply_in({"json_schema": schema}, "words", "Final answer: (A)", 7)) == {
        "agreement": "agree", "answer": "words 7\nFinal answer: (A)", "confidence": 1, "ranking": [1, 2], "sure": True}
    assert reply_in(None, "words", "Final answer: (A)", 7) == "words\nFinal answer: (A)"


@pytest.mark.parametrize(("method", "calls"), [
    ({"paradigm": "mallm.memory"}, 3), ({"paradigm": "mallm.memory", "rounds": 3, "decision": "voting.simple"}, 12),
    ({"paradigm": "mallm.memory", "personas": ["personas.expert"]}, 6), ({"paradigm": "council.ranked"}, 6)])
def test_the_low_figure_is_that_of_agents_that_agree_and_ballots_that_are_read(method, calls):
    for plugin in ("council", "mallm", "openai", "personas", "puzzles", "voting"):
        pytest.importorskip(f"madplug_{plugin}")
    model = {"use": "openai.chat", "model": "m", "price": {"prompt": 0, "completion": 1e6}}
    data = {"use": "puzzles.ordering", "size": 2}
    found = forecast(load({"dataset": data, "models": {"m": model}, "debate": method}))
    assert found.usd[0] == 2 * calls * 100
