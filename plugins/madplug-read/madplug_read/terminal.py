"""The outline of a debate as text for a terminal. Everything that a model wrote is made safe to print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from madplug import Vote, count, dollars, plain, safe
from madplug_read.records import Change, Mark, MessageCard, Outline, RoundRow
from madplug_read.results import MOST_PARTS

COLOURS = ("bold cyan", "bold magenta", "bold yellow", "bold blue", "bold white", "bold bright_red",
           "bold bright_green", "bold bright_black")
"""By an answer's place in the order of appearance; the ninth has the first's again."""
GRADES: Mapping[bool | None, tuple[str, str]] = {True: ("right", "green"), False: ("wrong", "red"), None: ("", "")}
RECORDED = 100
"""Characters of what plugins recorded that are shown unless all of it is wanted."""
UNREAD = 3
"""Parts that could not be read that are named unless all of it is wanted."""
Calls = Mapping[str, Mapping[str, Any]]
"""Rows of `Reader.calls` by key."""


def debate_text(debate: Outline, prompts: Calls | None = None, *, data: bool = False) -> Iterator[Text]:
    """The lines of a debate.

    prompts: the calls to show in full behind each message. data: show in full what plugins recorded with messages and
    with the debate, such as sources and scores; otherwise its first characters.
    """
    page = _Page(debate, data=data)
    yield from page.head()
    if prompts is not None:
        yield from page.calls(debate.opening_calls, prompts)
    for row in debate.rounds:
        yield Text()
        yield Text(f"Round {row.number}" if row.number else "Before round 1", style="bold")
        for id in row.messages:
            yield from page.message(page.by_id[id])
            if prompts is not None:
                yield from page.calls(page.by_id[id].calls, prompts)
    if prompts is not None and debate.other_calls:
        yield Text()
        yield Text("Calls behind no message", style="bold")
        yield from page.calls(debate.other_calls, prompts)
    yield from page.table()
    yield from page.changes()
    yield from page.end()


class _Page:
    """One debate, and the names that its lines use."""

    def __init__(self, debate: Outline, *, data: bool) -> None:
        self.debate = debate
        self.data = data
        self.by_id = {m.id: m for m in debate.messages}
        self.names = {a.id: safe(a.name) for a in debate.agents}
        self.answers = {a.key: a for a in debate.answers}

    def head(self) -> Iterator[Text]:
        """Which debate it is, its question, and its agents."""
        d, sample = self.debate, self.debate.sample
        yield Text(f"{safe(d.cell)}, sample {safe(sample.id)}, repeat {d.repeat}", style="bold")
        yield Text()
        for passage in sample.context:
            yield from _indented(passage)
            yield Text()
        yield from _indented(sample.question)
        for i, choice in enumerate(sample.choices):
            yield Text(f"  {_letter(i)}) {safe(choice)}")
        if d.references:
            yield Text(f"  reference: {safe(' | '.join(d.references))}", style="dim")
        yield Text()
        for a in d.agents:
            facts = [a.role if a.role != "participant" else "", "" if a.votes else "does not vote", a.model or ""]
            told = ", ".join(safe(f) for f in facts if f)
            about = f": {safe(' '.join(a.description.split()))}" if a.description else ""
            yield Text.assemble((f"  {self.names[a.id]}", "bold"), f" ({told})" if told else "", about)

    def message(self, m: MessageCard) -> Iterator[Text]:
        """A message: its author and answer, what the author was shown, and its text."""
        who = self.names.get(m.agent, "?") if m.agent is not None else "(note)"
        line = Text.assemble((f"  {who}", "bold"), f", {safe(m.move)}" if m.agent is not None else "")
        if m.key is not None:
            line.append(" ").append(self.chip(m.key))
        elif m.agent is not None and m.answer != "":
            line.append(" no answer read", "dim")
        facts = []
        if m.confidence is not None:
            facts.append(f"confidence {m.confidence:.2f}")
        if m.agreement is not None:
            facts.append("agrees" if m.agreement else "disagrees")
        if m.changed:
            facts.append("changed its mind")
        if m.altered_for:
            facts.append(f"shown altered to {self.authors(m.altered_for)}")
        line.append(f"  {', '.join(facts)}" if facts else "")
        if m.retracted:
            line.append("  retracted", "yellow")
        yield line
        if m.seen:
            yield Text(f"    was shown {self.sources(m.seen)}", style="dim")
        for id, text in m.received.items():
            yield Text(f"    message {safe(id)} reached it as: {safe(text)}", style="yellow")
        yield from _indented(m.content.strip(), 4)
        yield from self.recorded(m.data, "data", 4)

    def recorded(self, table: Mapping[str, Any], name: str, by: int) -> Iterator[Text]:
        """What plugins recorded, in full or on one line."""
        if not table:
            return
        if self.data:
            yield Text(f"{' ' * by}{name}:", style="dim")
            yield from _indented(json.dumps(plain(table), indent=1, ensure_ascii=False), by + 1)
        else:
            text = json.dumps(plain(table), ensure_ascii=False)
            yield Text(f"{' ' * by}{name}: {_short(text, RECORDED)}", style="dim")

    def authors(self, ids: Sequence[int]) -> str:
        """The authors of these messages, each once."""
        return _and(dict.fromkeys(self.author(i) for i in ids))

    def author(self, id: int) -> str:
        """The author of a message."""
        m = self.by_id.get(id)
        return "a note" if m is None or m.agent is None else self.names.get(m.agent, "?")

    def sources(self, ids: Sequence[int]) -> str:
        """Messages by round and author: `round 1: Agent 1, Agent 2`."""
        rounds: dict[int, list[str]] = {}
        for id in ids:
            rounds.setdefault(self.by_id[id].round if id in self.by_id else 0, []).append(self.author(id))
        return "; ".join(f"round {n}: {', '.join(names)}" for n, names in rounds.items())

    def chip(self, key: str) -> Text:
        """An answer, coloured by its key, and whether it is right."""
        answer = self.answers[key]
        word, style = GRADES[answer.right]
        colour = COLOURS[answer.nth % len(COLOURS)]
        return Text.assemble((f"[{_short(key)}]", colour), (f" {word}" if word else "", style))

    def calls(self, keys: Iterable[str], prompts: Calls) -> Iterator[Text]:
        """What was sent and what came back."""
        for key in keys:
            call = prompts.get(key)
            if call is None:
                yield Text(f"    call {safe(key)}: not on record; the study that this one reuses or decides may have "
                           "it", style="yellow")
                continue
            who = self.names.get(call["agent"])
            yield Text(f"    --- {safe(str(call['purpose']))}{f', {who}' if who else ''}: sent to "
                       f"{safe(str(call['model']))}, {call['usage']['prompt']} + {call['usage']['completion']} tokens, "
                       f"{_number(call['seconds'])} s", style="blue")
            yield from _call(call)

    def table(self) -> Iterator[Text]:
        """Answers by agent and round, and how they stand after the last."""
        rows = [row for row in self.debate.rounds if row.marks]
        if not rows:
            return
        yield Text()
        yield Text("Answers by round", style="bold")
        widths = [max(len(f"{row.number}"), *(len(_mark(m).plain) for m in row.marks)) for row in rows]
        names = max(map(len, self.names.values()))
        head = "  ".join(f"{row.number:<{w}}" for row, w in zip(rows, widths, strict=True))
        yield Text(f"  {'':{names}}  {head}".rstrip(), style="dim")
        for i, agent in enumerate(self.debate.agents):
            line = Text(f"  {self.names[agent.id]:{names}}  ")
            for row, width in zip(rows, widths, strict=True):
                mark = self._coloured(row.marks[i])
                mark.pad_right(width - len(mark.plain) + 2)
                line.append(mark)
            line.rstrip()
            yield line
        yield Text(f"  answers after round {rows[-1].number}: {self.tally(rows[-1])}")

    def _coloured(self, mark: Mark) -> Text:
        text = _mark(mark)
        if mark.key is not None:
            text.stylize(COLOURS[self.answers[mark.key].nth % len(COLOURS)])
        return text

    def tally(self, row: RoundRow) -> str:
        """Voters by answer, most votes first."""
        counts = [f"{_short(key)} {n}" for key, n in sorted(row.tally.items(), key=lambda item: -item[1])]
        told = ", ".join([*counts, *([f"no answer {row.unread}"] if row.unread else [])]) or "none"
        earlier = _and(self.names[id] for id in row.earlier)
        return f"{told} ({earlier} unread: the answer before stands here)" if earlier else told

    def changes(self) -> Iterator[Text]:
        """Who changed their mind, and what they had been shown."""
        if not self.debate.changes:
            return
        yield Text()
        yield Text("Changes of mind", style="bold")
        for change in self.debate.changes:
            yield Text.assemble(f"  round {change.round}: {self.names[change.agent]} went from ",
                                self.chip(change.before), " to ", self.chip(change.after), self.cause(change),
                                self.altered(change))

    def cause(self, change: Change) -> str:
        """Whose answer an agent had been shown when it changed its mind."""
        if change.sources:
            return f", the answer of {self.authors(change.sources)}, which it was shown"
        if others := [self.names[agent] for agent in change.formerly if agent != change.agent]:
            return f", once the answer of {_and(others)}, but no longer of any agent that it was shown"
        if change.formerly:
            return ", an earlier answer of its own, which no other agent that it was shown gave"
        return ", an answer that nothing it was shown gave" if self.by_id[change.message].seen else ""

    def altered(self, change: Change) -> str:
        """That the agent was shown messages otherwise than they are on record."""
        some = self.by_id[change.message].altered
        return "; some of what it was shown reached it in a changed form" if some else ""

    def end(self) -> Iterator[Text]:
        """The decision, the votes and the cost."""
        d, decision = self.debate, self.debate.decision
        yield Text()
        for missing in d.missing:
            yield Text.assemble(("Partial", "bold yellow"), f": {safe(missing)}")
        if d.error is not None:
            yield Text.assemble(("Failed", "bold red"), f": {safe(d.error)}")
        elif decision is None:
            yield Text("Not decided yet: the debate is running, or was stopped", style="bold")
        else:
            yield from self._decision()
        yield from self.unread()
        yield from self.scores()
        yield from self.recorded(d.notes, "notes", 2)
        if d.state != "running":
            yield Text(f"  {_cost(d)}", style="dim")

    def unread(self) -> Iterator[Text]:
        """What could not be read."""
        some = self.debate.unread if self.data else self.debate.unread[:UNREAD]
        if some:
            rest = len(self.debate.unread) - len(some)
            more = f" and {count(rest, 'other')}" if rest else ""
            noted = any(part.startswith(("notes", "data")) for part in some)
            hint = "; --data shows what was recorded" if noted and not self.data else ""
            yield Text(f"  could not be read: {safe('; '.join(some))}{more}{hint}", style="yellow")

    def scores(self) -> Iterator[Text]:
        """The scores of the metrics; those of one that gives several on a line of their own."""
        groups: dict[str, dict[str, float | None]] = {}
        for name, value in self.debate.metrics.items():
            whole, _, part = name.rpartition(".") if name.count(".") > 1 else ("", "", name)
            groups.setdefault(whole, {})[part] = value
        for whole, parts in groups.items():
            told = parts if self.data or len(parts) <= MOST_PARTS or not whole else {
                part: value for part, value in parts.items() if value}
            line = ", ".join(f"{safe(part)} {_number(value)}" for part, value in told.items())
            rest = f"{len(parts) - len(told)} of {len(parts)} are 0 or have no value" if len(told) < len(parts) else ""
            yield Text(f"  {f'{safe(whole)}: ' if whole else ''}{'; '.join(filter(None, (line, rest)))}")

    def _decision(self) -> Iterator[Text]:
        decision = self.debate.decision
        assert decision is not None
        line = Text("Decision ", style="bold")
        how = [word for word, true in (("agreed", decision.agreed), ("tie", decision.tie),
                                       ("chosen by a fallback", decision.fallback)) if true]
        line.append(Text("none") if decision.key is None else self.chip(decision.key))
        line.append(f"  {', '.join(how)}" if how else "")
        line.append(f"  ({safe(decision.reason)})" if decision.reason else "")
        yield line
        if decision.answer is not None and decision.answer != decision.key:
            yield from _indented(decision.answer)
        if decision.votes:
            votes = (f"{self.names.get(v.agent, v.agent)}: {_ballot(v)}" for v in decision.votes)
            yield Text(f"  votes: {'; '.join(votes)}")
        if decision.scores:
            yield Text("  scores: " + ", ".join(f"{_short(k)} {_number(n)}" for k, n in decision.scores.items()))


def _call(call: Mapping[str, Any]) -> Iterator[Text]:
    request = call["request"] if isinstance(call["request"], Mapping) else {}
    for message in request.get("messages") or ():
        yield Text(f"    {safe(str(message.get('role')))}:", style="blue")
        yield from _indented(_content(message.get("content")), 6)
    yield Text("    --- reply", style="blue")
    yield from _indented(str(call["text"]), 6)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(p["text"]) if isinstance(p, Mapping) and "text" in p else "(image)" for p in parts)


def _indented(text: str, by: int = 2) -> Iterator[Text]:
    return (Text(f"{' ' * by}{line}".rstrip()) for line in safe(text).splitlines())


def _mark(mark: Mark) -> Text:
    """An answer in a table, with `*` after a change of mind."""
    if mark.key is None:
        return Text({"unread": "?", "none": "-", "silent": "."}.get(mark.state, "?"), style="dim")
    grade = {True: " ✓", False: " ✗", None: ""}[mark.right]
    return Text(f"{_short(mark.key, 12)}{grade}{' *' if mark.changed else ''}")


def _short(text: str, most: int = 60) -> str:
    line = " ".join(safe(text).split())
    return line if len(line) <= most else line[:most - 1] + "…"


def _number(value: float | None) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "-"


def _ballot(vote: Vote) -> str:
    if not vote.valid:
        return "invalid"
    weights = vote.weights
    return ", ".join(_short(k) if n == 1 else f"{_short(k)} ({_number(n)})" for k, n in weights.items()) or "abstained"


def _cost(d: Outline) -> str:
    cost = "" if not d.cost_usd else f", ${dollars(d.cost_usd)}"
    return f"{count(d.calls, 'call')}, {d.prompt:,} + {d.completion:,} tokens{cost}, {d.seconds:.1f} s"


def _and(names: Iterable[str]) -> str:
    *most, last = list(names) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _letter(i: int) -> str:
    return chr(65 + i) if i < 26 else str(i + 1)
