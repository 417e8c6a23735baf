"""The debater that autogen-core runs for `tests.benchmarks.peers`; its runtime reads the types of arguments."""

from dataclasses import dataclass

from autogen_core import MessageContext, RoutedAgent, message_handler
from autogen_core.models import ChatCompletionClient, UserMessage


@dataclass
class Question:
    """A prompt."""

    text: str


@dataclass
class Answer:
    """A reply."""

    text: str


class Debater(RoutedAgent):
    """Sends what it is asked to a model."""

    def __init__(self, client: ChatCompletionClient) -> None:
        super().__init__("a debater")
        self._client = client

    @message_handler
    async def answer(self, message: Question, ctx: MessageContext) -> Answer:
        """The model's reply."""
        reply = await self._client.create([UserMessage(content=message.text, source="user")],
                                          cancellation_token=ctx.cancellation_token)
        assert isinstance(reply.content, str)
        return Answer(reply.content)
