"""What changes an exchange from outside: a summary in place of the answers, and how much to trust others."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from madplug import Extension, Message, ModelName, Options, Plan, Request, Review, Turn, hookimpl, maybe_await
from madplug_prompting.prompts import fill, question_parts, speaker, user
from madplug_prompting.replies import spoken
from madplug_som.exchange import is_note

if TYPE_CHECKING:
    from madplug import Debate

T = TypeVar("T")
Around = Generator[None, T, T]
Reviewed = Review | None | Awaitable[Review | None]

SUMMARISE = """{question}

Several agents answered this question:

{answers}

Summarise their answers in a few sentences for someone who has not read them: which answers were \
given, by how many, and the reasons for each. Do not add an answer of your own."""
RELY = """Rely on what the other agents say in about {percent} percent of the cases, and disregard it in \
the others."""


class SummaryOptions(Options):
    """Options of `som.summary`."""

    model: ModelName | None = Field(default=None, description=(
        "who summarises; default: the first agent's model"))
    prompt: str = Field(default=SUMMARISE, description=(
        "the request; {question}, {answers} (one block each)"))
    block: str = Field(default="--- an agent's answer ---\n{content}", description=(
        "one answer in {answers}; {content}, {number} (from 1), {name} (who gave it)"))


class Summary(Extension):
    """After every round but the last, a summary of all answers, shown instead of the peers.

    The summary is one more call a round, by the first agent's model or another one. It goes on record as a
    message without an author, so that a debate shows what its agents read. An agent still sees its own answers.

    What an extension named before this one makes of a round stands: there is no summary, and no call, where it
    retracts the round, ends the debate or puts a message of its own on record, and the round is shown as it is.
    """

    name = "summary"
    source = "Du et al. 2023, section 3.3 (summarised responses); Smit et al. 2024, DebateLLM"
    Options = SummaryOptions

    def calls(self, plan: Plan) -> int:
        """One after every round but the last."""
        return plan.rounds - 1

    @hookimpl(wrapper=True)
    def madplug_round_ended(self, debate: Debate) -> Around[Reviewed]:
        """A summary of the round, unless it was the last, no agent spoke, or an extension further in has its say."""
        review = yield
        return self.review(debate, review)

    async def review(self, debate: Debate, inner: Reviewed) -> Review | None:
        """What becomes of the round. A round that is retracted, the last, or commented on is not summarised."""
        review: Review | None = await maybe_await(inner)
        if review is not None and (review.redo or review.stop or review.say is not None):
            return review
        said = [m for m in debate.transcript.of_round(debate.round) if m.agent is not None]
        return await self.summarise(debate, said) if said and debate.round < debate.rounds else review

    async def summarise(self, debate: Debate, said: Sequence[Message]) -> Review:
        """One call."""
        blocks = [fill(self.options.block, content=m.content, number=number, name=speaker(debate, m))
                  for number, m in enumerate(said, 1)]
        prompt = fill(self.options.prompt, question=question_parts(debate.sample),
                      answers="\n\n".join(blocks))
        summary = await debate.ask(
            [user(debate.sample, prompt)], purpose="summarise", model=self.options.model,
            agent=None if self.options.model else debate.agents[0])
        return Review(say=spoken(summary.text))

    @hookimpl(wrapper=True)
    def madplug_view(self, debate: Debate, turn: Turn) -> Around[Sequence[Message]]:
        """The peers' messages of a summarised round give way to its summary."""
        view = yield
        summarised = {m.round for m in view if is_note(m)}
        return [m for m in view if m.agent in (None, turn.agent.id) or m.round not in summarised]


class AgreementIntensityOptions(Options):
    """Options of `som.agreement_intensity`."""

    intensity: int = Field(default=-1, ge=-1, le=10, description=(
        "times 10 percent reliance on others; -1: say nothing about it"))
    prompt: str = Field(default=RELY, description="the sentence; {percent}, {discard} (100 - percent)")


class AgreementIntensity(Extension):
    """Instructs agents how far to rely on the others, in a sentence after every later prompt.

    `intensity` 0 to 10 is 0 to 100 percent; -1 changes nothing. It modulates the prompt and nothing else,
    and only of requests in which agents discuss.
    """

    name = "agreement_intensity"
    source = "Smit et al. 2024, section 5 (agreement modulation), DebateLLM"
    Options = AgreementIntensityOptions

    @hookimpl(wrapper=True)
    def madplug_request(self, debate: Debate, request: Request) -> Around[Request]:
        """Add the sentence."""
        request = yield
        if self.options.intensity < 0 or debate.round < 2 or request.purpose != "discuss":
            return request
        percent = 10 * self.options.intensity
        sentence = fill(self.options.prompt, percent=percent, discard=100 - percent)
        return replace(request, messages=(*request.messages[:-1], _longer(request.messages[-1], sentence)))


def _longer(message: Mapping[str, Any], sentence: str) -> dict[str, Any]:
    """The message with a paragraph more."""
    content = message["content"]
    longer = f"{content}\n\n{sentence}" if isinstance(content, str) else \
        [*content, {"type": "text", "text": sentence}]
    return {**message, "content": longer}
