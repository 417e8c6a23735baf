"""What the papers found, looked for among simulated debaters. Sizes are small; seeds are fixed."""

from collections import Counter
from functools import cache

import pytest

from madplug import DebateResult
from madplug_answers import Choice
from madplug_simulator import Debater, Questions
from madplug_testing import play

attack = pytest.importorskip("madplug_attack")
Score = pytest.importorskip("madplug_freemad").Score
Ordered = pytest.importorskip("madplug_madc").Ordered

SIZE = 150


@cache
def simulate(strategy="fixed", channel="", score=False, agents=6, rounds=3, **debater) -> dict[str, DebateResult]:
    """The debates of 150 questions, by sample; the same first answers for every call."""
    attacks = {"drop": [attack.Drop()], "alter": [attack.Alter()], "": []}
    played = play(
        styles=[Debater(**{"competence": 0.6, "conformity": 4.0, **debater})], visibility=Ordered(strategy=strategy),
        extensions=attacks[channel], decision=Score() if score else None, answers=Choice(), agents=agents,
        rounds=rounds, dataset=Questions(size=SIZE), models=(), oracle=True, seed=11)
    return {r.sample.id: r for r in played.store.results()}


def accuracy(results, among=None) -> float:
    chosen = [r for i, r in results.items() if among is None or i in among]
    return sum(r.decision.key == r.references[0] for r in chosen) / len(chosen)


def misled() -> set[str]:
    """The questions whose first plurality is wrong."""
    def plurality(result):
        return Counter(m.key for m in result.messages if m.round == 1).most_common(1)[0][0]

    return {i for i, r in simulate().items() if plurality(r) != r.references[0]}


def adopted(results) -> list[float]:
    """By place among the peers: how often the new answer is that peer's."""
    hits, turns = Counter(), 0
    for result in results.values():
        for m in result.messages:
            if m.round == 2:
                turns += 1
                peers = [result.messages[i] for i in m.seen if result.messages[i].agent != m.agent]
                hits.update(j for j, peer in enumerate(peers) if peer.key == m.key)
    return [hits[j] / turns for j in range(len(peers))]


GUESSING = {"competence": 0.25, "difficulty": 0.0, "stubbornness": 0.0, "agents": 10, "rounds": 2, "strategy": "random"}


def test_later_positions_weigh_more():
    places = adopted(simulate(**GUESSING))
    assert sum(places[-3:]) / 3 > sum(places[:3]) / 3 + 0.02


def test_without_recency_no_position_weighs_more():
    places = adopted(simulate(**GUESSING, recency=0.0))
    assert sum(places[-3:]) / 3 == pytest.approx(sum(places[:3]) / 3, abs=0.02)


def test_truth_last_beats_truth_first():
    assert accuracy(simulate("truth_last")) > accuracy(simulate("fixed")) > accuracy(simulate("truth_first"))


def test_without_recency_the_order_decides_nothing():
    assert accuracy(simulate("truth_last", recency=0.0)) == pytest.approx(
        accuracy(simulate("truth_first", recency=0.0)), abs=1 / SIZE)


def test_resisting_conformity_helps_when_the_majority_errs_and_costs_elsewhere():
    wrong = misled()
    right = set(simulate()) - wrong
    resisting = simulate(conformity=0.0)
    assert accuracy(resisting, wrong) > accuracy(simulate(), wrong)
    assert accuracy(resisting, right) < accuracy(simulate(), right)


def test_the_score_resists_a_quarter_of_the_agents_cut_off():
    assert accuracy(simulate(score=True, channel="drop")) >= accuracy(simulate(score=True)) - 0.02


def test_the_score_loses_no_more_than_the_plurality_where_messages_are_altered():
    lost_by_score = accuracy(simulate(score=True)) - accuracy(simulate(score=True, channel="alter"))
    lost_by_plurality = accuracy(simulate()) - accuracy(simulate(channel="alter"))
    assert lost_by_score <= lost_by_plurality
