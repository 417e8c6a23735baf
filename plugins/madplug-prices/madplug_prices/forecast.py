"""What a study may take in tokens and US dollars: a trial of some samples in which no model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from madplug import Completion, Dataset, Model, ModelOptions, Request, Sampled, Usage, UserError, count, dollars, listed
from madplug.store import MemoryStore, has_study, open_study
from madplug.study import StudyRun, changed_settings, error_text
from madplug_prices.forms import reply_in

if TYPE_CHECKING:
    from madplug import Cell
    from madplug.study import ResolvedStudy

SAMPLES, CELLS = 3, 30
"""Questions that the trial debates, and of how many cells; the others are reckoned by their calls."""
SHORT, LONG = 100, 1500
"""Tokens of a short reply, and of a long one of a model without `max_tokens`."""
CHARACTERS = 4
"""Characters of a token."""
PATIENCE = 20.0
"""Seconds after which the trial is given up."""


@dataclass(frozen=True)
class Forecast:
    """What a study may take: the least that is likely, and the most."""

    tokens: tuple[float, float] = (0, 0)
    usd: tuple[float, float] = (0, 0)
    """US dollars of the models whose price is known."""
    unpriced: Sequence[str] = ()
    """The models whose price is not known."""
    problem: str = ""
    """Why nothing is known."""
    of: str = ""
    """The debates that are left, in words, if some are on record."""
    shared: bool = False
    """Whether they may use calls that are on record: of other cells, or of other studies."""
    reply: int | None = None
    """The mean tokens of the replies on record, of which a short one then has as many."""

    @property
    def text(self) -> str:
        """In lines, with what it rests on."""
        less = ", or less where calls are on record already" if self.shared else ""
        return self.amounts if self.problem else (
            f"{self.of}{self.amounts}{less}; tried on the first samples without a model\n"
            f"  low: every reply has {self._short} and agents agree at once\n"
            f"  high: every reply has max_tokens ({LONG:,} where it is not set) and they never agree")

    @property
    def _short(self) -> str:
        return f"{SHORT} tokens" if self.reply is None else f"{self.reply:,} tokens, the mean of those on record,"

    @property
    def amounts(self) -> str:
        """The tokens and dollars."""
        if self.problem:
            return f"tokens and dollars are not known beforehand: {self.problem}"
        low, high = (f"{float(f'{amount:.2g}'):,.0f}" for amount in self.tokens)
        usd = " to ".join(f"${dollars(float(f'{amount:.2g}'))}" for amount in self.usd)
        return (f"about {low} to {high} tokens" + (f", {usd}" if self.usd[1] else "")
                + (f" (no price is known for {listed(self.unpriced)})" if self.unpriced else ""))


class First(Dataset):
    """The first samples of a data set, in every split."""

    name = "first"

    def __init__(self, of: Dataset) -> None:
        super().__init__()
        self.rows = list(islice(of.samples(), SAMPLES))

    def samples(self, split: str | None = None) -> Iterator[Sampled]:
        """The samples."""
        return iter(self.rows)


class Echo(Model):
    """Replies of one length at another model's price.

    endings: answers that agents take in turn. agrees: whether every reply has the form that was asked for, agreeing
    where it can.
    """

    name = "echo"

    def __init__(self, model: Model, endings: Sequence[str], tokens: int, *, agrees: bool) -> None:
        super().__init__(ModelOptions(max_in_flight=1))
        self._model, self._endings, self._tokens, self._agrees = model, endings, tokens, agrees
        self.content = model.content

    def to_table(self, *, volatile: bool = True) -> dict[str, Any]:
        """That of the model, so that its calls on record are found, and no other's."""
        return self._model.to_table(volatile=volatile)

    @property
    def price(self) -> Mapping[str, float]:
        """That of the model; nothing if it is not known."""
        return self._model.price or {}

    async def complete(self, request: Request) -> Completion:
        """The reply."""
        ending = self._endings[(request.agent or 0) % len(self._endings)]
        tokens = min(self._tokens, request.params.get("max_tokens") or self._tokens)
        asked = "".join(map(_text, request.messages))
        prose = "word " * (tokens * CHARACTERS // 5)
        if self._agrees:
            prose = f"Confidence: 100\n{prose}"[:len(prose)]  # a gate may then leave the others out
        text = reply_in(request.form if self._agrees else None, prose, f"Final answer: {ending}", len(asked))
        return Completion(text, Usage(len(asked) // CHARACTERS + 1, tokens))


def echoes(models: Mapping[str, Model], cell: Cell, rows: Sequence[Sampled], *, longest: bool,
           short: int = SHORT) -> dict[str, Model]:
    """What replies for each of these models, with answers to these samples that the cell's answer format can read.

    longest: replies of the most tokens, which disagree, instead of short ones, of so many tokens, that agree.
    """
    endings = _endings(cell, rows)
    return {name: Echo(model, endings if longest else endings[:1], most if longest else min(most, short),
                       agrees=not longest)
            for name, model in models.items() for most in [getattr(model.options, "max_tokens", None) or LONG]}


def _text(message: Mapping[str, object]) -> str:
    """The text of a message; images are left out."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(
        part.get("text", "") for part in content) if isinstance(content, Sequence) else ""


def recorded(resolved: ResolvedStudy) -> tuple[dict[str, int], int | None]:
    """How many debates of each cell are on record and would not be run again, and the mean tokens of a reply."""
    try:
        if has_study(resolved.folder):
            with open_study(resolved.folder) as study:
                if not changed_settings(resolved, study):
                    done = dict(study.rows("SELECT cell, COUNT(*) FROM debates WHERE outcome = 'done' AND repeat < ? "
                                           "GROUP BY cell", (resolved.plan.repeats,)))
                    [(mean,)] = study.rows("SELECT AVG(completion) FROM calls")
                    return done, round(mean) if done and mean else None
    except (UserError, OSError):
        pass  # the run file is as it should be all the same; `run` tells what is wrong with the records
    return {}, None


def forecast(resolved: ResolvedStudy, done: Mapping[str, int] | None = None,
             reply: int | None = None) -> Forecast | None:
    """What a study may take, or None if it asks no model or nothing is left.

    done: debates of each cell that are on record, which are left out. reply: the mean tokens of replies on record.
    """
    plan, done = resolved.plan, done or {}
    if not any(cell.worst_calls() for cell in plan.cells):
        return None
    if any(cell.services or cell.more for cell in plan.cells):
        return Forecast(problem="services and tools are not tried")
    if any(cell.dataset is None or cell.dataset.size() is None for cell in plan.cells):
        return Forecast(problem="the number of samples is not, either")
    every = {cell.slug: (cell.dataset.size() or 0) * plan.repeats for cell in plan.cells if cell.dataset}
    left = {slug: max(0, debates - done.get(slug, 0)) for slug, debates in every.items()}
    if not any(left.values()):
        return None
    with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own
        found = thread.submit(asyncio.run, _forecast(resolved, left, reply)).result()
    if left == every:
        return replace(found, shared=bool(resolved.reuse))
    sets = {id(cell.dataset) for cell in plan.cells}
    uneven = len({(id(cell.dataset), left[cell.slug]) for cell in plan.cells}) > len(sets)
    some = f"{sum(left.values()):,} of {count(sum(every.values()), 'debate')}"
    shared = bool(resolved.reuse) or (plan.share_completions and uneven)
    return replace(found, of=f"for the {some} that are left, ", shared=shared)


async def _forecast(resolved: ResolvedStudy, left: Mapping[str, int], reply: int | None) -> Forecast:
    plan = resolved.plan
    asked = {name for cell in plan.cells for name in cell.channels.values()}
    unpriced = [name for name, model in plan.models.items() if model.price is None and name in asked]
    try:
        (few, least), (many, most) = [await asyncio.wait_for(
            _totals(resolved, left, longest=longest, short=reply or SHORT), PATIENCE) for longest in (False, True)]
    except asyncio.TimeoutError:
        return Forecast(problem=f"a trial without a model took longer than {PATIENCE:g} s")
    except Exception as error:  # whatever a component does with replies that say nothing
        return Forecast(problem=f"a trial without a model failed, as the run may: {error_text(error)}")
    return Forecast((few, many), (least, most), unpriced, reply=reply)


async def _totals(resolved: ResolvedStudy, left: Mapping[str, int], *, longest: bool,
                  short: int) -> tuple[float, float]:
    """Tokens and US dollars of what is left of each cell. Raises `RuntimeError` if a debate failed."""
    plan, tokens, usd = resolved.plan, 0.0, 0.0
    for dataset in {id(cell.dataset): cell.dataset for cell in plan.cells if cell.dataset is not None}.values():
        most = _most(cells := [cell for cell in plan.cells if cell.dataset is dataset])
        rest = [cell.slug for cell in cells if left[cell.slug]]
        if not rest:
            continue
        first, store = First(dataset), MemoryStore()
        tried = _some(cells, rest)
        await _try(resolved, tried, first, store, echoes(
            plan.models, tried[0], first.rows, longest=longest, short=short))
        calls = [call for call in store.call_figures() if call.cell in (None, *rest)]  # others are on record
        worst = sum(most[cell.slug] for cell in tried if cell.slug in rest) * len(first.rows)
        scale = sum(left[slug] * most[slug] for slug in rest) / max(1, worst)
        if longest:
            used = sum(row["calls"] for row in store.figures() if row["cell"] in rest)  # also those that cells share
            scale *= max(1.0, worst / max(1, used))
        for call in calls:
            times = 1 if call.sample is None else scale  # the others prepare the study
            tokens += (call.prompt + call.completion) * times
            usd += (call.cost_usd or 0.0) * times
    return tokens, usd


async def _try(resolved: ResolvedStudy, cells: Sequence[Cell], first: First, store: MemoryStore,
               models: Mapping[str, Model]) -> None:
    """Debate the first samples of a data set with replies that say nothing, in memory."""
    plan = resolved.plan
    await StudyRun(replace(plan, cells=[replace(cell, dataset=first, metrics={}) for cell in cells], models=models,
                           repeats=1, limits=type(plan.limits)(), executor=None, observers=()), store).run()
    if failed := next((row["error"] for row in store.figures() if row["error"]), None):
        raise RuntimeError(failed)


def _some(cells: Sequence[Cell], rest: Sequence[str]) -> list[Cell]:
    """Some of the cells with debates left, evenly spaced, with those that they are matched to."""
    own = [cell for cell in cells if cell.slug in rest]
    names = {name for cell in own[::-(-len(own) // CELLS)] for name in (cell.slug, (cell.match or {}).get("cell"))}
    return [cell for cell in cells if cell.slug in names]


def _most(cells: Sequence[Cell]) -> dict[str, int]:
    """The most calls that a sample can take in each of these cells."""
    worst = {cell.slug: cell.worst_calls() for cell in cells}
    return {cell.slug: worst[cell.match["cell"] if cell.match else cell.slug] for cell in cells}


def _endings(cell: Cell, rows: Sequence[Sampled]) -> list[str]:
    """Answers that the cell's answer format can read."""
    read = [word for word in "ABCD1234" if any(cell.answers.canonical(word, row[0]) is not None for row in rows)]
    return [f"({word})" if word.isalpha() else word for word in read] or ["yes", "no"]
