"""The plugins to copy are built as wheels and installed into a clean environment, where they are seen and used."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from madplug_testing.endpoint import running_endpoint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
HELLO, VOTING = ROOT / "examples" / "madplug-hello", ROOT / "examples" / "madplug-confidence-voting"
BESIDE = ("answers", "export", "openai", "puzzles", "qa", "redecide", "testing", "turns", "visibility")
"""The plugins that `hello.toml` uses besides, and what tests need."""


def declared(folder):
    """The distributions of this repository that one declares, and theirs."""
    needs = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = [re.split(r"[^\w-]", need)[0] for need in needs]
    found = {folder}
    for name in names:
        beside = ROOT / "plugins" / name if name != "madplug" else ROOT
        if name.startswith("madplug"):
            found |= declared(beside)
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """An environment with wheels of the two plugins, and of what the run file names."""
    folder = tmp_path_factory.mktemp("clean")
    wanted = set().union(*(declared(p) for p in (HELLO, VOTING, *(ROOT / "plugins" / f"madplug-{n}" for n in BESIDE))))
    wheels = [path for root in sorted(wanted)
              for path in WheelBuilder(str(root)).build(directory=str(folder / "wheels"), versions=["standard"])]
    python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    for command in (["uv", "venv", "--quiet", "--python", sys.executable, str(folder / "env")],
                    ["uv", "pip", "install", "--quiet", "--python", str(python), *wheels]):
        subprocess.run(command, check=True)
    return python


def run(python, *words, cwd):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("MADPLUG_")}
    return subprocess.run([str(python), "-m", *map(str, words)], cwd=cwd, env=environment, capture_output=True,
                          text=True, check=False, timeout=300)


def test_a_clean_environment_lists_the_plugins_and_has_no_problems(clean, tmp_path):
    done = run(clean, "madplug", "list", "--json", cwd=tmp_path)
    listed = json.loads(done.stdout)
    assert (done.returncode, listed["problems"]) == (0, [])
    ours = {(c["kind"], c["name"], c["distribution"], c["version"]) for c in listed["components"]}
    assert {("decision", "hello.quorum", "madplug-hello", "0.1.0"), ("style", "hello.brief", "madplug-hello", "0.1.0"),
            ("extension", "hello.last_call", "madplug-hello", "0.1.0"),
            ("decision", "confidence_voting.weighted", "madplug-confidence-voting", "0.1.0")} <= ours


def test_a_clean_environment_runs_the_run_file_of_the_plugin(clean, tmp_path):
    with running_endpoint(text="I say {letter}") as endpoint:
        done = run(clean, "madplug", "run", HELLO / "hello.toml", "--set", f"models.small.base_url={endpoint.url}",
                   "--output", tmp_path / "study", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    components = json.loads((tmp_path / "study" / "manifest.json").read_text())["components"]
    assert components["decision hello.quorum"] == {"distribution": "madplug-hello", "version": "0.1.0"}
    done = run(clean, "madplug", "export", tmp_path / "study", "--output", tmp_path / "debates.jsonl", cwd=tmp_path)
    debates = [json.loads(line) for line in (tmp_path / "debates.jsonl").read_text().splitlines()]
    assert len(debates) == 4
    assert all(m["data"]["hello"]["words"] == 3 for debate in debates for m in debate["messages"])


def test_the_recorded_debates_can_be_decided_again_by_the_other_plugin(clean, tmp_path):
    with running_endpoint(text="yes, to 70 percent") as endpoint:
        address = f"models.small.base_url={endpoint.url}"
        run(clean, "madplug", "run", HELLO / "hello.toml", "--set", address, "--output", "study", cwd=tmp_path)
        done = run(clean, "madplug", "decide", "study", "--decision", "confidence_voting.weighted", "--output", "again",
                   "--pay", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "at most 12 model calls" in done.stderr


@pytest.mark.parametrize("plugin", [HELLO, VOTING], ids=lambda p: p.name)
def test_a_plugin_passes_its_own_tests_beside_nothing_but_what_it_declares(clean, plugin, tmp_path):
    done = run(clean, "pytest", "-q", "-p", "no:cacheprovider", plugin / "tests", "-c", os.devnull, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.search(r"[1-9]\d* passed", done.stdout)
    assert "failed" not in done.stdout


def test_confidence_voting_is_short_and_uses_public_names_only():
    text = (VOTING / "madplug_confidence_voting" / "__init__.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    assert set(re.findall(r"^(?:from|import) (madplug\S*)", text, re.MULTILINE)) == {"madplug"}
