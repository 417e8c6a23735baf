"""Who voted for an answer gave it, however their last message puts it."""

from madplug import Agent, DebateResult, Decision, Message, Persona, Sample, Vote
from madplug_ask.command import _support


def test_agents_that_voted_for_the_answer_count():
    agents = tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(3))
    said = tuple(Message(i, 1, 0, i, "improve", "the city", answer="the city", key="city of paris") for i in range(2))
    decision = Decision("paris", agreed=True, votes=(Vote(0, {"paris": 1}), Vote(1, {"paris": 1})))
    debate = DebateResult("c", 0, Sample("q1", "?"), (), agents, said, decision)
    assert _support(debate) == "2 of 3 agents gave it (agreed); Agent 3: did not speak"
