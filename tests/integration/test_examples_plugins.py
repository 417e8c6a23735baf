"""The plugins to copy do what they show; `tests/tools/alone.py` installs each beside nothing but what it declares."""

import json
import re
from pathlib import Path

from madplug_testing.endpoint import running_endpoint

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_run_file_of_a_plugin_runs_and_the_other_plugin_decides_its_debates_again(program, tmp_path):
    with running_endpoint(text="yes, to 70 percent") as endpoint:
        address = f"models.small.base_url={endpoint.url}"
        for words in (["run", EXAMPLES / "madplug-hello" / "hello.toml", "--set", address, "--output", "it"],
                      ["export", "it", "--output", "debates.jsonl"],
                      ["decide", "it", "--decision", "confidence_voting.weighted", "--output", "again", "--pay"]):
            done = program(*words)
            assert done.returncode == 0, done.stderr
    assert "at most 12 model calls" in done.stderr
    components = json.loads((tmp_path / "it" / "manifest.json").read_text())["components"]
    found = components["decision hello.quorum"]
    assert (found["distribution"], found["version"]) == ("madplug-hello", "0.1.0")
    debates = [json.loads(line) for line in (tmp_path / "debates.jsonl").read_text().splitlines()]
    assert len(debates) == 4
    assert all(m["data"]["hello"]["words"] == 4 for debate in debates for m in debate["messages"])


def test_confidence_voting_is_short_and_uses_public_names_only():
    folder = EXAMPLES / "madplug-confidence-voting" / "madplug_confidence_voting"
    text = (folder / "__init__.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    assert set(re.findall(r"^(?:from|import) (madplug\S*)", text, re.MULTILINE)) == {"madplug"}
