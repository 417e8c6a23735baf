"""The grader is asked with the references, and its grade is the score."""

import pytest

from madplug_grader import Grade
from madplug_testing import play
from madplug_testing.contracts import MetricContract


def graded(said, answer="A"):
    def reply(request):
        return said if request.purpose == "grade" else answer

    return play(replies=reply, references=["A", "a"], models=["small"], agents=2,
                metrics={"grade": Grade(grader="small")})


@pytest.mark.parametrize(("said", "score"), [("8", 0.8), ("I would say 10 of 10", 1.0), ("99", 1.0), ("good", None)])
def test_the_grade_is_the_score(said, score):
    assert graded(said).metrics == {"grade": score}


def test_the_grader_sees_the_references_and_the_debaters_do_not():
    played = graded("8")
    assert "Right answer: A or a\nGiven answer: A" in played.prompts[-1]
    assert not any("Right answer" in prompt for prompt in played.prompts[:-1])
    assert played.requests[-1].params == {"temperature": 0.0}


def test_an_undecided_debate_is_not_graded():
    played = graded("8", answer=" ")
    assert played.metrics == {"grade": 0.0}
    assert len(played.requests) == 2


class TestGrade(MetricContract):
    component = Grade
    options = {"grader": "model"}
