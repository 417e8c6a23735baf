"""Power failures: what was acknowledged before the power was cut is there when the study is opened again.

A process that writes to a study is run under strace, which records every write, sync and new file of the study's
directory, and every acknowledgement. From that record the disk is built as a power failure may leave it at a moment:
with all that was synced until then, and of what was written since the last sync of a file nothing, everything, or any
part in any order, and torn pages; a file whose directory was not synced since it was made is not there.

What this shows: the store syncs the right files, in the right order, before it acknowledges. What it does not show:
that a disk keeps what it was asked to sync, and what a file system loses beyond this model.
"""

import random
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from madplug.store import open_study

CALLS, BIG = 260, 12_000
WRITER = f"""
import asyncio, os, sys
from pathlib import Path
from madplug import Agent, Caller, Completion, DebateResult, Decision, Message, Persona, Sample
from madplug.store import Call, CallRow, DebateId, open_recorder
folder = Path(sys.argv[1])
recorder = open_recorder(folder / "study")
acks = os.open(folder / "acks", os.O_CREAT | os.O_WRONLY)

async def debate(number):
    id, sample = DebateId("c", 0, f"q{{number}}"), Sample(f"q{{number}}", "?")
    agents, said = (Agent(0, Persona("p"), "m"),), []
    recorder.start_debate(id, sample, ())
    recorder.keep_agents(id, agents)
    for i in range(10):
        key = f"{{number:03}}{{i}}".encode()
        await recorder.keep_call(CallRow(key, Caller(*id), "m", "{{}}"), Call(Completion("x" * {BIG})))
        os.write(acks, b"call " + key)
        said.append(Message(i, 1, 0, 0, "draft", f"message {{i}}"))
        recorder.keep_message(id, said[-1])
    await recorder.finish_debate(DebateResult(*id[:2], sample, (), agents, tuple(said), Decision("A", "A")))
    os.write(acks, f"debate q{{number}}".encode())

async def main():
    for first in range(0, {CALLS // 10}, 2):
        await asyncio.gather(debate(first), debate(first + 1))
asyncio.run(main())
recorder.close()
"""
LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)")
CALL = re.compile(r"(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (-?\d+)")
TRACED = "openat,open,write,pwrite64,fsync,fdatasync,ftruncate,unlink,unlinkat"


class Disk:
    """The files of the study's directory, as they are on disk for certain, and what may have got there."""

    def __init__(self):
        self.certain: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes | None]]] = {}
        self.named: set[str] = set()
        """Files whose directory was synced after they were made."""
        self.removed: set[str] = set()
        """Files that were removed, which may or may not have got there."""
        self.acknowledged: list[str] = []

    def happen(self, name, path, data, offset):
        """One system call."""
        file = Path(path).name
        if file == "acks" and name == "write":
            self.acknowledged.append(data.decode())
        elif file == "study" and "sync" in name:
            self.named |= set(self.pending)
        elif file not in ("study.db", "study.db-wal"):
            return
        elif name in ("fsync", "fdatasync"):
            for place, written in self.pending.get(file, ()):
                put(self.certain.setdefault(file, bytearray()), place, written)
            self.pending[file] = []
        elif name in ("write", "pwrite64"):
            self.pending.setdefault(file, []).append((offset, data))
        elif name == "ftruncate":
            self.pending.setdefault(file, []).append((offset, None))
        elif name in ("openat", "open"):
            self.pending.setdefault(file, [])
        elif name == "unlink":
            self.removed.add(file)
        else:
            raise AssertionError(f"{name} of {file} is not in the model")

    def left(self, folder, dice):
        """The study as a power failure may leave it. dice: None for what is certain, and nothing else."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in sorted(self.named):
            if file in self.removed and dice and dice.random() < 0.5:
                continue
            content = bytearray(self.certain.get(file, b""))
            for place, written in some(self.pending[file], dice):
                put(content, place, written)
            (folder / file).write_bytes(content)


def some(pending, dice):
    """Any part of what was written, in any order, and the last of it torn."""
    if dice is None:
        return
    chosen = [write for write in pending if dice.random() < 0.7]
    dice.shuffle(chosen)
    yield from chosen[1:]
    for place, written in chosen[:1]:
        yield place, written and written[:dice.randrange(0, len(written) + 1, 512)]


def put(content, place, written):
    """Write at a place of a file, or, without anything to write, cut it off there."""
    content.extend(bytes(max(0, place - len(content))))
    content[place:None if written is None else place + len(written)] = written or b""


def text(hexadecimal):
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


def system_calls(trace):
    """(name, path, data, offset) of every call: a write when it begins, a sync when it has ended."""
    begun = {}
    for line in trace:
        if found := CALL.match(line):
            begun[found[1]] = found[3]
            if "sync" not in found[2]:
                yield parsed(found[2], found[3])
        elif found := RESUMED.match(line):
            if "sync" in found[2] and found[4] == "0":
                yield parsed(found[2], begun[found[1]])
        elif (found := LINE.match(line)) and int(found[4]) >= 0:
            yield parsed(found[2], found[3])


def parsed(name, words):
    if name in ("openat", "open"):
        path, created = re.search(r'"([^"]*)"', words)[1], "O_CREAT" in words
        return (name if created else "look"), path_of(path), b"", 0
    path = path_of((re.match(r"\d+<([^>]*)>", words) or re.search(r'"([^"]*)"', words))[1])
    data, last = re.search(r'"([^"]*)"', words), re.search(r", (\d+)$", words)
    offset = int(last[1]) if last and name in ("pwrite64", "ftruncate") else 0
    return name, path, text(data[1]) if data and "write" in name else b"", offset


def path_of(written):
    return text(written).decode() if written.startswith("\\x") else written


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """The system calls of a process that wrote to a study."""
    folder = tmp_path_factory.mktemp("traced")
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    (folder / "writer.py").write_text(WRITER)
    done = subprocess.run(["strace", "-f", "-y", "-xx", "-s", "100000", "-e", f"trace={TRACED}", "-o", folder / "trace",
                           sys.executable, folder / "writer.py", folder], capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    with (folder / "trace").open() as file:
        return [c for c in system_calls(file) if c[0] != "look" and Path(c[1]).name in (
            "study", "study.db", "study.db-wal", "acks", folder.name)]


def found_in(folder):
    """What a study has: its calls and its ended debates, with all their messages."""
    with open_study(folder) as study:
        found = {f"call {bytes.fromhex(row['key']).decode()}" for row in study.calls()}
        for result in study.debates():
            if result.decision is not None:
                assert [m.content for m in result.messages] == [f"message {i}" for i in range(10)]
                found.add(f"debate {result.sample.id}")
        return found


def test_what_was_acknowledged_survives_a_power_failure_at_any_moment(trace, tmp_path):
    """If this fails: something is acknowledged before it is synced, or synced in the wrong order."""
    disk, dice = Disk(), random.Random(1)
    moments = set(dice.sample(range(len(trace)), 60))
    last = 0
    for number, system_call in enumerate(trace):
        disk.happen(*system_call)
        cut = number in moments or (len(disk.acknowledged) > last and len(disk.acknowledged) % 20 == 1)
        last = len(disk.acknowledged)
        if not cut or not disk.acknowledged:
            continue
        for reordered in (None, dice, dice):
            disk.left(tmp_path / "left", reordered)
            assert set(disk.acknowledged) <= found_in(tmp_path / "left"), f"after system call {number}"
            with sqlite3.connect(tmp_path / "left/study.db") as db:
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            db.close()
    assert len(disk.acknowledged) == CALLS + CALLS // 10
    copied = sum(name == "pwrite64" and Path(path).name == "study.db" for name, path, *_ in trace)
    assert copied > 300  # pages, when the write-ahead file was copied into the database on the way


def test_the_studys_own_directory_is_synced_before_anything_is_acknowledged(trace):
    names = [(name, Path(path).name) for name, path, *_ in trace]
    first = names.index(("write", "acks"))
    assert any(name == "fsync" and path.startswith("traced") for name, path in names[:first])


def test_the_model_notices_a_store_that_does_not_sync(trace, tmp_path):
    """If this fails: the test above shows nothing."""
    disk = Disk()
    for name, path, data, offset in trace:
        if not (name == "fdatasync" and Path(path).name == "study.db-wal"):
            disk.happen(name, path, data, offset)
        if len(disk.acknowledged) == 100:
            break
    disk.left(tmp_path / "left", None)
    try:
        found = found_in(tmp_path / "left")
    except Exception:
        found = set()
    assert not set(disk.acknowledged) <= found
