"""Symbolic equality in a separate process.

math-verify sets alarms, which works only in a main thread, and an expression can take forever; so it runs
in a second interpreter, which receives one pair per line and is killed when it does not answer in time.
"""

from __future__ import annotations

import json
import subprocess
import threading
import weakref
from contextlib import suppress
from typing import IO, Any

from madplug import python_command

KEPT = 100_000
_MAIN = """
from madplug_answers.equivalence import serve
serve(sys.stdin, sys.stdout)
"""
START = 60.0
"""Seconds a new process may take to load computer algebra."""


class Checker:
    """Compares pairs of expressions in one process and caches the results."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._known: dict[tuple[str, str], bool] = {}
        self._one_at_a_time = threading.Lock()

    def equal(self, a: str, b: str) -> bool:
        """Whether two expressions have the same value; False when that takes too long."""
        pair = (a, b)
        if pair not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            with self._one_at_a_time:  # the answers of different pairs must not be mixed up
                self._known[pair] = self._ask(a, b)
        return self._known[pair]

    def _ask(self, a: str, b: str) -> bool:
        process = self._process or self._start()
        answer = _say(process, {"a": a, "b": b}, self._seconds)
        if answer is None:
            _end(process)
            self._process = None
        return answer is True

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(python_command(_MAIN), stdin=subprocess.PIPE, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        weakref.finalize(self, _end, self._process)
        if _say(self._process, {"a": "1", "b": "1"}, START) is not True:
            raise RuntimeError("math-verify does not work here; answers.math cannot compare symbolically")
        return self._process


def _say(process: subprocess.Popen[str], pair: dict[str, str], seconds: float) -> Any:
    """The process's answer, or None if it did not answer in time."""
    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(pair) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        return None
    finally:
        timer.cancel()
    return json.loads(line) if line.endswith("\n") else None


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Answer one pair per line until the input ends."""
    from math_verify import parse, verify  # type: ignore[import-untyped, unused-ignore]

    for line in questions:
        pair = json.loads(line)
        try:
            equal = bool(verify(parse(f"${pair['a']}$"), parse(f"${pair['b']}$")))
        except Exception:
            equal = False
        answers.write(json.dumps(equal) + "\n")
        answers.flush()
