"""What each agent is shown, message by message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import Cast, Openings, Reviews

from madplug import Message, Persona, Reply, Review, Style
from madplug_testing import debate_from, play
from madplug_turns import DrafterFirst, RoundRobin, Simultaneous
from madplug_turns import InnerDebate as InnerTurns
from madplug_visibility import BlindFirstRound, Everything, InnerDebate, Own, PreviousRound, Relay, Report

NOTES = Reviews(lambda debate: Review(say="a note"))


def seen(visibility, turns, *, agents=3, rounds=1, extensions=(), personas=()):
    """The ids that each agent was shown, message by message."""
    played = play(turns=turns, visibility=visibility, agents=None if personas else agents, rounds=rounds,
                  extensions=extensions, personas=personas, replies=lambda request: "x")
    return [list(m.seen) for m in played.messages if m.agent is not None and m.round > 0]


@pytest.mark.parametrize(("visibility", "turns", "agents", "rounds", "shown"), [
    # the tables of the paradigms: what the first turns are shown
    (Everything(), RoundRobin(), 3, 1, [[], [0], [0, 1]]),
    (Relay(), RoundRobin(), 3, 2, [[], [0], [1], [0, 2]]),
    (Report(), DrafterFirst(), 3, 2, [[], [0], [0], [0, 1, 2], [0, 1, 3]]),
    # inner debate passes on in a ring and closes with the drafter; agent 1 of four reads agent 3, before it in the ring
    (InnerDebate(), InnerTurns(inner=2), 3, 2, [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 3, 4]]),
    (InnerDebate(), InnerTurns(inner=1), 4, 2, [[], [0], [0, 1], [0, 2], [0, 1, 2, 3], [0, 1, 3, 4]]),
    # one's own comes first
    (PreviousRound(), Simultaneous(), 3, 3, [[], [], [], [0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 4, 5], [4, 3, 5],
                                             [5, 3, 4]]),
    (Own(), RoundRobin(), 3, 2, [[], [], [], [0], [1], [2]]),
    # few agents
    (Relay(), RoundRobin(), 1, 2, [[], [0]]), (Report(), DrafterFirst(), 1, 2, [[], [0]]),
    (InnerDebate(), InnerTurns(inner=1), 2, 2, [[], [0], [0, 1], [0, 1, 2]])])
def test_who_is_shown_what(visibility, turns, agents, rounds, shown):
    assert seen(visibility, turns, agents=agents, rounds=rounds)[:len(shown)] == shown


@pytest.mark.parametrize(("visibility", "turns", "agents", "message", "shown"), [
    # windows count rounds back and show the current one
    (Everything(window=0), RoundRobin(), 2, 7, [6]), (Everything(window=1), RoundRobin(), 2, 7, [4, 5, 6]),
    (Everything(window=2), RoundRobin(), 2, 7, [2, 3, 4, 5, 6]),
    (Everything(window=None), RoundRobin(), 2, 7, [0, 1, 2, 3, 4, 5, 6]),
    (Own(window=1), RoundRobin(), 3, 6, [3]), (Relay(window=1, history="all"), RoundRobin(), 3, 6, [3, 5]),
    (Report(window=1), DrafterFirst(), 3, 7, [3, 4, 6]), (InnerDebate(window=1), InnerTurns(inner=1), 3, 6, [3, 4, 5]),
    # a relay with all its history piles up
    (Relay(history="all"), RoundRobin(), 3, 7, [0, 1, 3, 4, 6]), (Relay(history="last"), RoundRobin(), 3, 7, [1, 4, 6]),
    # the round before is all that is shown of others
    (PreviousRound(window=2), Simultaneous(), 3, 6, [3, 4, 5]),
    (PreviousRound(own="all"), Simultaneous(), 3, 6, [0, 3, 4, 5]),
    (PreviousRound(own="all", window=1), Simultaneous(), 3, 6, [3, 4, 5])])
def test_what_a_later_message_is_shown(visibility, turns, agents, message, shown):
    assert seen(visibility, turns, agents=agents, rounds=4)[message] == shown


EVERY = [Everything(), Own(), PreviousRound(), Relay(), Report(), InnerDebate()]
RULE = Message(0, 0, 0, None, "say", "a rule of the game")
SEEDS = [Message(0, 0, 0, i, "draft", f"seed {i}", key="x") for i in range(3)]
PEOPLE = Cast(Persona("a"), Persona("b"), Persona("n", role="neutral", votes=False))


@pytest.mark.parametrize(("visibility", "turns", "more", "shown"), [
    *((visibility, RoundRobin(), {"agents": 2, "rounds": 2, "extensions": [NOTES]}, None) for visibility in EVERY),
    # notes age, and openings of the task do not
    (Everything(window=1), RoundRobin(), {"agents": 1, "rounds": 3, "extensions": [NOTES, Openings(RULE)]},
     [[0], [0, 1, 2], [0, 3, 4]]),
    (PreviousRound(window=1), RoundRobin(), {"agents": 1, "rounds": 3, "extensions": [NOTES, Openings(RULE)]},
     [[0], [0, 1, 2], [0, 3, 4]]),
    # seeded answers are treated like a round before the first
    (PreviousRound(), Simultaneous(), {"extensions": [Openings(*SEEDS)]}, [[0, 1, 2], [1, 0, 2], [2, 0, 1]]),
    (Relay(), RoundRobin(), {"extensions": [Openings(*SEEDS)]}, [[0, 2], [1, 3], [2, 4]]),
    (Everything(window=1), RoundRobin(), {"extensions": [Openings(*SEEDS)]}, [[0, 1, 2], [0, 1, 2, 3]]),
    # a neutral agent is the centre
    (Report(), DrafterFirst(), {"personas": [PEOPLE], "rounds": 2}, [[], [0], [0], [0, 1, 2]])])
def test_what_is_shown_of_notes_openings_and_neutral_agents(visibility, turns, more, shown):
    found = seen(visibility, turns, **more)
    assert found[:len(shown)] == shown if shown else all(2 in ids for ids in found[2:])


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


@settings(max_examples=30, deadline=None)
@given(agents=st.integers(2, 5), rounds=st.integers(1, 3), which=st.sampled_from(
    [*EVERY, Everything(window=1), Relay(history="all", window=2), PreviousRound(own="all")]))
def test_who_is_seen_is_a_neighbour(agents, rounds, which):
    played = play(turns=RoundRobin(), visibility=which, agents=agents, rounds=rounds, replies=lambda r: "x")
    for m in played.messages:
        near = {m.agent, *which.neighbours(played.debate, played.debate.agents[m.agent], m.round)}
        assert {played.messages[i].agent for i in m.seen} <= near


# Blind rounds

class Agreeable(Style):
    """Agrees with whatever there is."""

    name = "agreeable"
    moves = frozenset({"draft", "improve"})
    gives = frozenset({"agreement"})

    def respond(self, debate, turn, view):
        agrees = True if turn.move == "improve" else None
        return Reply("x", agreement=agrees, data={"agreeable": {"kept": True}})


def blindly(blind=None, *, turns=None, visibility=None, rounds=2, extensions=()):
    played = play(styles=[Agreeable()], turns=turns or RoundRobin(), visibility=visibility or Everything(),
                  rounds=rounds, extensions=[blind or BlindFirstRound(), *extensions])
    return [m for m in played.messages if m.agent is not None and m.round > 0]


def test_nobody_sees_anything_or_can_agree_in_round_one_and_everything_is_there_from_round_two():
    assert [list(m.seen) for m in blindly()] == [[], [], [], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert [m.agreement for m in blindly()] == [False, False, False, True, True, True]
    first, *_, last = blindly()  # what the style noted stays, and that an agreement was refused is noted
    assert first.data == {"agreeable": {"kept": True}, "visibility": {"agreement_refused": True}}
    assert last.data == {"agreeable": {"kept": True}}


def test_more_rounds_can_be_blind():
    assert [len(m.seen) for m in blindly(BlindFirstRound(rounds=2), rounds=3)] == [0, 0, 0, 0, 0, 0, 6, 7, 8]


def test_every_turn_of_the_round_is_blind_unless_only_first_turns_are():
    setting = {"turns": InnerTurns(inner=2), "visibility": InnerDebate(), "rounds": 1}
    assert [list(m.seen) for m in blindly(**setting)] == [[], [], [], [], []]
    assert [m.agreement for m in blindly(**setting)] == [None, False, False, False, False]  # a draft takes no stance
    first = blindly(BlindFirstRound(turns="first"), **setting)
    assert [list(m.seen) for m in first] == [[], [], [], [0, 1, 2], [0, 1, 2, 3]]
    assert [m.agreement for m in first] == [None, False, False, True, True]


def test_openings_of_the_task_stay_visible_and_seeded_answers_do_not():
    assert [list(m.seen) for m in blindly(rounds=1, extensions=[Openings(
        Message(0, 0, 0, None, "say", "a rule"), Message(0, 0, 0, 0, "draft", "a seed", key="x"))])] == [[0], [0], [0]]
