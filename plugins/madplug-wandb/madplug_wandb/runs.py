"""A study as runs of Weights & Biases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from madplug import RunPath, StudyError, Volatile
from madplug_tracking import TrackedCell, Tracker, TrackingOptions


class RunsOptions(TrackingOptions):
    """Options of `wandb.runs`."""

    project: Annotated[str | None, Volatile] = Field(
        default=None, description="the project; by default the study's name")
    entity: Annotated[str | None, Volatile] = Field(default=None, description="the user or team")
    mode: Annotated[Literal["offline", "online"], Volatile] = Field(default="offline", description=(
        "offline: into `folder`, to be sent with `wandb sync`; online: to the server that wandb is logged in to"))
    folder: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="where the runs are kept, in a folder `wandb`; by default in the study's directory")


class Runs(Tracker):
    """Reports a study to Weights & Biases: a run for each cell, in a group that is the study.

    A run has every setting in its configuration, and as metrics the means of the cell's scores and the sums of calls,
    tokens and cost, by the number of debates that have ended. The run of the first cell has an artefact with the run
    file, the summary and the report. A study that is resumed continues its runs by their ids. Neither code nor the
    output of the program nor facts about the machine are sent.
    """

    name = "runs"
    Options = RunsOptions

    def connect(self, study: str) -> None:
        """Import wandb. Raises `StudyError` if it is not installed."""
        if find_spec("wandb") is None:
            raise StudyError("it needs wandb, which is not installed: pip install 'madplug-wandb[wandb]'")
        import_module("wandb")

    def begin(self, study: str, id: str, cells: Sequence[TrackedCell]) -> None:
        """Start or continue the runs."""
        import wandb

        self._study = study
        folder = self.options.folder or self._folder
        settings = wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True, save_code=False,
                                  x_disable_meta=True, x_disable_stats=True, x_save_requirements=False)
        self._runs: dict[str, Any] = {}
        for cell in cells:
            self._runs[cell.name] = wandb.init(
                project=self.options.project or allowed(study), entity=self.options.entity, group=f"{study} {id[:6]}",
                name=cell.name, id=cell.id, mode=self.options.mode, dir=None if folder is None else str(folder),
                config=dict(cell.settings), resume="allow" if self.options.mode == "online" else None,
                reinit="create_new", settings=settings)

    def log(self, cell: str, figures: Mapping[str, float], step: int) -> None:
        """Log the figures."""
        self._runs[cell].log(dict(figures), step=step)

    def finish(self, status: str, files: Path | None) -> None:
        """Attach the files and end the runs."""
        import wandb

        for i, run in enumerate(self._runs.values()):
            run.summary["status"] = status
            if i == 0 and files is not None:
                artifact = wandb.Artifact(allowed(self._study), type="report")
                for path in sorted(p for p in files.rglob("*") if p.is_file()):
                    artifact.add_file(str(path), path.relative_to(files).as_posix())
                run.log_artifact(artifact)
            run.finish(exit_code=0 if status == "finished" else 1)


def allowed(name: str) -> str:
    """A name with the characters that Weights & Biases allows in projects and artefacts."""
    return re.sub(r"[^\w\-.]", "_", name)[:120]
