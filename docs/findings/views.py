"""Two more orders of a view: the agent's own answer last, and the others in reverse."""

from madplug_visibility import PreviousRound


class OwnLast(PreviousRound):
    """What was said in the previous round, the agent's own answer after the others'."""

    def view(self, debate, turn):
        """The others' answers by agent, then its own."""
        shown = super().view(debate, turn)
        return sorted(shown, key=lambda message: message.agent == turn.agent.id)


class Reversed(PreviousRound):
    """What was said in the previous round: its own answer, then the others' from the last agent on."""

    def view(self, debate, turn):
        """Its own answer, then the others' in reverse."""
        shown = super().view(debate, turn)
        own = [message for message in shown if message.agent == turn.agent.id]
        return [*own, *reversed([message for message in shown if message.agent != turn.agent.id])]
