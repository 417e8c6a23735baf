from collections import Counter

import pytest
from tests_support import made

from madplug import Decision, DecisionProtocol, Reply, Sample, Style
from madplug_casting import Central, PerCall, Random
from madplug_testing import play

MODELS = ("strong", "middle", "weak")


def cast(casting, agents=6, models=MODELS, **settings):
    """The models of the agents, by sample."""
    samples = [Sample(f"q{i}", "?") for i in range(4)]
    played = play(casting=casting, agents=agents, models=models, replies=lambda request: "A", sample=samples,
                  **settings)
    return [tuple(a.model for a in result.agents) for result in played.store.results()]


def test_a_deal_keeps_every_models_share_and_independent_draws_may_repeat_a_model():
    assert {tuple(sorted(Counter(c).items())) for c in cast(Random(per="sample"))} == {
        (("middle", 2), ("strong", 2), ("weak", 2))}
    casts = [c for s in range(5) for c in cast(Random(per="sample", draw="independent"), seed=s, agents=3)]
    assert any(len(set(c)) < 3 for c in casts)


def test_a_cast_stays_together_for_the_study_unless_every_sample_or_repeat_has_its_own():
    assert len(set(cast(Random(), repeats=3))) == 1
    assert len({cast(Random(), seed=s)[0] for s in range(5)}) > 1
    assert len(set(cast(Random(per="sample")))) > 1
    assert cast(Random(per="sample"), seed=3) == cast(Random(per="sample"), seed=3)
    played = play(replies=lambda r: "A", casting=Random(per="repeat", draw="independent"), models=MODELS, repeats=6,
                  sample=[Sample(f"q{i}", "?") for i in range(3)])
    casts = {(result.repeat, tuple(agent.model for agent in result.agents)) for result in played.store.results()}
    assert len(casts) == 6  # one for all samples of a repeat
    assert len({cast for _, cast in casts}) > 2


@pytest.mark.parametrize(("options", "graph", "models"), [
    ({}, {"topology": "star", "hub": 2}, ("middle", "weak", "strong")),
    ({"order": ("weak",)}, {"topology": "star", "hub": 2}, ("strong", "middle", "weak")),
    ({}, {"topology": "edges", "edges": ((0, 2), (1, 2)), "directed": True}, ("middle", "weak", "strong")),  # is heard
    ({}, {"topology": "full"}, MODELS)])  # where all seats are equal, the strongest comes first
def test_the_strongest_sits_where_most_connections_meet(options, graph, models):
    sparse = pytest.importorskip("madplug_sparse")
    assert cast(Central(**options), agents=3, visibility=sparse.SparseGraph(**graph))[0] == models
    cell = type("Cell", (), {"models": MODELS})
    assert list(Central(order=("big",)).check(cell)) == [
        "'order' names 'big', which no agent uses; debate.models has strong, middle, weak"]


@pytest.mark.parametrize("casting", [Random(), Random(draw="independent"), Central()])
def test_a_debate_without_models_is_cast_without_models(casting):
    silent = made(Style, moves=frozenset({"improve"}), respond=lambda self, debate, turn, view: Reply("A"))
    assert cast(casting, agents=2, models=(), styles=[silent])[0] == (None, None)


def per_call(seed=0, **more):
    return play(casting=PerCall(), agents=3, rounds=20, models=MODELS, replies=lambda request: "A", seed=seed, **more)


def test_every_call_is_answered_by_a_model_drawn_for_it_and_on_record_with_the_message():
    played = per_call()
    assert [m.model for m in played.messages] == [r.model for r in played.requests]
    counts = Counter(m.model for m in played.messages)
    assert all(10 <= counts[model] <= 30 for model in MODELS)
    assert len({tuple(m.model for m in played.transcript.by(agent)) for agent in (0, 1, 2)}) == 3
    again, other_seed, other_question = (str([m.model for m in per_call(**given).messages]) for given in (
        {}, {"seed": 1}, {"sample": Sample("q2", "?")}))
    assert again == str([m.model for m in played.messages])
    assert len({again, other_seed, other_question}) == 3


def test_a_call_that_names_a_model_keeps_it():
    class Asks(DecisionProtocol):
        name = "asks"

        async def at_end(self, debate):
            for _ in range(10):
                await debate.ask("?", purpose="judge", model="weak")
            return Decision("A")

    played = per_call(decision=Asks())
    assert {r.model for r in played.requests if r.purpose == "judge"} == {"weak"}
