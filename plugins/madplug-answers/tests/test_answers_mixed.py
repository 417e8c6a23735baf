"""What is asked for and read: of samples with options beside samples without, and of answers that stand alone."""

import pytest

from madplug import Sample
from madplug_answers import Choice, Free, Math, Mixed, Number, Text, YesNo
from madplug_prompting.prompts import instruction_alone
from madplug_testing import play

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
    (Number(), "3 to 4 €", "its reference '3 to 4 €' is read as '4', but as '3' where a reply ends with it"),
    (Number(), "12,50 €", ""), (Number(), "1,500 €", ""),
    (Number(), "5 - 3 = 2, so\n#### 2", ""), (YesNo(), "Yes. It is not true.", "'no', but as 'yes'"),
    (Mixed(other=Number()), "1 to 5", "'5', but as '1'")])
def test_a_reference_that_a_reply_cannot_end_with_does_not_fit(format, reference, why):
    found = format.misfit(OPEN, (reference,)) or ""
    assert why in found
    assert bool(why) == bool(found)


# Answers that stand alone: in a field of a structured reply, or printed by a program

FORMATS = [Choice(), Choice(several=True), Number(), YesNo(), Math(), Text(), Text(unknown=True), Free()]


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_that_stands_alone_has_no_closing_line(format):
    asked = instruction_alone(format, OPEN)
    assert asked.startswith("Give only ")
    assert "Final answer" not in asked
    assert ("unknown" in asked) == getattr(format.options, "unknown", False)  # what to write where there is no answer


@pytest.mark.parametrize("format", [Choice(instruction="Say {form}."), Choice(read_as="som"), Math(read_as="madc"),
                                    Choice(several=True, instruction_several="Say {form}.")])
def test_own_words_and_another_project_s_code_keep_the_closing_line(format):
    assert instruction_alone(format, OPEN) == format.instruction(OPEN)


@pytest.mark.parametrize(("format", "said", "key"), [
    (Choice(), "B", "B"), (Choice(several=True), "A, C", "AC"), (Number(), "1,234", "1234"), (YesNo(), "yes", "yes"),
    (Math(), r"\frac{1}{2}", "0.5"), (Text(), "the X Choir", "x choir"),
    (Free(extract="regex"), "All of it.", "All of it.")])
def test_an_answer_that_stands_alone_is_read(format, said, key):
    assert play(answers=format, replies=[said], agents=1, sample=OPEN).messages[0].key == key
    assert format.canonical(said, OPEN) == key
