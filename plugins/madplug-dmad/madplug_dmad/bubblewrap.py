"""Full Python in a sandbox of Linux namespaces."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from madplug import UserError, Volatile
from madplug_dmad.sandbox import Execution, Sandbox, SandboxOptions, one_line

LAUNCHER = """
import resource, sys
program, memory, seconds = sys.stdin.buffer.read().decode("utf-8", "replace"), {memory}, {seconds}
for what, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_FSIZE, 0),
                    (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_NPROC, 16)):
    resource.setrlimit(what, (limit, limit))
import random
random.seed(0)
exec(compile(program, "program", "exec"), {{"__name__": "__main__"}})
"""
"""Runs before the program, in its process: limits that the program cannot raise again, and a fixed seed."""

MOST_ERRORS = 100_000
NOT_FOUND = ("dmad.bubblewrap needs the program '{binary}', which is not installed; install bubblewrap (a package of "
             "that name in most Linux distributions), or use dmad.monty, which needs nothing")


class BubblewrapOptions(SandboxOptions):
    """Limits of one program, and where the sandbox is."""

    memory_mb: int = Field(default=512, ge=64, le=65_536, description="memory it may use, in MB")
    binary: Annotated[str, Volatile] = Field(
        default="bwrap", min_length=1, description="the program bubblewrap, or a path to it")


class Bubblewrap(Sandbox):
    """Runs programs on full Python in namespaces of their own, by bubblewrap (Linux).

    No network, no processes but its own, an empty file system but for the system's libraries and the Python that
    madplug runs on with its packages, all read-only; nothing can be written and no environment variable is passed
    on. Limits on time, memory and output hold for each program. `random` and hashes are seeded; the clock is real. Run
    it as an ordinary user: the kernel does not limit how many processes a program of root starts until its time is up.
    """

    name = "bubblewrap"
    source = "bubblewrap (bwrap)"
    Options = BubblewrapOptions

    def check(self, cell: Any) -> Iterable[str]:
        """Whether bubblewrap is there."""
        if shutil.which(self.options.binary) is None:
            yield NOT_FOUND.format(binary=self.options.binary)

    async def open(self) -> None:
        """Run a first program, so that a system that allows no namespaces is found out at once."""
        problem = next(iter(self.check(None)), None)
        if problem is None:
            ended = await self.run("print(6 * 7)")
            if ended.output.strip() == "42":
                return
            problem = f"dmad.bubblewrap cannot run programs here: {ended.error or ended.status}; use dmad.monty"
        raise UserError(problem)

    def command(self) -> list[str]:
        """The command line that reads a program from its standard input."""
        seconds = int(self.options.seconds) + 1
        launcher = LAUNCHER.format(memory=self.options.memory_mb * 2**20, seconds=seconds)
        quiet = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"}
        return [self.options.binary, "--unshare-user", "--unshare-all", "--die-with-parent", "--new-session",
                "--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox",
                *(part for name, value in quiet.items() for part in ("--setenv", name, value)),
                *mounts(), "--chdir", "/", sys.executable, "-I", "-c", launcher]

    async def execute(self, program: str) -> Execution:
        """Run a program in a process of its own."""
        process = await asyncio.create_subprocess_exec(
            *self.command(), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE)
        timed_out = False
        printed, errors = bytearray(), bytearray()
        work = asyncio.gather(_feed(process, program), _read(process.stdout, printed, 4 * self.options.output, process),
                              _read(process.stderr, errors, MOST_ERRORS, process), process.wait())
        try:
            await asyncio.wait_for(work, self.options.seconds)
        except (asyncio.TimeoutError, TimeoutError):
            timed_out = True
        finally:
            await _end(process)
        return self._ended(process.returncode or 0, timed_out, printed.decode("utf-8", "replace"),
                           errors.decode("utf-8", "replace"))

    def _ended(self, code: int, timed_out: bool, printed: str, errors: str) -> Execution:
        output = printed[:self.options.output]
        last = one_line(errors.strip().rpartition("\n")[2])
        if len(printed) > self.options.output or len(errors) > MOST_ERRORS:
            return Execution("output", output, f"the program printed more than {self.options.output} characters")
        if timed_out or code in (-24, 128 + 24, -9, 128 + 9):
            return Execution("timeout", output, f"the program ran longer than {self.options.seconds:g} seconds")
        if "MemoryError" in last:
            return Execution("memory", output, f"the program needed more than {self.options.memory_mb} MB")
        if last.startswith("ModuleNotFoundError"):
            return Execution("unsupported", output, last)
        return Execution("error", output, last or f"it ended with status {code}") if code else Execution("ok", output)


def mounts() -> list[str]:
    """What a program finds in its file system, all of it read-only."""
    found = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for path in (Path("/usr"), Path("/lib"), Path("/lib64"), Path("/lib32"), Path("/bin")):
        if path.is_symlink():
            found += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            found += ["--ro-bind", str(path), str(path)]
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        if not prefix.startswith("/usr") and prefix != "/":
            found += ["--ro-bind", prefix, prefix]
    return found


async def _feed(process: asyncio.subprocess.Process, program: str) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(program.encode("utf-8", "replace"))
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return


async def _read(stream: asyncio.StreamReader | None, kept: bytearray, limit: int,
                process: asyncio.subprocess.Process) -> None:
    """Keep what a stream says; end the program when it says too much."""
    assert stream is not None
    while chunk := await stream.read(65_536):
        if len(kept) <= limit:
            kept += chunk
        if len(kept) > limit and process.returncode is None:
            process.kill()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs, and read its pipes to their end so that they are closed."""
    if process.returncode is None:
        process.kill()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    await asyncio.gather(process.stdout.read(), process.stderr.read(), process.wait(), return_exceptions=True)
