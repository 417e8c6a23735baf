"""Debates on the terminal as they are run, one at a time: what `madplug run --watch` shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from madplug.cli.terminal import Terminal
from madplug.events import (
    AgentsCast,
    CallAnswered,
    DebateFinished,
    DebateStarted,
    Decided,
    MessageRecorded,
)
from madplug.records import DebateId, DebateResult, Decision, Message, is_another_sample
from madplug.text import count, safe

GRADES: Mapping[bool | None, tuple[str, str]] = {
    True: (", right", "bold green"), False: (", wrong", "bold red"), None: ("", "bold")}
Right = Callable[[DebateResult], "bool | None"]
"""Whether the decision of a debate is right, or None if that is not known."""


@dataclass
class _Debate:
    """A debate that is being shown, or waits to be."""

    id: DebateId
    names: dict[int, str] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    calls: dict[str, CallAnswered] = field(default_factory=dict)
    """Answered calls that belong to no message so far, by key."""
    lines: deque[Text] = field(default_factory=deque)
    """What was not printed yet."""
    over: bool = False


class Watch(Terminal):
    """Shows every debate, one after the other: those that run meanwhile are shown when it has ended.

    right: says whether a decision is right.
    """

    name = "watch"

    def __init__(self, right: Right = lambda result: None, *, quiet: bool = False,
                 console: Console | None = None) -> None:
        super().__init__(quiet=quiet, console=console)
        self._right = right
        self._debates: dict[DebateId, _Debate] = {}
        """Those that were not shown to the end, in the order in which they started."""

    def debate_started(self, event: DebateStarted) -> None:
        """Show the question."""
        debate = self._debates[event.debate] = _Debate(event.debate)
        repeat = f", repeat {event.debate.repeat + 1}" if self._run and self._run.repeats > 1 else ""
        debate.lines += [Text(), Text(f"{safe(event.debate.cell)}, {safe(event.debate.sample)}{repeat}", style="dim"),
                         Text(safe(event.sample.question.strip()), style="bold")]
        debate.lines += (Text(f"  {chr(ord('A') + i)}) {safe(choice)}") for i, choice in
                         enumerate(event.sample.choices))
        self._show()

    def agents_cast(self, event: AgentsCast) -> None:
        """Remember the names, and show the calls that made the personas."""
        debate = self._debates[event.debate]
        debate.names = {agent.id: safe(agent.persona.name) for agent in event.agents}
        debate.lines += self._calls(debate)
        self._show()

    def call_answered(self, event: CallAnswered) -> None:
        """Keep a call until it is known whether a message comes of it."""
        debate = self._debates.get(event.debate)
        if debate is not None:
            debate.calls[event.answered.key] = event

    def message_recorded(self, event: MessageRecorded) -> None:
        """Show a message, and whether its author has changed its mind."""
        debate, message = self._debates[event.debate], event.message
        for key in message.calls:
            debate.calls.pop(key, None)
        debate.lines += self._calls(debate, before=message.round)
        debate.lines += self._message(debate, message)
        debate.messages[message.id] = message
        self._show()

    def decided(self, event: Decided) -> None:
        """Show the calls of the decision, such as votes."""
        debate = self._debates[event.debate]
        debate.lines += self._calls(debate)
        self._show()

    def debate_finished(self, event: DebateFinished) -> None:
        """Show the decision, and go on with the next debate."""
        debate = self._debates[event.debate]
        debate.over = True
        debate.lines += self._calls(debate)
        if event.result is not None:
            debate.lines.append(self._end(event.result))
        self._show()
        super().debate_finished(event)

    def _show(self) -> None:
        """Print what there is of the oldest debate, and of the next one if that has ended."""
        for id, debate in list(self._debates.items()):
            while debate.lines:
                self._print(debate.lines.popleft())
            if not debate.over:
                return
            del self._debates[id]

    def _calls(self, debate: _Debate, before: int | None = None) -> Iterator[Text]:
        """The calls of which no message has come. before: only those of earlier rounds."""
        for key, event in list(debate.calls.items()):
            caller = event.caller
            if before is not None and caller.round >= before:
                continue
            del debate.calls[key]
            who = debate.names.get(caller.agent, "") if caller.agent is not None else ""
            head = f"  {safe(caller.purpose)}{f' of {who}' if who else ''}: "
            yield Text.assemble((head, "magenta"), safe(" ".join(event.answered.completion.text.split())))

    def _message(self, debate: _Debate, message: Message) -> Iterator[Text]:
        who = debate.names.get(message.agent, "?") if message.agent is not None else "(note)"
        if message.retracted:
            yield Text(f"  round {message.round}, {who}: retracted", style="yellow")
            return
        head = f"  round {message.round}, {who}, {safe(message.move)}: "
        lines = [line for line in message.content.strip().splitlines() if line.strip()]
        yield Text.assemble((head, "cyan"), safe("\n    ".join(line.rstrip() for line in lines)))
        if change := self._change(debate, message):
            yield Text(f"    {change}", style="bold yellow")

    def _change(self, debate: _Debate, message: Message) -> str:
        """`B -> C after Agent 2`: how the author's answer has changed, and who had given the new one before."""
        if message.key is None or message.agent is None:
            return ""
        own = (m for m in reversed(debate.messages.values())
               if m.agent == message.agent and m.key is not None and not m.retracted)
        before = next(own, None)
        if before is None or before.key == message.key or is_another_sample(message, before):
            return ""
        seen = (debate.messages[i] for i in message.seen if i in debate.messages)
        sources = dict.fromkeys(debate.names.get(m.agent, "?") for m in seen
                                if m.key == message.key and m.agent not in (None, message.agent))
        after = f" after {', '.join(sources)}" if sources else ""
        return f"{safe(str(before.key))} -> {safe(message.key)}{after}"

    def _end(self, result: DebateResult) -> Text:
        if result.error is not None:
            return Text(f"  failed: {safe(result.error)}", style="bold red")
        right = self._right(result)
        word, style = GRADES[right]
        reference = f" (reference: {safe(' | '.join(result.references))})" if right is False else ""
        return Text(f"  decision: {_ending(result.decision)}{word}{reference}; "
                    f"{count(result.calls, 'call')}", style=style)


def _ending(decision: Decision | None) -> str:
    if decision is None or decision.key is None:
        return f"no answer ({safe(decision.reason) if decision else 'not decided'})"
    how = " (agreed)" if decision.agreed else " (fallback)" if decision.fallback else ""
    return f"{safe(decision.answer or decision.key)}{how}"


def grader(identity: Mapping[str, Any]) -> Right:
    """Says whether a decision is right, as the answer format of its cell compares it. identity: of the study."""
    from madplug.reading import Grader
    from madplug.registry.installed import Registry

    grades = Grader(cast(Any, _Facts(identity)), Registry)

    def right(result: DebateResult) -> bool | None:
        key = result.decision.key if result.decision is not None else None
        if key is None:
            return False if result.references else None
        return grades.grade(result).get(key)

    return right


class _Facts:
    """The only thing that grading asks of a study, before anything is recorded."""

    def __init__(self, identity: Mapping[str, Any]) -> None:
        self._identity = identity

    def fact(self, name: str) -> Any:
        return self._identity if name == "identity" else None
