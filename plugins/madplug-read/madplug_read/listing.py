"""What `madplug read` prints: one debate in full, or a list of debates."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from madplug import UserError, count, listed, nearest, safe, to_json
from madplug.store import CellOverview, DebateId, Reader, open_study
from madplug_read.grading import Grader
from madplug_read.outlines import outline
from madplug_read.records import Outline, natural
from madplug_read.studies import saw_references
from madplug_read.terminal import GRADES, debate_text

LISTED = 50
"""Debates that a list in the terminal has, unless all are wanted."""


@dataclass(frozen=True)
class Wanted:
    """Which debates, and how they are shown."""

    sample: str | None = None
    cell: str | None = None
    repeat: int | None = None
    traits: Collection[str] = ()
    """Only debates with all of these."""
    prompts: bool = False
    data: bool = False
    """Show what plugins recorded in full."""
    as_json: bool = False
    all: bool = False
    """List every debate, not only the first `LISTED`; JSON is never cut short."""


def read_study(folder: Path, wanted: Wanted, console: Console) -> None:
    """Print the debates that are wanted: in full if a sample is named or there is one only, otherwise one line each."""
    with open_study(folder) as study:
        cells = study.overview()
        names = [cell.cell for cell in cells]
        if wanted.cell is not None and wanted.cell not in names:
            raise UserError(f"--cell {wanted.cell}: {folder} has no such cell{nearest(wanted.cell, names)}; cells are "
                            f"{listed(names, near=wanted.cell) or 'not there yet'}")
        wanted = _with_sample(study, folder, cells, wanted)
        cells = [cell for cell in cells if wanted.cell in (None, cell.cell)]
        _check(study, folder, cells, wanted)
        ids = (id for id in _ids(study, cells, wanted) if _in_repeat(id, wanted))
        found = _outlines(study, Grader(study), ids, wanted)
        if wanted.as_json:
            _print_json(study, found, wanted, console)
            return
        if saw_references(study):
            console.print("oracle = true: components saw the references", style="yellow", highlight=False)
        if wanted.sample is None:
            _print_list(found, cells, wanted, console)
        else:
            _print_in_full(study, found, wanted, console)


def _with_sample(study: Reader, folder: Path, cells: Sequence[CellOverview], wanted: Wanted) -> Wanted:
    """What is wanted, with the sample of a study's only debate. Raises `UserError` if a list cannot have it."""
    only = sum(cell.done + cell.failed + cell.running for cell in cells) == 1 and study.fact("planned") in (None, 1)
    if wanted.sample is None and only and not wanted.traits and not wanted.as_json:
        return replace(wanted, sample=next(study.ids()).sample)
    if wanted.sample is None and (wanted.prompts or wanted.data):
        option = "--prompts" if wanted.prompts else "--data"
        raise UserError(f"{option}: is for debates shown in full; name a SAMPLE: madplug read {folder} SAMPLE {option}")
    return wanted


def _ids(study: Reader, cells: Sequence[CellOverview], wanted: Wanted) -> Iterator[DebateId]:
    for cell in cells:
        if wanted.sample is not None:
            yield from (DebateId(cell.cell, repeat, wanted.sample) for repeat in range(cell.repeats))
        else:
            yield from sorted(study.ids(cell.cell), key=lambda id: (id.repeat, natural(id.sample)))


def _check(study: Reader, folder: Path, cells: Sequence[CellOverview], wanted: Wanted) -> None:
    """Raise `UserError` if there is no debate on the sample, with the nearest one that there is."""
    if wanted.sample is None or any(study.debate(id) for id in _ids(study, cells, wanted) if _in_repeat(id, wanted)):
        return
    where = [f" in cell '{wanted.cell}'" if wanted.cell is not None else "",
             f" with repeat {wanted.repeat}" if wanted.repeat is not None else ""]
    others = dict.fromkeys(id.sample for id in study.ids())
    hint = "" if wanted.sample in others else nearest(wanted.sample, list(others))
    raise UserError(f"{folder}: there is no debate on sample '{wanted.sample}'{''.join(where)}{hint}; "
                    f"madplug read {folder} lists the debates")


def _in_repeat(id: DebateId, wanted: Wanted) -> bool:
    return wanted.repeat in (None, id.repeat)


def _outlines(study: Reader, grader: Grader, ids: Iterator[DebateId], wanted: Wanted) -> Iterator[Outline]:
    spending = study.spent if wanted.as_json and wanted.sample is not None else None
    for id in ids:
        result = study.debate(id)
        if result is None:  # not run yet
            continue
        found = outline(result, grader.grade(result), spending)
        if set(wanted.traits) <= set(found.traits):
            yield found


def _print_list(found: Iterator[Outline], cells: Sequence[CellOverview], wanted: Wanted, console: Console) -> None:
    """A line for each debate; without `all` and a selection, no more are read than are listed."""
    number = 0
    for debate in islice(found, None if wanted.all else LISTED):
        number += 1
        console.print(_line(debate), soft_wrap=True)
    if not number:
        console.print("no such debates", highlight=False)
        return
    total = sum(cell.done + cell.failed + cell.running for cell in cells)
    selected = bool(wanted.traits) or wanted.repeat is not None
    matching = number + sum(1 for _ in found) if selected else total  # how many match takes reading all of them
    of = f"{matching:,} of {count(total, 'debate')}" if selected else count(total, "debate")
    if number == matching:
        said = f"{of}; madplug read DIR SAMPLE shows one in full"
    elif selected:
        said = f"{of}, the first {number} here; --all lists every one"
    else:
        said = f"the first {number} of {of}; --all lists every one"
    console.print(said, style="dim", highlight=False, soft_wrap=True)


def _print_in_full(study: Reader, found: Iterator[Outline], wanted: Wanted, console: Console) -> None:
    number = 0
    for number, debate in enumerate(found, 1):
        if number > 1:
            console.print("\n" + "=" * 60, highlight=False)
        prompts = _prompts(study, debate) if wanted.prompts else None
        for line in debate_text(debate, prompts, data=wanted.data):
            console.print(line, soft_wrap=not console.is_terminal)
    if not number:
        console.print("no such debates", highlight=False)


def _print_json(study: Reader, found: Iterator[Outline], wanted: Wanted, console: Console) -> None:
    """One object per line: outlines of the debates on a sample, else what a list shows."""
    for debate in found:
        row: dict[str, Any] = json.loads(to_json(debate if wanted.sample is not None else _row(debate)))
        if wanted.prompts and wanted.sample is not None:
            row["prompts"] = _prompts(study, debate)
        console.file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _prompts(study: Reader, debate: Outline) -> dict[str, Any]:
    keys = [*debate.opening_calls, *(key for m in debate.messages for key in m.calls), *debate.other_calls]
    return {call["key"]: call for call in study.calls(keys=dict.fromkeys(keys))}


def _row(debate: Outline) -> dict[str, Any]:
    decision = debate.decision
    return {"cell": debate.cell, "repeat": debate.repeat, "sample": debate.sample.id, "state": debate.state,
            "answer": decision.key if decision else None, "right": debate.right, "traits": debate.traits,
            "rounds": len([row for row in debate.rounds if row.number]), "changes": len(debate.changes)}


def _line(debate: Outline) -> Text:
    """A debate in a list: where it is, how it ended, what there is to see."""
    decision = debate.decision
    end: str = {"running": "not ended", "done": "undecided"}.get(debate.state, debate.state)
    if decision is not None and decision.key is not None and debate.state == "done":
        end = " ".join(safe(decision.key).split())[:40]
    end = f"partial: {end}" if debate.missing else end
    word, style = GRADES[debate.right]
    changes = f", {count(len(debate.changes), 'change')} of mind" if debate.changes else ""
    error = f": {safe(' '.join(debate.error.split()))}" if debate.error else ""
    return Text.assemble(f"{safe(debate.cell)}  {safe(debate.sample.id)}"
                         + (f"  repeat {debate.repeat}" if debate.repeat else ""), f"  {end}",
                         (f" {word}" if word else "", style), changes, error)
