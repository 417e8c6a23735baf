"""A model that answers from a record: tests and examples without a model, and runs that cost nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import Field

from madplug import (
    Completion,
    Model,
    ModelOptions,
    RefusedError,
    Request,
    RunPath,
    Usage,
    UserError,
    hookimpl,
    listed,
    open_study,
)

SHOWN = 300
"""Characters of a request that an error shows."""


class Replay(Model):
    """Answers from a recorded study.

    A request is looked up by what it says (messages, parameters, form) and by the agent that makes it. Where the
    record has several replies to the same request of one agent (repeats, or a request made more than once), one
    is chosen by the request's seed, so that the same study replays the same way. Where several models were asked the
    same, `model` says which of them this is. A request that was not recorded is
    an error that shows the nearest one that was.
    """

    name = "replay"

    class Options(ModelOptions):
        """Options of `cassette.replay`."""

        path: RunPath = Field(description="a study's directory, or a file made by `madplug export DIR --calls`")
        model: str | None = Field(default=None, min_length=1, description=(
            "the name in the record of the model whose replies these are; needed where several were asked the same"))
        strict: bool = Field(default=True, description="match parameters and form too, not only the messages")

    def open(self) -> None:
        """Read the record."""
        self._replies: dict[str, dict[str, list[Completion]]] = defaultdict(lambda: defaultdict(list))
        """By request and agent, and by the name of the model that was asked."""
        self._messages: list[str] = []
        for row in _rows(self.options.path):
            usage = Usage(**row["usage"])
            if "unanswered" in usage.raw:  # it was paid for, and the request was made again
                continue
            key = self._key(row["request"], row["agent"])
            self._replies[key][str(row.get("model", ""))].append(Completion(row["text"], usage))
            self._messages.append(_text(row["request"]))

    async def complete(self, request: Request) -> Completion:
        """The recorded reply."""
        asked = {"messages": list(request.messages), "params": request.params, "form": request.form}
        found = self._replies.get(self._key(asked, request.agent))
        if not found:
            raise RefusedError(f"{self.options.path}: this request was not recorded: {_text(asked)[-SHOWN:]!r}; "
                               f"{self._nearest(_text(asked))}")
        model = self.options.model or next(iter(found))
        if model not in found or (self.options.model is None and len(found) > 1):
            raise RefusedError(f"{self.options.path}: this request was recorded for {listed(map(repr, found))}; say "
                               "which model of the record this is with model = \"...\"")
        return found[model][request.seed % len(found[model])]

    def _key(self, request: Mapping[str, Any], agent: int | None) -> str:
        names = ("messages", "params", "form") if self.options.strict else ("messages",)
        parts = [request[name] for name in names]
        return json.dumps([parts, agent], sort_keys=True, ensure_ascii=False)

    def _nearest(self, text: str) -> str:
        tails = {message[-SHOWN:]: message for message in self._messages}
        near = get_close_matches(text[-SHOWN:], tails, n=1, cutoff=0.0)
        if not near:
            return "the record is empty"
        if tails[near[0]] == text:
            return "the same text was recorded for another agent, or with other parameters or another form"
        return f"the nearest recorded one is {near[0]!r}"


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.is_dir():
        with open_study(path) as study:
            yield from study.calls()
        return
    if not path.is_file():
        raise UserError(f"{path}: no such record; it is a study's directory or a file made by madplug export --calls")
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}, line {number}: not JSON: {error}") from None


def _text(request: Mapping[str, Any]) -> str:
    return "\n".join(m["content"] if isinstance(m["content"], str) else json.dumps(m["content"])
                     for m in request["messages"])


@hookimpl
def madplug_register_models() -> list[type[Model]]:
    """Register the model."""
    return [Replay]
