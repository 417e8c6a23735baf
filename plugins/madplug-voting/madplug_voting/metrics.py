"""What the notes of votes say, as figures: altered presentations, and ballots that were asked for again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug import Metric
from madplug_voting.recorded import NOTES

if TYPE_CHECKING:
    from madplug import Debate


class Alterations(Metric):
    """What each altered presentation of the last vote would have decided.

    For every presentation in `alterations`: `decided`, whether a single solution leads; `same`, whether it is the
    official vote's (both undecided is the same); and, where the question has a reference, `accuracy`, for which no
    single leader is wrong. Does not apply to debates without altered votes.
    """

    name = "alterations"
    source = "Becker et al. 2025 (MALLM), the answer alterations of its code"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """The figures by `presentation.figure`."""
        notes = [note for note in debate.notes.get(NOTES, ()) if note.get("alterations")]
        if not notes:
            return None
        vote, right = notes[-1], canonical_references(debate, references)
        official = winner(vote, vote)
        found: dict[str, float | None] = {}
        for how, poll in vote["alterations"].items():
            key = winner(vote, poll)
            found[f"{how}.decided"] = float(key is not None)
            found[f"{how}.same"] = float(key == official)
            if right:
                found[f"{how}.accuracy"] = float(key is not None and any(
                    debate.answers.same(key, one, debate.sample) for one in right))
        return found


class Ballots(Metric):
    """How many times a ballot was asked for again because a reply was not valid, and how many ballots stayed missing.

    All votes of the debate count, altered presentations included. Does not apply to debates without ballots.
    """

    name = "ballots"
    source = "Kaesberg et al. 2025 (Voting or Consensus), appendix E.2"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """The counts."""
        votes = [note for note in debate.notes.get(NOTES, ()) if "ballots" in note]
        ballots = [b for note in votes for poll in (note, *note.get("alterations", {}).values())
                   for b in poll["ballots"]]
        if not votes:
            return None
        return {"votes": float(len(votes)), "ballots": float(len(ballots)),
                "asked_again": float(sum(b["tries"] - 1 for b in ballots)),
                "missing": float(sum(b["ballot"] is None for b in ballots))}


def winner(vote: Mapping[str, Any], poll: Mapping[str, Any]) -> str | None:
    """The answer that a count of a vote's solutions decides on, or None."""
    keys = {solution["number"]: solution["key"] for solution in vote["solutions"]}
    return keys[poll["leading"][0]] if len(poll["leading"]) == 1 else None


def canonical_references(debate: Debate, references: Sequence[str]) -> list[str]:
    """The references in canonical form."""
    found = (debate.answers.canonical(reference, debate.sample) for reference in references)
    return [key for key in found if key is not None]
