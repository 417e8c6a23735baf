"""A debate as a sample of inspect_ai: rounds and agents as spans, calls as model events, metrics as scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from inspect_ai.event import Event, InfoEvent, ModelEvent, ScoreEvent, SpanBeginEvent, SpanEndEvent
from inspect_ai.log import EvalError, EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score

from madplug import DebateResult, Message

Call = Mapping[str, Any]
"""A row of `Reader.calls`."""
CONFIG = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty")


def to_eval_sample(result: DebateResult, calls: Mapping[str, Call]) -> EvalSample:
    """A debate that has ended. calls: those behind it, by key."""
    times = [call["at"] for call in calls.values()]
    begin = min((call["at"] - call["seconds"] for call in calls.values()), default=0.0)
    end = max(times, default=begin)
    usage: dict[str, ModelUsage] = {}
    for call in calls.values():
        used = to_usage(call)
        usage[call["model"]] = usage[call["model"]] + used if call["model"] in usage else used
    answer = result.decision.answer if result.decision else None
    return EvalSample(
        id=result.sample.id, epoch=result.repeat + 1, input=_input(result), choices=list(result.sample.choices) or None,
        target=list(result.references), messages=_messages(result), scores=_scores(result), model_usage=usage,
        output=ModelOutput.from_content("madplug", answer or ""), metadata=_metadata(result),
        events=list(_Events(result, calls, begin).all()), error=_error(result),
        uuid=f"{result.cell}/{result.repeat}/{result.sample.id}", started_at=_time(begin) if times else None,
        completed_at=_time(end) if times else None, total_time=result.seconds)


def to_usage(call: Call) -> ModelUsage:
    """The tokens of a call; inspect_ai counts cached ones apart."""
    usage = call["usage"]
    cached = usage["cached"] or 0
    return ModelUsage(input_tokens=usage["prompt"] - cached, output_tokens=usage["completion"],
                      total_tokens=usage["prompt"] + usage["completion"], input_tokens_cache_read=cached or None,
                      total_cost=usage["cost_usd"])


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _input(result: DebateResult) -> str | list[ChatMessage]:
    sample = result.sample
    text = "\n\n".join([*sample.context, sample.question])
    if not sample.images:
        return text
    return [ChatMessageUser(content=[ContentText(text=text), *(ContentImage(image=url) for url in sample.images)])]


def _name(result: DebateResult, message: Message) -> str:
    return "Note" if message.agent is None else result.agents[message.agent].persona.name


def _messages(result: DebateResult) -> list[ChatMessage]:
    """The question and what was said, each message below its agent's name."""
    asked = _input(result)
    said: list[ChatMessage] = [ChatMessageUser(content=asked)] if isinstance(asked, str) else list(asked)
    for message in result.messages:
        if not message.retracted:
            said.append(ChatMessageAssistant(
                content=f"{_name(result, message)}:\n\n{message.content}", model=message.model,
                metadata={"round": message.round, "move": message.move, "answer": message.answer}))
    return said


def _scores(result: DebateResult) -> dict[str, Score] | None:
    decision = result.decision
    answer, reason = (decision.answer, decision.reason) if decision else (None, result.error)
    return {name: Score(value=value, answer=answer, explanation=reason or None)
            for name, value in result.metrics.items() if value is not None} or None


def _metadata(result: DebateResult) -> dict[str, Any]:
    decision = result.decision
    return {**dict(result.sample.metadata), "agents": [a.persona.name for a in result.agents],
            "rounds": result.rounds, "calls": result.calls, **({} if decision is None else {
                "agreed": decision.agreed, "tie": decision.tie, "fallback": decision.fallback,
                "reason": decision.reason})}


def _error(result: DebateResult) -> EvalError | None:
    return None if result.error is None else EvalError(message=result.error, traceback=result.error,
                                                       traceback_ansi=result.error)


class _Events:
    """The transcript of a debate, as events."""

    def __init__(self, result: DebateResult, calls: Mapping[str, Call], begin: float) -> None:
        self._result = result
        self._calls = dict(calls)
        self._begin = self._now = begin
        self._id = f"{result.cell}/{result.repeat}/{result.sample.id}"

    def all(self) -> Iterator[Event]:
        """The events in order: what was asked before round 1, rounds, the decision and its calls, scores."""
        yield from self._span("opening", "opening", None, self._models(self._result.opening_calls, "opening"))
        for number, messages in groupby(self._result.messages, key=lambda m: m.round):
            name = f"round {number}"
            yield from self._span(name, name, None, self._round(list(messages), name))
        rest = sorted(self._calls, key=lambda key: self._calls[key]["at"])
        yield from self._span("decision", "decision", None, self._decision(rest))
        values = {name: score.value for name, score in (_scores(self._result) or {}).items()}
        if values:  # as one event, because the viewer does not name the metric of a single score
            answer = self._result.decision.answer if self._result.decision else None
            yield ScoreEvent(score=Score(value=values, answer=answer), target=list(self._result.references),
                             **self._when(None))

    def _round(self, messages: Sequence[Message], parent: str) -> Iterator[Event]:
        for message in messages:
            id = f"message {message.id}"
            yield from self._span(id, _name(self._result, message), parent, self._turn(message, id), "agent")

        # Without something between the agents, the viewer leaves the rounds out.
        answers = "\n".join(f"- {_name(self._result, m)}: {m.answer or 'no answer'}" for m in messages
                            if m.agent is not None and not m.retracted)
        yield InfoEvent(source=f"answers of {parent}", data=answers, **self._when(parent))

    def _turn(self, message: Message, id: str) -> Iterator[Event]:
        yield from self._models(message.calls, id)
        yield InfoEvent(source="retracted" if message.retracted else message.move, data=message.content,
                        metadata={"answer": message.answer, "seen": list(message.seen)}, **self._when(id))

    def _decision(self, keys: Sequence[str]) -> Iterator[Event]:
        yield from self._models(keys, "decision")
        decision = self._result.decision
        text = f"failed: {self._result.error}" if decision is None else \
            f"{decision.answer or 'no answer'}" + (f" ({decision.reason})" if decision.reason else "")
        yield InfoEvent(source="decision", data=text, **self._when("decision"))

    def _span(self, id: str, name: str, parent: str | None, inside: Iterator[Event],
              kind: str | None = None) -> Iterator[Event]:
        """A span around events, if there are any."""
        first = next(inside, None)
        if first is None:
            return
        about = self._when(id) | {"timestamp": first.timestamp, "working_start": first.working_start}
        yield SpanBeginEvent(id=self._span_id(id), name=name, type=kind, **about,
                             parent_id=None if parent is None else self._span_id(parent))
        yield first
        yield from inside
        yield SpanEndEvent(id=self._span_id(id), **self._when(id))

    def _span_id(self, id: str) -> str:
        return f"{self._id}/{id}"

    def _when(self, span: str | None, at: float | None = None) -> dict[str, Any]:
        at = self._now if at is None else at
        return {"timestamp": datetime.fromtimestamp(at, timezone.utc), "working_start": max(at - self._begin, 0.0),
                "span_id": None if span is None else self._span_id(span)}

    def _models(self, keys: Sequence[str], span: str) -> Iterator[Event]:
        for key in keys:
            call = self._calls.pop(key, None)
            if call is None:
                continue  # it belongs to an earlier message, or is no longer on record
            self._now = max(self._now, call["at"])
            yield _model_event(call, self._when(span, call["at"] - call["seconds"]))


def _model_event(call: Call, when: Mapping[str, Any]) -> ModelEvent:
    request = call["request"]
    params = request.get("params") or {}
    output = ModelOutput.from_content(call["model"], call["text"])
    output.usage, output.time = to_usage(call), call["seconds"]
    return ModelEvent(
        model=call["model"], input=[_chat(m) for m in request.get("messages", ())], tools=[], tool_choice="none",
        config=GenerateConfig(**{name: params[name] for name in CONFIG if params.get(name) is not None}), output=output,
        retries=call["retries"] or None, completed=datetime.fromtimestamp(call["at"], timezone.utc),
        working_time=call["seconds"], metadata={"purpose": call["purpose"], "key": call["key"]}, **when)


def _chat(message: Mapping[str, Any]) -> ChatMessage:
    kinds: dict[str, Any] = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant}
    content = message.get("content") or ""
    parts: str | list[Content] = content if isinstance(content, str) else [
        ContentImage(image=part["image_url"]["url"]) if "image_url" in part else ContentText(text=part.get("text", ""))
        for part in content]
    made: ChatMessage = kinds.get(message.get("role", "user"), ChatMessageUser)(content=parts)
    return made
