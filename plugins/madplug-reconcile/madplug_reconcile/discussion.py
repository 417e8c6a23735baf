"""What is said at the table, and the samples that make an argument convincing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Message, Options, Reply, Setup, Style, Turn
from madplug_prompting.prompts import fill, instruction_alone, question_parts, user
from madplug_reconcile.convincing import Item, mine
from madplug_reconcile.grouped import by_last_answer
from madplug_reconcile.reply import SCHEMA, read

if TYPE_CHECKING:
    from madplug import Debate

FIELDS = """Reply with one JSON object that has the fields "reasoning" (your steps), "answer" and \
"confidence" (a number from 0 to 1: how likely your answer is right). About the answer: {format}"""
DRAFT = """{convincing}{question}

{persona}Think step by step, then give your answer and how sure you are of it.

{fields}"""
DISCUSS = """{convincing}{question}

This is what everyone at the table said in the last round, by answer:

{groups}

{persona}Review these solutions with care. Say whose view you share and why, work the question out step by \
step, then give your answer, changed or not, and how sure you are of it.

{fields}"""
GROUP = """{count} with the answer {answer}:

{members}"""
EXAMPLE = """An explanation that has convinced another participant before:

{question}

{explanation}
Answer: {answer}"""
PERSONA = "Your role: {name}. {description}\n\n"
CORRECT = """{question}

An expert explains it like this:
{explanation}

Work the question out with this explanation, then give your answer and how sure you are of it.

{fields}"""


class DiscussionOptions(Options):
    """Options of `reconcile.discussion`."""

    draft: str = Field(default=DRAFT, description=(
        "the first turn; {convincing}, {question}, {persona}, {fields}"))
    discuss: str = Field(default=DISCUSS, description=(
        "later turns; {convincing}, {question}, {groups}, {persona}, {fields}"))
    fields: str = Field(default=FIELDS,
                        description="the form of a reply; {format}: how to state the answer")
    group: str = Field(default=GROUP, description="one of {groups}; {count}, {answer}, {members}")
    persona: str = Field(default=PERSONA, description=(
        "{persona} of an agent that has a description, else empty; {name}, {description}"))
    example: str = Field(default=EXAMPLE, description=(
        "one sample of {convincing}; {question}, {explanation}, {answer}"))
    correct: str = Field(default=CORRECT, description=(
        "asked while looking for convincing samples; {question}, {explanation}, {fields}"))
    convincing: int = Field(default=0, ge=0, le=50,
                            description="convincing samples of each model; 0: none")
    split: str = Field(default="train", description="the part of the data set that has them")
    explanation: str = Field(default="explanation", description="the metadata field with an explanation")
    look_at: int = Field(default=200, ge=1, description="training samples to look at for each model")


class Discussion(Style):
    """Answers with reasoning and a confidence, and reviews all solutions grouped by answer.

    The first prompt has the question. Every later one starts again, without the agent's own chat, with the
    question and the visible messages in groups of equal answers: how many share it, then each member's
    reasoning, answer and confidence. The agent's own solution is unmarked in its group. Replies are
    JSON; broken JSON is repaired, and in a reply without any the answer is read from the text and the reply is
    flagged `unparsed`. A confidence above 1 is read as a percentage from 2 on and as 1 below; one that
    cannot be read is left out.

    With `convincing` above 0, training samples are looked for once before the study: questions that a model
    gets wrong and, shown the human explanation, right. An agent is shown those of the other agents' models.
    They need a data set with a split of that name whose samples carry an explanation in their metadata.

    Differs from the paper: convincing samples are off by default, since most data sets have no human
    explanations (paper: 4 for each of the other agents); they are never shown for the question they are
    about.
    """

    name = "discussion"
    source = "Chen et al. 2024, ReConcile, section 3; the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    gives = frozenset({"confidence"})
    Options = DiscussionOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._convincing: dict[str, list[Item]] = {}

    async def prepare(self, setup: Setup) -> None:
        """Look for convincing samples, once for the study."""
        if self.options.convincing:
            models = sorted(set(setup.models))
            found = await setup.ask_all(mine(setup, self, model) for model in models)
            self._convincing = dict(zip(models, found, strict=True))

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        persona = turn.agent.persona
        notes = [m for m in view if m.agent is None and m.key is None]
        groups = by_last_answer([m for m in view if m not in notes])
        named = fill(self.options.persona, name=persona.name, description=persona.description)
        text = fill(
            self.options.discuss if view else self.options.draft, question=question_parts(debate.sample),
            convincing=self._examples(debate, turn), persona=named if persona.description else "",
            groups="\n\n".join([*(m.content for m in notes), *map(self._group, groups)]),
            fields=self.fields(debate.answers, debate.sample))
        said = await debate.ask([user(debate.sample, text)], agent=turn.agent, purpose="discuss",
                                form={"json_schema": SCHEMA})
        return read(said.text)

    def fields(self, answers: Any, sample: Any) -> str:
        """The instructions for the form of a reply."""
        return fill(self.options.fields, format=instruction_alone(answers, sample))

    def _group(self, group: Sequence[Message]) -> str:
        count = "1 participant" if len(group) == 1 else f"{len(group)} participants"
        return fill(self.options.group, count=count, answer=group[0].answer or "(none that can be read)",
                    members="\n\n".join(m.content for m in group))

    def _examples(self, debate: Debate, turn: Turn) -> str:
        others = dict.fromkeys(a.model for a in debate.agents if a.id != turn.agent.id)
        question = question_parts(debate.sample)
        items = [item for model in others for item in self._convincing.get(model or "", ())
                 if item["id"] != debate.sample.id and item["question"] != question]
        return "".join(fill(self.options.example, **{k: v for k, v in item.items() if k != "id"}) + "\n\n"
                       for item in items)
