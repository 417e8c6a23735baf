
from tests_support import made

from madplug import Visibility
from madplug_freemad import AntiConformity
from madplug_som import Exchange
from madplug_testing import play

MARKED = {"first": "<q>", "exchange": "{answers}<c>", "block": "{content}", "verify": "<verify>", "critique": "<x>"}


def test_earlier_exchanges_keep_their_critique():
    played = play(styles=[AntiConformity(**MARKED)], replies=list("abcdefghi"), rounds=3)
    assert sum(m["content"].endswith("<x>") for m in played.requests[6].messages) == 2


def test_first_answers_are_those_of_the_plain_exchange():
    free = play(styles=[AntiConformity()], replies=list("abc"))
    plain = play(styles=[Exchange()], replies=list("abc"))
    assert free.requests == plain.requests


def test_an_agent_that_sees_no_one_is_not_asked_to_examine_others():
    own = made(Visibility, view=lambda self, debate, turn: debate.transcript.by(turn.agent))
    played = play(styles=[AntiConformity(**MARKED)], replies=list("abcdef"), rounds=2, visibility=own)
    assert played.requests[3].messages[-1]["content"] == "<verify>"


def test_nothing_is_said_of_scores_or_weights():
    text = AntiConformity().options.critique.lower()
    assert not any(word in text for word in ("score", "weight", "point"))
    assert text.endswith("{format}")


RUN = 'debate = {paradigm = "freemad.n", rounds = 3%s}'
ROWS = [{"id": "q1", "question": "Which?", "choices": ["one", "two"], "reference": "B"}]
CLOSING = "end your reply with one line"


def test_a_summary_is_examined_as_answers_are(run_on_endpoint):
    _, bodies = run_on_endpoint(RUN % "" + '\nextensions = ["som.summary"]', ROWS, lambda body: "Final answer: B")
    last = bodies[-1]["messages"][-1]["content"]
    assert last.startswith("Several agents worked on the same question. A summary of all their answers:\n\n")
    assert "Restate your own reasoning" in last
    assert "advice" not in last
    assert last.count(CLOSING) == 1


def test_the_wording_of_the_paper_can_be_pasted(run_on_endpoint):
    pasted = ', styles = [{use = "freemad.anti_conformity", exchange = "P {answers}", critique = "C {format}"}]'
    _, bodies = run_on_endpoint(RUN % pasted, ROWS, lambda body: "Final answer: B")
    last = bodies[-1]["messages"][-1]["content"]
    assert last.startswith("P --- an agent's answer ---\nFinal answer: B\n\n")
    assert "\n\nC When you have decided" in last
