import pytest

from madplug.testing import play
from madplug_madc import Ordered, grouped, most_consistent, ordered
from madplug_som import Exchange

MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}", "verify": "<verify>"}


def run(first: str, rounds=2, references=(), oracle=False, seed=0, **options):
    """A debate whose agents begin with these answers (`-`: unreadable) and keep them; says `agent:answer`."""
    from madplug import AnswerFormat

    class AfterColon(AnswerFormat):
        name = "after_colon"

        def instruction(self, sample):
            return "agent:answer"

        def canonical(self, text, sample):
            key = text.rpartition(":")[2]
            return None if key == "-" else key

    def reply(request):
        return f"{request.agent}:{first[request.agent]}"

    return play(styles=[Exchange(**MARKED)], visibility=Ordered(**options), replies=reply, agents=len(first),
                answers=AfterColon(), rounds=rounds, references=references, oracle=oracle, seed=seed)


def sent(played, round=2) -> list[list[int]]:
    """By recipient: the authors of the blocks of its last user message, in the order sent."""
    agents = len(played.debate.agents)
    requests = played.requests[agents * (round - 1):agents * round]
    return [[int(block.split(":")[0]) for block in r.messages[-1]["content"].split("\n\n")] for r in requests]


def test_most_last_counts_among_the_others():
    assert sent(run("AABBC")) == [[1, 4, 2, 3], [0, 4, 2, 3], [3, 4, 0, 1], [2, 4, 0, 1], [0, 1, 2, 3]]


def test_most_last_of_one_list_for_all():
    assert most_consistent("most_last", "AABBC") == [4, 1, 2, 3, 0]
    assert sent(run("AABBC", scope="global")) == [[4, 1, 2, 3], [4, 2, 3, 0], [4, 1, 3, 0], [4, 1, 2, 0], [1, 2, 3, 0]]


def test_three_of_one_mind():
    assert most_consistent("most_last", "ABBBC") == [0, 4, 2, 3, 1]
    orders = sent(run("ABBBC"))
    assert (orders[0], orders[1], orders[4]) == ([4, 1, 2, 3], [0, 4, 2, 3], [0, 1, 2, 3])


def test_an_unreadable_answer_is_like_no_other_and_is_still_shown():
    orders = sent(run("A-A-B"))
    assert (orders[0], orders[1]) == ([1, 2, 3, 4], [3, 4, 0, 2])


def test_fixed_is_the_order_of_agents():
    assert sent(run("AABBC", strategy="fixed")) == [[j for j in range(5) if j != i] for i in range(5)]


def test_most_first_is_descending():
    assert sent(run("AABBC", strategy="most_first"))[0] == [2, 3, 1, 4]
    assert sent(run("AABBC", strategy="most_first", scope="global"))[4] == [0, 1, 2, 3]


def test_truth_last():
    assert sent(run("ABBAC", strategy="truth_last", references=("B",), oracle=True)) == [
        [3, 4, 1, 2], [0, 3, 4, 2], [0, 3, 4, 1], [0, 4, 1, 2], [0, 3, 1, 2]]


def test_truth_first():
    orders = sent(run("ABBAC", strategy="truth_first", references=("B",), oracle=True))
    assert (orders[0], orders[1], orders[4]) == ([1, 2, 3, 4], [2, 0, 3, 4], [1, 2, 0, 3])


@pytest.mark.parametrize("strategy", ["truth_first", "truth_last"])
def test_without_a_right_answer_knowing_is_fixed(strategy):
    known = run("ABBAC", strategy=strategy, references=("D",), oracle=True)
    assert sent(known) == sent(run("ABBAC", strategy="fixed"))


@pytest.mark.parametrize("strategy", ["truth_first", "truth_last"])
def test_only_those_that_know_need_the_references(strategy):
    assert Ordered(strategy=strategy).needs == {"references"}
    assert not any(Ordered(strategy=s).needs for s in ("fixed", "random", "most_last", "most_first"))


def test_knowing_without_permission_fails_the_debate():
    from madplug.testing import play

    played = play(visibility=Ordered(strategy="truth_last"), replies=["A"] * 6, rounds=2, references=("A",),
                  expect_failure=True)
    assert "oracle = true" in played.result.error


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
    without_both = [[j for j in order if j not in (0, 1)] for order in orders[:2]]
    assert without_both[0] == without_both[1]
    assert orders != sent(run("ABCDE", strategy="fixed"))


def test_equal_answers_may_be_grouped():
    assert sent(run("CABAB", strategy="most_last", group_equal=True))[0] == [1, 3, 2, 4]
    assert sent(run("CABAB", strategy="most_last"))[0] == [1, 2, 3, 4]
    assert sent(run("CABAB", strategy="fixed", group_equal=True))[0] == [1, 3, 2, 4]
    assert most_consistent("most_last", "AABBC", group_equal=True) == [4, 2, 3, 1, 0]


def test_grouping_keeps_the_place_of_the_first_or_the_last():
    assert grouped([0, 1, 2, 3], "ABAB", last=False) == [0, 2, 1, 3]
    assert grouped([0, 1, 2, 3], "ABBA", last=True) == [1, 2, 0, 3]
    assert ordered("most_first", "ABAB", group_equal=True) == [0, 2, 1, 3]


def test_own_answers_keep_their_place_and_older_exchanges_their_order():
    played = run("AABBC", rounds=3)
    chat = [m["content"] for m in played.requests[10].messages]
    assert chat == ["<q>", "0:A", "1:A\n\n4:C\n\n2:B\n\n3:B", "0:A", "1:A\n\n4:C\n\n2:B\n\n3:B"]


def test_a_window_of_one_shows_the_last_round():
    played = run("AABBC", rounds=3, window=1)
    assert sent(played, 3) == sent(played, 2)
    assert len(played.requests[10].messages) == 3


@pytest.mark.parametrize("strategy", ["fixed", "random", "most_last", "most_first", "truth_first", "truth_last"])
def test_calls_are_agents_times_rounds_and_nothing_else_changes(strategy):
    played = run("AABBC", strategy=strategy, references=("A",), oracle=True)
    assert played.result.calls == 10
    fixed = run("AABBC", strategy="fixed")
    assert [[sorted(m["content"].split("\n\n")) for m in r.messages] for r in played.requests] == [
        [sorted(m["content"].split("\n\n")) for m in r.messages] for r in fixed.requests]
