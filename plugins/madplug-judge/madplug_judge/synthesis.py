"""A judge that decides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, ModelName, Plan, Reply, Turn
from madplug_judge.candidates import plurality
from madplug_prompting import prompts
from madplug_prompting.finals import FinalAnswer, FinalOptions, final_answers
from madplug_prompting.layout import IN_TASK
from madplug_prompting.replies import read_json, without_quotations, without_thoughts
from madplug_prompting.ties import Tie

if TYPE_CHECKING:
    from madplug import Debate

_NUMBER = re.compile(r"(?<![-0-9.])([0-9]{1,4})(?![0-9]|\.[0-9])")
_NAMED = re.compile(r"\b(?:solution|choice|candidate)(?: (?:number|no\.?|nr\.?))?\W{0,4}([0-9]{1,4})(?![0-9]|\.[0-9])",
                    re.IGNORECASE)


class SynthesisOptions(FinalOptions):
    """Who judges, what, and when."""

    model: ModelName | None = Field(default=None, description="the judge's model; default: the first agent's")
    mode: Literal["synthesise", "select"] = Field(default="synthesise", description=(
        "the judge writes an answer that combines the solutions, or chooses one by its number"))
    vote_round: int = Field(default=3, ge=1, le=10_000, description="first round after which the judge decides")
    attempts: int = Field(default=3, ge=1, le=20, description="the most attempts to get a reply that can be read")
    tie: Tie = Field(default="first", description=(
        "the fallback among equally frequent answers: the first agent's, a random one, none, or the first in "
        "alphabetical order"))
    index_base: Literal[0, 1] = Field(default=1, description="the number of the first solution")
    system: str = Field(default="", description=(
        f"prompt: the system message of the judge; empty: none. {IN_TASK}"))
    synthesise: str = Field(default=(
        "{question}\n\nSeveral people have worked on this task. Their solutions:\n\n{solutions}\n\n"
        "Decide on the single best answer; combine the solutions where that makes it better. Output only the "
        "answer."), description=(
        f"prompt. {IN_TASK}; {{solutions}}: the numbered list"))
    select: str = Field(default=(
        "{question}\n\nSeveral people have worked on this task. Their solutions:\n\n{solutions}\n\n"
        "Decide which solution is the best. Output only its number, from {first} to {last}."), description=(
        "prompt, with mode = \"select\". As `synthesise`, and {first}, {last}: the lowest and the highest number"))
    solution: str = Field(default="Solution {number}:\n{text}", description=(
        "prompt: one entry of the list. {number}; {text}: the solution"))


class Synthesis(DecisionProtocol):
    """A judge reads the agents' final solutions, without names, and decides on one answer.

    From `vote_round` on, at the end of the round, the judge sees the task and the numbered solutions, and
    writes the answer that combines them, or with `mode = "select"` chooses one. Its answer must be readable in
    the answer format, with `select` that of the solution it names; otherwise it is asked again, and at last the
    agents' most frequent answer is taken as a fallback. An agent whose last message states no solution is asked to
    write one down; where that cannot be read either, the judge sees its whole message.

    Differs from the released code of MALLM: the judge may have its own model (there it is the first agent's,
    as here without `model`), and a reply that cannot be read does not count as success.
    """

    name = "synthesis"
    source = "Becker et al. 2025 (MALLM), section 3.3"
    Options = SynthesisOptions

    async def after_round(self, debate: Debate) -> Decision | None:
        """The judge's decision, from its round on."""
        return await self.at_end(debate) if debate.round >= self.options.vote_round else None

    async def at_end(self, debate: Debate) -> Decision:
        """The judge's decision, or the agents' most frequent answer."""
        found = await final_answers(debate, self.options)
        if not found:
            return Decision.undecided("no agent that votes said anything")
        unread = 0
        for _ in range(self.options.attempts):
            chosen = await self.judge(debate, found)
            unread += chosen is None
            answer, key = chosen or (None, None)
            if key is not None:
                counts = Counter(c.key for c in found if c.key is not None)
                return Decision(key, answer, agreed=True, scores=dict(counts),
                                reason=f"the judge decided on {len(found)} solutions")
        debate.notes["judge.synthesis"] = {"unparsed": True}
        return self.fallback(debate, found, unread)

    async def judge(self, debate: Debate, found: Sequence[FinalAnswer]) -> tuple[str | None, str | None] | None:
        """The answer of the judge and its key, in one call; None if the reply could not be read. What the judge selects
        may have no key."""
        prompt = self.prompt(debate, found)
        model = self.options.model or debate.voters[0].model
        system = prompts.fill_task(self.options.system, debate.sample)
        chat = [{"role": "system", "content": system}, prompts.user(debate.sample, prompt)]
        said = await debate.ask(prompts.merged(chat), model=model, purpose="judge", form=self.form(debate, len(found)))
        if self.options.mode == "synthesise":
            answer, key = await debate.read(Turn(debate.voters[0], "final"), Reply(said.text))
            return None if key is None else (answer, key)
        number = read_number(said.text, len(found), self.options.index_base)
        return None if number is None else (found[number].answer, found[number].key)

    def prompt(self, debate: Debate, found: Sequence[FinalAnswer]) -> str:
        """The task, the numbered solutions, and what is wanted."""
        options, first = self.options, self.options.index_base
        solutions = "\n\n".join(prompts.fill(options.solution, number=i, text=c.text)
                                for i, c in enumerate(found, first))
        template = options.select if options.mode == "select" else options.synthesise
        text = prompts.fill_task(template, debate.sample, beside=options.system, solutions=solutions, first=first,
                                 last=first + len(found) - 1)
        return text if options.mode == "select" else f"{text}\n{debate.answers.instruction(debate.sample)}"

    def form(self, debate: Debate, count: int) -> Mapping[str, Any] | None:
        """The form of the judge's reply, for models that can be constrained."""
        if self.options.mode == "synthesise":
            return debate.answers.form(debate.sample, body=0)
        return {"regex": "|".join(str(i + self.options.index_base) for i in range(count))}

    def fallback(self, debate: Debate, found: Sequence[FinalAnswer], unread: int) -> Decision:
        """The most frequent answer, which does not count as agreed. unread: replies of the judge."""
        counts = Counter(c.key for c in found if c.key is not None)
        most, tied = plurality(debate, found, self.options.tie)
        attempts = self.options.attempts
        selected = "the solution that the judge selected has no answer that could be read"
        why = f"the judge's reply could not be read in {attempts} attempts" if unread == attempts else selected
        if 0 < unread < attempts:
            why = f"the judge's reply could not be read in {unread} of {attempts} attempts; otherwise {selected}"
        if most is None:
            return Decision(None, scores=dict(counts), tie=tied, reason=f"{why}, and the agents " + (
                "are tied" if tied else "gave no answer that could be read"))
        return Decision(most.key, most.answer, scores=dict(counts), tie=tied, fallback=True,
                        reason=f"{why}: the agents' most frequent answer")

    def calls(self, plan: Plan) -> int:
        """The attempts, and a call for each agent that is asked for its solution."""
        return self.options.attempts + (plan.agents if self.options.final != "recorded" else 0)


def read_number(text: str, count: int, base: int = 0) -> int | None:
    """The position of the solution that a reply names; None if it names none that exists, or several.

    base: the number of the first. Thoughts and quotations are not read.
    """
    fields = read_json(text)
    text = " ".join(prompts.as_text(v) for v in fields.values()) if fields else \
        without_quotations(without_thoughts(text), _NUMBER)
    named = {int(n) for n in _NAMED.findall(text)} or {int(n) for n in _NUMBER.findall(text)}
    position = named.pop() - base if len(named) == 1 else count
    return position if 0 <= position < count else None
