"""Meta-Debate on requests that are really sent: what reviewers see, who applies how, who drops out."""

import json
import re
from fractions import Fraction
from types import SimpleNamespace

import pytest

from madplug import AccessError, Completion, Model, RefusedError, UnreachableError
from madplug_mad import Roles
from madplug_metadebate import Cast, DmadVision, read_scores
from madplug_metadebate.criteria import BUILT_IN
from madplug_testing import play
from madplug_testing.endpoint import running_endpoint

STUDY = """
seed = 1
%s
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
    def cast(casting=GIVEN, paradigm="mad", top="", data="", row=ROWS[0], study=STUDY):
        results, bodies = run_on_endpoint(study % (top, data, paradigm, casting), [row], replies)
        return results[-1], results[-1].notes["metadebate"]["cast"], bodies

    return cast


def test_reviewers_see_what_a_proposal_answers(cast):
    _, _, bodies = cast()
    by_part = {part(b): text_of(b) for b in of(bodies, REVIEWS)}
    assert "said before" not in by_part["Affirmative"]
    assert "What has been said so far:\n\nAffirmative side:\n<b as Affirmative>" in by_part["Negative"]
    for said in ("<b as Affirmative>", "<b as Negative>"):
        assert by_part["Moderator"].index(said) < by_part["Moderator"].index("Below is what each agent (2 in all)")


def test_each_reviewed_proposal_has_its_own_context_where_they_differ(cast):
    _, _, bodies = cast(GIVEN + '\nproposal_context = "independent"')
    review = next(text_of(b) for b in of(bodies, REVIEWS) if part(b) == "Negative")
    first, second = review.split("Agent 1:\n")[1].split("Agent 2:\n")[:2]
    assert [re.findall("<(.) as", said) for said in (first, second)] == [["a", "a"], ["b", "b"]]


def test_criteria_of_the_run_file_can_differ_by_role(cast):
    _, notes, bodies = cast('[debate.casting.criteria]\nnegative = [["Doubt", "It doubts."]]')
    assert [part(b) for b in of(bodies, GENERATES)] == ["affirmative", "moderator"]
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


def test_a_data_set_without_a_training_split_shows_its_own_questions_and_says_so(cast):
    _, notes, bodies = cast("")
    for said in ("Which one is it?", "Domain of the questions: as in the examples. Modality: text."):
        assert said in text_of(of(bodies, GENERATES)[0])
    assert notes[0]["criteria"] == "generated_from_study"


def test_proposals_of_dmad_are_real_first_turns(cast):
    result, _, bodies = cast(paradigm="dmad")
    assert not of(bodies, APPLIES)
    by_part = {part(b): text_of(b) for b in of(bodies, REVIEWS)}
    assert "Principle:\nFinal answer: B\n\nSolution:\nFinal answer: B" in by_part["Step"]
    assert "Program:\n```python\nprint('B')\n```\nOutput:\nB" in by_part["Program"]
    assert len(bodies) == 2 * 4 + 3 * 2 + 4
    assert result.decision.key == "B"


def test_a_reused_first_turn_keeps_the_answer_of_its_program(cast):
    result, _, bodies = cast(GIVEN + "\nreuse_proposals = true", "dmad")
    assert len(bodies) == 2 * 4 + 3 * 2
    assert [(m.key, m.data) for m in result.messages] == [("B", {"metadebate": {"reused": True}})] * 3


def test_first_turns_see_no_other_role():
    (problem,) = Cast(proposals="style").check(SimpleNamespace(models=("a",)))
    assert problem == 'proposals = "style" are first turns, which see no other role: set proposal_context = "none"'


def test_the_vision_preset_shows_images_to_applicants_and_reviewers(cast):
    _, notes, bodies = cast(GIVEN, "dmad_vision", data=', columns = {images = "image"}', row=ROWS[0] | PIXEL)
    assert [role["role"] for role in notes] == ["io", "ccot", "ddcot"]
    assert all("image_url" in str(body["messages"]) for body in bodies)
    assert DmadVision.debate["casting"]["proposals"] == "style"


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
            return scores([name for name, _ in BUILT_IN], *([2, 5] if "Agent 2:\n" in text else [3]))
        return f"<{request.model}>"

    return play(personas=[Roles()], agents=3, models=("a", "b"), casting=Cast(), replies=say,
                expect_failure=refusing == "ab")


def test_a_model_that_refuses_to_apply_is_no_candidate():
    played = played_with("b", APPLIES + "Neg")
    cast = played.result.notes["metadebate"]["cast"]
    assert [c["model"] for c in cast] == ["b", "a", "b"]
    assert cast[1]["failed"] == {"proposal of b": "RefusedError: content policy"}
    assert "failed" not in cast[0]
    review = next(p for r, p in zip(played.requests, played.prompts, strict=True)
                  if r.purpose == "review" and "this role: Negative" in p)
    assert "(1 in all)" in review
    assert "Agent 2" not in review.split("Score each")[0]


def test_a_model_that_refuses_to_review_is_no_reviewer():
    cast = played_with("a", REVIEWS).result.notes["metadebate"]["cast"]
    assert [c["model"] for c in cast] == ["b", "b", "b"]
    assert all(list(c["failed"]) == ["review by a"] and c["dropped"] == ["a"] for c in cast)


CRITERIA = json.dumps({"criteria": [{"name": "Clarity", "explanation": "is clear"},
                                    {"name": "Truth", "explanation": "is right"}]})


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
        scores = {f"Agent {i}": {"Clarity": i, "Truth": i, "Role fulfilment": i, "Correctness": i, "explanation": ""}
                  for i in (1, 2, 3)}
        return Completion({"criteria": CRITERIA, "review": json.dumps(scores)}.get(request.purpose, "A"))


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


def test_a_model_whose_endpoint_refuses_everything_plays_no_role(cast):
    with running_endpoint(rates={"400": 1.0}) as bad:
        before, _, after = STUDY.rpartition("{url}")
        result, notes, bodies = cast(study=before + bad.url + after)
    assert [a.model for a in result.agents] == ["a", "a", "a"]
    assert all(set(role["failed"]) == {"proposal of b", "review by b"} for role in notes)
    assert {body["model"] for body in bodies} == {"a"}


@pytest.mark.parametrize(("mark", "message"), [
    (APPLIES, "no model wrote a proposal for the role 'affirmative'"), (REVIEWS, "no model reviewed the proposals")])
def test_a_debate_without_candidates_or_reviewers_fails(mark, message):
    error = played_with("ab", mark).result.error
    assert message in error
    assert "content policy" in error


NAMES = ["Role fulfilment", "Correctness"]


@pytest.mark.parametrize("text", [
    "Agent 1: Role fulfilment: 4, Correctness: 3. Explanation: fine.\nAgent 2: Role fulfilment: 5, Correctness: 5.",
    "**Agent 1**\n- Role fulfilment: 4/5 (does what 1 side should)\n- Correctness: 3/5\n\n**Agent 2**\n"
    "- Role Fulfilment: **5**\n- Correctness - 5\nExplanation: 2 flaws in Agent 1.",
    "Role fulfilment:\nAgent 1: 4\nAgent 2: 5\n\nCorrectness:\nAgent 1: 3 - one slip\nAgent 2: 5",
    "1. Role fulfilment: Agent 1: 4, Agent 2: 5\n2. Correctness: Agent 1: 3, Agent 2: 5",
    "Agent 1: [Criterion 1: 4, Criterion 2: 3]\nAgent 2: [Criterion 1: 5, Criterion 2: 5]",
    "Agent #1\nRole-fulfilment score: 4\nCorrectness score: 3\nAgent #2\nRole fulfilment score: 5\n"
    "Correctness score: 5"])
def test_reviews_in_lines_are_read(text):
    assert read_scores(text, 2, NAMES) == [Fraction(7, 2), Fraction(5)]


@pytest.mark.parametrize(("text", "found"), [
    ("Agent 1: Role fulfilment: 4.5, Correctness: 3\nAgent 2: Role fulfilment: 5, Correctness: 4", (3.75, 4.5)),
    (scores(NAMES, 4.5, 4), (4.5, 4)),
    ("Agent 1: Role fulfilment: 4\nAgent 2: Role fulfilment: 5, Correctness: 4", None),
    ("Role fulfilment: 4, Correctness: 3", None),
    ("Agent 1: Role fulfilment: 7, Correctness: 3\nAgent 2: Role fulfilment: 5, Correctness: 4", None),
    ("Agent 1: Role fulfilment: 10, Correctness: 3\nAgent 2: Role fulfilment: 5, Correctness: 4", None)])
def test_a_stray_half_does_not_void_a_review_and_a_missing_or_impossible_score_does(text, found):
    assert read_scores(text, 2, NAMES) == (found and [Fraction(score) for score in found])


def test_hostile_reviews_are_read_in_proportion_to_their_length(in_proportion):
    for unit in ("Agent 1 ", "Correctness: ", "Role fulfilment" + "-" * 30, "Agent 1: Correctness -"):
        in_proportion(lambda text: read_scores(text, 3, NAMES), unit * 4000)
