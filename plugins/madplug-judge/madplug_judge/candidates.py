"""What each agent ends on, as a judge is shown it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from madplug import Agent, Message, Reply, Turn
from madplug_styles import prompts

if TYPE_CHECKING:
    from madplug import Debate


@dataclass(frozen=True)
class Candidate:
    """An agent's final answer: the text to show, and its key, None where it could not be read."""

    agent: int
    text: str
    answer: str | None = None
    key: str | None = None


def recorded(debate: Debate, upto: int | None = None) -> list[Candidate]:
    """What each voter last answered, up to a round; the whole last message where no answer could be read."""
    found = []
    for agent in debate.voters:
        said = [m for m in debate.transcript.by(agent) if upto is None or m.round <= upto]
        last = next((m for m in reversed(said) if m.key is not None), said[-1] if said else None)
        if last is not None:
            found.append(candidate(last))
    return found


def candidate(message: Message) -> Candidate:
    """The candidate that a message puts up."""
    text = message.answer if message.key is not None and message.answer else message.content
    return Candidate(message.agent or 0, text, message.answer, message.key)


async def candidates(debate: Debate, final: str, prompt: str) -> list[Candidate]:
    """What each voter ends on: recorded, or written down by the voter itself where `final` wants that."""
    async def one(found: Candidate) -> Candidate:
        last = debate.transcript.last(found.agent)
        unread = last is None or last.key is None
        asks = final == "ask" or (final == "ask_if_unread" and unread)
        return await written(debate, debate.agents[found.agent], prompt, found) if asks else found

    return await debate.ask_all(one(found) for found in recorded(debate))


async def written(debate: Debate, agent: Agent, prompt: str, found: Candidate) -> Candidate:
    """An agent's final answer, written down in one call; what is on record where that cannot be read."""
    last = debate.transcript.by(agent)[-1]
    request = "\n".join([prompt, debate.answers.instruction(debate.sample)])
    chat = [prompts.user(debate.sample, prompts.question_parts(debate.sample)),
            {"role": "assistant", "content": last.content}, {"role": "user", "content": request}]
    said = await debate.ask(prompts.merged(chat), agent=agent, purpose="extract",
                            form=debate.answers.form(debate.sample, body=0))
    answer, key = await debate.read(Turn(agent, "final"), Reply(said.text))
    return found if key is None else Candidate(agent.id, answer or key, answer, key)


def plurality(debate: Debate, candidates: Sequence[Candidate], tie: str) -> tuple[Candidate | None, bool]:
    """A candidate with the most frequent key, or None; and whether there was a tie."""
    counts = Counter(c.key for c in candidates if c.key is not None)
    most = [key for key, n in counts.items() if n == max(counts.values())]
    if not most or (len(most) > 1 and tie == "undecided"):
        return None, len(most) > 1
    if tie == "random":
        key = debate.rng("judge.synthesis:tie").choice(sorted(most))
    else:
        key = min(most) if tie == "lexical" else most[0]
    return next(c for c in candidates if c.key == key), len(most) > 1
