"""Running a study: what executors, workers, and commands over recorded debates build on.

A session opens the study's directory and runs it once, a run has the limits, observers and summary, its stream of jobs
says which debates come next, and a worker brings each of them to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug._lazy import lazy_names

if TYPE_CHECKING:
    from madplug.calls.driver import Driver, Source, StudyDriver
    from madplug.calls.gateway import cost_of
    from madplug.calls.quota import shared_rates
    from madplug.config import ResolvedStudy, Resolver, load
    from madplug.config.build import Builder, Made
    from madplug.config.plan import StudyPlan
    from madplug.config.problems import secrets
    from madplug.config.read import as_toml, dotted, overlay, read, setting
    from madplug.debate.checks import describe_error
    from madplug.debate.loop import conclude, decide
    from madplug.debate.state import DebateState, change, record, seat, stored_debate
    from madplug.errors import error_text
    from madplug.options import complete
    from madplug.records import Ending, Job
    from madplug.registry.installed import Registry
    from madplug.registry.offers import Offer
    from madplug.study.compatibility import conflicts, decided_by, is_cell
    from madplug.study.directory import (
        OWN_FILES,
        PART,
        changed_settings,
        check_facts,
        check_folder,
        decided_from,
        read_manifest,
    )
    from madplug.study.files import read_text, replacing, write_whole
    from madplug.study.intervals import interval, t_quantile
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
    from madplug.study.setup import CellSetup
    from madplug.study.summary import CellScores, scores_by_cell
    from madplug.study.trust import confirm
    from madplug.study.worker import Worker

__all__ = [
    "FINISHED", "INTERRUPTED", "LIMIT", "OWN_FILES", "PART", "SOME_FAILED", "STOPPING", "Builder", "CellScores",
    "CellSetup", "DebateState", "Driver", "Ending", "Job", "Made", "Offer", "Registry", "ResolvedStudy", "Resolver",
    "Session", "Source", "StudyDriver", "StudyPlan", "StudyRun", "Worker", "as_toml", "change", "changed_settings",
    "check_facts", "check_folder", "collect_rarely", "complete", "conclude", "confirm", "conflicts", "cost_of",
    "decide", "decided_by", "decided_from", "describe_error", "dotted", "echo", "error_text", "interruptible",
    "interval", "is_cell", "load", "overlay", "read", "read_manifest", "read_text", "record", "redirect_log",
    "replacing", "scores_by_cell", "seat", "secrets", "setting", "shared_rates", "stored_debate", "t_quantile",
    "write_whole",
]

# Each is imported when it is first used: an executor that is only listed need not import what runs a study.
if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals())
