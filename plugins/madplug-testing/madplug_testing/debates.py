"""Whole debates in memory, with replies written by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from madplug import (
    Agent,
    AnswerFormat,
    BoundStyle,
    Casting,
    Cell,
    Completion,
    Component,
    Dataset,
    DebateResult,
    Decision,
    DecisionProtocol,
    Extension,
    Message,
    Metric,
    Model,
    ModelError,
    Observer,
    Persona,
    PersonaGenerator,
    Phase,
    Request,
    Sample,
    Service,
    Style,
    Transcript,
    TurnOrder,
    Usage,
    Visibility,
)
from madplug.store import MemoryStore
from madplug.study import DebateState, StudyPlan, StudyRun, stored_debate
from madplug_testing.components import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

Replies = Sequence[str] | Mapping[int | None, Sequence[str]] | Callable[[Request], "str | Completion"]


class Scripted(Model):
    """A model that replies with what the test wrote.

    replies: texts in the order of the calls; or by agent id, in the order of that agent's calls; or a function of
    the request. A call without a reply fails the debate and says which call it was. model: a real model to ask
    instead; its requests are recorded here.
    """

    name = "scripted"

    def __init__(self, replies: Replies = (), model: Model | None = None) -> None:
        super().__init__(model.options if model else None)
        self._model = model
        self.requests: list[Request] = []
        """Every request, in the order sent."""
        self._replies = replies
        self._used: dict[int | None, int] = {}

    def open(self) -> Any:
        """Open the model behind this one."""
        return self._model.open() if self._model else None

    def close(self) -> Any:
        """Close the model behind this one."""
        return self._model.close() if self._model else None

    async def complete(self, request: Request) -> Completion:
        """The next reply for this request."""
        self.requests.append(request)
        if self._model is not None:
            return await self._model.complete(request)
        if callable(self._replies):
            said = self._replies(request)
            return said if isinstance(said, Completion) else Completion(said, Usage(1, 1))
        who = request.agent if isinstance(self._replies, Mapping) else None
        texts = self._replies.get(who, ()) if isinstance(self._replies, Mapping) else self._replies
        nth = self._used[who] = self._used.get(who, -1) + 1
        if nth >= len(texts):
            raise ModelError(f"the script has no reply for call {nth + 1} of agent {request.agent} "
                             f"(purpose '{request.purpose}'): {request.messages[-1]['content']!r:.200}")
        return Completion(texts[nth], Usage(1, 1))


class Listed(Dataset):
    """Samples written by the test."""

    name = "listed"

    def __init__(self, rows: Sequence[tuple[Sample, tuple[str, ...]]]) -> None:
        super().__init__()
        self._rows = rows

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The same samples for every split."""
        return iter(self._rows)


@dataclass
class Played:
    """A debate that was run, and what was recorded about it."""

    result: DebateResult
    """As it is stored. `result.error` says why a debate failed (`play(..., expect_failure=True)`)."""
    requests: list[Request]
    """The requests sent to the models, in order."""
    debate: DebateState
    """The debate as a component sees it after its end."""
    store: MemoryStore
    summary: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What does not affect results, such as a component that blocked the event loop."""
    error: BaseException | None = None
    """The error of the latest failed debate, with its traceback."""

    @property
    def decision(self) -> Decision:
        """The decision. Raises `AssertionError` if the debate failed."""
        assert self.result.decision is not None, self.result.error
        return self.result.decision

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that were not retracted."""
        return self.transcript.messages

    @property
    def transcript(self) -> Transcript:
        """The transcript."""
        return Transcript(self.result.messages)

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """The scores by name."""
        return self.result.metrics

    @property
    def prompts(self) -> list[str]:
        """The messages of each request as one text, in the order sent."""
        return ["\n".join(_text(m["content"]) for m in r.messages) for r in self.requests]


def play(*, replies: Replies = (), model: Model | None = None, agents: int | None = None, rounds: int = 1,
         sample: Sample | str | Sequence[Sample] = "the question", references: Sequence[str] = (),
         styles: Sequence[Style | BoundStyle] | None = None, turns: TurnOrder | None = None,
         visibility: Visibility | None = None, decision: DecisionProtocol | None = None,
         answers: AnswerFormat | None = None, personas: Sequence[PersonaGenerator] = (),
         casting: Casting | None = None, extensions: Sequence[Extension] = (), phases: Sequence[Phase] = (),
         metrics: Mapping[str, Metric] | None = None, services: Mapping[str, Service] | None = None,
         models: Sequence[str] = ("model",), dataset: Dataset | None = None, oracle: bool = False, seed: int = 0,
         matched: DebateResult | None = None, repeats: int = 1, observers: Sequence[Observer] = (),
         more: Mapping[str, Mapping[str, Component]] | None = None,
         on_failed_agent: str = "fail", quorum: int = 1, store: MemoryStore | None = None,
         expect_failure: bool = False) -> Played:
    """Run a debate with the given components, and the plainest ones for all other slots.

    With several samples or repeats, all debates are run and the last one is returned; `store` has the others.
    model: a model to ask instead of the scripted one. oracle: let components read the references. matched: the result
    of the same sample in the cell that this one is matched to. more: components of a plugin's kind by the names that
    options give, as in `{"tools": {"hint": Hint()}}`. Raises `AssertionError` with the reason if the debate
    fails, unless `expect_failure`.
    """
    samples = [Sample("q1", sample)] if isinstance(sample, str) else [sample] if isinstance(sample, Sample) else sample
    rows = [(s, tuple(references)) for s in samples]
    cell = Cell(
        slug="play", answers=answers or StrippedText(), turns=turns or SpeakAll(), visibility=visibility or SeeAll(),
        decision=decision or LastRound(), styles=_bound(styles or [PlainStyle()]), rounds=rounds,
        agents=agents if agents is not None or any(g.count is not None for g in personas) else max(len(personas), 3),
        personas=personas, casting=casting, phases=phases, metrics=metrics or {}, extensions=extensions,
        models=tuple(models), services=services or {}, more=more or {}, dataset=dataset or Listed(rows), oracle=oracle,
        on_failed_agent=on_failed_agent, quorum=quorum,
        channels={name: name for name in models}, match={"cell": "matched", "by": "calls"} if matched else None)
    scripted = Scripted(replies, model)
    store = MemoryStore() if store is None else store
    if matched is not None:
        asyncio.run(store.finish_debate(replace(matched, cell="matched", repeat=0, sample=samples[0])))
    warnings: list[str] = []
    run = StudyRun(StudyPlan("play", [cell], dict.fromkeys(models, scripted), seed=seed, repeats=repeats), store,
                   observers, warn=warnings.append)
    summary = asyncio.run(run.run())
    results = list(store.results("play"))
    assert results, summary["reason"] or "no debate was run"
    result = results[-1]
    error = run.worker.last_error  # a metric that fails leaves the debate as it is
    assert expect_failure or error is None, result.error or run.problems
    debate = stored_debate(result, cell, client=run.worker.gateway, seed=seed)
    return Played(result, scripted.requests, debate, store, summary, run.problems, warnings, error)


def debate_from(rows: str | Sequence[Sequence[str | None]], *, answers: AnswerFormat | None = None,
                references: Sequence[str] = (), sample: Sample | str = "the question", oracle: bool = False,
                personas: Sequence[Persona] | None = None, seed: int = 0, rounds: int | None = None,
                replies: Replies = (), decision: DecisionProtocol | None = None,
                visibility: Visibility | None = None, transcript: Transcript | None = None,
                round: int | None = None, **message: Any) -> DebateState:
    """A debate whose transcript has these answers: one row per agent, one key per round.

    rows: `"AB BB B-"`: a word per agent, a letter per round, `-` for a turn without an answer; or lists of keys.
    transcript: used instead of the answers; `rows` then only gives the number of agents. round: the current round, by
    default the last one. message: fields of every message, such as `agreement=True`; a list gives one value per
    message, in the order of their ids.
    """
    transcript = transcript_from(rows, **message) if transcript is None else transcript
    table = _table(rows)
    people = personas or [Persona(f"Agent {i + 1}") for i in range(len(table))]
    last = max((len(row) for row in table), default=0)
    cell = Cell(slug="from", answers=answers or StrippedText(), turns=SpeakAll(), visibility=visibility or SeeAll(),
                decision=decision or LastRound(), styles=_bound([PlainStyle()]), rounds=rounds or max(last, 1),
                agents=len(people), models=("model",), oracle=oracle, channels={"model": "model"})
    run = StudyRun(StudyPlan("from", [cell], {"model": Scripted(replies)}, seed=seed), MemoryStore())
    agents = tuple(Agent(i, p, "model") for i, p in enumerate(people))
    return DebateState(
        cell, sample if isinstance(sample, Sample) else Sample("q1", sample), right=tuple(references),
        client=run.worker.gateway, seed=seed, agents=agents, transcript=transcript,
        round=last if round is None else round)


def transcript_from(rows: str | Sequence[Sequence[str | None]], **message: Any) -> Transcript:
    """The transcript of simultaneous rounds with these answers; see `debate_from`."""
    table, transcript = _table(rows), Transcript()
    for k in range(max((len(row) for row in table), default=0)):
        seen = tuple(m.id for m in transcript.messages)
        for agent, row in enumerate(table):
            if k >= len(row):
                continue
            nth = len(transcript.record)
            more = {name: value[nth] if isinstance(value, list) else value for name, value in message.items()}
            transcript.append(Message(0, k + 1, 0, agent, more.pop("move", "improve"),
                                      more.pop("content", f"I say {row[k]}"), answer=row[k], key=row[k],
                                      seen=more.pop("seen", seen), **more))
    return transcript


def wait_for(value: Any) -> Any:
    """The result of a component's method, awaited if necessary; for tests outside an event loop."""
    async def awaited() -> Any:
        return await value

    return asyncio.run(awaited()) if hasattr(value, "__await__") else value


def _table(rows: str | Sequence[Sequence[str | None]]) -> list[list[str | None]]:
    words = rows.split() if isinstance(rows, str) else rows
    return [[None if key in ("-", None) else key for key in row] for row in words]


def _bound(styles: Sequence[Style | BoundStyle]) -> list[BoundStyle]:
    return [s if isinstance(s, BoundStyle) else BoundStyle(s, s.full_name) for s in styles]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(p.get("text", "[image]") for p in content)
