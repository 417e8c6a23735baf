"""Only other answers are shown."""

import pytest

from madplug import Turn
from madplug_dissent import Others
from madplug_testing import debate_from
from madplug_testing.contracts import VisibilityContract


@pytest.mark.parametrize(("rows", "agent", "own", "shown"), [
    ("A A B", 0, False, [2]), ("A A B", 2, False, [0, 1]), ("A A B", 0, True, [0, 2]),
    # the latest answer of both counts; message ids go by round: 0 and 1 are round 1, 2 and 3 round 2
    ("AB BB", 0, False, []), ("AB BA", 0, False, [3]), ("- A B", 0, False, [1, 2])])
def test_agents_see_answers_that_differ_from_their_own(rows, agent, own, shown):
    debate = debate_from(rows)
    assert [m.id for m in Others(own=own).view(debate, Turn(debate.agents[agent]))] == shown


class TestOthers(VisibilityContract):
    component = Others
