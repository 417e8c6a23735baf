"""The data set of a served study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from madplug import Dataset, Nested, Options, Sample


class ConversationsOptions(Options):
    """Options of `serve.conversations`."""

    like: Nested[Dataset] | None = Field(default=None, description=(
        "the data set of the run file: its answer format applies, and components can read its samples in preparation"))


class Conversations(Dataset):
    """The conversations that clients of `madplug serve` send.

    `madplug serve` puts it in the place of the run file's data set, so that a served study is never mistaken for one
    that was run on the data, whose samples are not debated. A run file made for serving can name it, together with
    `answers`, or leave the data set out.
    """

    name = "conversations"
    Options = ConversationsOptions

    @property
    def has_images(self) -> bool:
        """Whether the run file's data set has any."""
        return self.options.like is not None and self.options.like.has_images

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """The answer format of the run file's data set."""
        return None if self.options.like is None else self.options.like.answers

    @property
    def metadata(self) -> dict[str, Any]:
        """What a conversation has in common with the samples of the run file's data set: the task in words."""
        task = getattr(self.options.like.options, "instruction", "") if self.options.like is not None else ""
        return {"instruction": task} if task else {}

    def samples(self, split: str | None = None) -> Iterable[tuple[Sample, tuple[str, ...]]]:
        """Those of the run file's data set, for components that read some in `prepare`."""
        return () if self.options.like is None else self.options.like.samples(split)
