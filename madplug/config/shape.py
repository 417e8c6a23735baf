"""The shape of a run file: its tables, their keys and limits. `docs/run-file.md` is made from these.

The slots are derived from the kinds of components, so that a new kind gets its slot without a change here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, create_model
from pydantic_core import PydanticCustomError

from madplug.component import Component, field_of
from madplug.kinds import HOST_KINDS, AnswerFormat
from madplug.options import Options

Table = dict[str, Any]
MOST_AGENTS, MOST_ROUNDS, MOST_CELLS = 10_000, 10_000, 10_000
LONGEST_NAME = 100


def _one_segment(name: str) -> str:
    """A study's name is also the name of its directory."""
    odd = next((c for c in name if c in "/\\" or not c.isprintable()), None)
    wrong = f"cannot contain {odd!r}" if odd is not None else \
        f"has {len(name)} characters; at most {LONGEST_NAME}" if len(name) > LONGEST_NAME else \
        f"cannot be {name!r}" if name.strip() in ("", ".", "..") else None
    if wrong is not None:
        raise PydanticCustomError("name", "is also the name of the study's directory, and {wrong}", {"wrong": wrong})
    return name


def _named(cell: dict[str, Any]) -> dict[str, Any]:
    name = cell.get("name", "")
    if not isinstance(name, str):
        raise PydanticCustomError("name", "a cell's name must be a string")
    if odd := next((c for c in name if not c.isprintable()), None):
        raise PydanticCustomError("name", "a cell's name cannot contain {odd}", {"odd": repr(odd)})
    return cell


Slot = Annotated[dict[str, Any], BeforeValidator(lambda value: {"use": value} if isinstance(value, str) else value)]
CellChanges = Annotated[dict[str, Any], AfterValidator(_named)]


class Limits(Options):
    """`[limits]`: reaching one stops the study; everything so far is saved. Limits may change between two runs.

    Another key is the most of what components count, including earlier runs: `tool_calls`; `madplug check` shows them.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, NonNegativeInt | NonNegativeFloat] = Field(init=False)

    calls: int | None = Field(default=None, ge=0, description="model calls, including those of earlier runs")
    tokens: int | None = Field(default=None, ge=0, description=(
        "tokens of prompts and completions, including those of earlier runs"))
    cost_usd: float | None = Field(default=None, ge=0, description=(
        "US dollars, including those of earlier runs; every model needs a price"))
    seconds: float | None = Field(default=None, gt=0, description="seconds that one run may take")

    @property
    def counts(self) -> dict[str, int]:
        """The most of what components count, by name."""
        return self.model_extra or {}


class Match(Options):
    """`match` of a cell: its debates can use as many calls or tokens as the other cell's debate of the same sample."""

    cell: str = Field(description="the name of the other cell")
    by: Literal["calls", "tokens"] = Field(default="calls", description=(
        "of what as many; where an endpoint gives replies without text, those count, and the cell's own come on top"))


class DebateSettings(Options):
    """`[debate]`: the slots of a debate and its size."""

    paradigm: str | None = Field(
        default=None, description="a preset that fills the slots of `[debate]`; the table's other keys take precedence")
    agents: int | None = Field(default=None, ge=1, le=MOST_AGENTS, description=(
        "the number of personas: generator i makes persona i, the last one makes all others; not needed if the "
        "generators fix the number"))
    rounds: int | None = Field(default=None, ge=1, le=MOST_ROUNDS, description=(
        "the most rounds in which agents speak, the first included; 1 unless the paradigm says otherwise"))
    on_failed_agent: Literal["fail", "drop", "replace"] = Field(default="fail", description=(
        "an agent whose model fails also fails the debate (`fail`; a reply without text is no answer), or leaves it to "
        "the others (`drop`), or goes on with the next of `models` (`replace`); in both, no text is a failure, and the "
        "debate partial. A model that refuses every request, such as one that does not exist, stops the study"))
    quorum: int = Field(default=1, ge=1, le=MOST_AGENTS, description=(
        "the debate fails if fewer agents that vote are left"))
    models: list[str] | None = Field(
        default=None, description="names of the models that agents use, in turn; not needed if there is only one")


class CellSettings(Options):
    """What a cell can set; in a run file, a cell is a set of changes to the file."""

    debate: DebateSettings = Field(default=DebateSettings(), description="the debate")
    match: Match | None = Field(default=None, description=(
        "another cell, whose number of calls or tokens each debate can use"))


class RunSettings(CellSettings):
    """The whole run file."""

    name: Annotated[str, AfterValidator(_one_segment)] | None = Field(
        default=None, description="the name of the study, and of its directory in `runs/`; by default the "
        "name of the file without `.toml`. Not part of the study's identity")
    seed: int = Field(default=0, description="the seed of every random draw of the study")
    repeats: int = Field(default=1, ge=1, description="independent repeats of every debate")
    share_completions: bool = Field(default=True, description=(
        "identical requests of different cells are sent once and share the completion; see below"))
    oracle: bool = Field(
        default=False, description="allow components to see the references; every result is then marked")
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default={}, description=(
        "lists of values by dotted key; every combination is a cell"))
    cells: list[CellChanges] = Field(default=[], description=(
        "cells one by one, each a set of changes to the file with a `name`; they are added to those of the sweep"))
    reuse: list[Annotated[str, Field(min_length=1)]] = Field(default=[], description=(
        "directories of other studies, whose answered calls are used before a call is paid for; see below"))
    limits: Limits = Field(default=Limits(), description="when to stop")


Kinds = Iterable[type[Component]]


class Tables(NamedTuple):
    """The tables of a run file with the slots of every kind."""

    debate: type[DebateSettings]
    """`[debate]`."""
    cell: type[CellSettings]
    """What a cell can set."""
    run: type[RunSettings]
    """The whole file."""

    def keys(self) -> list[str]:
        """The keys at the top of the file, and those of `[debate]`."""
        return [*self.run.model_fields, *(f"debate.{name}" for name in self.debate.model_fields)]


def slots(kinds: Kinds, prefix: str = "", *, of_study: bool | None = None) -> Iterator[type[Component]]:
    """The kinds whose slot is directly in a table: `debate.`, or the top level of the file."""
    for base in kinds:
        inside = base.slot.removesuffix(".NAME").rpartition(".")[0] == prefix.rstrip(".")
        if inside and base.how_many != "none" and of_study in (None, base.of_study):
            yield base


@lru_cache(maxsize=16)
def tables(kinds: tuple[type[Component], ...] = HOST_KINDS) -> Tables:
    """The tables of a run file in which these kinds have slots."""
    debate = _with(DebateSettings, "DebateTable", slots(kinds, "debate"))
    inner: Any = (debate, Field(default=debate(), description="the debate"))
    named = [base for base in slots(kinds) if base.how_many == "named"]  # a cell may change its models too
    own = [*(base for base in slots(kinds, of_study=False) if base not in named), *named]
    cell = _with(CellSettings, "CellTable", own, debate=inner)
    study = [base for base in slots(kinds, of_study=True) if base not in named]
    return Tables(debate, cell, _with(RunSettings, "RunTable", [*own, *study], debate=inner))


B = TypeVar("B", bound=Options)


def _with(base: type[B], name: str, kinds: Kinds, **fields: Any) -> type[B]:
    every = {field_of(kind): _field(kind) for kind in kinds} | fields
    made: type[B] = create_model(name, __base__=base, __doc__=base.__doc__, **every)
    return made


def _field(base: type[Component]) -> Any:
    words = {"one": f"the {base.label}", "list": f"a list of {base.label}s", "named": f"{base.label}s by name"}
    words["one"] += "; by default the data set's" if base is AnswerFormat else ""
    note = words[base.how_many] + ("; required unless the paradigm fills it" if base.required and "." in base.slot
                                   else "; required" if base.required else "")
    if base.how_many == "named":
        return dict[str, Slot], Field(default={}, description=note)
    if base.how_many == "list":
        return list[Slot] | None, Field(default=None, description=note)
    return Slot | None, Field(default=None, description=note)
