"""A plugin, and a cluster of two nodes on which it is tried."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))  # before the tests are collected: they import from it

from ray_study import add_node, install, persistently

QUIET = {"RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
         "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@pytest.fixture(scope="module", autouse=True)
def rayed(tmp_path_factory):
    """The plugin is installed, here and in child processes, for a file of tests; gives its folder."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in QUIET.items():
            monkeypatch.setenv(name, value)
        folder = install(tmp_path_factory.mktemp("site"))
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield folder


@pytest.fixture(scope="module")
def cluster(rayed):
    """A cluster of two nodes with a CPU each."""
    from ray.cluster_utils import Cluster as Nodes

    nodes = persistently(lambda: Nodes(initialize_head=True, head_node_args={
        "num_cpus": 1, "include_dashboard": False}))
    add_node(nodes)
    yield nodes
    nodes.shutdown()
