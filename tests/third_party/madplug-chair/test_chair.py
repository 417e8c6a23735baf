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


def test_whom_the_chair_names_speaks_next_or_the_agent_that_has_spoken_least():
    played = play(replies={0: ["now agent 2", "anyone who likes"], 1: ["B"], 2: ["A"]}, **AROUND)
    assert [(m.agent, m.content, m.key) for m in played.messages] == [
        (0, "Agent 2, please.", None), (1, "B", "B"), (0, "Agent 3, please.", None), (2, "A", "A")]
    assert played.messages[2].data["chair"]["unparsed"]
    alone = play(replies=lambda request: "A", turns=Called(), agents=2, expect_failure=True)
    assert list(Called().check(alone.debate.cell)) == ['there is no chair; begin personas with "chair.persona"']


class TestChair(PersonaContract):
    component = Chair
    around = {"agents": 1}


class TestCalled(TurnOrderContract):
    component = Called
    around = AROUND


class TestCalling(StyleContract):
    component = Calling
    around = {**AROUND, "styles": [PlainStyle()]}
