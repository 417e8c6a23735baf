"""Every run file in `examples/` runs, from the first call to the table."""

import json
from pathlib import Path

import pytest
from scripted_replies import madplug, replies

from madplug.config.read import cells, read
from madplug.config.shape import tables
from madplug_testing.endpoint import running_endpoint

CELL_KEYS = tables().cell.model_fields
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*.toml"))
FINDINGS = sorted(set(ROOT.glob("docs/findings/*.toml")) - {ROOT / "docs/findings/noise.toml"})
"""Without the one that takes messages from a recorded study."""


def smaller(path, url):
    """What makes an example run here: other models, and as few samples as show that it works."""
    table = read(path, environ={})
    models = set(table.get("models", {})).union(*(cell.get("models", {}) for cell in table.get("cells", [])))
    for name in sorted(models):
        yield f'models.{name}={{use="openai.chat", model="m", base_url="{url}", temperature={0.1 * len(name):.1f}}}'
    size = next((key for key in ("size", "limit") if key in table["dataset"]), None)
    if size:
        yield f"dataset.{size}={1 if len(list(cells(table, CELL_KEYS))) > 10 else 2}"
    yield "repeats=1"


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(replies) as running:
        yield running


@pytest.mark.parametrize("path", [*EXAMPLES, *FINDINGS], ids=lambda p: p.stem)
def test_an_example_has_nothing_that_check_would_refuse(path, program):
    table = read(path, environ={})["dataset"]
    few = [word for key in ("size", "limit") if key in table for word in ("--set", f"dataset.{key}=1")]
    done = program("check", path, *few)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_runs_to_its_end(path, tmp_path, endpoint, program):
    settings = [word for setting in smaller(path, endpoint.url) for word in ("--set", setting)]
    done = program("run", path, *settings)
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


def test_the_quickstart_runs_on_the_embedded_model(tmp_path):
    pytest.importorskip("madplug_llamacpp")
    from madplug import ModelError
    from madplug_llamacpp.weights import found

    try:
        found("qwen-0-5b")
    except ModelError as error:
        pytest.skip(f"no weights: {str(error)[:60]}...")
    settings = "--set", "dataset.size=1", "--set", "cells.0.debate.rounds=1", "--set", "models.small.max_tokens=24"
    done = madplug("run", ROOT / "examples/quickstart.toml", *settings, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "runs/quickstart/summary.json").read_text())
    assert all(cell["done"] == 1 and cell["failed"] == 0 for cell in summary["cells"])
