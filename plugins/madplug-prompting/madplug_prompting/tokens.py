"""How probable the tokens of a reply were: asked for, measured and put on record with the message."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable
from contextvars import ContextVar
from dataclasses import replace
from math import exp, fsum, log
from typing import TYPE_CHECKING, Any

from madplug import Completion, Message, Reply, Request, hookimpl, maybe_await

if TYPE_CHECKING:
    from madplug import Debate

_replied: ContextVar[list[Completion] | None] = ContextVar("replied", default=None)
"""The replies with log-probabilities to the turn under way."""


class TokenProbabilities:
    """Mixed into a component that needs token probabilities: every message then has those of its author's reply.

    Requests in which agents discuss ask for log-probabilities, and `data["prompting"]` of a message has what the last
    of its replies had: `p`, the mean probability of a token, `logp`, the mean natural logarithm, and `tokens`, how many
    there were; with `likeliest`, also `entropy`, the mean over the tokens, in nats. A message of an endpoint that gives
    none counts as unread where they are `needed`.
    """

    @property
    def measures(self) -> bool:
        """Whether they are asked for, as the options have it."""
        return True

    @property
    def needed(self) -> bool:
        """Whether the method is another one without them."""
        return True

    @property
    def likeliest(self) -> int:
        """Of how many tokens at each place the probabilities are asked for."""
        return 0

    @hookimpl(wrapper=True)
    def madplug_request(self, request: Request) -> Generator[None, Request, Request]:
        """Ask for them."""
        made = yield
        if not self.measures or made.purpose != "discuss":
            return made
        top = {"top_logprobs": self.likeliest} if self.likeliest else {}
        return replace(made, params={**made.params, "logprobs": True, **top})

    @hookimpl(wrapper=True)
    def madplug_complete(self, debate: Debate) -> Generator[None, Awaitable[Completion], Awaitable[Completion]]:
        """Note what a reply has."""
        answered = yield

        async def noted() -> Completion:
            completion: Completion = await maybe_await(answered)
            said = _replied.get()
            if said is not None and completion.logprobs:
                said.append(completion)
            return completion

        return noted()

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate: Debate) -> Generator[None, Awaitable[Reply], Awaitable[Reply]]:
        """Put it on record."""
        replied = yield
        return self.measured(replied)

    async def measured(self, replied: Awaitable[Reply]) -> Reply:
        """The reply, with its probabilities where there are any."""
        token = _replied.set([])
        try:
            reply: Reply = await maybe_await(replied)
            said = _replied.get()
        finally:
            _replied.reset(token)
        if not self.measures:
            return reply
        logs, top = (said[-1].logprobs or (), said[-1].top_logprobs) if said else ((), None)
        n = len(logs)
        found: dict[str, Any] = {"p": fsum(map(exp, logs)) / n, "logp": fsum(logs) / n, "tokens": n} if logs else {}
        if top:
            found["entropy"] = fsum(entropy(place.values()) for place in top) / len(top)
        if not logs or (self.likeliest and not top):
            found |= {"unparsed": self.needed, "missing": "log-probabilities"}
        return replace(reply, data={**reply.data, "prompting": found})


def entropy(logprobs: Iterable[float]) -> float:
    """The entropy in nats of a token whose likeliest values have these log-probabilities; the rest counts as one."""
    probabilities = [*map(exp, logprobs)]
    return -fsum(p * log(p) for p in (*probabilities, 1 - fsum(probabilities)) if p > 0)


def mean_entropy(message: Message) -> float | None:
    """The mean entropy of the tokens, in nats; None if it was not measured."""
    return _number(message, "entropy")


def token_probability(message: Message) -> float | None:
    """The mean probability of the tokens of a message's reply; None if it was not measured."""
    return _number(message, "p")


def mean_log_probability(message: Message) -> float | None:
    """The mean natural logarithm of the probabilities of the tokens; None if it was not measured."""
    return _number(message, "logp")


def _number(message: Message, name: str) -> float | None:
    found = message.data.get("prompting", {}).get(name)
    return found if isinstance(found, float) else None
