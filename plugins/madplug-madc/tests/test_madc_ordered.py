"""In which order each agent is shown the others' answers."""

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
    # equal answers may be grouped
    ("CABAB", {"strategy": "most_last", "group_equal": True}, "1324 . . . ."),
    ("CABAB", {"strategy": "most_last"}, "1234 . . . ."),
    ("CABAB", {"strategy": "fixed", "group_equal": True}, "1324 . . . .")])
def test_the_order_in_which_each_agent_reads_the_others(answers, options, orders):
    for found, expected in zip(sent(run(answers, **options)), orders.split(), strict=True):
        assert expected in (".", "".join(map(str, found)))


@pytest.mark.parametrize("strategy", ["truth_first", "truth_last"])
def test_without_a_right_answer_knowing_is_fixed(strategy):
    known = run("ABBAC", strategy=strategy, references=("D",), oracle=True)
    assert sent(known) == sent(run("ABBAC", strategy="fixed"))


def test_references_reach_no_prompt():
    played = run("ABBAC", strategy="truth_last", references=("B", "SECRET"), oracle=True)
    assert not any("SECRET" in prompt for prompt in played.prompts)


def test_random_differs_by_recipient_round_sample_and_seed():
    orders = [tuple(map(tuple, sent(run("ABCDE" * 2, rounds=3, strategy="random", seed=s), k)))
              for s in range(2) for k in (2, 3)]
    assert len(set(orders)) == 4
    assert all(sorted(order) == [j for j in range(10) if j != i] for o in orders for i, order in enumerate(o))
    assert sent(run("ABCDE", strategy="random")) == sent(run("ABCDE", strategy="random"))


def test_random_for_all_is_one_order():
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
