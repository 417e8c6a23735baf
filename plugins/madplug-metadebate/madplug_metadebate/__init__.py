"""Meta-Debate: models apply for the roles of a debate, review each other's applications, and the best one plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from madplug import Paradigm, hookimpl
from madplug_dmad import Text, Vision
from madplug_dmad.methods import DESCRIPTIONS
from madplug_mad import Roles, TitForTat
from madplug_metadebate.cast import Cast
from madplug_metadebate.review import best_candidates, means, read_scores

__all__ = ["Cast", "Dmad", "DmadVision", "Mad", "best_candidates", "means", "read_scores"]

_ROLES = {name: option.default for name, option in Roles.Options.model_fields.items()}


class Mad(Paradigm):
    """Two sides and a moderator, each played by the model that its peers found best for the role on this question.

    `mad.tit_for_tat` after a casting by `metadebate.cast`: every model of `debate.models` applies for every role, the
    negative side and the moderator in view of the winning applications before theirs. Three models cost 18 calls and
    the debate. The criteria are made once for the data set.
    """

    name = "mad"
    source = "Meta-Debate (dynamic role assignment for multi-agent debate), sections 3 and 4"
    debate: ClassVar[Mapping[str, Any]] = {**TitForTat.debate, "casting": {
        "use": "metadebate.cast",
        "setting": "Two sides debate a question, one turn each in a round, and a moderator decides when it has seen "
                   "enough.",
        "roles": {role: _ROLES[role] for role in ("affirmative", "negative", "moderator")}}}


def _by_method(base: type[Paradigm], roles: Sequence[str]) -> Mapping[str, Any]:
    """A debate of methods after a casting in which every model applies by its first turn."""
    return {**base.debate, "casting": {
        "use": "metadebate.cast", "proposals": "style", "proposal_context": "none",
        "setting": "Several participants solve a question, each by its own method, and read each other's "
                   "solutions.",
        "roles": {role: DESCRIPTIONS[role][1] for role in roles}}}


class Dmad(Paradigm):
    """Three ways to think, each taken by the model that its peers found best for it on this question.

    `dmad.text` after a casting by `metadebate.cast`: every model applies with each method's own first turn, in two
    steps for step back and with a program that is run for program of thought. The applications do not build on each
    other, since the first answers of that debate do not. Three models cost 21 calls and the debate.

    Differs from the paper's count of calls, which has one for an application: one by a method of two steps makes two.
    """

    name = "dmad"
    source = Mad.source
    debate: ClassVar[Mapping[str, Any]] = _by_method(Text, ("cot", "step_back", "program"))


class DmadVision(Paradigm):
    """Three ways to look at an image, each taken by the model that its peers found best for it on this question.

    `dmad.vision` after a casting by `metadebate.cast`, as `metadebate.dmad`; the images go along with applications,
    reviews and the request for criteria. Three models cost 24 calls and the debate.
    """

    name = "dmad_vision"
    source = Mad.source
    debate: ClassVar[Mapping[str, Any]] = _by_method(Vision, ("io", "ccot", "ddcot"))


@hookimpl
def madplug_register_castings() -> list[type]:
    """Register the casting."""
    return [Cast]


@hookimpl
def madplug_register_paradigms() -> list[type]:
    """Register three paradigms."""
    return [Mad, Dmad, DmadVision]
