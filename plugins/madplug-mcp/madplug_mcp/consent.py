"""What a question may cost is confirmed by the person at the client before it is asked, where the server wants that."""

from __future__ import annotations

from math import inf

from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel

from madplug_ask.councils import Asked, estimate

ASKED = "cost"
"""The name of the request in the protocol without requests of the server's own (2026-07-28)."""
STATELESS = "2026-07-28"


class Consent(BaseModel):
    """Nothing is filled in: to accept is to agree."""


async def confirmed(ctx: Context, asked: Asked, most: float) -> InputRequiredResult | None:
    """None if a question may be asked; what the client has to answer first if it may cost more than `most` US dollars.

    Raises `ToolError` if the client cannot ask its user, or the user does not agree.
    """
    found = estimate(asked.resolve())
    costs = min(inf if found.usd is None else found.usd[1], inf if asked.max_usd is None else asked.max_usd)
    if costs <= most:
        return None
    words = f"This question may take {found.text}. Ask the models?"
    client = ctx.client_capabilities
    if client is None or client.elicitation is None:
        raise ToolError(f"the question may take {found.text}, and this server has more than ${most:g} confirmed by "
                        f"a person, whom this client cannot ask; give a max_usd of {most:g} at most, or fewer seats")
    if ctx.protocol_version is None or ctx.protocol_version < STATELESS:
        action = (await ctx.elicit(words, Consent)).action
    else:
        replies = ctx.input_responses if ctx.request_state == asked.id else None
        answer = (replies or {}).get(ASKED)
        if not isinstance(answer, ElicitResult):
            form = ElicitRequestFormParams(message=words, requested_schema=render_elicitation_schema(Consent))
            return InputRequiredResult(input_requests={ASKED: ElicitRequest(params=form)}, request_state=asked.id)
        action = answer.action
    if action != "accept":
        raise ToolError("the user does not agree to the cost; nobody was asked")
    return None
