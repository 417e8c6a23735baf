"""madplug: multi-agent debate between language models.

The public names, nothing else. Each is imported when it is first used, so that `import madplug` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug._lazy import lazy_names
from madplug._version import __version__

if TYPE_CHECKING:  # isort: off
    from madplug.aio import iterate, maybe_await, without_exit
    from madplug.cli.api import StudyResult, arun, check, list_components, run
    from madplug.cli.launch import launch
    from madplug.cli.program import main
    from madplug.component import Component
    from madplug.context import (
        Answers, CellFacts, Debate, Jobs, Progress, Run, RunDriver, Sampled, Setup, Spending)
    from madplug.debate.cell import BoundStyle, Cell
    from madplug.errors import (
        AccessError, ComponentError, EmptyReplyError, MadplugError, ModelError, OverloadedError, Problem, RefusedError,
        StudyError, StudyStopped, TransientError, UnreachableError, UserError, listed, message_of, nearest,
        nearest_or_all)
    from madplug.events import (
        AgentsCast, CallAnswered, DebateFinished, DebateStarted, Decided, Event, MessageRecorded, StudyFinished,
        StudyStarted)
    from madplug.hookspecs import hookimpl
    from madplug.kinds import (
        AnswerFormat, Casting, Dataset, DecisionProtocol, Executor, Extension, Metric, Model, Observer, Paradigm,
        PersonaGenerator, Phase, Service, Style, TurnOrder, Visibility)
    from madplug.options import (
        ModelName, ModelOptions, Names, Nested, Offers, Options, Price, RunPath, ServiceName, Volatile)
    from madplug.records import (
        FAILED, LEAVE, Agent, Answered, Caller, Completion, DebateId, DebateResult, Decision, Form, Frozen, Message,
        Persona, Picture, Plan, Reopen, Reply, Request, Review, Sample, Turn, Usage, Vote, earlier_answers)
    from madplug.redaction import forms_of, hide, redact
    from madplug.rows import from_row, parse_json, pictures_in, plain, to_json
    from madplug.services import Embedder, Passage, ProgramResult, Retriever, Sandbox
    from madplug.store import Reader, Recorder, open_study
    from madplug.subprocesses import python_command
    from madplug.text import columns, count, dollars, safe
    from madplug.transcript import Transcript
# isort: on

__all__ = [
    "FAILED", "LEAVE", "AccessError", "Agent", "AgentsCast", "AnswerFormat", "Answered", "Answers", "BoundStyle",
    "CallAnswered", "Caller", "Casting", "Cell", "CellFacts", "Completion", "Component", "ComponentError",
    "Dataset", "Debate", "DebateFinished", "DebateId", "DebateResult", "DebateStarted", "Decided", "Decision",
    "DecisionProtocol", "Embedder", "EmptyReplyError", "Event", "Executor", "Extension", "Form", "Frozen", "Jobs",
    "MadplugError", "Message", "MessageRecorded", "Metric", "Model", "ModelError", "ModelName", "ModelOptions",
    "Names", "Nested", "Observer", "Offers", "Options", "OverloadedError", "Paradigm", "Passage", "Persona",
    "PersonaGenerator", "Phase", "Picture", "Plan", "Price", "Problem", "ProgramResult", "Progress", "Reader",
    "Recorder", "RefusedError", "Reopen", "Reply", "Request", "Retriever", "Review", "Run", "RunDriver", "RunPath",
    "Sample", "Sampled", "Sandbox", "Service", "ServiceName", "Setup", "Spending", "StudyError", "StudyFinished",
    "StudyResult", "StudyStarted", "StudyStopped", "Style", "Transcript", "TransientError", "Turn", "TurnOrder",
    "UnreachableError", "Usage", "UserError", "Visibility", "Volatile", "Vote", "__version__", "arun", "check",
    "columns", "count", "dollars", "earlier_answers", "forms_of", "from_row", "hide", "hookimpl", "iterate",
    "launch", "list_components", "listed", "main", "maybe_await", "message_of", "nearest", "nearest_or_all",
    "open_study", "parse_json", "pictures_in", "plain", "python_command", "redact", "run", "safe", "to_json",
    "without_exit",
]

if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals())
