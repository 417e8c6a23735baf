"""Shared by all formats: extracting an answer by rule, by a model, or by a model when the rule finds nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from madplug import AnswerFormat, Debate, Options, Plan, Sample, Turn
from madplug_answers.marks import LINE
from madplug_answers.own import spoken
from madplug_answers.papers import Rule
from madplug_prompting.prompts import fill, question_parts, user

READ_AS = ("how replies are parsed: by madplug's rules, or exactly as another project's code parses them, bugs "
           "included (that code reads quotations and thoughts too)")
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
    """Options of every format: how the answer is extracted from a reply."""

    extract: Literal["regex", "llm", "regex_then_llm"] = Field(
        default="regex", description="how the answer is extracted: by rule, by the agent's model, or by its model when "
                                     "the rule finds no answer")
    extract_when: Literal["decision", "every_message"] = Field(
        default="decision", description="which replies a model may read: only those that a debate is decided on, in "
                                        "its last round or an earlier one, or all of them")
    prompt: str = Field(
        default=EXTRACT, description="prompt: asks a model to copy out the answer of a reply; {question}, {reply}, "
                                     "{persona}, {instruction} (the request for the closing line)")


class Reading(AnswerFormat):
    """Implements `extract` for every format; subclasses define `stated` and may define `unmarked`.

    Replies are parsed by rule (`stated`, else `unmarked`) unless the options ask for a model; the model's copy of the
    answer is then parsed by the same rule. Without models, only the rule is used.
    """

    Options: ClassVar[type[ReadingOptions]] = ReadingOptions
    rules: ClassVar[Mapping[str, Rule]] = {}
    """Parsers that reproduce other projects' code, by their value of the option `read_as`."""
    reads_any_text: ClassVar[bool] = False
    """Whether nearly any reply reads as an answer, so that one counts as stated only in the closing line."""
    closing = ""
    """An example of the closing line that agents are asked for."""
    alone: ClassVar[str] = ""
    """The request for an answer that stands alone, without a closing line."""

    @abstractmethod
    def stated(self, text: str, sample: Sample) -> str | None:
        """The answer that a text states, as written there, or None."""

    def unmarked(self, text: str, sample: Sample) -> str | None:
        """The answer of a text that does not mark one, or None."""
        return None

    def instruction_alone(self, sample: Sample) -> str:
        """How to give an answer without a closing line: in a field of a structured reply, or as a program's output.

        The same as `instruction` where a run file has its own, or where another project's code reads the reply.
        """
        default = type(self.options).model_fields.get("instruction")
        worded = default is not None and getattr(self.options, "instruction", None) != default.default
        return self.instruction(sample) if worded or self.rule or not self.alone else self.alone

    @property
    def read_as(self) -> str:
        """Whose code replies are parsed like: the option of that name, which not every format has."""
        return getattr(self.options, "read_as", "")

    @property
    def rule(self) -> Rule | None:
        """The other project's parser, or None for madplug's rules."""
        return self.rules.get(self.read_as)

    def check(self, cell: Any) -> Iterable[str]:
        """Reports a `read_as` that cannot parse the closing line agents are asked for."""
        if self.rule is not None and cell.models and self.rule(self.closing) is None:
            yield (f"read_as = '{self.read_as}' cannot read the closing line that agents are asked for, such as "
                   f"'{self.closing}'; use it with recorded replies only")

    def misfit(self, sample: Sample, references: Sequence[str]) -> str | None:
        """No reference is an answer, or one is read otherwise alone than at the end of a reply."""
        for reference in references if not self.reads_any_text else ():
            alone = self.canonical(reference, sample)
            if alone in (None, reference):  # nearly all, and a data set may have many rows
                continue
            closing = self.canonical(f"{LINE} {reference}", sample)
            if alone != closing:
                said = f"as '{closing}'" if closing else "as no answer"
                return (f"its reference {reference!r:.80} is read as '{alone}', but {said} where a reply ends with it; "
                        f"write only the answer, in the form that agents are asked for: '{self.closing}'")
        return super().misfit(sample, references)

    async def extract(self, debate: Debate, turn: Turn, text: str) -> str | None:
        """The answer of a reply, as written there, or None."""
        sample, how = debate.sample, self.options.extract
        paper = None if turn.move == "final" else self.rule
        stated = paper(text) if paper else self.stated(text, sample)
        if how != "regex" and not (stated and how == "regex_then_llm") and self._may_ask(debate, turn):
            said = spoken(text)
            if said.strip():
                copied = await self._copied(debate, turn, said)
                return self.stated(copied, sample) or self.unmarked(copied, sample)
        return stated or (None if paper else self.unmarked(text, sample))

    def was_read_by_model(self, last: bool) -> bool:
        """Whether a model may have read a reply when it was recorded. last: in the debate's last round."""
        return self.options.extract != "regex" and (last or self.options.extract_when == "every_message")

    def is_read_at_decision(self, last: bool) -> bool:
        """Whether a decision has to have replies read with the move `extract`. last: made in the last round."""
        return self.options.extract != "regex" and not last and self.options.extract_when == "decision"

    def _may_ask(self, debate: Debate, turn: Turn) -> bool:
        if turn.agent.model is None and not debate.models:
            return False
        if turn.move == "final":  # the agent was asked only for its answer
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
        """At most one call for every reply; a debate may be decided, or voted on, in any round."""
        return 0 if self.options.extract == "regex" else plan.all_turns
