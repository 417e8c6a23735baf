"""What a debate looks like: the one description that pages, exports and terminals draw.

`outline` turns a debate on record into an `Outline`: who answered what in each round, who changed their mind and whose
messages they had been shown, how the votes stood, what was decided and what it cost. `Grader` says which answers are
right.
"""

from __future__ import annotations

from madplug.reading.grading import Grader, Grades
from madplug.reading.outline import outline
from madplug.reading.records import (
    AgentColumn,
    AnswerKey,
    Change,
    Mark,
    MessageCard,
    Outline,
    RoundRow,
)
from madplug.reading.traits import TRAITS, traits

__all__ = ["TRAITS", "AgentColumn", "AnswerKey", "Change", "Grader", "Grades", "Mark", "MessageCard", "Outline",
           "RoundRow",
           "outline", "traits"]
