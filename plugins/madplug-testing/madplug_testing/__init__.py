"""The kit that plugins, and madplug itself, are tested with.

    played = play(decision=Majority(), replies=["A", "B", "B"], agents=3)
    assert played.decision.key == "B"

`play` runs a whole debate, or several, in memory with a scripted model; `debate_from` makes a debate from a
transcript that is written as a short string, for calling a component directly. `madplug_testing.contracts` has a test
class to inherit for each kind of component, `madplug_testing.endpoint` is an HTTP endpoint with faults,
`madplug_testing.clock` an event loop with virtual time, and `madplug_testing.fixtures` installs a module as a plugin
for one test.
"""

import pytest

from madplug_testing.components import AnyMove, LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText
from madplug_testing.debates import Played, Scripted, debate_from, play, transcript_from, wait_for

# A failed contract shows the values it compared, as a failed test does.
pytest.register_assert_rewrite("madplug_testing.contracts")

__all__ = ["AnyMove", "LastRound", "PlainStyle", "Played", "Scripted", "SeeAll", "SpeakAll", "StrippedText",
           "debate_from", "play", "transcript_from", "wait_for"]
