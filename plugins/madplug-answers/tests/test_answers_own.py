"""Whose answer a reply states: quotations, reports, negations, thoughts and tags are not its author's answer."""

import pytest

from madplug import Sample
from madplug_answers import Choice, Free, Math, Number, Text, YesNo
from madplug_answers.own import parse_reply
from madplug_testing import play

CITIES = Sample("q1", "Where does the Spree flow?", choices=("Paris", "London", "Rome", "Berlin"))
ANY = Sample("q2", "What?")

OTHERS = [
    'Agent 2 wrote: "Final answer: {other}"', "Agent 2 wrote: “I disagree. The answer is {other}, surely.”",
    "> Final answer: {other}", "Agent 2:\n> I looked it up.\n> Final answer: {other}",
    "Agent 2 wrote:\n```\nFinal answer: {other}\n```", "One agent's solution: ```the answer is {other}```",
    "Agent 2 wrote:\n```\nFinal answer: {other}", "(Agent 2 said the answer is {other})",
    "(Agent 2 said the answer is {other}.)", "Agent 2 says the answer is {other}.",
    "Agents 2 and 3 say that the answer is {other}.", "Others claim that the answer is {other}.",
    "Two other agents still think the answer is {other}", "According to Agent 2, the answer is {other}.",
    "In Agent 2's view, the answer is {other}.", "Agent 2's answer is {other}.", "**Agent 2's final answer:** {other}",
    "The answer of Agent 2 is {other}.", "Agent 2: The answer is {other}.", "- **Agent 2**: the answer is {other}",
    "Ada believes the answer is {other}.", "They said that the answer is {other}.",
    "Agent 2 said:\nFinal answer: {other}", 'Agent 2 said: {{"answer": "{other}"}}',
    'Agent 2 said:\n```json\n{{"answer": "{other}"}}\n```']
FORMATS = {
    "choice": (Choice(), CITIES, "(A)", "(B)", "A"), "several": (Choice(several=True), CITIES, "(A), (C)", "(B)", "AC"),
    "number": (Number(), ANY, "12", "17", "12"), "math": (Math(), ANY, r"$\frac{1}{2}$", r"$\frac{1}{3}$", "0.5"),
    "yesno": (YesNo(), ANY, "yes", "no", "yes"), "text": (Text(), ANY, "Paris", "London", "paris")}
each_format = pytest.mark.parametrize("format", FORMATS)


@each_format
@pytest.mark.parametrize("said", OTHERS)
def test_another_agent_s_answer_after_one_s_own_changes_nothing(format, said):
    answers, sample, mine, other, key = FORMATS[format]
    assert answers.canonical(f"Final answer: {mine}\n\n{said.format(other=other)}", sample) == key
    assert answers.canonical(f"I thought about it. The answer is {mine}.\n{said.format(other=other)}", sample) == key


@pytest.mark.parametrize("format", ["choice", "number", "math", "yesno"])
@pytest.mark.parametrize("said", [said for said in OTHERS if not said.startswith(">")])
def test_a_reply_that_only_reports_an_answer_has_none(format, said):
    answers, sample, _, other, _ = FORMATS[format]
    assert answers.canonical(f"I have read the discussion.\n{said.format(other=other)}", sample) is None


@each_format
@pytest.mark.parametrize("reply", [
    '{{"answer": "{mine}"}}', '{{"reason": "The answer is {other}? No.", "Final_Answer": "{mine}", "confidence": 0.5}}',
    'I looked it up.\n```json\n{{"answer": "{mine}",\n "steps": ["{other}"]}}\n```',
    'At first I took {other}.\n{{"answer": "{other}"}}\nNow:\n{{"answer": "{mine}"}}\n'])
def test_a_json_object_at_the_end_gives_its_answer(format, reply):
    answers, sample, mine, other, key = FORMATS[format]
    mine = mine.replace("\\", "\\\\")
    assert answers.canonical(reply.format(mine=mine, other=other.replace("\\", "\\\\")), sample) == key


@pytest.mark.parametrize("format", ["choice", "number", "yesno"])
def test_a_json_object_with_no_answer_gives_none(format):
    answers, sample, _, _, _ = FORMATS[format]
    assert answers.canonical('{"answer": null}', sample) is None


@each_format
@pytest.mark.parametrize("reply", [
    "Agent 2 says the answer is {other}, but the answer is {mine}.",
    "Agent 2 says the answer is {other}; I disagree. Final answer: {mine}",
    "> Final answer: {other}\n\nI do not agree with this. Final answer: {mine}",
    "Final answer: {other}\n\nI was wrong about that.\n\nFinal answer: {mine}",
    'Final answer: {mine} (and not "the answer is {other}", as Agent 2 has it)',
    "Agent 2: The answer is {other}.\nAgent 3: The answer is {other}.\nFinal answer: {mine}"])
def test_the_last_own_answer_counts(format, reply):
    answers, sample, mine, other, key = FORMATS[format]
    if format == "text" and "(and" in reply:
        pytest.skip("a remark that is not only a report belongs to the text")
    assert answers.canonical(reply.format(mine=mine, other=other), sample) == key


@each_format
@pytest.mark.parametrize("reply", [
    'Final answer: "{mine}"', "Final answer: '{mine}'", "Final answer:\n```\n{mine}\n```", "`Final answer: {mine}`",
    "```\nFinal answer: {mine}\n```", "> Final answer: {mine}", "**Final answer:** {mine}", "**Final answer**: {mine}",
    "I agree with Agent 2 that the answer is {mine}.", "As Agent 2 says, the answer is {mine}.",
    "Agent 2 correctly says that the answer is {mine}.", "Agent 2 is right: the answer is {mine}.",
    "Agent 2 got it wrong, so the answer is {mine}.", "Agent 1: Final answer: {mine}",
    "The text says that the answer is {mine}.", "Therefore I say the answer is {mine}."])
def test_one_s_own_answer_in_quotation_marks_or_shared_with_another_agent_counts(format, reply):
    answers, sample, mine, _, key = FORMATS[format]
    assert answers.canonical(reply.format(mine=mine), sample) == key


@pytest.mark.parametrize(("text", "expected"), [
    ("I pick (A). The answer is not (B).", "A"), ("Final answer: (A), not (B)", "A"), ("(A) is right, not (B)", "A"),
    ("Final answer: (A)\nnot (B)", "A"), ("The answer is not B but A.", "A"), ("The answer is not (B), but (A)", "A"),
    ("The answer isn't (B).", None), ("It cannot be (B).", None), ("I choose (A) rather than (B).", "A"),
    ("I choose (A) instead of option (B).", "A"), ("(A) fits. (B) and (C) are wrong.", "A"),
    ("(A) fits, (B) is not correct", "A"), ("Neither (B) nor (C): (A)", "A"), ("I think (A). Others chose (B).", "A"),
    ("I say (A). Agent 2 prefers (B).", "A")])
def test_a_letter_that_is_denied_is_no_answer(text, expected):
    assert Choice().canonical(text, CITIES) == expected


@pytest.mark.parametrize(("format", "text", "expected"), [
    (Number(), "The answer is not 17 but 12.", "12"), (Number(), "I get 12. The answer is not 17.", "12"),
    (Number(), "I get 12. Agent 2 got 17.", "12"), (Number(), "It is 12, as I agree with Agent 2.", "12"),
    (Math(), "The answer is $x+1$. The answer is not $x$.", "x+1"),
    (Text(), "The answer is not London but Paris.", "paris"),
    (Text(), "The answer is Paris.\nThe answer is not London.", "paris"),
    (Text(), "Final answer: Not Dark Yet", "not dark yet"),
    (Text(), "Final answer: Paris (Agent 2 said London)", "paris"),
    (Free(), "Final answer:\nA summary.\n> Final answer: theirs", "A summary.\n> Final answer: theirs"),
    (Free(), "Final answer:\n```python\nprint(1)\n```", "```python\nprint(1)\n```"),
    (Number(), r"Agent 2 has \boxed{17}. Final answer: 12", "12"),
    (Number(), r"First \boxed{17}.\n\nFinal answer: 12", "12"),
    (Math(), "First \\boxed{17}.\n\nFinal answer: 12", "12"),
    (YesNo(), "First \\boxed{no}.\n\nFinal answer: yes", "yes")])
def test_quotations_and_denials_in_every_format(format, text, expected):
    assert format.canonical(text.replace("\\n", "\n"), ANY) == expected


@each_format
@pytest.mark.parametrize("reply", [
    "<think>Final answer: {other}</think>Final answer: {mine}",
    "Final answer: {mine}\n<think>Final answer: {other}</think>",
    "Final answer: {mine}\n<think>\nFinal answer: {other}", "Final answer: {other}</think>\nFinal answer: {mine}",
    "<THINKING>the answer is {other}</THINKING>Final answer: {mine}",
    "<think>a <think> tag</think>Final answer: {mine}<think>Final answer: {other}", "[AGREE] Final answer: {mine}",
    "Final answer: {mine} [DISAGREE]", "[ disagree ] Final answer: {mine}"])
def test_thoughts_and_tags_are_never_read(format, reply):
    answers, sample, mine, other, key = FORMATS[format]
    assert answers.canonical(reply.format(mine=mine, other=other), sample) == key


@pytest.mark.parametrize("format", [Choice(), Number(), YesNo(), Math(), Text(), Free()])
def test_a_reply_that_is_nothing_but_thought_has_no_answer(format):
    for text in ("<think>The answer is (A), yes, 7", "<think>(A) 7 yes</think>", "(A) 7 yes</think>", "[AGREE]"):
        assert format.canonical(text, CITIES) is None


@pytest.mark.parametrize(("thought", "said", "answer"), [
    ("<think>The answer is (A)", "", None), ("<think>secret</think>", "It is London.", "B")])
def test_a_model_that_extracts_is_not_shown_thoughts_and_not_asked_about_nothing_else(thought, said, answer):
    played = play(answers=Choice(extract="llm"), agents=1, sample=CITIES,
                  replies=lambda r: "(B)" if r.purpose == "extract" else thought + said)
    assert [m.answer for m in played.messages] == [answer]
    assert [said in prompt and thought not in prompt for prompt in played.prompts[1:]] == [True] * bool(said)


@pytest.mark.parametrize("tag", ["**[AGREE]** ", "__[Disagree]__\n", "[AGREED] ", "[ agreement ] ",
                                 "*[DISAGREEMENT]*: ", "**[AGREE]:** ", "[DISAGREE] - ", "[DISAGREE] "])
def test_a_tag_that_marks_agreement_is_no_part_of_an_answer_however_it_is_written(tag):
    said = "It is unknown to me, but I propose the X Choir"
    for format in (Text(), Free(extract="regex")):
        assert play(answers=format, replies=[tag + said], agents=1, sample=ANY).messages[0].answer == said
    assert Free().canonical(tag + said, ANY) == said


def test_blanking_keeps_every_position():
    text, own = parse_reply(
        '**Final answer:** (A)\n> *no*, `(B)`\n"Well, the answer is **(B)**," Agent 2 said.\nI say (A)')
    assert "Final answer: (A)" in own
    assert own.endswith("I say (A)")
    assert "(B)" not in own
    assert all(kept in (" ", original) for original, kept in zip(text, own, strict=True))
