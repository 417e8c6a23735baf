"""How well the stream keeps a model busy: makespan over its bound, on a virtual clock.

The bound is what no schedule can beat: all latency divided by the slots, or the longest debate on its own.
Latencies are lognormal (median 1, sigma 0.4), drawn per request, so that nothing depends on the machine.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import defaultdict
from dataclasses import dataclass

from madplug import Completion, Model, Observer, Sample, Usage
from madplug.config.plan import StudyPlan
from madplug.debate.cell import BoundStyle, Cell
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText
from madplug_testing.clock import on_virtual_clock
from madplug_testing.debates import Listed

SLOTS = 100
SIGMA = 0.4


class Slow(Model):
    """Answers after a latency drawn from the request."""

    name = "slow"

    def __init__(self) -> None:
        super().__init__(max_in_flight=SLOTS)
        self.work = 0.0
        self.by_debate: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))

    async def complete(self, request):
        latency = random.Random(request.seed).lognormvariate(0, SIGMA)
        self.work += latency
        cell_and_sample, round_, _ = request.messages[0]["content"].split("|")
        rounds = self.by_debate[cell_and_sample]
        rounds[int(round_)] = max(rounds[int(round_)], latency)
        await asyncio.sleep(latency)
        return Completion("A", Usage(10, 10))


class Marked(PlainStyle):
    """A prompt that says whose it is."""

    async def respond(self, debate, turn, view):
        from madplug import Reply

        text = f"{debate.cell.slug}.{debate.sample.id}|{debate.round}|{turn.agent.id}"
        return Reply((await debate.ask(text, agent=turn.agent, purpose="discuss")).text)


@dataclass
class Outcome:
    """What a benchmark measured."""

    ratio: float
    most_open: int


class CountOpen(Observer):
    """Counts the most debates open at a time; its methods are `async`, since a virtual clock allows no threads."""

    name = "count_open"

    def __init__(self) -> None:
        super().__init__()
        self.running = self.most = 0

    async def debate_started(self, event):
        self.running += 1
        self.most = max(self.most, self.running)

    async def debate_finished(self, event):
        self.running -= 1


def measure(debates: int, agents: int, rounds: int, cells: int = 1) -> Outcome:
    """Makespan over bound of `cells` x `debates` debates."""
    model = Slow()
    rows = [(Sample(f"q{i}", "?"), ()) for i in range(debates)]
    made = [Cell(slug=f"c{i}", answers=StrippedText(), turns=SpeakAll(), visibility=SeeAll(), decision=LastRound(),
                 styles=[BoundStyle(Marked())], rounds=rounds, agents=agents, models=("m",), dataset=Listed(rows),
                 channels={"m": "m"}) for i in range(cells)]
    watcher = CountOpen()
    run = StudyRun(StudyPlan("bench", made, {"m": model}), MemoryStore(), [watcher])
    _, makespan = on_virtual_clock(run.run())
    longest = max(math.fsum(r.values()) for r in model.by_debate.values())
    return Outcome(makespan / max(model.work / SLOTS, longest), watcher.most)


CASES = {"200 debates of 3 agents x 2 rounds": (200, 3, 2, 1), "1,000 of them": (1000, 3, 2, 1),
         "300 of 5 x 5": (300, 5, 5, 1), "a grid of 20 cells x 50 samples": (50, 3, 2, 20)}

if __name__ == "__main__":
    for name, case in CASES.items():
        outcome = measure(*case)
        print(f"{name}: {outcome.ratio:.3f} of the bound, at most {outcome.most_open} debates open")
