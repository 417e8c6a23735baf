"""An executor that runs debates on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Executor, Options, StudyError, hookimpl

if TYPE_CHECKING:
    from madplug import Jobs, RunDriver


class ClusterOptions(Options):
    """Options of `ray.cluster`."""

    address: str = Field(
        default="auto", description="the cluster's address; `auto`: the one that this machine is part of; `local`: one "
        "that is started here and ends with the run")
    workers: int | None = Field(
        default=None, ge=1, le=10_000, description="actors that run debates; by default as many as there is room for")
    silence: float = Field(default=120, gt=0, description="seconds without a sign of life after which a worker is "
                           "ended and its debates are run again")
    cpus_per_worker: float = Field(default=1, ge=0, description="CPUs that Ray reserves for each worker")
    resources: dict[str, float] = Field(
        default_factory=dict, description="what else Ray reserves for each worker, such as {GPU = 1}")


class Cluster(Executor):
    """Runs debates on the actors of a Ray cluster.

    Each actor makes the study's components and opens its own models and services, where Ray places it: an embedded
    model on a GPU of its own, say. Slots, rates and limits are granted by the process that was started, which is the
    only one that writes; results are the same as in one process. The debates of an actor that is lost, with its node
    or by itself, are run again by another one, up to three times; calls that were answered before are not paid again.
    Keys are read from the environment of the cluster's nodes; none is sent there. Needs `madplug-ray[ray]`.
    """

    name = "cluster"

    Options = ClusterOptions

    def check(self, cell: Any) -> Iterable[str]:
        """Ray must be installed."""
        if find_spec("ray") is None:
            yield MISSING

    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run every job on one of the actors."""
        if find_spec("ray") is None:
            raise StudyError(MISSING)
        from madplug_ray.actors import Actors, connected
        from madplug_workers import Pool

        async with connected(self.options.address):
            actors = Actors(self.options.cpus_per_worker, self.options.resources)
            workers = self.options.workers or actors.most()
            if workers > actors.most():
                driver.warn(f"ray.cluster: there is room for {actors.most()} of {workers} workers; the others start "
                            "when there is more")
            await Pool(driver, workers, actors.start, silence=self.options.silence).run(jobs)


MISSING = "ray.cluster needs Ray: pip install 'madplug-ray[ray]'"


@hookimpl
def madplug_register_executors() -> list[type[Executor]]:
    """Register the executor."""
    return [Cluster]
