"""A model that cannot be asked: the others write the criteria and are cast, and no stage waits for it again."""

from __future__ import annotations

import json

import pytest

from madplug import AccessError, Completion, Model, Persona, PersonaGenerator, UnreachableError
from madplug.testing import play
from madplug_metadebate import Cast

THREE = ("first", "second", "third")
CRITERIA = json.dumps({"criteria": [{"name": "Clarity", "explanation": "is clear"},
                                    {"name": "Truth", "explanation": "is right"}]})


class Parts(PersonaGenerator):
    """Two parts."""

    name = "parts"
    count = 2

    def generate(self, debate, roster):
        return [Persona("First", "opens", "first"), Persona("Second", "answers", "second")]


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
    return play(model=pool, models=THREE, casting=Cast(roles={"first": "opens", "second": "answers"}), agents=2,
                personas=[Parts()])


@pytest.mark.parametrize("error", [AccessError("no such model"), UnreachableError("no connection")])
def test_a_dead_model_is_asked_once_in_a_debate_and_never_cast(error):
    pool = Pool(error)
    played = cast(pool)
    assert {a.model for a in played.result.agents} <= {"second", "third"}
    assert ("first", "review") not in pool.asked
    for role in played.result.notes["metadebate"]["cast"]:
        assert role["failed"].keys() == {"proposal of first", "review by first"}


def test_another_model_writes_the_criteria():
    pool = Pool(AccessError("no such model"), only="criteria")
    played = cast(pool)
    assert ("second", "criteria") in pool.asked
    notes = played.result.notes["metadebate"]["cast"]
    assert {role["criteria"] for role in notes} != {"built_in"}
    assert not any("failed" in role for role in notes)
