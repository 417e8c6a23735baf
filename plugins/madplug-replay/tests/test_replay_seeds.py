import pytest

from madplug import Sample
from madplug.testing import play
from madplug_replay import SeedMessages

Exchange = pytest.importorskip("madplug_som").Exchange
MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}"}


def run(sample="?", references=("A",), rounds=1, visibility=None, **options):
    return play(styles=[Exchange(**MARKED)], extensions=[SeedMessages(**options)], replies=lambda r: "A", agents=2,
                sample=sample, references=references, oracle=True, rounds=rounds, visibility=visibility)


def seeds(played) -> str:
    return "".join(m.key or "-" for m in played.transcript.of_round(0))


def test_messages_of_the_run_file_are_on_record_before_the_first_round():
    played = run(messages=("A", {"content": "Surely B", "answer": "B"}))
    assert [(m.round, m.agent, m.answer, m.content) for m in played.messages[:2]] == [
        (0, None, "A", "I worked this out step by step, and the answer is A."), (0, None, "B", "Surely B")]


def test_they_are_shown_in_the_first_round_as_answers():
    played = run(messages=({"content": "one", "answer": "A"}, {"content": "two", "answer": "B"}))
    assert [m["content"] for m in played.requests[0].messages] == ["<q>\n\none\n\ntwo"]


def test_they_come_from_a_column_of_the_sample():
    sample = Sample("q", "?", metadata={"answers": [["A", None], ["B", "A"]]})
    assert seeds(run(sample, column="answers")) == "ABA"


@pytest.mark.parametrize(("order", "expected"), [
    ("right_first", "A" * 40 + "B" * 40), ("wrong_first", "B" * 40 + "A" * 40), ("alternating", "AB" * 40)])
def test_forty_right_and_forty_wrong_in_three_orders(order, expected):
    sample = Sample("q", "?", ("x", "y"))
    played = run(sample, right=40, wrong=40, order=order)
    assert seeds(played) == expected
    assert played.prompts[0].count("the answer is A") == 40


def test_answers_that_are_there_come_before_made_up_ones():
    sample = Sample("q", "?", ("x", "y", "z"), metadata={"seeds": [{"content": "proof", "answer": "A"}, "C"]})
    played = run(sample, right=2, wrong=2, order="alternating")
    assert [m.content for m in played.transcript.of_round(0)][::2] == ["proof", "proof"]
    assert seeds(played) == "ACAC"
    assert played.result.notes["replay.seed_messages"] == {"right": 1, "wrong": 1}


@pytest.mark.parametrize(("reference", "expected"), [("5", "678"), ("yes", "no no no".replace(" ", ""))])
def test_wrong_answers_without_options(reference, expected):
    assert seeds(run(references=(reference,), right=0, wrong=3)) == expected


def test_no_wrong_answer_is_known_of_an_open_question():
    played = play(extensions=[SeedMessages(wrong=1)], references=("Paris",), oracle=True, expect_failure=True)
    assert "add some in the column 'seeds'" in played.result.error


def test_what_is_right_needs_the_references():
    assert SeedMessages(right=1).needs == SeedMessages(order="alternating").needs == {"references"}
    assert SeedMessages(messages=("A",)).needs == frozenset()


def test_an_order_of_given_messages():
    sample = Sample("q", "?", metadata={"seeds": ["B", "A", "B", "A", "A"]})
    assert seeds(run(sample, order="alternating")) == "ABABA"
    assert seeds(run(sample, order="wrong_first")) == "BBAAA"


def test_openings_of_several_extensions_are_kept():
    played = play(extensions=[SeedMessages(messages=("A",)), SeedMessages(messages=("B",))], replies=["C"] * 3)
    assert sorted(m.key for m in played.transcript.of_round(0)) == ["A", "B"]


def test_without_seeds_nothing_changes():
    assert run().requests == play(styles=[Exchange(**MARKED)], replies=lambda r: "A", agents=2).requests


def test_strategies_of_madc_order_them():
    Ordered = pytest.importorskip("madplug_madc").Ordered
    played = run(messages=("A", "B", "B", "A", "A"), visibility=Ordered(strategy="most_first"))
    assert [b[-2] for b in played.prompts[0].split("\n\n")[1:]] == ["A", "A", "A", "B", "B"]
