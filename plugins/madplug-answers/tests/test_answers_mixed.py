"""Samples with options beside samples without: each is asked for and read in its own way."""

import pytest

from madplug import Sample
from madplug_answers import Math, Mixed, Number, YesNo

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


@pytest.mark.parametrize(("format", "reference", "why"), [
    (Number(), "12,50 €", "its reference '12,50 €' is read as '50', but as '12' where a reply ends with it"),
    (Number(), "1,5", "'5', but as '1'"), (Number(), "3 to 4", "'4', but as '3'"), (Number(), "1,500 €", ""),
    (Number(), "5 - 3 = 2, so\n#### 2", ""), (YesNo(), "Yes. It is not true.", "'no', but as 'yes'"),
    (Mixed(other=Number()), "1,5", "'5', but as '1'")])
def test_a_reference_that_a_reply_cannot_end_with_does_not_fit(format, reference, why):
    found = format.misfit(OPEN, (reference,)) or ""
    assert why in found
    assert bool(why) == bool(found)
