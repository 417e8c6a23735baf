"""What is true of every text."""

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import Sample
from madplug_answers import Choice, Free, Math, Number, Text, YesNo, reports

SAMPLES = (Sample("q1", "?", choices=("one", "two", "Both (A) and (B)", "the")), Sample("q2", "?"))
FORMATS = (Choice(), Choice(several=True), Number(), YesNo(), Math(), Text(), Text(unknown=True), Free())
PIECES = ("Final answer:", "final answer", "the answer is", "answer:", "\\boxed{", "}", "{", "(", ")", "[", "]", "(A)",
    "b", "B)", "C", "a", "yes", "No", "true", "-", "−", "1", "2,345", ".5", "/", "%", "$", "\\$", "=", "x",
    "\\frac{1}{2}", "\\frac12", "\\\\", "\\text{", "\\sqrt2", "^\\circ", "\\left", "\\,", "e5", "٣", "５", "²", "\n",
    " ", "\t", "\u202f", "**", "####", "unknown", "the", "one", "Both (A) and (B)", "N/A", "none", "'", '"', ".", ",",
    ">", "#", "\u0130", "ß", "ﬁ", "10^5", "\\times", "_", "^10", "0x1f", "1_000", "1.5 km", "not", "but", "isn't",
    "Agent 2", "says", "(Agent 2 said", "others claim", "it is", "Agent 2:", "according to", "> ", "\n> ", "```",
    "\n```\n", "~~~", "“", "”", "‘", "’", "«", "»", "<think>", "</think>", "[AGREE]", "[DISAGREE]", "°", "½", "€",
    "no doubt", "I agree with", "!")
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
                  st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
each_format = pytest.mark.parametrize("format",
FORMATS, ids=lambda f: f"{f.name}{'+' * bool(f.options.model_fields_set)}")


@each_format
@given(text=texts)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_canonical_answer_is_its_own_and_what_is_extracted_has_the_key_of_the_whole_reply(format, text):
    for sample in SAMPLES:
        if (key := format.canonical(text, sample)) is not None:
            assert key != ""
            assert format.canonical(key, sample) == key
            assert format.same(key, key, sample)
    if (stated := format.stated(text, SAMPLES[0])) is not None:
        assert format.canonical(stated, SAMPLES[0]) == format.canonical(text, SAMPLES[0])


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-10**12, max_value=10**12))
def test_every_number_survives_with_its_sign(value):
    key = Number().canonical(f"so the answer is {value:f} apples", SAMPLES[1])
    assert Decimal(key) == value
    assert Number().canonical(f"Final answer: {value:,}", SAMPLES[1]) == key


@given(st.integers(-10**9, 10**9), st.integers(1, 10**6))
def test_a_fraction_is_itself_in_every_spelling(above, below):
    for format, first, second in [
            (Number(), f"{above}/{below}", rf"\frac{{{above}}}{{{below}}}"),
            (Math(), rf"\dfrac{{{above}}}{{{below}}}", rf"\frac{{{2 * above}}}{{{2 * below}}}")]:
        assert format.canonical(first, SAMPLES[1]) == format.canonical(second, SAMPLES[1])


HOSTILE = ["a", "<", "\"", "(", "A) ", "answer: A ", "\\boxed{", "$a", "\\(", "1,", "111,", "1/", "-", " ", "\n",
    "\\text{", "\\frac{1}{", "Final answer: ", "> ", "yes ", "٣", "1=", ". ", "[A", "1e5 ", "answer is 1+", "^1", "1^",
    "0x", "1_000", "'a ", "“", "```", "> x\n", "~~~\n", "<think>", "</think>", "[AGREE]", "Agent 2 says ", "Agent the ",
    "Ada says the answer ", "others ", "He ", "not B ", "not 1, ", "(A), ", "Agent 2: ", "Agents 1, 2", "according to ",
    "$ 5", "no "]
several_formats = pytest.mark.parametrize("format", [FORMATS[i] for i in (0, 2, 3, 4, 6, 7)], ids=lambda f: f.name)


@several_formats
def test_time_grows_with_the_text_and_no_faster(format, in_proportion):
    nested = [f"Final answer: {open * 10_000}A 1 yes{close * 10_000}" for open, close in ("()", "{}", "[]", "<>", "“”")]
    for text in (*nested, *(piece * (20_000 // len(piece)) for piece in HOSTILE)):
        in_proportion(lambda text: format.canonical(text, SAMPLES[0]), text)


def line_of(format, sample):
    """The closing line that the instruction asks for, with an answer in the placeholder's place."""
    shown = re.search(r"`(Final answer:[^`]*)`", format.instruction(sample))
    assert shown
    values = {"<letter>": "A", "<number>": "7", "<yes or no>": "no", "<answer>": "7", ", ...": ""}
    line = shown[1].replace("(<letter>), (<letter>)", "(A), (B)") + ("\nx" if format.name == "free" else "")
    for placeholder, value in values.items():
        line = line.replace(placeholder, value)
    return line


@each_format
def test_the_instruction_and_the_pattern_speak_of_the_same_line_and_favour_no_answer(format):
    for sample in SAMPLES:
        line = line_of(format, sample)
        assert re.fullmatch(format.pattern(sample), line)
        assert format.canonical(line, sample) is not None
    assert not re.search(r"\([A-Z]\)|\d", format.instruction(SAMPLES[0]))


@each_format
def test_a_constrained_reply_is_read_and_may_be_the_answer_alone(format):
    line = line_of(format, SAMPLES[0])
    reply = f"Some thoughts.\n{line}"
    assert re.fullmatch(format.form(SAMPLES[0], body=50)["regex"], reply)
    assert format.canonical(reply, SAMPLES[0]) == format.canonical(line, SAMPLES[0])
    for body in (None, 0, 50):
        assert re.fullmatch(format.form(SAMPLES[0], body=body)["regex"], line)


@pytest.mark.parametrize(("pattern", "signs"), [
    (reports._REPORT, reports._OF_REPORTS), (reports._NUMBERED, reports._OF_ROLES), (reports._REFUTED, (") ",)),
    (reports._NEGATED, reports._OF_NEGATIONS)])
def test_a_text_in_which_a_pattern_is_found_has_one_of_its_signs(pattern, signs):
    @settings(deadline=None, max_examples=60, derandomize=True)
    @given(st.from_regex(re.compile(pattern.pattern, pattern.flags)))
    def check(text):
        if pattern.search(text):
            assert any(sign in text for sign in signs)

    check()
