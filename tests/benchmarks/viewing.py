"""What `madplug view` costs: on 100,000 debates in 12 cells, in CPU and memory of the server, and for a run that is
followed, in CPU of the run.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.benchmarks.findings import CELLS, REPEATS, SAMPLES, drawn
from tests.benchmarks.throughput import AGENTS, ROUNDS, plain_plan

Row = tuple[str, str, str]
PLAIN = ("SELECT cell, count(*), sum(calls), sum(prompt), sum(completion), sum(cost_usd), sum(seconds), avg("
         "json_extract(metrics, '$.\"qa.accuracy\"')) FROM debates GROUP BY cell")
QUESTIONS = {
    "50 rows of a cell": (f"/api/studies/0/page?cell={quote('cell 3')}", "0.3"),
    "50 rows, by tokens": (f"/api/studies/0/page?cell={quote('cell 3')}&order=tokens&descending=1", "0.3"),
    "a part of a search without a hit": (f"/api/studies/0/page?cell={quote('cell 3')}&text=nowhere", "1"),
    "a debate": (f"/api/studies/0/debate?cell={quote('cell 3')}&repeat=1&sample=q01234", "0.1"),
    "two cells compared": (f"/api/studies/0/contrast?first={quote('cell 3')}&second={quote('cell 4')}", "0.5")}
FOLLOWED = 1000
"""Debates of a run that is followed."""


@dataclass
class Server:
    """A server of its own, and what it has used."""

    process: subprocess.Popen[str]
    port: int
    token: str

    def get(self, path: str) -> Any:
        """What it answers, as soon as it accepts connections."""
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            try:
                connection.request("GET", path, headers=self.headers)
                return json.loads(connection.getresponse().read())
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise
                time.sleep(0.01)
            finally:
                connection.close()

    @property
    def headers(self) -> dict[str, str]:
        """What lets a request in."""
        return {"Cookie": f"madplug-view-{self.port}={self.token}"}

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak(self) -> int:
        """Memory at its most, in MB."""
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) // 1024


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """The server of a study."""
    process = subprocess.Popen([sys.executable, "-m", "madplug", "view", str(folder), "--no-browser"],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://([^/]+):(\d+)/\?token=(\S+)", process.stdout.readline())
        assert found is not None
        yield Server(process, int(found[2]), found[3])
    finally:
        process.terminate()
        process.wait()


def measure(times: int = 10) -> Iterator[Row]:
    """The figures of a large study."""
    draw = drawn()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        cells = [draw.Drawn(f"cell {i}", skill=0.4 + i / 40, agents=3 + i % 3) for i in range(CELLS)]
        debates = (draw.debate(c, s, r) for c in cells for r in range(REPEATS) for s in range(SAMPLES))
        draw.write(folder, debates, cells, repeats=REPEATS)
        plain = min(plain_sql(folder) for _ in range(3))
        with serving(folder) as server:
            before = server.cpu
            server.get("/api/studies/0")
            yield (f"madplug view, {CELLS * SAMPLES * REPEATS:,} debates: first page, cold",
                   f"{server.cpu - before:.2f} s CPU of the server", "1 s")
            time.sleep(2)  # it prepares what a page will ask for next
            for question, (path, reach) in QUESTIONS.items():
                before = server.cpu
                for _ in range(times):
                    server.get(path)
                used = (server.cpu - before) / times
                cost = f"{used / plain:.2f} x, {1000 * used:.0f} ms CPU"
                yield f"{question}, over a plain SQL sum", cost, f"{reach} x"
            yield "memory of the server", f"{server.peak} MB", "150 MB"


def plain_sql(folder: Path) -> float:
    """CPU seconds of adding up a study with SQL."""
    db = sqlite3.connect(folder / "study.db")
    before = time.process_time()
    db.execute(PLAIN).fetchall()
    used = time.process_time() - before
    db.close()
    return used


def following(url: str, rounds: int = 3) -> Iterator[Row]:
    """CPU of a run that pages follow, over that of one which nothing follows, taking turns."""
    ratios = sorted(followed(url, True) / followed(url, False) for _ in range(rounds))
    yield "CPU of a run that a page follows, over one without", f"{ratios[rounds // 2]:.3f} x", "1.02 x"


def followed(url: str, follow: bool) -> float:
    """CPU seconds of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        run = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.viewing", url, str(folder)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        if follow:
            with serving(folder) as server:
                server.get("/api/studies/0")
                reader = threading.Thread(target=read_events, args=(server,))
                reader.start()
                found = finished(run)
            reader.join()
            return found
        return finished(run)


def finished(run: subprocess.Popen[str]) -> float:
    """Let a run begin; what it used."""
    said, _ = run.communicate("begin\n")
    return float(said)


def read_events(server: Server) -> None:
    """Do what a page does: ask for the study when something has changed, with rests between."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    with suppress(OSError, http.client.HTTPException):  # the server has ended
        connection.request("GET", "/api/studies/0/events", headers=server.headers)
        stream = connection.getresponse()
        while line := stream.readline():
            if line.startswith(b"event: change"):
                server.get("/api/studies/0")
                time.sleep(1)


def run(url: str, folder: Path) -> None:
    """A run, in this process, when told to begin."""
    from madplug.store import open_recorder
    from madplug.study import collect_rarely
    from madplug.study.run import StudyRun

    plan = plain_plan(url, FOLLOWED, 100, AGENTS, ROUNDS)
    store = open_recorder(folder)
    print("ready", flush=True)
    sys.stdin.readline()
    collect_rarely()
    before = time.process_time()
    summary = asyncio.run(StudyRun(plan, store).run())
    store.close()
    assert summary["paid"]["calls"] == FOLLOWED * AGENTS * ROUNDS
    print(time.process_time() - before)


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))
