"""What the cells of a report differ in: factors with short levels, and labels of only what differs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from madplug_report.studies import CellFacts, Study, parts_of, tails

STUDY, MATCH = "study", "match"
ABSENT = "–"
FILES = "the file's"
"""The paradigm of cells that name none."""
MATCHED = "matched"
"""The agents of a cell that is matched to another: as many as that one's debates allow."""
_TEXT = 32
"""A longer value, such as a prompt, is cut."""
FILE = re.compile(r"^[./]|\.(jsonl?|csv|parquet|gguf)$")
_MISSING: Any = object()
_SAMPLES = {"use", "path", "subset", "subsets", "config", "split", "id", "name", "revision"}
"""Options of a data set that select other questions."""


@dataclass(frozen=True)
class Factor:
    """One thing in which cells differ."""

    name: str
    """Short: `decision`, `agents`, `visibility.window`."""
    key: str
    """Where it stands in the run file, such as `debate.decision`."""
    levels: tuple[str, ...]
    """In the order of the run file."""
    uses: Mapping[str, str] = field(default_factory=dict)
    """The component of each level that names one, such as `voting.simple`."""

    @property
    def is_data(self) -> bool:
        """Whether its levels are different questions."""
        first, _, rest = self.key.partition(".")
        return first == "dataset" and (not rest or rest in _SAMPLES)

    @property
    def is_model(self) -> bool:
        """Whether its levels are different models."""
        return self.key == "debate.models" or (self.key.split(".")[0] == "models" and (
            self.key.count(".") == 1 or self.key.endswith((".model", ".weights", ".use"))))

    @property
    def numeric(self) -> bool:
        """Whether all levels are numbers."""
        return all(number(level) is not None for level in self.levels)

    def families(self) -> dict[str, list[str]]:
        """Levels by the plugin whose component they are, where a plugin has several: `voting`, `consensus`."""
        found: dict[str, list[str]] = {}
        for level in self.levels:
            found.setdefault(_plugin(self.uses.get(level, "")), []).append(level)
        several = {name: levels for name, levels in found.items() if name and len(levels) > 1}
        return several if len(found) > 1 else {}


@dataclass(frozen=True)
class Factors:
    """The factors of a report's cells."""

    factors: tuple[Factor, ...]
    of_cell: tuple[Mapping[str, str], ...]
    """By cell: the level of each factor."""
    labels: tuple[str, ...]
    """By cell: what sets it apart from the others, and no two alike."""
    named: tuple[bool, ...] = ()
    """By cell: whether the run file gives it a name."""

    def __getitem__(self, name: str) -> Factor:
        return next(f for f in self.factors if f.name == name)

    def names(self) -> list[str]:
        """The names of the factors."""
        return [f.name for f in self.factors]


def number(level: str) -> float | None:
    """The level as a number, or None."""
    try:
        return float(level)
    except ValueError:
        return None


def find_factors(cells: Sequence[CellFacts], studies: Sequence[Study] = ()) -> Factors:
    """The factors of cells: what the studies swept, and what listed cells set.

    studies: those of the cells. The study is a factor where names differ, or where nothing else sets the cells of
    several directories apart. What a cell of one name has otherwise in another directory, such as its model, is one.
    The budget that a cell is matched to is one only where nothing else sets cells of a study apart.
    """
    settings = [{key: value for key, value in _settings(cell, cells).items() if key.partition(".")[0] != MATCH}
                for cell in cells]
    keys = dict.fromkeys(key for table in settings for key in table)
    keys |= {key: None for key in _between(cells) if not any(_overlap(key, own) for own in keys)}
    found: list[tuple[Factor, list[str]]] = []
    values = {key: [_value(cell, table, key) for cell, table in zip(cells, settings, strict=True)] for key in keys}
    values = {key: column for key, column in values.items() if len({_dumped(v) for v in column}) > 1}
    names = _names(list(values))
    for key, column in values.items():
        levels = label_levels(column)
        if key == "debate.paradigm":  # what the file's own [debate] names is recorded by its parts
            levels = [FILES if level == ABSENT else level for level in levels]
        if key == "debate.agents":
            levels = [MATCHED if cell.match and key not in cell.settings else level
                      for cell, level in zip(cells, levels, strict=True)]
        uses = {level: use for level, value in zip(levels, column, strict=True) if (use := _use(value))}
        found.append((Factor(names[key], key, tuple(dict.fromkeys(levels)), uses), levels))
    own = [studies[cell.study] for cell in cells] if studies else []
    if len({study.name for study in own}) > 1 or (own and _alike(found, [cell.study for cell in cells])):
        titles = [study.title for study in own]
        found.insert(0, (Factor(STUDY, STUDY, tuple(dict.fromkeys(titles))), titles))
    budgets = [" by ".join(map(str, cell.match.values())) or ABSENT for cell in cells]
    if _alike(found, budgets):
        found.append((Factor(MATCH, MATCH, tuple(dict.fromkeys(budgets))), budgets))
    factors = tuple(factor for factor, _ in found)
    of_cell = tuple({factor.name: levels[i] for factor, levels in found} for i in range(len(cells)))
    return Factors(factors, of_cell, tuple(_labels(cells, factors, of_cell)), tuple(cell.named for cell in cells))


def _between(cells: Sequence[CellFacts]) -> dict[str, None]:
    """The settings in which a cell differs from the one of its name in another study."""
    same: dict[str, list[CellFacts]] = {}
    for cell in cells:
        same.setdefault(cell.slug, []).append(cell)
    found: dict[str, None] = {}
    for counterparts in same.values():
        tables = [dict(_flat(cell.resolved)) for cell in counterparts] if len(counterparts) > 1 else []
        found |= {key: None for table in tables for key in table
                  if len({_dumped(other.get(key, _MISSING)) for other in tables}) > 1}
    return found


def _overlap(key: str, other: str) -> bool:
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _alike(found: Sequence[tuple[Factor, Sequence[str]]], values: Sequence[int | str]) -> bool:
    """Whether cells with different values, such as those of different studies, have the same levels of everything."""
    first: dict[tuple[str, ...], int | str] = {}
    keys = zip(*(levels for _, levels in found), strict=True) if found else [()] * len(values)
    return any(first.setdefault(tuple(key), value) != value for key, value in zip(keys, values, strict=True))


def label_levels(values: Sequence[Any]) -> list[str]:
    """Short texts for values, equal exactly where the values are: what is the same in all of them is left out."""
    distinct = {_dumped(value): value for value in values}
    texts = dict(zip(distinct, _shorten(list(distinct.values())), strict=True))
    counts = Counter(texts.values())
    numbered = {text: 0 for text, n in counts.items() if n > 1}
    for key, text in texts.items():
        if text in numbered:
            numbered[text] += 1
            texts[key] = f"{text} #{numbered[text]}"
    return [texts[_dumped(value)] for value in values]


# Values of cells

def _settings(cell: CellFacts, cells: Sequence[CellFacts]) -> Mapping[str, Any]:
    """What distinguishes a cell; in a study that has not said so yet, what its name and its resolved table say."""
    of_study = [c for c in cells if c.study == cell.study]
    if any(c.settings for c in of_study) or len(of_study) == 1:
        return cell.settings
    made = [c for c in of_study if "=" in c.slug]
    if made:
        return dict(_parsed(cell)) if cell in made else {}
    tables = [dict(_flat(c.resolved)) for c in of_study]
    return {key: value for key, value in _flat(cell.resolved)
            if len({_dumped(t.get(key, _MISSING)) for t in tables}) > 1}


def _parsed(cell: CellFacts) -> Iterator[tuple[str, Any]]:
    """The settings in a cell's name that the study made, with the values that they resolve to."""
    known = dict(_flat(cell.resolved))
    for part in parts_of(cell.slug):
        key, equals, value = part.partition("=")
        keys = [k for k in known if k == key or k.endswith(f".{key}")]
        if equals:
            yield (keys[0], known[keys[0]]) if len(keys) == 1 else (key, value)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key in ("oracle", "match", "answers", "metrics"):
            continue
        if isinstance(value, Mapping) and "use" not in value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _value(cell: CellFacts, settings: Mapping[str, Any], key: str) -> Any:
    """The value of a setting in a cell that may not set it itself: then what it resolves to, if that is known."""
    place: Any = cell.resolved
    for part in key.split("."):
        place = place.get(part, _MISSING) if isinstance(place, Mapping) else _MISSING
    given = settings.get(key, _MISSING)
    named = key == "dataset.path"  # without the directories of a machine
    written = given.get("use") if isinstance(given, Mapping) else given
    if isinstance(place, Mapping) and isinstance(written, str) and written.endswith(f"/{place.get('use')}"):
        return {**place, "use": written}  # a class in a file, whose folder may set it apart
    if place is _MISSING or (isinstance(given, str | int | float) and not named):
        # A slot given by its name alone is the component with its defaults, as another cell may spell it out.
        spelled = isinstance(given, str) and isinstance(place, Mapping) and place.get("use") == given
        return place if spelled else given
    return place


def _dumped(value: Any) -> str:
    return "" if value is _MISSING else json.dumps(value, sort_keys=True, default=str)


def _use(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        return _use(value[0])
    if isinstance(value, Mapping):
        return str(value.get("use") or "")
    return value if isinstance(value, str) and re.fullmatch(r"[a-z]\w*\.\w+", value) and not FILE.search(value) else ""


def _plugin(use: str) -> str:
    """The plugin of a component, or the file of a class."""
    return use.rpartition(":")[0] or use.partition(".")[0]


# Labels

def _shorten(values: Sequence[Any]) -> list[str]:
    if all((isinstance(v, Mapping | str) and _use(v)) or v is _MISSING or v is None for v in values):
        return _components(values)
    if all(isinstance(v, list) or v is _MISSING for v in values):
        return _lists(values)
    return _plain(values)


def _components(values: Sequence[Any]) -> list[str]:
    """Components: by their names, and the options in which those of one name differ."""
    uses = [_use(v) for v in values]
    prefixes = {_plugin(use) for use in uses if use}
    same_use, same_plugin = len(set(uses)) == 1, len(prefixes) == 1
    texts = []
    for value, use in zip(values, uses, strict=True):
        alike = [v if isinstance(v, Mapping) else {"use": v} for v, u in zip(values, uses, strict=True) if u == use]
        options = _options(value if isinstance(value, Mapping) else {}, alike)
        name = re.split("[.:]", use)[-1] if same_plugin else use
        texts.append(ABSENT if not use else options if same_use and options else f"{name} {options}".strip())
    return texts


def _options(value: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> str:
    keys = [key for key in dict.fromkeys(k for other in alike for k in other) if key != "use"
            and len({_dumped(other.get(key, _MISSING)) for other in alike}) > 1]
    # A part of the data that no other has is name enough, or a file that may only be a copy of it.
    enough = [key for key in keys if key in _SAMPLES and _apart([other.get(key) for other in alike])]
    keys, parts = sorted(enough, key=lambda key: key == "path")[:1] or keys, []
    for key in keys:
        text = _plain([other.get(key, _MISSING) for other in alike])[alike.index(value)] if value in alike else ABSENT
        bare = isinstance(value.get(key), str) and key in {*_SAMPLES, "model", "weights", "strategy"}
        parts.append(text if bare else f"{key}={text}")
    return ",".join(parts)


def _apart(values: Sequence[Any]) -> bool:
    """Whether these are texts, and no two alike."""
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def _lists(values: Sequence[Any]) -> list[str]:
    """Lists of components or of texts; the items are named as single ones are."""
    items = [item for value in values if value is not _MISSING for item in value]
    distinct = {_dumped(item): item for item in items}
    texts = dict(zip(distinct, _shorten(list(distinct.values())), strict=True)) if distinct else {}
    return [ABSENT if value is _MISSING else "+".join(texts[_dumped(i)] for i in value) or "none" for value in values]


def _plain(values: Sequence[Any]) -> list[str]:
    texts = [ABSENT if v is _MISSING or v is None else str(v).lower() if isinstance(v, bool)
             else v if isinstance(v, str) else f"{v:g}" if isinstance(v, float) else
             _use(v) or (_dumped(v) if isinstance(v, Mapping | list) else str(v)) for v in values]
    if all("/" in t or FILE.search(t) for t in texts) and any(FILE.search(t) for t in texts):
        short = tails(texts)
        ends = [short[text] for text in texts]
        stems = [end.removesuffix(PurePosixPath(end).suffix) for end in ends]
        texts = _without_common(stems if len(set(stems)) == len(set(ends)) else ends)
    return [text if len(text) <= _TEXT else f"{text[:_TEXT - 1]}…" for text in (" ".join(t.split()) for t in texts)]


def _without_common(texts: Sequence[str]) -> list[str]:
    """The texts without the words with which all of them begin."""
    parts = [re.split(r"(?<=[_\-. ])", text) for text in texts]
    common = 0
    while all(len(p) > common + 1 for p in parts) and len({p[common] for p in parts}) == 1:
        common += 1
    return ["".join(p[common:]) for p in parts] if len(texts) > 1 else list(texts)


def _names(keys: Sequence[str]) -> dict[str, str]:
    """Short names of settings: the last parts of their keys, as many as set them apart."""
    names = {}
    for key in keys:
        parts = key.split(".")
        alike = [other for other in keys if other.split(".")[0] == parts[0]]
        if len(alike) == 1 and ((parts[0] == "models" and parts[-1] in (parts[1], "model", "weights", "use"))
                                or (parts[0] == "dataset" and parts[-1] in _SAMPLES)):
            names[key] = parts[0].removesuffix("s")
            continue
        shorts = [".".join(parts[-n:]) for n in range(1, len(parts) + 1)]
        names[key] = next((s for s in shorts if s != STUDY and sum(_ends(other, s) for other in keys) == 1), key)
    return names


def _ends(key: str, short: str) -> bool:
    return f".{key}".endswith(f".{short}")


def _labels(cells: Sequence[CellFacts], factors: Sequence[Factor], of_cell: Sequence[Mapping[str, str]]) -> list[str]:
    """The name that a run file gives, else the levels of the factors; the whole name where these are not enough."""
    texts = []
    for cell, levels in zip(cells, of_cell, strict=True):
        if cell.named or not factors:
            texts.append(cell.slug)
            continue
        texts.append(", ".join(level_text(f.name, levels[f.name]) for f in _used(factors, cells, of_cell, cell)
                               if f.name != STUDY and levels[f.name] != ABSENT) or cell.slug)
    alike: dict[str, list[Mapping[str, str]]] = {}
    for text, levels in zip(texts, of_cell, strict=True):
        alike.setdefault(text, []).append(levels)
    texts = [f"{levels[STUDY]}/{text}" if STUDY in levels and len(alike[text]) > 1 else
             ", ".join([text, *_apart_by(levels, alike[text])])
             for levels, text in zip(of_cell, texts, strict=True)]
    counts = Counter(texts)
    return [text if counts[text] == 1 else cell.name for cell, text in zip(cells, texts, strict=True)]


def _apart_by(levels: Mapping[str, str], alike: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The levels that set a cell apart from others that would be called the same."""
    return (level_text(name, level) for name, level in levels.items()
            if level != ABSENT and any(other[name] != level for other in alike))


def _used(factors: Sequence[Factor], cells: Sequence[CellFacts], of_cell: Sequence[Mapping[str, str]],
          cell: CellFacts) -> Iterable[Factor]:
    """The factors in which the unnamed cells of a study differ from each other."""
    peers = [levels for other, levels in zip(cells, of_cell, strict=True)
             if other.study == cell.study and not other.named]
    return [f for f in factors if len({levels[f.name] for levels in peers}) > 1] if len(peers) > 1 else factors


def level_text(name: str, level: str) -> str:
    """A level as a part of a label: a number, a truth value or nothing at all needs the name of its factor."""
    bare = number(level) is None and level not in ("true", "false", "none", ABSENT)
    return level if bare else f"{name}={level}"
