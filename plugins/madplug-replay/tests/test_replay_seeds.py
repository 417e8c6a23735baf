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


@pytest.mark.parametrize(("options", "needs"), [
    ({"right": 1}, {"references"}), ({"order": "alternating"}, {"references"}), ({"messages": ("A",)}, set())])
def test_what_is_right_needs_the_references(options, needs):
    assert SeedMessages(**options).needs == needs


@pytest.mark.parametrize(("metadata", "options", "expected"), [
    ({"answers": [["A", None], ["B", "A"]]}, {"column": "answers"}, "ABA"),
    ({"seeds": ["B", "A", "B", "A", "A"]}, {"order": "alternating"}, "ABABA"),
    ({"seeds": ["B", "A", "B", "A", "A"]}, {"order": "wrong_first"}, "BBAAA")])
def test_they_come_from_a_column_of_the_sample_in_an_order(metadata, options, expected):
    assert seeds(run(Sample("q", "?", metadata=metadata), **options)) == expected


def test_openings_of_several_extensions_are_kept():
    played = play(extensions=[SeedMessages(messages=("A",)), SeedMessages(messages=("B",))], replies=["C"] * 3)
    assert sorted(m.key for m in played.transcript.of_round(0)) == ["A", "B"]


def test_without_seeds_nothing_changes():
    assert run().requests == play(styles=[Exchange(**MARKED)], replies=lambda r: "A", agents=2).requests


SCALING = """
oracle = true
debate = {paradigm = "madc.debate", agents = 1, rounds = 1, visibility = {strategy = "fixed"}}
extensions = [{use = "replay.seed_messages", study = "%s", right = 4, wrong = 4, own = "any"}]
[sweep]
"extensions.0.number" = [1, 2, 3, 4, 5, 6, 7, 8]
"extensions.0.order" = ["right_first", "wrong_first", "alternating"]
"""
ROWS = [{"id": "q1", "question": "Which?", "choices": ["one", "two", "three"], "reference": "A"}]


@pytest.fixture
def pool(run_on_endpoint, tmp_path):
    """Twelve recorded solutions, half of them right, as an export."""
    pytest.importorskip("madplug_baselines")
    made = iter(range(12))

    def solve(body):
        nth = next(made)
        return f"This is solution {nth}.\nFinal answer: {'ABAC'[nth % 4]}"

    results, _ = run_on_endpoint('debate = {paradigm = "baselines.self_consistency", agents = 12}', ROWS, solve)
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(to_json(result) + "\n" for result in results))
    return path


def test_one_sweep_is_the_scaling_experiment(pool, run_on_endpoint):
    pytest.importorskip("madplug_madc")
    results, bodies = run_on_endpoint(SCALING % pool.name, ROWS, lambda body: "Final answer: A")
    assert len(results) == 24
    assert len(bodies) == 23  # the first of two orders is the same request
    by_cell = {result.cell: result for result in results}
    assert all(body["messages"][-2]["role"] == "assistant" for body in bodies)
    assert len({body["messages"][-2]["content"] for body in bodies}) == 1
    for order, keys in (("right_first", "AAAABCBC"), ("wrong_first", "BCBCAAAA"), ("alternating", "ABACABAC")):
        for number in range(1, 9):
            shown = [m for m in by_cell[f"number={number},order={order}"].messages if m.round == 0]
            assert "".join(m.key for m in shown if m.agent is None) == keys[:number]
            assert len({m.content for m in shown}) == number + 1
    whole = max((str(body["messages"][-1]["content"]) for body in bodies), key=len)
    assert whole.count("This is solution") == 8
    assert bodies[0]["messages"][-2]["content"] not in whole


def test_a_pool_is_read_from_a_studys_directory_by_id_and_question(tmp_path):
    with_pool = play(replies=["A", "B", "A once more"], styles=[Exchange(**MARKED)], sample=Sample("q1", "?"))
    recorder = open_recorder(tmp_path / "study")
    asyncio.run(recorder.finish_debate(with_pool.result))
    recorder.close()
    played = run(Sample("q1", "?"), study=tmp_path / "study")
    other = run(Sample("q1", "another of this id?"), study=tmp_path / "study")
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


def test_the_first_of_the_order_are_taken():
    played = run(messages=("A", "B", "A", "B"), order="alternating", number=3)
    assert seeds(played) == "ABA"
    assert played.result.notes["replay.seed_messages"] == {"right": 2, "wrong": 2, "shown": 3}
    assert seeds(run(messages=("A", "B"), number=0)) == ""


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
