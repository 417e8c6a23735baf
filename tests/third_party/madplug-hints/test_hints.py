"""What hints say reaches the prompt, whether an option names the hint or has it."""

from madplug_hints import Count, Equipped, Fact, Informed
from madplug_testing import play
from madplug_testing.contracts import StyleContract


def test_a_hint_in_an_option_or_that_an_option_names_is_used():
    hint = Fact(text="mind the gap")
    for style, more in ((Equipped(hint=hint), {}), (Informed(hint="hint"), {"hints": {"hint": hint}})):
        assert "A hint says: mind the gap" in play(replies=["A"] * 3, styles=[style], more=more).prompts[0]


class TestEquipped(StyleContract):
    component = Equipped

    def make(self):
        return Equipped(hint=Count())
