"""What tests share: run files, a study's records, an answer format, and a phase that reopens debates."""

import json

from madplug import AnswerFormat, Phase, Reopen, open_study

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


def exported(folder):
    """The recorded debates as tables, without what depends on the clock."""
    with open_study(folder) as study:
        return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in study.records()]


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
