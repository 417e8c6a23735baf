"""Whole debates in a test, with replies that the test writes.

    played = play(decision=Majority(), replies=["A", "B", "B"], agents=3)
    assert played.decision.key == "B"

`play` runs a whole debate, or several, in memory with a scripted model; `debate_from` makes a debate from a
transcript that is written as a short string, for calling a component directly. The distribution `madplug-testing` adds
a test class to inherit for each kind of component, an HTTP endpoint with faults, and a fixture that installs a plugin.
"""

from __future__ import annotations

from madplug.testing.defaults import AnyMove, LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText
from madplug.testing.play import Played, Scripted, debate_from, play, transcript_from, wait_for

__all__ = ["AnyMove", "LastRound", "PlainStyle", "Played", "Scripted", "SeeAll", "SpeakAll", "StrippedText",
           "debate_from", "play", "transcript_from", "wait_for"]
