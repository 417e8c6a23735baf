"""One agent alone: with and without a step-by-step trigger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import override

from madplug import Message, Plan, Reply, Style, Turn
from madplug_prompting import prompts
from madplug_prompting.asking import LengthOptions, ask_for_answer

if TYPE_CHECKING:
    from madplug import Debate


class AloneOptions(LengthOptions):
    """Prompts; those that are empty are left out."""

    frame: str = Field(default="{question}", description=(
        "prompt: the task. {question}: passages, question and choices"))
    persona: str = Field(default="", description="prompt: who the agent is, before the task. {name}, {description}")
    trigger: str = Field(default="", description="prompt: a step-by-step trigger, before the answer format")
    improve: str = Field(default="Current solution:\n{solution}\n\nCheck it. Write an improved solution.", description=(
        "prompt: the move `improve`. {solution}: the latest visible message; {answer}: the answer read from it"))
    no_solution: str = Field(default="There is no solution yet.", description=(
        "what {solution} and {answer} are while there is none"))


class Io(Style):
    """Asks the question and for the answer format, and nothing else.

    The move `draft` shows nothing that was said; `improve` shows the latest visible message as the current
    solution, or says that there is none.
    """

    name = "io"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    source = "Becker et al. 2025 (MALLM), appendix H"
    Options = AloneOptions

    @override
    def calls(self, plan: Plan) -> int:
        return 1

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        chat = self.chat(debate, turn, view[-1] if view else None)
        return Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters))

    def chat(self, debate: Debate, turn: Turn, latest: Message | None) -> list[prompts.Chat]:
        """The task, then the solution so far where it is to be improved, then the form of the answer."""
        options, sample, persona = self.options, debate.sample, turn.agent.persona
        who = prompts.fill(options.persona, name=persona.name, description=persona.description)
        task = prompts.fill(options.frame, question=prompts.question_parts(sample))
        improve = self.improve(latest) if turn.move == "improve" else ""
        last = "\n".join(part for part in (options.trigger, debate.answers.instruction(sample)) if part)
        return [prompts.user(sample, "\n\n".join(part for part in (who, task, improve, last) if part))]

    def improve(self, latest: Message | None) -> str:
        """The instruction with the current solution."""
        nothing = self.options.no_solution
        solution = (latest.content if latest else "") or nothing
        answer = (latest.answer if latest else "") or nothing
        return prompts.fill(self.options.improve, solution=solution, answer=answer)


class Cot(Io):
    """Asks the question, for thinking step by step, and for the answer format.

    Otherwise as `baselines.io`. In the paper's code a second call extracts the answer; here the answer format
    reads it, and may ask a model.
    """

    name = "cot"
    source = "Becker et al. 2025 (MALLM), appendix G.4"

    class Options(AloneOptions):
        """With a trigger."""

        trigger: str = Field(default="Think step by step.", description=(
            "prompt: the step-by-step trigger, before the answer format"))
