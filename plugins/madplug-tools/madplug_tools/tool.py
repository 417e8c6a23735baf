"""What a tool is: a kind of component that this distribution adds to madplug."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from madplug import Service

if TYPE_CHECKING:
    from madplug import Debate


@dataclass(frozen=True, slots=True)
class Function:
    """Something that a model can call."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON schema of its arguments, an object."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a call gave."""

    text: str
    source: str = ""
    """Where it is from, as a reader would look it up."""
    error: bool = False


class Tool(Service):
    """Offers functions to agents. A `[tools.NAME]` of the run file; `tools.with` names the tools of its agents.

    A tool is opened before the first debate and closed after the last, as a service is. Results are recorded before
    the agent goes on, so a debate that is resumed calls nothing twice.
    """

    kind, plural, label, slot = "tool", "tools", "tool", "tools.NAME"
    how_many = "named"
    repeatable: ClassVar[bool] = True
    """Whether a call may be made again if the process was killed before its result was recorded. False for a tool that
    changes something; the agent is then told that the call was interrupted."""

    @abstractmethod
    def functions(self, name: str) -> Sequence[Function]:
        """What it offers, once it is open. name: of its table in the run file."""

    @abstractmethod
    async def call(self, debate: Debate, function: str, arguments: Mapping[str, Any]) -> Result:
        """Call a function. arguments: as the model wrote them, an object of any content.

        An exception is reported to the agent as an error, in one line.
        """


def schema(**properties: str) -> Mapping[str, Any]:
    """The JSON schema of required text arguments, by name, from their descriptions."""
    return {"type": "object", "required": list(properties), "additionalProperties": False,
            "properties": {name: {"type": "string", "description": text} for name, text in properties.items()}}


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """A text argument; a number is written as text. Raises `ValueError` if it is missing or something else."""
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"the argument '{name}' is missing or is not text")
    return str(value)
