"""Reading a reply by rule, by a model, or by a model where the rule finds nothing."""

import pytest
from tests_support import made

from madplug import Decision, DecisionProtocol, Plan, Reply, Sample, Style, Turn
from madplug_answers import Choice, Free, Number, Text
from madplug_testing import play

CITIES = Sample("q1", "Where does the Spree flow?", choices=("Paris", "Berlin"))
VAGUE = "It must be the German one."
BOTH = ["discuss", "extract"]


def answers_of(played):
    return [m.answer for m in played.messages]


def purposes(played):
    return [r.purpose for r in played.requests]


def talk(format, said, copied="(B)", *, sample=CITIES, agents=1, **more):
    """A debate in which every agent says `said`, and a model that is asked to extract says `copied`."""
    return play(answers=format, agents=agents, sample=sample, **more,
                replies=lambda request: copied if request.purpose == "extract" else said)


@pytest.mark.parametrize(("format", "said", "copied", "asked", "answers"), [
    (Choice(), VAGUE, "(B)", ["discuss"], [None]),  # by rule, no model is asked
    (Choice(extract="regex_then_llm"), VAGUE, "(B)", BOTH, ["B"]),
    (Choice(extract="regex_then_llm"), "Final answer: (A)", "(B)", ["discuss"], ["A"]),
    (Choice(extract="llm"), "Final answer: (A)", "(B)", BOTH, ["B"]),
    (Choice(extract="llm"), "Final answer: (A)", "neither", BOTH, [None]),
    (Free(), "I agree with Ada: one, two.", "One, two.", BOTH, ["One, two."]),
    (Free(extract="regex"), "I agree.\nOne, two.", "(B)", ["discuss"], ["I agree.\nOne, two."]),
    *((Text(), said, "(B)", ["discuss"], [answer]) for said, answer in (
        ("Final answer: The Spree", "The Spree"), ("The Spree", "The Spree"),
        ("I thought about it.\nIt is hard.", None), ("Agent 2 says the answer is London.", None),
        ("Others claim that the answer is London", None)))])
def test_a_model_is_asked_as_the_option_says(format, said, copied, asked, answers):
    sample = CITIES if isinstance(format, Choice) else Sample("q", "Summarise.")
    played = talk(format, said, copied, sample=sample)
    assert (purposes(played), answers_of(played)) == (asked, answers)


@pytest.mark.parametrize(("options", "answers", "calls"), [
    ({"extract": "regex"}, ["4", "4", "4", "4"], 0), ({"extract": "regex_then_llm"}, ["4", "4", "4", "4"], 12),
    ({"extract": "llm"}, ["4", "4", "5", "5"], 12),  # for the decision, only the last round is read
    ({"extract": "llm", "extract_when": "every_message"}, ["5"] * 4, 12)])
def test_which_messages_a_model_reads_and_how_many_calls_are_announced(options, answers, calls):
    assert answers_of(talk(Number(**options), "4", copied="5", agents=2, rounds=2)) == answers
    assert Number(**options).calls(Plan(agents=3, rounds=4, turns=3)) == calls


def test_a_decision_protocol_can_have_a_reply_read_by_a_model_in_any_round():
    class Asks(DecisionProtocol):
        name = "asks"

        async def after_round(self, debate):
            said = debate.transcript.messages[-1].content
            return Decision(await debate.answers.extract(debate, Turn(debate.agents[0], "extract"), said))

        def at_end(self, debate):
            raise AssertionError

    played = talk(Choice(extract="llm"), VAGUE, rounds=3, decision=Asks())
    assert (played.decision.key, purposes(played)) == ("B", ["discuss", "extract"])


def test_the_request_has_question_options_reply_and_form_and_its_prompt_is_an_option():
    prompt = talk(Choice(extract="llm"), "I say {question} and {B}").prompts[-1]
    for text in ("Where does the Spree flow?", "(B) Berlin", "I say {question} and {B}", "`Final answer: (<letter>)`"):
        assert text in prompt
    prompt = talk(Choice(extract="llm", prompt="{persona}|{reply}|{other}"), VAGUE).prompts[-1]
    assert prompt.endswith(f"|{VAGUE}|{{other}}")


def test_without_models_the_rule_reads():
    says = made(Style, moves=frozenset({"improve"}),
                respond=lambda self, debate, turn, view: Reply("Final answer: (A)"))
    played = play(answers=Choice(extract="llm"), styles=[says], models=(), agents=1, sample=CITIES)
    assert answers_of(played) == ["A"]
