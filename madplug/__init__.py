"""madplug: multi-agent debate between language models.

The public names, nothing else. Each is imported when it is first used, so that `import madplug` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug._lazy import lazy_names
from madplug._version import __version__ as __version__

if TYPE_CHECKING:  # isort: off
    from madplug.aio import iterate as iterate, maybe_await as maybe_await, without_exit as without_exit
    from madplug.cli.api import StudyResult as StudyResult, arun as arun, check as check
    from madplug.cli.api import list_components as list_components, run as run
    from madplug.cli.launch import launch as launch
    from madplug.cli.program import main as main
    from madplug.cli.tables import conclusion as conclusion, summary_rows as summary_rows
    from madplug.component import Component as Component
    from madplug.context import *  # noqa: F403
    from madplug.debate.cell import BoundStyle as BoundStyle, Cell as Cell
    from madplug.errors import *  # noqa: F403
    from madplug.events import *  # noqa: F403
    from madplug.events import Event as Event
    from madplug.hookspecs import hookimpl as hookimpl
    from madplug.kinds import *  # noqa: F403
    from madplug.options import *  # noqa: F403
    from madplug.records import *  # noqa: F403
    from madplug.redaction import forms_of as forms_of, hide as hide, redact as redact
    from madplug.rows import from_row as from_row, parse_json as parse_json, pictures_in as pictures_in
    from madplug.rows import plain as plain, to_json as to_json
    from madplug.services import *  # noqa: F403
    from madplug.store import Reader as Reader, Recorder as Recorder, open_study as open_study
    from madplug.subprocesses import python_command as python_command
    from madplug.text import columns as columns, count as count, dollars as dollars, safe as safe
    from madplug.transcript import Transcript as Transcript
# isort: on

_HOMES = {
    "debate.cell": ("BoundStyle", "Cell"),
    "kinds": ("AnswerFormat", "Casting", "Dataset", "DecisionProtocol", "Executor", "Extension", "Metric", "Model",
              "Observer", "Paradigm", "PersonaGenerator", "Phase", "Service", "Style", "TurnOrder", "Visibility"),
    "aio": ("iterate", "maybe_await", "without_exit"),
    "cli.api": ("StudyResult", "arun", "check", "list_components", "run"),
    "component": ("Component",),
    "context": ("Answers", "CellFacts", "Debate", "Jobs", "Progress", "Run", "RunDriver", "Sampled", "Setup"),
    "errors": (
        "AccessError", "ComponentError", "EmptyReplyError", "MadplugError", "ModelError", "OverloadedError", "Problem",
        "RefusedError", "StudyError", "StudyStopped", "TransientError", "UnreachableError", "UserError", "listed",
        "message_of", "nearest", "nearest_or_all"),
    "hookspecs": ("hookimpl",),
    "options": ("ModelName", "ModelOptions", "Names", "Nested", "Offers", "Options", "Price", "RunPath", "ServiceName",
                "Volatile"),
    "records": (
        "Agent", "Answered", "Caller", "Completion", "DebateId", "DebateResult", "Decision", "FAILED", "Form",
        "Frozen", "LEAVE", "Message", "Persona", "Picture", "Plan", "Reopen", "Reply", "Request", "Review",
        "Sample", "Turn", "Usage", "Vote", "earlier_answers"),
    "events": (
        "AgentsCast", "CallAnswered", "DebateFinished", "DebateStarted", "Decided", "MessageRecorded", "StudyFinished",
        "StudyStarted", "Event"),
    "services": ("Embedder", "Passage", "ProgramResult", "Retriever", "Sandbox"),
    "store": ("Reader", "Recorder", "open_study"),
    "cli.launch": ("launch",),
    "cli.program": ("main",),
    "cli.tables": ("conclusion", "summary_rows",),
    "redaction": ("forms_of", "hide", "redact",),
    "subprocesses": ("python_command",),
    "rows": ("from_row", "parse_json", "pictures_in", "plain", "to_json",),
    "text": ("columns", "count", "dollars", "safe",),
    "transcript": ("Transcript",),
}
__all__ = [*sorted(name for names in _HOMES.values() for name in names), "__version__"]  # noqa: PLE0604

if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
