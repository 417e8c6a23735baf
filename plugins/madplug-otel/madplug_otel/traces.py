"""A study as a tree of spans: study, debates, turns, calls."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import (
    AgentsCast,
    CallAnswered,
    DebateFinished,
    DebateId,
    DebateStarted,
    Decided,
    MessageRecorded,
    Observer,
    StudyFinished,
    Volatile,
    redact,
)
from madplug_otel.conventions import AGENT, CHAT, SCHEMA, WORKFLOW, call_attributes
from madplug_otel.exporting import ExportOptions, SpanSender

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from madplug import Run


class TracesOptions(ExportOptions):
    """Options of `otel.traces`."""

    content: Annotated[bool, Volatile] = Field(default=False, description=(
        "send questions, prompts, replies and answers too; otherwise only names, numbers and times"))


@dataclass(slots=True)
class _Call:
    """A call that waits for the turn it belongs to. Times in nanoseconds since 1970."""

    event: CallAnswered
    begin: int
    end: int


@dataclass(slots=True)
class _Open:
    """A debate under way."""

    span: Span
    calls: dict[str, _Call] = field(default_factory=dict)
    """By key, those of no turn so far."""


class Traces(Observer):
    """Sends a trace of the study: a span for the study, each debate, each turn and each model call.

    Attributes follow the conventions for generative AI: a turn is `invoke_agent`, a call is `chat`. Scores are events
    `gen_ai.evaluation.result` of the debate's span. A call that another debate paid for, or that was read from the
    record, takes no time. Calls of personas, votes, decisions and metrics are children of the debate. An observer
    receives events a moment after they happened, so times are right to within milliseconds, or to the delay of an
    observer that has fallen behind.
    """

    name = "traces"
    Options = TracesOptions

    def open(self, run: Run) -> None:
        """Start the study's span."""
        self._sender = SpanSender(self.options, run.study)
        self._tracer = self._sender.provider.get_tracer("madplug", schema_url=SCHEMA)
        self._debates: dict[DebateId, _Open] = {}
        self._ended = 0
        self._study = self._start(f"{WORKFLOW} {run.study}", None, {
            "gen_ai.operation.name": WORKFLOW, "gen_ai.workflow.name": run.study, "madplug.study": run.study,
            "madplug.repeats": run.repeats})

    def debate_started(self, event: DebateStarted) -> None:
        """Start a debate's span."""
        cell, repeat, sample = event.debate
        more = {"madplug.question": redact(event.sample.question)} if self.options.content else {}
        self._debates[event.debate] = _Open(self._start(f"debate {cell}", self._study, {
            "gen_ai.conversation.id": f"{cell}/{repeat}/{sample}", "madplug.cell": cell, "madplug.repeat": repeat,
            "madplug.sample": sample, **more}))

    def agents_cast(self, event: AgentsCast) -> None:
        """Add who takes part."""
        if debate := self._debates.get(event.debate):
            debate.span.set_attribute("madplug.agents", [redact(agent.persona.name) for agent in event.agents])

    def call_answered(self, event: CallAnswered) -> None:
        """Keep a call until its turn is known; those made in preparation belong to the study."""
        now = time.time_ns()
        spent = int(event.answered.seconds * 1e9) if event.answered.source == "paid" else 0
        call = _Call(event, now - spent, now)
        if debate := self._debates.get(event.debate):
            debate.calls[event.answered.key] = call
        else:
            self._end_call(call, self._study)

    def message_recorded(self, event: MessageRecorded) -> None:
        """Add a turn with its calls."""
        debate, message = self._debates.get(event.debate), event.message
        if debate is None:
            return
        if message.retracted:
            debate.span.add_event("madplug.retracted", {"madplug.message": message.id})
            return
        calls = [debate.calls.pop(key) for key in message.calls if key in debate.calls]
        now = time.time_ns()
        begin, end = min((c.begin for c in calls), default=now), max((c.end for c in calls), default=now)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": AGENT, "madplug.round": message.round, "madplug.move": message.move,
            "madplug.message": message.id}
        if message.model is not None:
            attributes["gen_ai.request.model"] = message.model
        if self.options.content:
            attributes |= {"madplug.message.content": redact(message.content),
                           "madplug.answer": redact(message.answer or "")}
        who = "note"
        if event.agent is not None:
            who = event.agent.persona.name
            attributes |= {"gen_ai.agent.name": who, "gen_ai.agent.id": str(event.agent.id),
                           "madplug.role": event.agent.persona.role}
        span = self._start(f"{AGENT} {who}", debate.span, attributes, begin)
        for call in calls:
            self._end_call(call, span)
        self._end(span, end)

    def decided(self, event: Decided) -> None:
        """Add the decision to the debate's span."""
        if debate := self._debates.get(event.debate):
            decision = event.decision
            debate.span.add_event("madplug.decided", {
                "madplug.agreed": decision.agreed, "madplug.tie": decision.tie, "madplug.fallback": decision.fallback,
                **({"madplug.answer": redact(decision.answer or "")} if self.options.content else {})})

    def debate_finished(self, event: DebateFinished) -> None:
        """End a debate's span, with its scores and what it used."""
        from opentelemetry.trace import Status, StatusCode

        debate, result = self._debates.pop(event.debate, None), event.result
        if debate is None:
            return
        for call in debate.calls.values():
            self._end_call(call, debate.span)
        debate.span.set_attribute("madplug.outcome", event.outcome)
        if result is not None:
            debate.span.set_attributes({"madplug.calls": result.calls, "madplug.rounds": result.rounds,
                                        "gen_ai.usage.input_tokens": result.tokens.prompt,
                                        "gen_ai.usage.output_tokens": result.tokens.completion})
            for name, value in result.metrics.items():
                if value is not None:
                    debate.span.add_event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": name,
                                                                       "gen_ai.evaluation.score.value": value})
            if result.error:
                debate.span.set_status(Status(StatusCode.ERROR, redact(result.error)))
        self._end(debate.span)

    def study_finished(self, event: StudyFinished) -> None:
        """Add how the study ended."""
        self._study.set_attribute("madplug.status", str(event.summary.get("status", "")))

    def close(self) -> None:
        """Send what is left. Raises `StudyError` if spans were not accepted."""
        self._end(self._study)
        self._sender.close(self._ended)

    def _start(self, name: str, parent: Span | None, attributes: dict[str, Any], begin: int | None = None, *,
               client: bool = False) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        context = Context() if parent is None else set_span_in_context(parent, Context())
        attributes = {key: redact(value) if isinstance(value, str) else value for key, value in attributes.items()}
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        return self._tracer.start_span(redact(name), context, kind, attributes, start_time=begin)

    def _end(self, span: Span, at: int | None = None) -> None:
        self._ended += span.is_recording()  # unless a sampler of the environment leaves it out
        span.end(at)

    def _end_call(self, call: _Call, parent: Span) -> None:
        attributes = call_attributes(call.event, content=self.options.content)
        name = f"{CHAT} {call.event.request.model}"
        self._end(self._start(name, parent, attributes, call.begin, client=True), call.end)
