"""The plainest component of each kind, for tests of other components. Run files cannot name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from madplug import (
    AnswerFormat,
    Debate,
    Decision,
    DecisionProtocol,
    Message,
    Reply,
    Sample,
    Style,
    Turn,
    TurnOrder,
    Visibility,
)


class StrippedText(AnswerFormat):
    """The whole reply, without surrounding space, is the answer."""

    name = "stripped_text"

    def instruction(self, sample: Sample) -> str:
        """Ask for the answer alone."""
        return "Reply with the answer and nothing else."

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The text without surrounding space, or None if nothing is left."""
        return text.strip() or None


class AnyMove(frozenset[str]):
    """A set of moves that contains every move."""

    def __contains__(self, move: object) -> bool:
        """True for every move."""
        return True


class PlainStyle(Style):
    """Shows the question and the view, and takes the reply as it is. Writes every move."""

    name = "plain"
    moves = AnyMove()

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """Make one call, with the view as numbered lines."""
        lines = [f"[{m.id}] agent {m.agent}: {m.content}" for m in view]
        text = "\n".join([f"You are {turn.agent.persona.name}.", debate.sample.question, *lines,
                          debate.answers.instruction(debate.sample)])
        return Reply((await debate.ask(text, agent=turn.agent, purpose="discuss")).text)


class SpeakAll(TurnOrder):
    """All agents speak at the same time."""

    name = "speak_all"
    moves = frozenset({"improve"})

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """One wave of all agents."""
        yield [Turn(agent, "improve") for agent in debate.agents]


class SeeAll(Visibility):
    """Every agent sees everything."""

    name = "see_all"

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The whole transcript."""
        return debate.transcript.messages


class LastRound(DecisionProtocol):
    """The answer that most voters end on; of several, the one given first."""

    name = "last_round"

    def at_end(self, debate: Debate) -> Decision:
        """Count the keys of the last round."""
        votes = {a.id for a in debate.voters}
        keys = [m.key for m in debate.transcript.of_round(debate.round) if m.key and m.agent in votes]
        if not keys:
            return Decision.undecided("no voter gave an answer that could be read")
        (key, most), *others = Counter(keys).most_common()
        return Decision(key, agreed=most > len(votes) / 2, scores=dict(Counter(keys)),
                        tie=any(n == most for _, n in others))
