"""The contracts of the parts of a debate, one class per kind."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from madplug import runspecs
from madplug.debate import Debate, maybe
from madplug.records import Decision, Message, Persona, Reply, Turn
from madplug.rows import to_json
from madplug.testing.contracts.base import DebateContract
from madplug.testing.contracts.scene import Outspoken, same_twice, variants
from madplug.testing.defaults import AnyMove, Everybody
from madplug.testing.play import debate_from
from madplug.testing.play import hold as wait

BALLOTS = 24


class EveryMove(Everybody):
    """A wave of everybody for each move of a style."""

    name = "every_move"

    def __init__(self, moves: frozenset[str]) -> None:
        super().__init__()
        self.moves = frozenset({"improve"}) if isinstance(moves, AnyMove) else moves

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """The moves by name."""
        for move in sorted(self.moves):
            yield [Turn(agent, move) for agent in debate.agents]

    def turns(self, agents: int) -> int:
        """As many waves as moves."""
        return agents * len(self.moves)


class PersonaContract(DebateContract):
    """What a persona generator keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only generator."""
        return {"personas": [component], "agents": self.around.get("agents", component.count or 3)}

    def test_it_makes_the_personas_that_are_wanted(self) -> None:
        """A generator with a `count` makes so many at once; another makes one at a time, and each has a name.

        If this fails: return a `Persona`, or `count` of them in a list.
        """
        held = self.held().ended()
        people = [agent.persona for agent in held.played.result.agents]
        assert len(people) == held.debate.cell.wanted
        assert all(isinstance(p, Persona) and p.name and p.role for p in people), people


class CastingContract(DebateContract):
    """What a casting keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """Two models to choose from, where nothing else is said."""
        return {"casting": component, "models": self.around.get("models", ("first", "second"))}

    def test_every_persona_is_played_once_in_its_place(self) -> None:
        """There is one agent per persona, in the same order, with ids from 0 and a model of `debate.models`.

        If this fails: return `[Agent(i, persona, model) for i, persona in enumerate(personas)]`.
        """
        held = self.held().ended()
        agents = held.played.result.agents
        assert [a.id for a in agents] == list(range(held.debate.cell.wanted))
        assert {a.model for a in agents} <= set(held.debate.models)
        people = [Persona(f"P{i}", votes=i != 1) for i in range(len(agents))]
        debate = Debate(held.debate.cell, self.sample, road=held.debate._road)
        again = wait(held.component.cast(debate, people))
        assert [a.persona for a in again] == people


class StyleContract(DebateContract):
    """What a style keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """Before the plainest style, which writes what this one does not; asked for every move it declares."""
        return {"styles": [component, *self.around.get("styles", (Outspoken(),))],
                "turns": self.around.get("turns", EveryMove(component.moves))}

    def turns(self) -> Iterator[tuple[Debate, Turn]]:
        """Every move it declares, for every agent it accepts."""
        component = self.held().component
        for move in sorted(EveryMove(component.moves).moves):
            for agent in self.held().debate.agents:
                if component.accepts(agent, turn := Turn(agent, move)):
                    yield self.held().debate, turn

    def test_it_declares_its_moves(self) -> None:
        """`moves` is a set of the moves that the style writes.

        If this fails: `moves = frozenset({"draft", "improve"})`; without it no turn order fits the style.
        """
        moves = self.held().component.moves
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
                reply = wait(maybe(self.held().component.respond(debate, turn, view)))
                assert isinstance(reply, Reply), f"respond returned {reply!r:.80}; expected Reply"
                assert isinstance(reply.content, str)
            written.add(turn.move)
        assert written == set(EveryMove(self.held().component.moves).moves)

    def test_what_it_reads_is_what_it_says(self) -> None:
        """Confidence is between 0 and 1, agreement is True, False or None, and `data` goes into JSON.

        If this fails: percent must be divided by 100; what could not be read is None, not a guess.
        """
        for debate, turn in self.turns():
            reply = wait(maybe(self.held().component.respond(debate, turn, debate.transcript.messages)))
            assert reply.confidence is None or 0 <= reply.confidence <= 1, reply.confidence
            assert reply.agreement in (True, False, None)
            assert json.loads(to_json(reply.data)) == json.loads(json.dumps(json.loads(to_json(reply.data))))

    def test_a_turn_makes_no_more_calls_than_announced(self) -> None:
        """`calls(plan)` is the most calls in one turn.

        If this fails: count the re-asks too, and give the style `def calls(self, plan)`.
        """
        held = self.held()
        most = held.component.calls(held.debate.cell.plan)
        for debate, turn in self.turns():
            before = len(held.played.requests)
            wait(maybe(held.component.respond(debate, turn, debate.transcript.messages)))
            assert len(held.played.requests) - before <= most


class TurnOrderContract(DebateContract):
    """What a turn order keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """With a style that writes every move."""
        return {"turns": component}

    def test_it_asks_for_the_moves_it_declares(self) -> None:
        """Every move asked for is in `moves`.

        If this fails: add it, or the check before a run cannot see that no style writes it.
        """
        held = self.held().ended()
        asked = {m.move for m in held.played.messages if m.agent is not None and m.round > 0}
        assert asked <= held.component.moves, f"not declared: {', '.join(sorted(asked - held.component.moves))}"

    def test_it_announces_the_turns_of_a_round(self) -> None:
        """A round has no more turns than `turns(agents)`.

        If this fails: give the order `def turns(self, agents)`; the worst-case number of calls rests on it.
        """
        held = self.held().ended()
        most = held.component.turns(len(held.played.result.agents))
        for number in range(1, held.played.result.rounds + 1):
            spoken = [m for m in held.played.transcript.of_round(number) if m.agent is not None]
            assert len(spoken) <= most, f"round {number} has {len(spoken)} turns, and {most} were announced"

    def test_it_asks_the_agents_of_the_debate(self) -> None:
        """Somebody speaks in round 1, and every turn is one of the debate's agents.

        If this fails: take agents from `debate.agents`, `debate.voters` or `debate.with_role(...)`.
        """
        held = self.held().ended()
        assert held.played.transcript.of_round(1), "nobody speaks in round 1"
        assert {m.agent for m in held.played.messages} <= {None, *(a.id for a in held.played.result.agents)}


class VisibilityContract(DebateContract):
    """What a visibility keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """In its slot."""
        return {"visibility": component}

    def views(self) -> Iterator[tuple[Debate, str, Sequence[Message]]]:
        """What every agent is shown, in every state of the debate."""
        for state, debate in variants(self.held()):
            debate.round += 1
            for agent in debate.agents:
                turn = Turn(agent, "improve")
                what = f"the view of agent {agent.id}, {state},"
                yield debate, what, same_twice(lambda d=debate, t=turn: self.held().component.view(d, t), what)

    def test_a_view_is_a_function_of_the_transcript(self) -> None:
        """Asked twice, `view` gives the same messages, in the same order, and asks no model.

        If this fails: take random choices from `debate.rng(...)`, and sort before drawing; put calls elsewhere.
        """
        before = len(self.held().ended().played.requests)
        assert list(self.views())
        assert len(self.held().played.requests) == before

    def test_a_view_shows_messages_that_stand(self) -> None:
        """Every message shown is on record as it is shown, stands, and is shown once.

        If this fails: return messages of `debate.transcript.messages`. A message of your own making belongs on
        record (a turn of an agent, `Review.say`), a changed one into an extension's `madplug_view`.
        """
        for debate, what, view in self.views():
            assert isinstance(view, Sequence), f"{what} is no sequence: {view!r:.80}"
            stands = debate.transcript.messages
            assert all(m in stands for m in view), f"{what} has a message that is not on record"
            assert len({m.id for m in view}) == len(view), f"{what} has a message twice"

    def test_neighbours_are_agents_of_the_debate(self) -> None:
        """`neighbours` gives ids of agents, each once.

        If this fails: return `tuple(agent.id for agent in ...)`.
        """
        for _, debate in variants(self.held().ended()):
            known = {a.id for a in debate.agents}
            for agent in debate.agents:
                near = list(self.held().component.neighbours(debate, agent, max(debate.round, 1)))
                assert set(near) <= known, near
                assert len(near) == len(set(near)), near


class DecisionContract(DebateContract):
    """What a decision protocol keeps."""

    agents_alike: bool = False
    """Set this where all agents count the same: exchanging them must change nothing but ties."""
    answers_alike: bool = False
    """Set this where all answers count the same: renaming them must rename the decision and change nothing else."""

    def slot(self, component: Any) -> dict[str, Any]:
        """In its slot."""
        return {"decision": component}

    def decide(self, debate: Debate) -> Decision:
        """What it decides when a debate has ended as this one has."""
        component = self.held().component
        notes = dict(debate.notes)

        def at_end() -> Decision:
            debate.notes.clear()
            debate.notes.update(notes)
            decision = wait(component.at_end(debate))
            assert isinstance(decision, Decision), f"at_end returned {decision!r:.80}; expected Decision"
            return decision

        decision: Decision = same_twice(at_end, "at_end")
        return decision

    def test_it_decides_however_a_debate_has_gone(self) -> None:
        """`at_end` gives a decision also when nobody spoke, or nothing could be read.

        If this fails: return `Decision.undecided("why")` where there is nothing to decide.
        """
        for state, debate in variants(self.held().ended()):
            decision = self.decide(debate)
            assert decision.key is not None or decision.reason, f"{state}: undecided, and no reason"

    def test_what_it_decides_was_said(self) -> None:
        """A decision that no model wrote has a key of the record, and an undecided debate has not agreed.

        If this fails: decide on `message.key`, not on `message.answer`; agreed is False where the key is None.
        """
        for state, debate in variants(self.held().ended()):
            decision = self.decide(debate)
            said = {m.key for m in debate.transcript.record}
            assert debate.spent.calls or decision.key in {None, *said}, f"{state}: nobody said {decision.key!r}"
            assert not (decision.agreed and decision.key is None), f"{state}: agreed on nothing"
            assert not (decision.agreed and decision.fallback), f"{state}: a fallback is no agreement"

    def test_ballots_are_of_agents_of_the_debate(self) -> None:
        """`votes` holds at most one ballot of an agent, and numbers by key; so does `scores`.

        If this fails: `Vote(agent.id, {key: points})`, one for each agent that votes.
        """
        for state, debate in variants(self.held().ended()):
            decision = self.decide(debate)
            voted = [vote.agent for vote in decision.votes]
            assert set(voted) <= {a.id for a in debate.agents}, state
            assert len(voted) == len(set(voted)), f"{state}: an agent has two ballots"
            for weights in (decision.scores, *(vote.weights for vote in decision.votes)):
                assert all(isinstance(w, int | float) for w in weights.values()), f"{state}: {weights!r}"

    def test_after_a_round_it_decides_or_waits(self) -> None:
        """`after_wave` and `after_round` give a decision or None, the same for the same transcript.

        If this fails: return None to go on.
        """
        for _, debate in islice(variants(self.held().ended()), 1):
            for method in (self.held().component.after_wave, self.held().component.after_round):
                decision = same_twice(lambda m=method, d=debate: wait(m(d)), method.__name__)
                assert decision is None or isinstance(decision, Decision), f"{method.__name__}: {decision!r:.80}"

    def elections(self) -> Iterator[tuple[list[list[str]], Debate]]:
        """Four agents, two rounds, three answers, in many ways; agreement and confidence with them."""
        rng = random.Random(7)
        for _ in range(BALLOTS):
            rows = [[rng.choice("ABC") for _ in range(2)] for _ in range(4)]
            yield rows, self.election(rows)

    def election(self, rows: Sequence[Sequence[str]]) -> Debate:
        """A debate with these keys; what agents say of agreement and confidence depends on the keys alone."""
        flat = [row[k] for k in range(2) for row in rows]
        return debate_from(rows, decision=self.held().component, agreement=[True] * len(flat),
                           confidence=[0.5] * len(flat), replies=self.reply)

    def test_agents_that_count_the_same_can_be_exchanged(self) -> None:
        """Where `agents_alike`: with the agents in another order the same answer wins, ties apart.

        If this fails: the decision looks at ids or positions; or do not claim `agents_alike`.
        """
        for rows, debate in self.elections() if self.agents_alike else ():
            one, other = self.decide(debate), self.decide(self.election(rows[::-1]))
            assert one.tie or other.tie or one.key == other.key, rows

    def test_answers_that_count_the_same_can_be_renamed(self) -> None:
        """Where `answers_alike`: with the answers renamed the renamed answer wins, ties apart.

        If this fails: the decision prefers an answer by its text; or do not claim `answers_alike`.
        """
        new = {"A": "C", "B": "A", "C": "B"}
        for rows, debate in self.elections() if self.answers_alike else ():
            one, other = self.decide(debate), self.decide(self.election([[new[key] for key in row] for row in rows]))
            assert one.tie or other.tie or new.get(str(one.key)) == other.key, rows


class PhaseContract(DebateContract):
    """What a phase keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only phase."""
        return {"phases": [component]}

    def test_it_follows_any_decision(self) -> None:
        """It gives a decision or None, also after a debate that was not decided.

        If this fails: return None to leave the decision; look at `decision.key` before using it.
        """
        for state, debate in variants(self.held().ended()):
            for decision in (Decision("A", answer="A"), Decision.undecided("nobody spoke")):
                debate.decision = decision
                after = wait(self.held().component.run(debate, decision))
                assert after is None or isinstance(after, Decision), f"{state}: run returned {after!r:.80}"

    def test_its_notes_can_be_kept(self) -> None:
        """What it leaves in `debate.notes` goes into JSON.

        If this fails: notes are tables of text, numbers, lists and tables, under the plugin's name.
        """
        notes = self.held().ended().played.result.notes
        assert json.loads(json.dumps(notes)) == json.loads(to_json(notes))


class MetricContract(DebateContract):
    """What a metric keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only metric."""
        return {"metrics": {component.name: component}}

    def test_it_scores_however_a_debate_has_gone(self) -> None:
        """`score` gives numbers or None also for a debate that failed, or was not decided, the same each time.

        If this fails: return None, or 0.0, where there is nothing to measure.
        """
        for state, debate in variants(self.held().ended()):
            for decision in (self.held().played.decision, Decision.undecided(state)):
                debate.decision = decision
                score = same_twice(lambda d=debate: wait(self.held().component.score(d, self.references)), state)
                values = list(score.values()) if isinstance(score, Mapping) else [score]
                assert all(value is None or isinstance(value, int | float) for value in values), f"{state}: {score!r}"

    def test_it_sums_up_whatever_there_is(self) -> None:
        """`summarise` gives a table that goes into JSON: of many debates, of none, and of one that failed.

        If this fails: results are streamed, so go through them once; a failed debate has no decision.
        """
        result = self.held().ended().played.result
        failed = replace(result, decision=None, metrics={}, error="failed")
        for results in ([], [result], [failed], [result, replace(result, repeat=1), failed]):
            figures = self.held().component.summarise(iter(results))
            assert json.loads(to_json(figures)) == json.loads(json.dumps(json.loads(to_json(figures))))
            assert isinstance(figures, Mapping), figures


class ExtensionContract(DebateContract):
    """What an extension keeps."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only extension."""
        return {"extensions": [component]}

    def test_its_hooks_exist_and_are_marked(self) -> None:
        """Every method named `madplug_...` is a hook of `madplug/runspecs.py` and marked with `@hookimpl`.

        If this fails: a hook that is misspelt or unmarked is never called.
        """
        named = {n: f for n, f in inspect.getmembers(self.component, callable) if n.startswith("madplug_")}
        assert named, "it implements no hook"
        unknown = sorted(n for n in named if not hasattr(runspecs, n))
        assert not unknown, f"no such hook: {', '.join(unknown)}"
        unmarked = sorted(n for n, f in named.items() if getattr(f, "madplug_impl", None) is None)
        assert not unmarked, f"not marked with @hookimpl: {', '.join(unmarked)}"

    def test_what_it_wraps_goes_on(self) -> None:
        """A hook around something is a wrapper, so that the host and other extensions are heard too.

        If this fails: `@hookimpl(wrapper=True)`, `result = yield`, and return what is to stand. Without `yield` the
        extension stands in the place of all that come after it.
        """
        around = {n for n, spec in vars(runspecs).items() if getattr(spec, "madplug_spec", {}).get("firstresult")}
        for name in sorted(around & set(dir(self.component))):
            assert getattr(self.component, name).madplug_impl["wrapper"], f"{name} is no wrapper"

