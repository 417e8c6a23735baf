"""Diverse debate: the steps of each method, what is kept, what the others see, and what it costs."""

import pytest
from tests_support import Letter
from tests_support import made as made_of

from madplug import Service, UserError
from madplug.debate.cell import BoundStyle
from madplug_dmad import CCoT, Cot, DDCoT, Io, Methods, Program, StepBack
from madplug_dmad.program import program_in
from madplug_sandbox import Execution
from madplug_testing import play


class Number(Letter):
    """The last word, when it is a number."""

    def canonical(self, text, sample):
        last = text.split()[-1] if text.split() else ""
        return last if last.lstrip("-").isdigit() else None

    def pattern(self, sample):
        return "-?[0-9]+"


def block(program):
    return f"Here it is:\n```python\n{program}\n```\nDone."


def run(styles, replies, rounds=3, **options):
    bound = [BoundStyle(s, s.name, (i,)) for i, s in enumerate(styles)]
    return play(**{"styles": bound, "agents": len(styles), "rounds": rounds, "replies": replies, "answers": Number(),
                   **options})


def counting(request):
    return block("print(1)") if request.purpose == "program" else f"agent {request.agent} says 1"


@pytest.mark.parametrize(("style", "calls"), [
    (Io(), 1), (Cot(), 1), (StepBack(), 2), (CCoT(), 2), (DDCoT(), 2), (Program(), 1), (Program(conclude="always"), 2)])
def test_calls_are_announced(style, calls):
    assert style.calls(None) == calls
    assert len(run([style], counting, rounds=1).requests) == calls


@pytest.mark.parametrize(("last", "key"), [("so 12", "12"), ("no idea", None)])
def test_the_second_step_contains_the_outcome_of_the_first_and_gives_the_answer(last, key):
    played = run([StepBack()], ["Work is force times 7", last], rounds=1)
    assert ["Work is force" in prompt for prompt in played.prompts] == [False, True]
    assert (played.messages[0].content, played.messages[0].key) == (
        f"Principle:\nWork is force times 7\n\nSolution:\n{last}", key)


@pytest.mark.parametrize(("reply", "status", "shown"), [
    (block("print(6 * 7)"), "ok", "Output:\n42"), (block("1 / 0"), "error", "division by zero"),
    (block("x = 1"), "silent", "printed nothing"), (block("while True: pass"), "timeout", "longer than 0.3 seconds"),
    (block("import numpy"), "unsupported", "could not be run here"), (block("print('9' * 10**6)"), "output", "printed"),
    *((text, "error", "no program") for text in ("I would say it is 9", "print(9)", "```", ""))])
def test_the_output_of_a_program_is_the_answer_and_of_one_that_fails_the_others_see_why(reply, status, shown):
    [message] = run([Program(seconds=0.3)], [reply], rounds=1).messages
    assert (message.key, message.data["dmad"]["status"]) == ("42" if status == "ok" else None, status)
    assert shown in message.content
    assert status != "ok" or "print(6 * 7)" in message.content


@pytest.mark.parametrize(("conclude", "printed", "prompts", "key"), [
    ("never", "'forty-two'", 1, None), ("unread", "'forty-two'", 2, "7"), ("unread", "42", 1, "42"),
    ("always", "42", 2, "7")])
def test_an_output_is_concluded_by_the_model_where_it_is_no_answer_or_always(conclude, printed, prompts, key):
    played = run([Program(conclude=conclude)], [block(f"print({printed})"), "it is 7"], rounds=1)
    assert (played.messages[0].key, len(played.prompts)) == (key, prompts)
    assert all(printed.strip("'") in prompt for prompt in played.prompts[1:])


@pytest.mark.parametrize(("text", "program"), [
    ("```python\na\n```", "a"), ("```\na\nb\n```", "a\nb"),
    ("x ```py\na = 1\n``` y ```python\nbb = 22\n```", "bb = 22"), ("```python\ncut off", "cut off"),
    ("print(1)", ""), ("```Python\r\na\r\n```", "a\r"), ("", "")])
def test_programs_are_found_in_replies(text, program):
    assert program_in(text) == program


class Echo(Service):
    name = "echo"

    async def run(self, program):
        return Execution("ok", program.removeprefix("print"))


def test_any_service_that_can_run_programs_runs_them_when_it_is_named_and_others_are_refused():
    made = {"styles": [Program(sandbox="box")], "replies": [block("print(1)")], "agents": 1}
    assert play(**made, services={"box": Echo()}).messages[0].answer == "(1)"
    refused = play(**made, services={"box": made_of(Service)}, expect_failure=True).result.error
    assert all(said in refused for said in ("the service 'box'", "is not a Sandbox"))


def test_personas_name_the_methods_in_turn():
    played = play(personas=[Methods()], agents=4, replies=counting)
    assert [a.persona.role for a in played.debate.agents] == ["cot", "step_back", "program", "cot"]
    assert played.debate.agents[3].persona.name == "Chain of thought 2"


@pytest.mark.parametrize(("options", "roles", "start"), [
    ({}, ["user"], ""), ({"persona": "{name}: {description}"}, ["system", "user"], "Chain of thought: ")])
def test_no_persona_reaches_the_model_by_default(options, roles, start):
    [request] = run([Cot(**options)], ["1"], rounds=1, personas=[Methods()]).requests
    assert [m["role"] for m in request.messages] == roles
    assert request.messages[0]["content"].startswith(start)


def said(request):
    return "```python\nprint('(B)')\n```" if request.purpose == "program" else "Final answer: A"


def test_the_text_methods_run_three_programs_and_ties_are_broken_at_random(run_debate):
    result, _, plan = run_debate('paradigm = "dmad.text"', said)
    assert [(m.data["dmad"]["status"], m.key) for m in result.messages if m.agent == 2] == [("ok", "B")] * 3
    assert (result.decision.key, result.decision.scores) == ("A", {"A": 2, "B": 1})
    assert plan.cells[0].decision.options.tie == "random"


BOX = '\n[[debate.styles]]\nuse = "dmad.program"\nsandbox = "box"\n'


def test_a_sandbox_can_be_named_as_a_service_and_missing_bubblewrap_is_reported_before_anything_runs(run_debate):
    more = '[services.box]\nuse = "sandbox.monty"\nseconds = 1\n'
    result, _, _ = run_debate('paradigm = "dmad.text"\nrounds = 1' + BOX, said, more=more)
    assert [m.key for m in result.messages] == ["B"] * 3
    more = '[services.box]\nuse = "sandbox.bubblewrap"\nbinary = "no-such-bwrap"\n'
    with pytest.raises(UserError, match="install bubblewrap"):
        run_debate('paradigm = "dmad.text"' + BOX, said, more=more)


def test_only_the_step_that_answers_has_a_form(run_debate):
    vision = run_debate('paradigm = "dmad.vision"\nrounds = 1', said)[1]
    assert [(r.purpose, r.form is not None) for r in vision if r.agent == 1] == [("think", False), ("discuss", True)]
    direct = next(r for r in vision if r.agent == 0)
    assert not direct.form["regex"].startswith("[\\s\\S]")
