"""How long debates take on a Ray cluster, over the bound that their calls set: `python -m tests.benchmarks.cluster`

1,000 debates of 7 calls, one after the other, of 200 ms each, on 2 actors with 100 calls at a time each: no schedule
can be done before 7 s. Beside madplug, what Ray's own actors reach that do nothing but wait as long, one debate to a
call. Both are measured from the first debate to the last, after the actors have started. Needs Ray: `pip install ray`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ACTORS, EACH, CALLS, SECONDS, DEBATES = 2, 100, 7, 0.2, 1000
BOUND = DEBATES * CALLS * SECONDS / (ACTORS * EACH)
PLUGIN = '''
import asyncio
from madplug import Completion, Dataset, Model, Sample, Usage, hookimpl
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

class Slow(Model):
    """Answers after a while."""
    name = "slow"
    async def complete(self, request):
        await asyncio.sleep({seconds})
        return Completion("A", Usage(1, 1))

class Numbered(Dataset):
    """Numbered questions."""
    name = "numbered"
    answers = "waiting.stripped_text"
    def samples(self, split=None):
        for i in range({debates}):
            yield Sample(f"q{{i}}", f"question {{i}}"), ("A",)

class Style(PlainStyle):
    """The plainest style."""
    moves = frozenset({{"improve"}})

@hookimpl
def madplug_register_models(): return [Slow]
@hookimpl
def madplug_register_datasets(): return [Numbered]
@hookimpl
def madplug_register_answers(): return [StrippedText]
@hookimpl
def madplug_register_styles(): return [Style]
@hookimpl
def madplug_register_turn_orders(): return [SpeakAll]
@hookimpl
def madplug_register_visibilities(): return [SeeAll]
@hookimpl
def madplug_register_decisions(): return [LastRound]
'''
STUDY = f"""
name = "study"
[dataset]
use = "waiting.numbered"
[models.m]
use = "waiting.slow"
max_in_flight = {ACTORS * EACH}
[debate]
agents = 1
rounds = {CALLS}
turns = "waiting.speak_all"
visibility = "waiting.see_all"
styles = ["waiting.plain"]
decision = "waiting.last_round"
"""


def main() -> None:
    """Print the time over the bound of both, three times in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder)
        import ray

        ray.init(num_cpus=ACTORS, log_to_driver=False, include_dashboard=False)
        for number in range(3):
            place = folder / f"study{number}"
            place.mkdir()
            (place / "study.toml").write_text(STUDY)
            (place / "manifest.json").write_text('{"components": {}, "runs": []}')
            ours, alone = asyncio.run(study(place)), asyncio.run(actors_alone())
            print(f"over the bound of {BOUND:g} s: madplug {ours / BOUND:.3f}, Ray's actors alone {alone / BOUND:.3f}; "
                  f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        ray.shutdown()


def install(folder: Path) -> None:
    """The plugin of the study, for this process and those that it starts."""
    info = folder / "madplug_waiting-1.0.dist-info"
    info.mkdir()
    (folder / "madplug_waiting.py").write_text(PLUGIN.format(seconds=SECONDS, debates=DEBATES))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: madplug-waiting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[madplug]\nwaiting = madplug_waiting\n")
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


async def study(folder: Path) -> float:
    """Seconds from the first debate of a study to its last."""
    from madplug import Observer
    from madplug.config import load
    from madplug.store import open_recorder
    from madplug.study.run import StudyRun
    from madplug_ray import Cluster

    times: list[float] = []

    class Clock(Observer):
        name = "clock"

        def debate_started(self, event: Any) -> None:
            times.append(time.monotonic())

        debate_finished = debate_started

    recorder = open_recorder(folder)
    plan = replace(load(folder / "study.toml", environ={}).plan, executor=Cluster(workers=ACTORS))
    summary = await StudyRun(plan, recorder, observers=[Clock()]).run()
    recorder.close()
    assert (summary["status"], summary["paid"]["calls"]) == ("finished", DEBATES * CALLS), summary
    return times[-1] - times[0]


async def actors_alone() -> float:
    """Seconds that actors take which only wait."""
    import ray

    class Waiting:
        async def ready(self) -> None:
            """The actor has started."""

        async def debate(self) -> None:
            """As many waits as a debate has calls."""
            for _ in range(CALLS):
                await asyncio.sleep(SECONDS)

    cluster: Any = ray
    actors = [cluster.remote(Waiting).options(max_concurrency=EACH, num_cpus=1).remote() for _ in range(ACTORS)]
    await asyncio.gather(*(actor.ready.remote() for actor in actors))
    begin, left = time.monotonic(), iter(range(DEBATES))

    async def worker(actor: Any) -> None:
        for _ in left:
            await actor.debate.remote()

    await asyncio.gather(*(worker(actor) for actor in actors for _ in range(EACH)))
    seconds = time.monotonic() - begin
    for actor in actors:
        ray.kill(actor)
    return seconds


if __name__ == "__main__":
    main()
