"""Messages that are on record before the first round."""

import asyncio

import pytest

from madplug import Sample
from madplug.rows import to_json
from madplug.store import open_recorder
from madplug_replay import SeedMessages
from madplug_testing import play

Exchange = pytest.importorskip("madplug_som").Exchange
MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}"}


def run(sample="?", references=("A",), rounds=1, visibility=None, **options):
    return play(styles=[Exchange(**MARKED)], extensions=[SeedMessages(**options)], replies=lambda r: "A", agents=2,
                sample=sample, references=references, oracle=True, rounds=rounds, visibility=visibility)


def seeds(played) -> str:
    return "".join(m.key or "-" for m in played.transcript.of_round(0))


def test_messages_of_the_run_file_are_on_record_before_the_first_round_and_shown_in_it_as_answers():
    played = run(messages=("A", {"content": "Surely B", "answer": "B"}))
    made_up = "I worked this out step by step, and the answer is A."
    assert [(m.round, m.agent, m.answer, m.content) for m in played.messages[:2]] == [
        (0, None, "A", made_up), (0, None, "B", "Surely B")]
    assert [m["content"] for m in played.requests[0].messages] == [f"<q>\n\n{made_up}\n\nSurely B"]


@pytest.mark.parametrize(("order", "expected"), [
    ("right_first", "A" * 40 + "B" * 40), ("wrong_first", "B" * 40 + "A" * 40), ("alternating", "AB" * 40)])
def test_forty_right_and_forty_wrong_in_three_orders(order, expected):
    played = run(Sample("q", "?", ("x", "y")), right=40, wrong=40, order=order)
    assert seeds(played) == expected
    assert played.prompts[0].count("the answer is A") == 40


def test_answers_that_are_there_come_before_made_up_ones():
    sample = Sample("q", "?", ("x", "y", "z"), metadata={"seeds": [{"content": "proof", "answer": "A"}, "C"]})
    played = run(sample, right=2, wrong=2, order="alternating")
    assert [m.content for m in played.transcript.of_round(0)][::2] == ["proof", "proof"]
    assert seeds(played) == "ACAC"
    assert played.result.notes["replay.seed_messages"] == {"right": 1, "wrong": 1, "shown": 4}


@pytest.mark.parametrize(("reference", "expected"), [("5", "678"), ("yes", "nonono")])
def test_wrong_answers_without_options(reference, expected):
    assert seeds(run(references=(reference,), right=0, wrong=3)) == expected


@pytest.mark.parametrize(("metadata", "options", "expected"), [
    ({"answers": [["A", None], ["B", "A"]]}, {"column": "answers"}, "ABA"), ({}, {}, ""),
    ({"seeds": ["B", "A", "B", "A", "A"]}, {"order": "alternating"}, "ABABA"),
    ({"seeds": ["B", "A", "B", "A", "A"]}, {"order": "wrong_first"}, "BBAAA"),
    ({"seeds": ["A", "B", "A", "B"]}, {"order": "alternating", "number": 3}, "ABA"),
    ({"seeds": ["A", "B"]}, {"number": 0}, "")])
def test_the_first_of_a_column_of_the_sample_are_taken_in_an_order(metadata, options, expected):
    played = run(Sample("q", "?", metadata=metadata), **options)
    assert seeds(played) == expected
    assert SeedMessages(**options).needs == ({"references"} if "order" in options else set())


@pytest.mark.parametrize("name", ["study", "export.jsonl"])
def test_a_pool_is_read_from_a_studys_directory_or_export_by_id_and_question(tmp_path, name):
    pool = play(replies=["A", "B", "A once more"], styles=[Exchange(**MARKED)], sample=Sample("q1", "?")).result
    if name == "study":
        recorder = open_recorder(tmp_path / name)
        asyncio.run(recorder.finish_debate(pool))
        recorder.close()
    else:
        (tmp_path / name).write_text(to_json(pool) + "\n")
    played = run(Sample("q1", "?"), study=tmp_path / name)
    other = run(Sample("q1", "another of this id?"), study=tmp_path / name)
    assert [m.content for m in played.transcript.of_round(0)] == ["A", "B", "A once more"]
    assert not other.transcript.of_round(0)


def test_an_earlier_answer_is_seen_by_its_agent_alone():
    seeds_ = [{"content": f"solution {i}", "answer": "AB"[i % 2]} for i in range(8)]
    played = run(Sample("q", "?", metadata={"seeds": seeds_}), right=2, wrong=2, own="wrong")
    own = [m for m in played.transcript.of_round(0) if m.agent is not None]
    assert [(m.agent, m.key) for m in own] == [(0, "B"), (1, "B")]
    for request, mine in zip(played.requests, own, strict=True):
        roles = [(m["role"], m["content"]) for m in request.messages]
        assert roles[:2] == [("user", "<q>"), ("assistant", mine.content)]
        assert roles[2][1].split("\n\n") == ["solution 0", "solution 2", "solution 1", "solution 3"]
        assert mine.content in ("solution 5", "solution 7")


@pytest.mark.parametrize(("text", "problem"), [
    ("", "has no first messages with an answer that could be read"), ("{}\n", "line 1 is not a debate as"),
    (None, "cannot be read")])
def test_a_study_that_cannot_be_read_is_a_problem(tmp_path, text, problem):
    path = tmp_path / "pool.jsonl"
    if text is not None:
        path.write_text(text)
    (found,) = SeedMessages(study=path).check(None)
    assert problem in found


@pytest.mark.parametrize(("options", "problem"), [
    ({"wrong": 1}, "add some in the column 'seeds'"),
    ({"own": "any"}, "no answer to sample 'q1' that an agent could have given")])
def test_an_open_question_without_known_answers_fails_the_debate(options, problem):
    played = play(extensions=[SeedMessages(**options)], references=("Paris",), oracle=True, expect_failure=True)
    assert problem in played.result.error
