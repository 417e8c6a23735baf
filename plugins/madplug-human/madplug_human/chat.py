"""A person as a model."""

from __future__ import annotations

import hmac
import os
import secrets
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import Completion, Model, ModelOptions, Request, Volatile

if TYPE_CHECKING:
    from madplug_human.desk import Desk

KEY = "MADPLUG_HUMAN_KEY"


class ChatOptions(ModelOptions):
    """Options of `human.chat`."""

    person: str = Field(min_length=1, max_length=100, description=(
        "who answers, as the page calls them; everybody has a model of their own"))
    port: Annotated[int, Volatile] = Field(default=8650, ge=0, le=65535, description=(
        "where their page is; another one for everybody, or 0 for any free one, at which no page goes on when the "
        "study is resumed"))
    host: Annotated[str, Volatile] = Field(default="127.0.0.1", description=(
        "the address to listen at; by default only this machine can open the page"))
    key_env: Annotated[str, Volatile] = Field(default=KEY, description=(
        "the variable with a key that makes links the same whenever the study is resumed; unset: a link holds for one "
        "run"))


class Chat(Model):
    """A person who answers in the browser, in any seat of any method.

    When the first request comes, the link to the person's page is printed. The page shows each request as a model would
    get it, with a button for each last line that the request's form allows, and keeps drafts and answers in the browser
    until they are on record. There is no time limit, and debates that need no answer of this person go on meanwhile.
    Token counts are estimates, as for any model that reports none. A study with workers in other processes cannot use
    it: each would open a page of its own.
    """

    name = "chat"
    Options = ChatOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._server: Desk | None = None

    async def open(self) -> None:
        """Serve the page, and print its link."""
        import click

        from madplug_human.desk import Desk

        key = os.environ.get(self.options.key_env, "")
        token = hmac.new(key.encode(), self.options.person.encode(), "sha256").hexdigest() if key \
            else secrets.token_urlsafe(24)
        self._server = Desk(self.options.person, self.options.host, self.options.port, token)
        click.echo(f"{self.options.person} answers at {self._server.address}", err=True)

    async def complete(self, request: Request) -> Completion:
        """What the person replies, whenever that is."""
        assert self._server is not None
        return Completion(await self._server.answer(request))

    def kept(self, request: Request) -> None:
        """Let the page forget its copy of the answer."""
        assert self._server is not None
        self._server.kept(request)

    async def close(self) -> None:
        """Close the page."""
        assert self._server is not None
        await self._server.close()
