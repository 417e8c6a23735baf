"""The grader is asked with the references, and its grade is the score."""

import pytest

from madplug_grader import Grade
from madplug_testing import play
from madplug_testing.contracts import MetricContract


def graded(said, answer="A"):
    return play(replies=lambda request: said if request.purpose == "grade" else answer, references=["A", "a"],
                models=["small"], agents=2, metrics={"grade": Grade(grader="small")})


@pytest.mark.parametrize(("said", "score"), [("8", 0.8), ("I would say 10 of 10", 1.0), ("99", 1.0), ("good", None)])
def test_the_grade_is_the_score_and_only_the_grader_sees_the_references(said, score):
    played = graded(said)
    assert played.metrics == {"grade": score}
    assert ["Right answer: A or a\nGiven answer: A" in prompt for prompt in played.prompts] == [False, False, True]
    assert played.requests[-1].params == {"temperature": 0.0}
    undecided = graded(said, answer=" ")
    assert (undecided.metrics, len(undecided.requests)) == ({"grade": 0.0}, 2)


class TestGrade(MetricContract):
    component = Grade
    options = {"grader": "model"}
