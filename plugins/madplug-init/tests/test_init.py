"""A run file for one's own questions, and one request to each model."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import madplug
from madplug_testing.endpoint import running_endpoint


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def said(*words, status=0):
    done = CliRunner().invoke(madplug.main, [*map(str, words)])
    assert done.exit_code == status, done.output
    return done.output


def test_every_method_that_is_offered_gives_a_run_file_that_check_accepts_or_is_refused_with_what_it_lacks():
    written = []
    for method in (component["name"] for component in madplug.list_components("paradigm")):
        done = CliRunner().invoke(madplug.main, ["init", method, "--output", f"{method}.toml"])
        assert "Traceback" not in done.output
        if done.exit_code == 0:
            cells = madplug.check(Path(f"{method}.toml"))["cells"]
            written += [method for cell in cells if cell["cell"] == "debate" and cell["samples"] == 2]
        else:
            assert done.output.count("madplug: ")
            assert not Path(f"{method}.toml").exists()
            assert written or not Path("questions.jsonl").exists()
    assert {"som.debate", "baselines.self_consistency"} <= set(written)


def test_a_method_that_does_not_fit_says_so_of_the_rows_and_not_of_agents_that_nobody_named():
    if not any(component["name"] == "oversight.naive" for component in madplug.list_components("paradigm")):
        pytest.skip("madplug-oversight is not installed")
    Path("mine.csv").write_text("question,A,B,C,reference\nWhat?,this,that,none,B\n")
    refused = said("init", "oversight.naive", "--questions", "mine.csv", status=2)
    assert "'row-1' does not fit oversight.judge of cell 'debate': it has 3 choices" in refused
    assert "debate.agents" not in refused
    assert "put your questions there" in said("init", "oversight.naive")


@pytest.mark.parametrize(("reference", "answers"), [("4", "number"), ("yes", "yesno"), ("Oslo", "text")])
def test_the_rows_of_a_file_of_ones_own_choose_the_answer_format(reference, answers):
    Path("mine.csv").write_text(f"question,reference\nWhat?,{reference}\n")
    told = said("init", "--questions", "mine.csv", "--base-url", "http://127.0.0.1:9/v1")
    assert f"read by answers.{answers}; columns that have them are named there" in told
    assert f'use = "answers.{answers}"' in Path("study.toml").read_text()
    assert "already exists" in said("init", status=2)
    Path("bad.csv").write_text("question,is\nWhat?,4\n")
    refused = said("init", "--questions", "bad.csv", "--output", "bad.toml", status=2)
    assert "it has question, is" in refused
    assert "--column reference=COLUMN: names the reference" in refused
    assert "cannot be written: No such file" in said("init", "--output", "gone/study.toml", status=2)


@pytest.mark.parametrize(("header", "columns", "words"), [
    ("question,x,y,reference", 'choices = ["x", "y"]', ["--column", "choices=x,y"]),
    ("Frage,A,B,Answer", 'question = "Frage", reference = "Answer", choices = ["A", "B"]', []),
    ("prompt,option_1,option_2,is", 'reference = "is", question = "prompt", choices = ["option_1", "option_2"]',
     ["--column", "reference=is"]),
    ("prompt;A;B;reference", 'question = "prompt", choices = ["A", "B"]', ["--delimiter", ";"])])
def test_columns_of_other_names_are_named_or_guessed(header, columns, words):
    rows = "What?,this,that,B\nWho?,me,me,A\n"
    Path("mine.csv").write_text(f"{header}\n{rows.replace(',', ';') if ';' in header else rows}")
    if "--delimiter" in words:
        refused = said("init", "--questions", "mine.csv", status=2)
        assert f"has one column, '{header}'; with delimiter = \";\" it has several" in refused
        assert "--delimiter: says what separates the columns" in refused
        assert "has no column" not in refused
    told = said("init", "--questions", "mine.csv", *words)
    assert "'row-2' has two equal choices" in told
    run_file = Path("study.toml").read_text()
    assert f"columns = {{{columns}}}    # " in run_file
    assert 'use = "answers.choice"' in run_file
    assert ("guessed that" in told) == ("# guessed: " in run_file) == ("question,x" not in header)


def test_of_rows_that_fit_no_format_those_are_named_that_keep_the_nearest_one_from_fitting():
    Path("mine.csv").write_text("question,A,B,reference\n" + "What?,this,that,A\n" * 24 + "Who?,me,you,E\n")
    refused = said("init", "--questions", "mine.csv", status=2)
    assert "line 26, column 'reference': the reference 'E' is not a choice" in refused
    assert refused.count("madplug: ") == 1


def test_numbers_that_may_count_from_1_are_refused_until_an_option_says_from_where():
    Path("mine.csv").write_text("question,A,B,C,answer\nWhat?,this,that,none,1\n")
    refused = said("init", "--questions", "mine.csv", status=2)
    assert "the reference '1' is 'this' counted from 1 and 'that' from 0" in refused
    assert "--reference-as: says it" in refused
    said("init", "--questions", "mine.csv", "--reference-as", "position")
    assert 'reference_as = "position"' in Path("study.toml").read_text()
    Path("mine.csv").write_text("question,A,B,C,answer\nWhat?,this,that,none,A\nWhich?,B,C,x,C\n")
    assert "--reference-as: says it" in said("init", "--questions", "mine.csv", "--output", "2.toml", status=2)
    said("init", "--questions", "mine.csv", "--reference-as", "letter", "--output", "2.toml")


def test_a_ping_is_one_request_to_each_model_and_says_who_does_not_answer():
    with running_endpoint(lambda body: "Yes.") as endpoint:
        said("init", "--base-url", endpoint.url)
        assert "main answers 'Yes.'" in said("check", "study.toml", "--ping")
        assert endpoint.endpoint.stats()["requests"] == 1
    assert "main does not answer: the connection failed" in said("check", "study.toml", "--ping", status=1)
