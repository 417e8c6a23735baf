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
        self.replies = {"discuss": discuss or self.agree, "extract": "Final answer: (B)", **replies}
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


def texts(calls, purpose="discuss"):
    """What each call of a purpose was sent, as one text."""
    return ["\n\n".join(part["content"] for part in body["messages"]) for request, body in calls
            if request.purpose == purpose]


# The current solution is state of the debate

@pytest.mark.parametrize("discuss", [None, restating])
@pytest.mark.parametrize("window", [0, 1, 2])
def test_in_a_long_agreement_the_solution_stays_on_the_table(tmp_path, discuss, window):
    debate = f"""paradigm = "mallm.memory"
rounds = 10
visibility = {{use = "visibility.everything", window = {window}}}
decision = {{use = "voting.simple", vote_round = 10}}"""
    calls, [result] = exchange(tmp_path, debate, Said(discuss, vote="1"), CHOICE)
    first, *others = texts(calls)
    assert OPENING in first
    assert len(others) == 29
    for sent in others:
        assert OPENING not in sent
        assert "Current solution: B" in sent or "Current solution: (B)" in sent
    assert result.decision.key == "B"


@pytest.mark.parametrize("agents", [3, 5])
def test_in_a_relay_all_who_agree_support_the_proposal(tmp_path, agents):
    debate = f'paradigm = "mallm.relay"\nagents = {agents}\ndecision = "consensus.unanimity"'
    calls, [result] = exchange(tmp_path, debate, Said(), CHOICE)
    assert len(calls) == agents
    assert [OPENING in sent for sent in texts(calls)] == [True] + [False] * (agents - 1)
    assert (result.decision.agreed, result.decision.key) == (True, "B")
    assert f"{agents} of {agents} voters support" in result.decision.reason


@pytest.mark.parametrize("paradigm", ["report", "debate", "relay", "memory"])
def test_only_the_very_first_message_has_no_solution_to_go_by(tmp_path, paradigm):
    debate = (f'paradigm = "mallm.{paradigm}"\nagents = 4\nrounds = 6\n'
              'decision = {use = "voting.simple", vote_round = 6}')
    calls, _ = exchange(tmp_path, debate, Said(vote="1"), CHOICE)
    sent = texts(calls)
    assert [i for i, text in enumerate(sent) if OPENING in text] == [0]
    assert all("Current solution: " in text for text in sent[1:])


def test_a_first_message_that_cannot_be_read_is_no_reason_to_begin_again(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 2\ndecision = {use = "voting.simple", final = "recorded"}'
    calls, _ = exchange(tmp_path, debate, Said(lambda request: "[DISAGREE] Hm."), CHOICE)
    assert [OPENING in text for text in texts(calls)] == [True] + [False] * 5


def test_blind_turns_know_of_no_solution_and_the_next_ones_do(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 3\ndecision = {use = "voting.simple", vote_round = 3}'
    calls, _ = exchange(tmp_path, debate, Said(restating, vote="1"), CHOICE,
                        top='extensions = ["visibility.blind_first_round"]')
    assert [OPENING in text for text in texts(calls)] == [True] * 3 + [False] * 6


def test_a_later_proposal_replaces_the_solution(tmp_path):
    said = ["It is A.\nFinal answer: (A)", "[DISAGREE] It is C.\nFinal answer: (C)", "[AGREE] Yes."]
    debate = 'paradigm = "mallm.memory"\nrounds = 6\ndecision = {use = "voting.simple", vote_round = 6}'
    calls, _ = exchange(tmp_path, debate, Said(said, vote="1"), CHOICE)
    found = [re.search(r"Current solution: \(?(\w)", text) for text in texts(calls)]
    assert [match and match[1] for match in found] == [None, "A"] + ["C"] * 16


# A consensus

def test_a_consensus_over_fixed_rounds_discusses_to_the_end(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 3\ndecision = {use = "consensus.majority", fixed_rounds = true}'
    calls, [result] = exchange(tmp_path, debate, Said(), CHOICE)
    assert len(calls) == 9
    assert (result.decision.agreed, result.decision.key) == (True, "B")


def test_over_fixed_rounds_what_stands_in_the_end_decides(tmp_path):
    said = ["Final answer: (A)", "[AGREE]", "[AGREE]", "[DISAGREE]\nFinal answer: (C)", "[DISAGREE]\nFinal answer: (D)",
            "[DISAGREE]\nFinal answer: (B)"]
    debate = 'paradigm = "mallm.memory"\nrounds = 2\ndecision = {use = "consensus.majority", fixed_rounds = true}'
    _, [result] = exchange(tmp_path, debate, Said(said), CHOICE)
    assert (result.decision.agreed, result.decision.fallback, result.decision.key) == (False, True, "B")


def test_a_consensus_in_the_first_round_asks_the_agent_that_agreed_last(tmp_path):
    debate = 'paradigm = "mallm.memory"\ndecision = {use = "consensus.majority", final = "ask"}'
    calls, [result] = exchange(tmp_path, debate, Said(), CHOICE)
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


def test_answers_in_words_are_asked_for_where_the_closing_line_is_missing(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 1\ndecision = "voting.simple"'
    calls, [result] = exchange(tmp_path, debate, Said(singing, extract=written, vote="2"), TEXT)
    assert [request.agent for request, _ in calls if request.purpose == "extract"] == [0, 1]
    for ballot in texts(calls, "vote"):
        assert "Solution 1: the Choral Society\n\nSolution 2: the X Choir\n\nSolution 3: the choir" in ballot
        assert "AGREE" not in ballot
    assert result.decision.answer == "the X Choir"


def test_a_closing_line_that_another_agent_adopts_is_not_asked_for_again(tmp_path):
    said = ["So.\nFinal answer: the choir", "[AGREE] Indeed."]
    debate = 'paradigm = "mallm.memory"\nrounds = 1\ndecision = "voting.simple"'
    calls, _ = exchange(tmp_path, debate, Said(said, vote="1"), TEXT)
    assert [request.purpose for request, _ in calls] == ["discuss"] * 3 + ["vote"] * 3


def test_no_stance_is_shown_on_a_ballot_or_counted_as_an_answer(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 1\ndecision = {use = "voting.simple", final = "recorded"}'
    calls, [result] = exchange(tmp_path, debate, Said(singing, vote="1"), TEXT)
    assert all("AGREE" not in ballot for ballot in texts(calls, "vote"))
    assert all("AGREE" not in (message.answer or "") for message in result.messages)
    assert "unknown" not in {message.key for message in result.messages}


@pytest.mark.parametrize("decision", ["voting.simple", "judge.synthesis", "voting.plurality"])
def test_the_papers_preset_asks_every_voter_before_every_decision(tmp_path, decision):
    debate = (f'paradigm = "mallm.memory"\nrounds = 2\n'
              f'decision = {{use = "{decision}", vote_round = 1, final = "ask"}}')
    ballots = Said(vote=lambda request: str(request.agent + 1), judge="I cannot say.",
                   extract=lambda request: f"Final answer: ({'ABC'[request.agent]})")
    calls, _ = exchange(tmp_path, debate, ballots, CHOICE)
    rounds = [1] if decision == "judge.synthesis" else [1, 2]  # a judge ends the debate
    assert [request.agent for request, _ in calls if request.purpose == "extract"] == [0, 1, 2] * len(rounds)
    for request, body in calls:
        if request.purpose == "extract":
            system, task, said, asked = body["messages"]
            assert system == {"role": "system", "content": f"Your role: Agent {request.agent + 1}."}
            assert (task["role"], said["role"]) == ("user", "assistant")
            assert "copy your previous solution" in asked["content"]


def test_without_solutions_in_the_messages_the_discussion_is_shown(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 2\nstyles = ["styles.reasoning"]\ndecision = "voting.simple"'
    said = Said(lambda request: f"[DISAGREE] A thought of agent {request.agent}.", vote="1")
    calls, _ = exchange(tmp_path, debate, said, CHOICE)
    for text in texts(calls, "extract"):
        assert all(f"A thought of agent {agent}." in text for agent in range(3))
    assert len(texts(calls, "extract")) == 3


def test_a_message_without_a_solution_shows_the_previous_one(tmp_path):
    said = ["Final answer: (A)", "[DISAGREE]\nFinal answer: (C)", "[DISAGREE] Hm."]
    debate = 'paradigm = "mallm.memory"\nrounds = 1\ndecision = "voting.simple"'
    calls, _ = exchange(tmp_path, debate, Said(said, vote="1"), CHOICE)
    [text] = texts(calls, "extract")
    assert "Your previous solution: C" in text


# Ballots, alterations, places

def test_altered_votes_leave_every_official_request_as_it_was(tmp_path):
    def sent(name, more):
        folder = tmp_path / name
        folder.mkdir()
        debate = f'paradigm = "mallm.memory"\nrounds = 1\ndecision = {{use = "voting.simple", final = "ask"{more}}}'
        calls, [result] = exchange(folder, debate, Said(vote="1", confidence="50"), CHOICE)
        return [body["messages"] for _, body in calls], result.decision

    plain, decided = sent("plain", "")
    kinds = '["public", "history", "confidence", "confidence_log_probs", "confidence_prompted"]'
    altered, same = sent("altered", f", alterations = {kinds}")
    assert altered[:len(plain)] == plain
    assert len(altered) == len(plain) + 5 * 3 + 3 + 3
    assert same == decided


def test_the_persona_stands_in_the_system_message_of_every_prompt_of_an_agent(tmp_path):
    for paradigm in ("memory", "relay", "report", "debate", "collective_refinement"):
        folder = tmp_path / paradigm
        folder.mkdir()
        debate = f'paradigm = "mallm.{paradigm}"\nrounds = 2\ndecision = {{use = "voting.simple", final = "ask"}}'
        calls, _ = exchange(folder, debate, Said(vote="1"), CHOICE)
        for request, body in calls:
            assert body["messages"][0] == {"role": "system", "content": f"Your role: Agent {request.agent + 1}."}
            assert sum(m["content"].count("Your role: Agent") for m in body["messages"]) == 1


def test_solutions_are_numbered_from_one_and_no_ballot_is_an_example(tmp_path):
    for decision in ("simple", "approval", "ranked", "cumulative"):
        folder = tmp_path / decision
        folder.mkdir()
        debate = f'paradigm = "mallm.memory"\nrounds = 1\ndecision = {{use = "voting.{decision}", attempts = 1}}'
        calls, _ = exchange(folder, debate, Said(vote="?"), CHOICE)
        for text in texts(calls, "vote"):
            assert "Solution 1: B\n\nSolution 2: B\n\nSolution 3: B" in text
            asked = text.partition("Solution 3: B")[2]
            assert not re.search(r"\d", asked.replace("10 points", "").replace('"1"', "").replace('"2"', "")
                                 .replace('"3"', "")), asked


# Silence

def test_an_agent_that_says_nothing_is_silent_in_its_turn_and_supports_and_opposes_nothing(tmp_path):
    def said(request):
        return ["It is B.\nFinal answer: (B)", "", "[AGREE] Yes."][request.agent]

    debate = 'paradigm = "mallm.memory"\ndecision = "consensus.majority"'
    calls, [result] = exchange(tmp_path, debate, Said(said), CHOICE)
    assert [message.data.get("madplug") for message in result.messages] == [None, {"silent": True}, None]
    assert (result.decision.agreed, result.decision.key, result.retries) == (True, "B", 2)
    assert "Agent 2" not in str(calls[-1][1]["messages"])


def test_voters_that_say_nothing_leave_their_ballots_missing(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 1\ndecision = {use = "voting.simple", attempts = 2}'
    said = Said(restating, vote=lambda request: "" if request.agent else "1")
    _, [result] = exchange(tmp_path, debate, said, CHOICE, top='metrics = ["voting.ballots"]')
    assert [vote.valid for vote in result.decision.votes] == [True, False, False]
    assert result.metrics["voting.ballots.missing"] == 2


# Answers that a model reads

@pytest.mark.parametrize("decision", [
    '{use = "consensus.majority", final = "recorded"}',
    '{use = "voting.simple", vote_round = 1, final = "recorded"}'])
def test_a_model_reads_the_answers_of_the_round_that_decides_also_an_early_one(tmp_path, decision):
    said = Said(lambda request: "[AGREE] It may have been a choir." if request.agent else "It was sung by a choir.",
                extract="Final answer: the choir", vote="1")
    debate = f'paradigm = "mallm.memory"\nrounds = 5\ndecision = {decision}'
    calls, [result] = exchange(tmp_path, debate, said, TEXT, top='answers = {use = "answers.text", extract = "llm"}')
    assert result.rounds == 1
    assert "extract" in {request.purpose for request, _ in calls}
    assert result.decision.answer == "the choir"


def test_what_a_model_has_copied_out_in_the_last_round_is_not_asked_for_again(tmp_path):
    debate = 'paradigm = "mallm.memory"\nrounds = 1\ndecision = "voting.simple"'
    calls, _ = exchange(tmp_path, debate, Said(singing, extract="Final answer: the choir", vote="1"), TEXT,
                        top='answers = {use = "answers.text", extract = "llm"}')
    assert [request.purpose for request, _ in calls].count("extract") == 3
