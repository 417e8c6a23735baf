"""Exchange-of-Thought: who reads whom, what is sent, confidence, and when it ends."""

import pytest
from tests_support import Reviews, in_turn

from madplug import Review
from madplug_eot import Confidence, Consistent, Exchange, Peers, Students, Unanimous, sees, steadiness
from madplug_testing import play


def exchange(replies, topology="memory", rounds=6, **options):
    return play(**{"styles": [Exchange()], "decision": Consistent(), "personas": [Students()], "agents": 3,
                   "visibility": Peers(topology=topology), "rounds": rounds, "replies": replies, **options})


@pytest.mark.parametrize(("topology", "rows"), [
    ("memory", [(1, 2), (0, 2), (0, 1)]), ("report", [(1, 2), (0,), (0,)]), ("relay", [(1,), (2,), (0,)]),
    ("debate", [(1, 2), (2,), (1,)]), ("debate", [(1, 2, 3, 4), (2,), (1,), (4,), (3,)]), ("debate", [(1,), ()]),
    ("debate", [(1, 2, 3), (2,), (1,), (2,)]),  # children are paired, and never read the root
    *((topology, [()]) for topology in ("memory", "report", "relay", "debate"))])
def test_agents_read_whom_the_paper_says(topology, rows):
    assert [sees(topology, i, len(rows)) for i in range(len(rows))] == rows


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_arcs_of_any_number_of_agents(n):
    assert [sum(len(sees(topology, i, n)) for i in range(n)) for topology in ("memory", "report", "relay")] == [
        n * (n - 1), 2 * (n - 1), n]


@pytest.mark.parametrize(("topology", "shown"), [
    ("memory", ["KBP", "BKP", "PKB"]), ("report", ["KBP", "BK", "PK"]), ("relay", ["KB", "BP", "PK"]),
    ("debate", ["KBP", "BP", "PB"])])
def test_a_prompt_has_the_latest_solutions_of_the_visible_peers_and_no_others(topology, shown):
    names = {"K": "from Kitty", "B": "from Ben", "P": "from Peter"}
    said = {i: [f"{name} in {k}" for k in "xyz"] for i, name in enumerate(names.values())}
    played = exchange(said, topology, rounds=3)
    for k, now, before in ((1, "x", "-"), (2, "y", "x")):
        for message, prompt, seen in zip(played.messages[3 * k:], played.prompts[3 * k:3 * k + 3], shown, strict=False):
            assert {c for c, name in names.items() if f"{name} in {now}" in prompt} == set(seen)
            assert all(f"{name} in {before}" not in prompt for name in names.values())
            assert [played.messages[i].content[5] for i in message.seen][:len(seen)] == [*seen]  # the own comes first


@pytest.mark.parametrize(("answers", "value"), [
    ("88", 1.0), ("98", 0.5), ("988", 2 / 3), ("9887", 0.5), ("123", 1 / 3), ("8-", 0.5), ("--", 0.0)])
def test_confidence_is_the_share_of_the_most_frequent_answer_of_all_read_or_not(answers, value):
    assert steadiness([None if a == "-" else a for a in answers]) == value


ANSWERS = {0: ["9", "8", "8", "7"], 1: ["8", "8", "8", "8"], 2: ["1", "2", "3", "4"]}


def test_confidences_are_on_record_from_the_second_answer_on_and_shown_from_the_third_round_on():
    played = exchange(ANSWERS, rounds=4)
    assert [[m.confidence for m in played.transcript.by(agent)] for agent in (0, 1, 2)] == [
        [None, 0.5, 2 / 3, 0.5], [None, 1.0, 1.0, 1.0], [None, 0.5, 1 / 3, 0.25]]
    assert all("confidence" not in prompt for prompt in played.prompts[:6])
    kitty, ben, peter = played.prompts[6:9]
    assert "Ben (confidence 1.00)" in kitty
    assert "Peter (confidence 0.50)" in kitty
    assert "Kitty (confidence 0.50)" in ben
    assert "Below 0.5" in ben
    assert "Ben (confidence 1.00)" in peter
    without = exchange(ANSWERS, rounds=4, styles=[Exchange(confidence=False)])
    assert not any("confidence" in prompt for prompt in without.prompts)
    assert {m.confidence for m in without.messages} == {None}


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


@pytest.mark.parametrize(("review", "reply", "record"), [
    (Review(redo=True), "8", ["8 retracted"] * 3 + ["8"] * 3),  # a retracted round ends nothing
    (Review(say="well done"), "8", ["8", "8", "8", "well done"]),  # what is said is said before the end
    (Review(stop=True), "{agent}", ["0", "1", "2"])])  # a review stands while agents disagree
def test_what_another_extension_finds_in_a_round_is_done_before_the_early_end(review, reply, record):
    given = in_turn(review)

    async def later(debate):
        return given(debate)

    played = play(extensions=[Reviews(later), Unanimous()], rounds=5, replies=lambda r: reply.format(agent=r.agent))
    assert [m.content + " retracted" * m.retracted for m in played.transcript.record] == record


def test_constrained_models_end_with_an_answer(run_debate):
    debate = 'paradigm = "eot.memory"\nrounds = 2\nstyles = [{use = "eot.exchange", max_characters = 70}]'
    requests = run_debate(debate, lambda request: "Final answer: " + "ABA"[request.agent])[1]
    assert all("{0,70}" in r.form["regex"] for r in requests)


@pytest.mark.parametrize(("topology", "agents", "told"), [
    ("relay", 2, True), ("report", 2, True), ("relay", 3, False), ("report", 3, False), ("memory", 2, False)])
def test_of_two_agents_the_topologies_are_one_and_that_is_a_warning(topology, agents, told):
    cell = type("Cell", (), {"wanted": agents, "rounds": 2})
    assert any("everybody reads everybody" in text for text in Peers(topology=topology).warn(cell)) is told
