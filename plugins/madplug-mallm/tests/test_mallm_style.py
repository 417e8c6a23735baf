"""The style of collective refinement."""

from madplug import Sample
from madplug.testing import play
from madplug_mallm.collective import Collective
from madplug_turns import Simultaneous
from madplug_visibility import PreviousRound


def run(style=None, rounds=2, agents=3, **more):
    return play(styles=[style or Collective()], turns=Simultaneous(), visibility=PreviousRound(), rounds=rounds,
                agents=agents, replies=lambda request: f"answer of {request.agent}", **more)


def test_the_first_answer_is_given_alone():
    [first, *_] = run(rounds=1).requests
    assert [m["role"] for m in first.messages] == ["system", "user"]
    assert "Solve the task" in first.messages[1]["content"]
    assert "improve your answer" not in first.messages[1]["content"]


def test_later_own_answer_comes_first_then_the_others_by_name_then_the_request():
    messages = run().requests[4].messages
    assert [(m["role"], m["content"].splitlines()[0]) for m in messages[:4]] == [
        ("system", "Your role: Agent 2."), ("user", "the question"), ("assistant", "answer of 1"),
        ("user", "Agent 1: answer of 0")]
    assert "Agent 3: answer of 2" in messages[3]["content"]
    assert "improve your answer" in messages[3]["content"]


def test_the_persona_can_stand_last_so_that_prompts_share_their_beginning():
    [first, *_] = run(Collective(persona_place="last"), rounds=1).requests
    assert [m["role"] for m in first.messages] == ["user"]
    assert "the question\n\nYour role: Agent 1." in first.messages[0]["content"]


def test_only_the_round_before_is_shown_and_a_turn_is_one_call():
    played = run(rounds=3)
    assert [list(m.seen) for m in played.transcript.of_round(3)] == [[3, 4, 5], [4, 3, 5], [5, 3, 4]]
    assert played.result.calls == 9


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


def test_images_go_with_the_task():
    sample = Sample("q", "what is it?", images=("data:image/png;base64,AA==",))
    first = run(rounds=1, sample=sample).requests[0].messages[1]["content"]
    assert {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}} in first
