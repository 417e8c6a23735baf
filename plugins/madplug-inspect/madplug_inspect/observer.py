"""The observer `inspect.logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from madplug import Observer, Options, RunPath, StudyError, StudyFinished, Volatile
from madplug_inspect.needed import NEEDED, is_installed

if TYPE_CHECKING:
    from madplug import Run


class LogsOptions(Options):
    """Options of `inspect.logs`."""

    folder: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="where to write the logs; by default `inspect` in the study's directory")


class Logs(Observer):
    """Writes logs for inspect_ai when a run ends, as `madplug inspect` does at any time."""

    name = "logs"
    Options = LogsOptions

    def open(self, run: Run) -> None:
        """Remember where the study is. Raises `StudyError` if inspect_ai is not installed."""
        if not is_installed():
            raise StudyError(f"it {NEEDED}")
        import madplug_inspect.logs  # noqa: F401 (takes seconds, which the end of a run does not have)

        self._study = run.folder

    def study_finished(self, event: StudyFinished) -> None:
        """Write a log for each cell."""
        from madplug_inspect.logs import write_logs

        if self._study is None:
            raise StudyError("a study that is kept in memory has no records to read")
        write_logs(self._study, self.options.folder or self._study / "inspect", event.summary)
