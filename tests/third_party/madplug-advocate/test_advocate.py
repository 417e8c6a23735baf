"""The devil's advocate is chosen again in every round."""

from madplug_advocate import RandomAdvocate
from madplug_testing import play
from madplug_testing.contracts import ExtensionContract


def run(**options):
    advocate = RandomAdvocate(sentence="OPPOSE", **options)
    return play(replies=lambda request: "A", agents=3, rounds=12, extensions=[advocate])


def test_the_one_advocate_of_every_round_from_the_second_is_told_to_oppose_and_gives_an_answer_only_if_it_counts():
    played = run()
    told = [r.agent for r in played.requests if "OPPOSE" in r.messages[-1]["content"]]
    assert [(m.round, m.agent, m.key) for m in played.messages if "advocate" in m.data] == [
        (number, agent, None) for number, agent in enumerate(told, 2)]
    assert (len(told), len(set(told))) == (11, 3)
    assert {m.key for m in run(counts=True).messages if "advocate" in m.data} == {"A"}


class TestRandomAdvocate(ExtensionContract):
    component = RandomAdvocate
