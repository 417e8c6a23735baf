"""What a recorder takes and a reader gives, by example: calls, figures, what cannot be recorded, and following."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from madplug import (
    Agent,
    Caller,
    Completion,
    ComponentError,
    DebateResult,
    Decision,
    Message,
    Persona,
    Sample,
    Spending,
    StudyError,
    Usage,
    UserError,
)
from madplug.store import Call, CallRow, DebateId, Scope, Totals, open_recorder, open_study, sample_digest

ID = DebateId("c", 0, "q")
AGENTS = (Agent(0, Persona("one"), "m"), Agent(1, Persona("two", votes=False), None))


def said(id, content="A", **more):
    return Message(id, 1, 0, 0, "draft", content, **more)


def ended(*messages, id=ID, **more):
    """A debate that was decided, unless it has an error."""
    decision = None if "error" in more else Decision("A", "A", scores={"A": 1.0})
    parts = {"agents": AGENTS, "decision": decision, "metrics": {"x": 1.0}} | more
    return DebateResult(id.cell, id.repeat, Sample(id.sample, "?", ("one", "two")), ("A",), messages=messages, **parts)


def call_row(key, **more):
    caller = Caller(*ID, agent=1, purpose="discuss", round=2, nth=3)
    return CallRow(key, replace(caller, **more), "m", '{"messages":[],"params":{},"form":null}')


def cyclic():
    table = {}
    table["self"] = table
    return table


def deep(levels=100_000):
    found = []
    for _ in range(levels):
        found = [found]
    return found


class Mute:
    """An object that cannot be written down."""

    def __str__(self):
        raise RuntimeError("no words")


UNSTORABLE = {"cyclic": cyclic(), "deep": deep(), "huge": 10**5000, "mute": Mute()}
STORABLE = {"not a number as a key": {float("nan"): 1}, "lone surrogate": "\ud800", "not a number": float("nan"),
            "a set": {"b", "a"}, "a surrogate as a key": {"\ud800": 1}}


def run(*writes):
    """Wait for writes, one after the other."""
    async def all_of_them():
        for write in writes:
            await write
    asyncio.run(all_of_them())


@pytest.fixture
def store(tmp_path):
    """A recorder of a directory, and a reader of what it recorded."""
    with closing(open_recorder(tmp_path)) as recorder, open_study(tmp_path) as reader:
        yield SimpleNamespace(recorder=recorder, reader=reader)


def start(store, *messages, agents=AGENTS):
    store.recorder.start_debate(ID, ended().sample, ("A",))
    store.recorder.keep_agents(ID, agents)
    for message in messages:
        store.recorder.keep_message(ID, message)
    run(store.recorder.keep_fact("now", 1))


def test_figures_say_what_the_result_says(store):
    result = ended(said(0, key="A"), calls=3, retries=1, tokens=Usage(5, 6, 2, 0.25), seconds=1.5)
    run(store.recorder.finish_debate(result))
    assert dict(next(store.reader.figures())) == {
        "cell": "c", "repeat": 0, "sample": "q", "error": None, "decided": True, "agreed": False, "rounds": 1,
        "calls": 3, "retries": 1, "prompt": 5, "completion": 6, "cached": 2, "cost_usd": 0.25, "seconds": 1.5,
        "metrics": {"x": 1.0}}


@pytest.mark.parametrize("logprobs", [(None, None), ((-0.5,), None), ((-0.5,), ({"A": -0.5},)), (None, ({"A": 0.0},))])
def test_log_probabilities_are_read_back(store, logprobs):
    call = Call(Completion("A", Usage(), *logprobs))
    run(store.recorder.keep_call(call_row(b"\x01"), call))
    assert store.recorder.call(b"\x01") == call


def test_a_call_is_read_back_by_its_key_and_as_a_row(store):
    call = Call(Completion("A", Usage(2, 3, 1, 0.5, {"id": 7}), (-0.5,)), 1, 0.25)
    run(store.recorder.keep_call(call_row(b"\x01\xff"), call))
    assert store.recorder.call(b"\x01\xff") == store.reader.call("01ff") == call
    assert store.reader.call("nonsense") is None
    assert list(store.reader.calls("another")) == []
    (row,) = store.reader.calls("c")
    assert row.pop("at") > 1e9
    assert row == {
        "key": "01ff", "cell": "c", "repeat": 0, "sample": "q", "agent": 1, "purpose": "discuss", "round": 2, "nth": 3,
        "model": "m", "request": {"messages": [], "params": {}, "form": None}, "text": "A", "logprobs": [-0.5],
        "usage": {"prompt": 2, "completion": 3, "cached": 1, "cost_usd": 0.5, "raw": {"id": 7}}, "retries": 1,
        "seconds": 0.25}


def test_the_numbers_of_calls_are_read_without_their_texts(store):
    usage = Usage(20, 9, 4, 0.5, {"completion_tokens_details": {"reasoning_tokens": 7}})
    run(store.recorder.keep_call(call_row(b"\x01"), Call(Completion("A", usage), 1, 0.25)),
        store.recorder.keep_call(call_row(b"\x02"), Call(Completion("B", Usage(1, 2)))))
    first, second = store.reader.call_figures()
    assert first == (b"\x01", "c", 0, "q", 1, "discuss", 2, "m", 20, 9, 4, 7, 0.5, 0.25, 1)
    assert (second.reasoning, second.cost_usd) == (0, None)
    assert [found.key for found in store.reader.call_figures([b"\x02", "ff", "01"])] == [b"\x02", b"\x01"]


def test_facts_and_problems(store):
    store.recorder.keep_problem("old")
    run(store.recorder.forget_problems())
    for _ in range(2):
        store.recorder.keep_problem("new")
    run(store.recorder.keep_fact("kept.x", {"a": (1, 2)}))
    assert store.reader.problems() == ["new"]
    assert store.reader.fact("kept.x") == {"a": [1, 2]}
    assert store.reader.fact("kept.y") is None


@pytest.mark.parametrize("what", UNSTORABLE)
@pytest.mark.parametrize("place", ["notes", "metrics", "message", "agents", "sample", "decision"])
def test_what_cannot_be_recorded_fails_its_debate_by_name_and_no_other(store, what, place):
    bad = UNSTORABLE[what]
    result = {
        "notes": lambda: ended(said(0), notes={"n": bad}), "metrics": lambda: ended(said(0), metrics={"n": bad}),
        "message": lambda: ended(said(0), said(1, data={"n": bad})),
        "agents": lambda: ended(said(0), agents=(Agent(0, Persona("p", description=bad), "m"),)),
        "sample": lambda: replace(ended(said(0)), sample=Sample("q", "?", metadata={"n": bad})),
        "decision": lambda: replace(ended(said(0)), decision=Decision("A", scores={"A": bad}))}[place]()
    others = [ended(said(0), id=DebateId("c", 0, f"other {i}")) for i in range(3)]

    async def write():
        return await asyncio.gather(*map(store.recorder.finish_debate, [others[0], result, *others[1:]]),
                                    return_exceptions=True)

    first, refused, *rest = asyncio.run(write())
    assert (first, rest) == (None, [None, None])
    assert isinstance(refused, ComponentError)
    assert str(refused).startswith("cell 'c', repeat 0, sample 'q'")
    assert len(store.recorder.done()) == 3
    assert len(list(store.reader.debates())) == 3


def test_what_cannot_be_recorded_of_a_started_debate_leaves_the_rest(store):
    start(store, said(0))
    with pytest.raises(ComponentError, match=r"sample 'q': message 1 cannot be recorded: "):
        store.recorder.keep_message(ID, said(1, data={"n": cyclic()}))
    run(store.recorder.finish_debate(ended(said(0), error="failed")))
    assert store.reader.debate(ID).messages == (said(0),)


def test_what_is_nested_too_deeply_to_be_read_back_is_refused(store):
    refused = []
    for levels in range(100, 1000, 50):
        id = DebateId("c", 0, str(levels))
        try:
            run(store.recorder.finish_debate(ended(id=id, notes={"n": deep(levels)})))
        except ComponentError:
            refused.append(levels)
    assert refused == list(range(refused[0], 1000, 50))
    assert refused[0] == 500  # the record itself is one level more
    assert len(list(store.reader.debates())) == 18 - len(refused)


@pytest.mark.parametrize("what", STORABLE)
def test_what_json_has_no_word_for_is_recorded_as_something_near(store, what):
    run(store.recorder.finish_debate(ended(said(0, data={"n": STORABLE[what]}))))
    assert list(store.recorder.done()) == [ID]
    for line in store.reader.records():
        json.loads(line)
        line.encode()


def test_a_message_of_a_debate_that_was_not_started_is_refused_and_a_second_one_with_its_id(store):
    with pytest.raises(StudyError, match=r"sample 'q' was not started"):
        store.recorder.keep_message(ID, said(0))
    with pytest.raises(ComponentError, match="two messages have the same id"):
        run(store.recorder.finish_debate(ended(said(0), said(0))))


def test_a_follower_is_told_what_is_new_and_nothing_else(store):
    changes, cursor = store.reader.since()
    assert (changes.debates, changes.calls) == ({}, 0)
    start(store, said(0))
    run(store.recorder.keep_call(call_row(b"k"), Call(Completion("A"))))
    changes, cursor = store.reader.since(cursor)
    assert {id: (p.outcome, p.messages) for id, p in changes.debates.items()} == {ID: ("running", 1)}
    assert changes.calls == 1
    changes, cursor = store.reader.since(cursor)
    assert (changes.debates, changes.calls) == ({}, 0)
    store.recorder.keep_message(ID, said(1))
    run(store.recorder.keep_fact("now", 2))
    changes, cursor = store.reader.since(cursor)
    assert changes.debates[ID].messages == 2
    other = DebateId("c", 1, "q")
    run(store.recorder.finish_debate(ended(said(0), said(1), said(2))),
        store.recorder.finish_debate(ended(id=other, error="no")))
    changes, cursor = store.reader.since(cursor)
    assert {id: (p.outcome, p.messages) for id, p in changes.debates.items()} == {ID: ("done", 3), other: ("failed", 0)}
    assert store.reader.since(cursor) == (type(changes)(), cursor)


def test_a_follower_sees_a_debate_that_starts_again_and_a_retraction(store):
    start(store, said(0), said(1))
    cursor = store.reader.since()[1]
    store.recorder.keep_message(ID, said(1, retracted=True))
    run(store.recorder.keep_fact("now", 2))
    changes, cursor = store.reader.since(cursor)
    assert list(changes.debates) == [ID]
    start(store)
    assert store.reader.since(cursor)[0].debates[ID].messages == 0
    with pytest.raises(UserError, match="'yesterday' is not a cursor"):
        store.reader.since("yesterday")


def test_samples_that_say_the_same_have_the_same_digest():
    sample = Sample("q", "?", ("a",), metadata={"k": {1, 2, 3}})
    digest = sample_digest(sample, ("A",))
    assert digest == sample_digest(Sample("q", "?", ("a",), metadata={"k": {3, 2, 1}}), ("A",))
    for other in (replace(sample, question="!"), replace(sample, choices=()), replace(sample, group="g"),
                  replace(sample, metadata={}), replace(sample, images=("data:x",))):
        assert sample_digest(other, ("A",)) != digest
    assert sample_digest(sample, ("B",)) != digest


def test_what_calls_used_is_added_up(store):
    run(store.recorder.keep_call(call_row(b"k"), Call(Completion("A", Usage(3, 4, 0, 0.5)), 2, 1.5)),
        store.recorder.keep_call(call_row(b"free"), Call(Completion("B"))))
    assert store.reader.spent([b"k", b"unknown", "not hexadecimal"]) == Spending(1, 2, 3, 4, 0, 0.5, 1.5)
    assert store.reader.spent([b"k".hex(), b"free"]) == Spending(2, 2, 3, 4, 0, None, 1.5)
    assert store.reader.spent([]) == Spending()
    assert store.reader.totals() == Totals(2, 7, 0.5, 2, unpriced=1)


def test_what_left_the_run_file_is_not_read(store):
    """Overview, figures and debates: cells, repeats, samples and metrics."""
    scope = Scope(frozenset("ab"), 2, {"a": frozenset({"q1"})}, {"b": frozenset({"new", "table"})})
    ids = [DebateId(cell, repeat, f"q{i}") for cell in "abc" for repeat in range(3) for i in range(4)]
    metrics = {"new": 1.0, "old": 0.0, "table": None, "table.part": 1.0}
    more = {"calls": 2, "tokens": Usage(5, 1), "metrics": metrics}
    store.recorder.start_debate(DebateId("d", 0, "q"), Sample("q", "?"), ())
    run(*(store.recorder.finish_debate(ended(id=id, **more)) for id in ids), store.recorder.keep_fact("scope", scope))
    cells = store.reader.overview()
    assert [(c.cell, c.done, c.calls, c.prompt, c.repeats) for c in cells] == [("a", 6, 12, 30, 2), ("b", 8, 16, 40, 2)]
    left = [id for id in ids if id.cell != "c" and id.repeat < 2 and id[::2] != ("a", "q1")]
    assert list(store.reader.ids()) == [DebateId(f["cell"], f["repeat"], f["sample"]) for f in store.reader.figures()]
    assert [DebateId(r.cell, r.repeat, r.sample.id) for r in store.reader.debates()] == sorted(left)
    assert set(store.reader.debate(DebateId("b", 0, "q1")).metrics) == {"new", "table", "table.part"}
    assert store.reader.debate(DebateId("c", 0, "q0")) is None
    assert store.recorder.debate(DebateId("c", 0, "q0")) is not None, "a run may need it again"


def test_a_thousand_cells_that_have_lost_a_sample_are_counted(store):
    dropped = {f"c{i}": frozenset({"q1"}) for i in range(1100)}
    run(*(store.recorder.finish_debate(ended(id=DebateId("c7", 0, f"q{i}"))) for i in range(2)),
        store.recorder.keep_fact("scope", Scope(frozenset(dropped), 1, dropped)))
    assert [(c.cell, c.done) for c in store.reader.overview()] == [("c7", 1)]
