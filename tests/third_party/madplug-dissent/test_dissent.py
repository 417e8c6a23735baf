"""Only other answers are shown."""

from madplug import Turn
from madplug_dissent import Others
from madplug_testing import debate_from
from madplug_testing.contracts import VisibilityContract


def shown(rows, agent, **options):
    debate = debate_from(rows)
    return [m.id for m in Others(**options).view(debate, Turn(debate.agents[agent]))]


def test_agents_see_answers_that_differ_from_their_own():
    assert shown("A A B", 0, own=False) == [2]
    assert shown("A A B", 2, own=False) == [0, 1]


def test_own_messages_are_shown_unless_the_option_says_no():
    assert shown("A A B", 0) == [0, 2]


def test_the_latest_answer_of_both_counts():
    """Message ids go by round: 0 and 1 are round 1, 2 and 3 round 2."""
    assert shown("AB BB", 0, own=False) == []
    assert shown("AB BA", 0, own=False) == [3]


def test_an_agent_without_an_answer_sees_all_answers():
    assert shown("- A B", 0, own=False) == [1, 2]


class TestOthers(VisibilityContract):
    component = Others
