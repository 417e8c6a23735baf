"""Agents see the statistics and their own messages, and nothing else."""

from madplug_delphi import Statistics, StatisticsOnly
from madplug_testing import play
from madplug_testing.contracts import ExtensionContract, VisibilityContract


def test_agents_see_their_own_words_and_anonymous_statistics():
    played = play(replies=["A", "B", "A", "A", "A", "A"], agents=3, rounds=2, extensions=[Statistics()],
                  visibility=StatisticsOnly())
    statistics = played.messages[3]
    assert statistics.agent is None
    assert statistics.content == "Anonymous answers of the last round:\nA: 2 of 3\nB: 1 of 3"
    assert [m.seen for m in played.transcript.of_round(2) if m.agent is not None] == [(0, 3), (1, 3), (2, 3)]


def test_answers_that_could_not_be_read_are_counted_as_such():
    played = play(replies=["A", " "], agents=2, rounds=1, extensions=[Statistics(head="Answers:")])
    assert played.messages[-1].content == "Answers:\nA: 1 of 2\nno answer: 1 of 2"


class TestStatistics(ExtensionContract):
    component = Statistics


class TestStatisticsOnly(VisibilityContract):
    component = StatisticsOnly
    around = {"extensions": [Statistics()]}
