"""A model that answers with recorded replies, so that a style's own prompts lead to what models really said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from madplug import Completion, Model, ModelOptions, RefusedError, Request, RunPath, UserError, Volatile
from madplug_files.columns import Row, in_column
from madplug_files.problems import Problems, problem
from madplug_files.readers import Lines
from madplug_replay.trajectories import Scalar, has_values

Said = dict[tuple[int, int], str]
"""By agent and round, both as in the record: what was replied."""


class RepliesOptions(ModelOptions):
    """Options of `replay.replies`."""

    path: Annotated[RunPath, Volatile] = Field(description=(
        "the replies, one JSON object per line: `qid` (or `id`), `agent` (from 0), `round` (from 1) and `response`; "
        "relative to the run file"))
    questions: Annotated[RunPath, Volatile] = Field(description=(
        "the questions, one JSON object per line: `qid` (or `id`) and `question`; relative to the run file"))
    select: dict[str, Scalar | tuple[Scalar, ...]] = Field(default={}, description=(
        "only replies with these values: {run = \"...\"}; a list matches any of its values, `*` in a string any text"))


class Replies(Model):
    """What recorded agents replied to the same question in the same round, under a style's own prompts.

    The question is the one whose text is in the prompt. The round is one more than the replies of its own that the
    agent is shown, so it takes a style whose prompt is the agent's whole chat, such as `som.exchange` with
    `visibility.everything`. Only discussion is on record: ballots, judgements and personas are refused, and so is a
    turn that was not recorded. Tokens were not recorded and are counted as none.
    """

    name = "replies"
    Options = RepliesOptions

    def open(self) -> None:
        """Read the record. Raises `UserError` with every problem of both files."""
        self._said = _read(self.options)

    async def complete(self, request: Request) -> Completion:
        """The recorded reply."""
        if request.agent is None or request.purpose != "discuss":
            raise RefusedError(f"{self.options.path}: only discussion is on record, and this call is for "
                               f"'{request.purpose}'")
        text = _flat(" ".join(_contents(request.messages)))
        question = max((q for q in self._said if q in text), key=len, default=None)
        if question is None:
            raise RefusedError(f"{self.options.questions}: no question of it is in the prompt {text[-200:]!r}")
        number = 1 + sum(message["role"] == "assistant" for message in request.messages)
        reply = self._said[question].get((request.agent, number))
        if reply is None:
            raise RefusedError(f"{self.options.path}: no reply of agent {request.agent} in round {number} to "
                               f"{question[:80]!r}")
        return Completion(reply)

    def check(self, cell: Any) -> Iterable[str]:
        """Check both files."""
        try:
            _read(self.options)
        except UserError as error:
            yield from map(str, error.problems)


def _read(options: RepliesOptions) -> dict[str, Said]:
    problems = Problems()
    by_id = _replies(options, problems)
    questions = _questions(options, problems, by_id)
    problems.finish()
    if not questions:
        raise problem(str(options.path), f"no selected reply belongs to a question of {options.questions}")
    return {text: by_id[name] for text, name in questions.items()}


def _replies(options: RepliesOptions, problems: Problems) -> dict[str, Said]:
    """The selected replies by the id of their question; two to the same turn are a problem."""
    by_id: dict[str, Said] = {}
    places: dict[tuple[str, int, int], str] = {}

    def add(place: str, row: Row) -> None:
        name, agent, number, text = _reply(place, row)
        before = places.setdefault((name, agent, number), place)
        if before != place and by_id[name][agent, number] != text:
            raise problem(place, f"is another reply of agent {agent} in round {number} to '{name}' than "
                                 f"{_line(before)}; choose one with `select`")
        by_id.setdefault(name, {})[agent, number] = text

    for _, place, row in Lines(options.path).rows(problems.add):
        if has_values(row, options.select):
            problems.attempt(add, place, row)
    return by_id


def _questions(options: RepliesOptions, problems: Problems, ids: Collection[str]) -> dict[str, str]:
    """The ids of these questions by their text; neither a text nor an id may stand for two of them."""
    by_text: dict[str, str] = {}
    texts: dict[str, str] = {}
    places: dict[str, str] = {}

    def add(place: str, row: Row) -> None:
        name, text = _question(place, row)
        if name not in ids:
            return
        if (same := by_text.setdefault(text, name)) != name:
            raise problem(place, f"asks the same as {_line(places[same])}, which has another id: the replies to the "
                                 "two cannot be told apart")
        if texts.setdefault(name, text) != text:
            raise problem(place, f"has the id '{name}' of {_line(places[name])}, which asks something else")
        places.setdefault(name, place)

    for _, place, row in Lines(options.questions).rows(problems.add):
        problems.attempt(add, place, row)
    return by_text


def _line(place: str) -> str:
    """The line of a place, which is in the same file."""
    return place.rpartition(": ")[2]


def _reply(place: str, row: Row) -> tuple[str, int, int, str]:
    agent, number, text = (row.get(name) for name in ("agent", "round", "response"))
    for name, value, kind, wanted in (("agent", agent, int, "a whole number"), ("round", number, int, "a whole number"),
                                      ("response", text, str, "a text")):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise problem(in_column(place, name), f"is {value!r:.60}; expected {wanted}")
    return _id(place, row), int(agent or 0), int(number or 0), str(text)


def _question(place: str, row: Row) -> tuple[str, str]:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise problem(in_column(place, "question"), f"is {question!r:.60}; expected a text")
    return _id(place, row), _flat(question)


def _id(place: str, row: Row) -> str:
    name = row.get("qid", row.get("id"))
    if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
        column = "qid" if "qid" in row else "id"
        raise problem(in_column(place, column), f"is {name!r:.60}; expected a text or a number")
    return str(name)


def _contents(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (m["content"] for m in messages if m["role"] == "user" and isinstance(m["content"], str))


def _flat(text: str) -> str:
    """The text with single spaces: prompts may break lines where the record does not."""
    return " ".join(text.split())
