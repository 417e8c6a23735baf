"""One of several options."""

import pytest

from madplug import Sample
from madplug_answers import Choice

CITIES = Sample("q1", "Where does the Spree flow?", choices=("Paris", "London", "Rome", "Berlin"))
IS_C = [
    "Final answer: (C)", "Final answer: C", "**Final answer:** (C)", "Final answer: **C**", "final answer is c.",
    "The answer is (C) Rome.", "So the correct answer is option C.", "The correct option is C, since ...",
    "Answer: C\n\nI am sure.", "The answer is $\\boxed{C}$.", "Thus \\boxed{\\text{(C)}}", "（Ｃ）", "[C]", "C", "c",
    "(c)", "C. Rome", "C) Rome", "Rome", "rome.", "The answer is Rome.", "It flows there.\n\nC",
    "It flows there.\n(X) C", "Of these, option C is the only one.", "I'd go with (C) over the rest",
    "(A), (B) and (D) are wrong\nFinal answer: (C)", "Final answer: C. Rome", "Final answer: C. Right",
    "The answer is C. It flows there.", "The answer is\n\n(C)", "Answer = C",
    "My final answer: (C) because it has a river", "It is not (A).\nFinal answer: (<C>)", "Final answer: <C>",
    "Final answer: _C_", "Final answer - C", "Final answer: → C", "The final answer would be C",
    "Final answer: (C)\n\nThe answer is based on the map.", "The answer is (C), at \\boxed{52} degrees.",
    "(A) or (C)?\nFinal answer: the city of the Pope, (C)", "I think (C).\nFinal answer:"]
NONE = [
    "", "   ", "I do not know.", "The answer is a matter of taste.", "The answer is I think unclear.",
    "Final answer: N/A", "Final answer: (E)", "f(A) + P(B)", "a cat, a dog", "The answer is 7.", "(A, B, C or D)",
    "Zurich", "That's it", "Others said (A), which is wrong.\nFinal answer: I do not know.",
    "Others said (A).\n**Final answer:** (E) none of them", "I said that the answer is (A).\nFinal answer: unclear"]
# Where upstream evaluators keep "b", read the first option, "T", "N" and nothing.
UPSTREAM = {"Final Solution: B": "B", "final solution: b": "B", "I think A) is wrong, B) is right": "B",
            "final solution: The answer is B)": "B", "UNKNOWN": None, "Final Solution: (B)": "B", "(A) then (B)": "B",
            "(b)": "B"}
SEVERAL = {"Final answer: (A), (C)": "AC", "Final answer: (C) and (A)": "AC", "AC": "AC", "ca": "AC", "A,C": "AC",
           "['A', 'C']": "AC", "The right ones are these.\nFinal answer: B": "B", "The answer is (A).": "A", "A": "A",
           "Final answer: none": None, "": None, "\\boxed{A, D}": "AD"}


def letter(text: str, sample: Sample = CITIES, **options: object) -> str | None:
    return Choice(**options).canonical(text, sample)


TWO = ["The answer is B or C", "Final answer: A or C", "Final answer: (B) or (C).", "Final answer: B, C",
       "Final answer: **B**/**C**", r"It is \boxed{B, C}"]
FIRST = {"Final answer: B, C is wrong": "B", "Final answer: (B) and not (C)": "B", "Final answer: B or B": "B"}


@pytest.mark.parametrize(("text", "expected"), [
    *((text, None) for text in TWO), *FIRST.items(), *UPSTREAM.items(), *((text, "C") for text in IS_C),
    *((text, None) for text in NONE)])
def test_replies_are_read(text, expected):
    assert letter(text) == expected


@pytest.mark.parametrize(("text", "choices", "expected"), [
    # The last announcement counts, and is stronger than a bracket after it or a later one without an option.
    ("At first I thought the answer is A. On reflection the answer is B.", None, "B"),
    ("The answer is B. The reason against (A) is distance.", None, "B"),
    ("The answer is (B). Agent 2 says that the answer is obvious.", None, "B"),
    ("(B) would flow north, (D) south.\n\n\\boxed{A}", None, "A"),
    # Saying that there is no answer voids what stood before, and leaves what follows.
    ("The closest option is (B). The correct answer is not given in the options.", None, None),
    ("The answer is (not provided). The closest option is (D).", None, "D"),
    # An article is no option, nor is counting in small letters an answer.
    ("That would be a surprise, and a long way to a river.", None, None),
    ("The answer is: A river of this name exists.", None, None),
    ("(a) first we look at the map, (b) then we decide", None, None),
    # The words of an option win over letters in them; options with the same words are told apart by letters only.
    ("Both (A) and (B)", ("One", "Two", "Both (A) and (B)"), "C"),
    ("same", ("same", "same"), None), ("(B) same", ("same", "same"), "B"),
    # Without options A to Z are allowed, with options only theirs, and beyond Z letters of two.
    ("The answer is (K).", (), "K"), ("z", (), "Z"), ("The answer is (K).", None, None),
    ("Final answer: (AB)", tuple(map(str, range(30))), "AB")])
def test_which_letter_counts(text, choices, expected):
    assert letter(text, CITIES if choices is None else Sample("q", "?", choices=choices)) == expected


@pytest.mark.parametrize(("text", "expected"), SEVERAL.items())
def test_several_letters_are_a_set(text, expected):
    assert letter(text, several=True) == expected


@pytest.mark.parametrize(("options", "line", "pattern"), [
    ({}, "`Final answer: (<letter>)`", r"Final answer: \((A|B|C|D)\)"),
    ({"several": True}, "`Final answer: (<letter>), (<letter>), ...`",
     r"Final answer: \((A|B|C|D)\)(, \((A|B|C|D)\)){0,3}")])
def test_the_instruction_shows_the_closing_line_and_the_pattern_allows_the_sample_s_options(options, line, pattern):
    assert line in Choice(**options).instruction(CITIES)
    assert Choice(**options).pattern(CITIES) == pattern


def test_the_wording_is_an_option():
    asked = Choice(instruction="Say it: {form} {braces}").instruction(CITIES)
    assert asked == "Say it: `Final answer: (<letter>)` {braces}"


@pytest.mark.parametrize("said", ["$37$", "\\(37\\)", "(37)", "$$37$$", "\\boxed{37}", "\\boxed{\\text{37}}", "37."])
@pytest.mark.parametrize("start", ["", "3 and 34 are 37.\nFinal answer: "])
def test_the_wording_of_an_option_may_stand_in_brackets_or_latex(said, start):
    assert Choice().canonical(start + said, Sample("q", "How many?", ("3", "34", "37"))) == "C"
    assert Choice().canonical("Final answer: $37", Sample("q", "How much?", ("$37", "37"))) == "A"


@pytest.mark.parametrize(("question", "choices", "reference", "why"), [
    ("Which is largest?", (), "B", "has no choices"),
    ("Which is largest?\nA) Mars\nB) Venus", (), "B", ""),
    ("Which is largest?", ("Mars", "Venus"), "Jupiter", "no reference is an answer of the format: 'Jupiter'"),
    ("Which is largest?", ("Mars", "Venus"), "Venus", ""),
])
def test_a_row_with_nothing_to_choose_from_does_not_fit(question, choices, reference, why):
    found = Choice().misfit(Sample("q", question, choices), (reference,)) or ""
    assert why in found
    assert bool(why) == bool(found)
