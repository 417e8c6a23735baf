"""Running a study: what executors, workers, and commands over recorded debates build on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug._lazy import lazy_names

if TYPE_CHECKING:
    from madplug.calls.driver import Driver, Source, StudyDriver
    from madplug.config import load
    from madplug.config.read import read
    from madplug.debate.checks import error_text
    from madplug.records import Ending, Job
    from madplug.study.compatibility import conflicts
    from madplug.study.directory import PART, check_folder, read_manifest
    from madplug.study.files import read_text, write_whole
    from madplug.study.jobs import JobStream
    from madplug.study.log import redirect_log
    from madplug.study.process import (
        FINISHED,
        INTERRUPTED,
        LIMIT,
        SOME_FAILED,
        STOPPING,
        collect_rarely,
        echo,
        interruptible,
    )
    from madplug.study.run import StudyRun
    from madplug.study.session import Session
    from madplug.study.summary import figures_by_cell
    from madplug.study.trust import confirm
    from madplug.study.worker import Worker

__all__ = [
    "FINISHED",
    "INTERRUPTED",
    "LIMIT",
    "PART",
    "SOME_FAILED",
    "STOPPING",
    "Driver",
    "Ending",
    "Job",
    "JobStream",
    "Session",
    "Source",
    "StudyDriver",
    "StudyRun",
    "Worker",
    "check_folder",
    "collect_rarely",
    "confirm",
    "conflicts",
    "echo",
    "error_text",
    "figures_by_cell",
    "interruptible",
    "load",
    "read",
    "read_manifest",
    "read_text",
    "redirect_log",
    "write_whole",
]

_HOMES = {
    "calls.driver": ("Driver", "Ending", "Source", "StudyDriver"),
    "config": ("load",),
    "config.read": ("read",),
    "debate.checks": ("error_text",),
    "study.compatibility": ("conflicts",),
    "study.directory": ("PART", "check_folder", "read_manifest"),
    "study.files": ("read_text", "write_whole"),
    "study.jobs": ("Job", "JobStream"),
    "study.log": ("redirect_log",),
    "study.process": ("FINISHED", "INTERRUPTED", "LIMIT", "SOME_FAILED", "STOPPING", "collect_rarely", "echo",
                      "interruptible"),
    "study.run": ("StudyRun",),
    "study.session": ("Session",),
    "study.summary": ("figures_by_cell",),
    "study.trust": ("confirm",),
    "study.worker": ("Worker",),
}
"""What is imported when it is first used: an executor that is only listed need not import what runs a study."""

if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
