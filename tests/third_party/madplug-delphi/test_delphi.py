"""Agents see the statistics and their own messages, and nothing else."""

from madplug_delphi import Statistics, StatisticsOnly
from madplug_testing import play
from madplug_testing.contracts import ExtensionContract, VisibilityContract


def test_agents_see_their_own_words_and_anonymous_statistics():
    played = play(replies=["A", " ", "A", "A", "A", "A"], agents=3, rounds=2, extensions=[Statistics(head="Answers:")],
                  visibility=StatisticsOnly())
    statistics = played.messages[3]
    assert (statistics.agent, statistics.content) == (None, "Answers:\nA: 2 of 3\nno answer: 1 of 3")
    assert [m.seen for m in played.transcript.of_round(2) if m.agent is not None] == [(0, 3), (1, 3), (2, 3)]


class TestStatistics(ExtensionContract):
    component = Statistics


class TestStatisticsOnly(VisibilityContract):
    component = StatisticsOnly
    around = {"extensions": [Statistics()]}
