"""What most voters answer, among what each of them ends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from madplug_prompting.finals import FinalAnswer
from madplug_prompting.ties import Tie, break_tie, leaders

if TYPE_CHECKING:
    from madplug import Debate


def plurality(debate: Debate, answers: Sequence[FinalAnswer], tie: Tie) -> tuple[FinalAnswer | None, bool]:
    """The first answer with the most frequent key, or None; and whether there was a tie."""
    most = leaders(Counter(a.key for a in answers if a.key is not None))
    key = break_tie(debate, most, tie, "judge.synthesis:tie")
    return next((a for a in answers if key is not None and a.key == key), None), len(most) > 1
