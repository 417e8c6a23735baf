"""Recorded debates as a data set, and their replay."""

import json

import pytest

from madplug import UserError
from madplug_replay import Personas, Recorded, ReplayDebate, Rounds, Trajectories
from madplug_testing import play

ROWS = [
    {"qid": "q/1", "ref": "A", "answers": [["A", "B", "B"], ["A", "A", None]], "run": "one", "level": 3},
    {"qid": "q/2", "ref": ["B", "C"], "answers": [["B", None]], "run": "one", "question": "Which?",
     "choices": ["x", "y"]},
    {"qid": "q/1", "ref": "A", "answers": [["A"]], "run": "two"}]


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, ROWS)


@pytest.fixture
def first_run(path):
    return Trajectories(path=path, select={"run": "one"})


def written(folder, rows):
    path = folder / "debates.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def replayed(dataset, rounds=10, **settings):
    """The results of all debates."""
    played = play(dataset=dataset, personas=[Personas()], turns=Rounds(), styles=[Recorded()], models=(), rounds=rounds,
                  **settings)
    return sorted(played.store.results(), key=lambda r: r.sample.id)


def one(tmp_path, row, **settings):
    return replayed(Trajectories(path=written(tmp_path, [{"qid": "q", "ref": "A", **row}])), **settings)[0]


def test_a_row_is_a_sample(first_run):
    (first, references), (second, more) = first_run.samples()
    assert (first.id, first.question, first.choices, references) == ("q/1", "q/1", (), ("A",))
    assert first.metadata == {"answers": ROWS[0]["answers"], "run": "one", "level": 3}
    assert (second.question, second.choices, more) == ("Which?", ("x", "y"), ("B", "C"))


def test_a_debate_says_what_was_recorded_with_agents_and_rounds_of_the_row(first_run):
    first, second = replayed(first_run)
    assert [(m.round, m.agent, m.answer) for m in first.messages] == [
        (1, 0, "A"), (1, 1, "B"), (1, 2, "B"), (2, 0, "A"), (2, 1, "A"), (2, 2, None)]
    assert [m.answer for m in second.messages] == ["B", None]
    assert [(a.persona.name, a.model) for a in first.agents] == [(f"Agent {i}", None) for i in (1, 2, 3)]
    assert (first.rounds, first.calls, len(second.agents), second.rounds) == (2, 0, 2, 1)
    assert "agents" not in ReplayDebate.debate


def test_rounds_may_end_earlier_than_the_record_on_which_any_decision_runs(first_run):
    assert replayed(first_run, rounds=1)[0].rounds == 1
    Score = pytest.importorskip("madplug_freemad").Score
    assert replayed(first_run, decision=Score())[0].decision.scores == {"A": 45.0, "B": 37.5}


def test_names_come_from_the_row_an_empty_answer_says_that_there_is_none_and_further_agents_have_no_vote(tmp_path):
    result = one(tmp_path, {"answers": [["", "x", "A"]], "agents": ["big", "small"]}, agents=4)
    assert [(a.persona.name, a.persona.votes) for a in result.agents] == [
        ("big", True), ("small", True), ("Agent 3", True), ("Agent 4", False)]
    assert [m.key for m in result.messages] == ["unknown", "x", "A"]


@pytest.mark.parametrize(("column", "values", "expected"), [
    ("confidence", [0.9, 0.2], [0.9, 0.2]), ("score", [0.9, 0.2], [0.9, 0.2]), ("score", [0.0, 2.0], [0.5, 0.8808]),
    ("score", [[0.3, None]], [0.3, None]), ("score", [-800, 800], [0.0, 1.0]), ("confidence", [1.5, -1], [1.0, 0.0]),
    ("confidence", [[0.1, 0.2], [0.7, 0.8]], [0.1, 0.2, 0.7, 0.8])])
def test_confidences_are_replayed(tmp_path, column, values, expected):
    result = one(tmp_path, {"answers": [["A", "B"]] * (len(expected) // 2), column: values})
    assert [m.confidence for m in result.messages] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("select", "ids"), [
    ({"run": "two"}, ["q/1"]), ({"qid": "*/2"}, ["q/2"]), ({"run": "one", "qid": ("q/2", "q/3")}, ["q/2"]),
    ({"level": 3}, ["q/1"])])
def test_rows_are_selected_by_value_and_a_limit_takes_the_first(path, select, ids):
    dataset = Trajectories(path=path, select=select)
    assert [s.id for s, _ in dataset.samples()] == ids
    assert [s.id for s, _ in Trajectories(path=path, limit=1).samples()] == ["q/1"]


def test_the_same_question_twice_names_the_runs(path):
    said = r"line 3, column 'qid': 'q/1' is taken by line 1; choose a run with select = .* of one, two"
    with pytest.raises(UserError, match=said):
        list(Trajectories(path=path).samples())


@pytest.mark.parametrize(("text", "problem"), [
    ("{", "line 1: is not JSON"), ("[]", "is a list; expected one JSON object per line"), (b"\xff", "is not UTF-8"),
    ('{"qid": "1", "answers": [[{}]], "ref": "A"}', "line 1, column 'answers': is [[{}]]; expected a list of rounds"),
    ('{"qid": "1", "answers": [["A"]], "ref": "A", "x": Infinity}', "column 'x': is infinite"),
    ('{"qid": "1", "answers": ["A"], "ref": "A"}', "a list of rounds"), ("", "no row has anything in it")])
def test_what_is_wrong_with_a_file_is_named(tmp_path, text, problem):
    path = tmp_path / "wrong.jsonl"
    assert list(Trajectories(path=path).check(None)) == [f"{path}: cannot be read: No such file or directory"]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert [problem in p for p in Trajectories(path=path).check(None)] == [True]


def test_all_problems_of_a_file_are_named_at_once(tmp_path):
    path = tmp_path / "wrong.jsonl"
    path.write_text("\ufeff" + "\n".join(json.dumps(row) for row in ROWS[:2]) + '\n{x\n{"qid": "3"}\n', "utf-8")
    assert [said.removeprefix(f"{path}: ") for said in Trajectories(path=path).check(None)] == [
        "line 3: is not JSON: Expecting property name enclosed in double quotes (column 2)",
        "line 4, column 'answers': is missing", "line 4, column 'ref': is missing"]


def test_what_a_row_calls_images_is_not_sent_to_a_model(tmp_path):
    path = written(tmp_path, [{**ROWS[0], "images": ["/etc/passwd"]}])
    ((sample, _),) = Trajectories(path=path, instruction="Choose.").samples()
    assert sample.images == ()
    assert sample.metadata["images"] == ["/etc/passwd"]
    assert sample.metadata["instruction"] == "Choose."


def test_the_fingerprint_is_of_the_contents(path, tmp_path):
    before = Trajectories(path=path).fingerprint()
    written(tmp_path, ROWS[:1])
    assert Trajectories(path=path).fingerprint() != before


def test_the_recorded_style_needs_a_record():
    played = play(styles=[Recorded()], turns=Rounds(), expect_failure=True)
    assert "sample 'q1' has no recorded answers" in played.result.error
