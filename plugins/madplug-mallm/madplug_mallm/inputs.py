"""The data set, the answer format and the models of a run of MALLM."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madplug import Problem, UserError
from madplug_mallm.converted import Converted, Table
from madplug_mallm.names import ANSWERS, INSTRUCTIONS


def answer_format(given: Table, done: Converted, folder: Path) -> str:
    """The answer format, guessed from the names of task and data; MuSR's from how its file writes references."""
    names = (given["task_instruction_prompt_template"] or "", given["input_json_file_path"])
    for name in names:
        plain = re.sub(r"[^a-z0-9]", "", str(name).lower())
        found = next((answers for part, answers in ANSWERS.items() if part in plain), None)
        if found:
            return "answers.text" if "musr" in plain and names_no_letter(given, folder) else found
    done.note("input_json_file_path", "the kind of answer is not known; the run file takes answers.text, so see "
              "whether answers.choice, number, math, yesno or free is meant")
    return "answers.text"


def dataset(given: Table, answers: str, done: Converted, folder: Path) -> Table:
    """The data set: a file of MALLM's, or one of the hub."""
    path = str(given["input_json_file_path"])
    table = local(path, done, folder) if path.endswith((".json", ".jsonl")) or not path else hub(given)
    table["answers"] = answers
    template = given["task_instruction_prompt_template"]
    if instruction := given["task_instruction_prompt"] or INSTRUCTIONS.get(template or ""):
        table["instruction"] = instruction
    if template and not given["task_instruction_prompt"]:
        done.note("task_instruction_prompt_template", f"what '{template}' asks for is in other words in "
                  "dataset.instruction" if instruction else f"MALLM has no '{template}'; write dataset.instruction")
    if given["num_samples"]:
        table["limit"] = int(given["num_samples"])
    if given["shuffle_input_samples"]:
        table["shuffle"] = 0
        done.note("shuffle_input_samples", "MALLM's order differs from run to run; here it follows from a seed")
    return table


def names_no_letter(given: Table, folder: Path) -> bool:
    """Whether the references of the file are texts, and not letters such as `A) Mackenzie`."""
    there = existing(str(given["input_json_file_path"]), folder)
    references = first_row(there).get("references") if there else None
    first = references[0] if isinstance(references, list) and references else references
    return isinstance(first, str) and re.match(r"\(?[A-Z](?:[).:]|\Z)", first) is None


def existing(path: str, folder: Path) -> Path | None:
    """The data file, if it is here and has rows of JSON."""
    found = (p for p in (Path(path), folder / path) if p.suffix in (".json", ".jsonl") and p.is_file())
    return next(found, None)


def local(path: str, done: Converted, folder: Path) -> Table:
    """A file in MALLM's own format, with the columns that it has."""
    there = existing(path, folder)
    columns = {"id": "example_id", "question": "inputs.0", "reference": "references", "context": "context"}
    if there is None:
        done.note("input_json_file_path", f"there is no '{path}' here; its columns are taken to be MALLM's")
    else:
        columns = columns_of(first_row(there), done) or columns
        path = Path(os.path.relpath(there.resolve(), folder.resolve())).as_posix()
    return {"use": "files.table", "path": path, "columns": columns}


def first_row(path: Path) -> Mapping[str, Any]:
    """The first row of a file of MALLM's: a list of objects, or an object a line."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
            value = json.loads(first) if first.strip() not in ("[", "{") else json.loads(first + file.read())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError([Problem(str(path), f"cannot be read as a data set of MALLM: {error}")]) from None
    row = value[0] if isinstance(value, list) and value else value
    return row if isinstance(row, Mapping) else {}


def columns_of(row: Mapping[str, Any], done: Converted) -> dict[str, str]:
    """The meaning of each column, in the formats of MALLM's releases."""
    wanted = {"id": ("example_id", "exampleId"), "question": ("inputs", "input", "input_str"),
              "reference": ("references",), "context": ("context",)}
    found = {part: next((c for c in columns if c in row), "") for part, columns in wanted.items()}
    inputs = row.get(found["question"])
    if isinstance(inputs, list):
        found["question"] += ".0"
        if len(inputs) > 1:
            done.note("input_json_file_path", "a row has several inputs; the first is taken for the question")
    return {part: column for part, column in found.items() if column}


def hub(given: Table) -> Table:
    """A data set of the hub."""
    table: Table = {"use": "datasets.hub", "id": given["input_json_file_path"],
                    "split": given["hf_dataset_split"] or "test"}
    if given["hf_dataset_version"]:
        table["config"] = given["hf_dataset_version"]
    columns = {"question": given["hf_dataset_input_column"], "reference": given["hf_dataset_reference_column"],
               "context": given["hf_dataset_context_column"]}
    return {**table, "columns": {part: column for part, column in columns.items() if column}}


def models(given: Table, done: Converted) -> Table:
    """The agents' model, and the judge's where there is one. Keys are never copied."""
    table = {"main": model(given["model_name"], given["endpoint_url"], given["concurrent_api_requests"])}
    if given["api_key"] not in ("-", "", None):
        done.note("api_key", "not copied; set the environment variable OPENAI_API_KEY")
    if given["judge_intervention"] and given["judge_endpoint_url"]:
        table["judge"] = model(given["judge_model_name"] or given["model_name"], given["judge_endpoint_url"],
                               given["concurrent_api_requests"])
        if given["judge_api_key"] not in ("-", "", None):
            table["judge"]["api_key_env"] = "JUDGE_API_KEY"
            done.note("judge_api_key", "not copied; set the environment variable JUDGE_API_KEY")
    return table


def model(name: str, url: str, requests: int) -> Table:
    """A model with the sampling that MALLM's papers report."""
    return {"use": "openai.chat", "model": name, "base_url": url.rstrip("/"), "temperature": 1.0, "top_p": 1.0,
            "max_tokens": 1024, "max_in_flight": int(requests)}
