"""The loop: personas, casting, opening, rounds, decision, phases. It knows no particular method."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from madplug.aio import gather_all, iterate, maybe_await
from madplug.debate.checks import (
    check_agents,
    check_hook_result,
    check_iterable,
    check_returned,
    check_returned_all,
    describe_error,
    leaving,
    method_name,
    type_error,
)
from madplug.debate.state import (
    DebateState,
    change,
    changed_paths,
    join,
    record,
    retract,
    seat,
    tell,
    to_result,
    turn_calls,
)
from madplug.errors import ComponentError, EmptyReplyError, ModelError
from madplug.events import Decided
from madplug.kinds import DecisionProtocol
from madplug.records import (
    FAILED,
    LEAVE,
    REOPENED,
    REPLACE,
    SAY,
    Agent,
    Decision,
    Message,
    Persona,
    Reopen,
    Reply,
    Review,
    Turn,
    frozen,
)

MOST_REPEATS = 20
"""If a round is retracted, or a debate reopened, more often than this, the component that requests it is at fault."""


async def run_debate(state: DebateState) -> Decision:
    """Run one debate to its decision."""
    state.transcript.locked = True
    seat(state, await cast_agents(state))
    opening = await maybe_await(state.cell.hooks.madplug_opening(debate=state))
    messages: Sequence[Any] = check_hook_result(opening, (tuple, list), "opening")
    for message in messages:
        record(state, replace(check_hook_result(message, Message, "opening"), round=0))
    change(state, round=1)
    return await conclude(state, await run_rounds(state))


async def run_rounds(state: DebateState) -> Decision:
    """Round after round until a decision, a stop, a round without a turn, or the last round."""
    redos = 0
    while state.round <= state.rounds:
        decision = await run_round(state)
        if decision is not None:
            return decision
        if not state.transcript.of_round(state.round):
            change(state, round=state.round - 1)
            break
        review = await review_round(state)
        redos += review.redo
        if redos > MOST_REPEATS:
            raise ComponentError(f"round {state.round} was retracted {redos} times; an extension keeps requesting a "
                                 "redo")
        if review.stop or (state.round == state.rounds and not review.redo):
            break
        if not review.redo:
            change(state, round=state.round + 1)
    return await decide(state, "at_end") or Decision.undecided("the decision protocol gave no decision")


async def run_round(state: DebateState) -> Decision | None:
    """One pass of the turn order, wave by wave."""
    turns = state.cell.turns
    number = 0
    async for wave, asked in waves_of(state):
        left = state.transcript.left
        wanted = [turn for turn in check_returned_all(wave, Turn, turns, "waves") if turn.agent.id not in left]
        if left and not wanted:
            state.other_calls.extend(asked)
            continue
        if turns.seats:
            join(state, wanted)
        await run_wave(state, number, wanted, asked)
        number += 1
        decision = await decide(state, "after_wave")
        if decision is not None:
            return decision
    return await decide(state, "after_round") if number else None


@contextmanager
def collected() -> Iterator[list[tuple[str, str]]]:
    """The calls (key, model) that are made within, for the message that they are made for."""
    calls: list[tuple[str, str]] = []
    token = turn_calls.set(calls)
    try:
        yield calls
    finally:
        turn_calls.reset(token)


async def waves_of(state: DebateState) -> AsyncIterator[tuple[Any, list[str]]]:
    """The waves of a round, each with the keys of the calls that the turn order made for it."""
    turns = state.cell.turns
    waves = iterate(check_iterable(turns.waves(state), f"{method_name(turns, 'waves')} returned"))
    while True:
        with collected() as calls:
            try:
                wave = await anext(waves)
            except BaseException as error:
                state.other_calls.extend(key for key, _ in calls)
                if isinstance(error, StopAsyncIteration):
                    return
                raise
        yield wave, [key for key, _ in calls]


async def run_wave(state: DebateState, number: int, turns: Sequence[Turn], asked: Sequence[str]) -> None:
    """Take all turns of a wave on the same transcript, and record their messages in the wave's order.

    asked: keys of the calls that the turn order made for the wave; they stand before those of the first message.
    """
    views = [await state.view(turn) for turn in turns]
    taken = await gather_all(attempt(state, turn, view) for turn, view in zip(turns, views, strict=True))
    before = state.transcript.record
    for turn, (_, failures, model) in zip(turns, taken, strict=True):
        if failures:
            give_up(state, turn.agent, failures, model)
    for turn, view, (said, _, _) in zip(turns, views, taken, strict=True):
        if said is None:
            continue
        reply, answer, key, calls = said
        record(state, Message(
            0, state.round, number, turn.agent.id, turn.move, reply.content, turn.stage, answer, key,
            reply.agreement, reply.confidence, tuple([m.id for m in view]),
            tuple([m.id for m in view if m is not before[m.id] and m != before[m.id]]), False,
            calls[-1][1] if calls else None, (*asked, *(key for key, _ in calls)),
            frozen({**turn.data, **reply.data} if turn.data else reply.data)))
        asked = ()
    state.other_calls.extend(asked)


Said = tuple[Reply, str | None, str | None, list[tuple[str, str]]]
"""A reply, its answer and key, and the calls (key, model) behind it."""


async def attempt(state: DebateState, turn: Turn, view: Sequence[Message]) -> tuple[Said | None, list[str], str | None]:
    """Take one turn, on other models where the run file says so; without a reply, the agent has failed.

    Returns what was said, the reason of each failure, and the model that took the turn.
    """
    policy, failures = state.cell.on_failed_agent, list[str]()
    agent = state.agents[turn.agent.id]
    others = state.cell.models if policy == "replace" else ()
    for model in dict.fromkeys([agent.model, *others]):
        try:
            taken = turn if model == turn.agent.model else replace(turn, agent=replace(agent, model=model))
            return await take_turn(state, taken, view), failures, model
        except ModelError as error:
            if policy == "fail":
                raise
            failures.append(describe_error(error))
    return None, failures, None


def give_up(state: DebateState, agent: Agent, failures: Sequence[str], model: str | None) -> None:
    """Record that an agent has failed: it goes on with another model, or leaves, as long as enough voters are left."""
    data: dict[str, Any] = {"failed": {str(agent.id): "; ".join(failures)}}
    if model is not None:
        change(state, agents=tuple(replace(a, model=model) if a.id == agent.id else a for a in state.agents))
    record(state, Message(0, state.round, 0, None, REPLACE if model else LEAVE, "", FAILED,
                          data={"madplug": {**data, **({"model": model} if model else {"left": [agent.id]})}}))
    if len(state.voters) < state.cell.quorum:
        said = "; ".join(to_result(state).failures.values())
        raise ModelError(f"{len(state.voters)} of {len(state.agents)} agents are left, and the quorum is "
                         f"{state.cell.quorum}: {said}")


async def take_turn(state: DebateState, turn: Turn, view: Sequence[Message]) -> Said:
    """Take one turn; return the reply, its answer and key, and the calls (key, model) behind it."""
    seen = state.seen_by(turn.agent)
    with collected() as calls:
        try:
            given = await maybe_await(state.cell.hooks.madplug_reply(debate=seen, turn=turn, view=view))
            reply = check_hook_result(given, Reply, "reply")
            if calls and not reply.content.strip():
                if state.cell.on_failed_agent != "fail":
                    raise EmptyReplyError(f"model '{calls[-1][1]}' answered with no text")
                reply = silent(reply)
            return (reply, *await seen.read(turn, reply), calls)
        except Exception:  # the message that these calls were made for is never recorded
            state.other_calls.extend(key for key, _ in calls)
            raise


def silent(reply: Reply) -> Reply:
    """The reply of an agent whose model said nothing: neither an answer nor a stance, and marked in its data."""
    return replace(reply, content="", answer="", agreement=None, data={**reply.data, "madplug": {"silent": True}})


async def review_round(state: DebateState) -> Review:
    """Ask the extensions about the round that has ended, and carry out what they request."""
    with collected() as calls:
        given = await maybe_await(state.cell.hooks.madplug_round_ended(debate=state))
    review = Review() if given is None else check_hook_result(given, Review, "round_ended")
    left = leaving(review, len(state.agents))
    if review.redo:
        retract(state, state.transcript.of_round(state.round))
    if review.say is None and not left:
        state.other_calls.extend(key for key, _ in calls)
    else:
        data = {**review.data, "madplug": {"left": left}} if left else review.data
        record(state, Message(0, state.round, 0, None, LEAVE if left else SAY, review.say or "",
                              model=calls[-1][1] if calls else None, calls=tuple(key for key, _ in calls), data=data))
    return review


async def decide(state: DebateState, method: str) -> Decision | None:
    """Ask the decision protocol, which is a plugin's, for a decision or None, and remember which notes it wrote."""
    protocol = state.cell.decision
    if state.transcript.left and not state.voters:
        return Decision.undecided("every agent that votes has left the debate") if method == "at_end" else None
    if method != "at_end" and getattr(type(protocol), method) is getattr(DecisionProtocol, method):
        return None  # it decides at the end only
    given = await _noted(state, partial(getattr(protocol, method), state), state.decision_notes)
    return None if given is None and method != "at_end" else check_returned(given, Decision, protocol, method)


async def conclude(state: DebateState, decision: Decision) -> Decision:
    """Settle a decision and run the phases, one of which may reopen the debate unless it is a recorded one."""
    for _ in range(MOST_REPEATS + 1):
        decision = settle(state, decision)
        change(state, decision=decision)
        tell(state, Decided(state.id, decision))
        reopen = await run_phases(state)
        if reopen is None or state.recorded:
            break
        if reopen.say is not None:
            record(state, Message(0, state.round, 0, None, SAY, reopen.say, stage=REOPENED, data=reopen.data))
        else:  # so that the record says where the debate was reopened
            state.notes.setdefault("madplug", {}).setdefault("reopened", []).append(state.round)
        change(state, decision=None, rounds=state.round + reopen.rounds, round=state.round + 1)
        decision = await run_rounds(state)
    else:
        raise ComponentError(f"a phase reopened the debate {MOST_REPEATS} times; it has to accept a decision in "
                             "the end")
    assert state.decision is not None
    return state.decision


async def run_phases(state: DebateState) -> Reopen | None:
    """Run the phases in order, up to one that reopens the debate."""
    for phase in state.cell.phases:
        assert state.decision is not None
        changed = await _noted(state, partial(phase.run, state, state.decision), state.phase_notes)
        if isinstance(changed, Reopen):
            return check_returned(changed, Reopen, phase, "run")
        if changed is not None:
            if not isinstance(changed, Decision):
                raise type_error(f"{method_name(phase, 'run')} returned", changed, "Decision, Reopen or None")
            change(state, decision=settle(state, check_returned(changed, Decision, phase, "run")))
    return None


async def _noted(state: DebateState, ask: Callable[[], Any], paths: set[tuple[str, ...]]) -> Any:
    """The result of a decision or a phase; where it changes the notes is added to `paths`."""
    before = deepcopy(state.notes) if state.notes else {}
    value = await maybe_await(ask())
    if state.notes:
        paths |= changed_paths(before, state.notes)
    return value


def settle(state: DebateState, decision: Decision) -> Decision:
    """A decision as it is stored: with the answer as it was first given, and never agreed if it is a fallback."""
    answer = decision.answer
    if answer is None and decision.key is not None:
        given = (m.answer for m in state.transcript.messages if m.key == decision.key and m.answer)
        answer = next(given, decision.key)
    agreed = decision.agreed and not decision.fallback
    return replace(decision, answer=answer, agreed=agreed)


async def cast_agents(state: DebateState) -> tuple[Agent, ...]:
    """Personas, one generator after the other, and a model for each."""
    cell = state.cell
    roster = [] if cell.personas else [Persona(f"Agent {i + 1}") for i in range(cell.wanted)]
    generators = iter(cell.personas)
    generator = next(generators, None)
    while generator is not None and len(roster) < cell.wanted:
        made = await maybe_await(generator.generate(state, tuple(roster)))
        made = check_returned_all([made] if isinstance(made, Persona) else made, Persona, generator, "generate")
        roster += made
        if not made or (cell.agents is not None and len(roster) > cell.agents):
            raise ComponentError(f"{method_name(generator, 'generate')} made {len(made)} personas; "
                                 f"there are {len(roster)} now, and the cell has {cell.agents}")
        generator = next(generators, generator)
    if cell.casting is not None:
        change(state, agents=tuple(Agent(i, p, None) for i, p in enumerate(roster)))  # for debate.neighbours
        agents = check_returned_all(await maybe_await(cell.casting.cast(state, roster)), Agent, cell.casting, "cast")
        check_returned_all([agent.persona for agent in agents], Persona, cell.casting, "cast")
        return check_agents(agents, cell.wanted, cell.channels or cell.models,
                            f"{method_name(cell.casting, 'cast')} returned")
    return tuple(Agent(i, p, cell.models[i % len(cell.models)] if cell.models else None)
                 for i, p in enumerate(roster))
