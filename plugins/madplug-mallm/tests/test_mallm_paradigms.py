"""The five paradigms as presets, with every decision and style: who decides, and what it costs."""

import pytest

from madplug_mallm.collective import Collective
from madplug_testing import play
from madplug_turns import Simultaneous
from madplug_visibility import PreviousRound

for plugin in ("judge", "personas"):
    pytest.importorskip(f"madplug_{plugin}")

SEQUENTIAL = ["memory", "relay", "report", "debate"]
CONSENSUS = ["majority", "supermajority", "unanimity", "hybrid"]


@pytest.fixture
def run(run_debate):
    """Runs a debate on a question of four choices, and gives its result."""
    def run(debate, replies, more=""):
        return run_debate(debate, replies, more=more, choices=["one", "two", "three", "four"])[0]

    return run


def agreeing(request):
    """Agents that always agree, and vote for the first solution."""
    return "1" if request.purpose == "vote" else "[AGREE] It is so.\nFinal answer: (B)"


@pytest.mark.parametrize("decision", CONSENSUS)
@pytest.mark.parametrize("paradigm", SEQUENTIAL)
def test_reasoners_that_agree_without_a_solution_are_asked_for_it(run, paradigm, decision):
    result = run(f'paradigm = "mallm.{paradigm}"\nstyles = ["styles.reasoning"]\ndecision = "consensus.{decision}"',
                 lambda r: "Final answer: (B)" if r.purpose == "extract" else "[AGREE] That is enough.")
    assert (result.decision.key, result.decision.agreed, result.rounds) == ("B", True, 1)
    assert result.calls == len(result.messages) + 1


# Calls: P + kappa * M + A * (extraction + votes), with kappa = 1 and nothing to extract

def tied(until):
    """Votes are tied until a round, in which all vote for solution 1."""
    votes = iter([agent + 1 for _ in range(until - 3) for agent in range(3)] + [1] * 9)
    return lambda request: str(next(votes)) if request.purpose == "vote" else agreeing(request)


def inventing(replies):
    """The same, with experts to play."""
    experts = iter(f'{{"role": "Expert {i}", "description": "Knows {i}."}}' for i in range(9))
    return lambda request: next(experts) if request.purpose == "persona" else replies(request)


READ_BY_A_MODEL = '[answers]\nuse = "answers.choice"\nextract = "llm"\nextract_when = "every_message"'
VOTE, MAJORITY, EXPERTS = '"voting.simple"', '"consensus.majority"', '\npersonas = ["personas.expert"]'
ASK = '{use = "voting.simple", final = "ask"}'
BLIND = '[[extensions]]\nuse = "visibility.blind_first_round"'


@pytest.mark.parametrize(("paradigm", "decision", "replies", "more", "expected"), [
    # votes decided in rounds three, four and five, of five agents, with an extraction of every answer
    ("memory", VOTE, tied(3), "", 9 + 3), ("memory", VOTE, tied(4), "", 12 + 2 * 3),
    ("memory", VOTE, tied(5), "", 15 + 3 * 3), ("memory", VOTE + "\nagents = 5", agreeing, "", 15 + 5),
    ("memory", ASK, agreeing, "", 9 + (3 + 3)),
    # two inner rounds and votes in round three; votes of collective refinement; a judge
    ("debate", VOTE, agreeing, "", 3 * 5 + 3),
    ("collective_refinement", VOTE + "\nrounds = 3", agreeing, "", 3 * 3 + 3),
    ("memory", '"judge.synthesis"', agreeing, "", 9 + 1),
    # a majority at the second message, after blind drafts of a round
    ("memory", MAJORITY, agreeing, "", 2), ("memory", MAJORITY, agreeing, BLIND, 3 + 1),
    # invented experts and a model that reads every message (methods, section 5: kappa = 2, as MALLM's code has it)
    ("memory", ASK + EXPERTS, inventing(tied(3)), READ_BY_A_MODEL, 3 + 18 + 6),
    ("memory", ASK + EXPERTS, inventing(tied(4)), READ_BY_A_MODEL, 39),
    ("memory", ASK + EXPERTS, inventing(tied(5)), READ_BY_A_MODEL, 51),
    ("memory", ASK + EXPERTS + "\nagents = 5", inventing(tied(3)), READ_BY_A_MODEL, 45),
    ("debate", ASK + EXPERTS, inventing(tied(3)), READ_BY_A_MODEL, 39),
    ("memory", MAJORITY + EXPERTS, inventing(agreeing), READ_BY_A_MODEL, 3 + 4)])
def test_what_a_debate_costs(run, paradigm, decision, replies, more, expected):
    assert run(f'paradigm = "mallm.{paradigm}"\ndecision = {decision}', replies, more).calls == expected


def test_neutral_agents_draft_and_do_not_count(run):
    result = run('paradigm = "mallm.memory"\nagents = 4\npersonas = ["personas.none", "personas.none", '
                 '"personas.none", "personas.neutral"]\ndecision = "consensus.unanimity"', agreeing)
    assert [(m.agent, m.move) for m in result.messages] == [
        (3, "draft"), (0, "improve"), (1, "improve"), (2, "improve")]
    assert result.decision.scores == {"B": 3}


def test_prompts_of_collective_refinement_are_options_and_it_asks_nobody_whether_it_agrees():
    def prompts(**options):
        played = play(styles=[Collective(**options)], turns=Simultaneous(), visibility=PreviousRound(), rounds=2,
                      replies=lambda request: f"answer of {request.agent}")
        assert {m.agreement for m in played.messages} == {None}
        return played.prompts

    given = prompts(frame="TASK {question}", solve="GO {braces}", refine="", step_by_step=False, persona="")
    assert given[0] == "TASK the question\n\nGO {braces}\nReply with the answer and nothing else."
    assert given[3].endswith("\n\nReply with the answer and nothing else.")
    assert "the question\n\nYour role: Agent 1." in prompts(persona_place="last")[0]
