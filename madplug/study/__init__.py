"""Running a study: what executors, workers, and commands over recorded debates build on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug._lazy import lazy_names

if TYPE_CHECKING:
    from madplug.calls.driver import Driver, Source, StudyDriver
    from madplug.debate.checks import error_text
    from madplug.records import Ending, Job
    from madplug.study.directory import read_manifest
    from madplug.study.jobs import JobStream
    from madplug.study.log import redirect_log
    from madplug.study.trust import confirm
    from madplug.study.worker import Worker

__all__ = [
    "Driver", "Ending", "Job", "JobStream", "Source", "StudyDriver", "Worker", "confirm", "error_text",
    "read_manifest", "redirect_log",
]

_HOMES = {
    "calls.driver": ("Driver", "Ending", "Source", "StudyDriver"),
    "debate.checks": ("error_text",),
    "study.directory": ("read_manifest",),
    "study.jobs": ("Job", "JobStream"),
    "study.log": ("redirect_log",),
    "study.trust": ("confirm",),
    "study.worker": ("Worker",),
}
"""What is imported when it is first used: an executor that is only listed need not import what runs a study."""

if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
