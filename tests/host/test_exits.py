"""A component that calls sys.exit fails its debate; it never ends the study, least of all with exit status 0."""

import sys

import pytest
from tests_support import made

from madplug import Dataset, Sample, StudyError
from madplug.study.survey import read_rows
from madplug_testing import LastRound, PlainStyle, play


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


class Unspeakable(Panic):
    def __str__(self):
        raise Panic("no text")


class Panics(LastRound):
    """Panics in one decision."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def at_end(self, debate):
        if debate.sample.id == "q1":
            raise self.error
        return super().at_end(debate)


@pytest.mark.parametrize(("components", "said"), [
    ({"styles": [Leaves()]}, "a component called sys.exit"), ({"decision": Votes()}, "a component called sys.exit"),
    ({"decision": Panics(Panic("out of bounds"))}, "Panic: out of bounds"),
    ({"decision": Panics(Unspeakable())}, "Unspeakable")])
def test_an_exit_or_an_error_that_is_no_exception_fails_the_debate_and_no_other(components, said):
    samples = [Sample(f"q{i}", f"q{i}?") for i in range(4)]
    played = play(replies=leaves, sample=samples, agents=2, expect_failure=True, **components)
    cell = played.summary["cells"][0]
    assert (cell["done"], cell["failed"]) == (3, 1)
    assert said in next(r.error for r in played.store.results() if r.error)


def test_sys_exit_in_prepare_names_the_component():
    unprepared = made(LastRound, prepare=lambda self, setup: sys.exit(0))
    with pytest.raises(StudyError, match="prepare failed: SystemExit"):
        play(replies=lambda r: "A", decision=unprepared)


def test_sys_exit_in_a_data_set_is_told_and_is_no_success():
    rows = made(Dataset, samples=lambda self, split=None: (sys.exit(0) for _ in range(1)))
    with pytest.raises(StudyError, match="samples cannot be read: SystemExit"):
        list(read_rows(rows))
