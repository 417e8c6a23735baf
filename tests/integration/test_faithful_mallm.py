"""MALLM and "Voting or Consensus", seen from the endpoint: what agents are really sent."""

import re
from collections import Counter

import pytest
from recording import exchange

CHOICE = {"id": "q1", "question": "Which one?", "choices": ["one", "two", "three", "four"], "reference": "B"}
TEXT = {"id": "q1", "question": "Who sang there?", "context": ["A choir sang in the hall."], "reference": "the choir"}
OPENING = "There is no solution yet"


class Said:
    """Replies by purpose: a text, or a function of the request. A discussion agrees with the first answer, B."""

    def __init__(self, discuss=None, **replies):
        self.replies = {"discuss": discuss or self.agree, "extract": "Final answer: (B)", "vote": "1", **replies}
        self.nth = Counter()

    def __call__(self, request):
        self.nth[request.purpose] += 1
        reply = self.replies[request.purpose]
        if isinstance(reply, list):
            return reply[min(self.nth[request.purpose], len(reply)) - 1]
        return reply(request) if callable(reply) else reply

    def agree(self, request):
        return "It is B.\nFinal answer: (B)" if self.nth["discuss"] == 1 else "[AGREE] So it is."


def restating(request):
    return "[AGREE] So it is.\nFinal answer: (B)"


@pytest.fixture
def debate(tmp_path_factory):
    """Runs a debate of MALLM: its calls with what was sent, and its result. Lines of `[debate]` are given by name."""
    def debate(said, row=CHOICE, top="", paradigm="memory", **lines):
        text = "\n".join([f'paradigm = "mallm.{paradigm}"', *(f"{name} = {value}" for name, value in lines.items())])
        calls, [result] = exchange(tmp_path_factory.mktemp("debate"), text, said, row, top=top)
        return calls, result

    return debate


def use(name, **options):
    """A slot of a run file."""
    return "{" + ", ".join([f'use = "{name}"', *(f"{key} = {value}" for key, value in options.items())]) + "}"


def vote_in(number, **options):
    return use("voting.simple", vote_round=number, **options)


SIMPLE = use("voting.simple")


def texts(calls, purpose="discuss"):
    """What each call of a purpose was sent, as one text."""
    return ["\n\n".join(part["content"] for part in body["messages"]) for request, body in calls
            if request.purpose == purpose]


# The current solution is state of the debate

@pytest.mark.parametrize("discuss", [None, restating])
@pytest.mark.parametrize("window", [0, 1, 2])
def test_in_a_long_agreement_the_solution_stays_on_the_table(debate, discuss, window):
    calls, result = debate(Said(discuss), rounds=10, decision=vote_in(10),
                           visibility=use("visibility.everything", window=window))
    first, *others = texts(calls)
    assert OPENING in first
    assert len(others) == 29
    for sent in others:
        assert OPENING not in sent
        assert "Current solution: B" in sent or "Current solution: (B)" in sent
    assert result.decision.key == "B"


@pytest.mark.parametrize("agents", [3, 5])
def test_in_a_relay_all_who_agree_support_the_proposal(debate, agents):
    calls, result = debate(Said(), paradigm="relay", agents=agents, decision='"consensus.unanimity"')
    assert [OPENING in sent for sent in texts(calls)] == [True] + [False] * (agents - 1)
    assert (len(calls), result.decision.agreed, result.decision.key) == (agents, True, "B")
    assert f"{agents} of {agents} voters support" in result.decision.reason


@pytest.mark.parametrize(("said", "parts", "opening"), [
    *[(None, {"paradigm": name, "agents": 4, "rounds": 6, "decision": vote_in(6)}, 1)
      for name in ("report", "debate", "relay", "memory")],
    # A first message that cannot be read is no reason to begin again.
    (lambda request: "[DISAGREE] Hm.", {"rounds": 2, "decision": use("voting.simple", final='"recorded"')}, 1),
    # Agents that speak unseen know of no solution, and the next ones do.
    (restating, {"rounds": 3, "decision": vote_in(3), "top": 'extensions = ["visibility.blind_first_round"]'}, 3)])
def test_only_the_first_messages_have_no_solution_to_go_by(debate, said, parts, opening):
    sent = texts(debate(Said(said), **parts)[0])
    assert [OPENING in text for text in sent] == [True] * opening + [False] * (len(sent) - opening)
    assert len(sent) > opening
    assert said or all("Current solution: " in text for text in sent[1:])


def test_a_later_proposal_replaces_the_solution(debate):
    said = ["It is A.\nFinal answer: (A)", "[DISAGREE] It is C.\nFinal answer: (C)", "[AGREE] Yes."]
    calls, _ = debate(Said(said), rounds=6, decision=vote_in(6))
    found = [re.search(r"Current solution: \(?(\w)", text) for text in texts(calls)]
    assert [match and match[1] for match in found] == [None, "A"] + ["C"] * 16


# A consensus

@pytest.mark.parametrize(("said", "rounds", "decided"), [
    (None, 3, (True, False, "B")),
    (["Final answer: (A)", "[AGREE]", "[AGREE]", "[DISAGREE]\nFinal answer: (C)", "[DISAGREE]\nFinal answer: (D)",
      "[DISAGREE]\nFinal answer: (B)"], 2, (False, True, "B"))])
def test_a_consensus_over_fixed_rounds_discusses_to_the_end_and_decides_by_what_stands_then(debate, said, rounds,
                                                                                            decided):
    calls, result = debate(Said(said), rounds=rounds, decision=use("consensus.majority", fixed_rounds="true"))
    assert len(calls) == 3 * rounds
    assert (result.decision.agreed, result.decision.fallback, result.decision.key) == decided


def test_a_consensus_in_the_first_round_asks_the_agent_that_agreed_last(debate):
    calls, result = debate(Said(), decision=use("consensus.majority", final='"ask"'))
    assert [(request.purpose, request.agent) for request, _ in calls] == [
        ("discuss", 0), ("discuss", 1), ("extract", 1)]
    assert calls[-1][1]["messages"][0] == {"role": "system", "content": "Your role: Agent 2."}
    assert result.decision.key == "B"


# Final answers

def singing(request):
    return ("[DISAGREE] I think the Choral Society sang there too",
            "[DISAGREE] It is unknown to me, but I propose the X Choir",
            "So it was.\nFinal answer: the choir")[request.agent]


def written(request):
    return ("the Choral Society", "Final answer: the X Choir", "the choir")[request.agent]


def test_answers_in_words_are_asked_for_where_the_closing_line_is_missing(debate):
    calls, result = debate(Said(singing, extract=written, vote="2"), TEXT, rounds=1, decision=SIMPLE)
    assert [request.agent for request, _ in calls if request.purpose == "extract"] == [0, 1]
    for ballot in texts(calls, "vote"):
        assert "Solution 1: the Choral Society\n\nSolution 2: the X Choir\n\nSolution 3: the choir" in ballot
        assert "AGREE" not in ballot
    assert result.decision.answer == "the X Choir"


def test_a_closing_line_that_another_agent_adopts_is_not_asked_for_again(debate):
    calls, _ = debate(Said(["So.\nFinal answer: the choir", "[AGREE] Indeed."]), TEXT, rounds=1, decision=SIMPLE)
    assert [request.purpose for request, _ in calls] == ["discuss"] * 3 + ["vote"] * 3


def test_no_stance_is_shown_on_a_ballot_or_counted_as_an_answer(debate):
    calls, result = debate(Said(singing), TEXT, rounds=1, decision=use("voting.simple", final='"recorded"'))
    assert all("AGREE" not in ballot for ballot in texts(calls, "vote"))
    assert all("AGREE" not in (message.answer or "") for message in result.messages)
    assert "unknown" not in {message.key for message in result.messages}


@pytest.mark.parametrize(("decision", "rounds"), [  # a judge ends the debate
    ("voting.simple", 2), ("judge.synthesis", 1), ("voting.plurality", 2)])
def test_the_papers_preset_asks_every_voter_before_every_decision(debate, decision, rounds):
    ballots = Said(vote=lambda request: str(request.agent + 1), judge="I cannot say.",
                   extract=lambda request: f"Final answer: ({'ABC'[request.agent]})")
    calls, _ = debate(ballots, rounds=2, decision=use(decision, vote_round=1, final='"ask"'))
    asked = [(request, body["messages"]) for request, body in calls if request.purpose == "extract"]
    assert [request.agent for request, _ in asked] == [0, 1, 2] * rounds
    for request, (system, task, said, question) in asked:
        assert system == {"role": "system", "content": f"Your role: Agent {request.agent + 1}."}
        assert (task["role"], said["role"]) == ("user", "assistant")
        assert "copy your previous solution" in question["content"]


def test_without_solutions_in_the_messages_the_discussion_is_shown(debate):
    calls, _ = debate(Said(lambda request: f"[DISAGREE] A thought of agent {request.agent}."), rounds=2,
                      styles='["styles.reasoning"]', decision=SIMPLE)
    shown = texts(calls, "extract")
    assert len(shown) == 3
    assert all(f"A thought of agent {agent}." in text for text in shown for agent in range(3))


def test_a_voter_that_gave_no_solution_is_not_told_that_anothers_was_its_own(debate):
    said = ["Final answer: (A)", "[DISAGREE]\nFinal answer: (C)", "[DISAGREE] Hm."]
    [text] = texts(debate(Said(said), rounds=1, decision=SIMPLE)[0], "extract")
    assert "Your previous solution" not in text


# Ballots

def test_altered_votes_leave_every_official_request_as_it_was(debate):
    kinds = '["public", "history", "confidence", "confidence_log_probs", "confidence_prompted"]'
    plain, altered = (debate(Said(confidence="50"), rounds=1, decision=use("voting.simple", final='"ask"', **more))
                      for more in ({}, {"alterations": kinds}))
    sent, more = ([body["messages"] for _, body in calls] for calls, _ in (plain, altered))
    assert more[:len(sent)] == sent
    assert len(more) == len(sent) + 5 * 3 + 3 + 3
    assert altered[1].decision == plain[1].decision


# Silence

def test_an_agent_that_says_nothing_is_silent_in_its_turn_and_supports_and_opposes_nothing(debate):
    said = Said(lambda request: ["It is B.\nFinal answer: (B)", "", "[AGREE] Yes."][request.agent])
    calls, result = debate(said, decision='"consensus.majority"')
    assert [message.data.get("madplug") for message in result.messages] == [None, {"silent": True}, None]
    assert (result.decision.agreed, result.decision.key, result.retries) == (True, "B", 2)
    assert "Agent 2" not in str(calls[-1][1]["messages"])


def test_voters_that_say_nothing_leave_their_ballots_missing(debate):
    said = Said(restating, vote=lambda request: "" if request.agent else "1")
    _, result = debate(said, rounds=1, decision=use("voting.simple", attempts=2), top='metrics = ["voting.ballots"]')
    assert [vote.valid for vote in result.decision.votes] == [True, False, False]
    assert result.metrics["voting.ballots.missing"] == 2


# Answers that a model reads

READ = 'answers = {use = "answers.text", extract = "llm"}'


@pytest.mark.parametrize("decision", [
    use("consensus.majority", final='"recorded"'), vote_in(1, final='"recorded"')])
def test_a_model_reads_the_answers_of_the_round_that_decides_also_an_early_one(debate, decision):
    said = Said(lambda request: "[AGREE] It may have been a choir." if request.agent else "It was sung by a choir.",
                extract="Final answer: the choir")
    calls, result = debate(said, TEXT, READ, rounds=5, decision=decision)
    assert (result.rounds, result.decision.answer) == (1, "the choir")
    assert "extract" in {request.purpose for request, _ in calls}


def test_what_a_model_has_copied_out_in_the_last_round_is_not_asked_for_again(debate):
    calls, _ = debate(Said(singing, extract="Final answer: the choir"), TEXT, READ, rounds=1, decision=SIMPLE)
    assert [request.purpose for request, _ in calls].count("extract") == 3
