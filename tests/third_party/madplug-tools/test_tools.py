"""What tools say reaches the prompt, whether an option names the tool or has it."""

from madplug.testing import play
from madplug_testing.contracts import StyleContract
from madplug_tools import Count, Equipped, Fact, Informed


def test_a_tool_in_an_option_is_used():
    played = play(replies=["A"] * 3, styles=[Equipped(tool=Fact(text="mind the gap"))])
    assert "A tool says: mind the gap" in played.prompts[0]


def test_a_tool_that_an_option_names_is_used():
    more = {"tools": {"hint": Fact(text="mind the gap")}}
    played = play(replies=["A"] * 3, styles=[Informed(tool="hint")], more=more)
    assert "A tool says: mind the gap" in played.prompts[0]


class TestEquipped(StyleContract):
    component = Equipped

    def make(self):
        return Equipped(tool=Count())
