"""What each agent is shown, message by message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import Cast, Openings, Reviews

from madplug import Message, Persona, Review, Transcript, Turn
from madplug_testing import debate_from, play, transcript_from
from madplug_turns import DrafterFirst, RoundRobin, Simultaneous
from madplug_turns import InnerDebate as InnerTurns
from madplug_visibility import Everything, InnerDebate, Own, PreviousRound, Relay, Report

NOTES = Reviews(lambda debate: Review(say="a note"))


def seen(visibility, turns, *, agents=3, rounds=1, extensions=(), personas=()):
    """The ids that each agent was shown, message by message."""
    played = play(turns=turns, visibility=visibility, agents=None if personas else agents, rounds=rounds,
                  extensions=extensions, personas=personas, replies=lambda request: "x")
    return [list(m.seen) for m in played.messages if m.agent is not None and m.round > 0]


# The tables of the paradigms: three agents, message ids in the order of speech

@pytest.mark.parametrize(("visibility", "turns", "agents", "rounds", "shown"), [
    (Everything(), RoundRobin(), 3, 1, [[], [0], [0, 1]]),
    (Relay(), RoundRobin(), 3, 2, [[], [0], [1], [0, 2]]),
    (Report(), DrafterFirst(), 3, 2, [[], [0], [0], [0, 1, 2], [0, 1, 3]]),
    # inner debate passes on in a ring and closes with the drafter; agent 1 of four reads agent 3, before it in the ring
    (InnerDebate(), InnerTurns(inner=2), 3, 2, [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 3, 4]]),
    (InnerDebate(), InnerTurns(inner=1), 4, 2, [[], [0], [0, 1], [0, 2], [0, 1, 2, 3], [0, 1, 3, 4]]),
    # one's own comes first
    (PreviousRound(), Simultaneous(), 3, 3, [[], [], [], [0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 4, 5], [4, 3, 5],
                                             [5, 3, 4]]),
    (Own(), RoundRobin(), 3, 2, [[], [], [], [0], [1], [2]])])
def test_who_is_shown_what(visibility, turns, agents, rounds, shown):
    assert seen(visibility, turns, agents=agents, rounds=rounds)[:len(shown)] == shown


def test_relay_with_all_history_piles_up():
    assert seen(Relay(history="all"), RoundRobin(), rounds=3)[7] == [0, 1, 3, 4, 6]
    assert seen(Relay(history="last"), RoundRobin(), rounds=3)[7] == [1, 4, 6]


def test_two_agents_and_one_agent_have_nobody_to_relay_to():
    assert seen(Relay(), RoundRobin(), agents=1, rounds=2) == [[], [0]]
    assert seen(InnerDebate(), InnerTurns(inner=1), agents=2, rounds=2) == [[], [0], [0, 1], [0, 1, 2]]
    assert seen(Report(), DrafterFirst(), agents=1, rounds=2) == [[], [0]]


# The window

@pytest.mark.parametrize(("window", "expected"), [
    (0, [6]), (1, [4, 5, 6]), (2, [2, 3, 4, 5, 6]), (None, [0, 1, 2, 3, 4, 5, 6])])
def test_windows_count_rounds_back_and_show_the_current_one(window, expected):
    assert seen(Everything(window=window), RoundRobin(), agents=2, rounds=4)[7] == expected


def test_every_visibility_keeps_to_its_window():
    assert seen(Own(window=1), RoundRobin(), rounds=3)[6] == [3]
    assert seen(Relay(window=1, history="all"), RoundRobin(), rounds=3)[6] == [3, 5]
    assert seen(Report(window=1), DrafterFirst(), rounds=3)[7] == [3, 4, 6]
    assert seen(InnerDebate(window=1), InnerTurns(inner=1), rounds=3)[6] == [3, 4, 5]


def test_the_round_before_is_all_that_previous_round_shows_of_others():
    assert seen(PreviousRound(window=2), Simultaneous(), rounds=3)[6] == [3, 4, 5]
    assert seen(PreviousRound(own="all"), Simultaneous(), rounds=3)[6] == [0, 3, 4, 5]
    assert seen(PreviousRound(own="all", window=1), Simultaneous(), rounds=3)[6] == [3, 4, 5]


# Messages without an author

EVERY = [Everything(), Own(), PreviousRound(), Relay(), Report(), InnerDebate()]


@pytest.mark.parametrize("visibility", EVERY)
def test_notes_are_shown_to_everybody(visibility):
    shown = seen(visibility, RoundRobin(), agents=2, rounds=2, extensions=[NOTES])
    assert all(2 in ids for ids in shown[2:])


def test_notes_age_and_openings_of_the_task_do_not():
    opening = Message(0, 0, 0, None, "say", "a rule of the game")
    extensions = [NOTES, Openings(opening)]
    shown = seen(Everything(window=1), RoundRobin(), agents=1, rounds=3, extensions=extensions)
    assert shown == [[0], [0, 1, 2], [0, 3, 4]]
    shown = seen(PreviousRound(window=1), RoundRobin(), agents=1, rounds=3, extensions=extensions)
    assert shown[2] == [0, 3, 4]


def test_seeded_answers_are_treated_like_a_round_before_the_first():
    seeds = [Message(0, 0, 0, i, "draft", f"seed {i}", key="x") for i in range(3)]
    given = [Openings(*seeds)]
    assert seen(PreviousRound(), Simultaneous(), extensions=given) == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    assert seen(Relay(), RoundRobin(), extensions=given)[0] == [0, 2]
    assert seen(Everything(window=1), RoundRobin(), rounds=2, extensions=given)[3] == [3, 4, 5]


# Neutral agents

def test_the_neutral_agent_is_the_centre():
    people = Cast(Persona("a"), Persona("b"), Persona("n", role="neutral", votes=False))
    shown = seen(Report(), DrafterFirst(), personas=[people], rounds=2)
    assert shown[:4] == [[], [0], [0], [0, 1, 2]]


# Neighbours

def test_neighbours_are_those_whose_messages_may_be_seen():
    debate = debate_from("A A A A")
    agents = debate.agents

    def near(visibility):
        return [list(visibility.neighbours(debate, a, 1)) for a in agents]

    assert near(Everything()) == near(PreviousRound()) == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    assert near(Own()) == [[], [], [], []]
    assert near(Relay()) == [[3], [0], [1], [2]]
    assert near(Report()) == [[1, 2, 3], [0], [0], [0]]
    assert near(InnerDebate()) == [[1, 2, 3], [0, 3], [0, 1], [0, 2]]


# Properties

VISIBILITIES = [*EVERY, Everything(window=1), Relay(history="all", window=2), PreviousRound(own="all")]


def run(which, agents, rounds):
    return play(turns=RoundRobin(), visibility=which, agents=agents, rounds=rounds, replies=lambda r: "x")


@settings(max_examples=30, deadline=None)
@given(agents=st.integers(2, 5), rounds=st.integers(1, 3), which=st.sampled_from(VISIBILITIES))
def test_who_is_seen_is_a_neighbour(agents, rounds, which):
    played = run(which, agents, rounds)
    for m in played.messages:
        near = {m.agent, *which.neighbours(played.debate, played.debate.agents[m.agent], m.round)}
        assert {played.messages[i].agent for i in m.seen} <= near


@settings(max_examples=30, deadline=None)
@given(order=st.permutations(range(4)), rounds=st.integers(1, 3), which=st.sampled_from(
    [Everything(), Own(), PreviousRound(), PreviousRound(own="all"), Everything(window=1)]))
def test_relabelling_the_agents_relabels_the_view(order, rounds, which):
    """Where no agent has a special place, numbers decide at most the order in which peers are shown."""
    def shown(names):
        transcript = Transcript()
        for m in transcript_from(["x" * rounds] * 4).record:
            transcript.append(Message(0, m.round, 0, names[m.agent], "improve", "x"))
        debate = debate_from(["x" * rounds] * 4, visibility=which, transcript=transcript, round=rounds + 1)
        return {a.id: {(m.agent, m.round) for m in which.view(debate, Turn(a))} for a in debate.agents}

    plain, renamed = shown(range(4)), shown(order)
    assert renamed == {order[a]: {(order[b], r) for b, r in view} for a, view in plain.items()}
