"""What madplug is tested with is what plugin authors get.

    played = play(decision=Majority(), replies=["A", "B", "B"], agents=3)
    assert played.decision.key == "B"

`play` holds a whole debate, or several, with a scripted model in memory; `debate_from` makes a debate whose
transcript is written as a small text, for calling a component directly. `madplug.testing.contracts` has a test
class to inherit for each kind of component; `madplug.testing.endpoint` is an HTTP endpoint with faults.
"""

from __future__ import annotations

from madplug.testing.defaults import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText
from madplug.testing.play import Played, Scripted, debate_from, play, transcript_from, wait_for

__all__ = [
           "LastRound",
           "PlainStyle",
           "Played",
           "Scripted",
           "SeeAll",
           "SpeakAll",
           "StrippedText",
           "debate_from",
           "play",
           "transcript_from",
           "wait_for",
]
