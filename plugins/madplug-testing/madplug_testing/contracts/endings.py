"""The contracts of decision protocols, phases, metrics and extensions."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from madplug import Debate, Decision, Reopen, pictures_in, plain
from madplug.hookspecs import RUN_HOOKS
from madplug.study import change
from madplug_testing import debate_from, wait_for
from madplug_testing.contracts.base import DebateContract
from madplug_testing.contracts.scene import decided_again, json_able, same_twice, variants

BALLOTS = 24


class DecisionContract(DebateContract):
    """The contract of a decision protocol."""

    agents_alike: bool = False
    """Set this if all agents count the same, so that exchanging them changes nothing but ties."""
    answers_alike: bool = False
    """Set this if all answers count the same, so that renaming them renames the decision and changes nothing else."""

    def slot(self, component: Any) -> dict[str, Any]:
        """In its slot."""
        return {"decision": component}

    def decide(self, debate: Debate) -> Decision:
        """What it decides when a debate has ended as this one has."""
        component = self.trial().component
        notes = dict(debate.notes)

        def at_end() -> Decision:
            debate.notes.clear()
            debate.notes.update(notes)
            decision = wait_for(component.at_end(debate))
            assert isinstance(decision, Decision), f"at_end returned {decision!r:.80}; expected Decision"
            return decision

        decision: Decision = same_twice(at_end, "at_end")
        return decision

    def test_it_decides_however_a_debate_has_gone(self) -> None:
        """`at_end` returns a decision even if no agent spoke, or no answer could be read.

        If this fails: return `Decision.undecided("why")` if there is nothing to decide.
        """
        for state, debate in variants(self.trial().ended()):
            decision = self.decide(debate)
            assert decision.key is not None or decision.reason, f"{state}: undecided, and no reason"

    def test_what_it_decides_was_said(self) -> None:
        """A decision that no model wrote has a key of the record, and an undecided debate has not agreed.

        If this fails: decide on `message.key`, not on `message.answer`; agreed is False where the key is None.
        """
        for state, debate in variants(self.trial().ended()):
            decision = self.decide(debate)
            said = {m.key for m in debate.transcript.record}
            assert debate.spent.calls or decision.key in {None, *said}, f"{state}: no agent said {decision.key!r}"
            assert not (decision.agreed and decision.key is None), f"{state}: agreed on nothing"
            assert not (decision.agreed and decision.fallback), f"{state}: a fallback is not an agreement"

    def test_ballots_are_of_agents_of_the_debate(self) -> None:
        """`votes` has at most one ballot per agent; its weights and `scores` are numbers by key.

        If this fails: `Vote(agent.id, {key: points})`, one for each agent that votes.
        """
        for state, debate in variants(self.trial().ended()):
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
        for _, debate in islice(variants(self.trial().ended()), 1):
            for method in (self.trial().component.after_wave, self.trial().component.after_round):
                decision = same_twice(lambda m=method, d=debate: wait_for(m(d)), method.__name__)
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
        return debate_from(rows, decision=self.trial().component, agreement=[True] * len(flat),
                           confidence=[0.5] * len(flat), replies=self.reply)

    def test_agents_that_count_the_same_can_be_exchanged(self) -> None:
        """If `agents_alike`: with the agents in another order the same answer wins, except for ties.

        If this fails: the decision looks at ids or positions; or do not claim `agents_alike`.
        """
        for rows, debate in self.elections() if self.agents_alike else ():
            one, other = self.decide(debate), self.decide(self.election(rows[::-1]))
            assert one.tie or other.tie or one.key == other.key, rows

    def test_answers_that_count_the_same_can_be_renamed(self) -> None:
        """If `answers_alike`: with the answers renamed the renamed answer wins, except for ties.

        If this fails: the decision prefers an answer by its text; or do not claim `answers_alike`.
        """
        new = {"A": "C", "B": "A", "C": "B"}
        for rows, debate in self.elections() if self.answers_alike else ():
            one, other = self.decide(debate), self.decide(self.election([[new[key] for key in row] for row in rows]))
            assert one.tie or other.tie or new.get(str(one.key)) == other.key, rows


class PhaseContract(DebateContract):
    """The contract of a phase."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only phase."""
        return {"phases": [component]}

    def test_it_follows_any_decision(self) -> None:
        """It gives a decision, `Reopen` or None, also after a debate that was not decided.

        If this fails: return None to leave the decision; look at `decision.key` before using it.
        """
        for state, debate in variants(self.trial().ended()):
            for decision in (Decision("A", answer="A"), Decision.undecided("no agent spoke")):
                change(debate, decision=decision)
                after = wait_for(self.trial().component.run(debate, decision))
                assert after is None or isinstance(after, Decision | Reopen), f"{state}: run returned {after!r:.80}"

    def test_its_notes_can_be_kept(self) -> None:
        """What it leaves in `debate.notes` goes into JSON.

        If this fails: notes are tables of text, numbers, lists and tables, under the plugin's name.
        """
        notes = self.trial().ended().played.result.notes
        assert json_able(notes), f"notes do not go into JSON: {notes!r:.200}"

    def test_a_recorded_debate_keeps_its_record(self) -> None:
        """It runs after a recorded debate was decided again, too, and nothing that is on record changes.

        If this fails: `debate.recorded` says that the debate was run before, `debate.notes` what was noted.
        """
        decided_again(self.trial().ended())


class MetricContract(DebateContract):
    """The contract of a metric."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only metric."""
        return {"metrics": {component.name: component}}

    def test_it_scores_however_a_debate_has_gone(self) -> None:
        """`score` gives numbers or None also for a debate that failed, or was not decided, the same each time.

        If this fails: return None, or 0.0, where there is nothing to measure.
        """
        for state, debate in variants(self.trial().ended()):
            for decision in (self.trial().played.decision, Decision.undecided(state)):
                change(debate, decision=decision)
                score = same_twice(lambda d=debate: wait_for(self.trial().component.score(d, self.references)), state)
                values = list(score.values()) if isinstance(score, Mapping) else [score]
                assert all(value is None or isinstance(value, int | float) for value in values), f"{state}: {score!r}"

    def test_it_sums_up_whatever_there_is(self) -> None:
        """`summarise` gives a table that goes into JSON: of many debates, of none, and of one that failed.

        If this fails: results are streamed, so go through them once; a failed debate has no decision.
        """
        result = self.trial().ended().played.result
        failed = replace(result, decision=None, metrics={}, error="failed")
        for results in ([], [result], [failed], [result, replace(result, repeat=1), failed]):
            figures = self.trial().component.summarise(iter(results))
            assert isinstance(figures, Mapping), figures
            rest = {name: value for name, value in figures.items() if name != "pictures"}
            assert json_able(rest), f"figures do not go into JSON: {rest!r:.200}"
            list(pictures_in({"metric": plain(figures)}))


class ExtensionContract(DebateContract):
    """The contract of an extension."""

    def slot(self, component: Any) -> dict[str, Any]:
        """As the only extension."""
        return {"extensions": [component]}

    def test_its_hooks_exist_and_are_marked(self) -> None:
        """Every method named `madplug_...` is a hook of `madplug/hookspecs.py` and marked with `@hookimpl`.

        If this fails: a hook that is misspelt or unmarked is never called.
        """
        named = {n: f for n, f in inspect.getmembers(self.component, callable) if n.startswith("madplug_")}
        assert named, "it implements no hook"
        unknown = sorted(n for n in named if n not in RUN_HOOKS)
        assert not unknown, f"no such hook: {', '.join(unknown)}"
        unmarked = sorted(n for n, f in named.items() if getattr(f, "madplug_impl", None) is None)
        assert not unmarked, f"not marked with @hookimpl: {', '.join(unmarked)}"

    def test_what_it_wraps_goes_on(self) -> None:
        """A hook is implemented as a wrapper, so that the host and the other extensions take effect too.

        If this fails: `@hookimpl(wrapper=True)`, `result = yield`, and return the result to use. Without `yield` the
        extension replaces the host and every extension inside it.
        """
        for name in sorted(RUN_HOOKS.keys() & set(dir(self.component))):
            assert getattr(self.component, name).madplug_impl["wrapper"], f"{name} is not a wrapper"

