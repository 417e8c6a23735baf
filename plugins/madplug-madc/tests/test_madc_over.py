"""`madc.order` over the visibilities of other methods, and MADC's rows, on requests that are really sent."""

import re

import pytest

from madplug_madc import Ordered
from madplug_som import Exchange
from madplug_testing import play

MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}", "verify": "<verify>"}
ROWS = [{"id": "q1", "question": "Which?", "choices": ["one", "two", "three", "four"], "reference": "D"}]
STUDY = """
oracle = true
[debate]
%s
visibility = {use = "madc.order", strategy = "%s", rounds = "%s", inner = %s}
"""
SAID = "DABBB"
"""What agents answer: agent 0 is right, and the answer of 2, 3 and 4 is the most frequent."""


def spoken(body):
    """Which agent this is: named in the system message, or told by how its chat begins."""
    found = re.search(r"I am number (\d)", str(body["messages"]))
    return int(found[1]) if found else 0


def numbered(method, agents=5):
    """Slots of a paradigm whose agents are told their number, so that replies can differ."""
    people = ", ".join(f'{{name = "P{i}", description = "I am number {i}."}}' for i in range(agents))
    return f'paradigm = "{method}"\nagents = {agents}\npersonas = [{{use = "personas.fixed", personas = [{people}]}}]'


def last_prompts(bodies):
    """By agent: the last message of its last request."""
    return {spoken(b): str(b["messages"][-1]["content"]) for b in bodies}


def order_in(text):
    """The answers in a prompt, in order; each stands in a sentence of its own."""
    return "".join(re.findall(r"I say ([A-D])\b", text))


def say(body):
    if "response_format" in body:
        letter = SAID[spoken(body)]
        return f'{{"reasoning": "I say {letter}", "answer": "{letter}", "confidence": 0.5}}'
    return f"I say {SAID[spoken(body)]}\nFinal answer: {SAID[spoken(body)]}"


@pytest.mark.parametrize(("plugin", "paradigm", "inner"), [
    ("sparse", "sparse.debate", '{use = "sparse.graph", topology = "full"}'),
    ("som", "som.debate", '"visibility.everything"'), ("eot", "eot.memory", '"eot.peers"'),
    ("chateval", "chateval.simultaneous", '"visibility.previous_round"'),
    ("reconcile", "reconcile.round_table", '"reconcile.grouped"')])
def test_the_order_goes_over_another_visibility(plugin, paradigm, inner, run_on_endpoint):
    pytest.importorskip(f"madplug_{plugin}")
    pytest.importorskip("madplug_personas")
    groups = plugin == "reconcile"  # which show equal answers together, the own one among them
    debate = numbered(paradigm) + ("" if groups else "\nrounds = 2")
    if plugin == "chateval":  # an order by answers needs answers in every round
        debate += '\nstyles = [{use = "chateval.referee", verdict = "every_round"}]'
    orders = {"most_last": "DABBB", "truth_last": "BBBAD", "most_first": "BBBDA"} if groups else {
        "most_last": "DABB", "truth_last": "ABBD"}
    for strategy, expected in orders.items():
        _, bodies = run_on_endpoint(STUDY % (debate, strategy, "latest", inner), ROWS, say)
        shown = order_in(last_prompts(bodies)[4])
        assert (shown if groups else shown.removeprefix("B")) == expected, strategy  # a shown own answer is first


def test_truth_last_ends_on_the_truth_where_agents_speak_in_turn(run_on_endpoint):
    pytest.importorskip("madplug_personas")
    debate = numbered("som.debate") + '\nturns = "turns.round_robin"'
    _, bodies = run_on_endpoint(STUDY % (debate, "truth_last", "latest", '"visibility.everything"'), ROWS, say)
    seconds = {spoken(b): b for b in bodies if sum(m["role"] == "assistant" for m in b["messages"])}
    for agent in range(1, 5):
        assert order_in(str(seconds[agent]["messages"][-1]["content"]))[-1] == "D", agent


def shown(played, agent, round):
    """The keys that an agent was shown in a round, by others, of the round before."""
    said = {m.id: m for m in played.messages}
    message = next(m for m in played.messages if m.agent == agent and m.round == round)
    return "".join(said[i].key for i in message.seen if said[i].agent != agent and said[i].round == round - 1)


def keeping(visibility, said="ABCD", rounds=5, seed=0):
    return play(styles=[Exchange(**MARKED)], visibility=visibility, agents=len(said), rounds=rounds, seed=seed,
                replies=lambda request: said[request.agent])


def test_role_switching_lets_another_answer_come_last_in_every_round():
    played = keeping(Ordered(strategy="fixed", rotate=True))
    assert [shown(played, 0, k) for k in (2, 3, 4, 5)] == ["BCD", "DBC", "CDB", "BCD"]


def test_seeded_answers_make_the_first_round_one_of_exchange():
    SeedMessages = pytest.importorskip("madplug_replay").SeedMessages
    played = play(styles=[Exchange(**MARKED)], visibility=Ordered(strategy="fixed", rotate=True), agents=1, rounds=2,
                  replies=["A", "B"], extensions=[SeedMessages(messages=("C", "D", "E"))])
    seen = {m.round: [played.messages[i].key for i in m.seen if i < 3] for m in played.messages if m.round}
    assert seen == {1: ["C", "D", "E"], 2: ["E", "C", "D"]}


def test_power_decay_leaves_the_first_exchange_and_shuffles_ever_more():
    moved = dict.fromkeys(range(2, 6), 0)
    for seed in range(20):
        played = keeping(Ordered(strategy="fixed", fade=0.3), said="ABCDEFGH", seed=seed)
        for k in moved:
            moved[k] += sum(a != b for a, b in zip(shown(played, 0, k), "BCDEFGH", strict=True))
    assert moved[2] == 0 < moved[3] < moved[4] < moved[5]


TABLE = """
cells = [
  {name = "cot", debate = {paradigm = "madc.cot"}},
  {name = "sc", debate = {paradigm = "madc.self_consistency", agents = 5}},
  {name = "som", debate = {paradigm = "som.debate", agents = 5}},
  {name = "madc", debate = {paradigm = "madc.debate", agents = 5}},
]
"""


def test_the_rows_of_the_table_share_the_first_answers(run_on_endpoint):
    letters = iter("ABBCD")

    def answer(body):
        first = len(body["messages"]) == 1
        return f"Final answer: {next(letters) if first else 'B'}"

    results, bodies = run_on_endpoint(TABLE, ROWS, answer)
    assert sum(len(b["messages"]) == 1 for b in bodies) == 5
    first = {r.cell: [m.content for m in r.messages if m.round == 1] for r in results}
    assert first["sc"] == first["som"] == first["madc"]
    assert first["cot"] == first["sc"][:1]
    decided = {r.cell: r.decision for r in results}
    assert decided["cot"].key == first["cot"][0][-1]
    assert decided["sc"].key == "B"


def test_equal_answers_in_words_and_in_brackets_count_as_equal(run_on_endpoint):
    texts = iter(["The answer is: (two hundred eighty-four)", "The answer is: (7)", "The answer is: (9)",
                  "The answer is: (284)"])
    rows = [{"id": "q1", "question": "How many?", "reference": "284"}]
    (result,), _ = run_on_endpoint('debate = {paradigm = "madc.debate", agents = 4}', rows,
                                   lambda body: next(texts, "The answer is: (284)"),
                                   answers='{use = "answers.math", read_as = "madc"}')
    keys = [m.key for m in result.messages if m.round == 1]
    assert sorted(keys) == ["284", "284", "7", "9"]
    last = next(m for m in result.messages if m.round == 2 and keys[m.agent] in ("7", "9"))
    assert [keys[result.messages[i].agent] for i in last.seen][-2:] == ["284", "284"]
    assert result.decision.key == "284"
