"""Recorded studies answer again, exactly; everything else is refused."""

import asyncio
import json
from dataclasses import replace

import pytest

from madplug import RefusedError, UserError
from madplug_cassette import Replay
from madplug_testing import play


@pytest.fixture
def tape(tmp_path):
    """A debate of two agents and two rounds, and its calls as a file, each changed in several ways."""
    def tape(*changes):
        path = tmp_path / "calls.jsonl"
        path.write_text("".join(json.dumps({**row, **change(row)}) + "\n" for change in changes or [lambda row: {}]
                                for row in played.store.calls()))
        return path

    tape.played = played = play(replies={0: ["A", "B"], 1: ["B", "B"]}, agents=2, rounds=2)
    return tape


def ask(model, request):
    model.open()
    return asyncio.run(model.complete(request)).text


def test_a_recorded_debate_replays_to_the_same_transcript(tape):
    again = play(model=Replay(path=tape()), agents=2, rounds=2)
    assert again.transcript.answers() == tape.played.transcript.answers() == [["A", "B"], ["B", "B"]]


@pytest.mark.parametrize(("change", "said"), [
    ({"messages": ({"role": "user", "content": "You are Agent 1.\nthe questions"},)},
     r"was not recorded.*nearest recorded one is .*the question"),
    ({"agent": 7}, "recorded for another agent"), ({"params": {"temperature": 1}}, "was not recorded")])
def test_a_request_that_was_not_recorded_is_refused_with_what_is_near(tape, change, said):
    other = replace(tape.played.requests[0], **change)
    with pytest.raises(RefusedError, match=said):
        ask(Replay(path=tape()), other)
    if "params" in change:
        assert ask(Replay(path=tape(), strict=False), other) == "A"


def test_a_record_that_is_not_there_or_not_json_says_so(tmp_path):
    with pytest.raises(UserError, match="no such record"):
        Replay(path=tmp_path / "none.jsonl").open()
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n'.replace("1}", ""))
    with pytest.raises(UserError, match="line 1: not JSON"):
        Replay(path=tmp_path / "bad.jsonl").open()


def test_of_several_models_the_one_that_is_named_replies_again(tape):
    path = tape(*(lambda row, name=name: {"model": name, "text": name} for name in ("one", "two")))
    first = tape.played.requests[0]
    assert [ask(Replay(path=path, model=name), first) for name in ("one", "two")] == ["one", "two"]
    for other in (None, "three"):
        with pytest.raises(RefusedError, match=r"recorded for 'one', 'two'; say which model of the record this is"):
            ask(Replay(path=path, model=other), first)


def test_a_paid_reply_that_was_no_answer_does_not_reply_again(tape):
    unanswered = {"raw": {"unanswered": "the answer is empty"}}
    path = tape(lambda row: {"text": "", "usage": row["usage"] | unanswered}, lambda row: {})
    assert ask(Replay(path=path), tape.played.requests[0]) == "A"
