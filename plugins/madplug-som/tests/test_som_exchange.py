from itertools import pairwise

import pytest
from tests_support import Cast, Reviews, made, redo_once

from madplug import Persona, Review, Sample, Visibility
from madplug_som import AgreementIntensity, Exchange, Summary
from madplug_testing import play

MARKED = {"first": "<q>", "exchange": "{answers}<c>", "block": "{content}", "verify": "<verify>",
          "summary": "{summary}<c>"}
"""Prompts whose parts can be counted."""


LAST_ROUND = made(Visibility, view=lambda self, debate, turn: debate.transcript.of_round(debate.round - 1))


def said(request) -> str:
    return f"<m>{request.agent}{sum(m['role'] == 'assistant' for m in request.messages)}"


def tokens(played, q=100, m=200, c=30) -> int:
    text = "".join(played.prompts)
    return q * text.count("<q>") + m * text.count("<m>") + c * text.count("<c>")


def test_three_rounds_repeat_the_whole_exchange():
    played = play(styles=[Exchange(**MARKED)], replies=list("abcdefxyz"), rounds=3)
    assert [m["content"] for m in played.requests[6].messages] == ["<q>", "a", "b\n\nc<c>", "d", "e\n\nf<c>"]


def test_a_prompt_only_grows():
    played = play(styles=[Exchange()], replies=said, rounds=4, agents=4)
    for agent in range(4):
        chats = [r.messages for r in played.requests if r.agent == agent]
        assert all(later[:len(earlier)] == earlier for earlier, later in pairwise(chats))


def test_one_agent_verifies_itself():
    played = play(styles=[Exchange(**MARKED)], replies=list("abc"), rounds=3, agents=1)
    assert [m["content"] for m in played.requests[2].messages] == ["<q>", "a", "<verify>", "b", "<verify>"]


@pytest.mark.parametrize(("rounds", "visibility", "expected"), [
    (2, None, 2490), (3, None, 6570), (2, LAST_ROUND, 2490), (3, LAST_ROUND, 4680)])
def test_input_tokens_follow_the_formula(rounds, visibility, expected):
    played = play(styles=[Exchange(**MARKED)], replies=said, rounds=rounds, visibility=visibility)
    n, r, q, m, c = 3, rounds - 1, 100, 200, 30
    full = n * ((r + 1) * q + (n * m + c) * r * (r + 1) // 2)
    last = n * ((r + 1) * q + r * (n * m + c))
    assert tokens(played) == expected == (last if visibility else full)


@pytest.mark.parametrize(("rounds", "expected"), [(2, 1200), (3, 1800)])
def test_output_tokens_follow_the_formula(rounds, expected):
    played = play(styles=[Exchange(**MARKED)], replies=said, rounds=rounds)
    assert 200 * sum(m.content.count("<m>") for m in played.messages) == expected


def test_a_persona_with_a_description_becomes_the_system_message():
    poet = Persona("Poet", "You write in verse.")
    played = play(styles=[Exchange()], personas=[Cast(poet, poet)], replies=["a", "b"])
    assert played.requests[0].messages[0] == {"role": "system", "content": "You write in verse."}


def test_images_come_with_the_question_once():
    sample = Sample("q", "?", images=("data:image/png,x",))
    played = play(styles=[Exchange()], replies=said, rounds=2, sample=sample)
    kinds = [[type(m["content"]) for m in r.messages] for r in played.requests]
    assert kinds == [[list]] * 3 + [[list, str, str]] * 3


# Extensions

def test_a_summary_replaces_the_peers():
    def reply(request):
        return "SUMMARY" if request.purpose == "summarise" else said(request)

    played = play(styles=[Exchange(**MARKED)], extensions=[Summary()], replies=reply, rounds=3)
    assert played.result.calls == 11
    assert [m.content for m in played.messages if m.agent is None] == ["SUMMARY", "SUMMARY"]
    last = played.requests[-1]
    assert [m["content"] for m in last.messages] == ["<q>", "<m>20", "SUMMARY<c>", "<m>21", "SUMMARY<c>"]


def test_a_summary_sees_all_answers_and_is_asked_of_the_first_agents_model():
    replies = [*"abc", "S", *"def"]
    played = play(styles=[Exchange()], extensions=[Summary()], replies=replies, rounds=2)
    (summary,) = [r for r in played.requests if r.purpose == "summarise"]
    assert all(f"answer ---\n{x}" in summary.messages[0]["content"] for x in "abc")
    assert summary.agent == 0


def summarised(review, rounds=3, *, later=False):
    """The debate, and how many summaries were paid for."""
    async def soon(debate):
        return review(debate)

    extensions = [Reviews(soon if later else review), Summary()]
    played = play(styles=[Exchange()], extensions=extensions, rounds=rounds, agents=2,
                  replies=lambda r: "SUMMARY" if r.purpose == "summarise" else "x")
    return played, sum(r.purpose == "summarise" for r in played.requests)


@pytest.mark.parametrize("later", [False, True])
def test_a_round_on_which_an_extension_further_in_has_its_say_is_not_summarised(later):
    played, summaries = summarised(lambda debate: Review(say="a note"), later=later)
    assert summaries == 0
    assert [m.content for m in played.messages if m.agent is None] == ["a note"] * 3


@pytest.mark.parametrize("later", [False, True])
def test_an_extension_further_in_ends_the_debate_and_no_summary_is_paid_for(later):
    played, summaries = summarised(lambda debate: Review(stop=True), later=later)
    assert (played.result.rounds, summaries) == (1, 0)


def test_a_round_that_an_extension_further_in_retracts_is_summarised_when_it_has_been_run_again():
    played, summaries = summarised(
        redo_once)
    assert summaries == 2
    assert sum(m.retracted for m in played.transcript.record) == 2


@pytest.mark.parametrize("nothing", [None, Review()])
def test_a_review_that_asks_for_nothing_leaves_room_for_a_summary(nothing):
    assert summarised(lambda debate: nothing)[1] == 2


@pytest.mark.parametrize(("intensity", "said_of"), [(3, "30 percent"), (0, "about 0 percent"), (-1, None)])
def test_agreement_intensity_ends_the_later_prompts_and_of_minus_one_changes_no_byte(intensity, said_of):
    plain = play(styles=[Exchange()], replies=said, rounds=2)
    played = play(styles=[Exchange()], extensions=[AgreementIntensity(intensity=intensity)], replies=said, rounds=2)
    if said_of is None:
        assert played.requests == plain.requests
    else:
        assert [said_of in r.messages[-1]["content"] for r in played.requests] == [False] * 3 + [True] * 3


def test_an_agent_is_shown_neither_its_own_thoughts_nor_those_of_others():
    played = play(styles=[Exchange()], agents=2, rounds=2,
                  replies=["<think>maybe B</think>A"] * 4)
    assert [m.content for m in played.messages] == ["A"] * 4
    assert not any("maybe B" in str(request.messages) for request in played.requests)
