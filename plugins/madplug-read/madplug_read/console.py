"""The console that debates are printed on while they run: standard error, below which the program draws its bar."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, cast

from rich.console import Console
from rich.text import Text
from typing_extensions import override

from madplug_read.watch import Line


def print_line(console: Console, line: Line) -> None:
    """Print a line; on a terminal it is broken between words, elsewhere not at all."""
    with suppress(OSError):  # the terminal is gone, or its disk is full
        console.print(Text.assemble(*line), soft_wrap=not console.is_terminal)


class _Stderr:
    """Standard error as it is when a line is written: the program's progress bar takes its place and stays below."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


class Stderr(Console):
    """Standard error, which may be a pipe that is no longer read: a study goes on without it."""

    def __init__(self, file: Any = None) -> None:
        super().__init__(file=file, stderr=True)

    @override
    def on_broken_pipe(self) -> None:
        self.quiet = True  # where rich would end the program


class AboveBar(Stderr):
    """Prints above the progress bar, as long as there is one."""

    def __init__(self) -> None:
        super().__init__(cast(Any, _Stderr()))
