"""A model that cannot be asked: the others write the criteria and are cast, and no stage waits for it again."""

import json

import pytest

from madplug import AccessError, Completion, Model, UnreachableError
from madplug.testing import play
from madplug_mad import Roles
from madplug_metadebate import Cast

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


def cast(pool):
    played = play(model=pool, models=("first", "second", "third"), agents=3, personas=[Roles()],
                  casting=Cast(roles={"affirmative": "opens", "negative": "answers", "moderator": "decides"}))
    return played.result, played.result.notes["metadebate"]["cast"]


@pytest.mark.parametrize("error", [AccessError("no such model"), UnreachableError("no connection")])
def test_a_dead_model_is_asked_once_in_a_debate_and_never_cast(error):
    result, notes = cast(pool := Pool(error))
    assert {a.model for a in result.agents} <= {"second", "third"}
    assert ("first", "review") not in pool.asked
    assert [set(role["failed"]) for role in notes] == [{"proposal of first", "review by first"}] * 3


def test_another_model_writes_the_criteria():
    _, notes = cast(pool := Pool(AccessError("no such model"), only="criteria"))
    assert ("second", "criteria") in pool.asked
    assert {role["criteria"] for role in notes} != {"built_in"}
    assert not any("failed" in role for role in notes)
