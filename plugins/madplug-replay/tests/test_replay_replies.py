"""Recorded replies as a model: a style's own prompts around what was really said."""

import asyncio
import json

import pytest

from madplug import RefusedError, Request, UserError
from madplug_replay import Replies

QUESTIONS = [{"qid": "a", "question": "Which is\nlarger?"}, {"qid": "b", "question": "Which is larger? Think of both."}]
SAID = [{"qid": q, "agent": agent, "round": number, "response": f"{q}{agent}{number}", "run": "one"}
        for q in "ab" for agent in (0, 1) for number in (1, 2)]


@pytest.fixture
def opened(tmp_path):
    """Opens the model of these replies to these questions."""
    def opened(said=SAID, questions=QUESTIONS, **options):
        for name, rows in (("said", said), ("questions", questions)):
            (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        model = Replies(path=tmp_path / "said.jsonl", questions=tmp_path / "questions.jsonl", **options)
        model.open()
        return model

    return opened


def ask(model, text, *, agent=0, earlier=0, purpose="discuss"):
    """What the model replies to a prompt with as many replies of the agent before."""
    chat = [{"role": "user", "content": text}]
    for _ in range(earlier):
        chat += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "Again."}]
    return asyncio.run(model.complete(Request(tuple(chat), purpose, "m", agent=agent))).text


def test_the_reply_is_that_of_the_agent_and_round_to_the_longest_question_in_the_prompt(opened):
    model = opened()
    assert ask(model, "Please: Which is larger?  (A) or (B)") == "a01"
    assert ask(model, "Which is larger? Think of both.", agent=1, earlier=1) == "b12"


def test_only_selected_replies_are_known_and_the_same_row_twice_is_no_problem(opened):
    other = [{**row, "run": "two", "response": "other"} for row in SAID]
    model = opened([*SAID, SAID[0], *other], [*QUESTIONS, QUESTIONS[0]], select={"run": "one"})
    assert ask(model, "Which is larger?") == "a01"


@pytest.mark.parametrize(("asked", "said"), [
    ({"text": "Something else"}, "no question"), ({"text": "Which is larger?", "earlier": 2}, "no reply of agent 0 in"),
    ({"text": "Which is larger?", "agent": 2}, "no reply of agent 2"),
    ({"text": "Which is larger?", "agent": None}, "only discussion"),
    ({"text": "Which is larger?", "purpose": "vote"}, "'vote'")])
def test_what_was_not_recorded_is_refused(opened, asked, said):
    with pytest.raises(RefusedError, match=said):
        ask(opened(), **asked)


def test_every_problem_of_both_files_is_told_at_once(opened):
    wrong = [{**SAID[0], "agent": "0"}, {**SAID[1], "round": True}, {**SAID[2], "response": None}]
    with pytest.raises(UserError) as caught:
        opened([*SAID, *wrong], [*QUESTIONS, {"qid": "c", "question": " "}])
    told = "\n".join(map(str, caught.value.problems))
    assert len(caught.value.problems) == 4
    assert all(name in told for name in ("agent", "round", "response", "question"))


@pytest.mark.parametrize(("said", "questions", "told"), [
    ([*SAID, {**SAID[0], "run": "two", "response": "other"}], QUESTIONS,
     "line 9: is another reply of agent 0 in round 1 to 'a' than line 1; choose one with `select`"),
    (SAID, [*QUESTIONS, {"qid": "b", "question": "Which  is larger?"}], "line 3: asks the same as line 1"),
    (SAID, [*QUESTIONS, {"qid": "a", "question": "Why?"}], "line 3: has the id 'a' of line 1"),
    ([{"agent": 0, "round": 1, "response": "x"}], [{"question": "Why?"}], "column 'id': is None"),
    ([{**SAID[0], "qid": ["a"]}], QUESTIONS, r"column 'qid': is \['a'\]"),
    (SAID, [{"qid": "z", "question": "Why?"}], "belongs to a question")])
def test_a_reply_that_could_be_another_one_or_has_no_question_is_refused(opened, said, questions, told):
    with pytest.raises(UserError, match=told):
        opened(said, questions)
