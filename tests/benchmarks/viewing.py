"""What `madplug view` costs on 100,000 debates in 12 cells: ratios to plain SQL in the same run, rows, memory."""

from __future__ import annotations

import http.client
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from madplug_view.studies import Study
from tests.benchmarks.findings import CELLS, REPEATS, SAMPLES, drawn

PLAIN = ("SELECT cell, count(*), sum(calls), sum(prompt), sum(completion), sum(cost_usd), sum(seconds), avg("
         "json_extract(metrics, '$.\"qa.accuracy\"')) FROM debates GROUP BY cell")
QUESTIONS = {
    "study": "/api/studies/0",
    "first rows of a cell": f"/api/studies/0/page?cell={quote('cell 3')}",
    "rows by tokens": f"/api/studies/0/page?cell={quote('cell 3')}&order=tokens&descending=1",
    "rows: right turned wrong": f"/api/studies/0/page?cell={quote('cell 3')}&traits=right_to_wrong",
    "a part of a search without a hit": f"/api/studies/0/page?cell={quote('cell 3')}&text=nowhere",
    "a debate": f"/api/studies/0/debate?cell={quote('cell 3')}&repeat=1&sample=q01234",
    "two cells compared": f"/api/studies/0/contrast?first={quote('cell 3')}&second={quote('cell 4')}"}


def best(ask: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the quickest of a few tries."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    """Draw the study, serve it, and print what was measured."""
    draw = drawn()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        cells = [draw.Drawn(f"cell {i}", skill=0.4 + i / 40, agents=3 + i % 3) for i in range(CELLS)]
        debates = (draw.debate(c, s, r) for c in cells for r in range(REPEATS) for s in range(SAMPLES))
        draw.write(folder, debates, cells, repeats=REPEATS)
        db = sqlite3.connect(folder / "study.db")
        plain = best(lambda: db.execute(PLAIN).fetchall())
        print(f"{CELLS * SAMPLES * REPEATS} debates; plain SQL over them: {plain:.3f} s")
        first = best(lambda: Study(folder, "study").overview())
        print(f"the sums of all cells, when they are first asked for: {first / plain:.2f} times plain SQL")
        server = subprocess.Popen([sys.executable, "-m", "madplug", "view", str(folder), "--no-browser"],
                                  stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        found = re.search(r"http://([^/]+):(\d+)/\?token=(\S+)", server.stdout.readline())
        assert found is not None
        port, token = int(found[2]), found[3]

        def get(path: str) -> Any:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("GET", path, headers={"Cookie": f"madplug-view-{port}={token}"})
            answer = json.loads(connection.getresponse().read())
            connection.close()
            return answer

        time.sleep(3)
        for question, path in QUESTIONS.items():
            seconds = best(lambda path=path: get(path))  # type: ignore[misc]
            scanned = get(path).get("scanned", "") if "page" in path else ""
            print(f"{question}: {seconds:.3f} s, {seconds / plain:.2f} times plain SQL {scanned}")
        status = Path(f"/proc/{server.pid}/status").read_text()
        print("peak memory:", re.search(r"VmHWM:\s*(.*)", status)[1])  # type: ignore[index]
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
