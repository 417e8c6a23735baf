"""How an agent is asked for a draft, an improvement or feedback, and how its reply is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Plan, Reply, Style, Turn, hookimpl, maybe_await
from madplug_prompting import prompts
from madplug_prompting.layout import IN_PERSONA, IN_TASK
from madplug_prompting.replies import read_agreement, states_answer
from madplug_prompting.solutions import current_solution, is_opening
from madplug_styles.base import DiscussionStyle, StyleOptions

if TYPE_CHECKING:
    from madplug import Debate


class Simple(DiscussionStyle):
    """Short, neutral prompts; the current solution is shown only when there is one.

    The current solution is the latest draft, disagreeing improvement or adopted answer that the agent knows of, however
    long ago it saw it. The first agent, and one in a blind turn, proposes a solution; that does not count as agreement.
    An agent that agrees without stating an answer takes the current solution's. Agreement that cannot be read counts as
    none and is flagged.

    Differs from the paper: a tag decides about agreement, and the words only where there is no tag; the
    authors' rule is `agreement = "legacy"`. The trigger is part of the prompt, not a separate message.
    """

    name = "simple"


class FreeText(DiscussionStyle):
    """Longer, neutral prompts that always show a line for the current solution.

    Otherwise as `styles.simple`.
    """

    name = "freetext"

    class Options(StyleOptions):
        """The frame and the instructions are longer."""

        frame: str = Field(default=(
            "You are one of several people who discuss a task until they have a good solution. Each has a "
            "point of view of their own, and each may agree with the current solution or improve "
            "it.\n\nTask:\n{question}"),
            description=f"prompt, before the discussion: the task. {IN_TASK}; {{solution}}: the current solution; "
                        f"{IN_PERSONA}")
        no_solution: str = Field(default="None", description="what {solution} is while there is none")
        propose: str = Field(default=(
            "There is no solution yet. From your point of view, propose the first solution, complete and "
            "with your reasons."), description="prompt: any move in the very first turn, and in a blind one")
        improve: str = Field(default=(
            "Read the current solution and what the others said, and judge it from your point of view. Say "
            "whether you agree with it and explain your decision. If you disagree, write an improved "
            "solution that keeps what is right."), description="prompt: the move `improve`")
        feedback: str = Field(default=(
            "Read the current solution and what the others said, and judge it from your point of view. Say "
            "whether you agree with it, and give reasons and advice that help to improve it. Do not write a "
            "solution yourself."), description="prompt: the move `feedback`")


class Split(FreeText):
    """Asks for the stance first, and for the message in a second call that is given the stance.

    One call for the first solution and for drafts; two otherwise. The text of the first call is recorded with the
    message (`data.styles.stance`) and not shown to other agents. Otherwise as `styles.freetext`.
    """

    name = "split"

    class Options(FreeText.Options):
        """Three more prompts: the question for the stance, and the message after either."""

        stance: str = Field(default=(
            "Do you agree with the current solution? Explain your decision in a few sentences. Then end with"
            " [AGREE] or [DISAGREE]."), description="prompt: the first call")
        agreed: str = Field(default=(
            "You agree with the current solution. Tell the others why, and keep the solution."),
            description="prompt: the second call of `improve`, after an agreement")
        disagreed: str = Field(default=(
            "You disagree with the current solution. Tell the others why, and write an improved solution."),
            description="prompt: the second call of `improve`, after a disagreement")
        feedback: str = Field(default=(
            "You {stance} with the current solution. Tell the others why, and how to improve it. Do not "
            "write a solution yourself."),
            description="prompt: the second call of `feedback`. {stance}: agree or disagree")

    def calls(self, plan: Plan) -> int:
        """Two, where agreement is asked for."""
        return 1 if self.options.agreement == "none" else 2

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """The stance, then the message."""
        draft = current_solution(debate, turn, view)
        if not self.asks_agreement(turn, is_opening(debate, turn, view)):
            return await super().respond(debate, turn, view)
        stance = await self.ask_stance(debate, turn, view, draft)
        agrees, _ = read_agreement(stance, self.agreement_rule)
        solves = turn.move != "feedback"
        instruction = (self.options.agreed if agrees else self.options.disagreed) if solves else \
            prompts.fill(self.options.feedback, stance="agree" if agrees else "disagree")
        text = await self.say(debate, turn, view, instruction, draft=draft, asks=False, solves=solves)
        reply = self.read(debate, turn, text, draft=draft, asks=True, solves=solves, stance=stance)
        return replace(reply, data={"styles": {**reply.data.get("styles", {}), "stance": stance}})

    async def ask_stance(self, debate: Debate, turn: Turn, view: Sequence[Message],
                         draft: Message | None) -> str:
        """The first call."""
        trigger = self.options.trigger if self.options.step_by_step else ""
        longest = self.options.max_characters
        before = r"[\s\S]*" if longest is None else rf"[\s\S]{{0,{longest}}}"
        chat = self.chat(debate, turn, view, draft, [self.options.stance, trigger])
        form = {"regex": before + r"\[(?:AGREE|DISAGREE)\]"}
        return (await debate.ask(chat, agent=turn.agent, purpose="stance", form=form)).text


class Critical(DiscussionStyle):
    """Asks for critical thinking: look for what can be better, and agree only when nothing can.

    The line for the current solution is always shown. Otherwise as `styles.simple`.
    """

    name = "critical"

    class Options(StyleOptions):
        """Sceptical instructions."""

        frame: str = Field(default=(
            "A group works on this task together. Think critically: question every claim, look for mistakes "
            "and for what was overlooked.\n\n{question}"),
            description=f"prompt, before the discussion: the task. {IN_TASK}; {{solution}}: the current solution; "
                        f"{IN_PERSONA}")
        no_solution: str = Field(default="None", description="what {solution} is while there is none")
        propose: str = Field(default=(
            "There is no solution yet. Propose a first solution of your own: a considered one that others "
            "might miss. Explain it."), description="prompt: any move in the very first turn, and in a blind one")
        draft: str = Field(default=(
            "Use the discussion so far and repair every weakness it found. Write the full solution again."),
            description="prompt: the move `draft`")
        improve: str = Field(default=(
            "Look for what could be better in the current solution. Agree only if nothing could be. "
            "Otherwise disagree, name the weak points, and give the alternative that only someone like you "
            "would see."),
            description="prompt: the move `improve`")
        feedback: str = Field(default=(
            "Look for what could be better in the current solution. Agree only if nothing could be. "
            "Otherwise disagree and name every weak point that someone like you sees. Do not write a "
            "solution yourself."),
            description="prompt: the move `feedback`")


class Reasoning(DiscussionStyle):
    """Agents extend each other's reasoning and state no final solution; to agree is to have enough to answer.

    No current solution is shown. A message gives no answer, unless it states one in the very line that the
    answer format asks for. What an agent would answer is asked when the debate is decided, by a decision that
    extracts answers, or with `extract` in a second call after every message.

    Differs from the paper: there the second call is always made, in the code without the persona; here it is
    an option and the persona stays.
    """

    name = "reasoning"

    class Options(StyleOptions):
        """Concise instructions about steps instead of solutions."""

        extract: bool = Field(default=False, description=(
            "ask for the agent's own short answer in a second call after every message"))
        conclusion: str = Field(default="Now answer the task yourself, from the reasoning so far. Be short.",
                                description="prompt, with `extract`: the second call")
        propose: str = Field(default="Lay out your first thoughts on the task. Do not give a final solution.",
                             description="prompt: any move in the very first turn, and in a blind one")
        draft: str = Field(default=(
            "Put the reasoning so far in order and complete it. Do not give a final solution."),
            description="prompt: the move `draft`")
        improve: str = Field(default=(
            "Continue the reasoning of the others: add or correct steps, and say whose thought you take up. "
            "Agree if there is now enough to answer the task, else disagree. Do not give a final solution."),
            description="prompt: the move `improve`")
        feedback: str = Field(default=(
            "Say which steps of the reasoning hold and which do not. Agree if there is now enough to answer "
            "the task, else disagree. Do not give a final solution."),
            description="prompt: the move `feedback`")
        solution: str = Field(default="", description=(
            "prompt: a line with the current draft, {solution}; this style has none"))

    @property
    def states_answers(self) -> bool:
        """Whether its messages give answers, so that a decision need not ask for them."""
        return bool(self.options.extract)

    def calls(self, plan: Plan) -> int:
        """One, and one more with `extract`."""
        return 2 if self.options.extract else 1

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call for the thoughts; with `extract`, another for the answer."""
        draft, opening = current_solution(debate, turn, view), is_opening(debate, turn, view)
        asks = self.asks_agreement(turn, opening)
        instruction = self.instruction(turn, opening)
        text = await self.say(debate, turn, view, instruction, draft=draft, asks=asks, solves=False)
        reply = self.read(debate, turn, text, draft=None, asks=asks, solves=False)
        if self.options.extract:
            return replace(reply, answer=await self.conclude(debate, turn, view, reply), answers=True)
        return replace(reply, answers=True) if states_answer(debate, text) else reply

    async def conclude(self, debate: Debate, turn: Turn, view: Sequence[Message], reply: Reply) -> str:
        """The agent's own short answer, after its message; empty when it has none that can be read."""
        format = debate.answers
        chat = self.chat(debate, turn, view, None, [])
        asked = {"role": "user", "content": f"{self.options.conclusion}\n{format.instruction(debate.sample)}"}
        chat = prompts.merged([*chat, {"role": "assistant", "content": reply.content}, asked])
        form = format.form(debate.sample, body=self.options.max_characters)
        text = (await debate.ask(chat, agent=turn.agent, purpose="extract", form=form)).text
        answer: str | None = await maybe_await(format.extract(debate, turn, text))
        return answer or ""


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register five styles."""
    return [Simple, FreeText, Split, Critical, Reasoning]
