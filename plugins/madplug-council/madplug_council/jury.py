"""A jury: every seat says yes or no to a claim, how sure it is, and why; a quorum and a threshold decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import (
    AnswerFormat,
    Decision,
    DecisionProtocol,
    Message,
    ModelName,
    Options,
    Plan,
    Reply,
    Sample,
    Turn,
    Vote,
)
from madplug_council.stages import OPINION, RoleOptions, SeatStyle, as_asked, seat
from madplug_prompting.prompts import fill, question_parts, user
from madplug_prompting.replies import read_json, read_share, spoken

if TYPE_CHECKING:
    from madplug import Debate

VOTES = ("yes", "no", "abstain")


class BallotOptions(RoleOptions):
    """The prompt."""

    prompt: str = Field(default=(
        "{question}\n\nIs this so? Reply with a JSON object and nothing else: {\"vote\": \"yes\", \"no\" or "
        "\"abstain\", \"confidence\": from 0 to 1, \"reason\": your strongest reason, in one sentence}. Abstain only "
        "if you cannot judge it."), description="prompt. {question}: the claim and, if given, the criteria")


class Ballot(SeatStyle):
    """A juror votes yes, no or abstains, with a confidence and one reason.

    A vote that cannot be read is an abstention, marked as such in the message's data. It goes with `answers.yesno`.
    """

    name = "ballot"
    moves = frozenset({OPINION})
    gives = frozenset({"vote"})
    shows_images = True
    Options = BallotOptions

    def check(self, cell: Any) -> Iterable[str]:
        """Votes can be read as answers."""
        answers: AnswerFormat | None = cell.answers
        if answers is not None and None in [answers.canonical(vote, Sample("", "")) for vote in VOTES[:2]]:
            yield f'votes are yes or no, which {answers.full_name} cannot read; use answers = "answers.yesno"'

    def used(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Sequence[Message]:
        """Nothing: a juror votes on the claim alone."""
        return []

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        chat = as_asked(debate, turn.agent, self.options, fill(
            self.options.prompt, question=question_parts(debate.sample)))
        text = spoken((await debate.ask(chat, agent=turn.agent, purpose="ballot")).text)
        fields = read_json(text) or {}
        vote = str(fields.get("vote", "")).strip().lower()
        data = {"vote": vote if vote in VOTES else "abstain", "read": vote in VOTES,
                "reason": str(fields.get("reason", "")), **({} if vote in VOTES else {"unparsed": True})}
        return Reply(text, answer=vote if vote in VOTES[:2] else "", confidence=read_share(fields.get("confidence")),
                     data={"council": data})


class JuryOptions(Options):
    """When a verdict holds."""

    quorum: int = Field(default=2, ge=1, le=10_000, description="votes, without abstentions, below which there is none")
    threshold: float = Field(default=0.5, ge=0, lt=1, description="yes needs a greater share of the votes than this")
    weigh: bool = Field(default=False, description="weigh a vote by its confidence; one that gives none counts fully")
    tie: Literal["no", "undecided", "chair"] = Field(default="undecided", description=(
        "what a share of exactly the threshold leads to; chair: one call decides"))
    model: ModelName | None = Field(default=None, description="the chair of a tie; default: the first juror's model")
    prompt: str = Field(default=(
        "{question}\n\nA jury is divided:\n\n{votes}\n\nYou decide. Reply with yes or no and nothing else."),
        description="prompt of the chair. {question}; {votes}: votes and reasons, without names")


class Jury(DecisionProtocol):
    """Yes if more than `threshold` of the votes say so, no if fewer; undecided without a quorum.

    Abstentions and votes that could not be read are no votes; both are counted in the notes under `council`, with every
    vote and reason. A verdict by the chair of a tie is a fallback.
    """

    name = "jury"
    needs = frozenset({"vote"})
    Options = JuryOptions

    def calls(self, plan: Plan) -> int:
        """One, if a tie goes to the chair."""
        return int(self.options.tie == "chair")

    async def at_end(self, debate: Debate) -> Decision:
        """Count."""
        cast = [m for m in debate.transcript.messages if "vote" in _noted(m) and m.agent is not None]
        weights = {m.agent: self._weight(m) for m in cast}
        sums = {vote: sum(weights[m.agent] for m in cast if _noted(m)["vote"] == vote) for vote in VOTES[:2]}
        given = [m for m in cast if _noted(m)["vote"] != "abstain"]
        votes = tuple(Vote(m.agent or 0, {m.key: weights[m.agent]} if m.key else {}, bool(_noted(m)["read"]))
                      for m in cast)
        unread = sum(not vote.valid for vote in votes)
        debate.notes["council"] = {"abstained": len(cast) - len(given), "unread": unread, "votes": [
            {"seat": seat(debate.agents[m.agent or 0], debate.agents), "vote": _noted(m)["vote"],
             "confidence": m.confidence, "reason": _noted(m)["reason"]} for m in cast]}
        if self.options.weigh and any(m.confidence is None for m in given):
            debate.notes["council"]["unparsed"] = True
        shown = f"{sums['yes']:.4g} yes, {sums['no']:.4g} no, {len(cast) - len(given)} abstained"
        if len(given) < self.options.quorum or not sum(sums.values()):
            return Decision(None, scores=sums, votes=votes, reason=f"{len(given)} of {len(cast)} voted, and the quorum "
                            f"is {self.options.quorum}: {shown}")
        share = sums["yes"] / sum(sums.values())
        if share != self.options.threshold:
            key = debate.key("yes" if share > self.options.threshold else "no")
            return Decision(key, agreed=True, scores=sums, votes=votes, reason=shown)
        key = await self._tie(debate, cast)
        if key is None and self.options.tie == "chair":
            debate.notes["council"]["unparsed"] = True
        return Decision(key, scores=sums, votes=votes, tie=True, fallback=key is not None, reason=f"a tie: {shown}")

    def _weight(self, message: Message) -> float:
        return 1.0 if not self.options.weigh or message.confidence is None else message.confidence

    async def _tie(self, debate: Debate, cast: Sequence[Message]) -> str | None:
        if self.options.tie != "chair":
            return debate.key("no") if self.options.tie == "no" else None
        listed = "\n".join(f"- {_noted(m)['vote']}: {_noted(m)['reason']}" for m in cast)
        prompt = fill(self.options.prompt, question=question_parts(debate.sample), votes=listed)
        said = await debate.ask([user(debate.sample, prompt)], purpose="chair", form={"regex": "yes|no"},
                                model=self.options.model or cast[0].model)
        return debate.key(spoken(said.text))


def _noted(message: Message) -> Mapping[str, Any]:
    return message.data.get("council") or {}
