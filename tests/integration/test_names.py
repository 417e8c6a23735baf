"""Names and phrases that were replaced stay replaced, in code, tests and documents."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("CHANGELOG.md", "changelog.d/", "tests/integration/test_names.py", "examples/data/")
"""History may use the old words, and so may data."""
SUFFIXES = {".py", ".md", ".toml", ".ini", ".txt"}
REPLACED = {
    r"\bkept in runs/": "results saved in runs/",
    r"\bretries apart\b": "excluding retries",
    r"\bholds another study\b": "contains another study",
    r"\bthe same command continues\b": "run the same command to resume",
    r"\b1 (cells|repeats|debates|calls)\b(?!/)": "a singular after 1",
    r"\bhow-manieth\b": "how often this request was made before",
    r"\bextension never takes it\b": "an extension keeps requesting a redo",
    r"\b(was|were|is|are) taken back\b": "retracted",
    r"\bmay not compare\b": "may not be comparable",
    r"\bis no (text|JSON|string|list|number|table|sequence|tuple|wrapper|event)\b": "is not ...",
    r"\bNone where there is none\b": "or None",
    r"\boffers the turns '": "offers a turn order '",
    r"\bOffer when they said it\b": "Register turn orders",
    r"\b(Five|Four|Three) ways to discuss\b": "Register paradigms",
    r"\bword problems of primary school\b": "grade-school word problems",
    r"\bstands in the place of what the others said\b": "replaces the other agents' messages",
    r"\bre-examines the own solution\b": "re-examines its own solution",
    r"\bby lot\b": "at random",
    r"\btold of\b": "notified of",
    r"\bstrangers?\b": "third party",
    r"^from madplug\.(expect|inspect|through) import": "checks, export",
    r"\btests/(strangers|together)\b": "tests/third_party, tests/integration",
    r"\b(OpenEar|how_manieth|_desk|add_up|spelled\(|orderly\()": "see CONTRIBUTING.md, Names and words",
    r"\bplay\([^)]*\bfails=True": "expect_failure=True",
    r"has to be better than": "The baseline for a debate is the same number of independent answers",
    r"\bProcesses of their own\b": "Run Python code in a subprocess with this process's import path",
    r"\bwhat a study made elsewhere\b": "studies from elsewhere need confirmation",
    r"\bnobody waits for\b": "a cancelled debate's call was stored",
    r"\bendpoint is well\b": "the endpoint works",
    r"\bis told nothing\b": "gets no events",
    r"\bdoes not take away again\b": "durably",
    r"\bis no (value|agent)\b": "cannot be used; is not an agent",
    r"\bis there already\b": "already exists",
    r"\banew\b": "again",
    r'"""(None|Always|Never|And over what)\."""': "@override and no docstring",
    r"^class Debate\(Paradigm\)": "a name that says which debate: SomDebate",
    r"\bmadplug_(study_started|study_finished|debate_started|debate_finished|debate_failed|message|decided)\b":
        "an observer's methods, or madplug_opening",
}
"""What must not occur, as a regular expression, and what to write instead."""


@cache
def texts():
    """The tracked files that people write, with their paths."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [(name, (ROOT / name).read_text(encoding="utf-8")) for name in listed.splitlines()
            if Path(name).suffix in SUFFIXES and not name.startswith(LEFT_OUT) and (ROOT / name).is_file()]


@pytest.mark.parametrize(("pattern", "instead"), REPLACED.items(), ids=REPLACED)
def test_what_was_replaced_is_gone(pattern, instead):
    """If this fails: write what the message says."""
    quick = re.compile(pattern.removeprefix(r"\b"), re.MULTILINE)  # a pattern that begins with a letter is found faster
    found = [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write: {instead}"
             for name, text in texts() if quick.search(text) for match in re.finditer(pattern, text, re.MULTILINE)]
    assert not found, "\n".join(found)
