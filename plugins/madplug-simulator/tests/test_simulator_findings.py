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


def test_truth_last_beats_truth_first_unless_nothing_is_recent():
    first, fixed, last = (accuracy(simulate(strategy)) for strategy in ("truth_first", "fixed", "truth_last"))
    assert last > fixed > first
    assert accuracy(simulate("truth_last", recency=0.0)) == pytest.approx(
        accuracy(simulate("truth_first", recency=0.0)), abs=1 / SIZE)


def test_resisting_conformity_helps_when_the_majority_errs_and_costs_elsewhere():
    wrong = misled()
    right = set(simulate()) - wrong
    resisting = simulate(conformity=0.0)
    assert accuracy(resisting, wrong) > accuracy(simulate(), wrong)
    assert accuracy(resisting, right) < accuracy(simulate(), right)


def test_the_score_resists_agents_cut_off_and_loses_no_more_than_the_plurality_where_messages_are_altered():
    score, plurality = accuracy(simulate(score=True)), accuracy(simulate())
    assert accuracy(simulate(score=True, channel="drop")) >= score - 0.02
    assert score - accuracy(simulate(score=True, channel="alter")) <= plurality - accuracy(simulate(channel="alter"))
