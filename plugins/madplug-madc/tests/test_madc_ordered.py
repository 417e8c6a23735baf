"""In which order each agent is shown the others' answers, and MADC's rows on requests that are really sent."""

import re

import pytest

from madplug import AnswerFormat
from madplug_madc import Ordered
from madplug_som import Exchange
from madplug_testing import play

MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}", "verify": "<verify>"}


class AfterColon(AnswerFormat):
    name = "after_colon"

    def instruction(self, sample):
        return "agent:answer"

    def canonical(self, text, sample):
        key = text.rpartition(":")[2]
        return None if key == "-" else key


def run(first, rounds=2, references=(), oracle=False, seed=0, **options):
    """A debate whose agents begin with these answers (`-`: unreadable) and keep them; says `agent:answer`."""
    return play(styles=[Exchange(**MARKED)], visibility=Ordered(**options), agents=len(first), answers=AfterColon(),
                rounds=rounds, references=references, oracle=oracle, seed=seed,
                replies=lambda request: f"{request.agent}:{first[request.agent]}")


def sent(played, round=2):
    """By recipient: the authors of the blocks of its last user message, in the order sent."""
    agents = len(played.debate.agents)
    requests = played.requests[agents * (round - 1):agents * round]
    return [[int(block.split(":")[0]) for block in r.messages[-1]["content"].split("\n\n")] for r in requests]


ROWS = [{"id": "q1", "question": "Which?", "choices": ["one", "two", "three", "four"], "reference": "D"}]
KNOWS = {"references": ("B",), "oracle": True}
FIRST_AND_GLOBAL = {"strategy": "most_first", "scope": "global"}


@pytest.mark.parametrize(("answers", "options", "orders"), [
    # among the others, in one list for all, and with three of one mind
    ("AABBC", {}, "1423 0423 3401 2401 0123"), ("AABBC", {"scope": "global"}, "4123 4230 4130 4120 1230"),
    ("ABBBC", {}, "4123 0423 . . 0123"),
    # an unreadable answer is like no other and is still shown
    ("A-A-B", {}, "1234 3402 . . ."),
    ("AABBC", {"strategy": "fixed"}, "1234 0234 0134 0124 0123"),
    ("AABBC", {"strategy": "most_first"}, "2314 . . . ."), ("AABBC", FIRST_AND_GLOBAL, ". . . . 0123"),
    ("ABBAC", {"strategy": "truth_last", **KNOWS}, "3412 0342 0341 0412 0312"),
    ("ABBAC", {"strategy": "truth_first", **KNOWS}, "1234 2034 . . 1203"),
    ("ABBAC", {"strategy": "truth_first", **KNOWS, "references": ("D",)}, "1234 0234 0134 0124 0123"),  # as fixed
    # equal answers may be grouped
    ("CABAB", {"strategy": "most_last", "group_equal": True}, "1324 . . . ."),
    ("CABAB", {"strategy": "most_last"}, "1234 . . . ."),
    ("CABAB", {"strategy": "fixed", "group_equal": True}, "1324 . . . .")])
def test_the_order_in_which_each_agent_reads_the_others(answers, options, orders):
    for found, expected in zip(sent(run(answers, **options)), orders.split(), strict=True):
        assert expected in (".", "".join(map(str, found)))


def test_random_differs_by_recipient_round_sample_and_seed_or_is_one_order_for_all():
    orders = [tuple(map(tuple, sent(run("ABCDE" * 2, rounds=3, strategy="random", seed=s), k)))
              for s in range(2) for k in (2, 3)]
    assert len(set(orders)) == 4
    assert all(sorted(order) == [j for j in range(10) if j != i] for o in orders for i, order in enumerate(o))
    orders = sent(run("ABCDE", strategy="random", scope="global"))
    first, second = [[j for j in order if j not in (0, 1)] for order in orders[:2]]
    assert first == second
    assert orders != sent(run("ABCDE", strategy="fixed"))


def test_own_answers_keep_their_place_and_older_exchanges_their_order_within_the_window():
    played = run("AABBC", rounds=3)
    chat = [m["content"] for m in played.requests[10].messages]
    assert chat == ["<q>", "0:A", "1:A\n\n4:C\n\n2:B\n\n3:B", "0:A", "1:A\n\n4:C\n\n2:B\n\n3:B"]
    played = run("AABBC", rounds=3, window=1)
    assert sent(played, 3) == sent(played, 2)
    assert len(played.requests[10].messages) == 3


def shown(played, agent, round):
    """The keys that an agent was shown in a round, by others, of the round before."""
    said = {m.id: m for m in played.messages}
    message = next(m for m in played.messages if m.agent == agent and m.round == round)
    return "".join(said[i].key for i in message.seen if said[i].agent != agent and said[i].round == round - 1)


def test_role_switching_lets_another_answer_come_last_in_every_round():
    played = run("ABCD", rounds=5, strategy="fixed", rotate=True)
    assert [shown(played, 0, k) for k in (2, 3, 4, 5)] == ["BCD", "DBC", "CDB", "BCD"]


def test_power_decay_leaves_the_first_exchange_and_shuffles_ever_more():
    moved = dict.fromkeys(range(2, 6), 0)
    for seed in range(20):
        played = run("ABCDEFGH", rounds=5, seed=seed, strategy="fixed", fade=0.3)
        for k in moved:
            moved[k] += sum(a != b for a, b in zip(shown(played, 0, k), "BCDEFGH", strict=True))
    assert moved[2] == 0 < moved[3] < moved[4] < moved[5]


def test_seeded_answers_make_the_first_round_one_of_exchange():
    SeedMessages = pytest.importorskip("madplug_replay").SeedMessages
    played = play(styles=[Exchange(**MARKED)], visibility=Ordered(strategy="fixed", rotate=True), agents=1, rounds=2,
                  replies=["A", "B"], extensions=[SeedMessages(messages=("C", "D", "E"))])
    seen = {m.round: [played.messages[i].key for i in m.seen if i < 3] for m in played.messages if m.round}
    assert seen == {1: ["C", "D", "E"], 2: ["E", "C", "D"]}


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
    results, bodies = run_on_endpoint(
        TABLE, ROWS, lambda body: f"Final answer: {next(letters) if len(body['messages']) == 1 else 'B'}")
    assert sum(len(b["messages"]) == 1 for b in bodies) == 5
    first = {r.cell: [m.content for m in r.messages if m.round == 1] for r in results}
    assert first["sc"] == first["som"] == first["madc"]
    assert first["cot"] == first["sc"][:1]
    decided = {r.cell: r.decision.key for r in results}
    assert (decided["cot"], decided["sc"]) == (first["cot"][0][-1], "B")


ORDERED = """
oracle = true
[debate]
%s
agents = 5
personas = [{use = "personas.fixed", personas = [%s]}]
visibility = {use = "madc.order", strategy = "%s", inner = %s}
"""
NUMBERED = ", ".join(f'{{name = "P{i}", description = "I am number {i}."}}' for i in range(5))


@pytest.mark.parametrize(("debate", "inner", "strategy", "order"), [
    ('paradigm = "eot.memory"\nrounds = 2', '"eot.peers"', "truth_last", "ABBD"),
    # agents that speak in turn end on the truth of those before
    ('paradigm = "som.debate"\nturns = "turns.round_robin"', '"visibility.everything"', "truth_last", "ABBD"),
    # groups show equal answers together, the own one among them
    ('paradigm = "reconcile.round_table"', '"reconcile.grouped"', "most_last", "DABBB"),
    ('paradigm = "reconcile.round_table"', '"reconcile.grouped"', "truth_last", "BBBAD")])
def test_the_order_goes_over_the_visibility_of_another_method(debate, inner, strategy, order, run_on_endpoint):
    """Agent 0 is right, and the answer of 2, 3 and 4 is the most frequent; agent 4 is shown them in this order."""
    for plugin in ("personas", "eot", "reconcile"):
        pytest.importorskip(f"madplug_{plugin}")

    def speaker(body):
        return int(re.search(r"I am number (\d)", str(body["messages"]))[1])

    def say(body):
        letter = "DABBB"[speaker(body)]
        if "response_format" in body:
            return f'{{"reasoning": "I say {letter}", "answer": "{letter}", "confidence": 0.5}}'
        return f"I say {letter}\nFinal answer: {letter}"

    _, bodies = run_on_endpoint(ORDERED % (debate, NUMBERED, strategy, inner), ROWS, say)
    last = [str(body["messages"][-1]["content"]) for body in bodies if speaker(body) == 4][-1]
    said = "".join(re.findall(r"I say ([A-D])\b", last))
    assert (said if "reconcile" in inner else said.removeprefix("B")) == order  # a shown own answer is first


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
