"""What debates spent: by cell, round, role and model, in one chain, with one tokenizer, on other prices."""

import csv
import json
from contextlib import closing
from dataclasses import replace

import pytest

from madplug import Agent, Caller, Completion, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.store import Call, CallRow, open_recorder
from madplug_report.building import Wanted, build
from madplug_report.contents import caches, costs, paid, spending
from madplug_report.prefixes import Prefixes
from madplug_report.spending import UNKNOWN
from madplug_testing import wait_for

A, B, MODERATOR = (Agent(i, Persona(f"{i}", role=role), model) for i, role, model in (
    (0, "participant", "small"), (1, "participant", "large"), (2, "moderator", "large")))
REASONED = {"completion_tokens_details": {"reasoning_tokens": 5}}

QUESTION = "The question. " * 20


def key(name):
    return name.encode().ljust(16, b"\0")


def call(name, agent, model, number, usage, seconds, purpose="discuss"):
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION + name}]})
    row = CallRow(key(name), Caller("first", 0, "q", agent, purpose, 0, number), model, body)
    return row, Call(Completion(f"the words of {name}", usage), 0, seconds)


CALLS = [
    call("persona", None, "small", 0, Usage(10, 5, 0, 0.001), 1.0, "persona"),
    call("a1", 0, "small", 1, Usage(100, 20, 50, 0.01), 2.0),
    call("b1", 1, "large", 1, Usage(200, 30, 0, 0.02, REASONED), 3.0),
    call("b1 again", 1, "large", 1, Usage(200, 30, 0, 0.02), 4.0),
    call("m2", 2, "large", 2, Usage(400, 40, 0, 0.04), 1.0),
    call("vote", 0, "small", 2, Usage(50, 1, 0, 0.005), 1.0, "vote"),
]


def hexed(*names):
    return tuple(key(name).hex() for name in names)


def debate(cell, share, closing=("vote",), asked=()):
    """One debate of two waves and a vote; of the second cell the first round only, with the same calls. asked: for what
    an extension said after the first round."""
    said = [Message(0, 1, 0, 0, "draft", "x", key="A", model="small", calls=hexed("a1")),
            Message(1, 1, 0, 1, "draft", "x", key="A", model="large", calls=hexed("b1", "b1 again")),
            Message(2, 2, 0, 2, "moderate", "x", answer="", model="large", calls=hexed("m2"))]
    if asked:
        said.insert(2, Message(3, 1, 0, None, "say", "x", calls=hexed(*asked)))
    said = said[:2] if share else said
    names = ["persona", "a1", "b1", "b1 again"] + ([] if share else ["m2", "vote"])
    used = [c.completion.usage for row, c in CALLS if row.key in {key(n) for n in names}]
    tokens = Usage(sum(u.prompt for u in used), sum(u.completion for u in used), sum(u.cached for u in used),
                   sum(u.cost_usd for u in used))
    return DebateResult(cell, 0, Sample("q", "?"), ("A",), (A, B, MODERATOR), tuple(said), Decision("A"),
                        {"qa.accuracy": 1.0}, calls=len(names), tokens=tokens, opening_calls=hexed("persona"),
                        other_calls=() if share else hexed(*closing))


def recorded(folder, *debates, seconds=None):
    """A study's directory with these debates and all calls. seconds: what each call took, in place of its own."""
    with closing(open_recorder(folder)) as store:
        for row, answered in CALLS:
            wait_for(store.keep_call(row, answered if seconds is None else replace(answered, seconds=seconds)))
        for result in debates:
            wait_for(store.finish_debate(result))
    return folder


@pytest.fixture
def folder(tmp_path):
    return recorded(tmp_path / "study", debate("first", False), debate("second", True))


def of_cell(report, name):
    return next(c for c in report["cells"] if c["slug"] == name)


def by(cell, kind):
    return {row["value"]: row for row in cell["spending"]["rows"] if row["by"] == kind}


def test_a_cell_is_charged_what_it_used_whoever_paid_and_every_call_is_paid_once(folder):
    report = build([folder])
    for name, calls, read, written in (("first", 6, 960, 126), ("second", 4, 510, 85)):
        cell = of_cell(report, name)
        assert (cell["calls"], cell["read"], cell["written"], cell["cached"]) == (calls, read, written, 50)
    assert of_cell(report, "first")["usd_per_right"] == pytest.approx(0.096)
    assert costs(report).rows[0][8:10] == ["0.0960", "0.0960"]
    rows = report["paid"]
    assert sum(row["calls"] for row in rows) == len(CALLS)
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(0.096)
    assert {(row["model"], row["purpose"]) for row in rows} == {
        ("small", "persona"), ("small", "discuss"), ("small", "vote"), ("large", "discuss")}
    of_second = build([folder], Wanted(cells=("second",)))["paid"]
    assert sum(row["calls"] for row in of_second) == len(CALLS) - 2, "whichever cell made them"


def test_what_was_used_is_known_by_round_role_and_model_and_what_it_was_for_if_the_debate_says_so(tmp_path, folder):
    first = of_cell(build([folder]), "first")
    rounds = by(first, "round")
    assert {name: row["written"] for name, row in rounds.items()} == {
        "before round 1": 5, "1": 80, "2": 40, "decision, phases, metrics": 1}
    assert (rounds["decision, phases, metrics"]["calls"], rounds["1"]["reasoned"]) == (1, 5)
    assert {name: row["calls"] for name, row in by(first, "role").items()} == {
        "persona": 1, "participant": 3, "moderator": 1, "vote": 1}
    assert {name: row["read"] for name, row in by(first, "model").items()} == {"small": 160, "large": 800}
    assert by(first, "model")["large"]["cost_usd"] == pytest.approx(0.08)
    silent = recorded(tmp_path / "silent", debate("first", False, closing=()))
    rounds = by(of_cell(build([silent]), "first"), "round")
    assert (rounds[UNKNOWN]["calls"], rounds[UNKNOWN]["written"]) == (1, None)
    assert "decision, phases, metrics" not in rounds


def test_the_longest_chain_adds_waves_and_takes_the_longest_of_each_in_the_times_of_its_study(tmp_path, folder):
    other = recorded(tmp_path / "other", debate("first", False), seconds=1.0)
    between = recorded(tmp_path / "between", debate("first", False, closing=(), asked=("vote",)))
    redone = debate("first", True)
    redone = recorded(tmp_path / "redone", replace(redone, messages=(
        *(replace(m, retracted=True) for m in redone.messages), *(replace(m, id=m.id + 2) for m in redone.messages))))
    first, second, again, asked, twice = (
        cell["spending"]["critical"] for cell in build([folder, other, between, redone])["cells"])
    assert twice["calls"] == 2 + 2, "a round waits for one that was retracted"
    assert first == {"calls": 2 + 1, "seconds": 7.0 + 1.0, "queued": 0.0}
    assert second == {"calls": 2, "seconds": 7.0, "queued": 0.0}
    assert again["seconds"] == 2.0 + 1.0
    assert (asked["calls"], asked["seconds"]) == (2 + 1 + 1, 7.0 + 1.0 + 1.0)


def test_calls_that_a_study_reuses_are_in_its_chain_and_rounds_and_are_not_paid_again(tmp_path, folder):
    with closing(open_recorder(tmp_path / "later")) as store:
        wait_for(store.finish_debate(debate("first", False)))
    (tmp_path / "later/manifest.json").write_text(json.dumps({"runs": [{"reuse": [str(folder)]}, {"reuse": ["gone"]}]}))
    before, after = (build([path]) for path in (folder, tmp_path / "later"))
    assert of_cell(after, "first")["spending"] == of_cell(before, "first")["spending"]
    assert after["paid"] == []


def test_a_debate_that_failed_before_its_first_call_counts_for_calls_and_for_the_chain(tmp_path):
    failed = replace(debate("first", False, closing=()), sample=Sample("q2", QUESTION), messages=(), opening_calls=(),
                     other_calls=(), decision=None, error="ModelError: gone")
    alone, both = (of_cell(build([recorded(tmp_path / name, *debates)]), "first") for name, debates in (
        ("alone", [debate("first", False, closing=())]), ("both", [debate("first", False, closing=()), failed])))
    assert both["debates"] == 2
    for name in ("calls", "seconds"):
        assert both["spending"]["critical"][name] == alone["spending"]["critical"][name] / 2


def test_what_a_prefix_cache_could_have_served_is_counted_in_blocks_by_model(folder):
    assert of_cell(build([folder]), "first")["spending"]["by_call"]["cacheable"] is None
    report = build([folder], Wanted(prefixes=True))
    known = {name: len(f"user\n{QUESTION}{name}\n") for name in ("a1", "vote", "b1 again", "m2")}
    block = 16 * 4  # of 285 characters that all prompts begin with, four blocks are full
    small, large = (by(of_cell(report, "first"), "model")[name]["cacheable"] for name in ("small", "large"))
    assert small == int(4 * block * (100 / known["a1"] + 50 / known["vote"]))
    assert large == int(4 * block * (200 / known["b1 again"] + 400 / known["m2"]))
    assert caches(report).rows[0] == ["first", "960", "5.2%", f"{100 * (small + large) / 960:.1f}%"]


def test_the_samples_of_one_request_cannot_read_each_others_prompt_from_a_cache():
    cache, prompt = Prefixes(), [{"role": "user", "content": QUESTION}]
    first, second, another = (cache.share("m", prompt, samples) for samples in (2, 2, 1))
    assert first == second == 0 < another


def test_each_model_has_a_price_of_its_own_and_one_without_costs_what_was_paid(tmp_path, folder):
    small = ((160 - 50) * 1 + 50 * 0.5 + 26 * 10) / 1e6
    for prices, large in ((("small=1/10/0.5",), 0.08), (("small=1/10/0.5", "large=2/4"), (800 * 2 + 100 * 4) / 1e6)):
        report = build([folder], Wanted(prices=prices))
        assert of_cell(report, "first")["spending"]["at_price"] == pytest.approx(small + large)
        assert sum(row["at_price"] for row in report["paid"]) == pytest.approx(small + large)
        assert by(of_cell(report, "first"), "model")["large"]["at_price"] == pytest.approx(large)
        assert all("USD at --price" in table(report).head for table in (costs, paid))
    assert "small 1/10/0.5, large 2/4/2; other models as they were paid" in costs(report).notes[1]
    silent = recorded(tmp_path / "silent", debate("first", False, closing=()))
    unknown = of_cell(build([silent], Wanted(prices=("small=1/10",))), "first")
    assert unknown["spending"]["at_price"] is None, "one call is behind no message"


def test_a_price_of_no_model_names_the_nearest_and_one_given_twice_is_refused(folder, refused):
    assert "--price smal=...: no model of this name was asked; did you mean 'small'?" in refused(
        folder, "--price", "smal=1/2")
    assert "is given twice" in refused(folder, "--price", "small=1/2", "--price", "small=1/3")


@pytest.mark.parametrize("text", ["other", "other=1", "=1/2", "x=1/b", "x=-1/2", "x=1/2/3/4"])
def test_a_price_that_is_none_says_how_to_write_one(folder, refused, text):
    assert f"--price {text}: expected NAME=READ/WRITTEN" in refused(folder, "--price", text)


def test_what_was_written_can_be_counted_with_one_tokenizer_if_it_can_be_loaded(folder, tmp_path, refused):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    report = build([folder], Wanted(tokenizer=str(tmp_path / "tokenizer.json")))
    assert of_cell(report, "first")["spending"]["by_call"]["written"] == sum(
        len(call.completion.text.split()) for _, call in CALLS)
    assert any("tokenizer.json" in name for name in costs(report).head)
    (tmp_path / "not.json").write_text("{}")
    assert "is neither a tokenizer.json nor an encoding" in refused(folder, "--tokenizer", tmp_path / "not.json")


def test_costs_are_in_files(folder, program, tmp_path):
    program("report", folder, "--output", tmp_path / "out", status=0)
    text = (tmp_path / "out" / "spending.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["by"] for row in rows} == {"round", "role", "model"}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Cost by round, role and model" in page
    assert len(json.loads((tmp_path / "out" / "report.json").read_text())["paid"]) == 4


@pytest.mark.parametrize("scored", [False, True])
def test_columns_that_count_what_metrics_asked_models_for_say_so_if_they_did(tmp_path, scored):
    one = debate("first", False)
    folder = recorded(tmp_path / "study", replace(one, calls=one.calls - scored))
    report = build([folder], Wanted(prefixes=True))
    for table, columns in ((costs, "reasoned"), (caches, "could be cached")):
        assert any(note.startswith(f"{columns}: with what metrics asked") for note in table(report).notes) == scored


def test_a_study_without_calls_has_no_table_of_costs_by_call(study, kit):
    report = build([study([kit.Drawn("a")], samples=3)])
    assert (spending(report).rows, report["paid"]) == ([], [])
    assert costs(report).rows[0][1] == "6.0"
