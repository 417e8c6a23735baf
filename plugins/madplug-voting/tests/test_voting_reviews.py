"""A round of reviews, which give no answers by design, has no ballots that could not be read."""

from dataclasses import replace

import pytest

from madplug import DebateResult, Transcript
from madplug_testing import debate_from, wait_for
from madplug_voting import Plurality


@pytest.mark.parametrize(("answer", "valid"), [("", ()), (None, (False, False))])
def test_who_was_to_give_no_answer_in_the_round_casts_no_vote(answer, valid):
    said = debate_from("AA BA").transcript.messages
    debate = debate_from("AA BA", transcript=Transcript(
        [m if m.round == 1 else replace(m, answer=answer, key=None) for m in said]))
    decision = wait_for(Plurality().at_end(debate))
    assert decision.reason.endswith('could be read in round 2; scope = "latest" counts earlier ones')
    assert tuple(vote.valid for vote in decision.votes) == valid
    ended = DebateResult("c", 0, debate.sample, (), debate.agents, debate.transcript.record, decision)
    assert (decision.key, ended.unread) == (None, bool(valid))
