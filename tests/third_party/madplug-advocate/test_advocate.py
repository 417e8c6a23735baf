"""The devil's advocate is chosen again in every round."""

from madplug_advocate import RandomAdvocate
from madplug_testing import play
from madplug_testing.contracts import ExtensionContract


def run(**options):
    advocate = RandomAdvocate(sentence="OPPOSE", **options)
    return play(replies=lambda request: "A", agents=3, rounds=12, extensions=[advocate])


def advocates(played):
    return [(m.round, m.agent) for m in played.messages if "advocate" in m.data]


def test_there_is_one_advocate_in_every_round_from_the_second_and_not_always_the_same():
    drawn = advocates(run())
    assert [number for number, _ in drawn] == list(range(2, 13))
    assert len({agent for _, agent in drawn}) == 3


def test_the_same_agents_are_chosen_in_every_run():
    assert advocates(run()) == advocates(run())


def test_only_the_advocate_is_told_to_oppose():
    played = run()
    told = [r.agent for r in played.requests if "OPPOSE" in r.messages[-1]["content"]]
    assert sorted(told) == sorted(agent for _, agent in advocates(played))


def test_the_advocate_gives_an_answer_only_if_the_option_says_so():
    assert {m.key for m in run().messages if "advocate" in m.data} == {None}
    assert {m.key for m in run(counts=True).messages if "advocate" in m.data} == {"A"}


class TestRandomAdvocate(ExtensionContract):
    component = RandomAdvocate
