"""A debate in which an agent failed says so, before its answer, wherever it is shown."""

import json
import re

import pytest

from madplug_export.flat import debate_row
from madplug_testing.endpoint import running_endpoint

RUN = """
dataset = {{use = "ask.question", question = "Which river?"}}
models.good = {{use = "openai.chat", model = "good", base_url = "{url}"}}
models.dead = {{use = "openai.chat", model = "dead", base_url = "{url}"}}
[debate]
paradigm = "som.debate"
agents = 3
rounds = 2
models = ["good", "dead", "good"]
on_failed_agent = "drop"
"""
REFUSED = {"error": {"message": "the account is closed", "code": "insufficient_quota"}}


@pytest.fixture
def study(program, tmp_path):
    with running_endpoint(lambda body: "Final answer: Elbe" if body["model"] == "good" else REFUSED) as endpoint:
        (tmp_path / "part.toml").write_text(RUN.format(url=endpoint.url))
        yield program("run", "part.toml")


@pytest.mark.parametrize(("words", "first", "then"), [
    (("read", "runs/part", "question"), "Partial: Agent 2 failed (model 'dead'): ", "Decision [elbe]"),
    (("read", "runs/part"), "Partial: Agent 2 failed (model 'dead'): ", "Decision [elbe]"),
    (("read", "runs/part", "--partial"), "partial: elbe", "1 of 1 debate"),
    (("status", "runs/part"), "partial", "1 done"),
    (("report", "runs/part"), "1 of them partial", "main")])
def test_a_partial_debate_is_called_so_first(study, program, words, first, then):
    shown = program(*words).stdout
    assert 0 <= shown.find(first) < shown.index(then), shown


def test_the_run_s_table_and_an_export_say_so(study, program, tmp_path):
    assert "(1 partial)" in study.stdout
    assert re.search(r"1 of 1 debate of 'main' is partial: an agent failed, and left or got another model "
                     r"\(Agent 2 failed \(model 'dead'\): .*the account is closed.*\); "
                     r"madplug read runs/part --partial", study.stdout)
    program("export", "runs/part", "--output", "out.jsonl")
    row = debate_row(json.loads((tmp_path / "out.jsonl").read_text()))
    assert row["partial"] is True
    assert list(row).index("partial") < list(row).index("answer")


def test_the_provider_s_words_are_on_record(study, program):
    outline = json.loads(program("read", "runs/part", "question", "--json").stdout)
    assert "the account is closed" in outline["missing"][0]
