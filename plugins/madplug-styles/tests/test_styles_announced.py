"""An agent that agrees and announces an answer of its own keeps it, in whatever spelling."""

import pytest

from madplug import Sample
from madplug_styles import Simple
from madplug_testing import play

answers = pytest.importorskip("madplug_answers", reason="it reads the letters")
turns = pytest.importorskip("madplug_turns", reason="agents speak one after the other")


@pytest.mark.parametrize(("said", "key"), [
    ("Final answer: B", "B"), ("**Final Answer:** (B)", "B"), ("The answer is B.", "B"),
    ("I have nothing to add.", "A"), ("Their answer is B, and I stay with ours.", "A"),
    ("One wrote: \"the answer is B\".", "A"), ("The answer is well founded.", "A")])
def test_an_agreeing_agent_keeps_the_answer_that_it_announces(said, key):
    played = play(agents=2, styles=[Simple()], answers=answers.Choice(), sample=Sample("q1", "Which?", ("x", "y")),
                  replies={0: ["It is x.\nFinal answer: (A)"], 1: [f"[AGREE] {said}"]}, turns=turns.RoundRobin())
    assert [m.key for m in played.messages] == ["A", key]


