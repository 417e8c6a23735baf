"""Meta-Debate on requests that are really sent: what reviewers see, who applies how, who drops out."""

import json
import re

import pytest

from madplug import AccessError, Completion, Model, RefusedError, UnreachableError
from madplug_mad import Roles
from madplug_metadebate import Cast
from madplug_testing import play

STUDY = """
seed = 1
dataset = {use = "files.table", path = "q.jsonl", answers = "choice"%s}
models.a = {use = "openai.chat", model = "a", base_url = "{url}"}
models.b = {use = "openai.chat", model = "b", base_url = "{url}"}
[debate]
paradigm = "metadebate.%s"
models = ["a", "b"]
rounds = 1
[debate.casting]
%s
"""
ROWS = [{"id": "q1", "question": "Which one is it?", "choices": ["one", "two"], "reference": "B"}]
PIXEL = {"image": ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLv"
                   "AAAAAElFTkSuQmCC")}
TRAINING = [{"id": f"t{i}", "question": f"Training question {i}?", "choices": ["x", "y"], "reference": "A"}
            for i in range(3)]
GIVEN = 'criteria = [["Accuracy", "It is right."], ["Persuasion", "It convinces."]]'
NAMES = ["Role fulfilment", "Correctness"]
APPLIES, REVIEWS, GENERATES = "Your role: ", "Score each of them", "By which 2 or 3 criteria"


def text_of(body):
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def part(body):
    return re.search(r"(?:in this role|Your role|roles is): (\w+)", text_of(body))[1]


def scores(names, *by_agent):
    return json.dumps({f"Agent {i}": dict.fromkeys(names, s) | {"explanation": ""} for i, s in enumerate(by_agent, 1)})


def replies(body):
    text = text_of(body)
    if REVIEWS in text:
        names = [line.partition(":")[0] for line in text.split("these criteria")[1].splitlines()
                 if re.match(r"[A-Z][\w ]+: ", line) and not line.startswith("5:")]
        return scores(names, *([2, 5] if "Agent 2:\n" in text else [3]))
    if GENERATES in text:
        return json.dumps({"criteria": [{"name": name, "explanation": "It is."} for name in ("Wit", "Truth")]})
    if APPLIES in text:
        return f"<{body['model']} as {part(body)}>"
    if "Is one of these answers right" in str(body["messages"]):
        return json.dumps({"preference": "Yes", "supported_side": "", "reason": "", "answer": "(B)"})
    return "```python\nprint('B')\n```" if "Write a Python program" in text else "Final answer: B"


def of(bodies, mark):
    return [b for b in bodies if mark in text_of(b)]


@pytest.fixture
def cast(run_on_endpoint):
    """Runs a study: the (last) result, its notes on the casting and the bodies that were sent."""
    def cast(casting=GIVEN, paradigm="mad", data="", row=ROWS[0]):
        results, bodies = run_on_endpoint(STUDY % (data, paradigm, casting), [row], replies)
        return results[-1], results[-1].notes["metadebate"]["cast"], bodies

    return cast


def test_each_reviewed_proposal_has_its_own_context_where_they_differ(cast):
    _, _, bodies = cast(GIVEN + '\nproposal_context = "independent"')
    review = next(text_of(b) for b in of(bodies, REVIEWS) if part(b) == "Negative")
    first, second = review.split("Agent 1:\n")[1].split("Agent 2:\n")[:2]
    assert [re.findall("<(.) as", said) for said in (first, second)] == [["a", "a"], ["b", "b"]]


def test_criteria_can_be_given_for_a_role_and_are_else_made_from_the_study_s_questions_for_want_of_training_ones(cast):
    _, notes, bodies = cast('[debate.casting.criteria]\nnegative = [["Doubt", "It doubts."]]')
    assert [part(b) for b in of(bodies, GENERATES)] == ["affirmative", "moderator"]
    for said in ("Which one is it?", "Domain of the questions: as in the examples. Modality: text."):
        assert said in text_of(of(bodies, GENERATES)[0])
    assert ["Doubt: It doubts." in text_of(b) for b in of(bodies, REVIEWS)] == [False] * 2 + [True] * 2 + [False] * 2
    assert [role["criteria"] for role in notes] == ["generated_from_study", "given", "generated_from_study"]


def test_generated_criteria_know_domain_modality_other_roles_and_training_examples(cast, tmp_path):
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row | PIXEL) + "\n" for row in TRAINING))
    _, notes, bodies = cast('domain = "geometry of boxes"', row=ROWS[0] | PIXEL,
                            data=', train = "train.jsonl", columns = {images = "image"}')
    first = of(bodies, GENERATES)[0]
    text = text_of(first)
    assert "Domain of the questions: geometry of boxes. Modality: text and images." in text
    assert all(f"Training question {i}?" in text for i in range(3))
    assert "Which one is it?" not in text
    assert "The other roles:\nnegative: You speak for the negative side" in text
    assert sum(p["type"] == "image_url" for p in first["messages"][-1]["content"]) == 3
    assert {role["criteria"] for role in notes} == {"generated"}


def test_a_reused_first_turn_keeps_the_answer_of_its_program(cast):
    result, _, bodies = cast(GIVEN + "\nreuse_proposals = true", "dmad")
    assert len(bodies) == 2 * 4 + 3 * 2
    assert [(m.key, m.data) for m in result.messages] == [("B", {"metadebate": {"reused": True}})] * 3


@pytest.mark.parametrize("name", ["mad", "dmad", "dmad_vision"])
def test_one_model_is_enough(run_debate, name):
    def say(request):
        if request.purpose == "review":
            return scores(("Wit", "Truth"), 3)
        return replies({"model": "a", "messages": request.messages})

    result, requests, plan = run_debate(f'paradigm = "metadebate.{name}"', say)
    assert plan.cells[0].worst_calls() >= sum(r.purpose != "criteria" for r in requests)
    assert result.decision.key == "B"
    assert not any("fallback" in s for s in result.notes["metadebate"]["cast"])


def test_every_prompt_can_be_pasted_with_its_role(cast):
    casting = ('system = "PS {role}"\nproposal = "PP {question} {context}Your role: {role}."\n'
               'review_system = "RS {role}"\n'
               'review = "RR {context}{proposals} Score each of them in this role: {role}. these criteria {criteria}"\n'
               'criteria_system = "CS {role}"\ncriteria_prompt = "By which 2 or 3 criteria {domain} parts is: {role}"')
    _, _, bodies = cast(casting)
    expected = {GENERATES: "CS affirmative", APPLIES: "PS Affirmative side", REVIEWS: "RS Affirmative side"}
    for mark, first in expected.items():
        messages = of(bodies, mark)[0]["messages"]
        assert [m["role"] for m in messages] == ["system", "user"]
        assert messages[0]["content"] == first


def played_with(refusing, mark):
    """A casting in which models refuse what contains a mark; "b" is the best in every role."""
    def say(request):
        text = request.messages[-1]["content"]
        if request.model in refusing and mark in text:
            raise RefusedError("content policy")
        if request.purpose == "review":
            return scores(NAMES, *([2, 5] if "Agent 2:\n" in text else [3]))
        return f"<{request.model}>"

    return play(personas=[Roles()], agents=3, models=("a", "b"), casting=Cast(), replies=say,
                expect_failure=refusing == "ab")


def test_a_model_that_refuses_to_apply_is_no_candidate_and_one_that_refuses_to_review_no_reviewer():
    played = played_with("b", APPLIES + "Neg")
    cast = played.result.notes["metadebate"]["cast"]
    assert [(c["model"], c.get("failed")) for c in cast] == [
        ("b", None), ("a", {"proposal of b": "RefusedError: content policy"}), ("b", None)]
    review = next(p for r, p in zip(played.requests, played.prompts, strict=True)
                  if r.purpose == "review" and "this role: Negative" in p)
    assert "(1 in all)" in review
    assert "Agent 2" not in review.split("Score each")[0]
    cast = played_with("a", REVIEWS).result.notes["metadebate"]["cast"]
    assert [(c["model"], list(c["failed"]), c["dropped"]) for c in cast] == [("b", ["review by a"], ["a"])] * 3


class Pool(Model):
    """Three models, of which the first fails, for everything or for one purpose."""

    name = "pool"

    def __init__(self, error, only=None):
        super().__init__(deadline=0.05, attempts=1)
        self.error, self.only, self.asked = error, only, []

    async def complete(self, request):
        self.asked.append((request.model, request.purpose))
        if request.model == "first" and self.only in (None, request.purpose):
            raise self.error
        criteria = {"criteria": [{"name": name, "explanation": "It is."} for name in ("Wit", "Truth")]}
        review = scores(("Wit", "Truth", *NAMES), 1, 2, 3)
        return Completion({"criteria": json.dumps(criteria), "review": review}.get(request.purpose, "A"))


def cast_from(pool):
    played = play(model=pool, models=("first", "second", "third"), agents=3, personas=[Roles()],
                  casting=Cast(roles={"affirmative": "opens", "negative": "answers", "moderator": "decides"}))
    return played.result, played.result.notes["metadebate"]["cast"]


@pytest.mark.parametrize("error", [AccessError("no such model"), UnreachableError("no connection")])
def test_a_dead_model_is_asked_once_in_a_debate_and_never_cast(error):
    result, notes = cast_from(pool := Pool(error))
    assert {a.model for a in result.agents} <= {"second", "third"}
    assert ("first", "review") not in pool.asked
    assert [set(role["failed"]) for role in notes] == [{"proposal of first", "review by first"}] * 3


def test_another_model_writes_the_criteria():
    _, notes = cast_from(pool := Pool(AccessError("no such model"), only="criteria"))
    assert ("second", "criteria") in pool.asked
    assert {role["criteria"] for role in notes} != {"built_in"}
    assert not any("failed" in role for role in notes)


@pytest.mark.parametrize(("mark", "message"), [
    (APPLIES, "no model wrote a proposal for the role 'affirmative'"), (REVIEWS, "no model reviewed the proposals")])
def test_a_debate_without_candidates_or_reviewers_fails(mark, message):
    error = played_with("ab", mark).result.error
    assert message in error
    assert "content policy" in error
