"""The study that is run on a cluster, the plugin that it needs, and what is compared of two runs."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

STUDY = """
name = "study"
extensions = ["rayed.log"]
[dataset]
use = "rayed.numbered"
[models.m]
use = "rayed.slow"
ledger = "{ledger}"
max_in_flight = 8
[debate]
agents = 3
rounds = 2
turns = "rayed.speak_all"
visibility = "rayed.see_all"
styles = ["rayed.plain"]
decision = "rayed.last_round"
"""
PLUGIN = '''
import asyncio, logging, os
from hashlib import sha256
from typing import Annotated
from pydantic import Field
from madplug import Completion, Dataset, Extension, Model, ModelOptions, Options, Sample, Usage, Volatile, hookimpl
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

class SlowOptions(ModelOptions):
    ledger: Annotated[str, Volatile] = Field(description="a line for each call")

class Slow(Model):
    """Answers with a letter after a while; it has to be loaded first, in each process."""
    name = "slow"
    Options = SlowOptions
    loaded = False
    async def open(self):
        self.loaded = True
        self.note("loaded", 0)
    async def complete(self, request):
        assert self.loaded
        await asyncio.sleep(0.05)
        digest = sha256(repr(request.messages).encode()).hexdigest()
        self.note(digest, request.seed)
        return Completion("ABC"[int(digest[:2], 16) % 3], Usage(1, 1))
    def note(self, *words):
        with open(self.options.ledger, "a") as file:
            print(os.getpid(), *words, file=file)

class Size(Options):
    size: Annotated[int, Volatile] = 40

class Numbered(Dataset):
    """Numbered questions."""
    name = "numbered"
    answers = "rayed.stripped_text"
    Options = Size
    def samples(self, split=None):
        for i in range(self.options.size):
            yield Sample(f"q{i}", f"question {i}"), ("A",)

class Style(PlainStyle):
    """The plainest style."""
    moves = frozenset({"improve"})

class Log(Extension):
    """Logs every debate."""
    name = "log"
    @hookimpl(wrapper=True)
    def madplug_opening(self, debate):
        logging.getLogger("rayed").warning("opened by %d", os.getpid())
        return (yield)

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
@hookimpl
def madplug_register_extensions(): return [Log]
'''


def install(folder, version="1.0"):
    """The plugin `rayed`, in a folder that can be imported from."""
    info = folder / f"madplug_rayed-{version}.dist-info"
    info.mkdir(parents=True)
    (folder / "madplug_rayed_under_test.py").write_text(PLUGIN)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: madplug-rayed\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[madplug]\nrayed = madplug_rayed_under_test\n")
    return folder


def add_node(nodes, **options):
    """Add a node with a CPU."""
    return persistently(lambda: nodes.add_node(**{"num_cpus": 1, **options}))


def persistently(start):
    """Ray gives a node half a minute to start, which is not always enough on a busy machine."""
    for _ in range(4):
        try:
            return start()
        except Exception as error:
            if "timed out" not in str(error):
                raise
            last = error
    raise last


class Run:
    """The study in a folder, run by an executor, with its ledger and its results."""

    def __init__(self, folder, size=40):
        self.folder, self.ledger, self.size, self.warnings = folder, folder / "ledger.txt", size, []
        folder.mkdir()
        (folder / "study.toml").write_text(STUDY.format(ledger=self.ledger))

    async def go(self, executor, disturb=None):
        """Run the study; disturb: what happens meanwhile. Gives the debates as lines, but for times."""
        from madplug.config import load
        from madplug.store import open_recorder
        from madplug.study.run import StudyRun

        (self.folder / "manifest.json").write_text(json.dumps({"runs": [], "components": {
            "rayed.slow": {"distribution": "madplug-rayed", "version": "1.0"}}}))
        recorder = open_recorder(self.folder)
        try:
            plan = load(self.folder / "study.toml", (f"dataset.size={self.size}",), environ={}).plan
            disturbing = asyncio.ensure_future(disturb(self) if disturb else asyncio.sleep(0))
            run = StudyRun(replace(plan, executor=executor), recorder, warn=self.warnings.append)
            await asyncio.wait_for(run.run(), 500)
            await disturbing
            return exported(recorder)
        finally:
            recorder.close()

    @property
    def notes(self):
        """(process, rest of the line) of everything on the ledger."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [tuple(line.split(" ", 1)) for line in lines if line.count(" ") == 2]

    @property
    def calls(self):
        """(process, call) of every call that was paid for."""
        return [note for note in self.notes if note[1] != "loaded 0"]

    async def paid(self, number):
        """Wait until so many calls were paid for."""
        while len(self.calls) < number:  # noqa: ASYNC110 - by other processes
            await asyncio.sleep(0.02)


def exported(study):
    """The debates on record, but for times."""
    return [{**json.loads(line), "seconds": None} for line in study.records()]


def is_alive(process):
    """Whether a process still runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
