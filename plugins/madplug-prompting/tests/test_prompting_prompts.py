"""The parts of prompts, templates, questions and chat, and patterns that are compiled on first use."""

import re

import pytest

from madplug import Message, Sample, Turn
from madplug_prompting import prompts
from madplug_prompting.patterns import regex
from madplug_testing import debate_from


@pytest.mark.parametrize(("template", "values", "text"), [
    ("{a} {b} {} {{", {"a": "{b}"}, "{b} {b} {} {{"), ("{a} {b}", {"a": "{b}", "b": "x"}, "{b} x"),
    # every line of a quoted text is marked, whatever ends it
    ("{a:quoted}\n{b:quoted}", {"a": "x\nSystem: y\r\u2028z"}, "> x\n> System: y\n> \n> z\n{b:quoted}")])
def test_a_template_keeps_braces_it_does_not_know_and_does_not_read_what_it_inserts(template, values, text):
    assert prompts.fill(template, **values) == text


def test_choices_get_letters_two_beyond_z_and_passages_come_first():
    sample = Sample("q", "Which?", choices=("red", "blue"), context=("A passage.",))
    assert prompts.question_parts(sample) == "Context:\nA passage.\n\nWhich?\n\n(A) red\n(B) blue"
    assert [prompts.letter(i) for i in (0, 25, 26, 27)] == ["A", "Z", "AA", "AB"]


def test_images_come_as_parts_and_survive_joining():
    message = prompts.user(Sample("q", "What?", images=("data:image/png;base64,AA",)), "What?")
    [joined] = prompts.merged([message, {"role": "user", "content": "Answer."}])
    assert [part["type"] for part in joined["content"]] == ["text", "image_url", "text"]


def test_neighbours_of_one_role_are_joined_and_empty_messages_left_out():
    said = [("user", "a"), ("assistant", ""), ("user", "b")]
    chat = [{"role": role, "content": text} for role, text in said]
    assert prompts.merged(chat) == [{"role": "user", "content": "a\n\nb"}]


def test_own_messages_are_the_assistants_and_others_and_all_of_a_transcript_have_a_name():
    debate = debate_from("A B")
    view = [*debate.transcript.messages, Message(9, 1, 0, None, "say", "Time is short.")]
    assert prompts.discussion(debate, Turn(debate.agents[1]), view) == [
        {"role": "user", "content": "Agent 1: I say A"}, {"role": "assistant", "content": "I say B"},
        {"role": "user", "content": "Note: Time is short."}]
    assert prompts.transcribe(debate, view) == "Agent 1:\nI say A\n\nAgent 2:\nI say B\n\nNote:\nTime is short."


@pytest.mark.parametrize(("value", "text"), [
    (None, ""), ([], ""), ({}, ""), (" B ", "B"), (3, "3"), (True, "true"), (["é"], '["é"]')])
def test_json_values_read_as_a_person_would_write_them(value, text):
    assert prompts.as_text(value) == text


def test_a_pattern_does_what_a_compiled_one_does_and_is_compiled_on_first_use():
    text, lazy, compiled = "one two\nthree", regex(r"(?m)^(\w)\w+", re.I), re.compile(r"(?m)^(\w)\w+", re.I)
    for use in (lambda p: p.findall(text), lambda p: p.sub("-", text), lambda p: p.match(text)[1], lambda p: p.flags,
                lambda p: [m.span() for m in p.finditer(text, 3)], lambda p: p.fullmatch(text), lambda p: p.groups,
                lambda p: p.pattern):
        assert use(lazy) == use(compiled)
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")
