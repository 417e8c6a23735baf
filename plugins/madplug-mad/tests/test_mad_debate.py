"""Tit for tat: who hears whom, the moderator's word, the judge, and what they cost."""

import json

import pytest
from tests_support import OneLetter, Openings

from madplug import Message, Sample
from madplug_mad import Moderated, Moderator, Opponent, Roles, Side, Sides
from madplug_testing import StrippedText, play


def verdict(answer="", preference=None, reason="r"):
    return json.dumps({"preference": preference or ("Yes" if answer else "No"), "supported_side": "", "reason": reason,
                       "answer": answer})


def debate(replies, rounds=3, agents=3, **options):
    return play(**{"personas": [Roles()], "turns": Sides(), "visibility": Opponent(), "decision": Moderated(),
                   "styles": [Side(), Moderator()], "agents": agents, "rounds": rounds, "replies": replies,
                   "answers": OneLetter(), **options})


def sides(*moderator, judge=()):
    return {0: ["A", "A", "A"], 1: ["B", "B", "B"], 2: [*moderator, *judge]}


NEVER = (verdict(), verdict(), verdict())


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_level_is_told_to_both_debaters_and_not_to_the_moderator(level):
    played = debate(sides(verdict("A")), styles=[Side(level=level), Moderator()])
    aff, neg, mod = played.prompts
    for i, text in enumerate(Side().options.levels):
        assert (text in aff, text in neg, text in mod) == (i == level, i == level, False)


@pytest.mark.parametrize("answer", ["", "   ", "none", "N/A", None, "Not yet.", "TBD", "No answer yet", "unknown"])
def test_an_empty_answer_lets_the_debate_go_on(answer):
    played = debate(sides(verdict(answer, "No"), verdict("A")), answers=StrippedText())
    assert (len(played.requests), played.result.unread) == (6, False)


@pytest.mark.parametrize("word", [verdict("long", "Yes"), verdict("", "perhaps"), '{"answer":'])
def test_a_preference_or_an_answer_that_cannot_be_read_is_asked_for_again_and_then_the_debate_is_unread(word):
    played = debate(sides(*[word] * 4, verdict("A")))
    assert (len(played.requests), played.result.unread) == (6 + 3, True)
    played = debate(sides(word, verdict("A")))
    assert (len(played.requests), played.decision.key, played.result.unread) == (4, "A", False)


def test_a_readable_answer_without_a_preference_is_read():
    played = debate(sides('{"answer": "A"}'))
    assert (len(played.requests), played.decision.key, played.result.unread) == (3, "A", False)


@pytest.mark.parametrize(("moderator", "options", "key", "calls"), [
    ([verdict("unknown", "Yes")], {"answers": StrippedText()}, "unknown", 3),  # with a preference no answer is empty
    ([verdict("A", "No")], {}, "A", 3),  # a readable answer ends the debate whatever the preference says
    ([verdict("A", "No"), verdict("A", "Yes")], {"decision": Moderated(ends_on="preference")}, "A", 6),
    (["I think {'preference': 'Yes', 'answer': 'B',"], {}, "B", 3),  # JSON is read leniently
    (['{"Preference": "Yes", "Answer": "B"}'], {}, "B", 3),
    (["hm", verdict("B")], {}, "B", 4),  # a moderator that answers when it is asked again is heard,
    (["?", "?", "?", "?", verdict("A")], {}, "A", 2 + 4 + 3)])  # and one that never does has no preference
def test_when_the_moderators_word_ends_the_debate(moderator, options, key, calls):
    played = debate(sides(*moderator), **options)
    assert (played.decision.key, len(played.requests)) == (key, calls)
    if moderator[0] in ("hm", "?"):
        assert (played.messages[2].data.get("mad") == {"unparsed": True}) == (moderator[0] == "?")
        assert played.requests[3].messages[-1]["content"].startswith("That could not be read")


@pytest.mark.parametrize("history", ["whole", "first_round"])
def test_the_judge_reads_the_whole_debate_or_its_first_round_and_never_the_moderator(history):
    replies = {0: ["a1", "a2"], 1: ["n1", "n2"],
               2: [verdict(reason="secret"), verdict(), "", '{"answer": "A"}']}
    more = {"decision": Moderated(history=history)} if history == "first_round" else {}
    judge = debate(replies, rounds=2, **more).prompts[-2]
    assert [text in judge for text in ("a1", "n1", "a2", "n2", "secret")] == [
        True, True, history == "whole", history == "whole", False]


def test_an_unreadable_judge_of_any_model_is_asked_again_then_the_negative_side_wins_the_tie():
    played = debate(sides(*NEVER, judge=["", "?", "?", "?", "?"]), models=("small", "large"),
                    decision=Moderated(model="large"))
    assert [r.model for r in played.requests if r.purpose == "judge"] == ["large"] * (2 + 3)
    decision = played.decision
    assert (decision.key, decision.agreed, decision.fallback, decision.tie) == ("B", False, True, True)
    assert played.result.notes["mad"] == {"unparsed": True}
    for judge in (['{"answer": "A"}'], ['{"answer":', '{"answer": "none of these"}', '{"answer": "A"}']):
        again = debate(sides(*NEVER, judge=["", *judge]))
        assert (again.decision.key, again.decision.agreed, again.result.unread) == ("A", True, False)
    replies = {0: ["A", "C"], 1: ["B", "C"], 2: [verdict(), verdict(), "", "?"]}  # who came to agree need no tie
    decision = debate(replies, rounds=2, decision=Moderated(retries=0)).decision
    assert (decision.key, decision.tie) == ("C", False)


def test_a_base_answer_costs_one_more_call_and_is_there_to_defend():
    played = debate({0: ["C", "A"], 1: ["B"], 2: [verdict("A")]}, styles=[Side(base=True), Moderator()])
    assert len(played.requests) == 4
    assert played.requests[0].purpose == "base"
    assert "yours to defend:\nC" in played.prompts[1]


def test_debaters_speak_one_by_one_and_hear_all_before_them_but_never_the_moderator():
    played = debate({0: ["A"] * 2, 1: ["B"] * 2, 2: [verdict(reason="secret"), verdict("B")], 3: ["A"] * 2,
                     4: ["B"] * 2}, agents=5)
    assert [(m.round, m.agent, m.move, m.seen) for m in played.messages] == [
        (1, 0, "draft", ()), (1, 1, "improve", (0,)), (1, 3, "improve", (0, 1)), (1, 4, "improve", (0, 1, 2)),
        (1, 2, "moderate", (0, 1, 2, 3)), (2, 0, "improve", (0, 1, 2, 3)), (2, 1, "improve", (0, 1, 2, 3, 5)),
        (2, 3, "improve", (0, 1, 2, 3, 5, 6)), (2, 4, "improve", (0, 1, 2, 3, 5, 6, 7)),
        (2, 2, "moderate", (0, 1, 2, 3, 4, 5, 6, 7, 8))]
    assert ["secret" in prompt for prompt in played.prompts] == [False] * 9 + [True]
    assert [a.persona.name for a in played.debate.agents] == [
        "Affirmative side", "Negative side", "Moderator", "Affirmative side 2", "Negative side 2"]
    assert ["You disagree" in prompt for prompt in played.prompts[:4]] == [False, True, False, False]


def test_images_reach_both_sides_the_moderator_and_the_judge():
    sample = Sample("q1", "what is this?", images=("data:image/png;base64,AAAA",))
    played = debate(sides(*NEVER, judge=["", '{"answer": "A"}']), sample=sample)
    for request in played.requests:
        shown = [p for m in request.messages if isinstance(m["content"], list) for p in m["content"]]
        assert sum(p["type"] == "image_url" for p in shown) == 1


def test_what_was_on_record_before_the_debate_is_no_round():
    played = debate(sides(verdict("A")), extensions=[Openings(Message(0, 0, 0, None, "note", "mind the units"))])
    assert all("mind the units" in prompt for prompt in played.prompts)
    assert "Round 0" not in played.prompts[2]
    assert "Round 1" in played.prompts[2]


def test_debaters_that_hold_a_form_end_with_an_answer(run_debate):
    styles = 'styles = [{use = "mad.side", max_characters = 70}, "mad.moderator"]'
    requests = run_debate('paradigm = "mad.tit_for_tat"\n' + styles, lambda request: (
        verdict("(A)") if request.purpose == "moderate" else "Final answer: A"))[1]
    assert all("{0,70}" in r.form["regex"] for r in requests[:2])
    assert "json_schema" in requests[2].form
