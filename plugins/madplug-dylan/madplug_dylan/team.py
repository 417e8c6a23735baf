"""Who debates: roles, and a team chosen by what its members contributed to an earlier study."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import ComponentError, Options, Persona, PersonaGenerator, RunPath, Setup, UserError, open_study
from madplug_dylan.importance import has_ratings, scores

if TYPE_CHECKING:
    from madplug import Debate

ROLES = {
    "Economist": "You are an economist. You know markets, management, money, and what the past shows about them.",
    "Doctor": "You are a doctor. You know diseases, their treatment, and what medicines and habits do to the body.",
    "Lawyer": "You are a lawyer. You know laws and how courts apply them, politics, and how to argue a case.",
    "Mathematician": "You are a mathematician. You calculate with care, and prove what you claim.",
    "Psychologist": "You are a psychologist. You know how people think and feel, and why they act as they do.",
    "Programmer": "You are a programmer. You know computers and software, and turn problems into steps.",
    "Historian": "You are a historian. You know the events and cultures of the past, and how they came about.",
    "Assistant": "You are a careful assistant.",
}


class RolesOptions(Options):
    """Which roles."""

    roles: dict[str, str] = Field(default=ROLES, min_length=1, description=(
        "name and description of each role; agents beyond them have the last one, with a number"))


class Roles(PersonaGenerator):
    """The paper's roles, in order: Economist, Doctor, Lawyer, Mathematician, Psychologist, Programmer, Historian.

    Further agents are assistants.
    """

    name = "roles"
    source = "Liu et al. 2023 (DyLAN), section 4 (general reasoning); the authors' code for MMLU"
    Options = RolesOptions

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The next role."""
        names = list(self.options.roles)
        place = min(len(roster), len(names) - 1)
        name = names[place] if len(roster) < len(names) else f"{names[-1]} {len(roster) - len(names) + 2}"
        return Persona(name, self.options.roles[names[place]])


class TeamOptions(Options):
    """The earlier study."""

    study: RunPath = Field(description="the directory of a study whose agents rated each other (`dylan.rating`)")
    cell: str | None = Field(default=None, min_length=1, description="the cell that counts; default: all")
    per: Literal["group", "study"] = Field(default="group", description=(
        "a team for each group of samples (a subject), or one for all; a group without debates has the team of all"))


class Team(PersonaGenerator):
    """The personas with the highest mean importance in an earlier study, as many as the debate has agents.

    Personas are known by name; those with equal means are in the order of the study. A failed debate does not
    count, nor does a cell in which nobody rated anybody beside others in which agents did.

    Differs from the paper, where an agent can also be a model or a tool: only the persona is taken over.
    """

    name = "team"
    source = "Liu et al. 2023 (DyLAN), section 3.3 (team optimisation)"
    Options = TeamOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._teams: dict[str, list[Persona]] = {}

    def check(self, cell: Any) -> Iterator[str]:
        """The earlier study can be read."""
        try:
            open_study(self.options.study).close()
        except UserError as error:
            yield from (f"'study': {problem}" for problem in error.problems)

    def prepare(self, setup: Setup) -> None:
        """Read the study."""
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        personas: dict[str, Persona] = {}
        with open_study(self.options.study) as study:
            rated = {result.cell for result in study.results(self.options.cell) if has_ratings(result.messages)}
            for result in study.results(self.options.cell):
                if result.decision is None or (rated and result.cell not in rated):
                    continue
                given = scores([m for m in result.messages if not m.retracted], result.decision.key)
                for agent in result.agents:
                    personas[agent.persona.name] = agent.persona
                    for group in {"", result.sample.group}:
                        found[group][agent.persona.name].append(given.get(agent.id, 0.0))
        if not personas:
            raise UserError(f"{self.options.study}: no debate has ended there, so no team can be chosen")
        self._teams = {group: [personas[name] for name in sorted(by_name, key=lambda n: -fmean(by_name[n]))]
                       for group, by_name in found.items()}

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The best persona that is not in the team yet."""
        group = debate.sample.group if self.options.per == "group" else ""
        team = self._teams.get(group, self._teams[""])
        if len(roster) >= len(team):
            raise ComponentError(f"the study has {len(team)} personas to choose from; lower debate.agents")
        return team[len(roster)]
