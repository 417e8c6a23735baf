"""A model that answers with no text: the agent is silent in that turn, and the debate goes on."""

import pytest

from madplug import EmptyReplyError, Usage
from madplug_testing import Scripted, play


class Silent(Scripted):
    """Says nothing in the first so many attempts of some agents."""

    def __init__(self, agents, times=10_000, **options):
        super().__init__(lambda request: "42")
        self.__dict__["options"] = self.Options(**options)
        self.agents, self.left = agents, times
        self.asked = []

    async def complete(self, request):
        self.asked.append(request.agent)
        if request.agent in self.agents and self.left:
            self.left -= 1
            raise EmptyReplyError("the answer is empty", Usage(prompt=7))
        return await super().complete(request)


@pytest.mark.parametrize(("options", "attempts"), [({}, 3), ({"empty_attempts": 1}, 1), ({"attempts": 2}, 2)])
def test_an_agent_whose_replies_stay_empty_is_silent_and_marked(options, attempts):
    model = Silent({1}, **options)
    played = play(model=model, agents=3)
    assert model.asked.count(1) == attempts
    spoken, silent, _ = played.messages
    assert (silent.content, silent.answer, silent.key, silent.agreement) == ("", None, None, None)
    assert silent.data["madplug"] == {"silent": True}
    assert "madplug" not in spoken.data
    assert played.decision.key == "42"
    assert len(silent.calls) == attempts, "an empty reply is a call like any other"
    assert (played.result.calls, played.result.retries) == (2 + attempts, attempts - 1)


def test_an_agent_that_says_something_in_the_end_is_not_silent():
    played = play(model=Silent({0}, times=2), agents=1)
    assert played.messages[0].content == "42"
    assert played.result.retries == 2
