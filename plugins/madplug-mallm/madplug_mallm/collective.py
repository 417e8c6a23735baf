"""The style of collective refinement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Reply, Style, Turn
from madplug_prompting import prompts
from madplug_prompting.asking import LengthOptions, ask_for_answer
from madplug_prompting.layout import IN_PERSONA, IN_TASK, PERSONA, LayoutOptions, compose

if TYPE_CHECKING:
    from madplug import Debate


class CollectiveOptions(LayoutOptions, LengthOptions):
    """Prompts, and the length of a reply. Prompts that are empty are left out."""

    frame: str = Field(default="{question}", description=f"prompt, before the answers: the task. {IN_TASK}")
    persona: str = Field(default=PERSONA, description=f"prompt: who the agent is. {IN_PERSONA}")
    solve: str = Field(default="Solve the task. Explain your answer briefly.", description=(
        "prompt: an agent that sees no answer, not even its own"))
    refine: str = Field(default=(
        "Above are your last answer and those of the others. Read the others critically, take over what is right, "
        "correct what is wrong, and improve your answer."), description="prompt: an agent that sees answers")
    step_by_step: bool = Field(default=True, description="whether `trigger` is part of every prompt")
    trigger: str = Field(default="Think step by step.", description="prompt: the step-by-step trigger")


class Collective(Style):
    """An agent improves its own answer by reading the others' critically; agents are not asked whether they agree.

    The first answer is given alone. Own answers are shown as the agent's own chat messages, the others' after
    their names. Whether it writes a draft or an improvement makes no difference.
    """

    name = "collective"
    source = "Kaesberg et al. 2025 (Voting or Consensus), section 4.3"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    Options = CollectiveOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        chat = self.chat(debate, turn, view)
        return Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters))

    def chat(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> list[prompts.Chat]:
        """Who the agent is, the task, the answers, and what is wanted."""
        options = self.options
        requests = [options.refine if any(m.agent is not None for m in view) else options.solve,
                    options.trigger if options.step_by_step else "", debate.answers.instruction(debate.sample)]
        return compose(debate, turn.agent, options, options.persona, options.frame,
                       prompts.discussion(debate, turn, view, options.said), requests)
