"""Confidences of a round, and who is shown which."""

from math import log

import pytest
from tests_support import Letter

from madplug import Completion
from madplug_debunc import Calibration, Oracle, Uncertain, scale
from madplug_prompting.tokens import entropy
from madplug_testing import play

MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}", "sure": "sure {confidence}"}


@pytest.mark.parametrize(("uncertainties", "confidences"), [
    ([0.2, 0.4, 0.8], [8, 4, 2]), ([0.3, 0.3, 0.3], [5, 5, 5]), ([0.05, 1, 1], [10, 1, 1]), ([0.1, 0.1], [8, 8]),
    ([0.02, 0.5, 0.5, 0.5], [10, 1, 1, 1]), ([0, 1], [10, 1])])
def test_confidences_share_out_what_is_certain(uncertainties, confidences):
    assert scale(uncertainties) == confidences


def test_the_tokens_that_an_endpoint_does_not_name_count_as_one():
    assert entropy(map(log, (0.7, 0.2, 0.05))) == pytest.approx(0.8711, abs=1e-4)
    assert entropy([0.0]) == 0


def debated(uncertainties, style=None, said="ABC", **more):
    """Three agents whose replies are as uncertain as this."""
    def reply(request):
        u = uncertainties[request.agent]
        return Completion(said[request.agent], logprobs=None if u is None else (-u, -u))

    return play(styles=[style or Uncertain(uncertainty="drawn", **MARKED)], rounds=2, replies=reply, references=["B"],
                metrics={"debunc": Calibration()}, **more)


def test_others_answers_are_shown_with_their_confidences_and_the_own_without():
    played = debated([0.2, 0.4, 0.8])
    assert [[m["content"] for m in r.messages] for r in played.requests[3:]] == [
        ["<q>", "A", "B\nsure 4\n\nC\nsure 2"], ["<q>", "B", "A\nsure 8\n\nC\nsure 2"],
        ["<q>", "C", "A\nsure 8\n\nB\nsure 4"]]
    assert all(r.params == {"logprobs": True} for r in played.requests)
    assert played.metrics == {"debunc.measured": 1, "debunc.right": 4, "debunc.wrong": 5}


def test_a_reply_without_log_probabilities_is_shown_without_a_confidence_and_counted():
    played = debated([0.1, None, 0.1])
    assert played.requests[3].messages[-1]["content"] == "B\n\nC\nsure 8"
    assert played.metrics["debunc.measured"] == pytest.approx(2 / 3)
    assert "data.prompting (no log-probabilities), message of Agent 2 in round 1" in played.result.unread_parts()
    assert not debated([0.1, 0.2, 0.3]).result.unread
    played = play(styles=[Uncertain(**MARKED)], replies=lambda r: Completion("A", logprobs=(-1.0,)))
    assert played.result.unread, "no other tokens, and so no entropy"


def test_an_answer_that_cannot_be_read_is_neither_right_nor_wrong():
    played = debated([0.2, 0.4, 0.8], said="AB?", answers=Letter())
    assert played.metrics == {"debunc.measured": 1, "debunc.right": 4, "debunc.wrong": 8}


def test_a_confidence_is_that_of_the_entropy_where_an_endpoint_gives_other_tokens():
    places = [({"A": log(0.9)},), ({"B": log(0.5)}, {"b": log(0.5)}), ({"C": 0.0},)]
    played = play(styles=[Uncertain(**MARKED, likeliest=5)], rounds=2, replies=lambda r: Completion(
        "ABC"[r.agent], logprobs=(-1.0,) * len(places[r.agent]), top_logprobs=places[r.agent]))
    assert played.requests[0].params == {"logprobs": True, "top_logprobs": 5}
    assert [m.data["prompting"]["entropy"] for m in played.messages[:3]] == pytest.approx([0.3251, log(2), 0], abs=1e-4)
    assert played.requests[3].messages[-1]["content"] == "B\nsure 1\n\nC\nsure 10"


def test_an_oracle_is_sure_of_what_is_right():
    played = debated([None] * 3, style=Oracle(**MARKED), oracle=True)
    assert played.requests[3].messages[-1]["content"] == "B\nsure 10\n\nC\nsure 1"
    assert played.requests[3].params == {}
