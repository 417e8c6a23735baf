"""All agents draft on their own before they see other messages."""

from tests_support import Openings

from madplug import Message, Reply, Style
from madplug_testing import play
from madplug_turns import InnerDebate as InnerTurns
from madplug_turns import RoundRobin
from madplug_visibility import BlindFirstRound, Everything, InnerDebate


class Agreeable(Style):
    """Agrees with whatever there is."""

    name = "agreeable"
    moves = frozenset({"draft", "improve"})
    gives = frozenset({"agreement"})

    def respond(self, debate, turn, view):
        agrees = True if turn.move == "improve" else None
        return Reply("x", agreement=agrees, data={"agreeable": {"kept": True}})


def run(blind=None, *, turns=None, visibility=None, rounds=2, extensions=()):
    played = play(styles=[Agreeable()], turns=turns or RoundRobin(), visibility=visibility or Everything(),
                  rounds=rounds, extensions=[blind or BlindFirstRound(), *extensions])
    return [m for m in played.messages if m.agent is not None and m.round > 0]


def test_nobody_sees_anything_or_can_agree_in_round_one_and_everything_is_there_from_round_two():
    assert [list(m.seen) for m in run()] == [[], [], [], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert [m.agreement for m in run()] == [False, False, False, True, True, True]


def test_a_refused_agreement_is_visible_in_the_record_and_keeps_what_the_style_noted():
    first, *_, last = run()
    assert first.data == {"agreeable": {"kept": True}, "visibility": {"agreement_refused": True}}
    assert last.data == {"agreeable": {"kept": True}}


def test_a_draft_takes_no_stance_and_is_left_alone():
    messages = run(turns=InnerTurns(inner=1), visibility=InnerDebate())
    assert messages[0].agreement is None
    assert messages[1].agreement is False


def test_more_rounds_can_be_blind():
    assert [len(m.seen) for m in run(BlindFirstRound(rounds=2), rounds=3)] == [0, 0, 0, 0, 0, 0, 6, 7, 8]


def test_every_turn_of_the_round_is_blind_unless_only_first_turns_are():
    setting = {"turns": InnerTurns(inner=2), "visibility": InnerDebate(), "rounds": 1}
    assert [list(m.seen) for m in run(**setting)] == [[], [], [], [], []]
    first = run(BlindFirstRound(turns="first"), **setting)
    assert [list(m.seen) for m in first] == [[], [], [], [0, 1, 2], [0, 1, 2, 3]]
    assert [m.agreement for m in first] == [None, False, False, True, True]


def test_openings_of_the_task_stay_visible_and_seeded_answers_do_not():
    assert [list(m.seen) for m in run(rounds=1, extensions=[Openings(
        Message(0, 0, 0, None, "say", "a rule"), Message(0, 0, 0, 0, "draft", "a seed", key="x"))])] == [[0], [0], [0]]
