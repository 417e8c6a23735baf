"""Debates on a local Ray cluster end as they do in one process, also when actors, nodes and the driver are killed.

    KILLS=20 pytest plugins/madplug-ray        kills an actor at 20 moments, and the driver
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from madplug import StudyError
from madplug.store import open_study
from madplug_ray import Cluster
from madplug_testing.contracts import ExecutorContract

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'madplug-ray[ray]'")
from ray_study import Run, add_node, exported, install, is_alive  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "ResourceWarning", "FutureWarning", "pytest.PytestUnraisableExceptionWarning")]  # Ray's own
KILLS = int(os.environ.get("KILLS", "2"))
IN_FLIGHT = 8


class TestCluster(ExecutorContract):
    component = Cluster
    options = {"workers": 2, "address": "local"}


@pytest.fixture
def on(cluster):
    """Makes the executor, on the cluster of two nodes."""
    return lambda **options: Cluster(address=cluster.address, **{"workers": 2, **options})


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The results of the study in one process."""
    return asyncio.run(Run(tmp_path_factory.mktemp("one") / "study").go(None))


def check_calls(run, different, killed):
    """Every call was paid for, and a second time at most those in flight on a process that was killed."""
    calls = [call for _, call in run.calls]
    assert len(set(calls)) == different
    assert len(calls) - different <= IN_FLIGHT * killed


def test_each_actor_opens_its_own_models_and_its_log_lines_reach_the_study(on, expected, tmp_path):
    run = Run(tmp_path / "study")

    async def look(run):
        await run.paid(200)

    assert asyncio.run(run.go(on(), look)) == expected
    check_calls(run, 240, killed=0)
    loaded = [process for process, note in run.notes if note == "loaded 0"]
    assert len(loaded) == 2
    assert {process for process, _ in run.calls} <= set(loaded)
    log = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    opened = [line["event"] for line in log if line.get("logger") == "rayed"]
    assert len(opened) == 40
    assert {line.rpartition(" ")[2] for line in opened} <= set(loaded)


def test_actors_killed_at_any_moment_lose_nothing_and_pay_twice_for_calls_in_flight_at_most(on, tmp_path):
    size, apart = 20 * KILLS, 100
    expected = asyncio.run(Run(tmp_path / "one", size).go(None))

    async def kill(run):
        for number in range(KILLS):
            await run.paid(10 + apart * number + 7 * number % 11)
            alive = [process for process, _ in run.calls if is_alive(process)]
            os.kill(int(alive[-1]), signal.SIGKILL)

    run = Run(tmp_path / "study", size)
    assert asyncio.run(run.go(on(), kill)) == expected
    check_calls(run, 6 * size, KILLS)
    print(f"{KILLS} actors killed: {len(run.calls) - 6 * size} calls paid again")
    assert sum("was lost" in warning for warning in run.warnings) == KILLS


def test_a_killed_node_takes_its_actor_along_and_nothing_else(cluster, on, expected, tmp_path):
    node = add_node(cluster, resources={"place": 1})

    async def kill(run):
        await run.paid(60)
        await asyncio.to_thread(cluster.remove_node, node, allow_graceful=False)

    run = Run(tmp_path / "study")
    assert asyncio.run(run.go(on(workers=3), kill)) == expected
    check_calls(run, 240, killed=1)


def test_actors_end_with_a_driver_that_is_killed_and_the_study_is_resumed(cluster, tmp_path, expected):
    run = Run(tmp_path / "study")
    file = (run.folder / "study.toml").rename(tmp_path / "study.toml")
    place = f'execution={{use="ray.cluster", address="{cluster.address}", workers=2}}'
    command = [sys.executable, "-m", "madplug", "run", file, "--set", place, "--output", run.folder, "--quiet"]
    for moment in (10 + 200 * number // KILLS for number in range(KILLS)):
        driver = subprocess.Popen(command)
        try:
            asyncio.run(asyncio.wait_for(run.paid(moment), 300))
        finally:
            driver.kill()
            driver.wait()
        actors, killed = {process for process, _ in run.notes}, time.monotonic()
        while any(map(is_alive, actors)):
            assert time.monotonic() - killed < 120
            time.sleep(0.05)
        print(f"actors ended {time.monotonic() - killed:.1f} s after their driver")
    subprocess.run(command, check=True)
    check_calls(run, 240, KILLS)
    with open_study(run.folder) as study:
        assert exported(study) == expected


def test_an_actor_is_placed_where_the_resources_are_and_refused_if_versions_differ_there(cluster, on, tmp_path):
    site = install(tmp_path / "site", version="2.0")
    node = add_node(cluster, resources={"other": 1}, env_vars={"PYTHONPATH": str(site)})
    try:
        with pytest.raises(StudyError, match=r"worker 1: madplug-rayed 2\.0 is installed here, and the study runs "
                                             r"with madplug-rayed 1\.0"):
            asyncio.run(Run(tmp_path / "study").go(on(workers=1, resources={"other": 1})))
    finally:
        cluster.remove_node(node, allow_graceful=False)


def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path):
    with pytest.raises(StudyError, match=r"ray\.cluster: no cluster at address '127\.0\.0\.1:9': .*ray start --head"):
        asyncio.run(Run(tmp_path / "study").go(Cluster(address="127.0.0.1:9")))
