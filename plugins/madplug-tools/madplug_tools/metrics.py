"""What the tools of a debate were used for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug import Message, Metric, earlier_answers
from madplug_qa.keys import canonical_references, is_right

if TYPE_CHECKING:
    from madplug import Debate


class Use(Metric):
    """How tools were used, and what came of it.

    `calls`: per message. `errors`: the share of calls that failed. `changed`: of an agent's answers after a tool, the
    share that differ from its answer before. `right_with` and `right_without`: the share of right answers in turns with
    and without a call, if there are references. A part that has nothing to count is missing.
    """

    name = "use"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None]:
        """Over all messages that stand."""
        said = [m for m in debate.transcript.messages if m.agent is not None]
        calls = [call for m in said for call in calls_of(m)]
        right, earlier = canonical_references(debate, references), earlier_answers(said)
        scores = {"calls": _mean([float(len(calls_of(m))) for m in said]),
                  "errors": _mean([float(bool(call.get("error"))) for call in calls]),
                  "changed": _mean([float(m.key != earlier[m.id]) for m in said if m.id in earlier and calls_of(m)])}
        for part, used in (("right_with", True), ("right_without", False)):
            answered = [m for m in said if m.answers and bool(calls_of(m)) is used]
            scores[part] = _mean([float(is_right(debate, m.key, right)) for m in answered]) if right else None
        return scores


def calls_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """The calls of tools behind a message."""
    table = message.data.get("tools")
    found = table.get("calls") if isinstance(table, Mapping) else ()
    return [call for call in found if isinstance(call, Mapping)] if isinstance(found, list | tuple) else []


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
