"""What tests share: run files, a study's records, answer formats, personas, and extensions that interfere."""

import json
import shutil
from contextlib import contextmanager

import pytest

from madplug import (
    AnswerFormat,
    Extension,
    PersonaGenerator,
    Phase,
    Reopen,
    Review,
    Turn,
    TurnOrder,
    UserError,
    hookimpl,
    open_study,
)
from madplug.config import load

STUDY = """
name = "study"
[dataset]
use = "kit.numbered"
size = 6
[models.m]
use = "kit.hash"
[debate]
paradigm = "kit.pair"
"""
RUN = STUDY + '''[[metrics]]
use = "kit.right"
'''


@contextmanager
def chromium():
    """Chromium, driven by playwright, whose event loop is this thread's meanwhile; skips a test without them."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def exported(folder):
    """The recorded debates as tables, without what depends on the clock."""
    with open_study(folder) as study:
        return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in study.records()]


def paid(folder):
    """How many calls the model `kit.hash` has noted in its ledger, `calls.txt`."""
    ledger = folder / "calls.txt"
    return len(ledger.read_text().splitlines()) if ledger.is_file() else 0


def counts(folder="runs/study"):
    """The debates of a study that are done, failed and left, and the calls that were paid for."""
    with open_study(folder) as study:
        cells = study.overview()
        done, failed = sum(cell.done for cell in cells), sum(cell.failed for cell in cells)
        return {"done": done, "failed": failed, "left": study.fact("planned") - done - failed,
                "calls": study.totals().calls}


def summary(folder, study="study"):
    """What was written at the end of a study in `runs`."""
    return json.loads((folder / "runs" / study / "summary.json").read_text())


def problems(path, *settings):
    """What is wrong with a run file, line by line."""
    with pytest.raises(UserError) as caught:
        load(path, settings)
    return [str(problem) for problem in caught.value.problems]


class Letter(AnswerFormat):
    """One of the letters A to Z at the end of the text."""

    name = "letter"

    def instruction(self, sample):
        return "Answer with one capital letter."

    def canonical(self, text, sample):
        return text[-1] if text and text[-1] in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else None

    def pattern(self, sample):
        return "[A-Z]"


class Appeal(Phase):
    """Reopens the debate once, for two rounds."""

    name = "appeal"

    def __init__(self, rounds=2, say="think again", times=1):
        super().__init__()
        self.rounds, self.say, self.times = rounds, say, times

    def run(self, debate, decision):
        done = debate.notes.get("appeal", 0)
        if done >= self.times:
            return None
        debate.notes["appeal"] = done + 1
        return Reopen(rounds=self.rounds, say=self.say)

    def further_rounds(self, plan):
        return self.rounds * self.times


def letters(request):
    return "B" if "think again" in request.messages[-1]["content"] else "A"


class OneByOne(TurnOrder):
    """Each agent in a wave of its own."""

    name = "one_by_one"
    moves = frozenset({"improve"})

    def waves(self, debate):
        for agent in debate.agents:
            yield [Turn(agent)]


class OneLetter(AnswerFormat):
    """One letter, alone."""

    name = "one_letter"

    def instruction(self, sample):
        return "Answer with a single letter."

    def canonical(self, text, sample):
        text = text.strip()
        return text if len(text) == 1 and text.isalpha() else None


class Cast(PersonaGenerator):
    """These personas."""

    name = "cast"

    def __init__(self, *personas):
        super().__init__()
        self.personas, self.count = personas, len(personas)

    def generate(self, debate, roster):
        return self.personas


class Openings(Extension):
    """Puts these messages on record before round 1."""

    name = "openings"

    def __init__(self, *messages):
        super().__init__()
        self.messages = messages

    @hookimpl
    def madplug_opening(self, debate):
        return self.messages


class Reviews(Extension):
    """Says what is to become of every round: `Reviews(lambda debate: Review(stop=True))`."""

    name = "reviews"

    def __init__(self, review):
        super().__init__()
        self.review = review

    @hookimpl
    def madplug_round_ended(self, debate):
        return self.review(debate)


def redo_once(debate):
    """A review that retracts the first round, once."""
    return Review(redo=not any(m.retracted for m in debate.transcript.record))


def made(base, **parts):
    """A component of a class made for one test: `made(LastRound, at_end=lambda self, debate: Decision("A"))`."""
    return type("Made", (base,), {"__doc__": "Made for a test.", "name": "made", **parts})()


def in_turn(*reviews):
    """For `Reviews`: these of one round after the other, and none of those that follow."""
    left = iter(reviews)
    return lambda debate: next(left, None)
