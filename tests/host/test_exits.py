"""A component that calls sys.exit fails its debate; it never ends the study, least of all with exit status 0."""

import sys

import pytest

from madplug import Sample, StudyError
from madplug.testing import LastRound, PlainStyle, play


class Leaves(PlainStyle):
    """Calls sys.exit in one debate."""

    async def respond(self, debate, turn, view):
        if debate.sample.id == "q1" and turn.agent.id == 1:
            sys.exit(0)
        return await super().respond(debate, turn, view)


class Votes(LastRound):
    """Asks everybody at the end."""

    async def at_end(self, debate):
        await debate.ask_all(debate.ask(f"{debate.sample.id}?", purpose="vote", agent=a) for a in debate.voters)
        return super().at_end(debate)


def leaves(request):
    if request.purpose == "vote" and "q1" in str(request.messages):
        sys.exit(0)
    return "A"


@pytest.mark.parametrize("components", [{"styles": [Leaves()]}, {"decision": Votes()}])
@pytest.mark.parametrize("agents", [2, 3])
def test_sys_exit_fails_the_debate_and_no_other(components, agents):
    samples = [Sample(f"q{i}", f"q{i}?") for i in range(4)]
    played = play(replies=leaves, sample=samples, agents=agents, expect_failure=True, **components)
    cell = played.summary["cells"][0]
    assert (cell["done"], cell["failed"]) == (3, 1)
    failed = [r.error for r in played.store.results() if r.error]
    assert "a component called sys.exit" in failed[0]


def test_sys_exit_in_prepare_names_the_component():
    class Unprepared(LastRound):
        """Leaves before it begins."""

        def prepare(self, setup):
            sys.exit(0)

    with pytest.raises(StudyError, match="prepare failed: SystemExit"):
        play(replies=lambda r: "A", decision=Unprepared())
