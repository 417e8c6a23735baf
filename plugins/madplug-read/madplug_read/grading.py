"""Which answers are right, as the study's answer format compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from madplug import AnswerFormat, DebateResult
from madplug.store import Reader
from madplug.study import describe_error

if TYPE_CHECKING:
    from madplug.study import Registry

Grades = Mapping[str, "bool | None"]
"""Right or wrong by answer key; None where it is not known."""
_SCORE = "qa.accuracy"


class Grader:
    """Says which answers of the debates of a study are right.

    References are compared with answers by the answer format of the cell. If its plugin is not installed, or it is in a
    local file, which is not executed because the study may be a foreign one, answers that are spelled like a reference
    are right, and so is a decision that was scored right; of other answers it is unknown.

    registry: makes the installed plugins; it is called only if a debate has references.
    """

    def __init__(self, study: Reader, registry: Callable[[], Registry] | None = None) -> None:
        identity = study.fact("identity")
        cells = identity.get("cells") if isinstance(identity, Mapping) else None
        self._cells: Mapping[str, Any] = cells if isinstance(cells, Mapping) else {}
        self._make_registry = registry
        self._registry: Registry | None = None
        self._formats: dict[str, AnswerFormat | None] = {}
        self.problems: dict[str, str] = {}
        """By cell, why its answer format could not be used."""

    def grade(self, result: DebateResult) -> Grades:
        """Right or wrong for every key in the debate; empty without references."""
        keys = {m.key for m in result.messages} | {result.decision.key if result.decision else None}
        given = [key for key in dict.fromkeys(m.key for m in result.messages) if key is not None]
        given += [key for key in keys if key is not None and key not in given]
        if not result.references or not given:
            return {}
        form = self._format(result.cell)
        if form is not None:
            try:
                return _compare(form, result, given)
            except Exception as error:  # a plugin's own code, on untrusted text
                self.problems[result.cell] = describe_error(error)
        return by_spelling(result, given)

    def _format(self, cell: str) -> AnswerFormat | None:
        if cell not in self._formats:
            self._formats[cell] = self._make(cell)
        return self._formats[cell]

    def _make(self, cell: str) -> AnswerFormat | None:
        from madplug.study import Builder, Made, Registry

        table = self._cells.get(cell)
        slot = table.get("answers") if isinstance(table, Mapping) else None
        if not isinstance(slot, Mapping):
            self.problems[cell] = "the study does not say which answer format it has"
            return None
        if self._registry is None:
            self._registry = self._make_registry() if self._make_registry else Registry()
        builder = Builder(Made(self._registry, folder=None), {"models": {}, "services": {}})
        form = builder.make(AnswerFormat, slot, "answers")
        if builder.problems or not isinstance(form, AnswerFormat):
            self.problems[cell] = "; ".join(map(str, builder.problems))
            return None
        return form


def _compare(form: AnswerFormat, result: DebateResult, keys: list[str]) -> Grades:
    sample = result.sample
    right = [key for reference in result.references if (key := form.canonical(reference, sample)) is not None]
    if not right:
        return by_spelling(result, keys)
    return {key: any(key == r or form.same(key, r, sample) for r in right) for key in keys}


def by_spelling(result: DebateResult, keys: Iterable[str]) -> Grades:
    """Right or wrong as far as the record alone tells: by the decision's score, and by references that are keys."""
    grades: dict[str, bool | None] = dict.fromkeys(keys)
    score, decision = result.metrics.get(_SCORE), result.decision
    if decision is not None and decision.key is not None and score in (0, 1):
        grades[decision.key] = score == 1
    spelled = [key for key in keys if key in result.references]
    letters = {chr(ord("A") + i) for i in range(len(result.sample.choices))}
    if spelled or (result.references and letters.issuperset((*grades, *result.references))):
        # References are written as answers are, so that the others differ from them.
        grades = {key: bool(grades[key]) for key in keys}
    return {**grades, **dict.fromkeys(spelled, True)}
