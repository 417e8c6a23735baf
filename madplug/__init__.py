"""madplug: multi-agent debate between language models.

The public names, nothing else. Each is imported when it is first used, so that `import madplug` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug._lazy import lazy_names
from madplug._version import __version__ as __version__

if TYPE_CHECKING:
    from madplug.aio import maybe_await as maybe_await
    from madplug.cli.api import StudyResult as StudyResult
    from madplug.cli.api import arun as arun
    from madplug.cli.api import run as run
    from madplug.component import Component as Component
    from madplug.components import *  # noqa: F403
    from madplug.context import *  # noqa: F403
    from madplug.debate.cell import BoundStyle as BoundStyle
    from madplug.debate.cell import Cell as Cell
    from madplug.errors import *  # noqa: F403
    from madplug.events import *  # noqa: F403
    from madplug.hookspecs import hookimpl as hookimpl
    from madplug.options import *  # noqa: F403
    from madplug.records import *  # noqa: F403
    from madplug.services import *  # noqa: F403
    from madplug.store import Reader as Reader
    from madplug.store import Recorder as Recorder
    from madplug.store import open_study as open_study
    from madplug.transcript import Transcript as Transcript

_HOMES = {
    "debate.cell": ("BoundStyle", "Cell"),
    "components": (
        "AnswerFormat", "Casting", "Dataset", "DecisionProtocol", "Executor", "Extension", "Metric",
        "Model", "Observer", "Paradigm", "PersonaGenerator", "Phase", "Service", "Style", "TurnOrder",
        "Visibility",
    ),
    "aio": ("maybe_await",),
    "cli.api": ("StudyResult", "arun", "run"),
    "component": ("Component",),
    "context": ("Answers", "CellFacts", "Debate", "Jobs", "Progress", "Run", "RunDriver", "Sampled", "Setup"),
    "errors": (
        "AccessError", "ComponentError", "EmptyReplyError", "MadplugError", "ModelError", "OverloadedError", "Problem",
        "RefusedError", "StudyError", "StudyStopped", "TransientError", "UnreachableError", "UserError", "nearest",
    ),
    "hookspecs": ("hookimpl",),
    "options": ("ModelName", "ModelOptions", "Names", "Nested", "Offers", "Options", "Price", "RunPath", "ServiceName",
                "Volatile"),
    "records": (
        "Agent", "Answered", "Caller", "Completion", "DebateId", "DebateResult", "Decision", "Form", "Message",
        "Persona", "Picture", "Plan", "Reopen", "Reply", "Request", "Review", "Sample", "Turn", "Usage", "Vote",
    ),
    "events": (
        "AgentsCast", "CallAnswered", "DebateFinished", "DebateStarted", "Decided", "MessageRecorded", "StudyFinished",
        "StudyStarted",
    ),
    "services": ("Embedder", "ProgramResult", "Retriever", "Sandbox"),
    "store": ("Reader", "Recorder", "open_study"),
    "transcript": ("Transcript",),
}
__all__ = [*sorted(name for names in _HOMES.values() for name in names), "__version__"]  # noqa: PLE0604

if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
