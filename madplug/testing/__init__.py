"""The kit that madplug itself is tested with, for plugin authors.

    played = play(decision=Majority(), replies=["A", "B", "B"], agents=3)
    assert played.decision.key == "B"

`play` runs a whole debate, or several, in memory with a scripted model; `debate_from` makes a debate from a
transcript that is written as a short string, for calling a component directly. `madplug.testing.contracts` has a test
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
