"""The documents tell the truth: their commands run, and print what is written."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from docs import ROOT, checked, documents
from madplug import main

main.list_commands(None)  # all plugins in their order: a test that came before would load the one it needs first


@pytest.mark.parametrize("document", documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_commands_of_a_document_print_what_it_says(document):
    """If this fails: look at the difference, and `python tests/tools/docs.py --write FILE` once it is right."""
    assert checked(document, write=False) == []
