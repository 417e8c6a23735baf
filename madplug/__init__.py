"""madplug: multi-agent debate between language models.

The public names, nothing else. Each is imported when it is first used, so that `import madplug` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from madplug.cell import BoundStyle as BoundStyle
    from madplug.cell import Cell as Cell
    from madplug.components import *  # noqa: F403
    from madplug.debate import Debate as Debate
    from madplug.errors import *  # noqa: F403
    from madplug.hookspecs import hookimpl as hookimpl
    from madplug.records import *  # noqa: F403
    from madplug.setup import Setup as Setup
    from madplug.transcript import Transcript as Transcript

_HOMES = {
    "cell": ("BoundStyle", "Cell"),
    "components": (
        "AnswerFormat", "Casting", "Component", "Dataset", "DecisionProtocol", "Executor", "Extension", "Metric",
        "Model", "ModelName", "ModelOptions", "Options", "Paradigm", "PersonaGenerator", "Phase", "Plan",
        "RunPath", "Service", "ServiceName", "Style", "TurnOrder", "Visibility", "Volatile",
    ),
    "debate": ("Debate",),
    "errors": (
        "ComponentError", "MadplugError", "ModelError", "Problem", "RefusedError", "StudyError", "StudyStopped",
        "TransientError", "UserError", "nearest",
    ),
    "hookspecs": ("hookimpl",),
    "records": (
        "Agent", "Answered", "Caller", "Completion", "DebateResult", "Decision", "Form", "Message", "Persona",
        "Reopen", "Reply", "Request", "Review", "Sample", "Turn", "Usage", "Vote",
    ),
    "setup": ("Setup",),
    "transcript": ("Transcript",),
}
_HOME = {name: f"madplug.{module}" for module, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
__all__ = [*sorted(_HOME), "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'madplug' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
