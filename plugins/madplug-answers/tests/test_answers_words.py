"""Yes or no, a few words, any text."""

import pytest

from madplug import ComponentError, Sample, Service
from madplug.testing import play
from madplug_answers import Free, Text, YesNo
from madplug_answers.words import cosine, normalised

ANY = Sample("q1", "What?")


@pytest.mark.parametrize(("text", "expected"), [
    ("Yes", "yes"), ("no.", "no"), ("TRUE", "yes"), ("False", "no"), ("**No**", "no"), ("Final answer: yes", "yes"),
    ("Yes, or rather no", "no"), ("The answer is yes. No further questions.", "yes"),
    ("The answer is: well, yes", "yes"),
    ("The answer is clear. It is no.", "no"), ("\\boxed{True}", "yes"), ("maybe", None), ("", None),
    ("nobody knows", None),
])
def test_yes_and_no(text, expected):
    assert YesNo().canonical(text, ANY) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("The Southampton Philharmonic Choir.", "southampton philharmonic choir"), ("Final answer: Paris", "paris"),
    ("**Final answer:** the  Eiffel-Tower!", "eiffeltower"), ("I think the answer is Paris.", "paris"),
    ("ＰＡＲＩＳ", "paris"),
    ("a", "a"), ("!!!", None), ("", None), ("Final answer:\n\n\"Paris\"", "paris"), ("two\nlines", "two lines"),
])
def test_text_is_compared_as_in_squad(text, expected):
    assert Text().canonical(text, ANY) == expected


def test_text_answer_keeps_its_spelling():
    assert Text().stated("It is known.\nFinal answer: The Eiffel Tower", ANY) == "The Eiffel Tower"


def test_unknown_is_one_answer_where_questions_may_have_none():
    format = Text(unknown=True)
    assert format.canonical("[UNKNOWN]", ANY) == format.canonical("That is unknown to us.", ANY) == "unknown"
    assert "unknown" in format.instruction(ANY)
    assert Text().canonical("the unknown soldier", ANY) == "unknown soldier"


def test_free_text_is_kept_as_it_is():
    assert Free().canonical("  One, two.\n\nThree!  ", ANY) == "One, two.\n\nThree!"


def test_free_text_after_the_closing_line():
    assert Free().canonical("I agree with Ada.\nFinal answer:\nOne, two.\nThree.", ANY) == "One, two.\nThree."


def test_free_text_of_the_same_words_is_the_same():
    assert Free().same("One, two, three.", "one two  THREE", ANY)
    assert not Free().same("one two three", "three two one", ANY)
    assert not Free().same("!!!", "???", ANY)


class Counting(Service):
    """Embeds a text by how often it says a and b."""

    name = "counting"

    def embed(self, texts):
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]


class Slow(Counting):
    name = "slow"

    async def embed(self, texts):
        return [[1.0, 0.0] for _ in texts]


def test_an_embedder_makes_close_texts_equal():
    played = play(answers=Free(embedder="e", extract="regex"), services={"e": Counting()}, replies=["aab",
    "aaaabb", "abbb"])
    assert [m.key for m in played.messages] == ["aab", "aab", "abbb"]


def test_an_embedder_that_is_not_immediate_is_refused():
    played = play(answers=Free(embedder="e", extract="regex"), services={"e": Slow()}, replies=["aab", "b",
    "ab"], expect_failure=True)
    assert "embeds asynchronously" in (played.result.error or "")


def test_equality_before_the_embedder_is_there_is_an_error():
    with pytest.raises(ComponentError, match="before the embedder"):
        Free(embedder="e").same("one", "two", ANY)


def test_a_zero_vector_is_close_to_nothing():
    assert cosine((0.0, 0.0), (1.0, 0.0)) == 0.0


def test_a_text_of_articles_keeps_them():
    assert normalised("The A") == "the a"
