"""The same debates with madplug, with autogen-core and with inspect_ai: CPU per call, in one run. `tox run -e peers`

    python -m tests.benchmarks.peers [DEBATES]

Each has 3 agents that answer twice, the second time with everybody's first answers in view, 100 calls in flight, and
the same prompts, which go to the same endpoint without latency. Each case runs in a process of its own, and what few
debates need is taken off, so that neither imports nor the start count.

What they do besides differs, and is part of the comparison: madplug stores every call on disk before it is used, and
the transcript of every debate, so that a killed run goes on where it was; inspect_ai writes a log with every call and
the usage of models when its evaluation ends (and now and then before); autogen-core keeps everything in memory and
writes nothing, and a restart pays for all calls again.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from tests.benchmarks.throughput import AGENTS, ROUNDS, TEXT, apart

if TYPE_CHECKING:
    from madplug_testing.endpoint import Running

IN_FLIGHT = 100
FEW = 20
Ask = Callable[[str, int, str], Awaitable[str]]
"""Asks an agent of a debate: the debate, the agent, the prompt."""


def prompt(agent: int, question: str, said: Sequence[str]) -> str:
    """What madplug's test kit sends: the agent's name, the question, and what the others said."""
    lines = [f"[{i}] agent {i % AGENTS}: {text}" for i, text in enumerate(said)]
    return "\n".join([f"You are {'ABC'[agent]}.", question, *lines, instruction()])


def instruction() -> str:
    """How the answer is to be written."""
    from madplug import Sample
    from madplug_testing import StrippedText

    return StrippedText().instruction(Sample("q", "?"))


async def debate(name: str, question: str, ask: Ask) -> list[str]:
    """A debate, in which all agents speak at the same time."""
    said: list[str] = []
    for _ in range(ROUNDS):
        said += await asyncio.gather(*(ask(name, i, prompt(i, question, said)) for i in range(AGENTS)))
    return said


def autogen(url: str, debates: int, in_flight: int) -> float:
    """CPU seconds with agents of autogen-core that are sent messages, and its extension's client for endpoints."""
    from autogen_core import AgentId, SingleThreadedAgentRuntime
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    from tests.benchmarks.autogen_agents import Answer, Debater, Question

    async def main() -> float:
        client = OpenAIChatCompletionClient(model="fake", base_url=url, api_key="none", model_info={
            "vision": False, "function_calling": False, "json_output": False, "family": "unknown",
            "structured_output": False})
        runtime = SingleThreadedAgentRuntime()
        for i in range(AGENTS):
            await Debater.register(runtime, f"debater{i}", lambda: Debater(client))
        begin = time.process_time()
        runtime.start()

        async def ask(name: str, agent: int, text: str) -> str:
            answer: Answer = await runtime.send_message(Question(text), AgentId(f"debater{agent}", name))
            return answer.text

        await everything(debates, in_flight, ask)
        await runtime.stop_when_idle()
        return time.process_time() - begin

    return asyncio.run(main())


def bare(url: str, debates: int, in_flight: int) -> float:
    """CPU seconds with nothing but the client of OpenAI's package, which both of the others use."""
    from openai import AsyncOpenAI

    async def main() -> float:
        client = AsyncOpenAI(base_url=url, api_key="none")
        begin = time.process_time()

        async def ask(name: str, agent: int, text: str) -> str:
            reply = await client.chat.completions.create(model="fake", messages=[{"role": "user", "content": text}])
            return reply.choices[0].message.content or ""

        await everything(debates, in_flight, ask)
        return time.process_time() - begin

    return asyncio.run(main())


async def everything(debates: int, in_flight: int, ask: Ask) -> None:
    """All debates, as many at a time as keep that many calls in flight."""
    left = iter(range(debates))

    async def worker() -> None:
        for i in left:
            await debate(f"q{i}", f"Question {i}. {TEXT}", ask)

    await asyncio.gather(*(worker() for _ in range(max(1, in_flight // AGENTS))))


def inspect(url: str, debates: int, in_flight: int) -> float:
    """CPU seconds of an evaluation of inspect_ai, whose solver has the debate."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    os.environ |= {"FAKE_API_KEY": "none", "FAKE_BASE_URL": url}

    @solver
    def debating() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            model = get_model()

            async def ask(name: str, agent: int, text: str) -> str:
                return (await model.generate(text)).completion

            state.output.completion = (await debate(str(state.sample_id), state.input_text, ask))[-1]
            return state

        return solve

    samples = [Sample(f"Question {i}. {TEXT}", id=f"q{i}") for i in range(debates)]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        done = eval(Task(samples, solver=debating()), model="openai-api/fake/fake", max_connections=in_flight,
                    max_samples=max(1, in_flight // AGENTS), display="none", log_dir=folder)
        used = time.process_time() - begin
    assert done[0].status == "success", done[0].error
    return used


CASES = {"autogen-core": autogen, "inspect_ai": inspect, "openai's client alone": bare}


def main(debates: int = 300) -> None:
    """Print CPU per call of each, and over madplug's in the same round; the middle one of three rounds."""
    from madplug_testing.endpoint import running_endpoint

    found: dict[str, list[float]] = {name: [] for name in ("madplug", *CASES)}
    with running_endpoint(process=True) as endpoint:
        for _ in range(3):
            for name, times in found.items():
                few, many = (cpu(name, endpoint, number) for number in (FEW, debates))
                times.append(1000 * (many - few) / ((debates - FEW) * AGENTS * ROUNDS))
    for name, times in found.items():
        ratio = statistics.median(t / m for t, m in zip(times, found["madplug"], strict=True))
        print(f"{name:<24} {statistics.median(times):.3f} ms CPU a call   {ratio:.1f} x", flush=True)


def cpu(name: str, endpoint: Running, debates: int) -> float:
    """CPU seconds of a case, in a process of its own."""
    calls = debates * AGENTS * ROUNDS
    endpoint.reset()
    if name == "madplug":
        used: float = apart("measure", endpoint.url, debates, IN_FLIGHT)["cpu_ms"] * calls / 1000
    else:
        command = [sys.executable, "-m", "tests.benchmarks.peers", name, endpoint.url, str(debates)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        used = json.loads(done.stdout.splitlines()[-1])
    assert endpoint.stats()["ok"] == calls
    return used


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(CASES[sys.argv[1]](sys.argv[2], int(sys.argv[3]), IN_FLIGHT)))
    else:
        main(*map(int, sys.argv[1:]))
