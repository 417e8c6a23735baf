import pytest
from tests_support import Openings

from madplug import Message, Sample
from madplug_attack import Drop, attacked
from madplug_testing import play

Exchange = pytest.importorskip("madplug_som").Exchange
MARKED = {"first": "<q>", "exchange": "{answers}<c>", "block": "{content}", "verify": "<verify>"}


def said(request) -> str:
    return f"{request.agent},{1 + sum(m['role'] == 'assistant' for m in request.messages)}"


def run(*extensions, rounds=3, agents=4, styles=None, **settings):
    return play(styles=styles or [Exchange(**MARKED)], extensions=extensions, agents=agents, rounds=rounds,
                **{"replies": said, **settings})


def seen_by_agent(played, round=2) -> list[set[int]]:
    """By agent: whose messages it saw in a round, without its own."""
    authors = {m.id: m.agent for m in played.messages}
    return [{authors[i] for i in m.seen} - {m.agent} for m in played.transcript.of_round(round)]


def test_an_agent_that_is_cut_off_sees_no_one_and_is_seen_by_all():
    played = run(Drop(agents=(1,)))
    for round in (2, 3):
        assert seen_by_agent(played, round) == [{1, 2, 3}, set(), {0, 1, 3}, {0, 1, 2}]


def test_it_is_asked_to_verify_its_own_answer():
    played = run(Drop(agents=(1,)))
    last = [r for r in played.requests if r.agent == 1][-1]
    assert [m["content"] for m in last.messages] == ["<q>", "1,1", "<verify>", "1,2", "<verify>"]


@pytest.mark.parametrize(("share", "agents", "expected"), [
    (0, 4, 0), (0.25, 4, 1), (0.25, 10, 3), (0.01, 4, 1), (0.5, 3, 2), (0.25, 2, 1), (1, 3, 3), (0.1, 15, 2),
    (0.15, 10, 2)])
def test_halves_are_rounded_up_and_a_share_is_at_least_one(share, agents, expected):
    assert attacked(share, agents) == expected


def test_the_agents_are_drawn_by_sample_and_stay():
    samples = [Sample(f"q{i}", "?") for i in range(12)]
    played = run(Drop(), sample=samples)
    drawn = [r.notes["attack.drop"]["agents"] for r in played.store.results()]
    assert len({tuple(d) for d in drawn}) > 1
    for result, (agent,) in zip(played.store.results(), drawn, strict=True):
        cut = [m for m in result.messages if "attack" in m.data]
        assert {m.agent for m in cut} == {agent}
        assert len(cut) == 3


def test_what_was_dropped_is_on_record_with_its_recipient_alone():
    played = run(Drop(agents=(1,)))
    assert [m.data["attack"]["dropped"] for m in played.transcript.by(1)] == [[], [0, 2, 3], [0, 2, 3, 4, 6, 7]]
    assert not any(m.data for m in played.messages if m.agent != 1)


def test_a_frozen_agent_is_asked_once():
    played = run(Drop(agents=(1,), cut_off="frozen"))
    assert played.result.calls == 4 + 3 * 2
    assert [m.content for m in played.transcript.by(1)] == ["1,1"] * 3
    assert [m.key for m in played.transcript.by(1)] == ["1,1"] * 3
    assert played.transcript.by(1)[2].data["attack"] == {"frozen": True, "dropped": [0, 2, 3, 4, 6, 7]}


def test_a_cut_off_agent_that_keeps_its_answer_scores_36_and_two_thirds():
    Score = pytest.importorskip("madplug_freemad").Score
    replies = {0: "abc", 1: "xxx", 2: "def", 3: "ghi"}
    played = run(Drop(agents=(1,)), replies=replies, decision=Score())
    assert played.decision.scores["x"] == pytest.approx(36.667, abs=1e-3)
    assert played.decision.key == "x"


def test_openings_without_an_author_reach_every_agent():
    played = run(Openings(Message(0, 0, 0, None, "note", "read this")), Drop(agents=(1,)), rounds=1)
    assert all(m.seen == (0,) for m in played.messages[1:])


def test_agents_that_are_not_there_are_a_problem():
    class Cell:
        wanted = 3

    assert list(Drop(agents=(1, 3)).check(Cell())) == ["'agents' names agent 3; there are 3, counted from 0"]


SWEEP = """
debate = {paradigm = "freemad.n", agents = 4}
[sweep]
extensions = [[{use = "attack.drop"}], [{use = "attack.alter"}], [{use = "attack.inject"}],
              [{use = "attack.drop", share = 0.5}]]
"""


def test_every_kind_of_attack_strikes_the_same_agents_of_a_sample(run_on_endpoint):
    pytest.importorskip("madplug_freemad")
    rows = [{"id": f"q{i}", "question": f"Question {i}?", "choices": ["1", "2", "3"], "reference": "B"}
            for i in range(12)]
    results, _ = run_on_endpoint(SWEEP, rows, lambda body: "Final answer: B")
    struck = {kind: [r.notes[f"attack.{kind}"]["agents"] for r in results
                     if f"attack.{kind}" in r.notes and len(r.notes[f"attack.{kind}"]["agents"]) == 1]
              for kind in ("drop", "alter", "inject")}
    assert struck["drop"] == struck["alter"] == struck["inject"]
    assert len({agent for (agent,) in struck["drop"]}) > 1
    half = [r.notes["attack.drop"]["agents"] for r in results if len(r.notes.get("attack.drop", {}).get(
        "agents", ())) == 2]
    assert all(agent in two for (agent,), two in zip(struck["drop"], half, strict=True))


def test_altered_and_injected_messages_promote_the_same_answer():
    from madplug_attack import Alter, Inject

    choices = Sample("q1", "?", ("one", "two", "three", "four"))
    for seed in range(6):
        told = [run(kind(agents=(1,), text="[{answer}]"), sample=choices, rounds=2, seed=seed).requests[4]
                .messages[-1]["content"].rpartition("[")[2] for kind in (Alter, Inject)]
        assert told[0][0] == told[1][0]
