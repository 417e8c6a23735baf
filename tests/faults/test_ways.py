"""The same study in one process, on two workers, in four shards, and on a Ray cluster: equal but for times."""

import gc
import json
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from madplug.cli.program import main
from madplug_testing.endpoint import running_endpoint
from tests.faults import studies

ray_is_missing = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install ray")
SETTINGS = ("dataset.size=30", "repeats=2", 'sweep={"debate.rounds"=[1, 2]}')


def lines(folder):
    """The study as it is exported, but for times."""
    with studies.open_study(folder) as study:
        return [json.dumps({**json.loads(line), "seconds": None}) for line in study.records()]


def run(folder, url, *words):
    """The study, or a part of it."""
    folder.with_suffix(".toml").write_text(studies.RUN)
    settings = [word for setting in (f'models.m.base_url="{url}"', *SETTINGS) for word in ("--set", setting)]
    done = CliRunner().invoke(main, ["run", str(folder.with_suffix(".toml")), *settings, "--quiet", "--output",
                                     str(folder), *words])
    assert done.exit_code == 0, done.stderr


def in_shards(folder, url):
    shards = [folder.with_name(f"{folder.name}{i}") for i in range(1, 5)]
    for i, shard in enumerate(shards, 1):
        run(shard, url, "--shard", f"{i}/4")
    done = CliRunner().invoke(main, ["merge", *map(str, shards), "--output", str(folder), "--quiet"])
    assert done.exit_code == 0, done.stderr


def on(execution):
    return lambda folder, url: run(folder, url, "--set", f"execution={execution}")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "study"
    return outcome(run, folder)


def outcome(way, folder):
    """The debates, the summary and the calls on record, and how many the endpoint has answered."""
    with running_endpoint(text="{letter}", latency_ms=5) as endpoint:
        way(folder, endpoint.url)
        answered = endpoint.stats()["ok"]
    return lines(folder), studies.summary(folder), sorted(call["key"] for call in studies.calls(folder)), answered


@pytest.mark.parametrize("way", [
    on('{use="processes.pool", workers=2}'), in_shards,
    pytest.param(on('{use="ray.cluster", address="local", workers=2}'), marks=[
        ray_is_missing, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning",
                                                   "ignore::pytest.PytestUnraisableExceptionWarning")])],
    ids=["two processes", "four shards", "a Ray cluster"])
def test_the_study_is_equal_and_pays_for_the_same_calls(way, alone, tmp_path, monkeypatch):
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_UV_RUN_RUNTIME_ENV"):
        monkeypatch.setenv(name, "0")
    found = outcome(way, tmp_path / "study")
    gc.collect()  # processes that Ray leaves to the end of this one are warned about here, where that is ignored
    assert found == alone
