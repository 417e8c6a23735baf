"""What is said of the agents after a debate: who gave its answer, who only supports it, and what the rest answered."""

import pytest

from madplug import Agent, DebateResult, Decision, Message, Persona, Sample, Vote
from madplug_ask.command import _support

FOR_B = (Vote(1, {"B": 1}), Vote(2, {"B": 1}))


def support(said, decision):
    """What is said of three agents; said: their answers in turn, `-` for a message without one, `.` for silence."""
    agents = tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(3))
    keys = [(i % 3, None if key == "-" else key) for i, key in enumerate(said.split()) if key != "."]
    messages = tuple(Message(i, 1, 0, agent, "improve", str(key), answer=key, key=key)
                     for i, (agent, key) in enumerate(keys))
    return _support(DebateResult("c", 0, Sample("q1", "?"), (), agents, messages, decision))


@pytest.mark.parametrize(("said", "decision", "told"), [
    (". B B", Decision("B", agreed=True, votes=FOR_B), "2 of 3 agents gave it (agreed); Agent 1: did not speak"),
    ("D B D", Decision("B", agreed=True, votes=FOR_B),
     "2 of 3 agents support it (agreed); Agent 3 supports it, but answered D; Agent 1: D"),
    ("D D D . B -", Decision("B", agreed=True, votes=FOR_B), "2 of 3 agents support it (agreed); Agent 1: D"),
    ("B D -", Decision("D", fallback=True, votes=(Vote(2, {"D": 1}),)),
     "1 of 3 agents supports it (decided by the fallback); Agent 1: B; Agent 2: D"),
    ("B B B", Decision("B", agreed=True, votes=FOR_B), "3 of 3 agents gave it (agreed)"),
    ("B B B - B B", Decision("B", agreed=True, votes=FOR_B),
     "2 of 3 agents gave it (agreed); Agent 1: no answer at the end"),
    ("B B D", Decision("B", agreed=True), "2 of 3 agents gave it (agreed); Agent 3: D"),
    ("D - D", Decision("B", agreed=True, reason="the judge"),
     "the judge; 0 of 3 agents gave it; Agent 1: D; Agent 2: no answer; Agent 3: D"),
    ("D B -", Decision.undecided("a tie"), "undecided; Agent 1: D; Agent 2: B; Agent 3: no answer"),
    (f"{'x' * 61} B B", Decision("B", votes=FOR_B), f"2 of 3 agents gave it (not agreed); Agent 1: {'x' * 57}...")],
    ids=["gave", "supports one and wrote another", "supports without an answer", "supports another's", "not counted",
         "unread at the end",
         "no votes", "a judge", "undecided", "long"])
def test_who_gave_the_answer_and_who_supports_it(said, decision, told):
    assert support(said, decision) == told
