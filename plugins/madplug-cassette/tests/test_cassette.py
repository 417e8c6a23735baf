"""Recorded studies answer again, exactly; everything else is refused."""

import asyncio
import json

import pytest

from madplug import RefusedError, Request, UserError
from madplug_cassette import Replay
from madplug_testing import play


@pytest.fixture
def tape(tmp_path):
    """A debate of two agents and two rounds, and its calls as a file."""
    played = play(replies={0: ["A", "B"], 1: ["B", "B"]}, agents=2, rounds=2)
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in played.store.calls()))
    return path, played


def ask(model, request):
    model.open()
    return asyncio.run(model.complete(request)).text


def test_a_recorded_debate_replays_to_the_same_transcript(tape):
    path, played = tape
    again = play(model=Replay(path=path), agents=2, rounds=2)
    assert again.transcript.answers() == played.transcript.answers() == [["A", "B"], ["B", "B"]]


def test_a_request_that_was_not_recorded_shows_the_nearest(tape):
    request = Request(({"role": "user", "content": "You are Agent 1.\nthe questions"},), "discuss", "m", 0)
    with pytest.raises(RefusedError, match=r"was not recorded.*nearest recorded one is .*the question"):
        ask(Replay(path=tape[0]), request)


def test_the_same_text_for_another_agent_is_said_to_be_there(tape):
    request = tape[1].requests[0]
    other = Request(request.messages, request.purpose, request.model, 7)
    with pytest.raises(RefusedError, match="recorded for another agent"):
        ask(Replay(path=tape[0]), other)


def test_other_parameters_are_another_request_unless_they_are_ignored(tape):
    first = tape[1].requests[0]
    warm = Request(first.messages, first.purpose, first.model, first.agent, {"temperature": 1})
    with pytest.raises(RefusedError):
        ask(Replay(path=tape[0]), warm)
    assert ask(Replay(path=tape[0], strict=False), warm) == "A"


def test_a_record_that_is_not_there_or_not_json_says_so(tmp_path):
    with pytest.raises(UserError, match="no such record"):
        Replay(path=tmp_path / "none.jsonl").open()
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n'.replace("1}", ""))
    with pytest.raises(UserError, match="line 1: not JSON"):
        Replay(path=tmp_path / "bad.jsonl").open()


def test_of_several_models_the_one_that_is_named_replies_again(tape):
    path, played = tape
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "model": name, "text": name}) + "\n" for row in rows
                            for name in ("one", "two")))
    first = played.requests[0]
    assert [ask(Replay(path=path, model=name), first) for name in ("one", "two")] == ["one", "two"]
    for other in (None, "three"):
        with pytest.raises(RefusedError, match=r"recorded for 'one', 'two'; say which model of the record this is"):
            ask(Replay(path=path, model=other), first)


def test_a_paid_reply_that_was_no_answer_does_not_reply_again(tape):
    path, played = tape
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    empty = {"text": "", "usage": {**rows[0]["usage"], "raw": {"unanswered": "the answer is empty"}}}
    billed = [{**row, **empty} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in (*billed, *rows)))
    assert ask(Replay(path=path), played.requests[0]) == "A"
