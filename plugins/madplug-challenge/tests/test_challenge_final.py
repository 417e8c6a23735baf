"""Challenges of a final answer, and what they change."""

import pytest
from tests_support import Cast

from madplug import Passage, Persona, Sample, Service
from madplug.records import Plan
from madplug_challenge import Final, Outcome
from madplug_testing import play


class Books(Service):
    """A retriever that counts."""

    name = "books"

    async def retrieve(self, query, k):
        self.asked = getattr(self, "asked", 0) + 1
        return [Passage(f"page {i} on {query}") for i in range(k)]


TWO = ("model", "challenger")


def say(verdicts, revised="new", wrong="bad", discuss="x"):
    """Agents that answer `discuss`, give these verdicts, and another answer when they disagree."""
    def reply(request):
        if request.model == "challenger":
            return wrong if isinstance(wrong, str) else wrong.pop(0)
        if request.purpose == "challenge":
            return verdicts[request.agent]
        return revised if request.purpose == "revise" else discuss
    return reply


def challenged(verdicts=("AGREE", "DISAGREE", "hmm"), *, setting="only_solution", options=None, models=("model",),
               **more):
    replies = say(list(verdicts), **{k: more.pop(k) for k in ("revised", "wrong", "discuss") if k in more})
    return play(phases=[Final(settings=[setting], **(options or {}))], agents=len(verdicts), replies=replies,
                models=models, **more)


def note(played, setting="only_solution"):
    return played.result.notes["challenge"][setting]


def asked(played):
    return [r for r in played.requests if r.purpose in ("challenge", "revise")]


def test_worked_example():
    played = challenged()
    assert {name: note(played)[name] for name in ("rate", "failed", "challenges")} == {
        "rate": pytest.approx(1 / 3), "failed": 1, "challenges": 1}
    assert len(asked(played)) == 4
    assert note(played)["agents"] == [
        {"agent": 0, "verdict": "agree", "answer": None, "key": None},
        {"agent": 1, "verdict": "disagree", "answer": "new", "key": "new"},
        {"agent": 2, "verdict": None, "answer": None, "key": None, "unparsed": True, "said": "hmm"}]
    assert challenged(["DISAGREE"] * 3).decision.key == "x"


@pytest.mark.parametrize(("said", "verdict"), [
    ("AGREE", "agree"), ("agree.", "agree"), ("DISAGREE", "disagree"), ("I disagree but agree in part", "disagree"),
    ("I do not agree", "disagree"), ("ＡＧＲＥＥ", "agree"), ("", None), ("no agreement", None), ("x" * 200_000, None)])
def test_verdicts_and_new_answers_that_cannot_be_read_are_visible(said, verdict):
    [agent] = note(challenged([said], revised=" "))["agents"]
    assert (agent["verdict"], agent["key"]) == (verdict, None)
    assert agent.get("unparsed", False) == (verdict != "agree")
    assert len(str(agent)) < 1000


def test_information_is_retrieved_once():
    books = Books()
    played = challenged(setting="information", options={"retriever": "lib", "passages": 2}, services={"lib": books})
    assert "page 1 on the question" in played.prompts[3]
    assert books.asked == 1


def test_the_irrelevant_answer_is_fixed_or_generated():
    fixed = challenged(setting="irrelevant")
    assert "answer to the task is: I do not know anything about that." in fixed.prompts[3]
    generated = challenged(["AGREE"], setting="irrelevant", wrong="Cats like milk.", models=TWO,
                           options={"irrelevant": "generated", "challenger_model": "challenger"})
    assert "answer to the task is: Cats like milk." in generated.prompts[2]


def test_the_wrong_answer_is_the_challengers_and_asked_for_again_where_it_is_the_debates_own():
    def proposed(*replies):
        played = challenged(["DISAGREE"], setting="wrong", options={"challenger_model": "challenger"},
                            wrong=list(replies), models=TWO)
        return note(played, "wrong"), played

    found, played = proposed("x", " ", "bad")
    assert found["shown"] == proposed("bad")[0]["shown"] == "bad"
    assert played.requests[1].model == "challenger"
    assert "It must not be: x" in played.prompts[1]
    found, played = proposed("x", "x", "x")
    assert found == {"setting": "wrong", "skipped": "the challenger gave no wrong answer"}
    assert len(played.requests) == 4


def test_five_settings_cost_a_verdict_each_the_new_answers_and_one_wrong_answer():
    def reply(request):
        if request.purpose == "challenge" and request.agent is None:
            return "bad"
        return ["AGREE", "DISAGREE", "hmm"][request.agent] if request.purpose == "challenge" else "x"
    played = play(phases=[Final(challenger_model="model", retriever="lib")], agents=3, replies=reply,
                  services={"lib": Books()})
    notes = played.result.notes["challenge"]
    assert list(notes) == ["only_solution", "history", "information", "irrelevant", "wrong"]
    assert len(asked(played)) == 5 * 3 + 5 + 1
    assert all(notes[s]["rate"] == pytest.approx(1 / 3) for s in notes)
    assert Final(challenger_model="m", retriever="r").calls(Plan(3, 1, 3)) == 5 * 3 * 2 + 3


def test_by_default_every_setting_runs_that_can_and_others_are_refused_before_the_run():
    assert Final().settings == ("only_solution", "history", "irrelevant")
    assert Final(challenger_model="m", retriever="r").settings == (
        "only_solution", "history", "information", "irrelevant", "wrong")
    assert list(Final().check(None)) == []
    said = list(Final(settings=["wrong", "information", "irrelevant"], irrelevant="generated").check(None))
    assert len(said) == 3
    assert "'wrong' needs the option 'challenger_model'" in said[0]
    assert "'information' needs the option 'retriever'" in said[2]


def test_a_debate_without_an_answer_is_not_challenged():
    played = challenged(discuss="")
    assert played.result.notes["challenge"] == {"skipped": "the debate has no answer"}
    assert not asked(played)


def test_new_answers_are_put_together_by_plurality_and_a_tie_is_a_tie():
    def reply(request):
        if request.purpose == "challenge":
            return "DISAGREE"
        return {"revise": ["p", "q", "p"][request.agent]}.get(request.purpose, "x")

    for agents, key, tie in ((3, "p", False), (2, None, True)):
        found = note(play(phases=[Final(settings=["only_solution"])], agents=agents, replies=reply))
        assert (found["new_key"], found["tie"]) == (key, tie)


def test_only_voters_are_asked():
    panel = Cast(Persona("Judge", votes=False), Persona("Ann", "a cook"))
    played = challenged(["?", "AGREE"], personas=[panel])
    assert [r.agent for r in asked(played)] == [1]
    assert "Your role: Ann. a cook" in played.prompts[-1]


def test_text_with_braces_stays_text_and_images_come_with_the_task():
    played = challenged(discuss="{answer} {passages}")
    assert "The final answer to the task is: {answer} {passages}" in played.prompts[3]
    played = challenged(sample=Sample("q", "what?", images=("data:image/png;base64,AA",)))
    assert played.requests[3].messages[1]["content"][1]["image_url"]["url"].startswith("data:")


FAILED = {"rate": 1 / 3, "failed": 1 / 3}
UNKNOWN = dict.fromkeys(("higher", "same", "lower", "plurality"))


@pytest.mark.parametrize(("verdicts", "more", "figures"), [
    (None, {"references": ["new"]}, {**FAILED, "higher": 1, "same": 0, "lower": 0, "plurality": 1}),
    (None, {"references": ["x"]}, {**FAILED, "higher": 0, "same": 0, "lower": 1, "plurality": 0}),
    (None, {"references": ["z"]}, {**FAILED, "higher": 0, "same": 1, "lower": 0, "plurality": 0}),
    (None, {"references": ["x"], "revised": " "}, {**FAILED, "higher": 0, "same": 0, "lower": 1, "plurality": 0}),
    # new answers are judged only with a challenge and a reference
    (["AGREE"], {"references": ["x"]}, {"rate": 0, "failed": 0, **UNKNOWN}), (None, {}, {**FAILED, **UNKNOWN}),
    (["AGREE"], {"references": ["x"], "discuss": ""}, {"rate": None, "failed": None, **UNKNOWN})])
def test_outcome_compares_the_new_answer_with_the_debates(verdicts, more, figures):
    played = challenged(verdicts or ["AGREE", "DISAGREE", "hmm"], metrics={"challenge.outcome": Outcome()}, **more)
    found = {name.rpartition(".")[2]: value for name, value in played.metrics.items()}
    assert {name: found.get(name) for name in figures} == pytest.approx(figures)
