"""Consensus: a debate ends when enough agents support the proposal on the table.

Support is counted in `standing.py`; here are the rules for how much of it is enough, and what follows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from madplug import Decision, DecisionProtocol, Message, Plan, Reply, Turn, Vote, count, hookimpl
from madplug_consensus.standing import Standing, contradicting, history, standing, unreadable
from madplug_prompting import prompts
from madplug_prompting.finals import FinalAnswer, is_stated, read_recorded
from madplug_prompting.layout import IN_PERSONA, IN_TASK, PERSONA, LayoutOptions, compose

if TYPE_CHECKING:
    from madplug import Debate

MALLM = "Becker et al. 2025 (MALLM), section 3.3; Kaesberg et al. 2025 (Voting or Consensus), section 3.2"


class ConsensusOptions(LayoutOptions):
    """When agreement ends a debate, and how the answer of the accepted proposal is found."""

    fixed_rounds: bool = Field(default=False, description=(
        "discuss for all rounds, also after an agreement; what has enough support after the last message decides"))
    final: Literal["ask_if_unread", "recorded", "ask"] = Field(default="ask_if_unread", description=(
        "where the answer comes from: the proposal (`recorded`), or the agent that agreed last, which is asked to "
        "write it down: always (`ask`, as in the paper) or where the proposal states none (with answers in words: not "
        "in a closing line)"))
    extract_persona: str = Field(default=PERSONA, description=(
        f"prompt: who writes the group's answer down. {IN_PERSONA}"))
    extract_frame: str = Field(default="{question}", description=f"prompt, before the discussion: the task. {IN_TASK}")
    extract_previous: str = Field(default="The solution on the table: {solution}", description=(
        "prompt, after a discussion that does not show it: the proposal. {solution}"))
    attempts: int = Field(default=3, ge=1, le=20, description="the most attempts to get an answer that can be read")
    solve: str = Field(default=(
        "The discussion is over. Write down the solution that the group has reached, going by the latest messages. "
        "Add nothing else."), description="prompt, after the discussion: the request for the group's answer")


class SharedOptions(ConsensusOptions):
    """Whether a share has to be exceeded or only reached."""

    compat: Literal["paper", "code"] = Field(default="paper", description=(
        "`paper`: more than the share is needed; `code`: the share itself is enough, as in MALLM's code"))


class Consensus(DecisionProtocol):
    """What all protocols of this plugin share: they decide after every message."""

    source = MALLM
    needs = frozenset({"agreement"})
    Options = ConsensusOptions

    @abstractmethod
    def enough(self, support: int, quorum: int, round: int) -> bool:
        """Whether `support` of `quorum` voters end the debate in this round."""

    async def after_wave(self, debate: Debate) -> Decision | None:
        """The proposal on the table, once enough voters support it."""
        if self.options.fixed_rounds:
            return None
        voters = {a.id for a in debate.voters}
        now = standing(debate.transcript.messages, voters)
        return await self.reached(debate, now) if self.is_reached(now, len(voters)) else None

    async def at_end(self, debate: Debate) -> Decision:
        """The first proposal that had enough support; else the latest one, as a fallback.

        With `fixed_rounds` only the support after the last message counts.
        """
        voters = {a.id for a in debate.voters}
        past = list(history(debate.transcript.messages, voters))
        past = past[-1:] if self.options.fixed_rounds else past
        met = next((then for then in past if self.is_reached(then, len(voters))), None)
        if met is not None:
            return await self.reached(debate, met)
        if not past or past[-1].proposal is None:
            return Decision.undecided("no agent proposed a solution")
        why = f"not agreed: {of(past[-1].support, len(voters))} the latest proposal"
        return await self.decide(debate, past[-1], why, agreed=False)

    def is_reached(self, now: Standing, quorum: int) -> bool:
        """Whether the rule is met; without voters it never is."""
        return now.proposal is not None and now.support > 0 and self.enough(now.support, quorum, now.round)

    async def reached(self, debate: Debate, now: Standing) -> Decision:
        """The decision of voters that agree."""
        return await self.decide(debate, now, f"{of(now.support, len(debate.voters))} the proposal", agreed=True)

    async def decide(self, debate: Debate, now: Standing, why: str, *, agreed: bool) -> Decision:
        """The answer of the proposal on the table. One that cannot be read is never an agreement."""
        assert now.proposal is not None
        self.note(debate, now.proposal)
        answer, key = await self.answer(debate, now)
        lost = () if agreed else unreadable(debate.transcript.messages)
        author = next((a.persona.name for a in debate.agents if a.id == now.proposal.agent), "a note")
        why = f"{why} ({author}'s in round {now.proposal.round})" + (
            f"; in {count(len(lost), 'message')} no agreement or disagreement could be read" if lost else "")
        if key is None:
            return Decision(None, fallback=not agreed, reason=f"{why}; the answer of that proposal could not be read")
        votes = tuple(Vote(agent, {key: 1}) for agent in now.supporters)
        return Decision(key, answer, agreed, {key: now.support}, votes, fallback=not agreed, reason=why)

    async def answer(self, debate: Debate, now: Standing) -> tuple[str | None, str | None]:
        """The answer of the proposal and its key: as recorded, or as the last agent writes it down."""
        proposal = now.proposal
        assert proposal is not None
        if self.options.final == "recorded":
            recorded = FinalAnswer(proposal.agent or 0, proposal.content, None, proposal.key)
            read = await read_recorded(debate, recorded, proposal)
            self.flag(debate, read.unparsed)
            return read.answer, read.key
        if self.options.final != "ask" and is_stated(debate, proposal):
            return None, proposal.key  # the host finds its words
        last = now.supporters[-1] if now.supporters else proposal.agent
        for _ in range(self.options.attempts):
            answer, key = await self.ask(debate, Turn(debate.agents[last or 0], "final"), proposal)
            if key is not None:
                return answer, key
        self.flag(debate)
        return None, proposal.key

    async def ask(self, debate: Debate, turn: Turn, proposal: Message) -> tuple[str | None, str | None]:
        """Ask an agent to write the group's answer down, going by what it can see and the proposal."""
        options, view = self.options, await debate.view(turn)
        unseen = proposal.answer and all(m.id != proposal.id for m in view)
        solution = prompts.fill(options.extract_previous, solution=proposal.answer) if unseen else ""
        chat = compose(debate, turn.agent, options, options.extract_persona, options.extract_frame,
                       prompts.discussion(debate, turn, view, options.said),
                       [solution, options.solve, debate.answers.instruction(debate.sample)])
        form = debate.answers.form(debate.sample, body=0)
        said = await debate.ask(chat, agent=turn.agent, purpose="extract", form=form)
        return await debate.read(turn, Reply(said.text))

    def note(self, debate: Debate, proposal: Message) -> None:
        """Note what made counting support uncertain."""
        messages = debate.transcript.messages
        facts = {"unreadable_agreement": unreadable(messages), "contradicting": contradicting(messages, proposal)}
        found = {name: ids for name, ids in facts.items() if ids}
        if found:
            debate.notes["consensus"] = found

    def flag(self, debate: Debate, unparsed: bool = True) -> None:
        """Note that the answer could not be read."""
        if unparsed:
            debate.notes["consensus"] = {**debate.notes.get("consensus", {}), "unparsed": True}

    def calls(self, plan: Plan) -> int:
        """The attempts to read one answer."""
        return 0 if self.options.final == "recorded" else self.options.attempts


def of(support: int, quorum: int) -> str:
    """`2 of 3 voters support`."""
    return f"{support} of {quorum} voters {'supports' if support == 1 else 'support'}"


class Majority(Consensus):
    """The debate ends when more than half of the voters support the proposal on the table.

    A draft, or an improvement that disagrees, is a proposal and has its author's support; an agent that has seen it
    and agrees supports it. Support is counted after every message. If no majority forms, the latest proposal is
    taken as a fallback.

    Differs from the released code of MALLM, which takes half for a majority (`compat = "code"`), counts neutral
    agents among the voters and an agreement with an older proposal for the latest one, and loses count of
    agreement from version 1.0.0 on.
    """

    name = "majority"
    Options = SharedOptions
    share = 0.5

    def enough(self, support: int, quorum: int, round: int) -> bool:
        """More than the share, or as much with `compat = "code"`."""
        part = support / quorum
        return part >= self.share if self.options.compat == "code" else part > self.share


class Supermajority(Majority):
    """The debate ends when more than 66 % of the voters support the proposal on the table.

    The share is 0.66 and not two thirds, so that two of three voters are enough; with three voters this is the
    same rule as `consensus.majority`. Everything else is as there.

    Differs from the released code of MALLM as `consensus.majority` does.
    """

    name = "supermajority"
    share = 0.66


class Unanimity(Consensus):
    """The debate ends when all voters support the proposal on the table.

    If that never happens, the latest proposal is taken as a fallback.
    """

    name = "unanimity"

    def enough(self, support: int, quorum: int, round: int) -> bool:
        """All voters."""
        return support == quorum


class Hybrid(Consensus):
    """The debate ends when all voters support the proposal on the table; later, 75 % of them are enough.

    All must agree in the first rounds, and in every round among three voters or fewer. MALLM's default, after
    the rule of Exchange-of-Thought.
    """

    name = "hybrid"

    class Options(ConsensusOptions):
        """When fewer than all are enough, and how many."""

        patience: int = Field(default=5, ge=1, le=10_000, description="first round in which the share is enough")
        share: float = Field(default=0.75, gt=0, le=1, description="share of the voters that is then enough")
        few: int = Field(default=3, ge=0, le=10_000, description="voters up to which all must always agree")

    def enough(self, support: int, quorum: int, round: int) -> bool:
        """All voters, or the share from the round in which it is enough."""
        if quorum <= self.options.few or round < self.options.patience:
            return support == quorum
        return support / quorum >= self.options.share


class Threshold(Consensus):
    """The debate ends when a share of the voters that the run file chooses supports the proposal on the table."""

    name = "threshold"
    source = ""

    class Options(ConsensusOptions):
        """The share."""

        share: float = Field(default=0.5, ge=0, le=1, description="share of the voters that support a proposal")
        strict: bool = Field(default=True, description="more than the share is needed; false: the share is enough")

        @model_validator(mode="after")
        def can_be_met(self) -> Threshold.Options:
            """No more than all voters can agree."""
            if self.strict and self.share == 1:
                raise ValueError("no support exceeds a share of 1; set strict = false, or use consensus.unanimity")
            return self

    def enough(self, support: int, quorum: int, round: int) -> bool:
        """More than the share, or at least the share."""
        part, share = support / quorum, self.options.share
        return part > share if self.options.strict else part >= share


@hookimpl
def madplug_register_decisions() -> Iterable[type[DecisionProtocol]]:
    """Register five decisions."""
    return [Majority, Supermajority, Unanimity, Hybrid, Threshold]
