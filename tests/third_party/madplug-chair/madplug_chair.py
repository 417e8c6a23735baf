"""A chair who reads the debate and calls on who speaks next."""

import re

from pydantic import Field

from madplug import Options, Persona, PersonaGenerator, Reply, Style, Turn, TurnOrder, hookimpl

ROLE = "chair"
PROMPT = """{question}

{said}

You chair this debate and have no opinion of your own. Who should speak next? Reply with one name of: {names}"""


class Chair(PersonaGenerator):
    """Makes the chair, who has no vote."""

    name = "persona"
    roles = frozenset({ROLE})

    def generate(self, debate, roster):
        """One chair; another generator makes the debaters."""
        return Persona("Chair", "You chair the debate.", role=ROLE, votes=False)


class Called(TurnOrder):
    """The chair names a debater, who then speaks; so many times in a round."""

    name = "called"
    moves = frozenset({"call", "improve"})

    class Options(Options):
        """Options of `chair.called`."""

        calls: int = Field(default=3, ge=1, description="debaters that are called on in a round")

    def waves(self, debate):
        """The chair's turn, and then the turn of the agent that the chair's message names."""
        (chair,) = debate.with_role(ROLE)
        for _ in range(self.options.calls):
            yield [Turn(chair, "call")]
            called = debate.transcript.last(chair).data["chair"]["called"]
            yield [Turn(debate.agent(called))]

    def turns(self, agents, round):
        """Two for every call."""
        return 2 * self.options.calls

    def check(self, cell):
        """There must be a chair."""
        if cell.roles and ROLE not in cell.roles:
            yield 'there is no chair; begin personas with "chair.persona"'


class Calling(Style):
    """Asks the chair for a name; if none can be read, the agent that has spoken least is called."""

    name = "calling"
    moves = frozenset({"call"})

    class Options(Options):
        """Options of `chair.calling`."""

        prompt: str = Field(default=PROMPT, description="{question}, {said} and {names} are filled in")

    async def respond(self, debate, turn, view):
        """The chair's message gives no answer to the question."""
        names = {agent.persona.name: agent.id for agent in debate.voters}
        said = "\n".join(f"{debate.agent(m.agent).persona.name}: {m.content}" for m in view if m.agent is not None)
        values = {"question": debate.sample.question, "said": said or "No one has spoken yet.",
                  "names": ", ".join(names)}
        prompt = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), self.options.prompt)
        text = (await debate.ask(prompt, agent=turn.agent, purpose="moderate")).text
        found = [i for name, i in names.items() if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
        unread = len(found) != 1
        called = min(names.values(), key=lambda i: len(debate.transcript.by(i))) if unread else found[0]
        return Reply(f"{debate.agent(called).persona.name}, please.", "",
                     data={"chair": {"called": called, "unparsed": unread}})


@hookimpl
def madplug_register_personas():
    """Register persona generators."""
    return [Chair]


@hookimpl
def madplug_register_turn_orders():
    """Register turn orders."""
    return [Called]


@hookimpl
def madplug_register_styles():
    """Register styles."""
    return [Calling]
