"""What holds for every text."""

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import Sample
from madplug_answers import Choice, Free, Math, Number, Text, YesNo

SAMPLES = (Sample("q1", "?", choices=("one", "two", "Both (A) and (B)", "the")), Sample("q2", "?"))
FORMATS = (Choice(), Choice(several=True), Number(), YesNo(), Math(), Text(), Text(unknown=True), Free())
PIECES = ("Final answer:", "final answer", "the answer is", "answer:", "\\boxed{", "}", "{", "(", ")", "[",
"]", "(A)", "b", "B)", "C",
          "a", "yes", "No", "true", "-", "−", "1", "2,345", ".5", "/", "%", "$", "\\$", "=", "x",
          "\\frac{1}{2}", "\\frac12", "\\\\",
          "\\text{", "\\sqrt2", "^\\circ", "\\left", "\\,", "e5", "٣", "５", "²", "\n", " ", "\t", "\u202f",
          "**", "####", "unknown",
          "the", "one", "Both (A) and (B)", "N/A", "none", "'", '"', ".", ",", ">", "#", "\u0130", "ß", "ﬁ",
          "10^5", "\\times", "_")
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
                  st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
each_format = pytest.mark.parametrize("format",
FORMATS, ids=lambda f: f"{f.name}{'+' * bool(f.options.model_fields_set)}")


@each_format
@given(text=texts)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_canonical_answer_is_its_own(format, text):
    for sample in SAMPLES:
        key = format.canonical(text, sample)
        if key is not None:
            assert key != ""
            assert format.canonical(key, sample) == key
            assert format.same(key, key, sample)


@each_format
@given(text=texts)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_what_is_extracted_has_the_same_key_as_the_whole_reply(format, text):
    sample = SAMPLES[0]
    stated = format.stated(text, sample)
    if stated is not None:
        assert format.canonical(stated, sample) == format.canonical(text, sample)


@given(st.sampled_from("ABCD"))
def test_small_and_capital_letters_are_equal(letter):
    format, sample = Choice(), SAMPLES[0]
    for text in ("{}", "({})", "Final answer: {}", "the answer is ({})."):
        assert format.canonical(text.format(letter), sample) == letter
        assert format.canonical(text.format(letter.lower()), sample) == letter


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-10**12, max_value=10**12))
def test_every_number_survives_with_its_sign(value):
    key = Number().canonical(f"so the answer is {value:f} apples", SAMPLES[1])
    assert Decimal(key) == value
    assert Number().canonical(f"Final answer: {value:,}", SAMPLES[1]) == key


@given(st.integers(-10**9, 10**9), st.integers(1, 10**6))
def test_a_fraction_is_itself_in_every_spelling(above, below):
    number, math = Number(), Math()
    assert number.canonical(f"{above}/{below}",
    SAMPLES[1]) == number.canonical(rf"\frac{{{above}}}{{{below}}}", SAMPLES[1])
    assert math.canonical(rf"\dfrac{{{above}}}{{{below}}}", SAMPLES[1]) == math.canonical(
        rf"\frac{{{2 * above}}}{{{2 * below}}}", SAMPLES[1])


HOSTILE = ["a", "(", "A) ", "answer: A ", "\\boxed{", "$a", "\\(", "1,", "111,", "1/", "-", " ", "\n",
"\\text{", "\\frac{1}{",
           "Final answer: ", "> ", "yes ", "٣", "1=", ". ", "[A", "1e5 ", "answer is 1+"]


@pytest.mark.parametrize("format", [FORMATS[i] for i in (0, 2, 3, 4, 5, 7)], ids=lambda f: f.name)
def test_time_grows_with_the_text_and_no_faster(format, in_proportion):
    for piece in HOSTILE:
        in_proportion(lambda text: format.canonical(text, SAMPLES[0]), piece * (200_000 // len(piece)))


@each_format
def test_the_instruction_and_the_pattern_speak_of_the_same_line(format):
    for sample in SAMPLES:
        shown = re.search(r"`(Final answer:[^`]*)`", format.instruction(sample))
        assert shown
        line = shown[1].replace("Final answer: ...", "Final answer: x") + ("\nx" if format.name == "free" else "")
        assert re.fullmatch(format.pattern(sample), line)
        assert format.canonical(line, sample) is not None


@each_format
def test_a_constrained_reply_is_read(format):
    form = format.form(SAMPLES[0], body=50)
    shown = re.search(r"`(Final answer:[^`]*)`", format.instruction(SAMPLES[0]))
    line = shown[1].replace("Final answer: ...", "Final answer: x") + ("\nx" if format.name == "free" else "")
    reply = f"Some thoughts.\n{line}"
    assert re.fullmatch(form["regex"], reply)
    assert format.canonical(reply, SAMPLES[0]) == format.canonical(line, SAMPLES[0])
