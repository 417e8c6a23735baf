"""The controls send what a debate sends, but for what the peers say; the metrics count what their papers count."""

import pytest

from madplug import Decision, Sample, to_json
from madplug.debate.state import change
from madplug.store import MemoryStore
from madplug_controls import Collapse, Noise, OracleGap
from madplug_dynamics import Agreement, Conformity, Flips
from madplug_som import Exchange
from madplug_testing import debate_from, play

MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}", "verify": "<verify>"}


def debated(replies, sample, **more):
    return play(styles=[Exchange(**MARKED)], sample=sample, replies=replies, **more)


@pytest.fixture
def study(tmp_path):
    """Two questions that were debated and recorded; another debate then hears those messages."""
    store, path = MemoryStore(), tmp_path / "debates.jsonl"
    debated(lambda r: f"{r.messages[0]['content']} {r.agent} {(len(r.messages) + 1) // 2}",
            [Sample("q1", "one"), Sample("q2", "two")], agents=2, rounds=2, store=store)
    path.write_text("".join(to_json(result) + "\n" for result in store.results()).replace("<q>", "noise"))
    return path


def test_an_agent_reads_as_many_messages_of_the_same_round_about_another_question(study):
    played = debated(["a", "b", "c"] * 2, Sample("q1", "one"), agents=3, rounds=2, extensions=[Noise(study=study)])
    for request in played.requests[3:]:
        first, own, heard = (m["content"] for m in request.messages)
        assert (first, own) == ("<q>", "abc"[request.agent])
        assert set(heard.split("\n\n")) <= {"noise 0 1", "noise 1 1"}
        assert len(heard.split("\n\n")) == 2
    assert [m.content for m in played.messages] == ["a", "b", "c"] * 2
    assert [m.altered for m in played.messages[3:]] == [(1, 2), (0, 2), (0, 1)]


def test_every_reader_hears_the_same_noise_and_another_seed_another(study):
    def heard(seed):
        played = debated(lambda r: "x", Sample("q9", "nine"), agents=6, rounds=2, extensions=[Noise(study=study)],
                         seed=seed)
        return [r.messages[-1]["content"].split("\n\n") for r in played.requests[6:]]

    assert heard(1)[0][1:] == heard(1)[1][1:]
    assert len({str(heard(seed)) for seed in range(5)}) > 1


def test_a_round_that_was_not_recorded_fails_the_debate(study):
    played = debated(lambda r: "x", "?", rounds=4, extensions=[Noise(study=study)], expect_failure=True)
    assert "says nothing about another question in round 3" in played.result.error


@pytest.mark.parametrize(("text", "problem"), [
    (None, "cannot be read"), ("{}\n", "line 1 is not a debate"), ("", "messages about 0 questions")])
def test_a_study_that_gives_no_noise_is_a_problem(tmp_path, text, problem):
    if text is not None:
        (tmp_path / "study").write_text(text)
    [found] = Noise(study=tmp_path / "study").check(None)
    assert problem in found


TABLE = [("AA AA BA CA", "B", "A"), ("BB BB BC CC", "B", "B"), ("AA BA CA DD", "C", "A")]
"""The worked example, four agents who see all others: a word per agent with its answers of both rounds; the reference;
the decision."""


def scored(metric):
    scores = []
    for rows, reference, decided in TABLE:
        debate = debate_from(rows)
        change(debate, decision=Decision(decided))
        scores.append(metric.score(debate, [reference]))
    return scores


def test_the_figures_of_the_worked_example():
    for metric, sums in ((Conformity(), {"conforming": 2, "opportunities": 3}), (Agreement(), {"unanimous": 1}),
                         (Flips(), {"TF": 3, "TT": 2, "FT": 0, "FF": 7})):
        scores = scored(metric)
        assert {part: sum(score[part] or 0 for score in scores) for part in sums} == sums
    assert (scored(OracleGap()), scored(Collapse())) == ([0, 0, 0], [1, 0, 1])
    outvoted = debate_from("AB AB AC")
    assert (OracleGap().score(outvoted, ["C"]), OracleGap().score(outvoted, [])) == (1, None)


@pytest.mark.parametrize("rows", ["AB AB", "AC BC", "A- -A"])
def test_first_answers_that_are_alike_or_all_wrong_cannot_collapse(rows):
    reference = "C" if rows == "AC BC" else "A"
    assert Collapse().score(debate_from(rows), [reference]) is None
