"""Parts of a question that some roles may not know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from dataclasses import replace
from typing import Any

from pydantic import Field

from madplug import Extension, Options, Sampled, Setup, hookimpl, iterate, maybe_await


class HiddenOptions(Options):
    """Options of `visibility.hidden`."""

    columns: dict[str, tuple[str, ...]] = Field(min_length=1, description=(
        "the roles that each column is hidden from: `choices`, `context`, `images`, or another column of the data"))


class Hidden(Extension):
    """Hides columns of every question from agents of certain roles, such as a passage from a judge.

    The host hands such a column out on behalf of the other agents only: in their turns, and where a component asks for
    `debate.seen_by(agent)`. Decisions, phases, persona generators and metrics get the question without it.
    """

    name = "hidden"
    Options = HiddenOptions

    @hookimpl(wrapper=True)
    def madplug_samples(self, setup: Setup) -> Generator[None, Any, AsyncIterator[Sampled]]:
        """The samples, with what is hidden from whom."""
        samples = yield
        return self._marked(samples)

    async def _marked(self, samples: Any) -> AsyncIterator[Sampled]:
        async for sample, references in iterate(await maybe_await(samples)):
            yield replace(sample, hidden_from={**sample.hidden_from, **self.options.columns}), references
