"""Agents whose models fail: the debate fails, or the run file says that the others decide."""

import pytest
from tests_support import OneByOne

from madplug import ModelError, UserError
from madplug.config import load
from madplug_testing import play


class Scripted:
    """Replies by the first letter of each agent's script; `!` fails, a blank is silence."""

    def __init__(self, *scripts):
        self.scripts, self.asked = scripts, [0] * len(scripts)

    def __call__(self, request):
        said = self.scripts[request.agent][self.asked[request.agent]]
        self.asked[request.agent] += 1
        if said == "!":
            raise ModelError(f"503 agent {request.agent} is away")
        return said.strip()


def played(*scripts, policy="drop", **parts):
    return play(replies=Scripted(*scripts), rounds=len(scripts[-1]), on_failed_agent=policy, **parts)


def speakers(debate, round):
    return [m.agent for m in debate.transcript.of_round(round)]


@pytest.mark.parametrize("turns", [None, OneByOne()])
def test_the_others_decide_without_an_agent_that_failed(turns):
    debate = played("!", "BB", "BB", turns=turns)
    assert (speakers(debate, 1), speakers(debate, 2)) == ([None, 1, 2], [1, 2])
    assert (debate.decision.key, debate.decision.agreed) == ("B", True)
    assert debate.result.failures == {0: "503 agent 0 is away"}
    assert not any("503" in prompt for prompt in debate.prompts)
    assert played(" ", "B", "B").result.failures == {0: "model 'model' answered with no text"}


def test_an_agent_goes_on_with_the_next_model_that_answers():
    debate = played("!AA", "BB", "BB", policy="replace", models=("one", "two"))
    assert [m.model for m in debate.messages if m.agent == 0] == ["two", "two"]
    assert debate.result.failures == {0: "503 agent 0 is away"}
    assert debate.result.agents[0].model == "two"


def test_an_agent_whose_every_model_fails_leaves():
    debate = played("!!", "BB", "BB", policy="replace", models=("one", "two"))
    assert debate.result.failures == {0: "503 agent 0 is away; 503 agent 0 is away"}
    assert [a.id for a in debate.debate.active] == [1, 2]


@pytest.mark.parametrize(("policy", "quorum", "message"), [
    ("drop", 3, "2 of 3 agents are left, and the quorum is 3: 503 agent 0 is away"), ("fail", 1, "503 agent 0")])
def test_the_debate_fails_without_a_quorum(policy, quorum, message):
    assert message in played("!", "B", "B", policy=policy, quorum=quorum, expect_failure=True).result.error


def test_what_the_summary_counts_as_partial():
    assert played("!", "B", "B").summary["cells"][0]["partial"] == 1
    assert "partial" not in played("B", "B", "B").summary["cells"][0]


@pytest.mark.parametrize(("policy", "message"), [
    ("drop", "debate.quorum: 3 of 2 agents can never be left"),
    ("fail", "debate.quorum: changes nothing unless on_failed_agent is drop or replace")])
def test_a_quorum_that_nothing_can_meet_or_that_changes_nothing_is_refused(write, policy, message):
    with pytest.raises(UserError) as caught:
        load(write(), [f"debate.on_failed_agent={policy}", "debate.quorum=3"])
    assert message in map(str, caught.value.problems)
