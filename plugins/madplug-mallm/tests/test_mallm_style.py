"""The style of collective refinement."""

from madplug_mallm.collective import Collective
from madplug_testing import play
from madplug_turns import Simultaneous
from madplug_visibility import PreviousRound


def run(style=None, rounds=2, agents=3, **more):
    return play(styles=[style or Collective()], turns=Simultaneous(), visibility=PreviousRound(), rounds=rounds,
                agents=agents, replies=lambda request: f"answer of {request.agent}", **more)


def test_the_persona_can_stand_last_so_that_prompts_share_their_beginning():
    [first, *_] = run(Collective(persona_place="last"), rounds=1).requests
    assert [m["role"] for m in first.messages] == ["user"]
    assert "the question\n\nYour role: Agent 1." in first.messages[0]["content"]


def test_nobody_is_asked_whether_it_agrees():
    played = run()
    assert {m.agreement for m in played.messages} == {None}
    assert "agree" not in "".join(played.prompts).lower()
    assert Collective().gives == frozenset()


def test_prompts_are_options_and_empty_ones_are_left_out():
    style = Collective(frame="TASK {question}", solve="GO {braces}", refine="", step_by_step=False, persona="")
    played = run(style)
    assert played.prompts[0] == "TASK the question\n\nGO {braces}\nReply with the answer and nothing else."
    assert played.prompts[3].endswith("\n\nReply with the answer and nothing else.")
