"""A component that calls sys.exit fails its debate; it never ends the study, least of all with exit status 0."""

import sys

import pytest
from tests_support import made

from madplug import Dataset, Sample, StudyError
from madplug.study.survey import Ids, read_rows
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


class Panic(BaseException):
    """What libraries in Rust raise."""


class Panics(PlainStyle):
    """Panics in one debate."""

    async def respond(self, debate, turn, view):
        if debate.sample.id == "q1":
            raise Panic("index out of bounds")
        return await super().respond(debate, turn, view)


class Counts(LastRound):
    """Panics in one decision, and where an error says what it is."""

    def at_end(self, debate):
        if debate.sample.id == "q1":
            raise Unspeakable
        return super().at_end(debate)


class Unspeakable(Exception):
    def __str__(self):
        raise Panic("no text")


@pytest.mark.parametrize(("components", "said"), [
    ({"styles": [Leaves()]}, "a component called sys.exit"), ({"decision": Votes()}, "a component called sys.exit"),
    ({"styles": [Panics()]}, "Panic: index out of bounds"), ({"decision": Counts()}, "Unspeakable")])
@pytest.mark.parametrize("agents", [2, 3])
def test_an_exit_or_an_error_that_is_no_exception_fails_the_debate_and_no_other(components, said, agents):
    samples = [Sample(f"q{i}", f"q{i}?") for i in range(4)]
    played = play(replies=leaves, sample=samples, agents=agents, expect_failure=True, **components)
    cell = played.summary["cells"][0]
    assert (cell["done"], cell["failed"]) == (3, 1)
    assert said in next(r.error for r in played.store.results() if r.error)


def test_sys_exit_in_prepare_names_the_component():
    unprepared = made(LastRound, prepare=lambda self, setup: sys.exit(0))
    with pytest.raises(StudyError, match="prepare failed: SystemExit"):
        play(replies=lambda r: "A", decision=unprepared)


class Rows(Dataset):
    """Leaves in the middle."""

    name = "rows"

    def samples(self, split=None):
        yield Sample("s0", "?"), ("A",)
        sys.exit(0)

    def size(self):
        return None


def test_sys_exit_in_a_data_set_is_told_and_is_no_success():
    with pytest.raises(StudyError, match="samples cannot be read: SystemExit"):
        list(read_rows(Rows(), Ids()))
