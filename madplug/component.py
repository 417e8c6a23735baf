"""What all components have in common: options, a place in the run file, and components nested in their options."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from inspect import isclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, Union, get_origin

from madplug.options import NESTED, complete, is_path, is_volatile, marks, naming, path_digest, unions
from madplug.options import Options as _Options
from madplug.records import Plan, Sample
from madplug.rows import to_json

if TYPE_CHECKING:
    from madplug.context import CellFacts, Setup

T = TypeVar("T")
C = TypeVar("C", bound="Component")
O_co = TypeVar("O_co", bound=_Options, covariant=True)
Maybe = Union[T, Awaitable[T]]  # noqa: UP007 - `|` cannot be applied to a type variable at run time
"""What a component method may return: a value, or an awaitable of it."""


class HasOptions(Protocol[O_co]):
    """Anything with a class of options."""

    @property
    def Options(self) -> type[O_co]:
        """The class of its options."""


class Component(ABC):
    """What all components have in common.

    The class attributes up to `of_study` describe the kind; the run file, `madplug list` and `show`, the registry and
    the cell are derived from them. A component sets none of these. A plugin that needs a kind of its own writes a base
    class with them, and registers its components by `madplug_register_components`.
    """

    kind: ClassVar[str]
    """The kind in one word, as in `madplug list KIND`."""
    plural: ClassVar[str]
    """The last part of the name of the hook that registers the kind: `madplug_register_PLURAL`."""
    label: ClassVar[str]
    """The kind as it is called in a sentence: `turn order`."""
    slot: ClassVar[str]
    """The table of the run file: `debate.turns`, `metrics`, `models.NAME`."""
    how_many: ClassVar[Literal["one", "list", "named", "none"]] = "one"
    """One table, a list of tables, tables by name, or no table at all."""
    required: ClassVar[bool] = False
    """Whether a run file must name one."""
    of_study: ClassVar[bool] = False
    """Whether the components of this kind belong to the whole study instead of to each cell."""
    name: ClassVar[str]
    """The part of the full name after the plugin's."""
    source: ClassVar[str] = ""
    """The paper and section the component comes from."""
    needs: frozenset[str] = frozenset()
    """What another component of the cell must give: `agreement`, `confidence`, `references`, `logprobs`, ..."""
    gives: frozenset[str] = frozenset()
    """What this component gives to the others of its cell; of a class, also what it gives with some options only."""
    full_name: str
    """`plugin.component`; the bare name of a component that was not made from a run file."""
    written_as: str = ""
    """How a run file names it, if not by its full name: `/path/mine.py:Firmest`."""
    content: str = ""
    """A hash of the source, if the component is in a local file or was defined in a Python session."""

    Options: ClassVar[type[_Options]] = _Options
    """The class of its options: `Options = MajorityOptions`, or a nested `class Options(madplug.Options)`."""

    if TYPE_CHECKING:
        @property
        def options(self: HasOptions[O_co]) -> O_co:
            """The options, typed by the class's own `Options`."""

    def __init__(self, options: Any = None, **values: Any) -> None:
        """options: an instance of the class's `Options`; by default one made from the keyword arguments."""
        made = self.Options(**values) if options is None else options
        self.__dict__["options"] = made
        self.full_name = getattr(self, "name", type(self).__name__)
        for field in nested_fields(type(self.options)):
            if isinstance(getattr(made, field.option), str | Mapping):
                raise TypeError(f"{type(self).__qualname__}: the default of '{field.option}' is a name, which only a "
                                f"run file can look up; pass the component: {field.option}=...")

    @classmethod
    def from_slot(cls: type[C], options: Any, *, full_name: str) -> C:
        """Make the component of a slot of a run file, from its validated options and its full name."""
        made = cls(options)
        made.full_name = full_name
        return made

    def to_table(self, *, volatile: bool = True) -> dict[str, Any]:
        """The component as it could be written in a run file: `use` with its full name, and every option.

        Without `volatile`, only what counts when two studies are compared: no volatile option, and instead of a path
        the digest of its content.
        """
        options = self.options
        kind = type(options)
        left_out = {n for n in kind.model_fields if not volatile and (is_volatile(kind, n) or is_path(kind, n))}
        values = options.model_dump(mode="json", exclude=left_out, context={"volatile": volatile})
        if self.kind != "dataset":  # the samples of a data set are compared one by one
            paths = {name: getattr(options, name) for name in left_out if not is_volatile(kind, name)}
            values |= {name: None if path is None else path_digest(path) for name, path in paths.items()}
        use = (self.written_as if volatile else "") or self.full_name
        return {"use": use, **{name: values[name] for name in kind.model_fields if name in values}}

    def prepare(self, setup: Setup) -> Maybe[None]:
        """Run once per cell, before its first debate: make criteria, demonstrations, indexes."""

    def calls(self, plan: Plan) -> int:
        """The most model calls this component makes in one debate (a style: in one turn), for `madplug check`.

        Calls of components nested in its options are not included; the host adds them.
        """
        return 0

    def counts(self, plan: Plan) -> Mapping[str, int]:
        """As `calls`, of what else it does, by names that `[limits]` can have: `{"tool_calls": 4}`.

        One is a value that is made for `keep` under a name that begins with that and a colon.
        """
        return {}

    def check(self, cell: CellFacts) -> Iterable[str]:
        """Yield what is wrong with this component in this cell, in words, for `madplug check` and before a run."""
        return ()

    def warn(self, cell: CellFacts) -> Iterable[str]:
        """Yield what may spoil the results of this cell without being wrong, in words, for the same."""
        return ()

    def misfit(self, sample: Sample, references: Sequence[str]) -> str | None:
        """Why a row of the data cannot be debated with this component, or None, for the same."""
        return None


# Components in the options of components

@dataclass(frozen=True)
class NestedField:
    """An option that is a component, or a list of them."""

    option: str
    base: type[Component]
    many: bool


@cache
def nested_fields(options: Any) -> tuple[NestedField, ...]:
    """The options of a class of options that are components."""
    complete(options)
    found = []
    for name, info in options.model_fields.items():
        inside = list(marks(options, name))
        if NESTED in inside:
            base = next(kind for kind in (info.annotation, *inside)
                        if isclass(kind) and not get_origin(kind)  # Python 3.10 takes list[X] for a class
                        and issubclass(kind, Component))
            many = any(get_origin(one) in (list, tuple) for one in unions(info.annotation))
            found.append(NestedField(name, base, many))
    return tuple(found)


def nested_in(component: Component) -> Iterator[Component]:
    """The components in a component's options, and those in theirs."""
    for field in nested_fields(type(component.options)):
        value = getattr(component.options, field.option)
        for inner in value if field.many and value else [value]:
            if isinstance(inner, Component):
                yield inner
                yield from nested_in(inner)


def identity_of(component: Component) -> str:
    """What a component is: its options that are not volatile, and its code and that in its options if in local files.

    The full name of a component in a local file has no folder, so that two files of one name differ by their content.
    """
    table = component.to_table(volatile=False)
    contents = [one.content for one in (component, *nested_in(component)) if one.content]
    return to_json([table, *contents] if contents else table)


@cache
def code_of(module: str) -> str:
    """A hash of the Python files of the package that a module is in: who writes a plugin edits them without a new
    version. Empty where there are no files."""
    loaded = sys.modules.get(module)
    file = Path(getattr(loaded, "__file__", None) or "")
    files = sorted(file.parent.rglob("*.py")) if getattr(loaded, "__package__", None) else [file]
    found = [f"{one.relative_to(file.parent)} {path_digest(one)}" for one in files if one.is_file()]
    return blake2b("\n".join(found).encode(), digest_size=8).hexdigest() if found else ""


def names_of(component: Component, kind: str) -> Iterator[str]:
    """The models or services that a component's options name, and those of the components in its options.

    kind: `model` or `service`.
    """
    for one in (component, *nested_in(component)):
        for named in naming(type(one.options)):
            value = getattr(one.options, named.option)
            if named.kind == kind:
                yield from [value] if isinstance(value, str) else value or ()


def kind_of(component: type[Component]) -> type[Component]:
    """The base class that describes a component's kind; `Component` for a class without one."""
    return next((cls for cls in component.__mro__ if "kind" in vars(cls)), Component)


def field_of(base: type[Component]) -> str:
    """The field of a cell, and the key in the run file, that has the components of a kind."""
    return base.slot.removesuffix(".NAME").rpartition(".")[2]
