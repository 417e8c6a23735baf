"""Answers that stand alone: in a field of a structured reply, or printed by a program."""

import pytest

from madplug import Sample
from madplug_answers import Choice, Free, Math, Number, Text, YesNo
from madplug_prompting.prompts import instruction_alone
from madplug_testing import play

SAMPLE = Sample("q", "Which?")
FORMATS = [Choice(), Choice(several=True), Number(), YesNo(), Math(), Text(), Text(unknown=True), Free()]


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_that_stands_alone_has_no_closing_line(format):
    asked = instruction_alone(format, SAMPLE)
    assert asked.startswith("Give only ")
    assert "Final answer" not in asked
    assert ("unknown" in asked) == getattr(format.options, "unknown", False)  # what to write where there is no answer


@pytest.mark.parametrize("format", [Choice(instruction="Say {form}."), Choice(read_as="som"), Math(read_as="madc"),
                                    Choice(several=True, instruction_several="Say {form}.")])
def test_own_words_and_another_project_s_code_keep_the_closing_line(format):
    assert instruction_alone(format, SAMPLE) == format.instruction(SAMPLE)


@pytest.mark.parametrize(("format", "said", "key"), [
    (Choice(), "B", "B"), (Choice(several=True), "A, C", "AC"), (Number(), "1,234", "1234"), (YesNo(), "yes", "yes"),
    (Math(), r"\frac{1}{2}", "0.5"), (Text(), "the X Choir", "x choir"),
    (Free(extract="regex"), "All of it.", "All of it.")])
def test_an_answer_that_stands_alone_is_read(format, said, key):
    assert play(answers=format, replies=[said], agents=1, sample=SAMPLE).messages[0].key == key
    assert format.canonical(said, SAMPLE) == key
