"""What all formats have in common: reading a reply by rule, by a model, or by a model where the rule finds nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from madplug import Debate, Options, Plan, Sample, Turn
from madplug_answers.papers import Rule
from madplug_styles.prompts import fill, question_parts, user

READ_AS = "how the rule reads: madplug's way, or as another project's code does, faults included"
EXTRACT = """\
Below are a question and what a participant of a discussion wrote about it.

Question:
{question}

The participant's text:
{reply}

Copy out the participant's solution of the question, unchanged and complete, and nothing else: no explanation, no \
remark on who agrees with whom. If the text has no solution of its own, copy the whole text.
{instruction}"""


class ReadingOptions(Options):
    """Options of every format: how the answer is found in a reply."""

    extract: Literal["regex", "llm", "regex_then_llm"] = Field(
        default="regex", description="how a reply is read: by rule, by the agent's model, or by its model where the "
                                     "rule finds no answer")
    extract_when: Literal["decision", "every_message"] = Field(
        default="decision", description="which replies a model may read: those of the last round, and those a "
                                        "decision protocol asks about with the move 'extract'; or all")
    prompt: str = Field(
        default=EXTRACT, description="asks a model for the answer in a reply; {question}, {reply}, {persona} and "
                                     "{instruction} (the sentence about the closing line) are filled in")


class Reading(ABC):
    """The `extract` of every format, for a class that says what a reply states.

    A reply is read by rule (`stated`, else `unmarked`) unless the options ask for a model, and the model's copy of
    the answer is read by the same rule. A debate without models is read by rule alone.
    """

    options: Any
    rules: ClassVar[Mapping[str, Rule]] = {}
    """How papers' code reads a reply, by the name that the option `read_as` has for it."""
    closing = ""
    """A closing line that agents are asked for."""

    @abstractmethod
    def stated(self, text: str, sample: Sample) -> str | None:
        """The answer a text itself gives, as it is written there, or None."""

    def unmarked(self, text: str, sample: Sample) -> str | None:
        """What to take from a text that marks no answer."""
        return None

    def check(self, cell: Any) -> Iterable[str]:
        """Whoever is asked for a closing line must be readable."""
        name = getattr(self.options, "read_as", "")
        if name in self.rules and cell.models and self.rules[name](self.closing) is None:
            yield (f"read_as = '{name}' cannot read the closing line that agents are asked for, such as "
                   f"'{self.closing}'; it is for recorded replies")

    async def extract(self, debate: Debate, turn: Turn, text: str) -> str | None:
        """The answer of a reply, as it is written there, or None."""
        sample, how = debate.sample, self.options.extract
        paper = None if turn.move == "final" else self.rules.get(getattr(self.options, "read_as", ""))
        stated = paper(text) if paper else self.stated(text, sample)
        if how != "regex" and not (stated and how == "regex_then_llm") and self._may_ask(debate, turn):
            copied = await self._copied(debate, turn, text)
            return self.stated(copied, sample) or self.unmarked(copied, sample)
        return stated or (None if paper else self.unmarked(text, sample))

    def _may_ask(self, debate: Debate, turn: Turn) -> bool:
        if turn.agent.model is None and not debate.models:
            return False
        if turn.move == "final":  # the agent was asked for nothing but its answer
            return False
        at_the_end = debate.round >= debate.rounds or turn.move == "extract"
        return self.options.extract_when == "every_message" or at_the_end

    async def _copied(self, debate: Debate, turn: Turn, text: str) -> str:
        prompt = fill(self.options.prompt, question=question_parts(debate.sample), reply=text,
                      persona=turn.agent.persona.description or turn.agent.persona.name,
                      instruction=debate.answers.instruction(debate.sample))
        completion = await debate.ask([user(debate.sample, prompt)], agent=turn.agent, purpose="extract")
        return completion.text.strip()

    def calls(self, plan: Plan) -> int:
        """One call for every reply that a model may read."""
        if self.options.extract == "regex":
            return 0
        return plan.turns * (plan.rounds if self.options.extract_when == "every_message" else 1)
