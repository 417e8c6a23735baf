"""Who takes part: generators of personas. They can be mixed; each sees the personas made before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Options, Persona, PersonaGenerator, hookimpl
from madplug_personas.generated import Expert, Ipip
from madplug_personas.names import NEUTRAL, participant, unique

if TYPE_CHECKING:
    from madplug import Debate


class NoPersona(PersonaGenerator):
    """Participant 1, Participant 2, ...: no character, and no model call."""

    name = "none"
    source = "Becker et al. 2025 (MALLM), section 3.1"

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The next number."""
        return participant(roster)


class Row(Options):
    """One persona of a list."""

    name: str = Field(min_length=1, description="what the others call the agent")
    description: str = Field(default="", description="who the agent is, as its prompts tell it")
    role: str = Field(default="participant", min_length=1, description="what styles are bound to")
    votes: bool = Field(default=True, description="whether the agent counts in the decision")


class FixedOptions(Options):
    """The list."""

    personas: tuple[Row | str, ...] = Field(
        default=("Alex", "Blake", "Casey"), min_length=1,
        description="the personas: names, or tables of `name`, `description`, `role` and `votes`")


class Fixed(PersonaGenerator):
    """The personas that the run file lists, in its order.

    A plain string is a name. The list fixes how many there are.
    """

    name = "fixed"
    Options = FixedOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.count = len(self.options.personas)
        self.roles = frozenset(row.role for row in self.rows())

    def check(self, cell: Any) -> Iterable[str]:
        """Names are unique."""
        names = [p.name for p in self.rows()]
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield f"the name '{name}' is listed more than once"

    def rows(self) -> list[Row]:
        """The list as tables."""
        return [Row(name=row) if isinstance(row, str) else row for row in self.options.personas]

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Sequence[Persona]:
        """All of them."""
        made: list[Persona] = []
        for row in self.rows():
            made.append(Persona(unique(row.name, [*roster, *made]), row.description, row.role, row.votes))
        return made


class NeutralOptions(Options):
    """How many, and what they are called."""

    count: int = Field(default=1, ge=1, le=1000, description="how many, at this place of the list")
    title: str = Field(default="Moderator", min_length=1, description="the name; numbered where there are more")
    description: str = Field(default="You take no side. You write the solution that the discussion supports.",
                             description="who it is, as its prompts tell it")


class Neutral(PersonaGenerator):
    """A moderator that drafts solutions and does not vote.

    Turn orders let agents of the role `neutral` speak before the others, and ask them for drafts only. They count
    as `agents`, and neither in the decision nor in the share of the agents that it needs (the authors' code has
    them in the share).
    """

    name = "neutral"
    roles = frozenset({NEUTRAL})
    source = "Becker et al. 2025 (MALLM), section 3.1"
    Options = NeutralOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.count = self.options.count if self.options.count > 1 else None

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Sequence[Persona]:
        """One, or as many as were asked for."""
        title, number = self.options.title, self.options.count
        names = [title] if number == 1 else [f"{title} {i + 1}" for i in range(number)]
        return [Persona(unique(n, roster), self.options.description, NEUTRAL, votes=False) for n in names]


@hookimpl
def madplug_register_personas() -> list[type[PersonaGenerator]]:
    """Register five persona generators."""
    return [NoPersona, Expert, Ipip, Fixed, Neutral]
