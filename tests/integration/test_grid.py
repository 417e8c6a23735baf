"""What may be combined works together: every paradigm, decision and style, through run files, with scripted agents.

Agents that agree decide; agents that cannot decide fall back, which never counts as agreement; the calls are those of
the arithmetic; and what makes no sense is refused, with the reason, before a model is asked.
"""

import asyncio
import json
import re
from collections import defaultdict
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from scripted_agents import Agents

from madplug import UserError
from madplug.config import load
from madplug.config.check import sizes
from madplug.registry.installed import Registry
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug_testing import Scripted

REGISTRY = Registry()
HEAD = """
dataset = {use = "files.table", path = "q.jsonl", answers = "answers.choice"}
models.m = {use = "openai.chat", model = "m", base_url = "http://127.0.0.1:9/v1"}
"""
ROW = {"id": "q1", "question": "Which one?", "choices": ["one", "two", "three", "four"], "reference": "B"}


def writer(folder):
    """Writes a run file with this `[debate]` and these further lines, and loads it."""
    (folder / "q.jsonl").write_text(json.dumps(ROW) + "\n")

    def study(debate, more=""):
        (folder / "run.toml").write_text(f"{HEAD}\n{more}\n[debate]\n{debate}\n")
        return load(folder / "run.toml", registry=REGISTRY)

    return study


@pytest.fixture
def study(tmp_path):
    return writer(tmp_path)


def run_study(resolved, replies):
    """The debates of a study by cell, run with these replies."""
    store = MemoryStore()
    plan = replace(resolved.plan, models={name: Scripted(replies) for name in resolved.plan.models})
    asyncio.run(StudyRun(plan, store).run())
    results = {result.cell: result for result in store.results()}
    for cell, result in results.items():
        assert result.error is None, (cell, result.error)
    return results


# The grid: one run file with a cell for each combination

SHIPPED = {folder.name.removeprefix("madplug-").replace("-", "_")
           for folder in (Path(__file__).parents[2] / "plugins").iterdir()}
ALONE = {"baselines.io", "baselines.cot", "baselines.self_improvement", "baselines.solo_performance",
         "baselines.ensemble_refinement", "madc.cot"}
"""One agent, who agrees with itself."""
SAMPLES = "baselines.self_consistency"
BLIND = {SAMPLES, "madc.self_consistency", "moa.lite", "moa.self", "moa.self_seq", "council.selected",
         "council.fusion", "baselines.best_of_n", "controls.isolated", "controls.first_vote"}
"""Agents see no others, so that none supports another."""
REVIEWED = {f"council.{name}" for name in ("three_stages", "original", "ranked", "dialectic")}
"""The last round gives no answers, by which other decisions go."""
NOT_HERE = {"replay.debate", "dmad.vision", "metadebate.dmad_vision", "council.jury",
            *(f"oversight.{name}" for name in (
                "debate", "sequential", "interactive", "consultancy", "open_debate", "open_consultancy", "naive",
                "expert")),
            "baselines.medprompt", "baselines.shuffled", "gate.pair"}
"""Recorded answers, images, claims, two choices; choices in other orders; a panel of which a half sees nobody."""


def shipped(kind):
    return [offer.name for offer in REGISTRY.offers(kind) if offer.name.partition(".")[0] in SHIPPED]


PARADIGMS = [name for name in shipped("paradigm") if name not in NOT_HERE]
DECISIONS = shipped("decision")
STYLES = [name for name in shipped("style") if name.partition(".")[0] in (
    "styles", "som", "freemad", "mallm", "reconcile", "eot", "baselines") and name not in NOT_HERE]
BOTH = ["som.debate", "mallm.relay"]  # one in which all speak at the same time, one in which they take turns
COMBINED = sorted({(p, d, "") for p in PARADIGMS for d in DECISIONS}
                  | {(BOTH[(i + j) % 2], d, s) for i, d in enumerate(DECISIONS) for j, s in enumerate(STYLES)}
                  | {(p, "voting.plurality", s) for p in PARADIGMS for s in STYLES}
                  | {(p, "consensus.majority", s) for p, s in zip(PARADIGMS, cycle(("styles.simple", "styles.split")))})
"""Every two of a paradigm, a decision and a style; a consensus takes a style that says who agrees."""


def grid(study, combined):
    """A study with a cell for each of these."""
    cells = []
    for paradigm, decision, style in combined:
        agents = "debate.agents = 4\n" if paradigm in BLIND | {"selective.debate"} else ""
        cells.append(f'[[cells]]\nname = "{paradigm} {decision} {style}"\ndebate.paradigm = "{paradigm}"\n{agents}'
                     + f'debate.decision = "{decision}"\n' + (f'debate.styles = ["{style}"]\n' if style else ""))
    return study("", "\n".join(cells))


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """The problems of the combinations that `check` refuses, by cell."""
    with pytest.raises(UserError) as error:
        grid(writer(tmp_path_factory.mktemp("refused")), COMBINED)
    problems = defaultdict(list)
    for problem in error.value.problems:
        cells, place = re.fullmatch(r"cells? ('.*'): (.*)", problem.place).groups()
        for cell in re.findall(r"'([^']*)'", cells):
            problems[cell].append((place, problem.message))
    return problems


@pytest.fixture(scope="module")
def accepted(refused, tmp_path_factory):
    """The study of all others."""
    return grid(writer(tmp_path_factory.mktemp("accepted")), [c for c in COMBINED if " ".join(c) not in refused])


@pytest.fixture(scope="module")
def agreeing(accepted):
    """Its debates among agents that agree."""
    return run_study(accepted, Agents())


@pytest.fixture(scope="module")
def differing(accepted):
    """Its debates among agents that all say something else, and never agree."""
    return run_study(accepted, Agents("ABCDABCD", agree=False, split=9999, judged=("",)))


def test_most_combinations_may_be_held(accepted, refused):
    assert min(len(PARADIGMS), len(DECISIONS), len(STYLES)) >= 10
    assert len(accepted.plan.cells) > len(refused)


def test_a_combination_is_refused_for_what_its_decision_needs_or_its_turns_ask_for(refused):
    needing = {"agreement": ("consensus.",), "confidence": ("reconcile.weighted", "gate.behind"),
               "judgement": ("oversight.verdict",), "ranking": ("council.best",), "vote": ("council.jury",)}
    for cell, problems in refused.items():
        decision = cell.split(" ")[1]
        for place, message in problems:
            needs = re.fullmatch(rf"{decision} needs '(\w+)', which no component of this cell gives; of .+", message)
            asks = re.fullmatch(r"no style writes the move '\w+' that \S+ asks for \(they write .+\)", message)
            assert (needs and place == "debate.decision" and decision.startswith(needing[needs[1]])) or (
                asks and place == "debate.styles"), (cell, place, message)


def test_a_combination_that_makes_sense_is_not_refused(refused):
    [(place, reason)] = refused["som.debate consensus.majority "]
    assert place == "debate.decision"
    assert reason.startswith("consensus.majority needs 'agreement', which no component of this cell gives; of those "
                             "installed, these do: in debate.styles ")
    assert re.search(r" styles\.simple\b(?! \()", reason)
    [(_, reason)] = refused["som.debate reconcile.weighted "]
    assert " styles.simple (structured = true)" in reason
    assert not refused.keys() & {"mallm.relay consensus.majority ", "som.debate consensus.majority styles.simple"}


def test_agents_that_agree_decide_in_every_combination(accepted, agreeing):
    assert len(agreeing) == len(accepted.plan.cells)
    for cell, result in agreeing.items():
        decision = result.decision
        if cell.startswith("dylan.debate "):  # two of four act in the last round: too few where all count
            assert decision.key == "B", (cell, decision)
            continue
        if cell.split(" ")[0] in REVIEWED and " council." not in cell:
            continue
        if cell.split(" consensus.")[0] in BLIND:
            assert (decision.key, decision.agreed) == ("B", False), cell
            continue
        assert (decision.key, decision.agreed, decision.fallback) == ("B", True, False), (cell, decision)


def test_agents_that_cannot_decide_fall_back_and_never_agree(differing):
    for cell, result in differing.items():
        paradigm, decision, _ = cell.split(" ")
        if paradigm not in ALONE and decision != "baselines.last":  # the last answer always decides
            made = result.decision
            assert not made.agreed, (cell, made)
            assert made.fallback or made.tie or made.key is None, (cell, made)


def test_no_debate_makes_more_calls_than_check_says(accepted, agreeing, differing):
    for cell in accepted.plan.cells:
        assert max(agreeing[cell.slug].calls, differing[cell.slug].calls) <= cell.worst_calls(), cell.slug


# Calls

def calls(study, debate, agents=None, more=""):
    """The calls of the one debate of a study."""
    return run_study(study(debate, more), agents or Agents())["main"].calls


DIFFER = "ABCDABCDAB"
NEVER = {
    "baselines.io": 1, "baselines.cot": 1, "baselines.self_consistency": 5, "baselines.self_improvement": 1,
    "baselines.best_of_n": 5 + 5, "baselines.ensemble_refinement": 3 + 1, "baselines.medprompt": 5,
    "baselines.solo_performance": 1, "controls.isolated": 3 * 2, "controls.first_vote": 6,
    "gate.debate": 3 * 3, "gate.pair": 2 + 2 * 2 + 3, "dar.debate": 4 + 2 * (4 + 1), "debunc.debate": 3 * 3,
    "peer_review.debate": 3 + 3 * 2 + 3, "macnet.debate": 1 + 2 * 3,
    "som.debate": 3 * 2, "sparse.debate": 3 * 2, "madc.debate": 3 * 2,
    "madc.self_consistency": 3, "madc.cot": 1,
    "freemad.n": 3 * 2, "freemad.c": 3 * 2, "freemad.baseline1": 3 * 2, "freemad.baseline2": 3 * 2,
    "mad.tit_for_tat": 3 * 3 + 2 + 2,  # a judge who names no answer is asked again, here twice
    "dmad.text": 3 * (1 + 2 + 1), "dmad.vision": 3 * (1 + 2 + 2),
    "reconcile.round_table": 3 * (1 + 2),
    "chateval.one_by_one": 2 * 2, "chateval.simultaneous": 2 * 2, "chateval.summarised": 2 * 2 + 1,
    "eot.memory": 3 * (1 + 5), "eot.report": 3 * (1 + 5), "eot.relay": 3 * (1 + 5), "eot.debate": 3 * (1 + 5),
    "mallm.memory": 3 * 7, "mallm.relay": 3 * 7, "mallm.report": 3 * 7, "mallm.debate": 7 * (1 + 2 * 2),
    "mallm.collective_refinement": 3 * 7 + 5 * 3,  # votes after rounds 3 to 7
    # reviews without a ranking are asked for it once more
    "council.three_stages": 3 + 2 * 3 + 1, "council.original": 3 + 3 + 1, "council.ranked": 3 + 2 * 3,
    "council.selected": 3 + 1, "council.fusion": 3 + 2, "council.delphi": 3 * 3 + 1, "council.jury": 3,
    "council.dialectic": 2 * (3 + 2 * 3),
    "moa.mixture": 6 * 2 + 1, "moa.lite": 6 + 1, "moa.ranker": 6 * 2 + 1, "moa.self": 6 + 1, "moa.self_seq": 30 + 1 + 8,
    "dylan.debate": 4 + 4 + 1 + 2, "groups.debate": 6 * 4 + 3,
    "selective.debate": 5 * 4 + 2 - 2,  # both summaries say A, as two agents do, who are silent then
    "metadebate.mad": 2 * 3 * 1 + 3 * 3 + 2 + 2, "metadebate.dmad": (1 + 2 + 1) + 3 + 12,
    "metadebate.dmad_vision": (1 + 2 + 2) + 3 + 3 * (1 + 2 + 2)}
"""The calls of a question on which the agents never agree."""


def test_every_paradigm_that_calls_a_model_is_counted():
    assert set(NEVER) == set(PARADIGMS) | {"dmad.vision", "metadebate.dmad_vision", "council.jury",
                                           "baselines.medprompt", "gate.pair"}


@pytest.mark.parametrize("paradigm", NEVER)
def test_a_debate_that_nothing_ends_costs_what_the_arithmetic_says(study, paradigm):
    agents = Agents(DIFFER, agree=False, split=9999, judged=("", "", "", "B"))
    more = 'answers = "answers.yesno"' if paradigm == "council.jury" else ""
    assert calls(study, f'paradigm = "{paradigm}"', agents, more) == NEVER[paradigm]


TWO_MORE = "\n".join(f'models.{name} = {{use = "openai.chat", model = "{name}", base_url = "http://127.0.0.1:9/v1"}}'
                     for name in ("x", "y"))
CUT = 'extensions = [{use = "attack.drop", share = 0.25, cut_off = "%s"}]'
TRIAL = 'paradigm = "metadebate.mad"\nmodels = ["m", "x", "y"]\n'
CHALLENGED = 'paradigm = "som.debate"\nmodels = ["m"]\nphases = [{use = "challenge.final", challenger_model = "x"}]'
# Generated personas, a style of two calls (the stance, then the message; a draft has no stance), and a vote before
# which every agent is asked for its answer: personas + messages + stances + votes * (answers + ballots).
ASKED = """personas = ["personas.expert"]
styles = ["styles.split"]
decision = {use = "voting.simple", final = "ask"}
paradigm = "mallm."""
SPENDING = [
    *[(f'paradigm = "{name}"\n{size}', "", Agents(), expected)
      for name in ("som.debate", "sparse.debate", "freemad.n", "freemad.c", "madc.debate")
      for size, expected in (("agents = 10", 10 * 2), ("rounds = 4", 3 * 4))],
    # A summary is one call after every round but the last.
    ('paradigm = "som.debate"\nrounds = 3', 'extensions = ["som.summary"]', Agents(), 9 + 2),
    # Agents that are cut off are asked all the same unless they are frozen.
    ('paradigm = "freemad.n"\nagents = 4', CUT % "asked", Agents(), 8),
    ('paradigm = "freemad.n"\nagents = 4', CUT % "frozen", Agents(), 8 - 1),
    # Equal answers end a round table and an exchange of thoughts.
    *[(f'paradigm = "{name}"', "", agents, expected)
      for name in ("reconcile.round_table", "eot.memory", "eot.relay")
      for agents, expected in ((Agents(), 3), (Agents("ABA", "AAA"), 6))],
    # A moderator ends the debate in any round.
    *[('paradigm = "mad.tit_for_tat"', "", Agents(DIFFER, judged=judged), expected)
      for judged, expected in ((("B",), 3), (("", "B"), 6), (("", "", "B"), 9))],
    # Roles cast among three models cost 18 calls before the debate.
    (TRIAL, TWO_MORE, Agents(), 18 + 3), (TRIAL + 'casting = {reviews = "single"}', TWO_MORE, Agents(), 36 + 3),
    (TRIAL + 'casting = {assignment = "random"}', TWO_MORE, Agents(), 3),
    # A challenge costs a call for each agent and setting, one for each new answer, and one for a wrong answer.
    (CHALLENGED, TWO_MORE, Agents(), 6 + 4 * 3 + 1),
    (CHALLENGED, TWO_MORE, Agents(disagree=(1,)), 6 + 4 * 3 + 4 + 1),
    *[(f'{ASKED}{name}"\nagents = {size}', "", Agents(agree=False, split=ties), expected)
      for name, size, ties, expected in (
        ("memory", 3, 0, 3 + 9 + 8 + (3 + 3)), ("memory", 3, 1, 3 + 12 + 11 + 2 * (3 + 3)),
        ("memory", 3, 2, 3 + 15 + 14 + 3 * (3 + 3)), ("memory", 5, 0, 5 + 15 + 14 + (5 + 5)),
        ("relay", 3, 0, 3 + 9 + 8 + (3 + 3)), ("debate", 3, 0, 3 + 15 + 12 + (3 + 3)))],
]
"""A debate, more lines of its run file, its agents, and how many calls are made."""


@pytest.mark.parametrize(("debate", "more", "agents", "expected"), SPENDING)
def test_a_debate_makes_as_many_calls_as_the_arithmetic_says(study, debate, more, agents, expected):
    assert calls(study, debate, agents, more) == expected


@pytest.mark.parametrize("metrics", ["[]", '["qa.graded"]'])
def test_self_consistency_makes_the_calls_of_the_debate_it_is_matched_to_whatever_metrics_ask(study, metrics):
    results = run_study(study('paradigm = "som.debate"', f"metrics = {metrics}" + """
[[cells]]
name = "debate"
[[cells]]
name = "samples"
debate.paradigm = "baselines.self_consistency"
match = {cell = "debate", by = "calls"}
"""), Agents())
    assert results["samples"].calls == results["debate"].calls == len(results["samples"].messages) == 6


def test_a_bound_holds_where_a_ballot_is_asked_for_until_it_is_valid(study):
    resolved = study('paradigm = "som.debate"', """
[[cells]]
name = "debate"
[[cells]]
name = "samples"
match = {cell = "debate", by = "calls"}
[cells.debate]
paradigm = "baselines.self_consistency"
decision = "voting.approval"
""")
    bound = {row["cell"]: row["calls/debate"] for row in sizes(resolved.plan)}
    made = run_study(resolved, lambda request: "no ballot" if request.purpose == "vote" else "Final answer: A")
    assert bound["debate"] < made["samples"].calls <= bound["samples"]
