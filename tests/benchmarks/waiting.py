"""What 100,000 debates cost that wait for batches: `python -m tests.benchmarks.waiting`.

One request each, to a provider on this machine with OpenAI's limit of 50,000 requests in a batch. Prints the peak of
the program's memory, its CPU time for each debate, and how often requests were answered.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from madplug_testing.endpoint import running_endpoint

DEBATES = 100_000
STUDY = """
name = "waiting"
dataset = {{use = "puzzles.ordering", size = {size}}}
debate = {{paradigm = "baselines.io"}}
execution = {{use = "batch.rounds", poll = 0.5, requests = {size}}}
models.m = {{use = "openai.chat", model = "m", base_url = "{url}"}}
"""


def main() -> None:
    """Run the study, and print a line."""
    with tempfile.TemporaryDirectory() as folder, running_endpoint() as endpoint:
        (Path(folder) / "study.toml").write_text(STUDY.format(size=DEBATES, url=endpoint.url))
        subprocess.run([sys.executable, "-m", "madplug", "run", "study.toml", "--quiet"], cwd=folder, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        provider = endpoint.endpoint.batches
    print(f"{used.ru_maxrss / 1e6:.2f} GB, {1000 * (used.ru_utime + used.ru_stime) / DEBATES:.2f} ms a debate, "
          f"{len(provider.made)} batches, {len(provider.answered):,} requests, "
          f"answered {dict(Counter(provider.answered.values()))} times")


if __name__ == "__main__":
    main()
