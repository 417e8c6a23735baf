"""Studies against a failing endpoint for a long time, killed, interrupted and resumed: `python -m tests.faults.soak`.

Round after round the same study runs as a process against an endpoint that mixes faults. It is killed or interrupted
at a random moment, or stopped by a limit, and resumed until it has finished; the endpoint itself is killed now and
then. Each round has to end with the results of a run without faults, and to pay for no recorded call again. In the
same time one long-lived process runs study after study; its memory, open files, threads and tasks have to stay flat.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.faults import studies

ROOT = Path(__file__).resolve().parents[2]
RATES = {"429": 0.05, "500": 0.03, "503": 0.03, "reset": 0.03, "closed_in_body": 0.02, "malformed": 0.02,
         "bad_gzip": 0.01, "slow_body": 0.005, "hang": 0.005, "gzip": 0.1, "drip": 0.02, "another_reply": 0.02,
         "empty": 0.01, "huge_usage": 0.01, "closed_after": 0.05, "no_usage": 0.02}
IN_FLIGHT = 30
SETTINGS = ("dataset.size=60", "models.m.timeout=2", "models.m.attempts=40", f"models.m.max_in_flight={IN_FLIGHT}")


class Soak:
    """Rounds of kills and resumes, and what came of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        rates = [word for kind, rate in RATES.items() for word in ("--rate", f"{kind}={rate}")]
        self.endpoint = studies.EndpointProcess(
            folder, "--by", "body", "--latency-ms", 40, "--text", "{letter}", *rates)
        self.counts: Counter[str] = Counter()
        self.expected: object = None

    def reference(self) -> None:
        """The results of the study without faults."""
        from madplug_testing.endpoint import running_endpoint

        whole = self.folder / "whole"
        with running_endpoint(text="{letter}") as endpoint:
            studies.run(whole, endpoint.url, *SETTINGS)
        self.expected = studies.debates(whole)

    def round(self) -> None:
        """One study, stopped again and again until it finishes."""
        self.counts["rounds"] += 1
        out = self.folder / f"round{self.counts['rounds']}"
        answered, cut = len(self.endpoint.answered()), self._cuts()
        while self._run(out, self.random.choice(["kill", "interrupt", "terminate", "limit", "endpoint", "nothing"])):
            recorded = len(studies.calls(out)) if (out / "study.db").exists() else 0
            self.counts["calls recorded when stopped"] += recorded
        if studies.debates(out) != self.expected:
            raise AssertionError(f"{out}: the results are not those of a run without faults")
        self._check_paid_once(self.endpoint.answered()[answered:], self._cuts() - cut)
        calls = studies.calls(out)
        self.counts["calls"] += len(calls)
        self.counts["failed attempts"] += sum(int(call["retries"]) for call in calls)
        for path in out.iterdir():
            if b"Traceback" in path.read_bytes():
                raise AssertionError(f"{path}: a traceback")

    def _cuts(self) -> int:
        """How often replies may have been lost on their way."""
        return self.counts["kill"] + self.counts["interrupt"] + self.counts["terminate"] + self.counts["endpoint"]

    def _check_paid_once(self, answered: list[str], cuts: int) -> None:
        """What was answered twice was on its way when a process ended: never more than was in flight."""
        twice = len(answered) - len(set(answered))
        self.counts["answered twice"] += twice
        if twice > cuts * IN_FLIGHT:
            raise AssertionError(f"{twice} requests were paid twice although only {cuts} processes ended")

    def _run(self, out: Path, end: str) -> bool:
        """One run of the program; whether it has to be resumed."""
        self.counts[end] += 1
        limits = (f"limits.calls={self.random.randrange(20, 200)}",) if end == "limit" else ()
        process = self._start(out, limits)
        if end in ("kill", "interrupt", "terminate"):
            number = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}[end]
            time.sleep(self.random.uniform(0.6, 3))
            process.send_signal(number)
        elif end == "endpoint":
            time.sleep(self.random.uniform(0.6, 2))
            self.endpoint.kill()
            time.sleep(self.random.uniform(0.1, 2))
            self.endpoint.start()
        output, errors = process.communicate(timeout=300)
        if process.returncode not in (0, 3, 130, -signal.SIGKILL, -signal.SIGINT, -signal.SIGTERM):
            raise AssertionError(f"{out}: exit {process.returncode} after '{end}': {output}{errors}")
        if "Traceback" in errors and end == "nothing":
            raise AssertionError(f"{out}: a traceback: {errors}")
        return process.returncode != 0

    def _start(self, out: Path, limits: tuple[str, ...]) -> subprocess.Popen[str]:
        file = out.with_suffix(".toml")
        file.write_text(studies.RUN, encoding="utf-8")
        settings = (*SETTINGS, *limits, f'models.m.base_url="{self.endpoint.url}"')
        words = [word for setting in settings for word in ("--set", setting)]
        return subprocess.Popen([sys.executable, "-m", "madplug", "run", str(file), *words, "--output", str(out)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Resident:
    """One process that runs study after study: what it uses must not grow."""

    def __init__(self, soak: Soak) -> None:
        self.soak = soak
        self.samples: list[dict[str, float]] = []

    def study(self, number: int) -> None:
        """One study, and a sample of what the process uses after it."""
        out = self.soak.folder / f"resident{number}"
        studies.run(out, self.soak.endpoint.url, *SETTINGS)
        if studies.debates(out) != self.soak.expected:
            raise AssertionError(f"{out}: the results are not those of a run without faults")
        gc.unfreeze()
        gc.collect()
        self.samples.append({"memory MB": _resident_mb(), "files": len(os.listdir("/proc/self/fd")),
                             "threads": threading.active_count(), "objects": len(gc.get_objects())})

    def growth(self) -> dict[str, tuple[float, float]]:
        """The median of the second quarter of the samples and of the last one, by what was sampled."""
        quarter = max(1, len(self.samples) // 4)
        early, late = self.samples[quarter:2 * quarter] or self.samples[:1], self.samples[-quarter:]
        return {name: (statistics.median(s[name] for s in early), statistics.median(s[name] for s in late))
                for name in self.samples[0]}

    def check_flat(self) -> None:
        """Raise where something grew."""
        for name, (early, late) in self.growth().items():
            room = {"memory MB": 1.1 * early + 5, "objects": 1.05 * early + 2000}.get(name, early)
            if late > room:
                raise AssertionError(f"{name} grew from {early:g} to {late:g}")


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Run for a while and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "kit"))
    os.environ["PYTHONPATH"] = str(ROOT / "tests" / "kit")
    end = time.monotonic() + given.minutes * 60
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        soak = Soak(Path(folder), given.seed)
        soak.reference()
        soak.endpoint.start()
        resident, number = Resident(soak), 0
        try:
            while time.monotonic() < end:
                soak.round()
                for _ in range(3):
                    resident.study(number := number + 1)
        finally:
            soak.endpoint.kill()
    print(json.dumps({**soak.counts, "studies in one process": number, "growth": resident.growth()}, indent=2))
    resident.check_flat()


if __name__ == "__main__":
    main()
