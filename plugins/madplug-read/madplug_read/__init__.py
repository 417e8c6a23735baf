"""Studies and debates as people read them: results, `madplug status`, `read`, `run --watch`, and pages in a notebook.

The last three draw one description of a debate, which other plugins can draw too: `outline` turns a debate on record
into an `Outline`: who answered what in each round, who changed their mind and whose messages they had been shown, how
the votes stood, what was decided and what it cost. `Grader` says which answers are right. `study_facts` describes a
study in a list of studies, and `summary_rows` and `conclusion` the results of one that has ended.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from madplug import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import click

    from madplug import Observer
    from madplug_read.grading import Grader as Grader
    from madplug_read.grading import Grades as Grades
    from madplug_read.outlines import outline as outline
    from madplug_read.records import AgentColumn as AgentColumn
    from madplug_read.records import AnswerKey as AnswerKey
    from madplug_read.records import Change as Change
    from madplug_read.records import Mark as Mark
    from madplug_read.records import MessageCard as MessageCard
    from madplug_read.records import Outline as Outline
    from madplug_read.records import RoundRow as RoundRow
    from madplug_read.records import natural as natural
    from madplug_read.results import conclusion as conclusion
    from madplug_read.results import summary_rows as summary_rows
    from madplug_read.status import print_status as print_status
    from madplug_read.studies import StudyFacts as StudyFacts
    from madplug_read.studies import decided_again as decided_again
    from madplug_read.studies import saw_references as saw_references
    from madplug_read.studies import study_facts as study_facts
    from madplug_read.studies import study_state as study_state
    from madplug_read.traits import TRAITS as TRAITS

_HOMES = {"grading": ("Grader", "Grades"), "outlines": ("outline",), "traits": ("TRAITS",),
          "results": ("conclusion", "summary_rows"), "status": ("print_status",),
          "studies": ("StudyFacts", "decided_again", "saw_references", "study_facts", "study_state"),
          "records": ("AgentColumn", "AnswerKey", "Change", "Mark", "MessageCard", "Outline", "RoundRow",
                      "natural")}
__all__ = [*sorted(name for names in _HOMES.values() for name in names)]  # noqa: PLE0604

if not TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        """A public name, imported when it is first used: the plugin is loaded to add its commands alone."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"madplug_read.{home}"), name)
        raise AttributeError(f"module 'madplug_read' has no attribute '{name}'")


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug read`, `madplug status`, options of `run`, and lines to `madplug check`."""
    from madplug_read.before import add_record
    from madplug_read.command import read, refused, status, watch

    cli.add_command(read)
    cli.add_command(status)
    cli.commands["run"].params += [watch, *refused]
    add_record(cli)


@hookimpl
def madplug_register_results(summary: Mapping[str, Any]) -> Iterator[str]:
    """Show the cells of a study as a table, and say what can be concluded."""
    from madplug_read.results import results

    return results(summary)


@hookimpl
def madplug_register_hints(folder: Path) -> Iterator[str]:
    """Tell how debates ended."""
    from madplug_read.endings import told

    return told(folder)


@hookimpl
def madplug_register_observers() -> list[type[Observer]]:
    """Register the observer that prints debates."""
    from madplug_read.watch import Watch

    return [Watch]


@hookimpl
def madplug_register_progress() -> list[Observer]:
    """Show the progress on the terminal, or in the output of a notebook's cell, and records as pages from now on."""
    from madplug_read.notebook import NotebookProgress, shell

    if (notebook := shell()) is None or not hasattr(notebook, "kernel"):
        from madplug_read.bar import Terminal

        return [Terminal()]
    load_ipython_extension(notebook)
    return [NotebookProgress()]


def load_ipython_extension(shell: Any) -> None:
    """Show studies and debates as pages: `%load_ext madplug_read`, which IPython does itself when it starts."""
    from madplug_read.notebook import show_pages

    show_pages(shell)
