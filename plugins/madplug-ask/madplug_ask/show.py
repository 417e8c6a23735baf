"""A debate in the terminal, as it goes: one voice at a time, token by token where the model streams."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from madplug import (
    AgentsCast,
    DebateStarted,
    Message,
    MessageRecorded,
    Observer,
    Progress,
    Request,
    Run,
    earlier_answers,
    safe,
)
from madplug_ask.told import letters_of

EVERY = 2.0
"""Seconds between two looks at what is waited for."""
DISCUSS, REVIEW, CHAIR = "discuss", "review", "chair"
"""Purposes of calls; of those whose replies become messages, one that is not `discuss` is named."""


@dataclass(eq=False)
class _Voice:
    """A reply that is being written."""

    agent: int | None
    purpose: str
    round: int
    pieces: deque[str] = field(default_factory=deque)
    begun: bool = False
    """Whether it is being shown."""


class Transcript(Observer):
    """Prints the debate. Replies that are written at the same time are shown one after the other."""

    name = "transcript"

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}
        self._voices: list[_Voice] = []
        """Those whose messages are not recorded yet; the first is shown while it is written."""
        self._chairs = False
        """Whether a chair writes, which has not been said yet."""
        self._said: dict[int, dict[int, Message]] = {}
        """The messages of each agent, by id."""
        self._round = 0
        """That of the latest heading."""
        self._column = 0
        self._closed = threading.Event()

    def open(self, run: Run) -> None:
        """Say from now on what is waited for, since no event comes while an endpoint cannot be reached."""
        threading.Thread(target=self._watch, args=(run.progress,), daemon=True).start()

    def _watch(self, progress: Callable[[], Progress]) -> None:
        told = ""
        while not self._closed.wait(EVERY):
            waiting = progress().waiting
            if waiting and waiting != told:
                with self._lock:
                    self._print(Text(f"({safe(waiting)})", style="dim"))
            told = waiting

    def close(self) -> None:
        """Say no more."""
        self._closed.set()

    def listen(self, request: Request) -> Callable[[str], None]:
        """Show a reply while it is written, as soon as those before it are done."""
        voice = _Voice(request.agent, request.purpose, request.round)
        with self._lock:
            self._voices += [voice] if request.agent is not None else []
            self._chairs |= request.purpose == CHAIR
            self._tell_chair()

        def piece(text: str) -> None:
            with self._lock:
                voice.pieces.append(text)
                if self._names and self._voices[:1] == [voice]:
                    self._show(voice)

        return piece

    def debate_started(self, event: DebateStarted) -> None:
        """Print the question."""
        with self._lock:
            self._print(Text(safe(event.sample.question), style="bold"))
            for i, choice in enumerate(event.sample.choices):
                self._print(Text(f"  {chr(ord('A') + i)}) {safe(choice)}"))

    def agents_cast(self, event: AgentsCast) -> None:
        """Remember the names."""
        with self._lock:
            self._names = {agent.id: safe(agent.persona.name) for agent in event.agents}

    def message_recorded(self, event: MessageRecorded) -> None:
        """Finish the message that was being shown, or print one that was not."""
        message = event.message
        with self._lock:
            if message.agent is not None:
                self._said.setdefault(message.agent, {})[message.id] = message
            if message.retracted:
                self._print(Text(f"  (round {message.round}, {self._who(message.agent)}: retracted)", style="yellow"))
                return
            if failed := message.data.get("madplug", {}).get("failed"):
                for id, why in failed.items():
                    self._voices = [v for v in self._voices if v.agent != int(id)]
                    self._print(Text(f"\n{self._names[int(id)]} is not heard: {safe(why)}", style="yellow"))
                return
            done = [v for v in self._voices if v.agent == message.agent
                    and (v.purpose == REVIEW) == (message.move == REVIEW)]  # the next stage may have begun
            self._voices = [v for v in self._voices if v not in done]
            if not any(v.begun for v in done):
                self._heading(message.round)
                self._head(message.agent, REVIEW if message.move == REVIEW else DISCUSS)
                self._write(safe(message.content.strip()))
            self._break_line()
            if letters := letters_of(message, self._names):
                self._print(Text(f"  ({safe(letters)})", style="dim"))
            self._answer(message)
            self._tell_chair()

    def _tell_chair(self) -> None:
        """Say that the chair writes, once all that it has read is shown."""
        if self._chairs and not self._voices:
            self._print(Text("\n(the chair is writing the answer)", style="dim"))
            self._chairs = False

    def _heading(self, round: int) -> None:
        """The heading of a round, unless it has begun."""
        if round > self._round:
            self._round = round
            self._print(Text(f"\nRound {round}", style="bold"))

    def _who(self, agent: int | None) -> str:
        return "(note)" if agent is None else self._names.get(agent, f"Agent {agent + 1}")

    def _head(self, agent: int | None, purpose: str = DISCUSS) -> None:
        self._print(Text())
        self._print(Text.assemble((self._who(agent), "cyan"), "" if purpose == DISCUSS else f" ({safe(purpose)})"))

    def _answer(self, message: Message) -> None:
        """What the message ends on, unless that is all it says, and what its agent had ended on before."""
        agent, key, answer = message.agent, message.key, message.answer
        if agent is None or key is None:
            return
        if answer is not None and answer.strip() == message.content.strip():
            return
        before = earlier_answers(self._said[agent].values()).get(message.id, key)
        changed = f"{safe(before)} -> " if before != key else ""
        self._print(Text.assemble("  ", (f"{changed}{safe(answer or key)}", "bold yellow" if changed else "bold")))

    def _show(self, voice: _Voice) -> None:
        """Print what has come of a reply."""
        if not voice.begun:
            voice.begun = True
            self._heading(voice.round)
            self._head(voice.agent, voice.purpose)
        while voice.pieces:
            self._write(safe(voice.pieces.popleft()))

    def _write(self, text: str) -> None:
        self.console.print(Text(text), end="", soft_wrap=True)
        self._column = 0 if text.endswith("\n") else self._column + len(text)

    def _break_line(self) -> None:
        if self._column:
            self.console.print()
            self._column = 0

    def _print(self, text: Text) -> None:
        self._break_line()
        self.console.print(text, soft_wrap=True)
