"""A worker: runs jobs, in the driver's process or in another one.

It makes its own components from the same run file, and opens its own models and services. Everything that has to be
stored or granted goes through the driver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from madplug.aio import ends_the_run, maybe_await
from madplug.calls.driver import Driver
from madplug.calls.gateway import Gateway
from madplug.component import Component
from madplug.config.plan import StudyPlan
from madplug.debate.checks import describe_error
from madplug.debate.loop import run_debate
from madplug.debate.state import DebateState, change, stored_debate, tell, to_result
from madplug.errors import ComponentError, MadplugError, StudyError, StudyStopped
from madplug.events import DebateStarted
from madplug.kinds import (
    Casting,
    DecisionProtocol,
    PersonaGenerator,
    Phase,
    Service,
    Style,
    TurnOrder,
    Visibility,
)
from madplug.records import DebateResult, Decision, Job
from madplug.store.scope import of_metric
from madplug.study.setup import CellSetup

Runner = Callable[[DebateState], Awaitable[Decision]]
"""Brings a debate to its decision."""
_MOST = 1e100
"""The largest score: sums of squares of larger ones would overflow, and no figures could be made of the study."""


class Worker:
    """The cells of a study, ready to run debates.

    runner: runs a debate; by default the loop. None: debates on record are scored, and none is run.
    """

    def __init__(self, plan: StudyPlan, driver: Driver, *, runner: Runner | None = run_debate) -> None:
        self.plan = plan
        self.gateway = Gateway(plan.models, plan.cells, driver, seed=plan.seed, share=plan.share_completions,
                               answer=plan.executor.answer if plan.executor else None)
        self.setups = {cell.slug: CellSetup(cell, self.gateway, driver, plan.seed) for cell in plan.cells}
        self._driver = driver
        self._runner = runner
        self.last_error: BaseException | None = None
        """The error of the latest failed debate."""
        self._opened: list[Service] = []

    async def open(self) -> None:
        """Open the services and prepare every component; a model is opened before its first request."""
        services = {id(s): s for cell in self.plan.cells for s in cell.components() if isinstance(s, Service)}
        for service in services.values():
            await run_setup_step(service, "open", service.open)
            self._opened.append(service)
        prepared: set[int] = set()
        for setup in self.setups.values():
            for component in setup.cell.components(self._without()):
                if id(component) not in prepared:
                    prepared.add(id(component))
                    await run_setup_step(component, "prepare", partial(component.prepare, setup))
            if setup.training_use:
                await self._driver.remember(f"trained.{setup.cell.slug}", dict(setup.training_use))

    def _without(self) -> tuple[type[Component], ...]:
        """The kinds that are not needed: debates on record have their messages, and those to be scored a decision."""
        decided = () if self._runner else (Visibility, DecisionProtocol, Phase)
        return () if self._runner is run_debate else (PersonaGenerator, Casting, TurnOrder, Style, *decided)

    async def close(self) -> None:
        """Close models and services."""
        await self.gateway.close()
        for service in reversed(self._opened):
            try:
                await maybe_await(service.close())
            except Exception as error:
                self._driver.problem(f"service {service.full_name}: close raised {describe_error(error)}")

    async def run(self, job: Job) -> DebateResult | None:
        """Run a debate, or take the one on record, score it and have it stored; None if the study was stopped before.

        A debate that cannot be stored is a failed one.
        """
        cell = self.setups[job.cell].cell
        state = stored_debate(job.recorded, cell, client=self.gateway, seed=job.seed) if job.recorded is not None else \
            DebateState(cell, job.sample, right=job.references, client=self.gateway, emit=self._driver.tell,
                        repeat=job.repeat, seed=job.seed)
        change(state, order=job.order, matched=job.matched)
        try:
            result = job.recorded or await self._debate(state)
            result = await self._score(state, result, cell.metrics if job.recorded is None else job.metrics)
        except StudyStopped:
            await self._driver.finish(state.id, None)
            return None
        try:
            await self._driver.finish(state.id, result)
        except ComponentError as error:
            result = replace(result, messages=(), notes={}, decision=None, metrics={}, error=describe_error(error))
            await self._driver.finish(state.id, result)
        return result

    async def _debate(self, state: DebateState) -> DebateResult:
        started, why = asyncio.get_running_loop().time(), None
        tell(state, DebateStarted(state.id, state.whole, state.right, state.order))
        try:
            if state.cell.match is not None:
                self._check_match(state)
            assert self._runner is not None
            await self._runner(state)
        except BaseException as error:  # components raise anything; what is not theirs is raised again
            why = self._why_failed(error)
        seconds = round(asyncio.get_running_loop().time() - started + state.spent.seconds, 4)
        return to_result(state, error=why, seconds=seconds)  # before metrics ask: a budget has no part of it

    def _why_failed(self, error: BaseException) -> str:
        """The reason why a debate failed; an error that is not a failure of the debate is raised again."""
        stopped = isinstance(error, StudyStopped) and self._driver.ending is not None
        if stopped or isinstance(error, StudyError) or ends_the_run(error):
            raise error
        if isinstance(error, asyncio.CancelledError | SystemExit):
            what = "called sys.exit" if isinstance(error, SystemExit) else "raised asyncio.CancelledError"
            return describe_error(ComponentError(f"a component {what}").with_traceback(error.__traceback__))
        self.last_error = error
        return describe_error(error)

    def _check_match(self, state: DebateState) -> None:
        match, matched = state.cell.match, state.matched
        assert match is not None
        if matched is None:
            raise StudyStopped("stopped before the matched debate ended")
        if matched.error:
            raise ComponentError(f"the debate of cell '{match['cell']}' this one is matched to failed: {matched.error}")

    async def _score(self, state: DebateState, result: DebateResult, metrics: Iterable[str]) -> DebateResult:
        """The debate with the scores of these metrics; one that failed has none.

        A metric that fails is a problem of the study and leaves the debate as it is, to be scored when the study is
        resumed. Raises `StudyStopped` if the study was stopped before the debate was scored.
        """
        digests = self.setups[state.cell.slug].metric_digests
        change(state, scored=True)
        for name in metrics if result.decision is not None else ():
            change(state, other_calls=[])
            try:
                result = await _score(state, result, name, digests[name])
            except BaseException as error:  # as in `_debate`
                self._driver.problem(f"metric {name}: {self._why_failed(error)}")
        if state.refused:  # a component has caught it, and gone on without the answer
            raise StudyStopped("stopped before the debate was scored")
        return result


async def run_setup_step(component: Component, what: str, step: Callable[[], Any]) -> None:
    """Run a step before the first debate; an error ends the study and names the component."""
    try:
        await maybe_await(step())
    except (MadplugError, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # components raise anything, `SystemExit` included
        raise StudyError(f"{component.label} {component.full_name}: {what} failed: {describe_error(error)}") from error


async def _score(debate: DebateState, result: DebateResult, name: str, digest: str) -> DebateResult:
    """The result with the scores of a metric, one number or several, which take the place of its earlier ones.

    digest: of the metric.
    """
    metric = debate.cell.metrics[name]
    value = await maybe_await(metric.score(debate, debate.right))
    scores = {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {name: value}
    for part, number in scores.items():
        # isinstance first: a comparison of anything else may raise; NaN fails it.
        if number is not None and not (isinstance(number, int | float) and abs(number) <= _MOST):
            raise ComponentError(f"{type(metric).__qualname__}.score gave {number!r:.40} for {part}; "
                                 f"expected a number up to {_MOST:g}")
        scores[part] = None if number is None else float(number)
    names = {*result.scored_by, name}
    kept = {part: value for part, value in result.metrics.items() if of_metric(part, names) != name}
    return replace(result, metrics={**kept, **scores}, scored_by={**result.scored_by, name: digest},
                   other_calls=tuple(dict.fromkeys([*result.other_calls, *debate.other_calls])))
