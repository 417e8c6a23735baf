"""Meta-Debate: proposals, reviews, who is cast, and what it costs."""

import json
from fractions import Fraction
from types import SimpleNamespace

import pytest
from tests_support import Cast as People
from tests_support import OneLetter

from madplug import Persona, Sample
from madplug_mad import Moderated, Moderator, Opponent, Roles, Side, Sides
from madplug_metadebate import Cast, best_candidates, means, read_scores
from madplug_metadebate.criteria import read_criteria
from madplug_testing import play

THREE = ("a", "b", "c")
PARTS = [People(Persona("First", "opens", "first"), Persona("Second", "answers", "second"))]
NAMES = ["Role fulfilment", "Correctness"]


def scores(*means_, names=NAMES):
    return json.dumps({f"Agent {i + 1}": dict.fromkeys(names, m) | {"explanation": "e"} for i, m in enumerate(means_)})


def votes_for(best):
    return scores(*(5 if j == best else 2 for j in range(3)))


def prompts(played, purpose):
    """The prompts with this purpose."""
    return [p for r, p in zip(played.requests, played.prompts, strict=True) if r.purpose == purpose]


def models_of(played):
    return [a.model for a in played.debate.agents]


def notes(played, key):
    """A note on the casting, by role."""
    return [role[key] for role in played.result.notes["metadebate"]["cast"]]


def scripted(review, rest="A"):
    """Proposals name model and role; reviews are what `review(request)` says."""
    def say(request):
        text = request.messages[-1]["content"]
        if request.purpose == "propose":
            part = text.split("Your role: ")[1].split(".")[0]
            return f"<{request.model} as {part}>"
        if request.purpose == "review":
            return review(request)
        if request.purpose == "moderate":
            return '{"preference": "Yes", "supported_side": "", "reason": "", "answer": "A"}'
        return rest
    return say


def mad(say, **options):
    return play(**{"personas": [Roles()], "turns": Sides(), "visibility": Opponent(), "decision": Moderated(),
                   "styles": [Side(), Moderator()], "agents": 3, "rounds": 3, "models": THREE, "casting": Cast(),
                   "answers": OneLetter(), "replies": say, **options})


def small(say, **options):
    return play(**{"personas": PARTS, "models": THREE, "replies": say, "answers": OneLetter(), **options})


WORKED = [[3.5, 4.5, 3], [4, 4, 4], [3, 4.5, 5]]


@pytest.mark.parametrize(("rows", "options", "mean", "best"), [
    (WORKED, {}, [3.5, 4.333, 4.0], [1]), (WORKED, {"self_scores": False}, [3.5, 4.5, 3.5], [1]),
    # equal candidates go to the first, of equal means the higher median wins
    ([[4, 4], [3, 3]], {}, [3.5, 3.5], [0, 1]), ([[1, 2], [4, 3], [4, 4]], {}, [3, 3], [0, 1]),
    ([[2, 1], [3, 4], [4, 4]], {}, [3, 3], [1, 0]),
    # a dropped reviewer does not count, and a lone model without self scores has no mean
    ([None, [4, 2], [2, 4]], {}, [3, 3], [0, 1]), ([None, None], {}, None, []),
    ([[5]], {"self_scores": False}, None, [])])
def test_the_best_candidate_has_the_highest_mean(rows, options, mean, best):
    found = means(rows, **options)
    assert mean == (found and [round(float(m), 3) for m in found])
    assert best_candidates(rows, **options) == best


@pytest.mark.parametrize(("text", "found"), [
    *((text, [3.5]) for text in (
        '{"Agent 1": {"Role fulfilment": 4, "Correctness": 3}}',
        '{"agent_1": {"role_fulfilment": "4", "CORRECTNESS": 3.0}}',
        '{"1": {"scores": {"Role fulfilment": "4/5", "Correctness": 3}}}', '{"Agent 1": [4, 3]}',
        'Sure!\n```json\n{"Agent 1": {"Role fulfilment": {"score": 4}, "Correctness": 3, "explanation": "x"},}\n```')),
    *((text, [3.5, 5]) for text in (
        "Agent 1: Role fulfilment: 4, Correctness: 3. Explanation: fine.\n"
        "Agent 2: Role fulfilment: 5, Correctness: 5.",
        "**Agent 1**\n- Role fulfilment: 4/5 (does what 1 side should)\n- Correctness: 3/5\n\n**Agent 2**\n"
        "- Role Fulfilment: **5**\n- Correctness - 5\nExplanation: 2 flaws in Agent 1.",
        "Role fulfilment:\nAgent 1: 4\nAgent 2: 5\n\nCorrectness:\nAgent 1: 3 - one slip\nAgent 2: 5",
        "1. Role fulfilment: Agent 1: 4, Agent 2: 5\n2. Correctness: Agent 1: 3, Agent 2: 5",
        "Agent 1: [Criterion 1: 4, Criterion 2: 3]\nAgent 2: [Criterion 1: 5, Criterion 2: 5]",
        "Agent #1\nRole-fulfilment score: 4\nCorrectness score: 3\nAgent #2\nRole fulfilment score: 5\n"
        "Correctness score: 5")),
    # a stray half does not void a review
    (scores(4.5, 4), [4.5, 4]),
    ("Agent 1: Role fulfilment: 4.5, Correctness: 3\nAgent 2: Role fulfilment: 5, Correctness: 4", [3.75, 4.5])])
def test_scores_are_read_in_many_forms(text, found):
    assert read_scores(text, len(found), NAMES) == list(map(Fraction, found))


@pytest.mark.parametrize("text", [
    "", "{", "[]", "{}", "null", "{" * 2000, '{"Agent 1": {}}', '{"Agent 1": 4}', '{"Agent 1": [4]}', "\x00",
    "Role fulfilment: 4, Correctness: 3", "Agent 1: Role fulfilment: 4",
    *(f"Agent 1: Role fulfilment: {score}, Correctness: 3" for score in (7, 10)),
    '{"Agent 2": {"Role fulfilment": 4, "Correctness": 3}}', *(
        json.dumps({"Agent 1": {"Role fulfilment": value, "Correctness": 4}})
        for value in [0, 6, "N/A", None, 5.5, 0.5, True, "", [4], {"x": 1}, -1, "five", 10 ** 30])])
def test_hostile_reviews_and_scores_out_of_the_scale_are_invalid_and_never_fatal(text):
    assert read_scores(text, 1, NAMES) is None


def test_hostile_reviews_are_read_in_proportion_to_their_length(in_proportion):
    for unit in ("Agent 1 ", "Correctness: ", "Role fulfilment" + "-" * 30, "Agent 1: Correctness -"):
        in_proportion(lambda text: read_scores(text, 3, NAMES), unit * 4000)


@pytest.mark.parametrize(("casting", "models", "calls"), [
    (Cast(), THREE, 18), (Cast(reviews="single"), THREE, 36), (Cast(), ("only",), 6)])
def test_what_a_casting_costs_before_a_debate_of_three_calls(casting, models, calls):
    review = scores(4) if casting.options.reviews == "single" or len(models) == 1 else votes_for(0)
    played = mad(scripted(lambda r: review), casting=casting, models=models)
    assert len(played.requests) == calls + 3
    assert [r.purpose for r in played.requests][:len(models) + 1] == ["propose"] * len(models) + ["review"]
    assert set(models_of(played)) == {models[0]}


def test_each_role_goes_to_the_model_that_its_peers_score_best():
    best = {"Affirmative side": 2, "Negative side": 0, "Moderator": 1}

    def review(request):
        part = request.messages[-1]["content"].split("in this role: ")[1].split(".")[0]
        return votes_for(best[part])

    played = mad(scripted(review))
    assert models_of(played) == [r.model for r in played.requests[18:]] == ["c", "a", "b"]
    assert notes(played, "scores")[0] == {"a": 2.0, "b": 2.0, "c": 5.0}


def proposals(**options):
    played = mad(scripted(lambda r: votes_for(1)), casting=Cast(**options))
    assert models_of(played) == ["b"] * 3
    return [(r.model, p) for r, p in zip(played.requests, played.prompts, strict=True) if r.purpose == "propose"]


def test_proposals_see_the_winning_ones_of_earlier_roles_or_the_models_own_or_none():
    asked = [prompt for _, prompt in proposals()]
    assert all("said before" not in p for p in asked[:3])
    assert all("<b as Affirmative side>" in p and "<a as" not in p for p in asked[3:6])
    assert all("<b as Affirmative side>" in p and "<b as Negative side>" in p for p in asked[6:])
    for model, prompt in proposals(proposal_context="independent")[6:]:
        assert f"<{model} as Affirmative side>" in prompt
        assert sum(f"<{other} as" in prompt for other in THREE) == 1
    assert not any(" as " in prompt and "<" in prompt for _, prompt in proposals(proposal_context="none"))


def test_an_invalid_review_is_asked_for_again_then_its_reviewer_is_dropped():
    played = small(scripted(lambda r: scores(0, 6, 3) if r.model == "a" else votes_for(2)), casting=Cast())
    assert len(prompts(played, "review")) == 2 * (2 + 1 + 1)
    assert notes(played, "dropped") == [["a"], ["a"]]
    assert (models_of(played), played.result.unread) == (["c", "c"], True)


def test_without_a_readable_review_or_after_an_undecided_tie_the_default_model_plays_and_the_notes_say_so():
    played = small(scripted(lambda r: "I like them all"), casting=Cast(default="b", retries=0))
    assert models_of(played) == ["b", "b"]
    assert all(notes(played, "fallback"))
    assert models_of(small(scripted(lambda r: ""), casting=Cast())) == ["a", "a"]
    tied = small(scripted(lambda r: scores(3, 3, 3)), casting=Cast(tie="undecided", default="c"))
    assert models_of(tied) == ["c", "c"]


def test_the_random_baseline_is_one_draw_for_each_repeat_and_asks_nobody():
    samples = [Sample(f"q{i}", "?") for i in range(4)]
    played = small(lambda r: "A", casting=Cast(assignment="random"), sample=samples, seed=3, repeats=8)
    casts = {(result.repeat, *(a.model for a in result.agents)) for result in played.store.results()}
    assert len(casts) == 8
    assert len({cast[1:] for cast in casts}) > 2
    assert all(r.purpose == "discuss" for r in played.requests)


def test_the_uniform_baseline_gives_every_role_to_one_model_and_asks_for_no_criteria():
    played = small(lambda r: "A", casting=Cast(roles=ROLES, assignment="uniform", default="c"))
    assert (models_of(played), len(played.requests)) == (["c", "c"], 2)


def test_a_reused_proposal_is_the_first_message_and_saves_the_call_and_later_turns_are_new():
    played = small(scripted(lambda r: votes_for(0)), casting=Cast(reuse_proposals=True), rounds=2)
    assert len(played.requests) == 2 * (3 + 3) + 2
    assert [m.content for m in played.messages] == ["<a as First>", "<a as Second>", "A", "A"]
    assert "<a as Second>" in played.prompts[-1]


ROLES = {"first": "opens the play", "second": "answers it"}
MADE = {"criteria": [{"name": "Wit", "explanation": "It is witty."}, {"name": "Truth", "explanation": "It is true."}]}


def with_criteria(criteria=None, names=("Wit", "Truth"), sample="?", **options):
    """A casting by generated criteria in which the second model is the best in every role."""
    def say(request):
        if request.purpose == "criteria":
            return criteria or json.dumps(MADE)
        return scripted(lambda q: scores(3, 5, 2, names=names))(request)

    played = small(say, casting=Cast(roles=ROLES, **options), sample=sample)
    assert models_of(played) == ["b", "b"]
    return played


def test_criteria_are_made_once_for_each_role_whatever_the_number_of_questions():
    played = with_criteria(sample=[Sample(f"q{i}", f"question {i}?") for i in range(5)], criteria_model="c")
    made = prompts(played, "criteria")
    assert len(made) == 2
    assert all(f"question {i}?" in prompt for prompt in made for i in range(3))
    assert "question 3?" not in made[0]
    assert "opens the play" in made[0]
    assert {r.model for r in played.requests if r.purpose == "criteria"} == {"c"}


def test_criteria_that_cannot_be_read_fall_back_to_the_built_in_ones_and_are_flagged():
    played = with_criteria("no idea", NAMES)
    assert len(prompts(played, "criteria")) == 2 * 2
    assert (set(notes(played, "criteria")), played.result.unread) == ({"unread"}, True)


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"criteria": "Wit"}', '{"criteria": [{"name": "Wit"}]}', '{"criteria": [1, null]}',
    '{"criteria": [{"name": "A", "explanation": "x"}]}',
    '{"criteria": [{"name": "A", "explanation": "x"}, {"name": "A", "explanation": "y"}]}'])
def test_unusable_criteria_are_none_and_no_more_than_three_are_taken(text):
    assert read_criteria(text) == []
    many = {"criteria": [{"name": f"n{i}", "explanation": "e"} for i in range(6)]}
    assert len(read_criteria(json.dumps(many))) == 3


def test_a_default_that_is_no_candidate_and_first_turns_that_would_see_other_roles_are_refused():
    def problems(**options):
        return list(Cast(**options).check(SimpleNamespace(models=("a", "b"))))

    assert problems(default="b") == []
    assert problems(default="z") == ["'default' names 'z', which is not among the models: a, b"]
    assert problems(proposals="style") == [
        'proposals = "style" are first turns, which see no other role: set proposal_context = "none"']
