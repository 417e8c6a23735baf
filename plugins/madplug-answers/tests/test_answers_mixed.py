"""Samples with options beside samples without: each is asked for and read in its own way."""

from madplug import Sample
from madplug_answers import Math, Mixed

LISTED = Sample("a", "Which way?", ("Left", "Straight on", "Right"))
OPEN = Sample("b", "How many?")


def test_with_options_a_letter_is_read_and_asked_for_and_without_the_other_format():
    for text in ("(A) Left", "Left", "Option A", "Final answer: (A)", "A"):
        assert Mixed().canonical(text, LISTED) == "A"
    assert "(<letter>)" in Mixed().instruction(LISTED)
    assert "<letter>" not in Mixed().instruction(OPEN)
    made = Mixed(other=Math())
    assert made.canonical(r"so \boxed{\frac{1}{2}}", OPEN) == Math().canonical(r"so \boxed{\frac{1}{2}}", OPEN)
    assert made.same("1/2", "0.5", OPEN) == Math().same("1/2", "0.5", OPEN)
    assert made.pattern(LISTED) != made.pattern(OPEN)
