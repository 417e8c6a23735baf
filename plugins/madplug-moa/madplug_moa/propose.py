"""A layer of proposers: the question, and in the system message the answers of the layer before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import AccessError, Message, ModelError, Reply, Style, Turn, UnreachableError, listed
from madplug_prompting.asking import LengthOptions, ask_for_answer
from madplug_prompting.prompts import Chat, fill, merged, question_parts, user

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

REFERENCES = """Several models have each answered the user's question. Write one answer that makes the best of theirs: \
accurate, complete and well ordered. Judge critically what they say, because some of it may be biased or wrong, and \
do not simply copy one of them.

Their answers:

{answers}"""


class ProposeOptions(LengthOptions):
    """The prompts."""

    system: str = Field(default="{persona}", description=(
        "the system message, left out where it is empty; {persona} (the persona's description), {name}"))
    first: str = Field(default="{question}\n\n{format}", description="the user message; {question}, {format}")
    references: str = Field(default=REFERENCES, description=(
        "after the system message, where there are answers to draw on; {answers} (a numbered item each)"))
    item: str = Field(default="{number}. {content}", description="one item; {number} (from 1), {content}")


class Propose(Style):
    """Answers the question, with the answers that it is shown in the system message.

    These are numbered in the order of agents, without names, the agent's own among them, after an instruction to write
    one answer of all and to judge them critically. The user message stays the question. A proposer that has failed is
    left out and the numbers close up; without any answer to draw on there is no such instruction. A request that is
    refused, or not answered in all its attempts, is such a failure and does not end the debate; `moa.losses` counts
    them. A model that cannot be reached at all fails the debate, as everywhere.
    """

    name = "propose"
    source = "Wang et al. 2024 (MoA), section 2.2; the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    Options = ProposeOptions

    def warn(self, cell: CellFacts) -> Iterable[str]:
        """Several models write what is meant to be the samples of one."""
        if cell.wanted == 1 and len(cell.models) > 1:
            yield (f"one agent's samples are of one model in Self-MoA, and here of {listed(cell.models)} in turn; name "
                   f"one: debate.models = [\"{cell.models[0]}\"]")

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        answers = [m.content for m in sorted(view, key=lambda m: -1 if m.agent is None else m.agent)]
        chat = request(debate, self.options, answers, turn)
        try:
            return Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters))
        except (AccessError, UnreachableError):
            raise
        except ModelError as error:
            return Reply("", answers=False, data={"moa": {"failed": str(error)}})


def request(debate: Debate, options: ProposeOptions, answers: Sequence[str], turn: Turn | None = None) -> list[Chat]:
    """The question, with the answers to draw on in the system message. turn: whose persona is there, too."""
    persona = turn.agent.persona if turn else None
    system = fill(options.system, persona=persona.description, name=persona.name).strip() if persona else ""
    given = [text for text in answers if text.strip()]
    if given:
        items = "\n".join(fill(options.item, number=i, content=text) for i, text in enumerate(given, 1))
        system = f"{system}\n\n{fill(options.references, answers=items)}".strip()
    question = fill(options.first, question=question_parts(debate.sample),
                    format=debate.answers.instruction(debate.sample))
    return merged([{"role": "system", "content": system}, user(debate.sample, question)])
