"""The judge's list: what an agent that agreed ends on is the solution that it agreed with, in every paradigm."""

import pytest

from madplug_judge import Synthesis
from madplug_testing import play

answers = pytest.importorskip("madplug_answers")
styles = pytest.importorskip("madplug_styles")
orders = pytest.importorskip("madplug_turns")
shown = pytest.importorskip("madplug_visibility")
personas = pytest.importorskip("madplug_personas")
WAYS = {"memory": (orders.RoundRobin, shown.Everything), "relay": (orders.RoundRobin, shown.Relay),
        "report": (orders.DrafterFirst, shown.Report), "debate": (orders.InnerDebate, shown.InnerDebate)}
POEM = "A line about rivers, and one about the sea."
PERSONAS = [{"name": f"P{i}", "description": "A careful reader of poems."} for i in range(3)]
AGREES = "[AGREE] I agree with the current solution."


def debate(way, rounds, final):
    """The first agent proposes a text without a closing line, and the others agree; the requests that decide."""
    asked = []

    def reply(request):
        if request.purpose in ("extract", "judge"):
            asked.append(request)
            return f"Final answer: {POEM}"
        return f"[DISAGREE] {POEM}" if request.agent == 0 else AGREES

    order, visibility = WAYS[way]
    play(styles=[styles.Simple()], turns=order(), visibility=visibility(), agents=3, rounds=rounds,
         decision=Synthesis(final=final, vote_round=rounds), replies=reply, answers=answers.Free(),
         personas=[personas.Fixed(personas=PERSONAS)])
    return asked


@pytest.mark.parametrize("rounds", [3, 7])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("final", ["recorded", "ask_if_unread", "ask"])
def test_the_judge_and_who_is_asked_for_a_final_solution_see_the_one_that_was_agreed_with(way, rounds, final):
    asked = debate(way, rounds, final)
    texts = [("\n".join(m["content"] for m in request.messages), request) for request in asked]
    judged = [text for text, request in texts if request.purpose == "judge"]
    assert judged
    assert {(text.count(POEM), text.count("I agree")) for text in judged} == {(3, 0)}
    written = [text for text, request in texts if request.agent and "Write down only" in text]
    assert bool(written) == (final == "ask")
    assert all(f"Your previous solution: {POEM}" in text and "careful reader" in text for text in written)
