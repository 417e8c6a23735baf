import pytest

from madplug import Visibility
from madplug.testing import play
from madplug_freemad import AntiConformity, Baseline1, Baseline2, C, N, Score
from madplug_som import Exchange

MARKED = {"first": "<q>", "exchange": "{answers}<c>", "block": "{content}", "verify": "<verify>", "critique": "<x>"}


class OnlyOwn(Visibility):
    """No agent sees another."""

    name = "only_own"

    def view(self, debate, turn):
        return debate.transcript.by(turn.agent)


def test_the_critique_follows_the_exchange():
    played = play(styles=[AntiConformity(**MARKED)], replies=list("abcdef"), rounds=2)
    assert [m["content"] for m in played.requests[3].messages] == ["<q>", "a", "b\n\nc<c>\n\n<x>"]


def test_earlier_exchanges_keep_their_critique():
    played = play(styles=[AntiConformity(**MARKED)], replies=list("abcdefghi"), rounds=3)
    assert sum(m["content"].endswith("<x>") for m in played.requests[6].messages) == 2


def test_first_answers_are_those_of_the_plain_exchange():
    free = play(styles=[AntiConformity()], replies=list("abc"))
    plain = play(styles=[Exchange()], replies=list("abc"))
    assert free.requests == plain.requests


def test_an_agent_that_sees_no_one_is_not_asked_to_examine_others():
    played = play(styles=[AntiConformity(**MARKED)], replies=list("abcdef"), rounds=2, visibility=OnlyOwn())
    assert played.requests[3].messages[-1]["content"] == "<verify>"


def test_nothing_is_said_of_scores_or_weights():
    text = AntiConformity().options.critique.lower()
    assert not any(word in text for word in ("score", "weight", "point"))
    assert text.endswith("{format}")


@pytest.mark.parametrize(("rounds", "calls"), [(2, 8), (3, 12)])
def test_calls_are_agents_times_rounds(rounds, calls):
    played = play(styles=[AntiConformity()], decision=Score(), replies=lambda r: "A", agents=4, rounds=rounds)
    assert played.result.calls == calls


def test_agreement_does_not_end_a_debate():
    played = play(styles=[AntiConformity()], decision=Score(), replies=lambda r: "A", rounds=4)
    assert played.result.rounds == 4


def test_the_decision_of_a_whole_debate_is_the_score():
    played = play(styles=[AntiConformity()], decision=Score(), replies=["A", "A", "A", "A", "B", "B"], rounds=2)
    assert played.decision.key == "A"
    assert played.decision.scores == {"A": 45.0, "B": 30.0}


def test_the_four_presets_are_two_styles_by_two_decisions():
    made = [(p.debate["styles"][0], p.debate["decision"]) for p in (N, C, Baseline1, Baseline2)]
    anti, plain = "freemad.anti_conformity", "som.exchange"
    plurality = {"use": "voting.plurality", "tie": "first"}
    assert made == [(anti, "freemad.score"), (plain, "freemad.score"), (anti, plurality), (plain, plurality)]
    assert {p.debate["rounds"] for p in (N, C, Baseline1, Baseline2)} == {2}
