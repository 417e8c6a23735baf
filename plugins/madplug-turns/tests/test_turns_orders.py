"""Who speaks when: the orders of the MALLM paradigms."""

import pytest
from tests_support import Cast

from madplug import Persona, TurnOrder
from madplug_testing import play
from madplug_turns import DrafterFirst, InnerDebate, RoundRobin, Simultaneous


def seats(roles: str) -> Cast:
    """One neutral agent where the text has an N, an observer where it has an O, else a participant."""
    names = {"N": "neutral", "O": "observer", "P": "participant"}
    return Cast(*(Persona(f"{role}{i}", role=names[role], votes=role == "P") for i, role in enumerate(roles)))


def spoken(order: TurnOrder, roles: str = "PPP", rounds: int = 1) -> list[str]:
    """`round.wave agent move stage` of every turn of a debate."""
    played = play(turns=order, personas=[seats(roles)], rounds=rounds, replies=lambda request: "x")
    return [f"{m.round}.{m.wave} {m.agent} {m.move} {m.stage}".strip() for m in played.messages]


@pytest.mark.parametrize(("order", "rounds", "expected"), [
    (RoundRobin(), 2, [f"{r}.{a} {a} improve" for r in (1, 2) for a in range(3)]),
    (Simultaneous(), 2, [f"{r}.0 {a} {'draft' if r == 1 else 'improve'}" for r in (1, 2) for a in range(3)]),
    (DrafterFirst(), 2, [f"{r}.{a} {a} {'improve' if a else 'draft'}" for r in (1, 2) for a in range(3)]),
    (InnerDebate(), 1, ["1.0 0 draft draft", "1.1 1 improve inner1", "1.2 2 improve inner1", "1.3 1 improve inner2",
                        "1.4 2 improve inner2"])])
def test_who_speaks_when(order, rounds, expected):
    assert spoken(order, rounds=rounds) == expected


@pytest.mark.parametrize(("order", "roles", "expected"), [
    (RoundRobin(), "PPN", ["1.0 2 draft", "1.1 0 improve", "1.2 1 improve"]),
    (Simultaneous(), "PPN", ["1.0 2 draft", "1.1 0 draft", "1.1 1 draft"]),
    (DrafterFirst(), "PPN", ["1.0 2 draft", "1.1 0 improve", "1.2 1 improve"]),
    (InnerDebate(inner=1), "PPN", ["1.0 2 draft draft", "1.1 0 improve inner1", "1.2 1 improve inner1"]),
    (InnerDebate(inner=1), "NPN", ["1.0 0 draft draft", "1.1 2 draft inner1", "1.2 1 improve inner1"]),
    (Simultaneous(first="improve"), "NNP", ["1.0 0 draft", "1.0 1 draft", "1.1 2 improve"]),
    (RoundRobin(), "PO", ["1.0 0 improve", "1.1 1 improve"])])  # an observer has no vote, and speaks like the others
def test_a_neutral_agent_drafts_before_the_others_wherever_it_stands(order, roles, expected):
    assert spoken(order, roles) == expected


def test_moves_are_named_by_options_and_declared():
    order = RoundRobin(first="open", move="reply")
    assert order.moves == {"open", "reply"}
    assert spoken(order, rounds=2, roles="P") == ["1.0 0 open", "2.0 0 reply"]
    assert DrafterFirst(draft="write", move="feedback").moves == {"write", "feedback"}
    assert RoundRobin().moves == {"improve"}
    assert InnerDebate().moves == {"draft", "improve"}


def test_a_neutral_agent_without_a_style_that_drafts_is_a_problem():
    class Improver:
        moves = frozenset({"improve"})

    class Cell:
        personas = [type("Neutral", (Cast,), {"name": "neutral"})()]
        styles = [type("Bound", (), {"style": Improver()})()]

    assert list(RoundRobin().check(Cell())) == [
        "a neutral agent is asked for the move 'draft', which no style of this cell writes"]
    Improver.moves = frozenset({"improve", "draft"})
    assert list(RoundRobin().check(Cell())) == []
