"""A study from Python: a decision defined here, a sweep, and the records as data frames. No model is needed."""

from itertools import pairwise

import madplug
from madplug_export import to_pandas


class Firmest(madplug.DecisionProtocol):
    """The answer of the agent that changed its mind least often."""

    def at_end(self, debate):
        """Decide after the last round."""
        rows = debate.transcript.answers()
        changes = [sum(a != b for a, b in pairwise(row)) for row in rows]
        firmest = rows[changes.index(min(changes))][-1]
        return madplug.Decision(firmest) if firmest else madplug.Decision.undecided("it gave no answer")


study = {
    "name": "firmness",
    "seed": 7,
    "oracle": True,  # simulated debaters look up what is right
    "dataset": {"use": "simulator.questions", "size": 200},
    "debate": {"agents": 5, "rounds": 3, "turns": "turns.simultaneous", "visibility": "visibility.previous_round",
               "styles": ["simulator.debater"]},
    "metrics": ["qa.accuracy"],
    "sweep": {"debate.decision": ["voting.plurality", "Firmest"]},
}
result = madplug.run(study, components=[Firmest], output="runs/firmness")
print(result.status, result.metrics)

grown = madplug.run(study, settings={"dataset.size": 300}, components=[Firmest], output="runs/firmness")
debates = to_pandas(grown, "debates")
print(debates.groupby(["cell", "group"])["qa.accuracy"].agg(["mean", "size"]).round(3))
