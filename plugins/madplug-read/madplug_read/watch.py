"""Debates on the terminal as they are run, one at a time: what `madplug run --watch` shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from madplug import (
    AgentsCast,
    CallAnswered,
    DebateFinished,
    DebateId,
    DebateResult,
    DebateStarted,
    Decided,
    Decision,
    Message,
    MessageRecorded,
    Observer,
    count,
    earlier_answers,
    safe,
)

if TYPE_CHECKING:  # `madplug list` imports this module, and prints no debate
    from rich.console import Console

    from madplug import Run
    from madplug_read.grading import Grader

Line = Sequence["str | tuple[str, str]"]
"""The parts of a line, each plain or with its style."""
GRADES: Mapping[bool | None, tuple[str, str]] = {
    True: (", right", "bold green"), False: (", wrong", "bold red"), None: ("", "bold")}


@dataclass
class _Debate:
    """A debate that is being shown, or waits to be."""

    id: DebateId
    names: dict[int, str] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    by_agent: dict[int | None, dict[int, Message]] = field(default_factory=dict)
    calls: dict[str, CallAnswered] = field(default_factory=dict)
    """Answered calls that belong to no message so far, by key."""
    lines: deque[Line] = field(default_factory=deque)
    """What was not printed yet."""
    over: bool = False


class Watch(Observer):
    """Prints every debate on standard error, message by message: `madplug run FILE --watch`.

    Debates are shown one after the other: those that run meanwhile are shown when it has ended.
    """

    name = "watch"

    def __init__(self, options: Any = None, *, console: Console | None = None) -> None:
        super().__init__(options)
        self._console = console
        self._grader: Grader | None = None
        self._repeats = 1
        self._debates: dict[DebateId, _Debate] = {}
        """Those that were not shown to the end, in the order in which they started."""

    @override
    def open(self, run: Run) -> None:
        from madplug import open_study
        from madplug_read.console import AboveBar
        from madplug_read.grading import Grader

        self._console = self._console or AboveBar()
        self._repeats = run.repeats
        if run.folder is not None:
            with open_study(run.folder) as study:
                self._grader = Grader(study)

    @override
    def debate_started(self, event: DebateStarted) -> None:
        debate = self._debates[event.debate] = _Debate(event.debate)
        repeat = f", repeat {event.debate.repeat}" if self._repeats > 1 else ""
        debate.lines += [[""], [(f"{safe(event.debate.cell)}, {safe(event.debate.sample)}{repeat}", "dim")],
                         [(safe(event.sample.question.strip()), "bold")]]
        debate.lines += ([f"  {chr(ord('A') + i)}) {safe(choice)}"] for i, choice in enumerate(event.sample.choices))
        self._show()

    @override
    def agents_cast(self, event: AgentsCast) -> None:
        debate = self._debates[event.debate]
        debate.names = {agent.id: safe(agent.persona.name) for agent in event.agents}
        debate.lines += self._calls(debate)
        self._show()

    @override
    def call_answered(self, event: CallAnswered) -> None:
        debate = self._debates.get(event.debate)
        if debate is not None:  # kept until it is known whether a message comes of it
            debate.calls[event.answered.key] = event

    @override
    def message_recorded(self, event: MessageRecorded) -> None:
        debate, message = self._debates[event.debate], event.message
        for key in message.calls:
            debate.calls.pop(key, None)
        debate.lines += self._calls(debate, before=message.round)
        debate.messages[message.id] = debate.by_agent.setdefault(message.agent, {})[message.id] = message
        debate.lines += self._message(debate, message)
        self._show()

    @override
    def decided(self, event: Decided) -> None:
        debate = self._debates[event.debate]
        debate.lines += self._calls(debate)
        self._show()

    @override
    def debate_finished(self, event: DebateFinished) -> None:
        debate = self._debates[event.debate]
        debate.over = True
        debate.lines += self._calls(debate)
        if event.result is not None:
            debate.lines.append(self._end(event.result))
        self._show()

    def _show(self) -> None:
        """Print what there is of the oldest debate, and of the next one if that has ended."""
        from madplug_read.console import print_line

        assert self._console is not None
        for id, debate in list(self._debates.items()):
            while debate.lines:
                print_line(self._console, debate.lines.popleft())
            if not debate.over:
                return
            del self._debates[id]

    def _calls(self, debate: _Debate, before: int | None = None) -> Iterator[Line]:
        """The calls of which no message has come. before: only those of earlier rounds."""
        for key, event in list(debate.calls.items()):
            caller = event.caller
            if before is not None and caller.round >= before:
                continue
            del debate.calls[key]
            who = debate.names.get(caller.agent, "") if caller.agent is not None else ""
            head = f"  {safe(caller.purpose)}{f' of {who}' if who else ''}: "
            yield [(head, "magenta"), safe(" ".join(event.answered.completion.text.split()))]

    def _message(self, debate: _Debate, message: Message) -> Iterator[Line]:
        who = debate.names.get(message.agent, "?") if message.agent is not None else "(note)"
        if message.retracted:
            yield [(f"  round {message.round}, {who}: retracted", "yellow")]
            return
        head = f"  round {message.round}, {who}, {safe(message.move)}: "
        lines = [line for line in message.content.strip().splitlines() if line.strip()]
        yield [(head, "cyan"), safe("\n    ".join(line.rstrip() for line in lines))]
        if change := self._change(debate, message):
            yield [(f"    {change}", "bold yellow")]

    def _change(self, debate: _Debate, message: Message) -> str:
        """`B -> C after Agent 2`: how the author's answer has changed, and whose latest answer was the new one."""
        from madplug_read.outlines import sources_of

        before = earlier_answers(debate.by_agent[message.agent].values()).get(message.id)
        if before is None or message.key is None or before == message.key:
            return ""
        sources = dict.fromkeys(debate.names.get(m.agent, "?") for m in sources_of(message, debate.messages)[0]
                                if m.agent is not None)
        after = f" after {', '.join(sources)}" if sources else ""
        return f"{safe(before)} -> {safe(message.key)}{after}"

    def _end(self, result: DebateResult) -> Line:
        if result.error is not None:
            return [(f"  failed: {safe(result.error)}", "bold red")]
        right = self._right(result)
        word, style = GRADES[right]
        reference = f" (reference: {safe(' | '.join(result.references))})" if right is False else ""
        return [(f"  decision: {_ending(result.decision)}{word}{reference}; {count(result.calls, 'call')}", style)]

    def _right(self, result: DebateResult) -> bool | None:
        """Whether the decision is right, or None if that is not known."""
        key = result.decision.key if result.decision is not None else None
        if key is None:
            return False if result.references else None
        return self._grader.grade(result).get(key) if self._grader is not None else None


def _ending(decision: Decision | None) -> str:
    if decision is None or decision.key is None:
        return f"no answer ({safe(decision.reason) if decision else 'not decided'})"
    how = " (agreed)" if decision.agreed else " (fallback)" if decision.fallback else ""
    return f"{safe(decision.answer or decision.key)}{how}"
