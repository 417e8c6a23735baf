"""A reply that ends with an answer."""

import pytest

from madplug import AnswerFormat, Turn
from madplug.testing import debate_from, wait_for
from madplug_prompting.asking import ask_for_answer


class Letter(AnswerFormat):
    """A capital letter."""

    name = "letter"

    def instruction(self, sample):
        return "Answer with one capital letter."

    def canonical(self, text, sample):
        return text[-1:] or None

    def pattern(self, sample):
        return "[A-Z]"


@pytest.mark.parametrize(("longest", "bound"), [(None, "*"), (40, "{0,40}")])
def test_the_reply_is_constrained_to_end_with_an_answer(longest, bound):
    requests = []

    def reply(request):
        requests.append(request)
        return "so B"

    debate = debate_from("A", replies=reply, answers=Letter())
    chat = [{"role": "user", "content": "Which?"}]
    assert wait_for(ask_for_answer(debate, Turn(debate.agents[0]), chat, longest)) == "so B"
    assert (requests[0].purpose, requests[0].agent, list(requests[0].messages)) == ("discuss", 0, chat)
    assert bound in requests[0].form["regex"]
    assert requests[0].form["regex"].endswith("[A-Z]")
