"""The paradigms as presets.

Rounds are MALLM's turns; seven is what its paper uses where it compares paradigms (its configuration says ten, its
batch example and the companion paper five). Personas are not part of a preset: `personas = ["personas.expert"]`
is MALLM's default.
"""

from __future__ import annotations

from madplug import Paradigm

MALLM = "Becker et al. 2025 (MALLM), section 3.2"
AGREED = {"agents": 3, "rounds": 7, "styles": ["styles.simple"], "decision": "consensus.hybrid"}


class Memory(Paradigm):
    """Agents speak in turn, and every agent sees what all agents said.

    An agent sees the two rounds before and this one so far.

    Differs from the released code of MALLM, where the window of two rounds has no effect:
    `visibility = "visibility.everything"` restores that.
    """

    name = "memory"
    source = MALLM
    debate = {**AGREED, "turns": "turns.round_robin", "visibility": {"use": "visibility.everything", "window": 2}}


class Relay(Paradigm):
    """Agents speak in turn, and each sees only the latest message of the one before it, and its own.

    Differs from the released code of MALLM, where the messages of the one before accumulate: `visibility.history =
    "all"` restores that.
    """

    name = "relay"
    source = MALLM
    debate = {**AGREED, "turns": "turns.round_robin", "visibility": {"use": "visibility.relay", "window": 2}}


class Report(Paradigm):
    """A central agent writes a draft that all see; the others answer it, and only the centre sees their answers.

    The paper's prose has the others solve the task on their own; in its code, and here, they see the draft first.
    """

    name = "report"
    source = MALLM
    debate = {**AGREED, "turns": "turns.drafter_first", "visibility": {"use": "visibility.report", "window": 2}}


class MallmDebate(Paradigm):
    """A central agent writes a draft; the others debate it in a ring, twice, and report back.

    Differs from the released code of MALLM, where votes and judges never come to a decision with this paradigm,
    and inner messages reach more than the next agent when there are four or more.
    """

    name = "debate"
    source = MALLM
    debate = {**AGREED, "turns": {"use": "turns.inner_debate", "inner": 2},
              "visibility": {"use": "visibility.inner_debate", "window": 2}}


class CollectiveRefinement(Paradigm):
    """Agents answer alone, then each improves its own answer with the others' of the previous round.

    Simultaneous, with a style that has no agreement: a vote or a judge decides, and a consensus is
    refused.
    """

    name = "collective_refinement"
    source = "Kaesberg et al. 2025 (Voting or Consensus), section 4.3"
    debate = {"agents": 3, "rounds": 7, "turns": "turns.simultaneous",
              "visibility": {"use": "visibility.previous_round", "window": 2},
              "styles": ["mallm.collective"], "decision": "voting.simple"}
