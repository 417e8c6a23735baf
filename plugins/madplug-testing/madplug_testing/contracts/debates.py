"""The contracts of personas, casting, styles, turn orders and visibilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from madplug import Agent, Debate, Message, Persona, Reply, Turn, maybe_await
from madplug.study import DebateState, change
from madplug_testing import AnyMove, SpeakAll, wait_for
from madplug_testing.contracts.base import DebateContract
from madplug_testing.contracts.scene import Outspoken, json_able, same_twice, variants


class EveryMove(SpeakAll):
    """A wave of all agents for each move of a style."""

    name = "every_move"

    def __init__(self, moves: frozenset[str]) -> None:
        super().__init__()
        self.moves = frozenset({"improve"}) if isinstance(moves, AnyMove) else moves

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """The moves by name."""
        for move in sorted(self.moves):
            yield [Turn(agent, move) for agent in debate.agents]

    def turns(self, agents: int, round: int) -> int:
        """As many waves as moves."""
        return agents * len(self.moves)


class PersonaContract(DebateContract):
    """The contract of a persona generator."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only generator."""
        agents = self.around.get("agents", component.count or 3)
        return {"personas": [component], "agents": agents and max(agents, component.count or 0)}

    def test_it_makes_the_personas_that_are_wanted(self) -> None:
        """A generator with a `count` makes so many at once; another makes one at a time, and each has a name.

        If this fails: return a `Persona`, or `count` of them in a list.
        """
        trial = self.trial().ended()
        people = [agent.persona for agent in trial.played.result.agents]
        assert len(people) == trial.debate.cell.wanted
        assert all(isinstance(p, Persona) and p.name and p.role for p in people), people

    def test_it_declares_the_roles_of_its_personas(self) -> None:
        """Every role is in `roles`, unless that is empty.

        If this fails: add it, or the check before a run cannot see that nobody plays a part that is needed.
        """
        trial = self.trial().ended()
        made = {agent.persona.role for agent in trial.played.result.agents}
        assert made <= (trial.component.roles or made), f"not declared: {', '.join(made - trial.component.roles)}"


class CastingContract(DebateContract):
    """The contract of a casting."""

    def slot(self, component: Any) -> dict[str, Any]:
        """With two models to choose from by default."""
        return {"casting": component, "models": self.around.get("models", ("first", "second"))}

    def test_every_persona_is_played_once_in_its_place(self) -> None:
        """There is one agent per persona, in the same order, with ids from 0 and a model of `debate.models`.

        If this fails: return `[Agent(i, persona, model) for i, persona in enumerate(personas)]`.
        """
        trial = self.trial().ended()
        agents = trial.played.result.agents
        assert [a.id for a in agents] == list(range(trial.debate.cell.wanted))
        assert {a.model for a in agents} <= set(trial.debate.models)
        people = [Persona(f"P{i}", votes=i != 1) for i in range(len(agents))]
        agents = tuple(Agent(i, p, None) for i, p in enumerate(people))  # as they are before they are cast
        debate = DebateState(trial.debate.cell, self.sample, client=trial.debate.client, agents=agents)
        again = wait_for(trial.component.cast(debate, people))
        assert [a.persona for a in again] == people


class StyleContract(DebateContract):
    """The contract of a style."""

    def slot(self, component: Any) -> dict[str, Any]:
        """Before the plainest style, which writes what this one does not; asked for every move it declares."""
        return {"styles": [component, *self.around.get("styles", (Outspoken(),))],
                "turns": self.around.get("turns", EveryMove(component.moves))}

    def turns(self) -> Iterator[tuple[Debate, Turn]]:
        """Every move it declares, for every agent it accepts."""
        component = self.trial().component
        for move in sorted(EveryMove(component.moves).moves):
            for agent in self.trial().debate.agents:
                if component.accepts(agent, turn := Turn(agent, move)):
                    yield self.trial().debate, turn

    def test_it_declares_its_moves(self) -> None:
        """`moves` is a set of the moves that the style writes.

        If this fails: `moves = frozenset({"draft", "improve"})`; without it no turn order fits the style.
        """
        moves = self.trial().component.moves
        assert isinstance(moves, frozenset), moves
        assert all(isinstance(move, str) for move in moves)
        assert moves or isinstance(moves, AnyMove), "the style writes no move"

    def test_it_writes_every_move_it_declares(self) -> None:
        """Asked for each of its moves, with nothing to see and with everything, it gives a `Reply`.

        If this fails: `respond` does not know a move that `moves` has, or cannot begin; or no agent of the debate
        is accepted for it, which `around` can change (`personas`).
        """
        written = set()
        for debate, turn in self.turns():
            for view in ((), debate.transcript.messages):
                reply = wait_for(maybe_await(self.trial().component.respond(debate, turn, view)))
                assert isinstance(reply, Reply), f"respond returned {reply!r:.80}; expected Reply"
                assert isinstance(reply.content, str)
            written.add(turn.move)
        assert written == set(EveryMove(self.trial().component.moves).moves)

    def test_what_it_reads_is_what_it_says(self) -> None:
        """Confidence is between 0 and 1, agreement is True, False or None, and `data` goes into JSON.

        If this fails: percent must be divided by 100; what could not be read is None, not a guess.
        """
        for debate, turn in self.turns():
            reply = wait_for(maybe_await(self.trial().component.respond(debate, turn, debate.transcript.messages)))
            assert reply.confidence is None or 0 <= reply.confidence <= 1, reply.confidence
            assert reply.agreement in (True, False, None)
            assert json_able(reply.data), f"data does not go into JSON: {reply.data!r:.200}"

    def test_a_turn_makes_no_more_calls_than_announced(self) -> None:
        """`calls(plan)` is the most calls in one turn.

        If this fails: count the re-asks too, and give the style `def calls(self, plan)`.
        """
        trial = self.trial()
        most = trial.component.calls(trial.debate.cell.plan)
        for debate, turn in self.turns():
            before = debate.spent.calls
            wait_for(maybe_await(trial.component.respond(debate, turn, debate.transcript.messages)))
            assert debate.spent.calls - before <= most


class TurnOrderContract(DebateContract):
    """The contract of a turn order."""

    def slot(self, component: Any) -> dict[str, Any]:
        """With a style that writes every move."""
        return {"turns": component}

    def test_it_asks_for_the_moves_it_declares(self) -> None:
        """Every move asked for is in `moves`.

        If this fails: add it, or the check before a run cannot see that no style writes it.
        """
        trial = self.trial().ended()
        asked = {m.move for m in trial.played.messages if m.agent is not None and m.round > 0}
        assert asked <= trial.component.moves, f"not declared: {', '.join(sorted(asked - trial.component.moves))}"

    def test_it_announces_the_turns_of_a_round(self) -> None:
        """A round has no more turns than `turns(agents, round)`, and of no move more than `by_move(agents, round)`.

        If this fails: give the order `def turns(self, agents, round)`; the worst-case number of calls rests on it.
        """
        trial = self.trial().ended()
        for number in range(1, trial.played.result.rounds + 1):
            most = trial.component.turns(len(trial.played.result.agents), number)
            spoken = [m for m in trial.played.transcript.of_round(number) if m.agent is not None]
            assert len(spoken) <= most, f"round {number} has {len(spoken)} turns, and {most} were announced"
            by_move = trial.component.by_move(len(trial.played.result.agents), number)
            more = Counter(m.move for m in spoken) - Counter(by_move)
            assert not more or "" in by_move, f"round {number} has turns that were not announced: {dict(more)}"

    def test_it_asks_the_agents_of_the_debate(self) -> None:
        """At least one agent speaks in round 1, and every turn is of one of the debate's agents.

        If this fails: take agents from `debate.agents`, `debate.voters` or `debate.with_role(...)`.
        """
        trial = self.trial().ended()
        assert trial.played.transcript.of_round(1), "no agent speaks in round 1"
        assert {m.agent for m in trial.played.messages} <= {None, *(a.id for a in trial.played.result.agents)}


class VisibilityContract(DebateContract):
    """The contract of a visibility."""

    def slot(self, component: Any) -> dict[str, Any]:
        """In its slot."""
        return {"visibility": component}

    def views(self) -> Iterator[tuple[Debate, str, Sequence[Message]]]:
        """What every agent is shown, in every state of the debate."""
        for state, debate in variants(self.trial().ended()):
            change(debate, round=debate.round + 1)
            for agent in debate.agents:
                turn = Turn(agent, "improve")
                what = f"the view of agent {agent.id}, {state},"
                component = self.trial().component
                yield debate, what, same_twice(
                    lambda c=component, d=debate, t=turn: wait_for(c.view(d, t)), what)

    def test_a_view_is_a_function_of_the_transcript(self) -> None:
        """Asked twice, `view` gives the same messages, in the same order, and asks no model.

        If this fails: take random choices from `debate.rng(...)`, and sort before drawing; put calls elsewhere.
        """
        shown = list(self.views())
        assert shown
        assert not any(debate.spent.calls for debate, _, _ in shown), "it asks a model"

    def test_a_view_shows_messages_that_stand(self) -> None:
        """Every message shown is on record in the same form, was not retracted, and is shown only once.

        If this fails: return messages of `debate.transcript.messages`. To show another message, record it first (a
        turn of an agent, `Review.say`); to change one, use an extension's `madplug_view`.
        """
        for debate, what, view in self.views():
            assert isinstance(view, Sequence), f"{what} is not a sequence: {view!r:.80}"
            stands = debate.transcript.messages
            assert all(m in stands for m in view), f"{what} has a message that is not on record"
            assert len({m.id for m in view}) == len(view), f"{what} has a message twice"

    def test_neighbours_are_agents_of_the_debate(self) -> None:
        """`neighbours` gives ids of agents, each once.

        If this fails: return `tuple(agent.id for agent in ...)`.
        """
        for _, debate in variants(self.trial().ended()):
            known = {a.id for a in debate.agents}
            for agent in debate.agents:
                near = list(self.trial().component.neighbours(debate, agent, max(debate.round, 1)))
                assert set(near) <= known, near
                assert len(near) == len(set(near)), near
