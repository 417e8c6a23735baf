"""The process that compares expressions."""

import sys
from contextlib import suppress

from madplug_answers.equivalence import Checker

MARK = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


def test_a_module_in_the_current_directory_is_not_executed(tmp_path, monkeypatch):
    for name in ("math_verify", "sympy", "json"):
        (tmp_path / f"{name}.py").write_text(MARK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    with suppress(RuntimeError):  # without math-verify the process ends at once, which is enough here
        Checker(20).equal("1/2", r"\frac{1}{2}")
    assert not list(tmp_path.glob("*.ran"))
