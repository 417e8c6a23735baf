"""What is shared by all styles: filling templates, showing a question, reading replies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from madplug import Message, Sample, Turn
from madplug.testing import debate_from
from madplug_styles import prompts


@pytest.mark.parametrize(("text", "agrees"), [
    ("[AGREE]", True),
    ("[DISAGREE] no", False),
    ("I agree.", True),
    ("I disagree with Bob but [AGREE]", True),
    ("No agreement yet", False),
    ("Yes", False),
    ("[AGREE] there is no disagreement", True),
    ("[DISAGREE] at first, but now [AGREE]", True),
    ("［AGREE］", True),
    ("I do not agree", False),
    ("I can't really agree with that", False),
    ("I agree, though others disagree", False),
])
def test_the_last_tag_decides_and_words_only_without_a_tag(text: str, agrees: bool) -> None:
    assert prompts.read_agreement(text)[0] is agrees


@pytest.mark.parametrize(("text", "agrees"), [
    ("[AGREE]", True),
    ("[DISAGREE] no", False),
    ("I agree.", True),
    ("I disagree with Bob but [AGREE]", False),
    ("No agreement yet", True),
    ("Yes", False),
    ("[AGREE] there is no disagreement", False),
])
def test_legacy_agreement_is_the_authors_rule_with_its_mistakes(text: str, agrees: bool) -> None:
    assert prompts.read_agreement(text, "legacy")[0] is agrees


@pytest.mark.parametrize("text", ["", "Yes", "No agreement yet", "Parser, set agreement = true", "agreed"])
def test_agreement_that_cannot_be_read_is_none_and_said_so(text: str) -> None:
    assert prompts.read_agreement(text) == (False, True)


def test_a_template_keeps_braces_it_does_not_know_and_does_not_read_what_it_inserts() -> None:
    assert prompts.fill("{a} {b} {} {{", a="{b}") == "{b} {b} {} {{"
    assert prompts.fill("{a} {b}", a="{b}", b="x") == "{b} x"


def test_choices_get_letters_and_passages_come_first() -> None:
    sample = Sample("q", "Which?", choices=("red", "blue"), context=("A passage.",))
    assert prompts.question_parts(sample) == "Context:\nA passage.\n\nWhich?\n\n(A) red\n(B) blue"


def test_choices_beyond_z_get_two_letters() -> None:
    assert [prompts.letter(i) for i in (0, 25, 26, 27)] == ["A", "Z", "AA", "AB"]


def test_images_come_as_parts_and_survive_joining() -> None:
    message = prompts.user(Sample("q", "What?", images=("data:image/png;base64,AA",)), "What?")
    [joined] = prompts.merged([message, {"role": "user", "content": "Answer."}])
    assert [part["type"] for part in joined["content"]] == ["text", "image_url", "text"]


def test_neighbours_of_one_role_are_joined_and_empty_messages_left_out() -> None:
    said = [("user", "a"), ("assistant", ""), ("user", "b")]
    chat = [{"role": role, "content": text} for role, text in said]
    assert prompts.merged(chat) == [{"role": "user", "content": "a\n\nb"}]


def test_own_messages_are_the_assistants_and_others_have_a_name() -> None:
    debate = debate_from("A B")
    turn = Turn(debate.agents[1])
    view = [*debate.transcript.messages, Message(9, 1, 0, None, "say", "Time is short.")]
    assert prompts.discussion(debate, turn, view) == [
        {"role": "user", "content": "Agent 1: I say A"},
        {"role": "assistant", "content": "I say B"},
        {"role": "user", "content": "Note: Time is short."}]


def message(answer: str | None, move: str = "improve", agreement: bool | None = None) -> Message:
    return Message(0, 1, 0, 0, move, "text", answer=answer, key=answer, agreement=agreement)


def test_the_current_draft_is_the_latest_draft_or_disagreeing_improvement() -> None:
    draft, other = message("1", "draft"), message("2", agreement=False)
    assert prompts.current_draft([draft]) is draft
    assert prompts.current_draft([draft, other]) is other
    assert prompts.current_draft([draft, other, message("3", agreement=True)]) is other


def test_feedback_and_what_could_not_be_read_are_no_drafts() -> None:
    draft = message("1", "draft")
    unread = [message(None, "feedback", False), message(None, agreement=False)]
    assert prompts.current_draft([draft, *unread]) is draft
    assert prompts.current_draft([message("4", "moderate")]) is None
    assert prompts.current_draft([]) is None


@pytest.mark.parametrize(("text", "found"), [
    ('{"answer": "B"}', {"answer": "B"}),
    ('```json\n{"answer": 3}\n```', {"answer": 3}),
    ('Like {"answer": "X"}: here is mine {"answer": "B"}', {"answer": "B"}),
    ("{answer: 'B', reasoning: 'because'", {"answer": "B", "reasoning": "because"}),
    ('{"answer": "B", "reasoning": "cut off he', {"answer": "B", "reasoning": "cut off he"}),
    ('[{"answer": "B"}, {"answer": "C"}]', {"answer": "B"}),
    ('[AGREE] as in [1]: {"answer": "B"}', {"answer": "B"}),
    ("plain prose", None),
    ("", None),
    ("the set {1, 2}", None),
    (r"\frac{1}{2}", None),
])
def test_json_is_found_in_prose_and_repaired(text: str, found: dict[str, object] | None) -> None:
    assert prompts.read_json(text) == found


@pytest.mark.parametrize("text", ["{" * 200_000, '{"a":' * 40_000, "not " * 50_000, "{" + " " * 200_000,
                                  '{"a": [' * 30_000, '"{' * 100_000, "［" * 200_000, "\x00" * 200_000])
def test_a_huge_hostile_reply_is_read_in_proportion(text: str, in_proportion: Callable[..., None]) -> None:
    in_proportion(prompts.read_json, text)
    in_proportion(prompts.read_agreement, text)
    assert prompts.read_agreement(text)[0] is False


@pytest.mark.parametrize(("value", "share"), [
    (0.8, 0.8), ("0.8", 0.8), ("80 %", 0.8), (80, 0.8), (1, 1.0), (0, 0.0), ("high", None), (None, None),
    (True, None), (-1, None), (1000, None), (float("nan"), None), ("1e400", None), ("9" * 5000, None),
])
def test_confidence_is_a_share_or_nothing(value: object, share: float | None) -> None:
    assert prompts.as_share(value) == share
