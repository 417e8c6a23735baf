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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from madplug import main

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = re.compile(r"^\d+(/\d+)? debates  .*\n", re.MULTILINE)
"""Shown every few seconds of a run, and on a machine that is busy with something else: not what a document is about."""
FILE = re.compile(r"^```\w+ title=\"([\w./-]+)\"\n(.*?)^```", re.DOTALL | re.MULTILINE)
ENDPOINT = re.compile(r"<!-- endpoint: (\d+) -->")
READING = re.compile(r"madplug (show|check|status|decide|report|merge|read|export|prices) [^|&;<>$`*?~{}]+")
"""Commands that need no process of their own."""
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


def run(command: str, folder: Path) -> str:
    """What a command prints, in a folder with the examples."""
    if READING.fullmatch(command):
        with chdir(folder):
            done = CliRunner().invoke(main, shlex.split(command)[1:], prog_name="madplug", env={"COLUMNS": "120"},
                                      catch_exceptions=False)
        return tidy(done.stdout + done.stderr)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"COLUMNS": "120", "PATH": path}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=300, check=False, stdin=subprocess.DEVNULL)
    return tidy(done.stdout + done.stderr)


def tidy(printed: str) -> str:
    """Without progress and blank lines at the end."""
    printed = PROGRESS.sub("", printed)
    return printed.rstrip() + "\n" if printed else ""


def matches(expected: str, printed: str) -> bool:
    """Whether a document tells the truth; `...` on a line of its own stands for any lines."""
    pattern = "".join(".*" if line == "...\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


@contextmanager
def chdir(folder: Path) -> Iterator[None]:
    """`contextlib.chdir`, which Python 3.10 lacks."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


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
