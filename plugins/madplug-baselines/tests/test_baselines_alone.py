"""Samples, steps and single answers, against a scripted model."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from madplug import (
    Agent,
    Casting,
    CellFacts,
    Debate,
    DebateResult,
    Decision,
    DecisionProtocol,
    Message,
    Options,
    Persona,
    PersonaGenerator,
    Plan,
    Sample,
    Turn,
    TurnOrder,
    Usage,
    Visibility,
)
from madplug.config.check import check_matches
from madplug.debate.state import change
from madplug_baselines import Cot, Io, Last, MostCommon, Refinement, Samples, Steps
from madplug_baselines.best import BestOfN
from madplug_baselines.budget import nearest_settings, usually
from madplug_testing import Played, debate_from, play

MATCH = {"cell": "som", "by": "calls"}


class Own(Visibility):
    """Everybody sees only their own messages."""

    name = "own"

    def view(self, debate: Debate, turn: Turn) -> tuple[Message, ...]:
        return debate.transcript.by(turn.agent)


def sampled(replies: list[str], style: Any = None, **options: Any) -> Played:
    """Self-consistency with as many agents as replies."""
    return play(styles=[style or Cot()], turns=Samples(), visibility=Own(), decision=MostCommon(**options),
                agents=len(replies), replies=replies)


def test_a_persona_is_shown_when_its_prompt_is_set() -> None:
    assert sampled(["4"], Io(persona="You are {name}.")).prompts[0].startswith("You are Agent 1.\n\nthe question")


# Self-consistency

@pytest.mark.parametrize(("replies", "key", "agreed", "tie", "reason"), [
    (["12", " ", "12", "7"], "12", True, False, "2 of 3 readable samples, of 4"),
    (["A", "", ""], "A", False, False, "1 of 1 readable samples, of 3"),  # an answer, and no agreement of the three
    (["B", "A"], "B", False, True, ""), (["", "", ""], None, False, False, "none of 3 samples could be read")])
def test_the_most_common_answer_of_those_that_can_be_read_wins(
        replies: list[str], key: str | None, agreed: bool, tie: bool, reason: str) -> None:
    decision = sampled(replies).decision
    assert (decision.key, decision.agreed, decision.tie, decision.fallback) == (key, agreed, tie, False)
    assert reason in decision.reason
    assert [vote.valid for vote in decision.votes] == [bool(reply.strip()) for reply in replies]


def test_messages_that_give_no_answer_by_design_are_no_samples_and_any_unread_one_is_told() -> None:
    reviewed = MostCommon().at_end(debate_from([["A", ""], ["A", ""], ["B", ""]]))
    assert (reviewed.reason, reviewed.agreed) == ("2 of 3 readable samples, of 3", True)
    assert all(vote.valid for vote in reviewed.votes)
    played = play(styles=[Cot()], turns=Steps(), visibility=Own(), decision=MostCommon(), agents=1, rounds=3,
                  replies=[" ", "2", "2"])
    assert [vote.valid for vote in played.decision.votes] == [False, True, True]
    assert list(played.result.unread_parts()) == ["the vote of Agent 1"]


def test_every_sample_beyond_the_agents_is_a_voter_of_its_own() -> None:
    played = play(styles=[Cot()], turns=Samples(samples=5), visibility=Own(), decision=MostCommon(), agents=2,
                  replies=["1", "2", "2", "3", "3"])
    assert {(m.wave, m.seen) for m in played.messages} == {(0, ())}
    assert played.transcript.answers(played.debate.voters) == [["1"], ["2"], ["2"], ["3"], ["3"]]
    assert [agent.persona.name for agent in played.result.agents] == [
        "Agent 1", "Agent 2", "Agent 3", "Agent 4", "Agent 5"]


@pytest.mark.parametrize(("calls", "models"), [(9, "abc" * 3), (4, "abca"), (2, "ab")])
def test_the_models_take_turns_sample_by_sample_and_no_agent_is_silent(calls: int, models: str) -> None:
    debate = DebateResult("debate", 0, Sample("q1", "?"), (), calls=calls)
    played = play(styles=[Cot()], turns=Samples(), agents=5, models=list("abc"), replies=["1"] * calls, matched=debate)
    assert [agent.model for agent in played.result.agents] == list(models)
    assert [m.agent for m in played.messages] == list(range(calls))


def test_agents_without_a_vote_do_not_count() -> None:
    debate = debate_from("A B B", personas=[Persona(f"Agent {i}", votes=i == 0) for i in range(3)])
    assert MostCommon().at_end(debate).key == "A"


# Matched to another cell

def matched(calls: int = 0, tokens: int = 0, by: str = "calls", agents: str = "A B C") -> Debate:
    debate = debate_from(agents)
    debate.cell.match = {"cell": "debate", "by": by}
    change(debate, matched=DebateResult("debate", 0, Sample("q1", "?"), (), calls=calls, tokens=Usage(tokens, 0)))
    return debate


@pytest.mark.parametrize(("samples", "calls", "turns"), [("matched", 7, 7), (None, 7, 7), (2, 7, 2), (None, 0, 1)])
def test_as_many_samples_as_the_matched_debate_made_calls_one_at_least_unless_a_number_overrules_it(
        samples: Any, calls: int, turns: int) -> None:
    [wave] = Samples(samples=samples).waves(matched(calls=calls))
    assert [turn.agent.id for turn in wave] == list(range(turns))


def test_a_style_of_two_calls_gets_half_the_turns() -> None:
    class Twice(Cot):
        """Two calls a turn."""

        def calls(self, plan: Any) -> int:
            return 2

    debate = matched(calls=7)
    debate.cell.styles = [replace(debate.cell.styles[0], style=Twice())]
    [wave] = Samples().waves(debate)
    assert len(wave) == 3


def test_what_the_decision_asks_is_part_of_the_matched_calls() -> None:
    debate = DebateResult("debate", 0, Sample("q1", "?"), (), calls=7)
    played = play(styles=[Cot()], turns=Samples(), decision=BestOfN(), replies=[*"123", *("Score: 5",) * 3],
                  matched=debate)
    assert (len(played.messages), played.result.calls) == (3, 6)


@pytest.mark.parametrize(("used", "turns"), [
    ([40] * 9, 3), ([50] * 9, 2), ([1000], 1), ([0] * 9, 3),
    ([40, 0, 0, 40, 0, 20], 6)])  # a refused request used none, and the next one may
def test_matched_by_tokens_samples_follow_until_they_are_used_up(used: list[int], turns: int) -> None:
    debate = matched(tokens=100, by="tokens")
    asked = []
    for [turn], tokens in zip(Samples(samples="matched").waves(debate), used, strict=False):
        asked.append(turn.agent.id)
        debate.spent.prompt += tokens
    assert asked == list(range(turns))


def test_a_fixed_number_of_samples_that_is_matched_is_told_where_to_look() -> None:
    cells = [replace(debate_from("A B C").cell, slug=slug, study_cells=("som", "sc"), turns=turns, match=match)
             for slug, turns, match in (("som", Samples(), None), ("sc", Samples(samples=6), MATCH))]
    [problem] = check_matches(cells)
    assert problem.message.startswith("cannot hold: ")
    assert problem.message.endswith("samples` has a setting with which it can")


def test_matched_samples_need_a_cell_to_match() -> None:
    debate = debate_from("A")
    [problem] = Samples(samples="matched").check(debate.cell)
    assert "match = {cell" in problem
    assert not list(Samples(samples="matched").check(matched().cell))
    assert not list(Samples().check(debate.cell))


# Self-improvement

def improved(*replies: str, rounds: int | None = None, messages: int | None = None) -> Played:
    return play(styles=[Cot()], turns=Steps(messages=messages), visibility=Own(), decision=Last(), agents=1,
                rounds=rounds or len(replies), replies=replies)


@pytest.mark.parametrize("how", [{}, {"rounds": 1, "messages": 3}])
def test_each_message_sees_the_current_solution_in_one_round_or_in_many(how: dict[str, int]) -> None:
    played = improved("first try", "second try", "third try", **how)
    assert "There is no solution yet." in played.prompts[0]
    assert "Current solution:\nfirst try" in played.prompts[1]
    assert "Current solution:\nsecond try" in played.prompts[2]
    assert "first try" not in played.prompts[2]
    assert (played.decision.key, played.decision.agreed, played.result.calls) == ("third try", True, 3)
    assert [[t.move for t in wave] for wave in Steps().waves(matched(calls=3))] == [["improve"]] * 3


def test_a_last_message_that_cannot_be_read_leaves_the_one_before_as_a_fallback_or_nothing() -> None:
    decision = improved("a", "b", "").decision
    assert (decision.key, decision.agreed, decision.fallback) == ("b", False, True)
    assert improved("", "").decision == Decision.undecided("no message gave an answer that could be read")


# Settings for a number of calls

@pytest.mark.parametrize(("calls", "found"), [
    (1, (2, 2, None, 4, 4)),  # a debate is not made smaller than two agents and two rounds
    (9, (3, 3, None, 9, 9)), (12, (3, 4, None, 12, 12)), (1000, (30, 10, None, 300, 300))])
def test_settings_are_found_for_about_as_many_calls(calls: int, found: tuple[int, ...]) -> None:
    assert nearest_settings(debate_from("A B C", rounds=3).cell, calls) == found


def test_a_decision_that_asks_is_told_to_come_on_top_of_a_budget_of_tokens() -> None:
    cell = replace(matched().cell, decision=BestOfN(), match={"cell": "som", "by": "tokens"})
    [said] = Samples().warn(cell)
    assert re.search(r"best_of_n makes up to 3 calls that come on top of the tokens of .som.", said)
    assert not list(Samples().warn(replace(cell, match=MATCH)))
    assert not list(Samples().warn(replace(cell, decision=MostCommon())))


@pytest.mark.parametrize(("least", "found"), [
    (4, (4, 3, None, 12, 12)), (7, (7, 2, None, 14, 14)), (8, (3, 4, None, 12, 12))])
def test_a_size_of_which_a_component_warns_is_left_out_if_another_is_near(least: int, found: tuple[int, ...]) -> None:
    class Careful(Cot):
        """Warns of few agents, and of itself."""

        def warn(self, cell: CellFacts) -> Iterable[str]:
            yield "this is slow"
            if cell.wanted < least:
                yield f"take {least} agents or more"

    cell = debate_from("A B C", rounds=3).cell
    assert nearest_settings(replace(cell, styles=[replace(cell.styles[0], style=Careful())]), 12) == found


@pytest.mark.parametrize(("stated", "found"), [(True, (3, 3, None, 12, 25)),
                                             (False, (3, 3, None, 13, 25))])
def test_what_is_asked_because_a_reply_cannot_be_read_counts_only_in_the_most_calls(stated: bool,
                                                                                   found: tuple[int, ...]) -> None:
    class AskOptions(Options):
        attempts: int = 5
        final: str = "ask_if_unread"

    class Says(Cot):
        """Some styles leave the answer to the end."""

        states_answers = stated

    class Ask(DecisionProtocol):
        """Asks each agent, up to five times, and one for an answer."""

        Options = AskOptions

        def calls(self, plan: Plan) -> int:
            return plan.agents * self.options.attempts + (self.options.final != "recorded")

        def at_end(self, debate: Debate) -> Decision:
            raise NotImplementedError

    class Casts(Casting):
        """Asks for a score, up to five times."""

        Options = AskOptions

        def calls(self, plan: Plan) -> int:
            return int(self.options.attempts)

        def cast(self, debate: Debate, personas: Sequence[Persona]) -> Sequence[Agent]:
            raise NotImplementedError

    cell = debate_from("A B C", rounds=3).cell
    cell = replace(cell, decision=Ask(), styles=[replace(cell.styles[0], style=Says())])
    assert nearest_settings(cell, 12) == found
    assert usually([cell, debate_from("A B C").cell]) == f"{found[3]} ({cell.slug})"
    assert usually([cell] * 7).endswith(f"{found[3]} ({cell.slug}), and 1 more cell")
    assert usually([replace(cell, casting=Casts())]) == f"{found[3] + 1} ({cell.slug})"


def test_fewer_calls_leave_out_no_role_and_no_move_of_the_debate_nor_are_there_rounds_without_turns() -> None:
    class Sides(PersonaGenerator):
        """Two sides, and a moderator for the third agent."""

        roles = frozenset({"affirmative", "negative", "moderator"})

        def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
            raise NotImplementedError

    class Reviewed(Samples):
        """Ends with a round of reviews."""

        def by_move(self, agents: int, round: int) -> dict[str, int]:
            return {"review" if round > 2 else "draft": agents}

    class Ends(Samples):
        """Has two rounds, whatever the cell says."""

        def turns(self, agents: int, round: int) -> int:
            return agents if round < 3 else 0

    class Two(PersonaGenerator):
        """Makes two, whatever the cell says."""

        count = 2

        def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
            raise NotImplementedError

    pair = replace(debate_from("A B", rounds=3).cell, personas=[Two()])
    assert nearest_settings(pair, 12)[:2] == (2, 6)
    cell = replace(debate_from("A B C", rounds=3).cell, personas=[Sides()])
    assert nearest_settings(replace(cell, turns=Ends()), 9)[:2] == (4, 2)
    assert nearest_settings(cell, 1)[:2] == (3, 2)
    assert nearest_settings(replace(cell, turns=Reviewed()), 1)[:2] == (3, 3)


@pytest.mark.parametrize(("turns", "found"), [(Samples(), (9, 1, None, 9, 9)), (Refinement(), (3, 1, 8, 9, 9))])
def test_samples_are_as_many_as_the_calls(turns: TurnOrder, found: tuple[int, ...]) -> None:
    cell = replace(debate_from("A B C").cell, turns=turns)
    assert nearest_settings(cell, 9) == found


@pytest.mark.parametrize(("turns", "match", "settings", "refused"), [
    (Steps(), None, {}, ["1 agent of 3 would be asked; set debate.agents to 1, and how many answers there are by "
                         "debate.turns.messages or debate.rounds"]),
    (Refinement(samples=2), None, {}, ["2 agents of 3 would be asked; set debate.agents to 2, and how many answers "
                                       "there are by debate.turns.samples"]),
    (Samples(), MATCH, {"debate.paradigm": "baselines.self_consistency"}, [
        "debate.agents changes nothing: there are as many samples as the calls of 'som' allow; leave out agents, or "
        "match"]),
    (Samples(), MATCH, {"debate.turns": "baselines.samples"}, []),
    (Samples(), None, {"debate.paradigm": "baselines.self_consistency"}, [])])
def test_agents_that_change_nothing_are_refused_unless_a_recorded_run_file_says_them(
        turns: TurnOrder, match: Any, settings: dict[str, str], refused: list[str]) -> None:
    cell = replace(debate_from("A B C").cell, turns=turns, match=match, personas=[],
                   settings={**settings, "debate.agents": 3})
    assert list(turns.check(cell)) == refused


def test_rounds_of_matched_samples_are_refused() -> None:
    cell = replace(debate_from("A B C", rounds=2).cell, turns=Samples(), match=MATCH, settings={
        "debate.paradigm": "baselines.self_consistency", "debate.rounds": 2})
    assert list(Samples().check(cell)) == ["debate.rounds: 2 rounds have a sample each at least, however little 'som' "
                                           "used; leave out rounds, or match"]
    assert not list(Samples().check(replace(cell, match=None)))
    assert not list(Samples(samples=4).check(cell))
