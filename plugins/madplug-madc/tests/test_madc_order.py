"""Any visibility in order: who sees what is the inner one's matter, in which order is this one's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import Reviews

from madplug import Review, UserError, Visibility
from madplug_madc import Order, Ordered
from madplug_testing import PlainStyle, SeeAll, play
from madplug_turns import RoundRobin, Simultaneous

STRATEGIES = ["fixed", "random", "most_last", "most_first", "truth_first", "truth_last"]


class Neighbours(Visibility):
    """Agents see themselves and those next to them in a ring."""

    name = "neighbours"

    def view(self, debate, turn):
        near = {turn.agent.id, *self.neighbours(debate, turn.agent, debate.round)}
        return [m for m in debate.transcript.messages if m.agent is None or m.agent in near]

    def neighbours(self, debate, agent, round):
        n = len(debate.agents)
        return ((agent.id - 1) % n, (agent.id + 1) % n)


class Latest(Visibility):
    """Everybody's latest message, the last agent's first."""

    name = "latest"

    def view(self, debate, turn):
        said = [debate.transcript.last(a) for a in reversed(debate.agents)]
        return [m for m in said if m is not None]


NOTES = Reviews(lambda debate: Review(say="a note"))


def views(visibility, said, *, turns=None, seed=0, extensions=()):
    """What each agent's last turn is shown, as `agent:round` or `note`; said: a word per agent, a letter per round."""
    words, spoken = said.split(), {}

    def reply(request):
        nth = spoken[request.agent] = spoken.get(request.agent, -1) + 1
        return words[request.agent][nth]

    played = play(visibility=visibility, agents=len(words), rounds=len(words[0]), replies=reply, seed=seed,
        turns=turns or Simultaneous(), styles=[PlainStyle()], references=("B",), oracle=True, extensions=extensions)
    last = [played.transcript.last(i) for i in range(len(words))]
    record = played.transcript.record
    return [" ".join("note" if record[i].agent is None else f"{record[i].agent}:{record[i].round}" for i in m.seen)
            for m in last]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STRATEGIES), st.sampled_from(["recipient", "global"]), st.booleans(),
       st.lists(st.text("ABC", min_size=3, max_size=3), min_size=2, max_size=5), st.integers(0, 5),
       st.sampled_from([Simultaneous, RoundRobin]))
def test_over_everything_it_is_madc_ordered(strategy, scope, group_equal, said, seed, turns):
    how = {"strategy": strategy, "scope": scope, "group_equal": group_equal}
    over_everything, alone = (views(visibility, " ".join(said), turns=turns(), seed=seed)
                              for visibility in (Order(inner=SeeAll(), **how), Ordered(**how)))
    assert over_everything == alone


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STRATEGIES), st.sampled_from(["recipient", "global"]), st.sampled_from(["latest", "all"]),
       st.sampled_from([SeeAll, Neighbours, Latest]), st.lists(st.text("AB", min_size=3, max_size=3), min_size=2,
                                                               max_size=5), st.sampled_from([Simultaneous, RoundRobin]))
def test_it_shows_what_the_inner_one_shows_and_nothing_else(strategy, scope, rounds, inner, said, turns):
    shown, unordered = (
        [sorted(view.split()) for view in views(visibility, " ".join(said), turns=turns(), extensions=[NOTES])]
        for visibility in (Order(inner=inner(), strategy=strategy, scope=scope, rounds=rounds), inner()))
    assert shown == unordered


@pytest.mark.parametrize(("inner", "options", "said", "turns", "agent", "order"), [
    # answers are counted among those that are shown, in one list for all among all on record
    (Neighbours, {}, "Ax Bx Bx Ax Ax Bx", Simultaneous, 1, "1:1 0:1 2:1"),
    (Neighbours, {"strategy": "most_first", "scope": "global"}, "Cx Bx Ax Ax Ax Bx", Simultaneous, 1, "1:1 2:1 0:1"),
    (Neighbours, {"scope": "global"}, "Ax Ax Bx Ax", Simultaneous, 1, "1:1 2:1 0:1"),
    (Neighbours, {"scope": "global"}, "Ax Ax Bx Ax", Simultaneous, 3, "3:1 2:1 0:1"),
    # fixed leaves the order of the inner one
    (Latest, {"strategy": "fixed"}, "Ax Bx Cx", Simultaneous, 0, "0:1 2:1 1:1"),
    # sequential turns put only the round under way in order unless all are: the third agent has read two rounds
    (SeeAll, {}, "AB BA BB", RoundRobin, 2, "0:1 1:1 2:1 0:2 1:2"),
    (SeeAll, {"rounds": "all"}, "AA BB CC", RoundRobin, 1, "1:1 2:1 0:1 0:2"),
    (SeeAll, {"rounds": "all"}, "AA BB BC", RoundRobin, 0, "0:1 1:1 2:1"),
    (SeeAll, {"rounds": "all"}, "AC BA CB", RoundRobin, 2, "2:1 1:1 0:2 0:1 1:2"),
    (SeeAll, {"rounds": "all", "strategy": "truth_first"}, "AB CA BB", RoundRobin, 2, "2:1 0:2 0:1 1:1 1:2")])
def test_worked_orders(inner, options, said, turns, agent, order):
    assert views(Order(inner=inner(), **options), said, turns=turns())[agent] == order


def test_notes_and_own_messages_stay_where_the_inner_one_shows_them():
    shown = views(Order(inner=SeeAll(), rounds="all", strategy="most_first"), "AAx CCx CCx", extensions=[NOTES])
    assert shown[0] == "0:1 note 0:2 note 1:1 2:1 1:2 2:2"


def test_neighbours_are_those_of_the_inner_one():
    played = play(visibility=Order(inner=Neighbours()), agents=4, replies=["A"] * 4)
    assert [tuple(played.debate.neighbours(a)) for a in played.debate.agents] == [(3, 1), (0, 2), (1, 3), (2, 0)]


def test_what_is_wrong_with_the_inner_one_is_said_at_its_place(run_debate):
    pytest.importorskip("madplug_sparse")
    debate = """paradigm = "som.debate"
agents = 4
visibility = {use = "madc.order", strategy = "most_first", inner = {use = "sparse.graph", topology = "star", hub = 9}}
"""
    with pytest.raises(UserError, match=r"debate\.visibility\.inner.*hub = 9, and there are 4 agents"):
        run_debate(debate, ())
