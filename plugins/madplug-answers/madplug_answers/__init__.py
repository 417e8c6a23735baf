"""Answer formats: choice, number, yesno, math, text, free, mixed."""

from __future__ import annotations

from madplug import AnswerFormat, hookimpl
from madplug_answers.choice import Choice
from madplug_answers.mathematics import Math
from madplug_answers.mixed import Mixed
from madplug_answers.number import Number
from madplug_answers.words import Free, Text
from madplug_answers.yesno import YesNo

__all__ = ["Choice", "Free", "Math", "Mixed", "Number", "Text", "YesNo"]


@hookimpl
def madplug_register_answers() -> list[type[AnswerFormat]]:
    """Register the seven answer formats."""
    return [Choice, Number, YesNo, Math, Text, Free, Mixed]
