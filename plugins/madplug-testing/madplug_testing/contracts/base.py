"""The contract of every component, and that of every component that takes part in debates."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from madplug import Completion, Component, MadplugError, Request, Sample, to_json
from madplug.study import Registry
from madplug_testing import play
from madplug_testing.contracts.imports import HEAVY, heavy_imports, imports_noted
from madplug_testing.contracts.scene import (
    ODD,
    Outspoken,
    Rows,
    Trial,
    Witness,
    contents_of,
    drawn,
    fitting,
)


def contract_tests(cls: type) -> dict[str, Any]:
    """The tests of a contract by name, which subclasses must not change."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith(f"{__package__}."):
            for name, value in vars(base).items():
                if name.startswith("test"):
                    found.setdefault(name, value)
    return found


class ComponentContract:
    """The contract of every component. Subclass the contract of its kind instead of this one."""

    component: ClassVar[Any]
    """The class under test."""
    options: Mapping[str, Any] = {}
    """Its options, as a run file would give them; needed where one is required."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuses a subclass that has lost a test."""
        super().__init_subclass__(**more)
        changed = [n for n, test in contract_tests(cls).items() if inspect.getattr_static(cls, n) is not test]
        if changed:
            raise TypeError(f"{cls.__qualname__}: replaces {', '.join(changed)} of the contract; give your own tests "
                            "other names, and fix the component if a test of the contract fails")

    def make(self) -> Any:
        """The component; override this if `options` are not enough."""
        return self.component(self.component.Options.model_validate(dict(self.options)))

    def test_it_tells_what_it_is(self) -> None:
        """The class has a name, a docstring and every method its base class asks for.

        If this fails: the message says what `madplug list --problems` would say; change the class accordingly.
        """
        assert re.fullmatch(r"[a-z][a-z0-9_]*", self.component.name), f"{self.component.name!r} is not lower_snake_case"
        summary = Registry((), [self.component]).find(self.component.kind, self.component.__name__).summary
        assert summary.endswith((".", "!", "?")), f"the docstring must begin with a sentence; found {summary!r}"

    def test_every_option_is_described_and_frozen(self) -> None:
        """Every option has a description, and the options cannot be changed or misspelt.

        If this fails: write `Field(default=..., description="...")`, and let `Options` inherit from
        `madplug.Options`, which is frozen and takes no option it does not know.
        """
        options = self.component.Options
        bare = [name for name, info in options.model_fields.items() if not info.description]
        assert not bare, f"no description: {', '.join(bare)}"
        assert options.model_config.get("frozen"), "the options can be changed"
        with pytest.raises(ValidationError):
            options.model_validate({**self.options, "an_option_nobody_has": 1})

    def test_its_options_can_be_written_down_and_read_back(self) -> None:
        """The options that a study keeps in `study.toml` make the same component again.

        If this fails: an option does not come back from JSON as it went in; use text, numbers, lists, tables,
        `Literal` or a pydantic model, and validators that accept their own result.
        """
        options = self.make().options
        kind: Any = type(options)
        inner = {name: value for name, value in options
                 if any(isinstance(one, Component) for one in (value if isinstance(value, list | tuple) else [value]))}
        assert kind.model_validate({**options.model_dump(mode="json"), **inner}) == options

    def test_importing_it_is_cheap(self) -> None:
        """Importing the component's module imports none of the packages in `contracts.HEAVY`.

        If this fails: import the package in `prepare` or `open`, or where it is used; `madplug list` imports every
        plugin that is installed.
        """
        module = self.component.__module__
        heavy = heavy_imports([module])[module]
        assert not heavy, f"importing {module} imports {', '.join(heavy)}"

    def test_making_it_is_cheap(self) -> None:
        """Making the component imports nothing heavy either.

        If this fails: `__init__`, or a validator of an option, imports the package; do it in `prepare` or `open`.
        `madplug check` makes every component of a run file.
        """
        with imports_noted() as noted:
            self.make()
        heavy = sorted(noted & HEAVY)
        assert not heavy, f"making it imports {', '.join(heavy)}"


class DebateContract(ComponentContract):
    """The contract of every component that takes part in debates."""

    around: Mapping[str, Any] = {}
    """Further arguments of `madplug_testing.play`."""
    sample: Sample = Sample("q1", "Which of these grows on trees?", choices=("apples", "stones", "clouds"))
    references: Sequence[str] = ("A",)
    _kept: ClassVar[dict[str, Trial]]

    def __init_subclass__(cls, **more: Any) -> None:
        """Every contract runs its own debates."""
        super().__init_subclass__(**more)
        cls._kept = {}

    # What a subclass may override

    def slot(self, component: Any) -> dict[str, Any]:
        """The argument of `play` that the component is given as."""
        raise NotImplementedError

    def scene(self, component: Any) -> dict[str, Any]:
        """The arguments of `play`: the component in its slot, and everything else."""
        return {"rounds": 2, "styles": [Outspoken()], **self.around, **self.slot(component)}

    def reply(self, request: Request) -> str:
        """What the model says: a letter, or what the form asks for, drawn from the agent and the request."""
        text = f"{request.agent} {to_json(request.messages)}"
        if request.form and "json_schema" in request.form:
            return json.dumps(fitting(request.form["json_schema"], text))
        return "ABC"[drawn(text, 3)]

    # The debates in which it is examined

    def trial(self, name: str = "first") -> Trial:
        """A debate, run once: `first`; `again`, with a new instance; `oracle`, with other references to read."""
        if name not in self._kept:
            component = self.make()
            oracle = name == "oracle" or "references" in component.needs
            references = tuple(reversed("ABC")) if name == "oracle" and not component.needs else self.references
            self._kept[name] = self.run(component, oracle=oracle, references=references)
        return self._kept[name]

    def run(self, component: Any, *, sample: Sample | None = None, references: Sequence[str] | None = None,
             oracle: bool | None = None, odd: int | None = None) -> Trial:
        """Run a debate. odd: the model sends invalid replies, different ones for each number."""
        sample, references = sample or self.sample, self.references if references is None else references

        def said(request: Request) -> str | Completion:
            return self.reply(request) if odd is None else ODD[(drawn(to_json(request), 99) + odd) % len(ODD)]

        witness = Witness()
        scene = {"sample": sample, "dataset": Rows(sample, references), **self.scene(component)}
        played = play(replies=said, references=references, store=witness, expect_failure=True,
                      oracle="references" in component.needs if oracle is None else oracle, **scene)
        return Trial(component, played, witness)

    # The contract

    def test_a_debate_with_it_comes_to_its_end(self) -> None:
        """A debate is run with the component, and every method returns what its base class says.

        If this fails: the message says which method returned or raised what. If the component needs
        personas, roles, services or data that the plainest debate does not have, give them in `around`, `sample` or
        `reply`.
        """
        assert not self.trial().ended().played.problems, self.trial().played.problems

    def test_it_fits_the_debate_it_is_tested_in(self) -> None:
        """The component's own `check` finds nothing wrong, and all its `needs` are met.

        If this fails: put what it needs into `around`, or let its `check` accept this debate.
        """
        component, cell = self.trial().component, self.trial().debate.cell
        given = frozenset({"references"} if cell.oracle else ()).union(*(c.gives for c in cell.components()))
        missing = sorted(component.needs - given)
        assert not missing, f"needs {', '.join(missing)}"
        assert not list(component.check(cell)), list(component.check(cell))

    def test_the_same_debate_ends_the_same_way(self) -> None:
        """Two debates with the same sample, seed and replies are equal.

        If this fails: something depends on the time, on `random`, on the order of a set or of replies. Draw from
        `debate.rng("plugin.component:purpose")`, and sort before you draw.
        """
        assert self.trial("again").ended().outcome() == self.trial().ended().outcome()

    def test_it_keeps_nothing_of_a_debate(self) -> None:
        """After a second debate the instance is as it was after the first.

        If this fails: a method stores something on `self`. One instance serves all debates of a cell at the same
        time; what belongs to a debate is in its transcript, in `Reply.data` or in `debate.notes`.
        """
        component = self.trial().ended().component
        before = contents_of(component)
        self.run(component, sample=replace(self.sample, id="q2", question="And which of these is blue?")).ended()
        assert contents_of(component) == before

    def test_it_leaves_the_record_alone(self) -> None:
        """No message and no sample changes once it is on record.

        If this fails: a method changes `message.data`, `sample.metadata` or another mapping of a record. Make a new
        one: `{**message.data, ...}`.
        """
        changed = self.trial().witness.changed
        assert not changed, f"changed: {', '.join(dict.fromkeys(changed))}"

    def test_it_reads_references_only_if_it_says_so(self) -> None:
        """With other references a debate goes the same way; one that needs them is refused without `oracle`.

        If this fails: the component reads `debate.references`; declare `needs = frozenset({"references"})`, so that
        the run file must say `oracle = true` and every result is marked. Or it declares a need that it does not have.
        """
        if "references" in self.component.needs:
            assert "oracle" in str(self.run(self.make(), oracle=False).played.result.error)
            return
        one, other = self.trial().ended().outcome(), self.trial("oracle").ended().outcome()
        free = ("metrics", "other_calls") if self.component.kind == "metric" else ("metrics",)  # a metric is given them
        assert {**one, **dict.fromkeys(free)} == {**other, **dict.fromkeys(free)}

    def test_it_announces_every_call(self) -> None:
        """A debate makes no more model calls than `madplug check` announces.

        If this fails: give the component `def calls(self, plan)`: the most calls in one debate (a style: in one
        turn).
        """
        trial = self.trial()
        calls = sum(bool(row["sample"]) for row in trial.played.store.calls())  # without those of `prepare`
        worst = trial.debate.cell.worst_calls()
        assert calls <= worst, f"{calls} calls, and {worst} were announced"

    @pytest.mark.parametrize("odd", range(3))
    def test_whatever_the_model_says_nothing_breaks(self, odd: int) -> None:
        """Replies that are empty, cut off, not JSON or full of braces break nothing.

        If this fails: a method relies on a reply to be as requested. Parse it leniently, mark what could not be read
        (`data`, `debate.notes`), and do not use `str.format` on text from elsewhere. If a debate cannot continue at
        all, raise `madplug.ComponentError` and say why.
        """
        trial = self.run(self.make(), odd=odd)
        if trial.played.error is not None and not isinstance(trial.played.error, MadplugError):
            trial.ended()
