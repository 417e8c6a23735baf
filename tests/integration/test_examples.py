"""Every run file in `examples/` runs, as a process, from the first call to the table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

from madplug.config.read import cells, read
from madplug.testing.endpoint import running_endpoint

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


def madplug(*words, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MADPLUG_")} | {"COLUMNS": "120"}
    return subprocess.run([sys.executable, "-m", "madplug", *map(str, words)], cwd=folder, env=environment, text=True,
                          capture_output=True, timeout=300, check=False)


# Agents that answer every kind of request in the form it asks for, and differ

def drawn(body, below):
    """A number for this request, the same in every run."""
    return int.from_bytes(blake2b(json.dumps(body).encode(), digest_size=4).digest(), "big") % below


def instance(schema, lot):
    """A small value of a JSON schema."""
    if "enum" in schema:
        return schema["enum"][lot % len(schema["enum"])]
    kind = schema.get("type", "string")
    if kind == "object":
        named = {k: instance(v, lot) for k, v in schema.get("properties", {}).items()}
        return named | {k: instance(schema["additionalProperties"], lot) for k in schema.get("required", ())
                        if k not in named}
    if kind == "array":
        return [instance(schema["items"], lot + i) for i in range(schema.get("minItems", 1))]
    if kind in ("integer", "number"):
        return schema.get("minimum", 0) + lot % 2 * (kind == "integer")
    return {"boolean": True}.get(kind, f"words {lot}")


def replies(body):
    """What the agents say: in JSON where a schema is sent, a ballot where one is asked for, else a message."""
    said = "\n".join(str(m["content"]) for m in body["messages"])
    last = str(body["messages"][-1]["content"])
    lot = drawn(body, 4)
    answer = f"({'ABC'[lot % 3]})" if "Final answer: (" in said else str(lot)
    if "response_format" in body:
        made = instance(body["response_format"]["json_schema"]["schema"], lot)
        return json.dumps(made | {"answer": answer, "confidence": 0.5 + lot / 10} if "confidence" in made else made)
    if re.search(r"\b(vote|approve|rank|points)\b", last, re.IGNORECASE):
        return '{"0": 4, "1": 6}' if "points" in last else "0"
    scores = f"Score of Assistant 1: {5 + lot}\nScore of Assistant 2: 6\n" if "Assistant 1" in said else ""
    return f"[{'AGREE' if lot % 2 else 'DISAGREE'}] So I see it, in case {lot}.\n{scores}Final answer: {answer}"


def smaller(path, url):
    """What makes an example run here: other models, and as few samples as show that it works."""
    table = read(path, environ={})
    models = set(table.get("models", {})).union(*(cell.get("models", {}) for cell in table.get("cells", [])))
    for name in sorted(models):
        yield f'models.{name}={{use="openai.chat", model="m", base_url="{url}", temperature={0.1 * len(name):.1f}}}'
    size = next((key for key in ("size", "limit") if key in table["dataset"]), None)
    if size:
        yield f"dataset.{size}={1 if len(list(cells(table))) > 10 else 2}"
    yield "repeats=1"


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(replies) as running:
        yield running


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_has_nothing_that_check_would_refuse(path, tmp_path):
    done = madplug("check", path, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_runs_to_its_end(path, tmp_path, endpoint):
    settings = [word for setting in smaller(path, endpoint.url) for word in ("--set", setting)]
    done = madplug("run", path, *settings, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    [kept] = tmp_path.glob("runs/*/summary.json")
    summary = json.loads(kept.read_text())
    assert (summary["status"], summary["problems"]) == ("finished", [])
    for cell in summary["cells"]:
        assert cell["done"] > cell["failed"] == 0
        assert cell["undecided"] < cell["done"]
        assert 0 <= cell["metrics"]["qa.accuracy"]["mean"] <= 1


def test_the_examples_begin_with_what_they_show_and_how_to_run_them():
    for path in EXAMPLES:
        text = path.read_text()
        assert text.startswith("# ")
        assert f"#     madplug run examples/{path.name}" in text


@pytest.mark.parametrize("name", ["mallm_memory", "quickstart"])
def test_an_example_runs_on_the_embedded_model(name, tmp_path):
    pytest.importorskip("madplug_llamacpp")
    from madplug import ModelError
    from madplug_llamacpp.weights import found

    try:
        found("qwen-0-5b")
    except ModelError as error:
        pytest.skip(f"no weights: {str(error)[:60]}...")
    path = next(p for p in EXAMPLES if p.stem == name)
    done = madplug("run", path, "--set", "dataset.size=1", "--set", "models.small.max_tokens=64", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "runs" / name / "summary.json").read_text())
    assert all(cell["done"] == 1 and cell["failed"] == 0 for cell in summary["cells"])
