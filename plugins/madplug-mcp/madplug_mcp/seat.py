"""A seat for the model of the client: what it is asked becomes a turn, which the client takes by a tool."""

from __future__ import annotations

from pydantic import Field

from madplug import Completion, Model, ModelError, ModelOptions, Request


class ClientOptions(ModelOptions):
    """How long the client may take."""

    seconds: float = Field(default=3600.0, gt=0, description="after which a turn that nobody has taken fails")


class Client(Model):
    """The model of a client of `madplug mcp --client-seat`: it needs no key, and answers by the tool `take_turn`.

    Tokens are estimates, as for any model that reports none.
    """

    name = "client"
    Options = ClientOptions

    async def complete(self, request: Request) -> Completion:
        """What the client answers. Raises `ModelError` if it does not, or if there is none."""
        from asyncio import TimeoutError, wait_for

        from madplug_mcp.turns import current

        turns = current.get()
        if turns is None:
            raise ModelError("there is no client: only `madplug mcp --client-seat` asks this model")
        try:
            return Completion(await wait_for(turns.take(request), self.options.seconds))
        except TimeoutError:
            raise ModelError(f"the client has not taken its turn within {self.options.seconds:g} s") from None
