"""The contracts of what a debate is supplied with: questions, answers, models, services, presets, executors."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError

from madplug.components import ModelOptions
from madplug.errors import ModelError, UserError
from madplug.records import Request, Sample
from madplug.registry import Registry
from madplug.rows import to_json
from madplug.runfile import LISTS, SLOTS, DebateTable
from madplug.store import MemoryStore
from madplug.study import StudyPlan, StudyRun
from madplug.testing.contracts.base import ComponentContract, DebateContract
from madplug.testing.contracts.scene import ODD, drawn, json_able
from madplug.testing.play import Scripted, play

LOOKED_AT = 50
"""Samples of a data set that are looked at."""
TEXTS = (*ODD, "A", "(B)", "C.", "yes", "No, never.", "42", "-3.50", "1,024", "3/4", "\\boxed{7}", "an apple",
         "The answer is B", "I think so.\n\nAnswer: C", "42 is not 43", "x" * 5000)
"""Texts in which an answer format may look for an answer."""


class ModelContract(ComponentContract):
    """What a model keeps. Whether it answers, its own tests show, against an endpoint."""

    def test_it_has_the_options_of_every_model(self) -> None:
        """Its `Options` inherit from `madplug.ModelOptions`.

        If this fails: rates, tries and price are limited by the host, with these options.
        """
        assert issubclass(self.component.Options, ModelOptions)

    def test_it_answers_without_blocking(self) -> None:
        """`complete` is a coroutine function.

        If this fails: `async def complete(self, request)`; a blocking call in it holds up every debate of the study.
        """
        assert inspect.iscoroutinefunction(self.component.complete)

    def test_its_price_is_a_table_or_unknown(self) -> None:
        """`price` is None or USD per million tokens of `prompt`, `completion` and `cached`.

        If this fails: None where it is not known; a limit on costs is then refused with the reason.
        """
        price = self.make().price
        assert price is None or set(price) <= {"prompt", "completion", "cached"}, price


class ServiceContract(ComponentContract):
    """What a service keeps. What it is for, its own tests show."""


class DatasetContract(ComponentContract):
    """What a data set keeps."""

    def test_it_gives_samples_with_their_references(self) -> None:
        """Each item is a sample and a tuple of texts; no reference is on the sample.

        If this fails: `yield Sample(id, question, ...), (reference,)`; choices, context and images are tuples.
        """
        rows = list(islice(self.make().samples(), LOOKED_AT))
        assert rows, "there are no samples"
        for sample, references in rows:
            assert isinstance(sample, Sample), f"{sample!r:.80} is no Sample"
            assert isinstance(references, tuple), f"the references of '{sample.id}' are {references!r:.80}"
            assert all(isinstance(text, str) for text in references), f"the references of '{sample.id}'"
            for texts in (sample.choices, sample.context, sample.images):
                assert isinstance(texts, tuple), f"sample '{sample.id}': {texts!r:.80} is no tuple"
            assert json_able(sample.metadata), f"sample '{sample.id}': metadata does not go into JSON"

    def test_every_pass_is_the_same(self) -> None:
        """Ids are unique and not empty, and a second pass, or another instance, gives the same samples.

        If this fails: draw from a seed in the options, and make ids that do not depend on the order of a set.
        """
        dataset = self.make()
        one, two, other = ([to_json(row) for row in islice(d.samples(), LOOKED_AT)]
                           for d in (dataset, dataset, self.make()))
        assert one == two == other
        ids = [sample.id for sample, _ in islice(dataset.samples(), LOOKED_AT)]
        assert all(ids), "a sample has no id"
        assert len(ids) == len(set(ids)), "two samples have the same id"

    def test_its_size_is_true(self) -> None:
        """`size` is None, or the number of samples.

        If this fails: count what `samples()` gives, the options that leave some out included.
        """
        size = self.make().size()
        if size is not None and size <= 10 * LOOKED_AT:
            assert sum(1 for _ in self.make().samples()) == size

    def test_it_tells_itself_from_other_data(self) -> None:
        """`fingerprint` is a text, and the same for the same data.

        If this fails: hash the file, or give the revision; without it a study continues on changed data.
        """
        fingerprint = self.make().fingerprint()
        assert isinstance(fingerprint, str)
        assert self.make().fingerprint() == fingerprint

    def test_its_answer_format_is_a_slot(self) -> None:
        """`answers` is None, a name, or a table as in `[answers]`.

        If this fails: `answers = "answers.choice"`, or a property that returns a table with `use`.
        """
        answers = self.make().answers
        assert answers is None or isinstance(answers, str) or "use" in answers, answers


class AnswerContract(DebateContract):
    """What an answer format keeps."""

    texts: Sequence[str] = TEXTS
    """Texts to look for answers in."""

    def slot(self, component: Any) -> dict[str, Any]:
        """In its slot."""
        return {"answers": component}

    def test_it_says_how_to_answer(self) -> None:
        """`instruction` is a sentence for the prompt.

        If this fails: say how the final answer is to be written.
        """
        instruction = self.make().instruction(self.sample)
        assert isinstance(instruction, str)
        assert instruction.strip()

    def test_a_canonical_answer_is_its_own(self) -> None:
        """`canonical` of a canonical answer is itself; of any text it is a text or None.

        If this fails: keys are read again when a debate is decided again, and must not change by that.
        """
        component = self.held().ended().component
        for text in self.texts:
            key = component.canonical(text, self.sample)
            assert key is None or (isinstance(key, str) and key), f"{text!r:.80}: {key!r}"
            if key is not None:
                assert component.canonical(key, self.sample) == key, f"{text!r:.80} is {key!r:.80}, which is not itself"

    def test_the_same_answer_is_the_same_both_ways(self) -> None:
        """`same` holds of an answer and itself, and in both directions.

        If this fails: compare what both answers mean, not the one with the other.
        """
        component = self.held().ended().component
        keys = sorted({key for text in self.texts if (key := component.canonical(text, self.sample)) is not None})
        for a in keys:
            assert component.same(a, a, self.sample), a
            for b in keys:
                assert component.same(a, b, self.sample) == component.same(b, a, self.sample), (a, b)

    def test_its_form_is_one_a_model_can_hold(self) -> None:
        """`pattern` is a regular expression or None, and `form` is made of it.

        If this fails: keep to what most engines have: no look-around, no back-references.
        """
        component = self.make()
        pattern = component.pattern(self.sample)
        if pattern is not None:
            re.compile(pattern)
            assert not re.search(r"\(\?[=!<]|\\[1-9]", pattern), pattern
        for body in (None, 0, 100):
            form = component.form(self.sample, body=body)
            assert form is None or set(form) <= {"json_schema", "regex", "grammar"}, form


class ParadigmContract(ComponentContract):
    """What a preset keeps."""

    def test_it_is_a_debate_that_a_run_file_could_hold(self) -> None:
        """`debate` has the slots and settings of `[debate]`, and can be written as TOML.

        If this fails: the message names the slot.
        """
        import tomli_w

        wrong = ""
        try:
            DebateTable.model_validate(dict(self.component.debate))
        except ValidationError as error:
            wrong = str(error)
        assert not wrong, wrong
        assert "paradigm" not in self.component.debate, "a preset does not name another"
        assert tomli_w.dumps(dict(self.component.debate))

    def test_what_it_names_is_installed_and_takes_its_options(self) -> None:
        """Every component it names is offered by its own plugin or a declared dependency, under its full name.

        If this fails: write names in full, and declare the plugins they come from as dependencies.
        """
        registry, wrong = Registry(), []
        for kind, slot in slots(self.component.debate):
            try:
                offer = registry.find(kind, slot["use"])
                assert offer.name == slot["use"], f"'{slot['use']}' is not a full name; it is '{offer.name}'"
                offer.component.Options.model_validate({k: v for k, v in slot.items() if k not in ("use", "for")})
            except (UserError, ValidationError) as error:
                wrong.append(f"{kind} {slot['use']}: {error}")
        assert not wrong, "; ".join(wrong)


class ExecutorContract(ComponentContract):
    """What an executor keeps."""

    def results(self, executor: Any, *, broken: bool = False) -> list[dict[str, Any]]:
        """The debates of a small study, run by an executor, or by the host where it is None."""
        def said(request: Request) -> str:
            if broken and "question 1" in to_json(request.messages):
                raise ModelError("no answer")
            return "ABC"[drawn(to_json(request.messages), 3)]

        samples = [Sample(f"q{i}", f"question {i}") for i in range(5)]
        cell = play(replies=said, sample=samples, rounds=2, expect_failure=True).debate.cell
        store = MemoryStore()
        plan = StudyPlan("executed", [cell], {"model": Scripted(said)}, executor=executor)
        asyncio.run(StudyRun(plan, store).run())
        rows = [json.loads(to_json(result)) for result in store.results()]
        return sorted(({**row, "seconds": None} for row in rows), key=lambda row: str(row["sample"]["id"]))

    def test_debates_end_as_they_do_without_it(self) -> None:
        """Every debate is held once, and ends as it does in the host's own process.

        If this fails: `await job.run()` for every job, and yield what it gives.
        """
        assert self.results(self.make()) == self.results(None)

    def test_a_debate_that_fails_is_one_of_the_results(self) -> None:
        """A failed debate stops no other.

        If this fails: `job.run()` records a failure and returns it; it raises only what must end the study.
        """
        held = self.results(self.make(), broken=True)
        assert [bool(row["error"]) for row in held] == [False, True, False, False, False]


def slots(debate: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(kind, slot) of every component that a `[debate]` table names."""
    kinds = {"personas": "personas", "styles": "style", "phases": "phase"}
    found = [(name, debate[name]) for name in SLOTS if debate.get(name) is not None]
    found += [(kinds[name], slot) for name in LISTS for slot in debate.get(name) or ()]
    return [(kind, {"use": slot} if isinstance(slot, str) else dict(slot)) for kind, slot in found]
