"""One of several options."""

import pytest

from madplug import Sample
from madplug_answers import Choice

CITIES = Sample("q1", "Where does the Spree flow?", choices=("Paris", "London", "Rome", "Berlin"))
BARE = Sample("q2", "Which one?")


def letter(text: str, sample: Sample = CITIES, **options: object) -> str | None:
    return Choice(**options).canonical(text, sample)


@pytest.mark.parametrize(("text", "expected"), [
    ("Final Solution: B", "B"),
    ("final solution: b", "B"),
                                 # an upstream evaluator keeps "b" and compares it with "B"
    ("I think A) is wrong, B) is right", "B"),               # upstream: the first
    ("final solution: The answer is B)", "B"),               # upstream: "T"
    ("UNKNOWN", None),                                       # upstream: "N"
    ("Final Solution: (B)", "B"),
    ("(A) then (B)", "B"),
    ("(b)", "B"),                                            # upstream: nothing
])
def test_upstream_vectors_read_without_their_bugs(text, expected):
    assert letter(text) == expected


@pytest.mark.parametrize("text", [
    "Final answer: (C)", "Final answer: C", "**Final answer:** (C)", "Final answer: **C**", "final answer is c.",
    "The answer is (C) Rome.", "So the correct answer is option C.", "The correct option is C, since ...",
    "Answer: C\n\nI am sure.", "The answer is $\\boxed{C}$.", "Thus \\boxed{\\text{(C)}}", "（Ｃ）", "[C]", "C",
    "c", "(c)",
    "C. Rome", "C) Rome", "Rome", "rome.", "The answer is Rome.", "It flows there.\n\nC", "It flows there.\n(X) C",
    "Of these, option C is the only one.", "I'd go with (C) over the rest",
    "(A), (B) and (D) are wrong\nFinal answer: (C)",
    "Final answer: C. Rome", "Final answer: C. Right", "The answer is C. It flows there.",
    "The answer is\n\n(C)", "Answer = C", "My final answer: (C) because it has a river",
])
def test_every_usual_way_to_say_c(text):
    assert letter(text) == "C"


@pytest.mark.parametrize("text", [
    "", "   ", "I do not know.", "The answer is a matter of taste.", "The answer is I think unclear.",
    "Final answer: N/A",
    "Final answer: (E)", "f(A) + P(B)", "a cat, a dog", "The answer is 7.", "(A, B, C or D)", "Zurich", "That's it",
])
def test_a_reply_without_an_answer_gives_none(text):
    assert letter(text) is None


def test_the_last_announcement_counts():
    assert letter("At first I thought the answer is A. On reflection the answer is B.") == "B"


def test_an_announcement_is_stronger_than_a_bracket_after_it():
    assert letter("The answer is B. The reason against (A) is distance.") == "B"


def test_an_announcement_without_an_option_falls_back_on_an_earlier_one():
    assert letter("The answer is (B). Agent 2 says that the answer is obvious.") == "B"


def test_a_box_is_an_announcement():
    assert letter("(B) would flow north, (D) south.\n\n\\boxed{A}") == "A"


def test_saying_that_there_is_no_answer_voids_what_stood_before():
    assert letter("The closest option is (B). The correct answer is not given in the options.") is None


def test_saying_that_there_is_no_answer_leaves_what_follows():
    assert letter("The answer is (not provided). The closest option is (D).") == "D"


def test_the_article_is_no_option():
    assert letter("That would be a surprise, and a long way to a river.") is None


def test_a_capital_article_after_the_announcement_is_no_option():
    assert letter("The answer is: A river of this name exists.") is None


def test_counting_in_small_letters_is_no_answer():
    assert letter("(a) first we look at the map, (b) then we decide") is None


def test_the_words_of_an_option_win_over_letters_in_them():
    sample = Sample("q", "?", choices=("One", "Two", "Both (A) and (B)"))
    assert letter("Both (A) and (B)", sample) == "C"


def test_options_with_the_same_words_are_not_distinguished_by_words():
    sample = Sample("q", "?", choices=("same", "same"))
    assert letter("same", sample) is None
    assert letter("(B) same", sample) == "B"


def test_without_options_a_to_z_are_allowed():
    assert letter("The answer is (K).", BARE) == "K"
    assert letter("z", BARE) == "Z"


def test_with_options_only_theirs_are_allowed():
    assert letter("The answer is (K).") is None


def test_many_options_have_letters_of_two():
    sample = Sample("q", "?", choices=tuple(str(i) for i in range(30)))
    assert letter("Final answer: (AB)", sample) == "AB"


def test_the_instruction_shows_the_closing_line():
    assert "`Final answer: (<letter>)`" in Choice().instruction(CITIES)


def test_the_wording_is_an_option():
    asked = Choice(instruction="Say it: {form} {braces}").instruction(CITIES)
    assert asked == "Say it: `Final answer: (<letter>)` {braces}"


def test_the_pattern_allows_the_sample_s_options_only():
    assert Choice().pattern(CITIES) == r"Final answer: \((A|B|C|D)\)"


class TestSeveral:
    @pytest.mark.parametrize(("text", "expected"), [
        ("Final answer: (A), (C)", "AC"), ("Final answer: (C) and (A)", "AC"), ("AC", "AC"), ("ca", "AC"),
        ("A,C", "AC"),
        ("['A', 'C']", "AC"), ("The right ones are these.\nFinal answer: B", "B"), ("The answer is (A).", "A"),
        ("A", "A"),
        ("Final answer: none", None), ("", None), ("\\boxed{A, D}", "AD"),
    ])
    def test_the_answer_is_a_set(self, text, expected):
        assert letter(text, several=True) == expected

    def test_the_closing_line_shows_more_than_one(self):
        format = Choice(several=True)
        assert "`Final answer: (<letter>), (<letter>), ...`" in format.instruction(CITIES)
        assert format.pattern(CITIES) == r"Final answer: \((A|B|C|D)\)(, \((A|B|C|D)\)){0,3}"
