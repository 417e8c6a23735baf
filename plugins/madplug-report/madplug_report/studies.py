"""What studies say about themselves, without any of their plugins: names, cells, settings, and how far they are."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from madplug import Reader, UserError, open_study, pictures_in
from madplug.study import decided_by, decided_from, is_cell, read_text


@dataclass
class CellFacts:
    """One cell, as its study describes it."""

    study: int
    slug: str
    name: str = ""
    """How the report calls it: the slug, behind the study's name where that alone would be ambiguous."""
    named: bool = True
    """Whether the run file gives the cell its name; otherwise it is made of what a sweep sets."""
    oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that distinguish the cell within its study."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """The cell with all its components, if the study recorded it."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What metrics found about the cell as a whole."""
    proportions: Mapping[str, bool] = field(default_factory=dict)
    """Whether the scores of a metric are 0 or 1, as far as the study's summary says so."""

    @property
    def debate(self) -> Mapping[str, Any]:
        """The cell's `debate` table."""
        table: Mapping[str, Any] = self.resolved.get("debate") or {}
        return table

    @property
    def match(self) -> Mapping[str, str]:
        """The cell this one is matched to, and by what; empty where it is not."""
        return self.resolved.get("match") or {}

    @property
    def independent(self) -> bool:
        """Whether its agents answer once, unseen by each other, and the most common answer counts."""
        debate = self.debate
        use = {slot: str((debate.get(slot) or {}).get("use", "")) for slot in ("turns", "decision")}
        if use["decision"] not in {"baselines.most_common", "voting.plurality"}:
            return False
        if use["turns"] == "baselines.samples":
            return use["decision"] == "baselines.most_common"
        alike = len(debate.get("models") or [""]) == 1 and len(debate.get("styles") or [""]) == 1
        plain = not any(debate.get(part) for part in ("phases", "personas")) and not self.resolved.get("extensions")
        return use["turns"] == "turns.simultaneous" and debate.get("rounds") == 1 and alike and plain


@dataclass
class Study:
    """One study's directory."""

    folder: Path
    name: str
    planned: int | None
    repeats: int | None
    status: str | None
    problems: Sequence[str]
    manifest: Mapping[str, Any]
    cells: list[CellFacts]
    settings: Mapping[str, int]
    """Those of the study as a whole that are numbers or truth values, such as its seed."""
    title: str = ""
    """How the report calls it: its name, or where another has the same name, the end of its directory."""
    oracle: bool = False
    decided: str = ""
    """Why it ended early, if it was ended as soon as it was decided."""
    partial: int = 0
    """Debates that were decided after an agent had failed."""
    estimated: Sequence[str] = ()
    """Models whose tokens are estimated."""
    edited: Sequence[str] = ()
    """Plugins that changed between debates, a sentence each."""
    unfinished: str = ""
    """What is left of the study whose debates were decided again."""
    decisions: Sequence[str] = ()
    """By what debates were decided again, one time after the other."""
    source: str = ""
    """The directory of the study whose debates these were."""


def open_studies(folders: Sequence[Path]) -> list[Study]:
    """The studies in these directories. Raises `UserError` where there is none."""
    same = [folder for folder, count in Counter(map(os.path.realpath, folders)).items() if count > 1]
    if same:
        raise UserError(f"report: {same[0]} is named twice")
    studies = [_open(i, folder) for i, folder in enumerate(folders)]
    if any(key.partition(".")[0] == "dataset" for s in studies for cell in s.cells for key in cell.settings):
        for study in studies:
            _name_files(study)
    _name(studies)
    return studies


def _open(number: int, folder: Path) -> Study:
    with open_study(folder) as study:
        identity, planned = _table(study.fact("identity")), study.fact("planned")
        settings = _table(study.fact("settings"))
        problems, recorded = study.problems(), _slugs(study)
        partial, estimated = sum(cell.partial for cell in study.overview()), study.estimated()
        edited = study.edited()
    summary, manifest = _json(folder / "summary.json"), _json(folder / "manifest.json")
    of_cell = {str(c.get("cell")): c for c in summary.get("cells", ()) if isinstance(c, Mapping)}
    resolved, debated = _table(identity.get("cells")), _debated(identity)
    cells = []
    for slug in dict.fromkeys([*resolved, *of_cell, *recorded]):
        table, ended = _table(resolved.get(slug)), _table(of_cell.get(slug))
        table = table if is_cell(table) else {}
        table = {**table, **{key: value for key, value in _table(debated.get(slug)).items() if key == "dataset"}}
        own = settings.get(slug)
        cells.append(CellFacts(
            number, slug, slug, _is_named(slug, own), bool(table.get("oracle") or ended.get("oracle")), _table(own),
            resolved=table, figures=_figures(ended.get("figures"), problems),
            proportions=_proportions(ended)))
    repeats = identity.get("repeats")
    return Study(folder, str(summary.get("study") or _written(folder).get("name") or folder.resolve().name),
                 planned if isinstance(planned, int) else None, repeats if isinstance(repeats, int) else None,
                 summary.get("status"), problems, manifest, cells,
                 {key: value for key, value in identity.items() if isinstance(value, int)}, "",
                 any(c.oracle for c in cells),
                 str(summary.get("reason")) if summary.get("ending") == "decided" else "", partial, estimated, edited,
                 str(summary.get("reason")) if summary.get("ending") == "unfinished" else "",
                 by := decided_by(identity), decided_from(manifest) if by else "")


def parts_of(slug: str) -> list[str]:
    """The parts of a name that a sweep made, `KEY=VALUE` each."""
    return re.split(r",(?=[\w.-]+=)(?![^(]*\))", slug)


def _is_named(slug: str, settings: Any) -> bool:
    """Whether a run file gives a cell this name: one that is made begins with the cell's settings in their order, the
    last parts of their keys each, to which a new decision adds its own."""
    if not isinstance(settings, Mapping):
        return slug != "main" and "=" not in slug
    keys = [part.partition("=")[0] for part in parts_of(slug)]
    return slug != "main" and keys != [key.rpartition(".")[2] for key in settings][:len(keys)]


def _debated(identity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cells of the study that was run: one that decides its debates again says nothing of their data sets."""
    source = identity.get("recorded_from")
    return _debated(source) if isinstance(source, Mapping) else _table(identity.get("cells"))


def _figures(value: Any, problems: list[str]) -> Mapping[str, Any]:
    """What metrics found about a cell; a picture that cannot be drawn is a problem, and none of them is drawn."""
    found = _table(value)
    try:
        list(pictures_in(found))
    except ValueError as error:
        problems.append(f"pictures of a metric cannot be drawn: {error}")
        return {name: {k: v for k, v in _table(table).items() if k != "pictures"} for name, table in found.items()}
    return found


def _proportions(ended: Mapping[str, Any]) -> dict[str, bool]:
    return {name: bool(found.get("proportion")) for name, found in _table(ended.get("metrics")).items()
            if isinstance(found, Mapping) and "proportion" in found}


def _slugs(study: Reader) -> Iterable[str]:
    """Cells with debates, in the order of their names; for studies that keep no facts."""
    return dict.fromkeys(row["cell"] for row in study.figures()) if study.fact("identity") is None else ()


def _written(folder: Path) -> Mapping[str, Any]:
    """The study's expanded run file, as far as it is there."""
    from madplug.study import read

    with suppress(UserError, OSError):
        return read(folder / "study.toml", (), {})
    return {}


def _name_files(study: Study) -> None:
    """Give data sets the names of their files, which identities leave out; a directory may be on another machine."""
    cells = _written(study.folder).get("cells")
    written = {str(cell.get("name")): _table(cell.get("dataset")) for cell in cells if isinstance(cell, Mapping)} \
        if isinstance(cells, list) else {}
    given = {cell.slug: _table(cell.settings.get("dataset")).get("path") or cell.settings.get("dataset.path")
             or written.get(cell.slug, {}).get("path") for cell in study.cells}
    names = tails(path for path in given.values() if isinstance(path, str))
    for cell in study.cells:
        data, path = _table(cell.resolved.get("dataset")), given[cell.slug]
        if data and isinstance(path, str):
            cell.resolved = {**cell.resolved, "dataset": {**data, "path": names[path]}}


def tails(paths: Iterable[str]) -> dict[str, str]:
    """The ends of paths, as short as sets them apart: `easy.jsonl`, but `dev/quiz.jsonl` beside `test/quiz.jsonl`."""
    parts = {path: PurePosixPath(path).parts for path in paths}
    return {path: next(("/".join(own[-n:]) for n in range(1, len(own) + 1)
                        if sum(other[-n:] == own[-n:] for other in parts.values()) == 1), path)
            for path, own in parts.items()}


def _table(value: Any) -> Mapping[str, Any]:
    """The value if it is a table; a directory may be anybody's."""
    return value if isinstance(value, Mapping) else {}


def _json(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(read_text(path))
        return found if isinstance(found, Mapping) else {}
    return {}


def _name(studies: Sequence[Study]) -> None:
    """Give studies their titles, and put these before the names of cells that several studies use."""
    folders = {s.folder: s.folder.resolve().as_posix() for s in studies}
    ends = tails(folders.values())
    alone = len({s.name for s in studies}) == len(studies)
    slugs = Counter(c.slug for s in studies for c in s.cells)
    for study in studies:
        study.title = study.name if alone else ends[folders[study.folder]]
        for cell in study.cells:
            cell.name = cell.slug if slugs[cell.slug] == 1 else f"{study.title}/{cell.slug}"
