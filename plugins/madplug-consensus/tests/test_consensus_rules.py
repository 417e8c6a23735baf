"""How much support is enough, and what counts as support. Transcripts are written as little texts.

`Da` proposes a; `A` agrees; `F` is feedback that disagrees and `G` feedback that agrees, without a solution; `U`
disagrees and its solution cannot be read. The agents speak in turn; with n agents, n messages are a round.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from madplug import Message, Persona, Transcript
from madplug_consensus import Hybrid, Majority, Supermajority, Threshold, Unanimity
from madplug_consensus.standing import history
from madplug_testing import debate_from, wait_for


def message(word, nth, n, neutral):
    move = {"F": "feedback", "G": "feedback"}.get(word[0], "draft" if nth % n in neutral else "improve")
    agreement = None if move == "draft" else word[0] in "AG"
    key = word[1:] or None
    return Message(0, nth // n + 1, nth % n, nth % n, move, f"message {nth}", answer=key, key=key,
                   agreement=agreement)


def debate(text, n, neutral=(), rounds=7):
    people = [Persona(f"Agent {i}", role="neutral" if i in neutral else "participant", votes=i not in neutral)
              for i in range(n)]
    words = text.split()
    transcript = Transcript(replace(message(word, nth, n, neutral), id=nth) for nth, word in enumerate(words))
    return debate_from([[None]] * n, personas=people, rounds=rounds, transcript=transcript,
                       round=(len(words) - 1) // n + 1)


def ends(protocol, text, n, neutral=()):
    """(number of the message after which the debate ends, its answer), or None."""
    words = text.split()
    for count in range(1, len(words) + 1):
        decision = wait_for(protocol.after_wave(debate(" ".join(words[:count]), n, neutral)))
        if decision is not None:
            assert decision.agreed
            assert not decision.fallback
            return count, decision.key
    return None


# The worked numbers

@pytest.mark.parametrize(("protocol", "text", "n", "end"), [
    (Majority(), "Da A", 3, (2, "a")), (Supermajority(), "Da A", 3, (2, "a")),
    (Unanimity(), "Da A Db A A", 3, (5, "b")),  # all agree with the latest proposal
    # half is a majority only in the code
    (Majority(), "Da A", 4, None), (Majority(compat="code"), "Da A", 4, (2, "a")), (Majority(), "Da A A", 4, (3, "a")),
    # an agent is counted once, and an author that agrees with itself adds nothing
    (Unanimity(), "Da A F A A F A A", 3, None), (Majority(), "Da F F A", 3, None),
    (Unanimity(), "Da G G", 3, (3, "a")),  # feedback that agrees supports
    # feedback that disagrees breaks the row and leaves the proposal
    (Unanimity(), "Da A F A A", 3, None), (Unanimity(), "Da A F A A A", 3, (6, "a")),
    (Majority(), "Da F A", 3, (3, "a")),
    # a disagreement without a readable solution breaks the row and proposes nothing
    (Unanimity(), "Da A U A A", 3, None), (Unanimity(), "Da A U A A A", 3, (6, "a")),
    (Majority(), "A A A", 3, None),  # agreeing with nothing is nothing
    # a threshold is passed, or met
    (Threshold(share=0.5), "Da A", 4, None), (Threshold(share=0.5, strict=False), "Da A", 4, (2, "a")),
    (Threshold(share=0.6, strict=False), "Da A A", 5, (3, "a")), (Threshold(share=0), "Da", 5, (1, "a")),
    (Threshold(share=1, strict=False), "Da A", 2, (2, "a")),
    *((r, "Da", 1, (1, "a")) for r in (Majority(), Supermajority(), Unanimity(), Hybrid(), Threshold(share=0.9)))])
def test_a_debate_ends_once_there_is_enough_support(protocol, text, n, end):
    assert ends(protocol, text, n) == end


@pytest.mark.parametrize(("protocol", "text", "end"), [
    (Majority(), "Da A", None), (Majority(), "Da A A", (3, "a")), (Unanimity(), "Da A A A", (4, "a"))])
def test_neutral_agents_propose_and_are_no_voters(protocol, text, end):
    assert ends(protocol, text, 4, neutral=[0]) == end


ONE = "not agreed: 1 of 3 voters supports the latest proposal (Agent %d's in round 1)"


@pytest.mark.parametrize(("text", "neutral", "key", "votes", "reason"), [
    ("Da U", (), "a", [0], ONE % 0), ("Da U U", (), "a", [0], ONE % 0), ("U U Da", (), "a", [2], ONE % 2),
    ("Da U Db", (), "b", [2], ONE % 2),  # a new proposal starts with its author
    *((text, (), None, [], "no agent proposed a solution") for text in ("A A A", "")),
    ("Da A A", (0, 1, 2), "a", [], "not agreed: 0 of 0 voters support the latest proposal (Agent 0's in round 1)"),
    # a recorded debate is decided where it would have ended
    ("Da A A Db F F", (), "a", [0, 1], "2 of 3 voters support the proposal (Agent 0's in round 1)")])
def test_what_is_decided_at_the_end_says_why(text, neutral, key, votes, reason):
    decision = wait_for(Majority().at_end(debate(text, 3, neutral)))
    assert (decision.key, decision.reason) == (key, reason)
    assert decision.agreed == (not decision.fallback and key is not None) == (len(votes) > 1)
    assert [(v.agent, dict(v.weights)) for v in decision.votes] == [(agent, {key: 1}) for agent in votes]


@pytest.mark.parametrize(("n", "needed"), [(2, 2), (3, 2), (4, 3), (5, 4), (6, 4), (7, 5), (50, 34), (100, 67)])
def test_a_supermajority_is_more_than_66_percent_and_not_two_thirds(n, needed):
    rule = Supermajority()
    assert [s for s in range(1, n + 1) if rule.enough(s, n, 1)] == list(range(needed, n + 1))
    assert Supermajority(compat="code").enough(66, 100, 1)


@pytest.mark.parametrize(("n", "round", "needed"), [(3, 1, 3), (3, 5, 3), (3, 7, 3), (4, 4, 4), (4, 5, 3), (5, 4, 5),
                                                    (5, 5, 4), (2, 9, 2), (8, 5, 6)])
def test_hybrid_wants_everybody_and_later_three_quarters(n, round, needed):
    assert min(s for s in range(n + 1) if Hybrid().enough(s, n, round)) == needed


# What counts

def test_only_the_last_messages_count_as_many_as_there_are_voters():
    def decided(chats):
        made = debate("Da A", 3)
        for nth in range(2, chats + 2):
            made.transcript.append(Message(0, 1, nth, 2, "chat", "by the way"))
        made.transcript.append(Message(0, 1, chats + 2, 2, "improve", "x", agreement=True))
        return wait_for(Unanimity().after_wave(made))

    assert decided(chats=1).key == "a"
    assert decided(chats=2) is None  # agent 1 agreed four messages ago


def further(made, *messages):
    """Adds messages of round 1, given as (wave, agent, key, agreement, ids of the messages it saw)."""
    for wave, agent, key, agreement, seen in messages:
        made.transcript.append(Message(0, 1, wave, agent, "improve", "x", "", key, key, agreement, seen=seen))
    return made


def after(rule, made):
    """The answer on which a rule ends a debate, or None."""
    decision = wait_for(rule.after_wave(made))
    return decision and decision.key


def test_agents_that_agree_at_the_same_time_cannot_mean_the_new_proposal():
    made = further(debate("Da", 3), (0, 1, None, True, ()), (0, 2, None, True, ()))
    assert after(Majority(), made) is None


# In a relay an agent sees only the one before

@pytest.mark.parametrize(("key", "seen", "agreement", "supports"), [
    ("a", (1,), None, True),  # it saw only an agreement, was asked for no stance, and gives the same answer
    ("a", (1,), False, False),  # a disagreement is never support, even with the same answer
    ("a", (0, 1), None, False), ("b", (1,), None, False),  # it saw the proposal, or answers otherwise
    ("a", (), None, False)])
def test_in_a_relay_an_agent_supports_what_it_was_passed(key, seen, agreement, supports):
    made = further(debate("Da", 3), (1, 1, "a", True, (0,)), (2, 2, key, agreement, seen))
    assert after(Unanimity(), made) == ("a" if supports else None)


@pytest.mark.parametrize(("seen", "key"), [((0,), None), ((0, 1), "b")])
def test_an_agent_that_agrees_supports_only_a_proposal_that_it_saw(seen, key):
    assert after(Majority(), further(debate("Da Db", 3), (2, 2, None, True, seen))) == key


@pytest.mark.parametrize(("key", "decided"), [("b", "b"), (None, "b"), ("a", None)])
def test_an_agent_that_agrees_after_reading_of_a_proposal_supports_it_unless_it_says_otherwise(key, decided):
    made = further(debate("Da Db", 4), (2, 2, "b", True, (0, 1)), (3, 3, key, True, (0, 2)))
    assert after(Majority(), made) == decided


# What is decided

def test_a_message_that_agrees_and_answers_otherwise_is_noted():
    made = debate("Da Ab", 3)
    assert after(Majority(), made) == "a"
    assert made.notes == {"consensus": {"contradicting": [1]}}


def test_agreement_that_could_not_be_read_is_noted_and_counts_as_none():
    made = debate("Da", 3)
    made.transcript.append(Message(0, 1, 1, 1, "improve", "hm", "", None, None, False,
                                   data={"styles": {"unparsed_agreement": True, "unparsed": True}}))
    made.transcript.append(Message(0, 1, 2, 2, "improve", "x", "", "a", "a", True))
    assert wait_for(Majority().after_wave(made)).votes[1].agent == 2
    assert made.notes == {"consensus": {"unreadable_agreement": [1]}}
    alone = wait_for(Unanimity().at_end(made)).reason
    assert alone.endswith("(Agent 0's in round 1); in 1 message no agreement or disagreement could be read")


def test_a_threshold_that_cannot_be_exceeded_is_refused():
    with pytest.raises(ValidationError, match="no support exceeds a share of 1"):
        Threshold(share=1)


# Properties

WORDS = st.lists(st.sampled_from(["Da", "Db", "A", "F", "G", "U", "Ab"]), min_size=1, max_size=14)
AS_READ = {"final": "recorded"}
RULES = st.sampled_from([Majority(**AS_READ), Supermajority(**AS_READ), Unanimity(**AS_READ), Hybrid(**AS_READ),
                         Threshold(share=0.7, strict=False, **AS_READ)])


@settings(max_examples=60)
@given(words=WORDS, n=st.integers(1, 5), rule=RULES)
def test_relabelled_answers_relabel_the_decision_which_has_an_answer_where_it_is_an_agreement(words, n, rule):
    swap = {"a": "b", "b": "a"}
    other = [w[0] + swap[w[1]] if len(w) > 1 else w for w in words]
    first = wait_for(rule.at_end(debate(" ".join(words), n)))
    second = wait_for(rule.at_end(debate(" ".join(other), n)))
    assert second.key == (None if first.key is None else swap[first.key])
    assert (second.agreed, second.fallback) == (first.agreed, first.fallback)
    assert not (first.agreed and (first.fallback or first.key is None))


@settings(max_examples=60, deadline=None)
@given(words=WORDS, n=st.integers(1, 5))
def test_stricter_rules_agree_on_less(words, n):
    made = debate(" ".join(words), n)
    rules = Unanimity(**AS_READ), Supermajority(**AS_READ), Majority(**AS_READ), Majority(compat="code", **AS_READ)
    met = [any(rule.is_reached(then, n) for then in history(made.transcript.messages, range(n))) for rule in rules]
    assert met == sorted(met)
