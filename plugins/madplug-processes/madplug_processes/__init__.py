"""An executor that runs debates in several processes of one machine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Executor, Options, StudyError, hookimpl

if TYPE_CHECKING:
    from madplug import Jobs, RunDriver


class ProcessPoolOptions(Options):
    """Options of `processes.pool`."""

    workers: int | None = Field(default=None, ge=1, le=1024, description="processes that run debates; by default one "
                                "for each core that this process may use")
    silence: float = Field(default=120, gt=0, description="seconds without a sign of life after which a worker is "
                           "ended and its debates are run again")


class ProcessPool(Executor):
    """Runs debates in several processes of this machine.

    Each worker makes the study's components and opens its own models and services. Slots, rates and limits are granted
    by the process that was started, which is the only one that writes; results are the same as in one process. The
    debates of a worker that is lost are run again by another one, up to three times; calls that were answered before
    are not paid again. Workers end with the process that started them. Needs Linux, macOS or another POSIX system.
    """

    name = "pool"

    Options = ProcessPoolOptions

    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run every job in one of the workers."""
        from madplug_processes.spawn import start_worker
        from madplug_workers import Pool

        if sys.platform == "win32":
            raise StudyError("processes.pool does not run on Windows; leave out [execution], or use a POSIX system")
        await Pool(driver, self.options.workers or cores(), start_worker, silence=self.options.silence).run(jobs)


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


@hookimpl
def madplug_register_executors() -> list[type[Executor]]:
    """Register the executor."""
    return [ProcessPool]
