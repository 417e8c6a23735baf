"""Exchange-of-Thought: who reads whom, what is sent, confidence, and when it ends."""

import pytest
from tests_support import Reviews, in_turn

from madplug import Review
from madplug_eot import (
    Confidence,
    Consistent,
    Exchange,
    Peers,
    Students,
    Unanimous,
    sees,
    steadiness,
)
from madplug_testing import play

MEMORY = {"styles": [Exchange()], "decision": Consistent(), "personas": [Students()], "agents": 3}


def exchange(replies, topology="memory", rounds=6, **options):
    return play(**{**MEMORY, "visibility": Peers(topology=topology), "rounds": rounds, "replies": replies,
                   **options})


@pytest.mark.parametrize(("topology", "rows", "arcs"), [
    ("memory", [(1, 2), (0, 2), (0, 1)], 6),
    ("report", [(1, 2), (0,), (0,)], 4),
    ("relay", [(1,), (2,), (0,)], 3),
    ("debate", [(1, 2), (2,), (1,)], 4),
])
def test_three_agents_read_whom_the_paper_says(topology, rows, arcs):
    assert [sees(topology, i, 3) for i in range(3)] == rows
    assert sum(map(len, rows)) == arcs


@pytest.mark.parametrize("n", [2, 5, 8])
def test_arcs_of_any_number_of_agents(n):
    def arcs(topology):
        return sum(len(sees(topology, i, n)) for i in range(n))

    assert (arcs("memory"), arcs("report"), arcs("relay")) == (n * (n - 1), 2 * (n - 1), n)


def test_children_of_the_debate_tree_are_paired_and_never_read_the_root():
    assert [sees("debate", i, 5) for i in range(1, 5)] == [(2,), (1,), (4,), (3,)]
    assert sees("debate", 3, 4) == (2,)
    assert sees("debate", 1, 2) == ()
    assert all(sees(t, 0, 1) == () for t in ("memory", "report", "relay", "debate"))


@pytest.mark.parametrize(("topology", "shown"), [
    ("memory", ["KBP", "KBP", "KBP"]), ("report", ["KBP", "KB", "KP"]), ("relay", ["KB", "BP", "KP"]),
    ("debate", ["KBP", "BP", "BP"]),
])
def test_a_prompt_has_the_latest_solutions_of_the_visible_peers_and_no_others(topology, shown):
    names = {"K": "from Kitty", "B": "from Ben", "P": "from Peter"}
    said = {i: [f"{name} in {k}" for k in "xyz"] for i, name in enumerate(names.values())}
    played = exchange(said, topology, rounds=3)
    for k, now, before in ((1, "x", "-"), (2, "y", "x")):
        for i, prompt in enumerate(played.prompts[3 * k:3 * k + 3]):
            assert "".join(c for c, name in names.items() if f"{name} in {now}" in prompt) == shown[i]
            assert all(f"{name} in {before}" not in prompt for name in names.values())


def test_own_message_comes_first_in_a_view_then_the_peers_in_agent_order():
    played = exchange({0: ["a", "b"], 1: ["c", "d"], 2: ["e", "f"]}, rounds=2)
    assert [m.seen for m in played.messages[3:]] == [(0, 1, 2), (1, 0, 2), (2, 0, 1)]


@pytest.mark.parametrize(("answers", "value"), [
    ("88", 1.0), ("98", 0.5), ("988", 2 / 3), ("9887", 0.5), ("123", 1 / 3), ("8-", 0.5), ("--", 0.0)])
def test_confidence_is_the_share_of_the_most_frequent_answer_of_all_read_or_not(answers, value):
    assert steadiness([None if a == "-" else a for a in answers]) == value


def test_style_records_confidence_from_the_second_answer_on():
    played = exchange({0: ["9", "8", "8", "7"], 1: ["8", "8", "8", "8"], 2: ["1", "2", "3", "4"]}, rounds=4)
    assert [m.confidence for m in played.transcript.by(0)] == [None, 0.5, 2 / 3, 0.5]
    assert [m.confidence for m in played.transcript.by(1)] == [None, 1.0, 1.0, 1.0]
    assert [m.confidence for m in played.transcript.by(2)] == [None, 0.5, 1 / 3, 0.25]


def test_confidences_are_shown_from_the_third_round_on():
    played = exchange({0: ["9", "8", "8"], 1: ["8", "8", "8"], 2: ["1", "2", "3"]}, rounds=3)
    assert all("confidence" not in prompt for prompt in played.prompts[:6])
    kitty, ben, peter = played.prompts[6:]
    assert "Ben (confidence 1.00)" in kitty
    assert "Peter (confidence 0.50)" in kitty
    assert "Kitty (confidence 0.50)" in ben
    assert "Below 0.5" in ben
    assert "Ben (confidence 1.00)" in peter


def test_confidences_can_be_left_out():
    played = exchange({0: ["9", "8", "8"], 1: ["8", "8", "8"], 2: ["1", "2", "3"]}, rounds=3,
                      styles=[Exchange(confidence=False)])
    assert all("confidence" not in prompt for prompt in played.prompts)
    assert {m.confidence for m in played.messages} == {None}


def test_the_extension_gives_another_style_the_same_confidences_and_keeps_unread_what_could_not_be_read():
    played = play(extensions=[Confidence()], rounds=3,
                  replies={0: ["9", "8", "8"], 1: ["1", "2", "3"], 2: ["8", " ", "4"]})
    assert [[m.confidence for m in played.transcript.by(agent)] for agent in (0, 1, 2)] == [
        [None, 0.5, 2 / 3], [None, 0.5, 1 / 3], [None, 0.5, 1 / 3]]
    assert [m.key for m in played.transcript.by(2)] == ["8", None, "4"]


@pytest.mark.parametrize(("answers", "rounds", "calls", "key", "agreed"), [
    (["88", "98", "88"], 6, 6, "8", True),  # an early agreement needs one more round
    (["777777", "888888", "888888"], 6, 18, "8", False),
    (["88", "  ", "88"], 2, 6, "8", False),  # an unread answer prevents the early end and is not counted
    (["  ", "  ", "  "], 2, 6, None, False)])
def test_when_an_exchange_ends_and_with_which_answer(answers, rounds, calls, key, agreed):
    played = exchange(dict(enumerate(map(list, answers))), rounds=rounds)
    assert (len(played.requests), played.decision.key, played.decision.agreed) == (calls, key, agreed)
    assert played.decision.fallback == (not agreed and key is not None)


@pytest.mark.parametrize(("options", "calls"), [({}, 3), ({"after_round": 3}, 9)])
def test_unanimous_stops_any_paradigm_or_a_later_round_and_leaves_the_decision_alone(options, calls):
    played = play(extensions=[Unanimous(**options)], rounds=5, replies=lambda request: "8")
    assert (len(played.requests), played.decision.key) == (calls, "8")


def test_students_return_with_a_number():
    played = play(personas=[Students()], agents=5, replies=lambda r: "8")
    assert [a.persona.name for a in played.debate.agents] == ["Kitty", "Ben", "Peter", "Kitty 2", "Ben 2"]


def reviewer(review):
    """Gives this review of the first round, in its own time."""
    given = in_turn(review)

    async def later(debate):
        return given(debate)

    return Reviews(later)


@pytest.mark.parametrize(("review", "reply", "record"), [
    (Review(redo=True), "8", ["8 retracted"] * 3 + ["8"] * 3),  # a retracted round ends nothing
    (Review(say="well done"), "8", ["8", "8", "8", "well done"]),  # what is said is said before the end
    (Review(stop=True), "{agent}", ["0", "1", "2"])])  # a review stands while agents disagree
def test_what_another_extension_finds_in_a_round_is_done_before_the_early_end(review, reply, record):
    played = play(extensions=[reviewer(review), Unanimous()], rounds=5, replies=lambda r: reply.format(agent=r.agent))
    assert [m.content + " retracted" * m.retracted for m in played.transcript.record] == record


def said(request):
    return "Final answer: " + "ABA"[request.agent]


def test_constrained_models_end_with_an_answer(run_debate):
    debate = 'paradigm = "eot.memory"\nrounds = 2\nstyles = [{use = "eot.exchange", max_characters = 70}]'
    assert all("{0,70}" in r.form["regex"] for r in run_debate(debate, said)[1])
