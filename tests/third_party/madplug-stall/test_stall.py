"""A debate is stopped once the entropy has not decreased for two rounds."""

import pytest

from madplug_stall import Stalled, entropy
from madplug_testing import debate_from, play
from madplug_testing.contracts import ExtensionContract


@pytest.mark.parametrize(("rows", "stops"), [
    ("AA BB", False), ("AAA BBB", True),  # one round without a decrease, and two
    ("AAA BBA CCC", False), ("AAAA BBAA CCCC", False),  # it decreased, and increased again
    ("AABAA BBBBB CCCCC", True)])
def test_it_stops_after_two_rounds_without_a_decrease(rows, stops):
    assert Stalled().has_stalled(debate_from(rows)) == stops


def test_entropy_in_bits():
    assert [entropy(keys) for keys in ("AAAA", "AABB", "ABCD", [None, None])] == [0, 1, 2, 0]


def test_a_stopped_debate_is_decided_and_says_why():
    played = play(replies=lambda request: "AB"[request.agent], agents=2, rounds=9, extensions=[Stalled()])
    assert played.result.rounds == 3
    assert played.result.notes == {"stall": {"stopped_after": 3, "entropy": [1.0, 1.0, 1.0]}}
    assert played.decision.tie


class TestStalled(ExtensionContract):
    component = Stalled
    around = {"rounds": 4}
