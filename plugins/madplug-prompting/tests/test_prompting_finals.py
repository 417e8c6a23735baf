"""What each voter ends on."""

import pytest
from tests_support import Letter

from madplug import Message, Persona, Turn
from madplug.transcript import Transcript
from madplug_prompting.asking import ask_for_answer
from madplug_prompting.finals import FinalOptions, final_answers, last_message, last_messages, recorded_answers
from madplug_testing import debate_from, wait_for

ROWS = [["A", "B"], ["C", None], [None, None]]


def debate(rows=ROWS, replies=(), **more):
    return debate_from(rows, replies=replies, answers=Letter(), **more)


def finals(debate, final):
    return wait_for(final_answers(debate, FinalOptions(final=final, extract="Write it down.")))


def asked(rows, final, said="Z"):
    """What the voters end on, and what they were asked."""
    requests = []
    found = finals(debate(rows, lambda request: requests.append(request) or said), final)
    return [f.key for f in found], requests


@pytest.mark.parametrize(("agent", "options", "key"), [
    (0, {}, "B"), (0, {"until": 1}, "A"), (0, {"since": 3}, ""), (1, {}, None), (1, {"readable": True}, "C"),
    (1, {"since": 2, "readable": True}, "")])
def test_the_last_message_may_be_looked_for_in_some_rounds_only(agent, options, key):
    message = last_message(debate(), agent, **options)
    assert (message.key if message else "") == key


def test_the_last_messages_are_the_voters_in_their_order():
    people = [Persona("x"), Persona("y", votes=False), Persona("z")]
    assert list(last_messages(debate(personas=people))) == [0, 2]
    assert list(last_messages(debate(personas=people), readable=True)) == [0]
    found = debate()
    assert list(last_messages(found, reversed(found.agents))) == [2, 1, 0]


def test_what_is_recorded_is_the_last_readable_answer_or_the_whole_message_without_a_stance():
    assert [(f.agent, f.text, f.key) for f in recorded_answers(debate())] == [
        (0, "B", "B"), (1, "C", "C"), (2, "I say None", None)]
    assert recorded_answers(debate(), until=1)[0].key == "A"
    assert recorded_answers(debate(), until=0) == []
    assert [f.text for f in recorded_answers(debate([[None]], content="[DISAGREE] Hm"))] == ["Hm"]


@pytest.mark.parametrize(("final", "said", "voters", "keys"), [
    ("recorded", "", [], ["B", "C", None]), ("ask_if_unread", "It is Z", [1, 2], ["B", "Z", "Z"]),
    ("ask", "It is Z", [0, 1, 2], ["Z", "Z", "Z"]),
    ("ask", "hm", [0, 1, 2], ["B", "C", None])])  # what is on record counts where the reply cannot be read
def test_voters_are_asked_as_the_option_says(final, said, voters, keys):
    found, requests = asked(ROWS, final, said)
    assert found == keys
    unread = [f.unparsed for f in finals(debate(ROWS, lambda request: said), final)]
    assert unread == [final == "ask" and said == "hm", *[not said or said == "hm"] * 2]
    assert [(r.agent, r.purpose) for r in requests] == [(agent, "extract") for agent in voters]


def test_a_voter_sees_the_task_its_last_message_and_the_request():
    _, [request] = asked([["A"]], "ask")
    assert [(m["role"], m["content"]) for m in request.messages] == [
        ("system", "Your role: Agent 1."), ("user", "the question"), ("assistant", "I say A"),
        ("user", "Write it down.\nAnswer with one capital letter.")]


def test_who_gave_no_solution_sees_the_discussion_and_its_previous_one():
    _, [request] = asked([["A", "B"], ["C", None]], "ask_if_unread")
    assert [m["role"] for m in request.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert request.messages[3]["content"] == "Agent 1: I say B"
    assert request.messages[-1]["content"].startswith("Your previous solution: C\nWrite it down.")


class Words(Letter):
    """Any line, or the rest of one that begins with `Final answer:`."""

    reads_any_text = True

    def canonical(self, text, sample):
        return text.rpartition("Final answer:")[2].strip().lower() or None

    def pattern(self, sample):
        return "Final answer: .+"


ADOPTED = {"content": "[AGREE]", "agreement": True, "data": {"styles": {"adopted": 0}}}


@pytest.mark.parametrize(("messages", "asked"), [
    ([{"content": "I think the choir sang there."}], True), ([{"content": "So.\nFinal answer: the choir"}], False),
    ([{"content": "<think>Final answer: the choir</think>Hm, the choir."}], True),
    ([{"content": "So.\nFinal answer: the choir"}, ADOPTED], False), ([{"content": "the choir"}, ADOPTED], True),
    ([{"content": "As JSON", "data": {"styles": {"stated": True}}}], False)])
def test_an_answer_in_words_counts_as_stated_only_in_the_closing_line(messages, asked):
    said = [Message(i, i + 1, 0, 0, "improve", answer="the choir", key="the choir", **m)
            for i, m in enumerate(messages)]
    found = debate_from([[None]], transcript=Transcript(said), answers=Words(),
                        replies=lambda request: "Final answer: X")
    assert [f.answer for f in finals(found, "ask_if_unread")] == ["x" if asked else "the choir"]


@pytest.mark.parametrize(("longest", "bound"), [(None, "*"), (40, "{0,40}")])
def test_a_reply_is_constrained_to_end_with_an_answer(longest, bound):
    requests = []
    found = debate_from("A", replies=lambda request: requests.append(request) or "so B", answers=Letter())
    chat = [{"role": "user", "content": "Which?"}]
    assert wait_for(ask_for_answer(found, Turn(found.agents[0]), chat, longest)) == "so B"
    assert (requests[0].purpose, requests[0].agent, list(requests[0].messages)) == ("discuss", 0, chat)
    assert bound in requests[0].form["regex"]
    assert requests[0].form["regex"].endswith("[A-Z]")
