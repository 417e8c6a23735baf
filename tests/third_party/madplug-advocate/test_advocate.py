"""The devil's advocate is drawn anew in every round."""

from madplug.testing import play
from madplug.testing.contracts import ExtensionContract
from madplug_advocate import ByLot


def held(**options):
    return play(replies=lambda request: "A", agents=3, rounds=12, extensions=[ByLot(sentence="OPPOSE", **options)])


def advocates(played):
    return [(m.round, m.agent) for m in played.messages if "advocate" in m.data]


def test_there_is_one_advocate_in_every_round_from_the_second_and_not_always_the_same():
    drawn = advocates(held())
    assert [number for number, _ in drawn] == list(range(2, 13))
    assert len({agent for _, agent in drawn}) == 3


def test_the_lot_is_the_same_in_every_run():
    assert advocates(held()) == advocates(held())


def test_only_the_advocate_is_told_to_oppose():
    played = held()
    told = [r.agent for r in played.requests if "OPPOSE" in r.messages[-1]["content"]]
    assert sorted(told) == sorted(agent for _, agent in advocates(played))


def test_what_the_advocate_says_counts_only_if_it_is_wanted():
    assert {m.key for m in held().messages if "advocate" in m.data} == {None}
    assert {m.key for m in held(counts=True).messages if "advocate" in m.data} == {"A"}


class TestByLot(ExtensionContract):
    component = ByLot
