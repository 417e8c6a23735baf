"""The debate of a run of MALLM: paradigm, personas, style, decision, and what wraps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from madplug_mallm.converted import Converted, Table
from madplug_mallm.names import DECISIONS, PARADIGMS, PERSONAS, STYLES


def debate(given: Table, done: Converted) -> Table:
    """The `[debate]` table."""
    if given["use_baseline"]:
        kind = "cot" if given["use_chain_of_thought"] else "io"
        table: Table = {"paradigm": f"baselines.{kind}", "agents": 1}
        return table
    paradigm = given["discussion_paradigm"]
    generators = given["agent_generators_list"] or [given["agent_generator"]]
    agents = len(given["agent_generators_list"]) or int(given["num_agents"])
    table = {"paradigm": PARADIGMS[paradigm], "agents": agents + int(given["num_neutral_agents"]),
             "rounds": int(given["max_turns"]), "personas": personas(generators, given, done),
             "styles": [style(given, done)], "decision": decision(given, done)}
    turns = turn_options(given, done)
    if turns:
        table["turns"] = turns
    if paradigm != "collective_refinement" and int(given["visible_turns_in_memory"]) != 2:
        table["visibility"] = {"window": int(given["visible_turns_in_memory"])}
    if paradigm != "collective_refinement":
        done.note("visible_turns_in_memory", "MALLM's released code shows everything whatever this says; the run file "
                  "does what its paper and configuration say")
    return table


def style(given: Table, done: Converted) -> Table:
    """The style."""
    chosen = given["response_generator"]
    options: Table = {}
    if not given["use_chain_of_thought"]:
        options["step_by_step"] = False
    if given["discussion_paradigm"] == "collective_refinement":
        return {"use": "mallm.collective", **options}  # MALLM ignores the response generator as well
    if chosen == "json":
        options["structured"] = True
        done.note("response_generator", "'json' is of early releases; the run file has styles.simple, structured")
    return {"use": STYLES[chosen], **options}


def personas(generators: Sequence[str], given: Table, done: Converted) -> list[Any]:
    """Neutral agents first, then the others; the last generator makes all the rest."""
    for name in sorted({g for g in generators if g not in PERSONAS}):
        done.note("agent_generator", f"there is no '{name}' here; the run file has personas.none instead")
    made: list[Any] = [PERSONAS.get(name, "personas.none") for name in generators]
    while len(made) > 1 and made[-1] == made[-2]:
        made.pop()
    neutral = int(given["num_neutral_agents"])
    if not neutral:
        return made
    return [{"use": "personas.neutral", "count": neutral} if neutral > 1 else "personas.neutral", *made]


def turn_options(given: Table, done: Converted) -> Table:
    """How the turn order differs from the paradigm's."""
    options: Table = {}
    if given["discussion_paradigm"] == "debate" and int(given["debate_rounds"]) != 2:
        options["inner"] = int(given["debate_rounds"])
    if not given["all_agents_drafting"] and given["discussion_paradigm"] != "collective_refinement":
        options["move"] = "feedback"
        if given["discussion_paradigm"] in ("memory", "relay"):
            options["first"] = "feedback"
        if not given["num_neutral_agents"] and given["discussion_paradigm"] in ("memory", "relay"):
            done.note("all_agents_drafting", "no agent would draft; agents propose while there is no solution")
    return options


def decision(given: Table, done: Converted) -> Any:
    """The decision protocol."""
    chosen = given["decision_protocol"]
    if given["discussion_paradigm"] == "collective_refinement" and DECISIONS[chosen].startswith("consensus."):
        done.note("decision_protocol", "agents of collective refinement are not asked whether they agree, so that "
                  f"'{chosen}' is never reached; the run file has voting.simple instead")
        chosen = "simple_voting"
    options: Table = {"use": DECISIONS[chosen]}
    ballots = options["use"].startswith(("voting.", "judge."))
    if chosen == "consensus_voting":
        options |= {"vote_round": 1, "dedupe": "canon"}
        done.note("decision_protocol", "'consensus_voting' breaks a tie at random, without success; "
                  "voting.simple discusses for another round")
    if given["skip_decision_making"]:
        if ballots:
            options["vote_round"] = int(given["max_turns"])
        else:
            options["fixed_rounds"] = True
    if given["voting_protocols_with_alterations"] and options["use"].startswith("voting."):
        options["alterations"] = ["public", "history", "confidence", "confidence_log_probs", "confidence_prompted"]
        done.note("voting_protocols_with_alterations", "'facts' and 'confidence_consistency' are left out; they need "
                  "a [services.NAME], see the options 'retriever' and 'embedder'")
    return options if len(options) > 1 else options["use"]


def extensions(given: Table, done: Converted) -> list[Any]:
    """Blind drafts and the judge that steps in."""
    found: list[Any] = []
    if given["all_agents_generate_draft"]:
        found.append({"use": "visibility.blind_first_round", "rounds": int(given["max_turns"])})
    elif given["all_agents_generate_first_draft"]:
        found.append("visibility.blind_first_round")
    if given["judge_intervention"] and not given["judge_endpoint_url"]:
        done.note("judge_intervention", "there is no judge_endpoint_url, without which MALLM has no judge either")
    elif given["judge_intervention"]:
        action = "policy" if given["judge_intervention"] == "policy" else "regenerate"
        always = {"always": True} if given["judge_always_intervene"] else {}
        found.append({"use": "judge.intervention", "model": "judge", "action": action, **always})
        done.note("judge_intervention", "MALLM's released code steps in when the newer answer is better; "
                  "judge.intervention does when the older one is")
    return [] if given["use_baseline"] else found
