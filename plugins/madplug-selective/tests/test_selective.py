from dataclasses import replace

import pytest

from madplug import UserError
from madplug_groups import GroupExchange, Members, Stages
from madplug_selective import Embeddings, Novel, Savings, Unanimous
from madplug_testing import StrippedText, debate_from, play

SHORT = {"first": "QUESTION", "exchange": "OTHERS {answers}", "block": "{content}", "summary": "POOL {summary}",
         "summarise": "GROUP {answers}"}


class Dashed(StrippedText):
    """A dash is no answer."""

    def canonical(self, text, sample):
        return None if text == "-" else super().canonical(text, sample)


def selective(first, later=None, *, groups=1, stages=1, length=2, inner=None, options=None, **more):
    """A debate whose agents give these answers first, and then what `later(request)` says."""
    agents = len(first)

    def reply(request):
        later_turn = len(request.messages) > 1 or request.purpose == "summarise"
        return (later or (lambda r: first[r.agent]))(request) if later_turn else first[request.agent]

    return play(styles=[GroupExchange(**SHORT)], turns=Stages(groups=groups, stages=stages, length=length),
                visibility=Novel(inner=inner or Members(), **options or {}), decision=Unanimous(), agents=agents,
                rounds=stages * length, replies=reply, metrics={"savings": Savings()}, **more)


def read(played, round=2):
    """What each agent was shown of others in a round."""
    said = {m.id: m for m in played.messages}
    return [[said[i].content for i in m.seen if said[i].agent != m.agent or not said[i].answers]
            for m in played.messages if m.round == round and m.answers]


@pytest.mark.parametrize(("groups", "answers", "kept", "count"), [
    (1, "12 12 15 12 9", ["15 9", "15 9", "12 9", "15 9", "12 15"], 10),
    (2, "12 12 15 12 9 9", ["15", "15", "12", "9", "12", "12"], 6),
    (1, "12 - - 9", ["- - 9", "12 - 9", "12 - 9", "12 - -"], 12)])
def test_an_agent_reads_what_differs_from_its_own_answer_and_each_other(groups, answers, kept, count):
    played = selective(answers.split(), groups=groups, answers=Dashed())
    assert [" ".join(shown) for shown in read(played)] == kept
    assert (played.metrics["savings.read"], played.metrics["savings.silent"]) == (count, 0)
    shown = [r.messages[-1]["content"] for r in played.requests[len(answers.split()):]]
    assert shown == ["OTHERS " + one.replace(" ", "\n\n") for one in kept]


def test_agents_of_a_group_that_agrees_are_silent_until_another_group_s_summary_differs():
    def later(request):
        text = request.messages[-1]["content"]
        return text.split()[1] if request.purpose == "summarise" else "12"

    played = selective(["12"] * 3 + ["9"] * 3, later, groups=2, stages=2)
    silent = [m for m in played.messages if m.round == 2 and m.answers]
    assert [(m.content, m.key, m.calls) for m in silent] == [("12", "12", ())] * 3 + [("9", "9", ())] * 3
    assert read(played, 3) == [["9"]] * 3 + [["12"]] * 3
    chat = [m["content"] for m in next(r for r in played.requests[8:] if r.agent == 0).messages]
    assert chat == ["QUESTION", "12", "POOL 9"]
    assert played.result.calls == 6 + 0 + 2 + 6
    assert (played.decision.key, played.decision.agreed, played.result.rounds) == ("12", True, 3)
    assert played.metrics["savings.silent"] == 6


def test_a_debate_ends_without_summaries_as_soon_as_all_agree():
    played = selective(["12", "12", "9", "9"], lambda r: "12", groups=2, stages=2, length=1)
    assert "summarise" in [r.purpose for r in played.requests]
    agreed = selective(["12"] * 4, groups=2, stages=2, length=1)
    assert (agreed.result.calls, agreed.decision.agreed) == (4, True)
    assert selective(["-"] * 3, answers=Dashed()).result.calls == 6  # who cannot be read always speaks


def test_an_answer_that_is_recorded_again_is_shown_once_where_nothing_is_forgotten():
    ring = pytest.importorskip("madplug_sparse").SparseGraph(topology="ring")
    played = selective(["12", "12", "12", "9", "9"], lambda r: "9", length=3, inner=ring)
    assert [m.agent for m in played.messages if m.data.get("selective", {}).get("silent")] == [1]  # in round 2
    chat = [m["content"] for m in [r for r in played.requests if r.agent == 1][-1].messages]
    assert chat == ["QUESTION", "12", "OTHERS 9"]


def test_messages_with_close_embeddings_are_similar():
    embeddings = pytest.importorskip("madplug_embeddings")
    options = {"similarity": "embedding", "threshold": 0.65}
    more = {"services": {"e": embeddings.Hashing()}, "extensions": [Embeddings(embedder="e")], "options": options}
    answers = ["the sum is twelve", "the sum is twelve!", "nothing alike here"]
    played = selective(answers, **more)
    assert read(played) == [[answers[2]], [answers[2]], [answers[0]]]


def test_embeddings_have_to_be_made(run_debate):
    visibility = 'visibility = {use = "selective.novel", inner = "groups.members", similarity = "embedding"}'
    with pytest.raises(UserError, match=r"selective\.novel needs 'embedding'"):
        run_debate(f'paradigm = "selective.debate"\n{visibility}', ())


def test_a_turn_that_gives_no_answer_is_counted_too_where_it_read_others():
    debate = debate_from("AA BB", replies="")
    first = debate.transcript.messages[0]
    debate.transcript.append(replace(first, id=4, round=3, answer="", key=None, seen=(0, 1, 2, 3)))
    before = Savings().score(debate_from("AA BB", replies=""), ())["read"]
    assert Savings().score(debate, ())["read"] - before == 2
