"""Agents see the messages of those that disagree with them."""

from pydantic import Field

from madplug import Options, Visibility, hookimpl


class Others(Visibility):
    """Shows each agent its own messages, and of the others only answers that differ from its own.

    The latest answers of both are compared. An agent that has not answered yet sees all answers; a message without a
    readable answer is not shown.
    """

    name = "others"

    class Options(Options):
        """Options of `dissent.others`."""

        own: bool = Field(default=True, description="show the agent its own messages too")

    def view(self, debate, turn):
        """Messages of earlier rounds and waves, oldest first."""
        mine = latest(debate, turn.agent.id)
        dissenting = {m.id for agent in debate.agents if (m := latest(debate, agent.id)) is not None
                      and agent.id != turn.agent.id and (mine is None or m.key != mine.key)}
        return [m for m in debate.transcript.messages
                if m.id in dissenting or (self.options.own and m.agent == turn.agent.id)]


def latest(debate, agent):
    """The latest message of an agent that gave an answer."""
    return next((m for m in reversed(debate.transcript.by(agent)) if m.key is not None), None)


@hookimpl
def madplug_register_visibilities():
    """Register visibilities."""
    return [Others]
