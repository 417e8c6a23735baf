"""In every round, one randomly chosen agent argues against the others."""

from dataclasses import replace

from pydantic import Field

from madplug import Extension, Options, hookimpl

ASSIGNED = ("In this round you are the devil's advocate: argue as well as you can against the answer that most of the "
            "others give, whatever you think yourself.")


class RandomAdvocateOptions(Options):
    """Options of `advocate.random`."""

    sentence: str = Field(default=ASSIGNED, min_length=1, description="what the advocate is told")
    first: int = Field(default=2, ge=1, description="the first round with an advocate")
    counts: bool = Field(default=False, description="let the advocate's answer count")


class RandomAdvocate(Extension):
    """Makes a random voter the devil's advocate in every round.

    A sentence is added to its prompt. Its message is recorded with `data.advocate`, and gives no answer unless `counts`
    is set.
    """

    name = "random"
    Options = RandomAdvocateOptions

    def advocate(self, debate):
        """The id of this round's advocate, or None."""
        if debate.round < self.options.first or not debate.voters:
            return None
        return debate.rng(f"advocate.random:round {debate.round}").choice([agent.id for agent in debate.voters])

    @hookimpl(wrapper=True)
    def madplug_request(self, debate, request):
        """Add the sentence to what the advocate is asked."""
        request = yield
        if request.purpose != "discuss" or request.agent != self.advocate(debate):
            return request
        return replace(request, messages=(*request.messages, {"role": "user", "content": self.options.sentence}))

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate, turn, view):
        """Mark what the advocate says."""
        pending = yield
        return self.marked(pending, turn) if turn.agent.id == self.advocate(debate) else pending

    async def marked(self, pending, turn):
        """The advocate's reply, with a mark and, unless it counts, without an answer."""
        reply = await pending
        return replace(reply, answer=reply.answer if self.options.counts else "",
                       data={**reply.data, "advocate": {"agent": turn.agent.id}})


@hookimpl
def madplug_register_extensions():
    """Register extensions."""
    return [RandomAdvocate]
