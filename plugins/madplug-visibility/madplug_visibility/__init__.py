"""Visibilities: which messages an agent is shown.

Three rules apply to all of them. A view is in the order of the record unless a visibility says otherwise,
and has the agent's own messages in it. A message that no agent wrote (a note of an extension, an opening that
is part of the task) is shown to all agents. `window = W` leaves out what is older than W rounds: in round t,
the rounds t-W to t-1 and the current one so far are shown; an opening that no agent wrote does not age.
"""

from __future__ import annotations

from collections.abc import Iterable

from madplug import Extension, Visibility, hookimpl
from madplug_visibility.blind import BlindFirstRound
from madplug_visibility.hidden import Hidden
from madplug_visibility.shown import (
    Everything,
    InnerDebate,
    Own,
    PreviousRound,
    Relay,
    Report,
)

__all__ = ["BlindFirstRound", "Everything", "Hidden", "InnerDebate", "Own", "PreviousRound", "Relay", "Report"]


@hookimpl
def madplug_register_visibilities() -> Iterable[type[Visibility]]:
    """Register six visibilities."""
    return [Everything, Own, PreviousRound, Relay, Report, InnerDebate]


@hookimpl
def madplug_register_extensions() -> Iterable[type[Extension]]:
    """Register two extensions."""
    return [BlindFirstRound, Hidden]
