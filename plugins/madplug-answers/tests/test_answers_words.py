"""Yes or no, a few words, any text."""

import asyncio

import pytest
from tests_support import made

from madplug import ComponentError, Metric, Sample, Service
from madplug_answers import Free, Text, YesNo
from madplug_answers.vectors import AnswerVectors
from madplug_answers.words import normalised
from madplug_testing import play

ANY = Sample("q1", "What?")


@pytest.mark.parametrize(("text", "expected"), [
    ("Yes", "yes"), ("no.", "no"), ("TRUE", "yes"), ("False", "no"), ("**No**", "no"), ("Final answer: yes", "yes"),
    ("Yes, or rather no", "no"), ("The answer is yes. No further questions.", "yes"),
    ("The answer is: well, yes", "yes"), ("The answer is clear. It is no.", "no"), ("\\boxed{True}", "yes"),
    ("maybe", None), ("", None), ("nobody knows", None), ("There is no doubt that Hamlet counts as a tragedy", None),
    ("No evidence was found for it.", None), ("There is no doubt that the answer is yes.", "yes"),
    ("The answer is yes, no question about it.", "yes"), ("The answer is no because it has no wings.", "no"),
    ("No, it has no wings.", "no"), ("No - it has none", "no"), ("see No. 5", None), ("That is not true.", "no"),
    ("It isn't true.", "no"), ("It is not false.", "yes"), ("The answer is not yes.", "no"),
    ("Please say yes or no.", None), ("Answer yes or no: no", "no"), ("Final answer: 'no'", "no"),
    ("no-one knows", None), ("Final answer: No; a yes would need proof.", "no"),
    ("Final answer: **No**, since yes would need proof", "no"), ("Some say yes.\nFinal answer: unclear", None)])
def test_yes_and_no(text, expected):
    assert YesNo().canonical(text, ANY) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("The Southampton Philharmonic Choir.", "southampton philharmonic choir"), ("Final answer: Paris", "paris"),
    (r"Final answer: $\boxed{\text{Paris}}$", "paris"), (r"The capital is \boxed{Paris}.", "paris"),
    ("It is old.\n\\boxed{New York}", "new york"),
    ("**Final answer:** the  Eiffel-Tower!", "eiffeltower"), ("I think the answer is Paris.", "paris"), ("", None),
    ("ＰＡＲＩＳ", "paris"), ("a", "a"), ("!!!", None), ("Final answer:\n\n\"Paris\"", "paris"),
    ("two\nlines", "two lines")])
def test_text_is_compared_as_in_squad(text, expected):
    assert Text().canonical(text, ANY) == expected


@pytest.mark.parametrize("same", [
    ["1.5 km", "1.5 km.", "Final answer: 1.5 km", "1.5km", "**1.5 km**", "１．５ km"], ["15 km"],
    ["1,500 m", "1500 m", "1 500 m", "1\u202f500 m", "1\u00a0500 m", "1'500 m", "1_500 m", "1500m"],
    ["1,234,567.50", "1 234 567.50", "1234567.50"], ["1.234.567", "1234567", "12,34,567"], ["1,5 km"],
    ["-5", "−5", "\u20135", "(-5)"], ["5", "+5", "5.", "5!"], ["3-5", "3\u20135"], ["35"], ["-5 °C", "-5°C", "−5 °c"],
    ["50%", "50 %", "50 percent", "50 per cent"], ["50"], ["$3.50", "$ 3.50", "3.50$"], ["-$5", "$-5", "−$5"], ["€5"],
    ["10:30", "10:30."], ["1030"], ["1/2", "½"], ["1 1/2", "1½", "Final answer: 1½"], ["11/2"],
    ["10^5", "10⁵", "Final answer: 10⁵"], ["105"], [".5", "0.5"], ["2*3"], ["23"], ["2024-01-02"], ["C++"], ["C#"],
    ["C"], ["A+"], ["U.S.", "US"], ["the 1990s", "1990s"], ["3.14.15"]])
def test_numbers_in_text_keep_their_value(same):
    assert len({Text().canonical(text, ANY) for text in same}) == 1
    assert Text().canonical(same[0], ANY) not in {Text().canonical(t, ANY) for t in DIFFERENT - set(same)}


DIFFERENT = {"1.5 km", "15 km", "1,500 m", "1,5 km", "-5", "5", "3-5", "35", "50%", "50", "$3.50", "350", "10:30",
    "1030", "1/2", "12", "10^5", "105", ".5", "2*3", "23", "C++", "C#", "C", "A+", "11/2", "1 1/2"}


@pytest.mark.parametrize(("text", "expected"), [
    ("1.5 km", "1.5 km"), ("a 1,234.5-litre tank", "1234.5litre tank"), ("in 1998, 200 people", "in 1998 200 people"),
    ("COVID-19", "covid19"), ("July 4, 1776", "july 4 1776"), ("nearly $40 per barrel", "nearly $40 per barrel"),
    ("The A", "the a")])
def test_the_form_of_numbers_in_text(text, expected):
    assert normalised(text) == expected


LISTED = Sample("q1", "Which way does the car face?\n\nA. Left\nB. Right\nAnswer with the letter of the option.")


@pytest.mark.parametrize(("reply", "answer"), [
    ("Final answer: B. Right", "B"), ("Final answer: B) right.", "B"), ("B. Right", "B"),
    ("Final answer: (B) Right", "B"), ("Final answer: B", "B"), ("Final answer: B. Left", "B. Left"),
    ("Final answer: Right", "Right")])
def test_an_option_that_the_question_lists_is_its_letter(reply, answer):
    played = play(answers=Text(), replies=[reply], agents=1, sample=LISTED, references=["B"])
    assert played.messages[0].answer == answer
    assert (played.messages[0].key == Text().canonical("B", LISTED)) == (answer == "B")


@pytest.mark.parametrize(("format", "text", "key"), [
    (Text(), "Final answer: E. coli", "e coli"),  # a label, where the question lists no options, is text
    (Text(), "the unknown soldier", "unknown soldier"), (Text(unknown=True), "[UNKNOWN]", "unknown"),
    (Text(unknown=True), "That is unknown to us.", "unknown"),
    (Text(unknown=True), "The Tomb of the Unknown Soldier", "tomb of unknown soldier"),
    (Text(unknown=True), "Final answer: unknown (Agent 2 said London)", "unknown"),
    (Text(unknown=True), "[DISAGREE] It is unknown to me, but I propose it", "it is unknown to me but i propose it"),
    (Free(), "  One, two.\n\nThree!  ", "One, two.\n\nThree!"),
    (Free(), "I agree with Ada.\nFinal answer:\nOne, two.\nThree.", "One, two.\nThree.")])
def test_what_is_compared(format, text, key):
    assert format.canonical(text, ANY) == key


@pytest.mark.parametrize(("choices", "reference", "fits"), [
    (("Mars", "Venus"), "B", False), (("A", "B"), "B", True), (("Mars", "Venus"), "Venus", True), ((), "B", True)])
def test_the_letter_of_a_choice_does_not_fit_words(choices, reference, fits):
    assert (Text().misfit(Sample("q", "Which?", choices), (reference,)) is None) is fits


def test_text_answer_keeps_its_spelling_and_free_text_of_the_same_words_is_the_same():
    assert Text().stated("It is known.\nFinal answer: The Eiffel Tower", ANY) == "The Eiffel Tower"
    assert Free().same("One, two, three.", "one two  THREE", ANY)
    assert not Free().same("one two three", "three two one", ANY)
    assert not Free().same("!!!", "???", ANY)


class Counting(Service):
    """Embeds a text by how often it says a and b; notes each text that it is asked for, and on which event loop."""

    name = "counting"

    def __init__(self):
        super().__init__()
        self.asked = []

    async def embed(self, texts):
        await asyncio.sleep(0)
        self.asked.append((asyncio.get_running_loop(), *texts))
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]


def embedded(replies, service, **more):
    return play(answers=Free(embedder="e", extract="regex"), services={"e": service}, replies=replies, **more)


def test_an_embedder_makes_close_texts_equal_and_a_reference_too():
    right = made(Metric, score=lambda self, debate, references: float(
        debate.answers.same(debate.decision.key, references[0], debate.sample)))
    played = embedded(["aab", "aaaabb", "abbb"], Counting(), references=["aaaabb"], metrics={"right": right})
    assert [m.key for m in played.messages] == ["aab", "aab", "abbb"]
    assert played.metrics == {"right": 1.0}


def test_answers_are_embedded_on_the_study_s_event_loop_when_they_are_read():
    embedded(["aab", "abbb", "b"] * 2, service := Counting(), rounds=2)
    assert sorted(text for _, text in service.asked) == ["aab", "abbb", "b"]
    assert len({loop for loop, _ in service.asked}) == 1


def test_a_failing_embedder_fails_the_debate_with_its_own_error():
    async def embed(self, texts):
        raise ComponentError("no vectors today")

    assert "no vectors today" in embedded(["aab"] * 3, made(Service, embed=embed), expect_failure=True).result.error


def test_only_so_many_vectors_are_remembered(monkeypatch):
    monkeypatch.setattr("madplug_answers.vectors.KEPT", 2)
    service = Counting()
    vectors = AnswerVectors(service)
    for text in ("a", "b", "ab", "a"):
        assert vectors.of(text) == (text.count("a"), text.count("b"))
    assert [text for _, text in service.asked] == ["a", "b", "ab", "a"]


def test_an_embedder_that_never_answers_or_is_not_there_does_not_stop_the_study(monkeypatch):
    async def embed(self, texts):
        await asyncio.Event().wait()

    monkeypatch.setattr("madplug_answers.vectors.PATIENCE", 0.01)
    with pytest.raises(ComponentError, match="gave no vector of 'a'"):
        AnswerVectors(made(Service, embed=embed)).of("a")
    with pytest.raises(ComponentError, match="before the embedder was prepared"):
        Free(embedder="e").same("one", "two", ANY)
