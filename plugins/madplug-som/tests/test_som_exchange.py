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


@pytest.mark.parametrize(("agents", "replies", "chat"), [
    (3, "abcdefxyz", ["<q>", "a", "b\n\nc<c>", "d", "e\n\nf<c>"]),
    (1, "abc", ["<q>", "a", "<verify>", "b", "<verify>"])])  # one agent verifies itself
def test_three_rounds_repeat_the_whole_exchange(agents, replies, chat):
    played = play(styles=[Exchange(**MARKED)], replies=[*replies], rounds=3, agents=agents)
    assert [m["content"] for m in played.requests[2 * agents].messages] == chat


@pytest.mark.parametrize(("rounds", "visibility", "expected"), [
    (2, None, 2490), (3, None, 6570), (2, LAST_ROUND, 2490), (3, LAST_ROUND, 4680)])
def test_tokens_follow_the_formula_and_a_prompt_only_grows(rounds, visibility, expected):
    played = play(styles=[Exchange(**MARKED)], replies=said, rounds=rounds, visibility=visibility)
    n, r, q, m, c = 3, rounds - 1, 100, 200, 30
    full = n * ((r + 1) * q + (n * m + c) * r * (r + 1) // 2)
    last = n * ((r + 1) * q + r * (n * m + c))
    text = "".join(played.prompts)
    sent = q * text.count("<q>") + m * text.count("<m>") + c * text.count("<c>")
    assert sent == expected == (last if visibility else full)
    assert sum(message.content.count("<m>") for message in played.messages) == n * rounds
    chats = [r.messages for r in played.requests if r.agent == 1]
    assert visibility or all(later[:len(earlier)] == earlier for earlier, later in pairwise(chats))


def test_images_come_with_the_question_once_after_the_persona_in_the_system_message():
    sample = Sample("q", "?", images=("data:image/png,x",))
    poet = Cast(Persona("Poet", "You write in verse."), Persona("Poet"))
    played = play(styles=[Exchange()], replies=said, rounds=2, sample=sample, personas=[poet])
    kinds = [[type(m["content"]) for m in r.messages] for r in played.requests]
    assert kinds == [[str, list], [list], [str, list, str, str], [list, str, str]]
    assert played.requests[0].messages[0] == {"role": "system", "content": "You write in verse."}


def test_a_summary_of_all_answers_by_the_first_agents_model_replaces_the_peers():
    played = play(styles=[Exchange(**MARKED)], extensions=[Summary(block="{content}")], rounds=3,
                  replies=lambda request: "SUMMARY" if request.purpose == "summarise" else said(request))
    assert played.result.calls == 11
    assert [m.content for m in played.messages if m.agent is None] == ["SUMMARY", "SUMMARY"]
    summary, _ = [r for r in played.requests if r.purpose == "summarise"]
    assert all(f"<m>{agent}0" in summary.messages[0]["content"] for agent in range(3))
    assert summary.agent == 0
    assert [m["content"] for m in played.requests[-1].messages] == ["<q>", "<m>20", "SUMMARY<c>", "<m>21", "SUMMARY<c>"]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("review", "rounds", "summaries", "notes"), [
    (lambda debate: Review(say="a note"), 3, 0, ["a note"] * 3),  # it has its say instead
    (lambda debate: Review(stop=True), 1, 0, []),  # it ends the debate, and no summary is paid for
    (redo_once, 3, 2, ["SUMMARY"] * 2),  # what it retracts is summarised when it has been run again
    (lambda debate: None, 3, 2, ["SUMMARY"] * 2), (lambda debate: Review(), 3, 2, ["SUMMARY"] * 2)])
def test_what_an_extension_further_in_asks_for_comes_before_a_summary(later, review, rounds, summaries, notes):
    async def soon(debate):
        return review(debate)

    played = play(styles=[Exchange()], extensions=[Reviews(soon if later else review), Summary()], rounds=3, agents=2,
                  replies=lambda r: "SUMMARY" if r.purpose == "summarise" else "x")
    assert (played.result.rounds, sum(r.purpose == "summarise" for r in played.requests)) == (rounds, summaries)
    assert [m.content for m in played.messages if m.agent is None] == notes
    assert any(m.retracted for m in played.transcript.record) == (review is redo_once)


@pytest.mark.parametrize(("intensity", "said_of"), [(3, "30 percent"), (0, "about 0 percent"), (-1, None)])
def test_agreement_intensity_ends_the_later_prompts_and_of_minus_one_changes_no_byte(intensity, said_of):
    plain = play(styles=[Exchange()], replies=said, rounds=2)
    played = play(styles=[Exchange()], extensions=[AgreementIntensity(intensity=intensity)], replies=said, rounds=2)
    if said_of is None:
        assert played.requests == plain.requests
    else:
        assert [said_of in r.messages[-1]["content"] for r in played.requests] == [False] * 3 + [True] * 3


def test_an_agent_is_shown_neither_its_own_thoughts_nor_those_of_others():
    played = play(styles=[Exchange()], agents=2, rounds=2, replies=["<think>maybe B</think>A"] * 4)
    assert [m.content for m in played.messages] == ["A"] * 4
    assert not any("maybe B" in str(request.messages) for request in played.requests)
