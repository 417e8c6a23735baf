"""A study as runs of MLflow."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import StudyError, Volatile
from madplug_tracking import RejectedError, TrackedCell, Tracker, TrackingOptions

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH = 100
"""The most parameters that MLflow takes at once."""
ID = "madplug.id"
"""The tag by which the runs of a study are found again."""
STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
_NOT_ALLOWED = re.compile(r"[^\w\-. /:]")


class RunsOptions(TrackingOptions):
    """Options of `mlflow.runs`."""

    uri: Annotated[str | None, Volatile] = Field(default=None, description=(
        "the tracking store: sqlite:///mlflow.db, http://127.0.0.1:5000; unset: what MLFLOW_TRACKING_URI says, or "
        "MLflow's own default. Passwords and tokens come from MLflow's variables only"))
    experiment: Annotated[str | None, Volatile] = Field(
        default=None, description="the experiment; by default the study's name")


class Runs(Tracker):
    """Reports a study to MLflow: a run for the study, and nested in it one for each cell.

    A cell's run has every setting as a parameter, and as metrics the means of its scores and the sums of calls, tokens
    and cost, by the number of debates that have ended. The study's run has the run file, the summary and the report as
    artefacts. A study that is resumed continues its runs.
    """

    name = "runs"
    Options = RunsOptions

    def connect(self, study: str) -> None:
        """Find or make the experiment. Raises `StudyError` if MLflow is not installed."""
        if find_spec("mlflow") is None:
            raise StudyError("it needs mlflow, which is not installed: pip install 'madplug-mlflow[mlflow]'")
        from mlflow import MlflowClient

        self._client: MlflowClient = MlflowClient(tracking_uri=self.options.uri)
        self._experiment = self._find_experiment(self.options.experiment or study)

    def begin(self, study: str, id: str, cells: Sequence[TrackedCell]) -> None:
        """Start or continue the runs."""
        self._study = self._start(study, id, {})
        self._runs = {cell.name: self._start(cell.name, cell.id, {"mlflow.parentRunId": self._study})
                      for cell in cells}
        for cell in cells:
            self._log_params(self._runs[cell.name], cell.settings)

    def send(self, records: Sequence[Callable[[], None]]) -> None:
        """Make calls of MLflow. Raises `RejectedError` for what it calls a mistake of the client."""
        from mlflow.exceptions import MlflowException

        try:
            super().send(records)
        except MlflowException as error:
            status: int = error.get_http_status_code()  # type: ignore[no-untyped-call, unused-ignore]
            if 400 <= status < 500 and status not in (401, 403, 408, 429):
                raise RejectedError(str(error)) from None
            raise

    def _find_experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if found is None else found.experiment_id)

    def _start(self, name: str, id: str, tags: Mapping[str, str]) -> str:
        """The id of the run of an earlier run of the study, or of a new one."""
        found = self._client.search_runs([self._experiment], f"tags.`{ID}` = '{id}'", max_results=1)
        if found:
            self._client.update_run(found[0].info.run_id, status="RUNNING")
            return str(found[0].info.run_id)
        made = self._client.create_run(self._experiment, run_name=name, tags={**tags, ID: id})
        return str(made.info.run_id)

    def _log_params(self, run: str, settings: Mapping[str, str]) -> None:
        """Log the settings that are not logged yet: MLflow refuses to change a parameter."""
        from mlflow.entities import Param

        known = self._client.get_run(run).data.params
        params = [Param(name, value) for key, value in settings.items() if (name := allowed(key)) not in known]
        for batch in _batches(params):
            self._client.log_batch(run, params=batch)

    def log(self, cell: str, figures: Mapping[str, float], step: int) -> None:
        """Log the figures."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(allowed(name), float(value), now, step) for name, value in figures.items()]
        self._client.log_batch(self._runs[cell], metrics=metrics)

    def finish(self, status: str, files: Path | None) -> None:
        """Attach the files and end the runs."""
        if files is not None:
            self._client.log_artifacts(self._study, str(files))
        for run in (*self._runs.values(), self._study):
            self._client.set_terminated(run, STATUS.get(status, "FINISHED"))


def allowed(name: str) -> str:
    """A name with the characters that MLflow allows."""
    return _NOT_ALLOWED.sub("_", name)[:250]


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    left = iter(items)
    while batch := list(islice(left, BATCH)):
        yield batch
