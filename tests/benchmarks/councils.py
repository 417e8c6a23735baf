"""What a council adds to its slowest members' time: `python -m tests.benchmarks.councils`.

Three seats that take 200 ms each, in three stages (opinions, reviews, chair), asked through the server of assistants.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import tempfile
import time
from pathlib import Path

from mcp import Client

from madplug_mcp.server import Settings, server_of
from madplug_testing.endpoint import running_endpoint

SECONDS, STAGES, QUESTIONS = 0.2, 3, 20


async def measure(url: str) -> list[float]:
    """The seconds of each question beyond those of its slowest members."""
    beyond = []
    with tempfile.TemporaryDirectory() as folder:
        settings = tuple(f"models.{seat}.base_url={url}" for seat in "abc")
        async with Client(server_of(Settings(Path(folder), settings=settings))) as client:
            for number in range(QUESTIONS + 1):
                start = time.monotonic()
                found = await client.call_tool("ask", {
                    "question": f"Number {number}?", "seats": {seat: f"openai:{seat}" for seat in "abc"}})
                assert (found.structured_content or {}).get("calls") == 7, found
                beyond.append(time.monotonic() - start - STAGES * SECONDS)
    return beyond[1:]  # the first one imports what all need


def reply(body: dict) -> str:
    """An answer, or a ranking."""
    labels = re.findall(r"^Answer (\w):$", body["messages"][-1]["content"], re.MULTILINE)
    return "FINAL RANKING:\n" + "\n".join(f"{i}. Answer {label}" for i, label in enumerate(labels, 1))


def main() -> None:
    """Print the median and the range."""
    with running_endpoint(reply, latency_ms=1000 * SECONDS) as endpoint:
        found = sorted(1000 * seconds for seconds in asyncio.run(measure(endpoint.url)))
    print(f"beyond the slowest members, {QUESTIONS} questions: p50 {statistics.median(found):.0f} ms, "
          f"{found[0]:.0f} to {found[-1]:.0f} ms")


if __name__ == "__main__":
    main()
