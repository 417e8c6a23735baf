"""Calls behind no message: ballots, judges, phases, metrics, and the turn that failed."""

from madplug import Decision, DecisionProtocol, Extension, Metric, Phase, hookimpl
from madplug_testing import PlainStyle, play


class Ballot(DecisionProtocol):
    """Asks every voter."""

    name = "ballot"

    async def at_end(self, debate):
        votes = await debate.ask_all(debate.ask("vote", purpose="vote", agent=a) for a in debate.voters)
        return Decision(votes[0].text)


class Second(Phase):
    """Asks about the decision."""

    name = "second"

    async def run(self, debate, decision):
        await debate.ask("certain?", purpose="challenge")


class Judged(Metric):
    """Asks a model for the score."""

    name = "judged"

    async def score(self, debate, references):
        return float(len((await debate.ask("grade", purpose="grade")).text))


def purposes(played, keys):
    return [figures.purpose for figures in played.store.call_figures(keys)]


def test_ballots_phases_and_metrics_are_found_by_the_keys_of_the_debate():
    played = play(replies=lambda request: "A", agents=2, rounds=1, decision=Ballot(), phases=[Second()],
                  metrics={"judged": Judged()})
    assert purposes(played, played.result.other_calls) == ["vote", "vote", "challenge", "grade"]
    assert purposes(played, played.result.opening_calls) == []
    assert all(m.calls for m in played.messages)


class Listening(Extension):
    """Asks about every round, and says nothing."""

    name = "listening"

    @hookimpl
    async def madplug_round_ended(self, debate):
        await debate.ask("anything to say?", purpose="moderate")


def test_an_extension_that_says_nothing_has_its_calls_on_record():
    played = play(replies=lambda request: "A", agents=2, rounds=2, extensions=[Listening()])
    assert purposes(played, played.result.other_calls) == ["moderate", "moderate"]


class Choking(PlainStyle):
    """Cannot read what the model says."""

    name = "choking"

    async def respond(self, debate, turn, view):
        reply = (await debate.ask("speak", purpose="discuss", agent=turn.agent)).text
        raise ValueError(f"unreadable: {reply}")


def test_the_calls_of_the_turn_that_failed_are_found():
    played = play(replies=lambda request: "A", agents=1, styles=[Choking()], expect_failure=True)
    assert played.result.error.startswith("ValueError: unreadable: A")
    assert purposes(played, played.result.other_calls) == ["discuss"]

