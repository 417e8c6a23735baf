"""The five paradigms as presets, with every decision and style: who decides, who falls back, and what it costs."""

import asyncio
import json
from dataclasses import replace

import pytest
import tomli_w

from madplug.config import load
from madplug.registry.installed import Registry
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug_mallm import paradigms
from madplug_testing import Scripted

for plugin in ("answers", "files", "judge", "openai", "personas"):
    pytest.importorskip(f"madplug_{plugin}")

SEQUENTIAL = ["memory", "relay", "report", "debate"]
CONSENSUS = ["majority", "supermajority", "unanimity", "hybrid"]
VOTES = ["simple", "approval", "ranked", "cumulative"]
REGISTRY = Registry()
STYLES = ["simple", "freetext", "split", "critical", "reasoning"]


@pytest.fixture
def study(tmp_path):
    """Writes a run file with this `[debate]`, and loads it."""
    row = {"id": "q1", "question": "Which one?", "choices": ["one", "two", "three", "four"], "reference": "B"}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n")

    def load_study(debate, more=""):
        (tmp_path / "run.toml").write_text(f"""
dataset = {{use = "files.table", path = "q.jsonl", answers = "answers.choice"}}
models.m = {{use = "openai.chat", model = "m", base_url = "http://127.0.0.1:9/v1"}}
{more}
[debate]
{debate}
""")
        return load(tmp_path / "run.toml", registry=REGISTRY)

    return load_study


def run_study(resolved, replies):
    """The one debate of a study, run with these replies."""
    scripted = Scripted(replies)
    store = MemoryStore()
    plan = replace(resolved.plan, models=dict.fromkeys(resolved.plan.models, scripted))
    asyncio.run(StudyRun(plan, store).run())
    [result] = store.results()
    assert result.error is None, result.error
    return result


def says(agree, answers="BBBBB"):
    """Agents that always agree, or never, give these answers, and vote in the form that is asked for."""
    def reply(request):
        text = str(request.messages[-1]["content"]).lower()
        agent = request.agent or 0
        if request.purpose == "vote":
            forms = {"rank": "1 2 3", "points": '{"1": 4, "2": 3, "3": 3}'}
            return next((form for word, form in forms.items() if word in text), "1" if agree else str(agent + 1))
        if request.purpose == "extract":
            return f"Final answer: ({answers[agent]})"
        stance = "[AGREE]" if agree else "[DISAGREE]"
        return f"{stance} It is so.\nFinal answer: ({answers[agent]})"

    return reply


SEEN = {
    "memory": [[], [0], [0, 1], [0, 1, 2]], "relay": [[], [0], [1], [0, 2]], "report": [[], [0], [0], [0, 1, 2]],
    "debate": [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 3, 4]],
    "collective_refinement": [[], [], [], [0, 1, 2], [1, 0, 2], [2, 0, 1]]}


@pytest.mark.parametrize("name", SEEN)
def test_everybody_is_shown_what_the_paradigm_says(study, name):
    decision = "voting.plurality" if name == "collective_refinement" else "consensus.unanimity"
    result = run_study(study(f'paradigm = "mallm.{name}"\nrounds = 2\ndecision = "{decision}"'),
                  says(agree=False, answers="ABCDA"))
    shown = [list(m.seen) for m in result.messages]
    assert shown[:len(SEEN[name])] == SEEN[name]


@pytest.mark.parametrize("name", SEEN)
def test_a_preset_is_what_a_user_could_have_written(study, name):
    short = study(f'paradigm = "mallm.{name}"')
    assert short.plan.cells[0].visibility.options.window == 2
    assert short.plan.cells[0].rounds == 7
    kind = {c.name: c for c in vars(paradigms).values() if isinstance(c, type) and hasattr(c, "debate")}[name]
    assert study(tomli_w.dumps(dict(kind.debate)).replace("[visibility]", "[debate.visibility]").replace(
        "[turns]", "[debate.turns]")).identity == short.identity


@pytest.mark.parametrize("decision", CONSENSUS)
@pytest.mark.parametrize("paradigm", SEQUENTIAL)
def test_reasoners_that_agree_without_a_solution_are_asked_for_it(study, paradigm, decision):
    def thinks(request):
        return "Final answer: (B)" if request.purpose == "extract" else "[AGREE] That is enough."

    result = run_study(study(f'paradigm = "mallm.{paradigm}"\nstyles = ["styles.reasoning"]\n'
                        f'decision = "consensus.{decision}"'), thinks)
    assert (result.decision.key, result.decision.agreed, result.rounds) == ("B", True, 1)
    assert result.calls == len(result.messages) + 1


# Calls: P + kappa * M + A * (extraction + votes), with kappa = 1 and nothing to extract

def tied(until):
    """Votes are tied until a round, in which all vote for solution 1."""
    votes = iter([agent + 1 for _ in range(until - 3) for agent in range(3)] + [1] * 9)
    ordinary = says(agree=True)
    return lambda request: str(next(votes)) if request.purpose == "vote" else ordinary(request)


def inventing(replies):
    """The same, with experts to play."""
    experts = iter(f'{{"role": "Expert {i}", "description": "Knows {i}."}}' for i in range(9))
    return lambda request: next(experts) if request.purpose == "persona" else replies(request)


READ_BY_A_MODEL = 'answers = {use = "answers.choice", extract = "llm", extract_when = "every_message"}'


VOTE, MAJORITY, EXPERTS = '"voting.simple"', '"consensus.majority"', '\npersonas = ["personas.expert"]'
ASK = '{use = "voting.simple", final = "ask"}'
BLIND = 'extensions = ["visibility.blind_first_round"]'


@pytest.mark.parametrize(("paradigm", "decision", "replies", "more", "expected"), [
    # votes decided in rounds three, four and five, of five agents, with an extraction of every answer
    ("memory", VOTE, tied(3), "", 9 + 3), ("memory", VOTE, tied(4), "", 12 + 2 * 3),
    ("memory", VOTE, tied(5), "", 15 + 3 * 3), ("memory", VOTE + "\nagents = 5", says(agree=True), "", 15 + 5),
    ("memory", ASK, says(agree=True), "", 9 + (3 + 3)),
    # two inner rounds and votes in round three; votes of collective refinement; a judge
    ("debate", VOTE, says(agree=True), "", 3 * 5 + 3),
    ("collective_refinement", VOTE + "\nrounds = 3", says(agree=True), "", 3 * 3 + 3),
    ("memory", '"judge.synthesis"', says(agree=True), "", 9 + 1),
    # a majority at the second message, after blind drafts of a round
    ("memory", MAJORITY, says(agree=True), "", 2), ("memory", MAJORITY, says(agree=True), BLIND, 3 + 1),
    # invented experts and a model that reads every message (methods, section 5: kappa = 2, as MALLM's code has it)
    ("memory", ASK + EXPERTS, inventing(tied(3)), READ_BY_A_MODEL, 3 + 18 + 6),
    ("memory", ASK + EXPERTS, inventing(tied(4)), READ_BY_A_MODEL, 39),
    ("memory", ASK + EXPERTS, inventing(tied(5)), READ_BY_A_MODEL, 51),
    ("memory", ASK + EXPERTS + "\nagents = 5", inventing(tied(3)), READ_BY_A_MODEL, 45),
    ("debate", ASK + EXPERTS, inventing(tied(3)), READ_BY_A_MODEL, 39),
    ("memory", MAJORITY + EXPERTS, inventing(says(agree=True)), READ_BY_A_MODEL, 3 + 4)])
def test_what_a_debate_costs(study, paradigm, decision, replies, more, expected):
    assert run_study(study(f'paradigm = "mallm.{paradigm}"\ndecision = {decision}', more), replies).calls == expected


def test_neutral_agents_draft_and_do_not_count(study):
    result = run_study(study('paradigm = "mallm.memory"\nagents = 4\npersonas = ["personas.none", "personas.none", '
                        '"personas.none", "personas.neutral"]\ndecision = "consensus.unanimity"'), says(agree=True))
    assert [(m.agent, m.move) for m in result.messages] == [
        (3, "draft"), (0, "improve"), (1, "improve"), (2, "improve")]
    assert result.decision.scores == {"B": 3}
