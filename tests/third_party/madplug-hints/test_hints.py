"""What hints say reaches the prompt, whether an option names the hint or has it."""

from madplug_hints import Count, Equipped, Fact, Informed
from madplug_testing import play
from madplug_testing.contracts import StyleContract


def test_a_hint_in_an_option_is_used():
    played = play(replies=["A"] * 3, styles=[Equipped(hint=Fact(text="mind the gap"))])
    assert "A hint says: mind the gap" in played.prompts[0]


def test_a_hint_that_an_option_names_is_used():
    more = {"hints": {"hint": Fact(text="mind the gap")}}
    played = play(replies=["A"] * 3, styles=[Informed(hint="hint")], more=more)
    assert "A hint says: mind the gap" in played.prompts[0]


class TestEquipped(StyleContract):
    component = Equipped

    def make(self):
        return Equipped(hint=Count())
