"""Where the order of MADC cannot change anything, the check says so."""

import pytest

from madplug_madc import Ordered
from madplug_testing import debate_from


@pytest.mark.parametrize(("rows", "options", "told"), [
    ("AA BB", {}, True), ("AA BB", {"rotate": True, "scope": "global"}, True), ("AA BB", {"strategy": "fixed"}, False),
    ("A B", {}, False)])
def test_of_two_agents_there_is_nothing_to_order_and_that_is_told(rows, options, told):
    ordered = Ordered(**options)
    assert any("has no order" in text for text in ordered.warn(debate_from(rows, visibility=ordered).cell)) is told


@pytest.mark.parametrize(("rows", "options", "told"), [
    ("AA BB BB", {}, True), ("AA BB BB CC", {}, False), ("A B B", {}, False),
    ("AA BB BB", {"strategy": "most_first"}, True), ("AA BB BB", {"scope": "global"}, False),
    ("AA BB BB", {"rotate": True}, False), ("AA BB BB", {"strategy": "fixed"}, False)])
def test_of_three_agents_counting_changes_no_order_and_that_is_told(rows, options, told):
    ordered = Ordered(**options)
    assert any("never changes" in text for text in ordered.warn(debate_from(rows, visibility=ordered).cell)) is told
