"""The attack beside nothing but the host: who sees whom, with the kit's plainest components."""

from madplug.rows import plain
from madplug.testing import play
from madplug_attack import Drop


def seen_by_agent(played):
    """By agent: whose messages it saw in round 2, without its own."""
    authors = {m.id: m.agent for m in played.messages}
    return [{authors[i] for i in m.seen} - {m.agent} for m in played.transcript.of_round(2)]


def test_the_worked_example_of_four_agents_with_one_cut_off():
    played = play(replies=lambda r: "A", agents=4, rounds=2, extensions=[Drop(agents=(1,))])
    assert seen_by_agent(played) == [{1, 2, 3}, set(), {0, 1, 3}, {0, 1, 2}]


def test_share_zero_is_no_attack():
    attacked, calm = (play(replies=lambda r: "A", agents=4, rounds=2, extensions=e) for e in ([Drop(share=0)], []))
    assert [plain(m) for m in attacked.messages] == [plain(m) for m in calm.messages]
    assert attacked.prompts == calm.prompts


def test_a_quarter_of_four_is_one_agent_drawn_from_the_seed():
    cut = [seen_by_agent(play(replies=lambda r: "A", agents=4, rounds=2, seed=s,
                              extensions=[Drop(share=0.25)])).index(set()) for s in range(8)]
    assert len(set(cut)) > 1
    again = play(replies=lambda r: "A", agents=4, rounds=2, seed=0, extensions=[Drop(share=0.25)])
    assert seen_by_agent(again).index(set()) == cut[0]
