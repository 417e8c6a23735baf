"""Where the order of MADC cannot change anything, the check says so."""

import pytest

from madplug_madc import Ordered
from madplug_testing import debate_from


@pytest.mark.parametrize(("rows", "options", "told"), [
    ("A B B", {}, True), ("A B B C", {}, False), ("A B B", {"strategy": "most_first"}, True),
    ("A B B", {"scope": "global"}, False), ("A B B", {"rotate": True}, False), ("A B B", {"strategy": "fixed"}, False)])
def test_of_three_agents_counting_changes_no_order_and_that_is_told(rows, options, told):
    ordered = Ordered(**options)
    assert any("never changes" in text for text in ordered.warn(debate_from(rows, visibility=ordered).cell)) is told
