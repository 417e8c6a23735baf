"""Debates on a local Ray cluster end as they do in one process, also when actors and nodes are killed."""

import asyncio
import json
import os
import signal
from dataclasses import replace

import pytest

from madplug import StudyError
from madplug.testing.contracts import ExecutorContract
from madplug_ray import Cluster

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'madplug-ray[cluster]'")
pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "ResourceWarning", "FutureWarning", "pytest.PytestUnraisableExceptionWarning")]  # Ray's own


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    for name, value in {"RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
                        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}.items():
        monkeypatch.setenv(name, value)


class TestCluster(ExecutorContract):
    component = Cluster
    options = {"workers": 2, "address": "local"}


STUDY = """
name = "study"
[dataset]
use = "rayed.numbered"
[models.m]
use = "rayed.slow"
ledger = "{ledger}"
max_in_flight = 8
[debate]
agents = 3
rounds = 2
turns = "rayed.speak_all"
visibility = "rayed.see_all"
styles = ["rayed.plain"]
decision = "rayed.last_round"
"""
PLUGIN = '''
import asyncio, os
from hashlib import sha256
from typing import Annotated
from pathlib import Path
from pydantic import Field
from madplug import Completion, Dataset, Model, ModelOptions, Sample, Usage, Volatile, hookimpl
from madplug.testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

class SlowOptions(ModelOptions):
    ledger: Annotated[str, Volatile] = Field(description="a line for each call")

class Slow(Model):
    """Answers with a letter after a while."""
    name = "slow"
    Options = SlowOptions
    async def complete(self, request):
        await asyncio.sleep(0.05)
        digest = sha256(repr(request.messages).encode()).hexdigest()
        with open(self.options.ledger, "a") as file:
            file.write(f"{os.getpid()} {digest} {request.seed}\\n")
        return Completion("ABC"[int(digest[:2], 16) % 3], Usage(1, 1))

class Numbered(Dataset):
    """Forty questions."""
    name = "numbered"
    answers = "rayed.stripped_text"
    def samples(self, split=None):
        for i in range(40):
            yield Sample(f"q{i}", f"question {i}"), ("A",)

class Style(PlainStyle):
    """The plainest style."""
    moves = frozenset({"improve"})

@hookimpl
def madplug_register_models(): return [Slow]
@hookimpl
def madplug_register_datasets(): return [Numbered]
@hookimpl
def madplug_register_answers(): return [StrippedText]
@hookimpl
def madplug_register_styles(): return [Style]
@hookimpl
def madplug_register_turn_orders(): return [SpeakAll]
@hookimpl
def madplug_register_visibilities(): return [SeeAll]
@hookimpl
def madplug_register_decisions(): return [LastRound]
'''


class Run:
    """The study in a folder, run by an executor, with its ledger and its results."""

    def __init__(self, folder):
        self.folder, self.ledger, self.warnings = folder, folder / "ledger.txt", []
        folder.mkdir()
        (folder / "study.toml").write_text(STUDY.format(ledger=self.ledger))

    async def go(self, executor, disturb=None):
        from madplug.config import load
        from madplug.store import open_recorder
        from madplug.study import StudyRun

        recorder = open_recorder(self.folder)
        try:
            plan = replace(load(self.folder / "study.toml", environ={}).plan, executor=executor)
            disturbing = asyncio.ensure_future(disturb(self) if disturb else asyncio.sleep(0))
            await asyncio.wait_for(StudyRun(plan, recorder, warn=self.warnings.append).run(), 100)
            await disturbing
            return [{**json.loads(line), "seconds": None} for line in recorder.records()]
        finally:
            recorder.close()

    @property
    def calls(self):
        """(process, call) of every call that was paid for."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [tuple(line.split(" ", 1)) for line in lines]

    async def paid(self, number):
        """Wait until so many calls were paid for."""
        while len(self.calls) < number:  # noqa: ASYNC110 - by other processes
            await asyncio.sleep(0.02)


@pytest.fixture
def cluster(madplug_plugin):
    """A cluster of two nodes with a CPU each, started once the plugin is installed."""
    from ray.cluster_utils import Cluster as Nodes

    madplug_plugin("rayed", PLUGIN)
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.second = nodes.add_node(num_cpus=1)
    yield nodes
    nodes.shutdown()


def test_killed_actors_and_nodes_lose_nothing_and_pay_twice_for_calls_in_flight_at_most(cluster, tmp_path):
    expected = asyncio.run(Run(tmp_path / "one").go(None))

    async def kill_an_actor_and_a_node(run):
        await run.paid(30)
        os.kill(int(run.calls[-1][0]), signal.SIGKILL)
        await run.paid(80)
        await asyncio.to_thread(cluster.remove_node, cluster.second, allow_graceful=False)

    run = Run(tmp_path / "ray")
    found = asyncio.run(run.go(Cluster(address=cluster.address, workers=2), kill_an_actor_and_a_node))
    assert found == expected
    calls = [call for _, call in run.calls]
    assert len(set(calls)) == 240
    assert len(calls) - 240 <= 2 * 8
    assert len({process for process, _ in run.calls}) >= 2
    assert any("was lost" in warning for warning in run.warnings)


def test_a_cluster_that_is_not_there_is_named(tmp_path, madplug_plugin):
    madplug_plugin("rayed", PLUGIN)
    with pytest.raises(StudyError, match=r"ray\.cluster: no cluster at address 'auto': .*ray start --head"):
        asyncio.run(Run(tmp_path / "study").go(Cluster()))
