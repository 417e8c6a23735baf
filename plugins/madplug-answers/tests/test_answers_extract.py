"""Reading a reply by rule, by a model, or by a model where the rule finds nothing."""

import pytest

from madplug import Plan, Sample
from madplug.testing import play
from madplug_answers import Choice, Free, Number, Text

CITIES = Sample("q1", "Where does the Spree flow?", choices=("Paris", "Berlin"))
VAGUE = "It must be the German one."


def answers_of(played):
    return [m.answer for m in played.messages]


def purposes(played):
    return [r.purpose for r in played.requests]


def talk(format, said, copied="(B)", *, sample=CITIES, agents=1, rounds=1, **more):
    """A debate in which every agent says `said`, and a model that is asked to extract says `copied`."""
    return play(answers=format, agents=agents, rounds=rounds, sample=sample, **more,
                replies=lambda request: copied if request.purpose == "extract" else said)


def test_by_rule_no_model_is_asked():
    played = talk(Choice(), VAGUE, agents=3, rounds=2)
    assert purposes(played) == ["discuss"] * 6
    assert answers_of(played) == [None] * 6


def test_a_model_reads_what_the_rule_cannot():
    assert answers_of(talk(Choice(extract="regex_then_llm"), VAGUE)) == ["B"]


def test_a_model_is_not_asked_where_the_rule_finds_an_answer():
    played = talk(Choice(extract="regex_then_llm"), "Final answer: (A)")
    assert (purposes(played), answers_of(played)) == (["discuss"], ["A"])


def test_a_model_reads_everything_with_llm():
    played = talk(Choice(extract="llm"), "Final answer: (A)")
    assert (purposes(played), answers_of(played)) == (["discuss", "extract"], ["B"])


def test_a_copy_that_cannot_be_read_is_no_answer():
    assert answers_of(talk(Choice(extract="llm"), "Final answer: (A)", copied="neither")) == [None]


def test_for_the_decision_only_the_last_round_is_read_by_a_model():
    played = talk(Number(extract="llm"), "4", copied="5", agents=2, rounds=2)
    assert answers_of(played) == ["4", "4", "5", "5"]


def test_every_message_can_be_read_by_a_model():
    played = talk(Number(extract="llm", extract_when="every_message"), "4", copied="5", agents=2, rounds=2)
    assert answers_of(played) == ["5"] * 4


def test_a_decision_protocol_can_have_a_reply_read_by_a_model_in_any_round():
    from madplug import Decision, DecisionProtocol, Turn

    class Asks(DecisionProtocol):
        name = "asks"

        async def after_round(self, debate):
            message = debate.transcript.messages[-1]
            turn = Turn(debate.agents[0], "extract")
            return Decision(await debate.answers.extract(debate, turn, message.content))

        def at_end(self, debate):
            raise AssertionError

    played = talk(Choice(extract="llm"), VAGUE, rounds=3, decision=Asks())
    assert (played.decision.key, purposes(played)) == ("B", ["discuss", "extract"])


def test_the_request_has_question_options_reply_and_form():
    played = talk(Choice(extract="llm"), "I say {question} and {B}")
    prompt = played.prompts[-1]
    assert "Where does the Spree flow?" in prompt
    assert "(B) Berlin" in prompt
    assert "I say {question} and {B}" in prompt
    assert "`Final answer: (<letter>)`" in prompt


def test_the_prompt_is_an_option():
    played = talk(Choice(extract="llm", prompt="{persona}|{reply}|{other}"), VAGUE)
    assert played.prompts[-1].endswith(f"|{VAGUE}|{{other}}")


def test_without_models_the_rule_reads():
    from madplug import Reply, Style

    class Says(Style):
        name = "says"
        moves = frozenset({"improve"})

        def respond(self, debate, turn, view):
            return Reply("Final answer: (A)")

    played = play(answers=Choice(extract="llm"), styles=[Says()], models=(), agents=1, sample=CITIES)
    assert answers_of(played) == ["A"]


def test_free_text_without_a_closing_line_is_read_by_a_model():
    played = talk(Free(), "I agree with Ada: one, two.", copied="One, two.", sample=Sample("q", "Summarise."))
    assert answers_of(played) == ["One, two."]


def test_free_text_by_rule_is_the_whole_reply():
    played = talk(Free(extract="regex"), "I agree.\nOne, two.", sample=Sample("q", "Summarise."))
    assert answers_of(played) == ["I agree.\nOne, two."]


@pytest.mark.parametrize(("said", "answer"), [
    ("Final answer: The Spree", "The Spree"), ("The Spree", "The Spree"), ("I thought about it.\nIt is hard.", None)])
def test_a_long_reply_that_marks_no_text_gives_no_answer(said, answer):
    assert answers_of(talk(Text(), said, sample=Sample("q", "Which river?"))) == [answer]


@pytest.mark.parametrize(("options", "calls"), [
    ({}, 0), ({"extract": "llm"}, 12), ({"extract": "regex_then_llm"}, 12),
    ({"extract": "llm", "extract_when": "every_message"}, 12)])
def test_calls_are_counted_before_a_run(options, calls):
    assert Choice(**options).calls(Plan(agents=3, rounds=4, turns=3)) == calls
