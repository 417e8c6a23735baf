"""A data set made from a recipe."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, create_model

from madplug import Sample, UserError, Volatile, nearest
from madplug_benchmarks.recipe import CellError, Recipe
from madplug_datasets import Hub, HubOptions
from madplug_datasets.hub import columns_of, refuse_missing
from madplug_datasets.loading import Where
from madplug_files.cells import is_empty
from madplug_files.columns import PARTS, REQUIRED, Columns, Row, known_columns
from madplug_files.problems import Report, problem
from madplug_files.readers import Numbered, Rows


class Preset(Hub):
    """What all presets share."""

    recipe: ClassVar[Recipe]

    @property
    def subset(self) -> str | None:
        """The option `subset`, or None for the whole benchmark."""
        subset: str | None = getattr(self.options, "subset", None)
        return subset

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """The option `answers`, else the recipe's format."""
        recipe = self.recipe
        return self.options.answers or recipe.by_subset.get(self.subset or "") or recipe.answers

    def where(self, split: str | None) -> Where:
        """The subset on the hub, or the local file."""
        options, recipe = self.options, self.recipe
        config, own = options.config, options.split
        if recipe.subset_of == "config" and self.subset:
            config = self.subset
        if recipe.subset_of == "split" and self.subset:
            own = self.subset
        return self.place(split, options.id, config, own)

    def layout(self, present: Row, where: Where) -> Columns:
        """The first layout whose columns are all present. Raises `UserError` with what the closest one lacks."""
        options, recipe = self.options, self.recipe
        layouts = [columns_of({**layout, **options.columns}, options, where, recipe.reference_as)
                   for layout in recipe.layouts]
        best = min(layouts, key=lambda columns: len(list(columns.missing(present))))
        refuse_missing(best, present, where)
        return best

    def sample(self, columns: Columns, row: Row, place: str, name: str) -> tuple[Sample, tuple[str, ...]]:
        """The sample of a row, after the recipe's changes."""
        recipe = self.recipe
        cells = {part: columns.value(row, part) for part in columns.named}
        if recipe.change and not any(is_empty(cells[part]) for part in REQUIRED):
            try:
                cells |= recipe.change(cells, self._rng(cells.get("id") or name))
            except CellError as error:
                raise problem(columns.place(place, error.part), str(error)) from None
        if cells.get("id") is None:
            cells.pop("id", None)
        if recipe.subset_of in ("config", "split") and self.subset and not self.options.path:
            cells["group"] = self.subset
        return columns.build(cells, row, place, name)

    @property
    def selects(self) -> bool:  # type: ignore[override]
        """Whether some rows of the copy are left out."""
        return self.recipe.keep is not None or (self.recipe.subset_of == "column" and bool(self.subset))

    def wanted(self, row: Row) -> bool:
        """Whether a row belongs to the benchmark and its subset."""
        recipe, subset = self.recipe, self.subset
        if recipe.keep and not recipe.keep(row, subset):
            return False
        return recipe.subset_of != "column" or not subset or str(row.get(self._group)) == subset

    def _kept(self, rows: Rows, report: Report) -> Iterator[Numbered]:
        """The rows of the benchmark, of each group no more than `per_group`."""
        most, seen = getattr(self.options, "per_group", None), Counter[str]()
        for numbered in super()._kept(rows, report):
            group = str(numbered[2].get(self._group)) if most else ""
            seen[group] += 1
            if most is None or seen[group] <= most:
                yield numbered

    def empty(self, rows: Rows, where: Where) -> UserError:
        """The error that lists the existing subsets."""
        if self.recipe.subset_of != "column" or not self.subset:
            return super().empty(rows, where)
        there = sorted({str(row.get(self._group)) for _, _, row in rows.rows()})
        return problem("dataset.subset", f"there is no '{self.subset}'{nearest(self.subset, there)} "
                                         f"(there are {', '.join(there)})")

    def check(self, cell: Any) -> list[str]:
        """Check the subset, the columns and the first row."""
        recipe = self.recipe
        if self.subset and recipe.subsets and self.subset not in recipe.subsets:
            return [f"subset: there is no '{self.subset}'{nearest(self.subset, recipe.subsets)} "
                    f"(there are {', '.join(recipe.subsets)})"]
        return list(super().check(cell))

    def stem(self) -> str:
        """The benchmark's name, and the subset that the rows of the hub are from."""
        part = self.subset if self.recipe.subset_of in ("config", "split") and not self.options.path else None
        return "-".join(filter(None, (self.recipe.name, part)))

    @property
    def _group(self) -> str:
        column = self.options.columns.get("group", self.recipe.layouts[0].get("group", ""))
        return column if isinstance(column, str) else column[0]

    def _rng(self, row: Any) -> random.Random:
        seed = f"benchmarks.{self.recipe.name}/{getattr(self.options, 'choice_seed', 0)}/{row}"
        return random.Random(seed.encode(errors="replace"))  # an id can have half a character


def preset(recipe: Recipe) -> type[Preset]:
    """The data set class of a recipe."""
    title = "".join(word.capitalize() for word in recipe.name.split("_"))
    return type(title, (Preset,), {
        "__doc__": describe(recipe), "__module__": __name__, "name": recipe.name, "source": recipe.source,
        "recipe": recipe, "Options": options(recipe),
        "has_images": any("images" in layout for layout in recipe.layouts)})


def options(recipe: Recipe) -> type[HubOptions]:
    """The options of a preset, with the recipe's values as defaults."""
    fields: dict[str, Any] = {}
    if recipe.subset_of:
        what = {"config": "a configuration on the hub; a local file is a single subset",
                "rows": "which of the questions", "column": "only this group",
                "split": "a split on the hub; a local file is a single subset"}
        of = f": {', '.join(recipe.subsets)}" if recipe.subsets else ""
        fields["subset"] = (str | None, Field(default=recipe.subset, description=what[recipe.subset_of] + of))
    if recipe.choice_seed:
        fields["choice_seed"] = (int, Field(default=0, ge=0, description="seed for the order of the choices"))
    if recipe.per_group:
        fields["per_group"] = (int, Field(default=recipe.per_group, ge=1, description=(
            f"the most questions of the same {recipe.layouts[0]['group']}")))
    return create_model(
        "Options", __base__=HubOptions, **fields,
        instruction=(str, Field(
            default=recipe.instruction, description=HubOptions.model_fields["instruction"].description)),
        answers=(str | dict[str, Any] | None, Field(
            default=None, description="an answer format to use instead of the benchmark's")),
        id=(str | None, Field(default=recipe.hub, description="the data set on the hub, or another copy of it")),
        config=(str | None, Field(default=recipe.config, description="the configuration on the hub")),
        split=(str, Field(default=recipe.split, description="the split the study is about")),
        revision=(Annotated[str | None, Volatile], Field(
            default=recipe.revision, description=HubOptions.model_fields["revision"].description)),
        columns=(Annotated[Mapping[str, str | tuple[str, ...]], BeforeValidator(known_columns)], Field(
            default={}, description=f"columns with other names, by part of a sample: {', '.join(PARTS)}")))


def describe(recipe: Recipe) -> str:
    """What `madplug show` prints."""
    columns = "; ".join(f"{part} from {' + '.join((n,) if isinstance(n, str) else n)}"
                        for part, n in recipe.layouts[0].items())
    answers = recipe.answers if isinstance(recipe.answers, str) else \
        f"{recipe.answers['use']} ({', '.join(k for k in recipe.answers if k != 'use')})"
    facts = [f"On the hub: {recipe.hub}. Columns: {columns}. Answer format: {answers}.",
             f"Metric: {recipe.metric}.", f"Licence: {recipe.licence}."]
    head, _, rest = recipe.about.partition("\n\n")
    return "\n\n".join([head, *([fill(rest, 110)] if rest else []), fill(" ".join(facts), 110)])
