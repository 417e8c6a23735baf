"""The debates of studies as columns of numbers, read once, one at a time."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from madplug import UserError, open_study
from madplug.store import has_study
from madplug_report.alterations import Alterations
from madplug_report.prefixes import Prefixes
from madplug_report.questions import Questions
from madplug_report.rounds import CellRounds, right_answers
from madplug_report.spending import Calls, Price, Tokenizer, Used
from madplug_report.studies import CellFacts, Study

ACCURACY = "qa.accuracy"
UNKNOWN = math.nan
_TEXTS = msgspec.json.Decoder(list[str]).decode
UNPARSED = '"unparsed":true'
INVALID = '"valid":false'
"""As they are written in a record; text of a model cannot contain them, because its quotes are escaped there."""
SPENT = ("seconds", "calls", "tokens", "written", "rounds")
"""Of these, the least is the best."""
MEASURES = (*SPENT, "agreed")
"""What is on record of every debate and can be asked for like a metric."""
ENDED = "ended"
"""`ended.3` is whether a debate ended with round 3."""
SUM = "sum"
ANSWERABLE = {"answerable": 1, "unanswerable": 0}
_BATCHED = "SELECT key FROM calls NATURAL JOIN contents WHERE raw LIKE '%\"batch\":%'"
"""Calls that were answered in a batch, as their account of the usage says."""
FAILED, UNDECIDED, FALLBACK, DECIDED, AGREED = range(5)
"""How a debate ended."""


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    pair: Any = None


class _Sample(msgspec.Struct, gc=False):
    id: str
    question: str = ""
    choices: list[str] = []
    group: str = ""
    metadata: _Metadata = _Metadata()


_SAMPLE = msgspec.json.Decoder(_Sample).decode


class _Persona(msgspec.Struct, gc=False):
    role: str = ""
    votes: bool = True


class _Agent(msgspec.Struct, gc=False):
    id: int
    persona: _Persona


class SaidMessage(msgspec.Struct, gc=False):
    """What the report needs of a message."""

    id: int
    round: int
    agent: int | None
    move: str
    wave: int = 0
    stage: str = ""
    answer: str | None = None
    key: str | None = None
    retracted: bool = False
    seen: list[int] = []
    calls: msgspec.Raw = msgspec.Raw(b"[]")
    data: msgspec.Raw = msgspec.Raw(b"{}")


class _Decision(msgspec.Struct, gc=False):
    key: str | None
    agreed: bool = False
    fallback: bool = False


class _Tokens(msgspec.Struct, gc=False):
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost_usd: float | None = None


class _Debate(msgspec.Struct, gc=False):
    cell: str
    repeat: int
    sample: msgspec.Raw
    references: list[str]
    agents: list[_Agent]
    messages: list[SaidMessage]
    decision: _Decision | None
    metrics: dict[str, float | None]
    calls: int
    tokens: _Tokens
    seconds: float
    error: str | None
    opening_calls: msgspec.Raw = msgspec.Raw(b"[]")
    other_calls: msgspec.Raw = msgspec.Raw(b"[]")
    notes: msgspec.Raw = msgspec.Raw(b"{}")
    scored_by: dict[str, str] = {}


class Debates:
    """Every debate of the studies as a row of numbers, and what goes on in the rounds of each cell."""

    def __init__(self, studies: Sequence[Study], tokenizer: Tokenizer | None = None,
                 prices: Sequence[Price] = (), *, prefixes: bool = False) -> None:
        self.cells: list[CellFacts] = [cell for study in studies for cell in study.cells]
        self.rounds = [CellRounds(cell.independent) for cell in self.cells]
        self.alterations = [Alterations() for _ in self.cells]
        self.metrics: dict[str, array[float]] = {}
        self.cell, self.repeat, self.end = array("i"), array("i"), array("b")
        self.answerable, self.group = array("b"), array("i")
        self.groups: dict[str, int] = {}
        """The groups of questions, by number."""
        self.rounds_run, self.calls = array("i"), array("q")
        self.read, self.cached, self.written = array("q"), array("q"), array("q")
        self.seconds, self.cost = array("d"), array("d")
        self.versions: list[set[tuple[str, str]]] = [set() for _ in self.cells]
        """By cell, the metrics that have scored its debates, each with a digest of its options and its code."""
        self._questions = Questions()
        self.spent, self.used = Calls(prices), Used()
        for folder in (*(study.folder for study in studies), *_reused(studies)):
            self._read_calls(folder, tokenizer, prefixes=prefixes)
        self.spent.finish(len(studies))
        self._decode = msgspec.json.Decoder(_Debate).decode
        for number, study in enumerate(studies):
            self._read(number, study)
        self.sample, self.sample_names = self._questions.number()
        self.proportions = {name: self._is_proportion(name) for name in self.metrics}

    def __len__(self) -> int:
        return len(self.cell)

    def _read_calls(self, folder: Path, tokenizer: Tokenizer | None, *, prefixes: bool) -> None:
        with open_study(folder) as reader:
            batched = reader.rows(_BATCHED) if reader.fact("batches") else ()
            self.spent.add(reader.call_figures(), {key for key, in batched})
            if tokenizer is not None:
                self.spent.recount((str(row["text"]) for row in reader.calls()), tokenizer)
            if prefixes:
                self.spent.find_prefixes(reader.calls(), Prefixes(tokenizer.encode if tokenizer else None))

    def _read(self, number: int, study: Study) -> None:
        position = {c.slug: i for i, c in enumerate(self.cells) if c.study == number}
        with open_study(study.folder) as reader:
            for record in reader.records():
                try:
                    debate = self._read_one(record)
                    cell = position.get(debate.cell)
                    if cell is None:  # one that appeared since the study was opened waits for the next report
                        continue
                    self._add(cell, debate)
                except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
                    raise UserError(f"{study.folder}: study.db: the record {record[:100]}... cannot be read: "
                                    f"{error}") from None
                self.rounds[cell].malformed += UNPARSED in record or (INVALID in record and _all_answer(debate))
                if UNPARSED in record:
                    self.rounds[cell].flagged += sum(UNPARSED.encode() in bytes(m.data) for m in debate.messages)

    def _read_one(self, record: str) -> _Debate:
        try:
            return self._decode(record)
        except msgspec.DecodeError:  # NaN and Infinity, which are not JSON but may occur in it
            return self._decode(json.dumps(json.loads(record, parse_constant=lambda _: None), ensure_ascii=False,
                                           separators=(",", ":")))

    def _add(self, cell: int, debate: _Debate) -> None:
        self._add_metrics(debate)
        self.versions[cell].update(debate.scored_by.items())
        self.cell.append(cell)
        self.repeat.append(debate.repeat)
        self._add_question(cell, debate)
        self.end.append(_end(debate))
        self.answerable.append(bool(debate.references))
        self.calls.append(debate.calls)
        self.read.append(debate.tokens.prompt)
        self.cached.append(debate.tokens.cached)
        self.written.append(debate.tokens.completion)
        self.seconds.append(debate.seconds)
        self.cost.append(UNKNOWN if debate.tokens.cost_usd is None else debate.tokens.cost_usd)
        if len(self.spent):
            self.used.add(cell, {a.id: a.persona.role for a in debate.agents}, _keys(debate.opening_calls),
                          ((m.round, m.wave, m.retracted, m.agent, _keys(m.calls)) for m in debate.messages),
                          _keys(debate.other_calls))
        voters = {a.id for a in debate.agents if a.persona.votes}
        said = [m for m in debate.messages if not m.retracted]
        self.rounds_run.append(max((m.round for m in said), default=0))
        if debate.error is None:
            score = debate.metrics.get(first_metric(debate.metrics) or "")
            key = debate.decision.key if debate.decision else None
            self.rounds[cell].add(said, voters, debate.references, key, score)
            if b'"alterations"' in bytes(debate.notes):
                self.alterations[cell].add(debate.notes, right_answers(debate.references, key, score))

    def _add_metrics(self, debate: _Debate) -> None:
        rows = len(self.cell)
        for name, value in debate.metrics.items():
            if name not in self.metrics:
                self.metrics[name] = array("d", [UNKNOWN]) * rows
            known = value is not None and math.isfinite(value)
            self.metrics[name].append(value if known else UNKNOWN)  # type: ignore[arg-type]
        for column in self.metrics.values():
            if len(column) == rows:
                column.append(UNKNOWN)

    def add_measure(self, name: str) -> None:
        """Add what is on record of every debate as a metric, if this is the name of something that is.

        `agreed`, `rounds` and `ended.N` are of debates that did not fail; `METRIC.answerable` and `.unanswerable` of
        those whose question has, or has not, a reference; `METRIC.GROUP` of those on questions of a group. `METRIC.sum`
        adds up a repeat's debates that have the metric.
        """
        if name in self.metrics:
            return
        of_group = [(metric, group) for metric in self.metrics for group in self.groups if name == f"{metric}.{group}"]
        base, part = of_group[0] if of_group else name.rpartition(".")[::2]
        if name in MEASURES:
            found, only = self._measure(name), np.asarray(self.end) != FAILED
            only |= name not in ("agreed", "rounds")
        elif base == ENDED and part.isdecimal():
            found, only = np.asarray(self.rounds_run) == int(part), np.asarray(self.end) != FAILED
        elif of_group:
            found, only = np.asarray(self.metrics[base]), np.asarray(self.group) == self.groups[part]
        elif part == SUM and base in self.metrics:
            found, only = np.nan_to_num(np.asarray(self.metrics[base])) * self._samples_of_cells(), True
        elif part in ANSWERABLE and base in self.metrics:
            found, only = np.asarray(self.metrics[base]), np.asarray(self.answerable) == ANSWERABLE[part]
        else:
            return
        self.metrics[name] = array("d", np.where(only, found, UNKNOWN).tobytes())
        is_sum = part == SUM and not of_group
        shares = self.proportions[base] and not is_sum if base in self.metrics else name == "agreed" or base == ENDED
        self.proportions[name] = shares

    def _samples_of_cells(self) -> Any:
        """By debate, how many samples its cell has: a mean of that many times the values is their sum."""
        cell, sample = np.asarray(self.cell), np.asarray(self.sample)
        return np.bincount(np.unique(np.stack([cell, sample]), axis=1)[0])[cell]

    def _measure(self, name: str) -> Any:
        if name == "agreed":
            return np.asarray(self.end) == AGREED
        if name == "tokens":
            return np.asarray(self.read) + np.asarray(self.written)
        return np.asarray(self.rounds_run if name == "rounds" else getattr(self, name))

    def _is_proportion(self, name: str) -> bool:
        """Whether the scores are right or wrong; where no summary says so, whether they look like it."""
        said = [cell.proportions[name] for cell in self.cells if name in cell.proportions]
        found = {value for value in self.metrics[name] if not math.isnan(value)}
        if said:
            return any(said) and all(0 <= value <= 1 for value in found)  # a directory may be anybody's
        return found <= {0.0, 1.0} and (0.0 in found or name == ACCURACY)  # a count may be 1 everywhere

    def _add_question(self, cell: int, debate: _Debate) -> None:
        """Add the question: the same in two cells only if its text and choices are the same, and in two studies only
        if all of the sample and its references are.

        The two presentations of a pair count as one question, because they are not independent.
        """
        sample = _SAMPLE(debate.sample)
        pair = sample.metadata.pair
        self.group.append(self.groups.setdefault(sample.group, len(self.groups)))
        self._questions.add(sample.id if pair is None else str(pair), (sample.question, *sorted(sample.choices)),
                            self.cells[cell].study, (bytes(debate.sample), *debate.references))


def _reused(studies: Sequence[Study]) -> list[Path]:
    """The other studies whose answered calls these have used, or whose debates they decide, if they are still there."""
    own = {study.folder.resolve() for study in studies}
    found = (path for study in studies for run in study.manifest.get("runs", ()) if isinstance(run, Mapping)
             for path in run.get("reuse", ()))
    return [path for path in map(Path, dict.fromkeys(found)) if path.resolve() not in own and has_study(path)]


def _keys(raw: msgspec.Raw) -> list[int]:
    """The first eight bytes of calls' keys, from a JSON list of hexadecimal digits."""
    text = bytes(raw)
    return [] if text == b"[]" else [int(key[:16].ljust(16, "0"), 16) for key in _TEXTS(text)]


def _end(debate: _Debate) -> int:
    if debate.error is not None or debate.decision is None:
        return FAILED
    if debate.decision.key is None:
        return UNDECIDED
    return AGREED if debate.decision.agreed else FALLBACK if debate.decision.fallback else DECIDED


def _all_answer(debate: _Debate) -> bool:
    """Whether every message of the last round gives an answer; a vote that is not valid is then a ballot of its own."""
    said = [m for m in debate.messages if not m.retracted]
    return all(m.key is not None for m in said if m.round == said[-1].round)


def first_metric(metrics: Mapping[str, float | None]) -> str | None:
    """The metric to look at first: accuracy, or the first that is a share."""
    if metrics.get(ACCURACY) is not None:
        return ACCURACY
    return next((name for name, value in metrics.items() if value is not None and 0 <= value <= 1), None)
