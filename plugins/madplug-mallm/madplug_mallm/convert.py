"""From a configuration of MALLM to a run file: one run, or a batch of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from madplug import Problem, UserError
from madplug_mallm.converted import Converted, Table
from madplug_mallm.debates import debate, extensions
from madplug_mallm.inputs import answer_format, dataset, models
from madplug_mallm.names import DECISIONS, DEFAULTS, LOST, METRICS, OLDER, PARADIGMS, STYLES, TYPES


def convert(config: Mapping[str, Any], folder: Path = Path(), name: str = "mallm") -> Converted:
    """The run file of a configuration: settings of one run, or a batch's `common` settings and `runs`.

    folder: where the run file will be, which its paths are relative to. name: of the study, if the configuration
    has none. Raises `UserError` with every setting that MALLM would not understand either.
    """
    runs = runs_of(config)
    problems = [p for i, run in enumerate(runs) for p in wrong(run, f"runs[{i}]." if "runs" in config else "")]
    if problems:
        raise UserError(problems)
    done = Converted({})
    tables = [one(settings(run, done), done, folder) for run in runs]
    names = [run_name(run, i) for i, run in enumerate(runs)]
    done.table = {"name": str(config.get("name") or (names[0] if len(runs) == 1 else name)),
                  **({"repeats": config["repeats"]} if config.get("repeats", 1) != 1 else {}),
                  **({"share_completions": False} if len(runs) > 1 else {}),  # runs of MALLM are independent
                  **assembled(tables, names)}
    if any(settings(run, Converted({}))["use_ablation"] for run in runs):
        add_ablation(done.table, names, runs)
    return done


def runs_of(config: Any) -> list[Table]:
    """The settings of each run. Raises `UserError` if they cannot be told apart."""
    if not isinstance(config, Mapping):
        raise UserError("not a configuration of MALLM: expected a JSON object")
    common, runs = config.get("common") or {}, config.get("runs", [config])
    if not isinstance(common, Mapping) or not isinstance(runs, list) or not all(isinstance(r, Mapping) for r in runs):
        raise UserError("not a batch of MALLM: 'common' is an object of settings, and 'runs' is a list of them")
    if not runs:
        raise UserError("runs: the batch has none")
    return [{**common, **run} for run in runs]


def settings(run: Mapping[str, Any], done: Converted) -> Table:
    """All settings of a run under their present names; notes those that do not exist or have no counterpart."""
    named = {OLDER.get(key, key): value for key, value in run.items()}
    for key in sorted(named.keys() - DEFAULTS.keys() - {"name", "repeats", "feedback_only"}):
        done.note(key, "no setting of MALLM 1.0.5")
    if named.pop("feedback_only", False):
        named["all_agents_drafting"] = False
    for key, why in LOST.items():
        if named.get(key):
            done.note(key, why)
    return {**DEFAULTS, **{key: value for key, value in named.items() if key in DEFAULTS}}


def wrong(run: Mapping[str, Any], place: str) -> list[Problem]:
    """Values of another type, such as a placeholder that was not filled in, and names that MALLM does not have."""
    problems = []
    known = {"discussion_paradigm": PARADIGMS, "response_generator": STYLES, "decision_protocol": DECISIONS}
    for key, value in run.items():
        name = OLDER.get(key, key)
        try:
            TypeAdapter(TYPES.get(name, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            problems.append(Problem(place + key, f"{error.errors()[0]['msg']}, got {value!r:.60}"))
            continue
        if value not in known.get(name, [value]):
            problems.append(Problem(place + key, f"there is no '{value}' (there is {', '.join(known[name])})"))
    return problems


def run_name(run: Mapping[str, Any], number: int) -> str:
    """A run's name: what it writes to, else its number."""
    stem = PurePosixPath(str(run.get("output_json_file_path") or run.get("out") or "")).stem
    return re.sub(r"[^\w.-]+", "-", stem).strip("-") or f"run{number + 1}"


def one(given: Table, done: Converted, folder: Path) -> Table:
    """The tables of one run."""
    answers = answer_format(given, done, folder)
    table: Table = {
        "dataset": dataset(given, answers, done, folder), "models": models(given, done), "debate": debate(given, done),
        "extensions": extensions(given, done), "metrics": metrics(given, answers, done)}
    if "judge" in table["models"]:
        table["debate"]["models"] = ["main"]
    if given["challenge_final_results"] and not given["use_baseline"]:
        table["services"] = {"wikipedia": {"use": "retrieval.wikipedia"}}
        table["debate"]["phases"] = [{"use": "challenge.final", "challenger_model": "main", "retriever": "wikipedia"}]
    return table


def metrics(given: Table, answers: str, done: Converted) -> list[str]:
    """The metrics of an answer format; MuSR is scored by accuracy however its references are written."""
    names = f"{given['task_instruction_prompt_template'] or ''} {given['input_json_file_path']}".lower()
    found = ["qa.accuracy"] if "musr" in names else METRICS[answers]
    if "text.bertscore" in found:
        done.note("metrics", "text.meteor needs WordNet, and text.bertscore a model; what is missing says what to do")
    if not given["calculate_persona_diversity"]:
        return found
    done.note("calculate_persona_diversity", "the similarity of personas needs a [services.NAME], see the option "
              "'embedder' of dynamics.persona_diversity")
    return [*found, "dynamics.persona_diversity"]


# Several runs

def assembled(tables: Sequence[Table], names: Sequence[str]) -> Table:
    """One table: as it is for one run, with a cell for each of several."""
    tables = deepcopy(list(tables))
    if len(tables) == 1:
        return {key: value for key, value in tables[0].items() if value}
    together = rename_models(tables)
    shared = {key: value for key, value in tables[0].items() if all(t[key] == value for t in tables)}
    cells = []
    for i, (name, table) in enumerate(zip(names, tables, strict=True)):
        unique = name if names.count(name) == 1 else f"{name}-{i + 1}"
        cells.append({"name": unique, **{key: value for key, value in table.items() if key not in shared}})
    return {"models": together, **{key: value for key, value in shared.items() if value}, "cells": cells}


def rename_models(tables: Sequence[Table]) -> Table:
    """All models of the runs under one name each; the runs then say which they use."""
    together: Table = {}
    for table in tables:
        named: dict[str, str] = {}
        for old, spec in table.pop("models").items():
            same = next((n for n, s in together.items() if s == spec and n.rstrip("0123456789") == old), None)
            count = sum(n.rstrip("0123456789") == old for n in together)
            named[old] = same or (old if not count else f"{old}{count + 1}")
            together[named[old]] = spec
        table["debate"]["models"] = [named["main"]]
        for extension in table["extensions"]:
            if isinstance(extension, dict) and extension.get("model") == "judge":
                extension["model"] = named["judge"]
        for phase in table["debate"].get("phases", ()):
            phase["challenger_model"] = named["main"]
    if len(together) == 1:
        for table in tables:
            del table["debate"]["models"]
    return together


def add_ablation(table: Table, names: Sequence[str], runs: Sequence[Mapping[str, Any]]) -> None:
    """Self-improvement of a single agent, matched to each run that asks for it."""
    cells = table.setdefault("cells", [{"name": names[0]}])
    debate = table.pop("debate", {})
    for cell, run in zip(list(cells), runs, strict=True):
        cell.setdefault("debate", debate)
        if run.get("use_ablation") or run.get("ablation"):
            models = {key: value for key, value in cell["debate"].items() if key == "models"}
            cells.append({**cell, "name": f"{cell['name']}-ablation", "extensions": [],
                          "debate": {"paradigm": "baselines.self_improvement", **models},
                          "match": {"cell": cell["name"], "by": "calls"}})
