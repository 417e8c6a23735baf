"""The documents that are made from the code are up to date, and the guide to writing plugins does what it says."""

import re
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from reference import DOCS, DOCUMENTS

from docs import matches, run
from madplug import hookspecs
from madplug.kinds import HOST_KINDS

GUIDE = DOCS / "writing-plugins.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w./-]+\.(?:toml|py|jsonl))\n")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_made_from_the_code_is_up_to_date(document):
    """If this fails: `python tests/tools/reference.py`, and look at what has changed."""
    assert (DOCS / document).read_text(encoding="utf-8") == DOCUMENTS[document]()


def test_every_hook_and_every_base_class_is_in_the_reference():
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    hooks = [name for name in vars(hookspecs) if name.startswith("madplug_")]
    assert all(f"### `{name}(" in text for name in hooks)
    assert all(f"### `{base.__name__}`" in text for base in HOST_KINDS)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A folder in which the guide was followed: its files written, its plugin built and installed in `site`."""
    folder = tmp_path_factory.mktemp("guide")
    for language, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        if language in ("toml", "python", "json") and (name := FILE.match(text)):
            path = folder / name[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            new = text[name.end():]
            path.write_text((path.read_text() + "\n\n" if path.suffix == ".py" and path.exists() else "") + new)
    (wheel,) = WheelBuilder(str(folder / "madplug-confident")).build(directory=str(folder), versions=["standard"])
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder


def test_the_guide_to_writing_plugins_can_be_followed_to_the_letter(followed):
    """If this fails: the guide shows an output that is no longer true; look at the difference and mend the guide."""
    shown = re.findall(r"^```sh\n((?:(?!```).)*?)^```\n\n```text\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"),
                       re.DOTALL | re.MULTILINE)
    assert len(shown) >= 5
    for command, output in shown:
        printed = run(command.strip(), followed, followed / "site")
        assert matches(output, printed), f"{command}\n{printed}"


def test_the_tests_that_the_guide_writes_pass(followed):
    printed = run("python -m pytest -q -p no:cacheprovider -c /dev/null madplug-confident", followed, followed / "site")
    assert re.search(r"^[1-9]\d* passed in", printed, re.MULTILINE), printed


def test_every_python_block_of_the_guide_is_part_of_a_file_or_runs():
    for language, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        if language == "python":
            compile(text, str(GUIDE), "exec")
            if not FILE.match(text):
                exec(text, {"__name__": "guide"})


def test_every_name_of_mallm_has_its_row():
    """If this fails: `madplug import mallm` knows a name that the page for its users does not have."""
    from madplug_mallm.names import DECISIONS, PARADIGMS, PERSONAS, STYLES

    rows = (DOCS / "from-mallm.md").read_text(encoding="utf-8").splitlines()
    for theirs, ours in (DECISIONS | PARADIGMS | PERSONAS | STYLES).items():
        assert any(f"`{theirs}`" in row and row.endswith(f"`{ours}` |") for row in rows), f"{theirs} -> {ours}"
