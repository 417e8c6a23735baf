"""How a vote runs: nominations, ballots, a count, and one more round after a tie."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Agent, Decision, DecisionProtocol, Plan
from madplug_prompting import prompts
from madplug_prompting.finals import FinalOptions
from madplug_prompting.layout import IN_PERSONA, IN_TASK, PERSONA, compose
from madplug_prompting.ties import Tie, break_tie
from madplug_voting.altered import Extras, PresentationOptions, extras, lines, names_shown, seen
from madplug_voting.ballots import Abstained, Refused, as_numbers
from madplug_voting.nominees import Nominee, merged, nominees, wording
from madplug_voting.recorded import Ballot, Poll, find, read_poll, record
from madplug_voting.tally import Tally, Weights, count

if TYPE_CHECKING:
    from madplug import Debate

SHOWN = 500
"""At most this many characters of a refused reply are repeated to its author, and recorded."""


class VotingOptions(FinalOptions, PresentationOptions):
    """What all votes have in common. Prompts that are empty are left out."""

    vote_round: int = Field(default=3, ge=1, le=10_000, description=(
        "the first round after which there is a vote; if the debate has fewer, there is one vote at its end"))
    tie: Tie = Field(default="undecided", description=(
        "what several leading solutions lead to: one more round and another vote (`undecided`), or the first of them, "
        "a random one, or the first alphabetically"))
    fallback: Literal["first_agent", "none"] = Field(default="first_agent", description=(
        "the answer of a debate whose last vote was undecided; it never counts as agreed"))
    attempts: int = Field(default=10, ge=1, le=100, description=(
        "times an agent is asked for a ballot until it is valid; then its ballot is missing"))
    dedupe: Literal["none", "canon"] = Field(default="none", description=(
        "`none`: every agent's answer is a separate solution, so that equal answers share the votes; `canon`: equal "
        "answers are one solution"))
    self_votes: bool = Field(default=True, description="whether an agent may choose its own solution")
    index_base: Literal[0, 1] = Field(default=1, description=(
        "the number of the first solution: 1 as in the papers' figures, 0 as in their code"))
    structured: bool = Field(default=False, description=(
        "ask for a JSON object, and send its schema to models whose replies can be constrained; ballots in words are "
        "read too"))
    constrain: bool = Field(default=True, description=(
        "send the form of a ballot to models whose replies can be constrained to one"))
    max_characters: int = Field(default=8000, ge=1, description="a longer solution is cut on the list")
    persona: str = Field(default=PERSONA, description=f"prompt: who votes. {IN_PERSONA}")
    frame: str = Field(default="{question}", description=f"prompt, before the list: the task. {IN_TASK}")
    introduction: str = Field(default="These solutions were proposed:\n\n{solutions}", description=(
        "prompt, after the task: the list. {solutions}"))
    ask: str = Field(default="", description="prompt: what a ballot is to say")
    reply: str = Field(default="", description="prompt: the form of a ballot in words. {form}: see `example`")
    structure: str = Field(default="Reply with one JSON object and nothing else, in this form: {form}", description=(
        "prompt, with `structured`: the form of a ballot, instead of `reply`. {form}"))
    example: str = Field(default="", description=(
        "prompt: what {form} is, such as a ballot of a paper; by default placeholders that favour no solution"))
    own: str = Field(default="Solution {number} is your own and not to be chosen.", description=(
        "prompt, without `self_votes`. {number}"))
    retry: str = Field(default="That was not counted: {problem}. {ask} {reply}", description=(
        "prompt, after a reply that is not a valid ballot; empty: the same question again. {problem}, {ask}, {reply}"))


class Voting(DecisionProtocol):
    """What all votes with ballots share."""

    source = "Kaesberg et al. 2025 (Voting or Consensus), section 3.2, appendices C and E.2; Becker et al. 2025 (MALLM)"
    Options = VotingOptions
    lowest_wins = False

    # What differs from vote to vote

    @abstractmethod
    def read(self, text: str, allowed: Collection[int], voters: int) -> Weights:
        """A ballot's weights by the numbers on the list. Raises `Refused` for a reply that is none."""

    @abstractmethod
    def shape(self, numbers: Sequence[int]) -> str:
        """The form of a ballot, with placeholders that favour no solution."""

    @abstractmethod
    def pattern(self, numbers: Sequence[int]) -> str:
        """A regular expression of a ballot in words."""

    @abstractmethod
    def schema(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """The JSON schema of a ballot."""

    # The contract

    async def after_round(self, debate: Debate) -> Decision | None:
        """A vote from `vote_round` on; None after a tie. `at_end` runs the vote of the debate's last round."""
        if debate.round < self.options.vote_round or debate.round >= debate.rounds:
            return None
        return (await self.run_vote(debate))[0]

    async def at_end(self, debate: Debate) -> Decision:
        """The last vote; without a winner the first agent's answer, as a fallback."""
        decision, poll = await self.run_vote(debate)
        if decision is not None:
            return decision
        slate, tally = poll.slate, poll.tally
        if not slate:
            return Decision.undecided("no voter gave an answer that could be read")
        why = f"{f'a tie of {len(tally.leading)}' if tally.tie else 'no valid ballot'} in round {debate.round}"
        if tally.tie:
            why += _apart(slate)
        votes = tuple(b.vote(slate) for b in poll.ballots)
        undecided = Decision(None, scores=self._scores(poll), votes=votes, tie=tally.tie, reason=why)
        if self.options.fallback == "none":
            return undecided
        first = slate[0]
        whose = debate.agent(first.agents[0]).persona.name
        return replace(undecided, key=first.key, answer=wording(debate, first.key, first.answer), fallback=True,
                       reason=f"{why}; the answer is that of {whose}")

    async def run_vote(self, debate: Debate) -> tuple[Decision | None, Poll]:
        """One vote, or what came of it where this round was voted on before. No decision: a tie, or no valid ballot."""
        noted = find(debate, f"voting.{self.name}")
        if noted is not None and noted["presentation"] == self.options.official:
            poll = read_poll(noted, self.options.index_base)
        else:
            poll = await self._poll(debate)
        return self._decide(debate, poll), poll

    async def _poll(self, debate: Debate) -> Poll:
        """Nominate, ask for the ballots of every presentation, count and note them."""
        options, presentations = self.options, self._presentations()
        slate = await nominees(debate, options)
        if options.dedupe == "canon":
            slate = merged(slate)
        official, *others = presentations
        if not slate:
            poll = Poll(slate, Tally((), ()), ())
            self._note(debate, poll, {}, {})
            return poll
        # The official vote is over before anything else is asked, so that nothing else can change its calls.
        extra = await extras(debate, slate, options, {official}, options.attempts)
        poll = await self._count(debate, slate, official, extra)
        more = await extras(debate, slate, options, set(others), options.attempts)
        polls = await debate.ask_all(self._count(debate, slate, how, more) for how in others)
        self._note(debate, poll, dict(zip(others, polls, strict=True)), {**extra.confidence, **more.confidence})
        return poll

    def _decide(self, debate: Debate, poll: Poll) -> Decision | None:
        """The winner; None after a tie that no policy breaks, or without a valid ballot."""
        options, slate, tally, ballots = self.options, poll.slate, poll.tally, poll.ballots
        chosen = self._chosen(debate, slate, tally)
        if chosen is None:
            return None
        valid = sum(b.weights is not None for b in ballots)
        reason = f"vote after round {debate.round}: {float(tally.scores[chosen]):g} for solution " \
                 f"{chosen + options.index_base}, {valid} of {len(ballots)} ballots valid{_apart(slate)}"
        return Decision(slate[chosen].key, wording(debate, slate[chosen].key, slate[chosen].answer), not tally.tie,
                        self._scores(poll), tuple(b.vote(slate) for b in ballots), tally.tie,
                        reason=f"{reason}; a tie, broken by '{options.tie}'" if tally.tie else reason)

    def calls(self, plan: Plan) -> int:
        """Every round's vote, with every ballot asked for as often as it may be."""
        options, presentations = self.options, self._presentations()
        votes = max(1, plan.rounds - options.vote_round + 1)
        extract = plan.agents * ((options.final != "recorded") + ("confidence_log_probs" in presentations))
        asked = len(presentations) + ("confidence_prompted" in presentations)
        return int(votes * (extract + plan.agents * options.attempts * asked))

    def check(self, cell: Any) -> Iterable[str]:
        """Presentations that need a service have it."""
        for how, option in (("facts", "retriever"), ("confidence_consistency", "embedder")):
            if how in self._presentations() and getattr(self.options, option) is None:
                yield f"the presentation '{how}' needs the option '{option}': the name of a [services.NAME]"

    # A vote

    def _presentations(self) -> tuple[str, ...]:
        """The official one first, each once."""
        return tuple(dict.fromkeys((self.options.official, *self.options.alterations)))

    async def _count(self, debate: Debate, slate: Sequence[Nominee], how: str, extra: Extras) -> Poll:
        """The ballots of one presentation. No voter sees another's ballot."""
        ballots = await debate.ask_all(self._ballot(debate, voter, slate, how, extra) for voter in debate.voters)
        valid = (b.weights for b in ballots if b.weights is not None)
        return Poll(slate, count(valid, len(slate), lowest=self.lowest_wins), ballots)

    async def _ballot(self, debate: Debate, voter: Agent, slate: Sequence[Nominee], how: str, extra: Extras) -> Ballot:
        base, voters = self.options.index_base, len(debate.voters)
        numbers = self._eligible(voter, slate)
        ask, reply = self._words(numbers)
        chat = await self._chat(debate, voter, slate, how, extra, ask, reply, numbers)
        form = self._form(numbers) if self.options.constrain else None
        shown = names_shown(debate, slate, base) if how == "public" else {}
        again: list[prompts.Chat] = []
        said = ""
        for attempt in range(1, self.options.attempts + 1):
            said = (await debate.ask([*chat, *again], agent=voter, purpose="vote", form=form)).text
            try:
                weights = self.read(as_numbers(said, shown), numbers, voters)
                return Ballot(voter.id, {number - base: w for number, w in weights.items()}, attempt, said[:SHOWN])
            except Abstained:
                return Ballot(voter.id, None, attempt, said[:SHOWN])
            except Refused as refused:
                again = self._again(said, str(refused), ask, reply)
        return Ballot(voter.id, None, self.options.attempts, said[:SHOWN])

    def _form(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """The form of a ballot, for models whose replies can be constrained."""
        return {"json_schema": self.schema(numbers)} if self.options.structured else {"regex": self.pattern(numbers)}

    def _eligible(self, voter: Agent, slate: Sequence[Nominee]) -> list[int]:
        """The numbers a voter may choose from."""
        base = self.options.index_base
        return [i + base for i, nominee in enumerate(slate)
                if self.options.self_votes or len(slate) == 1 or voter.id not in nominee.agents]

    def _words(self, numbers: Sequence[int]) -> tuple[str, str]:
        """What is asked for, and in which form."""
        form = self.options.structure if self.options.structured else self.options.reply
        shape = self.options.example or self.shape(numbers)
        return self.request(numbers), prompts.fill(form, form=shape, example=shape)

    def request(self, numbers: Sequence[int]) -> str:
        """What a ballot is to say."""
        ask: str = self.options.ask
        return ask

    async def _chat(self, debate: Debate, voter: Agent, slate: Sequence[Nominee], how: str, extra: Extras, ask: str,
                    reply: str, numbers: Sequence[int]) -> list[prompts.Chat]:
        """Who votes, the task, the solutions, and how to vote."""
        options = self.options
        facts = prompts.fill(options.facts, passages="\n\n".join(extra.passages)) if how == "facts" else ""
        listed = prompts.fill(options.introduction, solutions=lines(debate, slate, options, how, extra))
        own = [i + options.index_base for i, n in enumerate(slate) if i + options.index_base not in numbers]
        body = [*(await seen(debate, voter, options.said) if how == "history" else ()),
                {"role": "user", "content": facts}, {"role": "user", "content": listed}]
        closing = [*(prompts.fill(options.own, number=number) for number in own), ask, reply]
        return compose(debate, voter, options, options.persona, options.frame, body, closing)

    def _again(self, said: str, problem: str, ask: str, reply: str) -> list[prompts.Chat]:
        if not self.options.retry:
            return []
        return [{"role": "assistant", "content": said[:SHOWN].strip() or "(nothing)"},
                {"role": "user", "content": prompts.fill(self.options.retry, problem=problem, ask=ask, reply=reply)}]

    def _scores(self, poll: Poll) -> dict[str, float]:
        return scores(poll.slate, poll.tally, lowest=self.lowest_wins)

    def _chosen(self, debate: Debate, slate: Sequence[Nominee], tally: Tally) -> int | None:
        leading = [(slate[i].key, i) for i in tally.leading]
        found = break_tie(debate, leading, self.options.tie, f"voting.{self.name}:tie:{debate.round}")
        return None if found is None else found[1]

    def _note(self, debate: Debate, official: Poll, others: Mapping[str, Poll],
              confidence: Mapping[str, Sequence[int | None]]) -> None:
        """Note the vote, and the votes that were counted for comparison only."""
        base = self.options.index_base
        note = {"presentation": self.options.official,
                "solutions": [{"number": i, "agents": list(n.agents), "key": n.key, "answer": n.answer}
                              for i, n in enumerate(official.slate, base)],
                **official.note(base)}
        if others:
            note["alterations"] = {how: poll.note(base) for how, poll in others.items()}
        if confidence:
            note["confidence"] = {how: list(values) for how, values in confidence.items()}
        if self.options.official == "confidence_prompted" and None in confidence.get("confidence_prompted", ()):
            note["unparsed"] = True
        record(debate, f"voting.{self.name}", note)


def _apart(slate: Sequence[Nominee]) -> str:
    """Why the ballots for an answer may be more than its score."""
    return ', where equal answers were solutions of their own (dedupe = "none"; "canon" makes them one)' \
        if len({one.key for one in slate}) < len(slate) else ""


def scores(slate: Sequence[Nominee], tally: Tally, *, lowest: bool = False) -> dict[str, float]:
    """The score of each answer: that of its best solution, since solutions are voted on and not answers.

    lowest: the lowest score wins.
    """
    found: dict[str, float] = {}
    best = min if lowest else max
    for nominee, score in zip(slate, tally.scores, strict=True):
        found[nominee.key] = best(found.get(nominee.key, float(score)), float(score))
    return found
