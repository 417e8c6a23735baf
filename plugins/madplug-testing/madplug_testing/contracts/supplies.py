"""The contracts of data sets, answer formats, models, services, paradigms, observers and executors."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from madplug import Component, DebateFinished, ModelOptions, Observer, Sample, to_json
from madplug.config.shape import tables
from madplug.store import Recorder, open_recorder
from madplug.study import Builder, Ending, Made, Registry, StudyPlan, StudyRun, load
from madplug_testing.contracts.base import ComponentContract, DebateContract
from madplug_testing.contracts.scene import ODD, json_able
from madplug_testing.fixtures import plugin_installer

LOOKED_AT = 50
"""Samples of a data set that are looked at."""
TEXTS = (*ODD, "A", "(B)", "C.", "yes", "No, never.", "42", "-3.50", "1,024", "3/4", "\\boxed{7}", "an apple",
         "The answer is B", "I think so.\n\nAnswer: C", "42 is not 43", "x" * 5000)
"""Texts in which an answer format may look for an answer."""


class ModelContract(ComponentContract):
    """The contract of a model. That it answers has to be tested against an endpoint."""

    def test_it_has_the_options_of_every_model(self) -> None:
        """Its `Options` inherit from `madplug.ModelOptions`.

        If this fails: the host needs these options for rate limits, attempts and prices.
        """
        assert issubclass(self.component.Options, ModelOptions)

    def test_it_answers_without_blocking(self) -> None:
        """`complete` is a coroutine function.

        If this fails: `async def complete(self, request)`; a blocking call in it blocks every debate of the study.
        """
        assert inspect.iscoroutinefunction(self.component.complete)

    def test_its_price_is_a_table_or_unknown(self) -> None:
        """`price` is None or USD per million tokens of `prompt`, `completion` and `cached`.

        If this fails: return None if it is unknown; a limit on costs is then refused with the reason.
        """
        price = self.make().price
        assert price is None or set(price) <= {"prompt", "completion", "cached"}, price


class ServiceContract(ComponentContract):
    """The contract of a service. What it does has to be tested separately."""


class DatasetContract(ComponentContract):
    """The contract of a data set."""

    def test_it_gives_samples_with_their_references(self) -> None:
        """Each item is a sample and a tuple of texts; no reference is on the sample.

        If this fails: `yield Sample(id, question, ...), (reference,)`; choices, context and images are tuples.
        """
        rows = list(islice(self.make().samples(), LOOKED_AT))
        assert rows, "there are no samples"
        for sample, references in rows:
            assert isinstance(sample, Sample), f"{sample!r:.80} is not a Sample"
            assert isinstance(references, tuple), f"the references of '{sample.id}' are {references!r:.80}"
            assert all(isinstance(text, str) for text in references), f"the references of '{sample.id}'"
            for texts in (sample.choices, sample.context, sample.images):
                assert isinstance(texts, tuple), f"sample '{sample.id}': {texts!r:.80} is not a tuple"
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
    """The contract of an answer format."""

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

        If this fails: keys are parsed again when a debate is decided again, which must not change them.
        """
        component = self.trial().ended().component
        for text in self.texts:
            key = component.canonical(text, self.sample)
            assert key is None or (isinstance(key, str) and key), f"{text!r:.80}: {key!r}"
            if key is not None:
                assert component.canonical(key, self.sample) == key, f"{text!r:.80} is {key!r:.80}, another key"

    def test_the_same_answer_is_the_same_both_ways(self) -> None:
        """`same` is true of an answer and itself, and symmetric.

        If this fails: compare what both answers mean, not the one with the other.
        """
        component = self.trial().ended().component
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
    """The contract of a paradigm."""

    def test_it_is_a_debate_that_a_run_file_could_hold(self) -> None:
        """`debate` has the slots and settings of `[debate]`, and can be written as TOML.

        If this fails: the message names the slot.
        """
        import tomli_w

        wrong = ""
        try:
            tables().debate.model_validate(dict(self.component.debate))
        except ValidationError as error:
            wrong = str(error)
        assert not wrong, wrong
        assert "paradigm" not in self.component.debate, "a preset does not name another"
        assert tomli_w.dumps(dict(self.component.debate))

    def test_what_it_names_is_installed_and_takes_its_options(self) -> None:
        """Every component it names is offered by its own plugin or a declared dependency, under its full name.

        If this fails: write names in full, and declare the plugins they come from as dependencies.
        """
        builder = _AnyNames(Made(Registry(), Path()), {})
        for base, slot in slots(self.component.debate, builder.made.registry):
            made = builder.make(base, {k: v for k, v in slot.items() if k != "for"}, f"{base.kind} {slot['use']}")
            name = made.full_name if made is not None else slot["use"]
            assert name == slot["use"], f"'{slot['use']}' is not a full name; it is '{name}'"
        assert not builder.problems, "; ".join(map(str, builder.problems))


class ObserverContract(ComponentContract):
    """The contract of an observer."""

    def test_its_methods_are_events(self) -> None:
        """Every method that begins like an event is one, and takes that event.

        If this fails: the message names the event that may have been meant; a method of another name is never called.
        """
        events = {name for name in vars(Observer) if not name.startswith("_")} - {"kind", "open", "close"}
        for name in vars(self.component):
            close = get_close_matches(name, events, n=1, cutoff=0.8)
            assert name in events or not close, f"{name} is not an event; did you mean '{close[0]}'?"


class ExecutorContract(ComponentContract):
    """The contract of an executor. The study is in a directory, so that workers elsewhere can make its components."""

    def results(self, executor: Any, folder: Path, *, stop: bool = False) -> tuple[list[dict[str, Any]], int]:
        """The debates of a small study, run by an executor, or by the host where it is None, and the calls paid for.

        stop: interrupt it when the first debate has ended.
        """
        folder.mkdir(exist_ok=True)
        (folder / "study.toml").write_text(EXECUTED, encoding="utf-8")
        with closing(open_recorder(folder)) as recorder:
            plan = load(folder / "study.toml", environ={}).plan
            if executor is not None and (missing := [*executor.check(plan.cells[0])]):
                pytest.skip(missing[0])
            asyncio.run(self._run(replace(plan, executor=executor), recorder, [Interrupting()] if stop else []))
            rows = [json.loads(to_json(result)) for result in recorder.results()]
            return [{**row, "seconds": None} for row in rows], recorder.totals().calls

    async def _run(self, plan: StudyPlan, recorder: Recorder, observers: list[Interrupting]) -> None:
        run, loop = StudyRun(plan, recorder, observers), asyncio.get_running_loop()
        for observer in observers:
            observer.stop = lambda: loop.call_soon_threadsafe(run.driver.stop, Ending("interrupted", "interrupted"))
        await run.run()

    def test_debates_end_as_they_do_without_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every debate is run once and ends as it does in the host's own process, the one that fails included.

        Requests that two cells have in common are paid for once. If this fails: give every job to a worker
        (`madplug.study.worker.Worker`) and await it; `Worker.run` records a failure and raises only what must end the
        study. Calls, messages and results go through the driver.
        """
        plugin_installer(tmp_path, monkeypatch)("executed", EXECUTED_PLUGIN)
        there, here = self.results(self.make(), tmp_path / "there"), self.results(None, tmp_path / "here")
        assert [bool(row["error"]) for row in there[0]] == [False, True, False, False, False] * 2
        assert there == here

    def test_an_interrupted_study_ends_and_goes_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Interrupted, the executor ends; resumed, every debate ends as usual, and no call is paid for twice.

        If this fails: tell workers of `driver.ending` (`driver.when_stopped`), and let `run` return once they have
        ended.
        """
        plugin_installer(tmp_path, monkeypatch)("executed", EXECUTED_PLUGIN)
        self.results(self.make(), tmp_path / "there", stop=True)
        assert self.results(self.make(), tmp_path / "there") == self.results(None, tmp_path / "here")

    def test_a_worker_that_is_killed_changes_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The debates of a worker that is lost are run again, and no call that it has kept is paid for twice.

        If this fails: *Writing plugins* lists what an executor owes when a worker is lost.
        """
        fuse = plugin_installer(tmp_path, monkeypatch)("executed", EXECUTED_PLUGIN) / "fuse"
        fuse.write_text(str(os.getpid()))
        there = self.results(self.make(), tmp_path / "there")
        if fuse.exists():
            pytest.skip("its debates run in this process")
        assert there == self.results(None, tmp_path / "here")


class Interrupting(Observer):
    """Stops a study when its first debate has ended."""

    name = "interrupting"
    stop: Callable[[], object]

    def debate_finished(self, event: DebateFinished) -> None:
        """Stop."""
        self.stop()


EXECUTED = """
name = "executed"
[dataset]
use = "executed.numbered"
[models.m]
use = "executed.letters"
[debate]
agents = 3
rounds = 2
turns = "executed.speak_all"
visibility = "executed.see_all"
styles = ["executed.plain"]
decision = "executed.last_round"
[[cells]]
name = "long"
[[cells]]
name = "short"
debate.rounds = 1
"""
EXECUTED_PLUGIN = '''
import os
import signal
from hashlib import sha256
from pathlib import Path
from madplug import Completion, Dataset, Model, ModelError, Sample, Usage, hookimpl
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

FUSE = Path(__file__).with_name("fuse")  # has the id of the process that is not to be killed

class Letters(Model):
    """Answers with a letter, but not to question 1. Question 3 kills a process, once."""
    name = "letters"
    async def complete(self, request):
        if "question 3" in repr(request.messages) and FUSE.exists() and FUSE.read_text() != str(os.getpid()):
            FUSE.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if "question 1" in repr(request.messages):
            raise ModelError("no answer")
        return Completion("ABC"[sha256(repr(request.messages).encode()).digest()[0] % 3], Usage(1, 1))

class Numbered(Dataset):
    """Five questions."""
    name = "numbered"
    answers = "executed.stripped_text"
    def samples(self, split=None):
        for i in range(5):
            yield Sample(f"q{i}", f"question {i}"), ("A",)

class Style(PlainStyle):
    """The plainest style."""
    moves = frozenset({"improve"})

@hookimpl
def madplug_register_models():
    return [Letters]

@hookimpl
def madplug_register_datasets():
    return [Numbered]

@hookimpl
def madplug_register_answers():
    return [StrippedText]

@hookimpl
def madplug_register_styles():
    return [Style]

@hookimpl
def madplug_register_turn_orders():
    return [SpeakAll]

@hookimpl
def madplug_register_visibilities():
    return [SeeAll]

@hookimpl
def madplug_register_decisions():
    return [LastRound]
'''
"""A study of which a worker in another process can make every component."""


class _AnyNames(Builder):
    """Takes the names of models and services as they are: a preset leaves them to the run file."""

    def _resolve_names(self, options: Any, place: str) -> None:
        pass


def slots(debate: Mapping[str, Any], registry: Registry) -> Iterator[tuple[type[Component], dict[str, Any]]]:
    """(base class, slot) of every component that a `[debate]` table names."""
    bases = {base.slot: base for base in registry.kinds.values()}
    for key, value in debate.items():
        if (base := bases.get(f"debate.{key}")) and value:
            for slot in value if base.how_many == "list" else [value]:
                yield base, {"use": slot} if isinstance(slot, str) else dict(slot)
