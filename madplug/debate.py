"""The debate: what components see of it, and the loop. No method is known here."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

from madplug.cell import Cell
from madplug.checks import (
    check_agents,
    check_decision,
    check_hook_result,
    check_iterable,
    check_reply,
    check_returned,
    check_returned_all,
    method_name,
)
from madplug.components import AnswerFormat, Service
from madplug.errors import ComponentError
from madplug.records import (
    Agent,
    Completion,
    DebateResult,
    Decision,
    Frozen,
    Message,
    Persona,
    Reply,
    Request,
    Review,
    Sample,
    Turn,
    Usage,
    frozen,
)
from madplug.transcript import Transcript

T = TypeVar("T")
MOST_REDOS = 20
"""A round taken back more often than this is a mistake of whoever takes it back."""


class Road(Protocol):
    """The way to the models: answers a request on behalf of a debate, and counts it there."""

    async def send(self, debate: Debate, request: Request) -> Completion:
        """Answer one request."""


@dataclass
class Spent:
    """What a debate has used."""

    calls: int = 0
    retries: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0

    def add(self, usage: Usage, retries: int) -> None:
        """Count one call."""
        self.calls += 1
        self.retries += retries
        self.prompt += usage.prompt
        self.completion += usage.completion
        self.cached += usage.cached
        known = self.cost_usd is not None and usage.cost_usd is not None
        self.cost_usd = self.cost_usd + usage.cost_usd if known else None  # type: ignore[operator]

    def usage(self) -> Usage:
        """The tokens and their cost."""
        return Usage(self.prompt, self.completion, self.cached, self.cost_usd)


class Debate:
    """One debate, as its components see it."""

    def __init__(self, cell: Cell, sample: Sample, references: Sequence[str] = (), *, road: Road,
                 repeat: int = 0, seed: int = 0, order: int = 0, matched: DebateResult | None = None) -> None:
        self.cell = cell
        self.sample = sample
        self.repeat = repeat
        self.round = 0
        self.rounds = cell.rounds
        self.agents: tuple[Agent, ...] = ()
        self.transcript = Transcript()
        self.decision: Decision | None = None
        self.notes: dict[str, Any] = {}
        """Facts to keep beside the debate; a component reads nothing here but its own."""
        self.matched = matched
        """The same sample's result in the cell this one is matched to."""
        self.order = order
        self.spent = Spent()
        self.asked: dict[bytes, int] = {}
        self._references = tuple(references)
        self._seed = seed
        self._road = road

    # What components ask of it

    @property
    def answers(self) -> AnswerFormat:
        """What counts as an answer, and when two answers are the same."""
        return self.cell.answers

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that agents use."""
        return self.cell.models

    @property
    def voters(self) -> tuple[Agent, ...]:
        """The agents that count in the decision, in order."""
        return tuple(a for a in self.agents if a.persona.votes)

    def with_role(self, role: str) -> tuple[Agent, ...]:
        """The agents whose persona has this role, in order."""
        return tuple(a for a in self.agents if a.persona.role == role)

    def agent(self, id: int) -> Agent:
        """The agent with this id."""
        return self.agents[id]

    @property
    def references(self) -> tuple[str, ...]:
        """The right answers. Raises `ComponentError` unless the run file says `oracle = true`."""
        if not self.cell.oracle:
            raise ComponentError("a component read debate.references, and the run file does not say oracle = true")
        return self._references

    def key(self, text: str | None) -> str | None:
        """The canonical answer in a text; where an equal one is on record, that one's key."""
        key = self.answers.canonical(text, self.sample) if text else None
        return None if key is None else self._known(check_returned(key, str, self.answers, "canonical"))

    def _known(self, key: str) -> str:
        known = dict.fromkeys(m.key for m in self.transcript.record if m.key is not None)
        if key in known:
            return key
        return next((k for k in known if self.answers.same(k, key, self.sample)), key)

    def neighbours(self, agent: Agent, round: int | None = None) -> Sequence[int]:
        """Ids of the agents whose messages an agent may see in a round, by default this one."""
        return self.cell.visibility.neighbours(self, agent, self.round if round is None else round)

    async def view(self, turn: Turn) -> tuple[Message, ...]:
        """The messages an agent is shown for a turn, as the visibility and every extension would have it."""
        view = await maybe_await(self.cell.hooks.madplug_view(debate=self, turn=turn))
        shown: Sequence[Any] = check_hook_result(view, (tuple, list), "view")
        for message in shown:
            if not isinstance(message, Message):
                check_hook_result(message, Message, "view")
        return tuple(shown)

    def service(self, name: str) -> Service:
        """The service of this name in the run file."""
        return self.cell.services[name]

    def rng(self, scope: str) -> random.Random:
        """A generator seeded from the study's seed, repeat, sample and scope: the same whatever ran before."""
        text = f"{self._seed}\0{self.repeat}\0{self.sample.id}\0{scope}"
        return random.Random(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big"))

    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, agent: Agent | int | None = None,
                  model: str | None = None, form: Mapping[str, Any] | None = None,
                  params: Mapping[str, Any] | None = None) -> Completion:
        """Ask a model: `model`, or the agent's, or the first of the cell's.

        messages: `{"role", "content"}` each, or a string for one user message. purpose: why, kept with the call.
        Raises `ModelError` when the model could not be made to answer; that fails the debate unless caught.
        """
        speaker = self.agents[agent] if isinstance(agent, int) else agent
        name = model or (speaker.model if speaker else None) or (self.models[0] if self.models else None)
        if name is None:
            raise ComponentError(f"a component asked a model (purpose '{purpose}'), and the cell has none")
        if isinstance(messages, str):
            messages = ({"role": "user", "content": messages},)
        request = Request(tuple(messages), purpose, name, speaker.id if speaker else None, params or {}, form)
        request = await maybe_await(self.cell.hooks.madplug_request(debate=self, request=request))
        check_hook_result(request, Request, "request")
        said = await maybe_await(self.cell.hooks.madplug_complete(debate=self, request=request))
        return check_hook_result(said, Completion, "complete")

    async def ask_all(self, asks: Iterable[Awaitable[T]]) -> list[T]:
        """Await several asks concurrently; their results in order. Waits for all before an error is raised."""
        return await gather_all(asks)

    # What the loop does with it

    async def send(self, request: Request) -> Completion:
        """Take the road to the model."""
        return await self._road.send(self, request)

    async def respond(self, turn: Turn, view: Sequence[Message]) -> Reply:
        """Let the style that takes this turn write it, and read the answer out of it."""
        bound = next((s for s in self.cell.styles if s.takes(turn.agent, turn)), None)
        if bound is None:
            raise ComponentError(f"no style of this cell takes the move '{turn.move}' of agent {turn.agent.id} "
                                 f"({turn.agent.persona.role})")
        reply = check_returned(await maybe_await(bound.style.respond(self, turn, view)), Reply, bound.style, "respond")
        return check_reply(reply, f"{method_name(bound.style, 'respond')} returned")

    async def read(self, turn: Turn, reply: Reply) -> tuple[str | None, str | None]:
        """The answer a reply gives, and its canonical form."""
        answer = reply.answer
        if answer is None:
            found = await maybe_await(self.answers.extract(self, turn, reply.content))
            answer = None if found is None else check_returned(found, str, self.answers, "extract")
        return (answer, self.key(answer)) if answer else (None, None)

    def record(self, message: Message) -> None:
        """Put a message on record; an answer equal to an earlier one gets that one's key."""
        if message.key is not None:
            key = self._known(message.key)
            message = message if key == message.key else replace(message, key=key)
        if not isinstance(message.data, Frozen):
            message = replace(message, data=frozen(message.data))
        message = self.transcript._append(message)
        self.tell("madplug_message", message=message)

    def tell(self, event: str, **facts: Any) -> None:
        """Send an event of this debate."""
        self.cell.tell(event, getattr(self._road, "report", _unheard), debate=self, **facts)

    def result(self, *, error: str | None = None, seconds: float = 0.0) -> DebateResult:
        """The debate as it is stored."""
        return DebateResult(
            cell=self.cell.slug, repeat=self.repeat, sample=self.sample, references=self._references,
            agents=self.agents, messages=self.transcript.record, decision=None if error else self.decision,
            calls=self.spent.calls, retries=self.spent.retries, tokens=self.spent.usage(), seconds=seconds,
            error=error, notes=self.notes)

    @classmethod
    def stored(cls, result: DebateResult, cell: Cell, *, road: Road, seed: int = 0) -> Debate:
        """A debate that was held before: its components may look at it and ask, and nothing else changes."""
        debate = cls(cell, result.sample, result.references, road=road, repeat=result.repeat, seed=seed)
        debate.agents, debate.round = result.agents, result.rounds
        debate.transcript = Transcript(result.messages)
        debate.decision = result.decision or Decision.undecided(f"failed: {result.error}")
        debate.notes = dict(result.notes)
        return debate


# The loop

async def run_debate(debate: Debate) -> Decision:
    """Hold one debate: personas, casting, openings, rounds, decision, phases."""
    cell = debate.cell
    debate.transcript.held = True
    debate.agents = await assemble(debate)
    opening = await maybe_await(cell.hooks.madplug_opening(debate=debate))
    openings: Sequence[Any] = check_hook_result(opening, (tuple, list), "opening")
    for message in openings:
        debate.record(replace(check_hook_result(message, Message, "opening"), round=0))
    debate.tell("madplug_debate_started")
    decision = await hold_rounds(debate)
    if decision is None:
        decision = check_decision(await maybe_await(cell.decision.at_end(debate)), cell.decision, "at_end")
    return await conclude(debate, decision)


async def conclude(debate: Debate, decision: Decision) -> Decision:
    """Let a decision stand, and hold the phases after it."""
    debate.decision = settle(decision)
    debate.tell("madplug_decided", decision=debate.decision)
    for phase in debate.cell.phases:
        changed = await maybe_await(phase.run(debate, debate.decision))
        debate.decision = settle(check_decision(changed, phase, "run")) if changed else debate.decision
    return debate.decision


async def decide_again(debate: Debate, recorded: DebateResult) -> Decision:
    """Let the decision protocol follow a recorded debate, wave by wave, as if it were being held; nobody speaks."""
    decide, decision = debate.cell.decision, None
    debate.agents, debate.notes = recorded.agents, dict(recorded.notes)
    stands = [m for m in recorded.messages if not m.retracted]
    ids = {message.id: i for i, message in enumerate(stands)}  # without those that were taken back
    for i, message in enumerate(stands):
        debate.transcript._append(replace(message, seen=tuple(ids[j] for j in message.seen if j in ids)))
        debate.round = message.round
        after = stands[i + 1] if i + 1 < len(stands) else None
        ends_round = after is None or after.round != message.round
        if message.round == 0 or (message.agent is None and not ends_round):
            continue
        if ends_round or (after and after.wave != message.wave):
            decision = await maybe_await(decide.after_wave(debate))
        if decision is None and ends_round:
            decision = await maybe_await(decide.after_round(debate))
        if decision is not None:
            break
    if decision is None:
        decision = await maybe_await(decide.at_end(debate))
    return await conclude(debate, check_decision(decision, decide, "at_end"))


async def hold_rounds(debate: Debate) -> Decision | None:
    """Round after round until a decision, a stop, a round without a turn, or the last round."""
    redos = 0
    debate.round = 1
    while debate.round <= debate.rounds:
        decision = await hold_round(debate)
        if decision is not None:
            return decision
        if not debate.transcript.of_round(debate.round):
            debate.round -= 1
            return None
        review = await first_answer(debate.cell.hooks.madplug_round_ended(debate=debate))
        review = Review() if review is None else check_hook_result(review, Review, "round_ended")
        if review.redo:
            redos += 1
            if redos > MOST_REDOS:
                raise ComponentError(f"round {debate.round} was taken back {redos} times; an extension never takes it")
            debate.transcript._retract(m.id for m in debate.transcript.of_round(debate.round))
        if review.say is not None:
            check_hook_result(review.say, str, "round_ended")
            debate.record(Message(0, debate.round, 0, None, "say", review.say))
        if review.stop or (debate.round == debate.rounds and not review.redo):
            return None
        debate.round += not review.redo
    return None


async def hold_round(debate: Debate) -> Decision | None:
    """One pass of the turn order, wave by wave."""
    decide, turns = debate.cell.decision, debate.cell.turns
    spoke = 0
    async for wave in iterate(check_iterable(turns.waves(debate), f"{method_name(turns, 'waves')} returned")):
        asked = check_returned_all([wave] if isinstance(wave, Turn) else wave, Turn, turns, "waves")
        await hold_wave(debate, spoke, asked)
        spoke += 1
        decision = await maybe_await(decide.after_wave(debate))
        if decision is not None:
            return check_decision(decision, decide, "after_wave")
    if not spoke:
        return None
    decision = await maybe_await(decide.after_round(debate))
    return None if decision is None else check_decision(decision, decide, "after_round")


async def hold_wave(debate: Debate, number: int, turns: Sequence[Turn]) -> None:
    """All turns of a wave on the same transcript, recorded in the wave's order."""
    views = [await debate.view(turn) for turn in turns]
    taken = await gather_all(take_turn(debate, turn, view) for turn, view in zip(turns, views, strict=True))
    for turn, view, (reply, answer, key) in zip(turns, views, taken, strict=True):
        debate.record(Message(
            len(debate.transcript), debate.round, number, turn.agent.id, turn.move, reply.content, turn.stage, answer,
            key, reply.agreement, reply.confidence, tuple(m.id for m in view), data=frozen(reply.data)))


async def take_turn(debate: Debate, turn: Turn, view: Sequence[Message]) -> tuple[Reply, str | None, str | None]:
    """One turn: the reply, its answer and its key."""
    given = await maybe_await(debate.cell.hooks.madplug_reply(debate=debate, turn=turn, view=view))
    reply = check_hook_result(given, Reply, "reply")
    check_reply(reply, "the hook 'madplug_reply' gave")
    return (reply, *await debate.read(turn, reply))


async def assemble(debate: Debate) -> tuple[Agent, ...]:
    """Personas, one generator after the other, and a model for each."""
    cell = debate.cell
    roster: list[Persona] = []
    generators = iter(cell.personas)
    generator = next(generators, None)
    while len(roster) < cell.wanted:
        if generator is None:
            roster.append(Persona(f"Agent {len(roster) + 1}"))
            continue
        made = await maybe_await(generator.generate(debate, tuple(roster)))
        made = check_returned_all([made] if isinstance(made, Persona) else made, Persona, generator, "generate")
        roster += made
        if not made or (cell.agents is not None and len(roster) > cell.agents):
            raise ComponentError(f"{type(generator).__qualname__}.generate made {len(made)} personas; "
                                 f"{len(roster)} are there now, and {cell.agents} are wanted")
        generator = next(generators, generator)
    if cell.casting is not None:
        debate.agents = tuple(Agent(i, p, None) for i, p in enumerate(roster))  # so that places can be looked at
        agents = check_returned_all(await maybe_await(cell.casting.cast(debate, roster)), Agent, cell.casting, "cast")
        return check_agents(agents, cell.wanted, cell.channels or cell.models, cell.casting)
    return tuple(Agent(i, p, cell.models[i % len(cell.models)] if cell.models else None)
                 for i, p in enumerate(roster))


def settle(decision: Decision) -> Decision:
    """A decision in the form it is kept: an answer for every key, and no agreement where a fallback answered."""
    return replace(decision, answer=decision.key if decision.answer is None else decision.answer,
                   agreed=decision.agreed and not decision.fallback)


# Small things

async def maybe_await(value: Any) -> Any:
    """The value, awaited where it is awaitable."""
    return await value if hasattr(value, "__await__") else value


async def first_answer(answers: Sequence[Any]) -> Any:
    """The first answer that is not None, in the order in which those who answer were named."""
    waiting = list(reversed(answers))  # pluggy asks the last registered first
    try:
        while waiting:
            if (answer := await maybe_await(waiting.pop(0))) is not None:
                return answer
    finally:
        for unheard in waiting:
            getattr(unheard, "close", lambda: None)()
    return None


async def iterate(waves: Any) -> Any:
    """The items of a plain or an asynchronous generator."""
    if hasattr(waves, "__aiter__"):
        async for wave in waves:
            yield wave
    else:
        for wave in waves:
            yield wave


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order, concurrently. No sibling is cut off when one fails: its call may be paid for."""
    waiting = list(awaitables)
    if len(waiting) == 1:
        return [await waiting[0]]
    from asyncio import gather  # a plugin that is only listed needs no event loop

    results = await gather(*waiting, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


def _unheard(problem: str) -> None:
    """Nobody listens: a debate outside a study."""
