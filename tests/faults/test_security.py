"""Every test that SECURITY.md names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.findall(r"`([\w/.-]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))


def test_protections_are_shown_by_tests():
    assert len(NAMED) > 15


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_is_named_exists(path, name):
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
