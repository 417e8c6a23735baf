"""Runs the commands that the documents show: `python tests/tools/docs.py [--write] [FILE ...]`.

A block marked `console` holds commands after `$ ` and, under each, what it prints (standard output, then standard
error). The commands of a document run one after the other in one folder, which holds the repository's examples; a
block with `title="FILE"` is written to that file first. While the commands of a document with
`<!-- endpoint: PORT -->` run, a scripted OpenAI-compatible endpoint answers there. A line `...` stands for any lines.
With `--write` the true output is put in place of what the document says.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from madplug import main

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = re.compile(r"^\d+(/\d+)? debates  .*\n", re.MULTILINE)
"""Shown every few seconds of a run, and on a machine that is busy with something else: not what a document is about."""
FILE = re.compile(r"^```\w+ title=\"([\w./-]+)\"\n(.*?)^```", re.DOTALL | re.MULTILINE)
ENDPOINT = re.compile(r"<!-- endpoint: (\d+) -->")
WORDS = r"""(?: (?:'[^']*'|"[^"$`\\]*"|[^\s|&;<>$`*?~{}()'"\\])+)*"""
STEP = re.compile(rf"madplug({WORDS})( 2> /dev/null| 2>&1|)({WORDS})(?: \| ([^&;]*)|(;| &&) (.*))?")
"""A command of the program that needs no process of its own, where its errors go, and what comes after it."""
CODE = re.compile(r'python -c "([^"$`]*)"')
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


@dataclass
class Shown:
    """A command of a document, and what the document says it prints."""

    command: str
    output: str


def documents() -> list[Path]:
    """Every document with commands."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md"),
             *ROOT.glob("examples/*/README.md")]
    return sorted(p for p in found if p.is_file() and "```console" in p.read_text(encoding="utf-8"))


def shown(block: str) -> list[Shown]:
    """The commands of a block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Shown(*(part.split("\n", 1) if "\n" in part else (part, ""))) for part in parts]


def run(command: str, folder: Path, *installed: Path) -> str:
    """What a command prints, in a folder. installed: further folders to import from."""
    with within(folder, *installed):
        return tidy("".join(printed(command)))


def printed(command: str) -> tuple[str, str]:
    """What a command prints: output, errors. The program and lines of Python are run in this process."""
    if code := CODE.fullmatch(command):
        return in_process(lambda: exec(code[1], {"__name__": "__main__"}))[1:]
    step = STEP.fullmatch(command)
    if step is None:
        return in_shell(command)
    first, errors, more, pipe, join, rest = step.groups()
    status, output, said = in_process(lambda: main(shlex.split(first + more), prog_name="madplug"), errors == " 2>&1")
    if errors == " 2> /dev/null":
        said = ""
    if pipe:
        output, more = in_shell(pipe, output)
        return output, said + more
    if join and (join == ";" or status == 0):
        last = printed(rest)
        return output + last[0], said + last[1]
    return output, said


def in_process(call: Callable[[], object], together: bool = False) -> tuple[object, str, str]:
    """The exit status, output and errors of a call. together: errors are among the output."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # as in a program
        status: object = 0
        try:
            with redirect_stdout(output), redirect_stderr(output if together else errors):
                call()
        except SystemExit as ended:
            status = ended.code
        output.seek(0)
        errors.seek(0)
        return status, output.read(), errors.read()


def in_shell(command: str, given: str = "") -> tuple[str, str]:
    """What a shell prints."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False,
                          input=given)
    return done.stdout, done.stderr


def tidy(printed: str) -> str:
    """Without progress and blank lines at the end."""
    printed = PROGRESS.sub("", printed)
    return printed.rstrip() + "\n" if printed else ""


def matches(expected: str, printed: str) -> bool:
    """Whether a document tells the truth; `...` on a line of its own stands for any lines, `0.0` for a few seconds."""
    lines = (".*" if line == "...\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    pattern = re.sub(r"(?<=\\ )0\\\.0(?=\\ )", r"\\d\\.\\d", "".join(lines))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


@contextmanager
def within(folder: Path, *installed: Path) -> Iterator[None]:
    """As a program that is started in a folder: its modules are found, and the tests' own plugin is not."""
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch, open(os.devnull, encoding="utf-8") as nothing:
        patch.chdir(folder)
        if (remembered := vars(main).get("_registry")) is not None:  # by the program, from an earlier test
            patch.delitem(remembered._sources, "kit", raising=False)
        own = [place for place in sys.path if place != str(ROOT / "tests" / "kit")]
        patch.setattr(sys, "path", [*map(str, (folder, *installed)), *own])
        patch.setattr(sys, "stdin", nothing)
        patch.setenv("COLUMNS", "120")
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, installed)))
        yield
    for name in set(sys.modules) - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@contextmanager
def endpoint_of(document: str) -> Iterator[None]:
    """The endpoint that a document asks for, while its commands run."""
    port = ENDPOINT.search(document)
    if port is None:
        yield
        return
    with tempfile.TemporaryDirectory() as name:
        listening = Path(name) / "port"
        server = subprocess.Popen([sys.executable, "-m", "madplug_testing.endpoint", "--port", port[1], "--latency-ms",
                                   "0", "--port-file", str(listening)], stdout=subprocess.DEVNULL)
        try:
            while not listening.exists() and server.poll() is None:
                time.sleep(0.05)
            if server.poll() is not None:  # whatever answers at that port would not be ours
                raise RuntimeError(f"the endpoint at port {port[1]} of 127.0.0.1 does not start; is the port in use?")
            yield
        finally:
            server.terminate()
            server.wait()


def checked(document: Path, *, write: bool) -> list[str]:
    """What is not as the document says; with `write`, the document is brought up to date."""
    wrong: list[str] = []
    source = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name, endpoint_of(source):
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        for title, content in FILE.findall(source):
            (folder / title).write_text(content, encoding="utf-8")

        def redo(match: re.Match[str]) -> str:
            lines = []
            for item in shown(match.group(1)):
                printed = run(item.command, folder)
                true = matches(item.output, printed)
                if not true:
                    wrong.append(f"$ {item.command}\n{printed}")
                lines.append(f"$ {item.command}\n{item.output if true else printed}")
            return f"```console\n{''.join(lines)}```"

        text = BLOCK.sub(redo, source)
    if write and wrong:
        document.write_text(text, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    chosen = [Path(a).resolve() for a in sys.argv[1:] if not a.startswith("--")] or documents()
    for path in chosen:
        for problem in checked(path, write="--write" in sys.argv):
            print(f"{path.relative_to(ROOT)}: {problem}")
