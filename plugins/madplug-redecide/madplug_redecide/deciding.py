"""Recorded debates decided again: no agent is asked, and calls that were answered before are not repeated."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madplug import Component, DebateId, Decision, ModelError, Problem, Sample, Usage, UserError, count, nearest_or_all
from madplug.store import Reader
from madplug.study import Registry, Resolver, confirm, dotted, overlay, read
from madplug_redecide.following import follow

if TYPE_CHECKING:
    from madplug.study import CellSetup, DebateState, ResolvedStudy

Table = dict[str, Any]
ORACLE = Problem("oracle", "belongs to the study that was run: run its run file with oracle = true and --output into "
                 "another directory, where reuse = [\"DIR\"] pays for no call twice, and decide the debates there")
_SPOKEN = re.compile(r"debate\.(agents|casting|paradigm|personas|styles|turns)\b")


def recorded_table(folder: Path, *, yes: bool = False) -> Table:
    """The expanded run file of a study. Raises `UserError` if there is none, or the user does not trust it.

    yes: the user has agreed to what a study that was begun by others names.
    """
    path = folder / "study.toml"
    if not path.is_file():
        raise UserError(f"{folder}: no study here (there is no study.toml)")
    table = read(path, (), {})
    cells = table.get("cells")
    if not (isinstance(cells, list) and all(isinstance(cell, dict) and isinstance(cell.get("debate"), dict)
                                            and isinstance(cell.get("name"), str) for cell in cells)):
        raise UserError(f"{path}: is not what madplug writes there: it has no cells with a name and a debate")
    confirm(folder, table, yes=yes)
    return table


def resolve_again(folder: Path, changes: Sequence[Mapping[str, Any]], name: str = "", patterns: Sequence[str] = ("*",),
                  there: Container[str] = (), *, phases: bool = True,
                  components: Sequence[type[Component]] = (), yes: bool = False) -> ResolvedStudy:
    """The study in a directory, with changes to every cell; a model that cannot be made is absent.

    name: of the new study; by default that of the old one. patterns: only the cells whose names match one, and those
    that they are matched to. there: the names of cells that are decided in any case. phases: False leaves them out.
    components: classes of a Python session that it may name. yes: see `recorded_table`.
    """
    table, registry = recorded_table(folder, yes=yes), Registry(classes=components)
    table["cells"] = chosen(table["cells"], patterns, there)
    if asked := list(_past(changes, table["cells"])):
        raise UserError(asked)
    table["name"] = name or table["name"]
    for i, cell in enumerate(table["cells"]):
        cell.pop("dataset", None)
        if not phases:
            cell["debate"].pop("phases", None)
        for change in changes:
            cell = overlay(cell, in_place(change, Path.cwd()))
        table["cells"][i] = cell
    try:
        return Resolver(table, folder, registry, recorded=True).resolve()
    except UserError as error:
        changed = {name for change in changes for name in change.get("models", ())}  # what is wrong there is the user's
        names = {name for problem in error.problems for name in _models_of(table) - changed
                 if re.search(rf"models\.{re.escape(name)}(?![\w-])", problem.place)}
        if not names or any("models." not in problem.place for problem in error.problems):
            told = [ORACLE] if any("oracle = true" in problem.message for problem in error.problems) else []
            raise UserError([*error.problems, *told, *way_out(error.problems, table["cells"])]) from None
        for cell in table["cells"]:
            cell["models"] |= {name: {"use": "redecide.absent"} for name in names & cell.get("models", {}).keys()}
        return Resolver(table, folder, registry, recorded=True).resolve()


def _past(changes: Sequence[Mapping[str, Any]], cells: Sequence[Table]) -> Iterator[Problem]:
    """Changes that recorded debates cannot follow: of what was asked, who spoke, and in which turns."""
    fewest, cell = min((cell["debate"].get("rounds", 1), cell["name"]) for cell in cells)
    for key, value in (pair for change in changes for pair in dotted(change)):
        if (first := key.partition(".")[0]) in ("dataset", "repeats", "seed"):
            yield Problem(f"--set {first}", "recorded debates are decided again with their own questions and seed")
        elif key == "oracle":
            yield ORACLE
        elif key == "debate.rounds" and isinstance(value, int) and value > fewest:
            yield Problem(f"--set {key}", f"recorded debates of cell '{cell}' end after {count(fewest, 'round')}; "
                          "fewer can be decided, and --cell chooses cells")
        elif _SPOKEN.match(key):
            yield Problem(f"--set {key}", "recorded debates keep what was said, and by whom; another decision, fewer "
                          "rounds, phases and metrics can be set")


def way_out(problems: Sequence[Problem], cells: Sequence[Table]) -> Iterator[Problem]:
    """How to leave out the cells that have problems, if others have none."""
    places = [problem.place for problem in problems]
    fine = [cell["name"] for cell in cells if all(place.startswith("cell") and f"'{name}'" not in place
            for place in places for name in (cell["name"], (cell.get("match") or {}).get("cell")))]
    if fine:
        yield Problem("", f"the other cells can be decided: {shlex.join(f'--cell={name}' for name in fine)}")


def keep_settings(resolved: ResolvedStudy, recorded: Reader, changes: Sequence[Mapping[str, Any]] = ()) -> None:
    """Give the cells the settings that set them apart when the study was run, and the changes; an expanded cell
    spells out every option of every component. A data set that is not there any more is a setting of each cell if it
    was one of any."""
    fact = recorded.fact("settings")
    told = fact if isinstance(fact, Mapping) else {}
    before = {slug: own for slug, own in told.items() if isinstance(own, Mapping)}
    changed = {key: value for change in changes for key, value in dotted(change)}
    of_data = {key for own in before.values() for key in own if key.partition(".")[0] == "dataset"}
    written = {cell["name"]: cell for cell in read(recorded.folder / "study.toml", (), {})["cells"]}
    for cell in resolved.plan.cells:
        own = before.get(cell.slug, {})  # first: a name that a sweep made has these in their order
        data = {key: value for key in of_data if key not in own and (value := _at(written[cell.slug], key)) is not None}
        cell.settings = {**own, **(data if cell.dataset is None else {}), **changed}


def _at(table: Any, key: str) -> Any:
    """The value at a dotted key of a run file, or None."""
    return reduce(lambda inner, part: inner.get(part) if isinstance(inner, dict) else None, key.split("."), table)


def _models_of(table: Table) -> set[str]:
    return {name for cell in table["cells"] for name in cell.get("models", {})}


def in_place(value: Any, folder: Path) -> Any:
    """A value of a run file in which local files have absolute paths. folder: what they are relative to."""
    if isinstance(value, Mapping):
        return {key: in_place(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_place(inner, folder) for inner in value]
    return absolute(value, folder) if isinstance(value, str) else value


def file_of(use: str, folder: Path) -> Path | None:
    """The file in which a `use` names a class, `./mine.py:Firmest`, or None. folder: what its path is relative to."""
    path, _, name = use.rpartition(":")
    return (folder / path).absolute() if path.endswith(".py") and name.isidentifier() else None


def absolute(use: str, folder: Path) -> str:
    """A `use` that names a file, with an absolute path; any other name as it is."""
    path = file_of(use, folder)
    return use if path is None else f"{path}:{use.rpartition(':')[2]}"


def chosen(cells: Sequence[Table], patterns: Sequence[str], there: Container[str] = ()) -> list[Table]:
    """The cells whose names match a pattern (`*`, `?`, `[...]`, or the name itself) or are in `there`, and those they
    are matched to.

    Raises `UserError` if there is none for a pattern.
    """
    every = [cell["name"] for cell in cells]
    names = {name for name in every if name in there}
    for pattern in patterns:
        found = {name for name in every if pattern == name or fnmatchcase(name, pattern)}
        if not found:
            raise UserError(f"--cell {pattern}: no cell has such a name{nearest_or_all(pattern, every)}")
        names |= found
    partners = {cell["match"]["cell"] for cell in cells if cell["name"] in names and cell.get("match")}
    return [cell for cell in cells if cell["name"] in names | partners]


def most_calls(resolved: ResolvedStudy, recorded: Reader, *, deciding: bool = True) -> int:
    """The most model calls that deciding again can make: those of decisions, phases and metrics.

    deciding: False for scoring, which makes only those of metrics.
    """
    debates: dict[str, int] = {}
    for row in recorded.figures():
        debates[row["cell"]] = debates.get(row["cell"], 0) + (row["error"] is None)
    # A matched cell had as many agents as the other one's debates allowed.
    agents = dict(recorded.rows("SELECT cell, max(json_array_length(agents)) FROM debates WHERE json_valid(agents) "
                                "GROUP BY cell"))
    return sum(debates.get(cell.slug, 0) * sum(
        component.calls(replace(cell.plan, agents=max(cell.plan.agents, agents.get(cell.slug, 0))))
        for component in (*((cell.decision, *cell.phases) if deciding else ()), *cell.metrics.values()))
        for cell in resolved.plan.cells)


def without_paying(resolved: ResolvedStudy) -> None:
    """Let the study end before its first call that is not on record."""
    resolved.plan = replace(resolved.plan, limits=resolved.plan.limits.model_copy(update={"calls": 0}))


class Redecider:
    """Takes samples and debates from a record and lets another decision protocol decide them.

    reused: records of other studies, whose calls these debates have used.
    """

    def __init__(self, recorded: Reader, *reused: Reader) -> None:
        self.recorded = recorded
        self._records = recorded, *reused

    async def samples(self, setup: CellSetup, repeat: int) -> AsyncIterator[tuple[Sample, tuple[str, ...]]]:
        """The samples of a cell's debates that have ended, with or without an error."""
        for result in self.recorded.debates(setup.cell.slug):
            if result.repeat == repeat and (result.decision or result.error):
                yield result.sample, result.references

    async def run(self, state: DebateState) -> Decision:
        """Decide one recorded debate. Raises `ModelError` if the recorded debate failed."""
        result = self.recorded.debate(DebateId(state.cell.slug, state.repeat, state.sample.id))
        if result is None:
            raise ModelError("the debate is no longer on record")
        if result.error:
            raise ModelError(f"the recorded debate failed: {result.error}")
        return await follow(state, result, self._spent)

    def _spent(self, key: str) -> tuple[Usage, int]:
        call = next((call for records in self._records if (call := records.call(key))), None)
        return (Usage(cost_usd=None), 0) if call is None else (call.completion.usage, call.retries)
