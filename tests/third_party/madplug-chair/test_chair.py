"""The chair picks who speaks next from what was said."""

from madplug import Persona, PersonaGenerator
from madplug_chair import Called, Calling, Chair
from madplug_testing import PlainStyle, play
from madplug_testing.contracts import PersonaContract, StyleContract, TurnOrderContract


class Debater(PersonaGenerator):
    """Every agent except the chair."""

    name = "debater"

    def generate(self, debate, roster):
        return Persona(f"Agent {len(roster) + 1}")


AROUND = {"personas": [Chair(), Debater()], "agents": 3, "styles": [Calling(), PlainStyle()], "turns": Called(calls=2)}


def test_whom_the_chair_names_speaks_next():
    played = play(replies={0: ["Agent 3 should", "now agent 2"], 1: ["B"], 2: ["A"]}, **AROUND)
    assert [(m.agent, m.content) for m in played.messages] == [
        (0, "Agent 3, please."), (2, "A"), (0, "Agent 2, please."), (1, "B")]
    assert [m.key for m in played.messages] == [None, "A", None, "B"]


def test_if_no_name_can_be_read_the_agent_that_has_spoken_least_is_called():
    played = play(replies={0: ["Agent 2", "anyone who likes"], 1: ["A"], 2: ["B"]}, **AROUND)
    assert [m.agent for m in played.messages] == [0, 1, 0, 2]
    assert played.messages[2].data["chair"]["unparsed"]


def test_without_a_chair_the_order_says_what_to_do():
    played = play(replies=lambda request: "A", turns=Called(), agents=2, expect_failure=True)
    assert list(Called().check(played.debate.cell)) == [
        'there is no chair; begin personas with "chair.persona"']


class TestChair(PersonaContract):
    component = Chair
    around = {"agents": 1}


class TestCalled(TurnOrderContract):
    component = Called
    around = AROUND


class TestCalling(StyleContract):
    component = Calling
    around = {**AROUND, "styles": [PlainStyle()]}
