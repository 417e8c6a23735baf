"""The wrong answer, and the information, on requests that are really sent."""

import pytest

STUDY = """
%s
metrics = ["challenge.outcome"]
[debate]
paradigm = "som.debate"
rounds = 1
agents = 2
models = ["m"]
phases = [{use = "challenge.final", settings = ["wrong"], %s}]
"""
WRONG = 'challenger_model = "x"'
FOUR = {"id": "q1", "question": "What is the capital of France?", "choices": ["Lyon", "Paris", "Nice", "Lille"],
        "reference": "B"}
TWO = FOUR | {"choices": ["Lyon", "Paris"]}


@pytest.fixture
def challenge(run_on_endpoint):
    """Runs a debate that answers `decided`, with a challenger that proposes these letters one after the other."""
    pytest.importorskip("madplug_som")

    def run(decided, proposed, row=FOUR, *, top="oracle = true", options=WRONG):
        letters = iter(proposed)

        def say(body):
            if body["model"] == "x":
                return f"Final answer: {next(letters)}"
            return "AGREE" if "Examine it critically" in str(body["messages"]) else f"Final answer: {decided}"

        (result,), bodies = run_on_endpoint(STUDY % (top, options), [row], say, models="mx")
        return result.notes["challenge"]["wrong"], result.metrics.get("challenge.outcome.wrong.shown_right"), bodies

    return run


def test_a_wrong_answer_is_never_the_right_one(challenge):
    """The debate is wrong (A); the challenger proposes the right answer (B), which is refused."""
    found, shown_right, bodies = challenge("A", "BC")
    assert (found["shown"], found["key"], found["checked"], shown_right) == ("C", "C", "references", 0.0)
    asked = [b for b in bodies if b["model"] == "x"]
    assert "It must not be: B" in str(asked[0]["messages"][-1])
    assert len(asked) == 2


@pytest.mark.parametrize(("decided", "row", "flags"), [
    ("A", FOUR, {"same_as_decision": True}), ("B", TWO, {"two_choices": True}),
    ("A", TWO, {"two_choices": True, "same_as_decision": True, "key": "A"})])
def test_the_debates_own_wrong_answer_and_the_other_of_two_choices_are_flagged(challenge, decided, row, flags):
    found, _, _ = challenge(decided, "A", row)
    assert {name: found[name] for name in flags} == flags


def test_without_the_references_a_right_answer_is_flagged(challenge):
    """Nothing tells the debate that its answer (A) is wrong; the metric knows."""
    found, shown_right, _ = challenge("A", "AB", top="")
    assert (found["key"], found["checked"], shown_right) == ("B", "decision", 1.0)


def test_every_prompt_can_be_pasted_with_its_role(challenge):
    options = ('challenger_model = "x", challenger = "SYSTEM", mislead = "MISLEAD {answer}", persona = "P {name}", '
               'frame = "F {question}", frame_place = "system", review = "R {answer}"')
    _, _, bodies = challenge("B", "A", top="", options=options)
    [wrong] = [b["messages"] for b in bodies if b["model"] == "x"]
    assert wrong[0] == {"role": "system", "content": "SYSTEM"}
    assert "MISLEAD B" in wrong[-1]["content"]
    system, examined = next(b["messages"] for b in bodies if "R A" in str(b["messages"]))
    assert (system["role"], examined) == ("system", {"role": "user", "content": "R A"})
    assert system["content"].startswith("P Agent 1\n\nF What is")
