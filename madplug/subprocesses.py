"""Run Python code in a subprocess with this process's import path."""

from __future__ import annotations

import sys

_START = """
import sys
_first = 2 + int(sys.argv[1])
sys.argv[1:], sys.path[:] = sys.argv[2:_first], sys.argv[_first:]
"""


def python_command(code: str, *arguments: str) -> list[str]:
    """The command that runs code in a process of its own, with arguments in `sys.argv[1:]`.

    It has the same places to import from as this process, and not the current directory beside: that may be a foreign
    study.
    """
    return [sys.executable, "-c", _START + code, str(len(arguments)), *arguments, *sys.path]
