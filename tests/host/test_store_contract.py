"""What a recorder takes and a reader gives, by example: calls, figures, what cannot be recorded, and following."""

import asyncio
import json
from dataclasses import replace
from fractions import Fraction
from functools import partial

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
    StudyError,
    Usage,
    UserError,
)
from madplug.store import Call, CallRow, DebateId, Scope, Spent, Totals, open_recorder, open_study, sample_digest
from madplug.store.encode import MOST_TOKENS, clamp_usage

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


class Both:
    """A recorder of a directory, and a reader of what it recorded."""

    def __init__(self, folder):
        self.recorder, self.reader = open_recorder(folder), open_study(folder)

    def write(self, *steps):
        async def all_of_them():
            for step in steps:
                done = step()
                if hasattr(done, "__await__"):
                    await done
        asyncio.run(all_of_them())


@pytest.fixture
def store(tmp_path):
    both = Both(tmp_path)
    yield both
    both.reader.close()
    both.recorder.close()


def start(store, *messages, agents=AGENTS):
    recorder = store.recorder
    store.write(lambda: recorder.start_debate(ID, ended().sample, ("A",)), lambda: recorder.keep_agents(ID, agents),
                *(lambda m=m: recorder.keep_message(ID, m) for m in messages), lambda: recorder.keep_fact("now", 1))


def test_figures_say_what_the_result_says(store):
    result = ended(said(0, key="A"), calls=3, retries=1, tokens=Usage(5, 6, 2, 0.25), seconds=1.5)
    store.write(lambda: store.recorder.finish_debate(result))
    assert dict(next(store.reader.figures())) == {
        "cell": "c", "repeat": 0, "sample": "q", "error": None, "decided": True, "agreed": False, "rounds": 1,
        "calls": 3, "retries": 1, "prompt": 5, "completion": 6, "cached": 2, "cost_usd": 0.25, "seconds": 1.5,
        "metrics": {"x": 1.0}}


@pytest.mark.parametrize("logprobs", [(None, None), ((-0.5,), None), ((-0.5,), ({"A": -0.5},)), (None, ({"A": 0.0},))])
def test_log_probabilities_are_read_back(store, logprobs):
    call = Call(Completion("A", Usage(), *logprobs))
    store.write(lambda: store.recorder.keep_call(call_row(b"\x01"), call))
    assert store.recorder.call(b"\x01") == call


def test_a_call_is_read_back_by_its_key_and_as_a_row(store):
    call = Call(Completion("A", Usage(2, 3, 1, 0.5, {"id": 7}), (-0.5,)), 1, 0.25)
    store.write(lambda: store.recorder.keep_call(call_row(b"\x01\xff"), call))
    assert store.recorder.call(b"\x01\xff") == store.reader.call("01ff") == call
    assert store.reader.call("nonsense") is None
    (row,) = store.reader.calls()
    assert row.pop("at") > 1e9
    assert row == {
        "key": "01ff", "cell": "c", "repeat": 0, "sample": "q", "agent": 1, "purpose": "discuss", "round": 2, "nth": 3,
        "model": "m", "request": {"messages": [], "params": {}, "form": None}, "text": "A", "logprobs": [-0.5],
        "usage": {"prompt": 2, "completion": 3, "cached": 1, "cost_usd": 0.5, "raw": {"id": 7}}, "retries": 1,
        "seconds": 0.25}


def test_the_numbers_of_calls_are_read_without_their_texts(store):
    usage = Usage(20, 9, 4, 0.5, {"completion_tokens_details": {"reasoning_tokens": 7}})
    store.write(lambda: store.recorder.keep_call(call_row(b"\x01"), Call(Completion("A", usage), 1, 0.25)),
                lambda: store.recorder.keep_call(call_row(b"\x02"), Call(Completion("B", Usage(1, 2)))))
    first, second = store.reader.call_figures()
    assert first == (b"\x01", "c", 0, "q", 1, "discuss", 2, "m", 20, 9, 4, 7, 0.5, 0.25)
    assert (first.prompt, first.completion, first.cached, first.reasoning) == (20, 9, 4, 7)
    assert (second.reasoning, second.cost_usd) == (0, None)
    assert [found.key for found in store.reader.call_figures([b"\x02", "ff", "01"])] == [b"\x02", b"\x01"]


def test_the_calls_of_a_message_are_found_by_the_keys_it_names(store):
    keys = [bytes([i]) * 16 for i in range(4)]
    store.write(*(lambda k=k: store.recorder.keep_call(call_row(k), Call(Completion(k.hex()))) for k in keys),
                lambda: store.recorder.finish_debate(ended(said(0, calls=(keys[2].hex(), keys[3].hex())))))
    (message,) = store.reader.debate(ID).messages
    assert [row["text"] for row in store.reader.calls(keys=message.calls)] == list(message.calls)
    assert len(list(store.reader.calls("c"))) == 4
    assert list(store.reader.calls("another")) == []


def test_facts_and_problems(store):
    store.write(lambda: store.recorder.keep_problem("old"), lambda: store.recorder.forget_problems(),
                lambda: store.recorder.keep_problem("new"), lambda: store.recorder.keep_problem("new"),
                lambda: store.recorder.keep_fact("kept.x", {"a": (1, 2)}))
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
    store.write(lambda: store.recorder.finish_debate(ended(said(0), error="failed")))
    assert store.reader.debate(ID).messages == (said(0),)


def test_what_is_nested_too_deeply_to_be_read_back_is_refused(store):
    refused = []
    for levels in range(100, 1000, 50):
        id = DebateId("c", 0, str(levels))
        try:
            store.write(partial(store.recorder.finish_debate, ended(id=id, notes={"n": deep(levels)})))
        except ComponentError:
            refused.append(levels)
    assert refused == list(range(refused[0], 1000, 50))
    assert refused[0] == 500  # the record itself is one level more
    assert len(list(store.reader.debates())) == 18 - len(refused)


@pytest.mark.parametrize("what", STORABLE)
def test_what_json_has_no_word_for_is_recorded_as_something_near(store, what):
    store.write(lambda: store.recorder.finish_debate(ended(said(0, data={"n": STORABLE[what]}))))
    assert list(store.recorder.done()) == [ID]
    for line in store.reader.records():
        json.loads(line)
        line.encode()


def test_a_debate_must_be_started_before_its_messages(store):
    with pytest.raises(StudyError, match=r"sample 'q' was not started"):
        store.recorder.keep_message(ID, said(0))


def test_two_messages_with_one_id_are_refused(store):
    with pytest.raises(ComponentError, match="two messages have the same id"):
        store.write(lambda: store.recorder.finish_debate(ended(said(0), said(0))))


@pytest.mark.parametrize("prompt", [2**63, 10**18, 10**400, -1, float("nan"), float("inf"), "many", None])
def test_an_absurd_usage_is_clamped_and_marked_and_sums_stay_exact(store, prompt):
    usage = Usage(prompt, 1, 0, 0.5)
    store.write(*(lambda i=i: store.recorder.keep_call(call_row(bytes([i])), Call(Completion("A", usage)))
                  for i in range(20)),
                lambda: store.recorder.finish_debate(ended(said(0), calls=20, tokens=Usage(prompt, 20))))
    totals = store.reader.totals()
    kept = store.recorder.call(b"\x01").completion.usage
    assert kept.raw == {"clamped": True}
    assert (type(totals.tokens), totals.tokens) == (int, 20 * (kept.prompt + 1))
    assert totals.tokens <= 20 * (MOST_TOKENS + 1)
    assert store.reader.debate(ID).tokens.raw == {"clamped": True}


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, 1e300, "free"])
def test_an_absurd_cost_becomes_unknown(store, cost):
    store.write(lambda: store.recorder.keep_call(call_row(b"k"), Call(Completion("A", Usage(1, 1, 0, cost)))))
    assert store.recorder.call(b"k").completion.usage == Usage(1, 1, 0, None, {"clamped": True})
    assert store.reader.totals().cost_usd == 0.0


def test_a_usage_that_can_be_meant_is_left_alone():
    for usage in (Usage(), Usage(10, 5, 2, 0.1, {"a": 1}), Usage(MOST_TOKENS, 0)):
        assert clamp_usage(usage) is usage
    assert clamp_usage(Usage(3 * MOST_TOKENS, 0), calls=3) == Usage(3 * MOST_TOKENS, 0)


@pytest.mark.parametrize("cost", [None, 0.1])
def test_a_usage_without_details_of_the_endpoint_gets_an_empty_table(cost):
    """If this fails: a model that reports `raw=None` keeps its slot for ever, because what reads it raises."""
    assert clamp_usage(Usage(3, 3, 0, cost, None)) == Usage(3, 3, 0, cost)


def test_a_follower_is_told_what_is_new_and_nothing_else(store):
    changes, cursor = store.reader.since()
    assert (changes.debates, changes.calls) == ({}, 0)
    start(store, said(0))
    store.write(lambda: store.recorder.keep_call(call_row(b"k"), Call(Completion("A"))))
    changes, cursor = store.reader.since(cursor)
    assert {id: (p.outcome, p.messages) for id, p in changes.debates.items()} == {ID: ("running", 1)}
    assert changes.calls == 1
    changes, cursor = store.reader.since(cursor)
    assert (changes.debates, changes.calls) == ({}, 0)
    store.write(lambda: store.recorder.keep_message(ID, said(1)), lambda: store.recorder.keep_fact("now", 2))
    changes, cursor = store.reader.since(cursor)
    assert changes.debates[ID].messages == 2
    other = DebateId("c", 1, "q")
    store.write(lambda: store.recorder.finish_debate(ended(said(0), said(1), said(2))),
                lambda: store.recorder.finish_debate(ended(id=other, error="no")))
    changes, cursor = store.reader.since(cursor)
    assert {id: (p.outcome, p.messages) for id, p in changes.debates.items()} == {ID: ("done", 3), other: ("failed", 0)}
    assert store.reader.since(cursor) == (type(changes)(), cursor)


def test_a_follower_sees_a_debate_that_starts_again_and_a_retraction(store):
    start(store, said(0), said(1))
    cursor = store.reader.since()[1]
    store.write(lambda: store.recorder.keep_message(ID, said(1, retracted=True)),
                lambda: store.recorder.keep_fact("now", 2))
    changes, cursor = store.reader.since(cursor)
    assert list(changes.debates) == [ID]
    start(store)
    assert store.reader.since(cursor)[0].debates[ID].messages == 0


def test_what_is_no_cursor_is_a_users_mistake(store):
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


def test_numbers_of_another_library_are_kept_as_those_of_the_language():
    found = clamp_usage(Usage(Fraction(3), Fraction(2), True, Fraction(1, 2)))  # a real number, as NumPy's are
    assert found == Usage(3, 2, 1, 0.5)
    assert [type(n) for n in (found.prompt, found.completion, found.cached, found.cost_usd)] == [int, int, int, float]


def test_what_calls_used_is_added_up(store):
    store.write(lambda: store.recorder.keep_call(call_row(b"k"), Call(Completion("A", Usage(3, 4, 0, 0.5)), 2, 1.5)),
                lambda: store.recorder.keep_call(call_row(b"free"), Call(Completion("B"))))
    assert store.reader.spent([b"k", b"unknown", "not hexadecimal"]) == Spent(1, 3, 4, 0.5, 1.5, 2)
    assert store.reader.spent([b"k".hex(), b"free"]) == Spent(2, 3, 4, None, 1.5, 2)
    assert store.reader.spent([]) == Spent()
    assert store.reader.totals() == Totals(2, 7, 0.5, 2)


def test_what_left_the_run_file_is_not_read(store):
    """Overview, figures and debates: cells, repeats, samples and metrics."""
    scope = Scope(frozenset("ab"), 2, {"a": frozenset({"q1"})}, {"b": ("new",)}, {"b": frozenset({"old"})})
    ids = [DebateId(cell, repeat, f"q{i}") for cell in "abc" for repeat in range(3) for i in range(4)]
    metrics = {"new": 1.0, "old": 0.0, "table": None, "table.part": 1.0}
    more = {"calls": 2, "tokens": Usage(5, 1), "metrics": metrics}
    store.write(*(partial(store.recorder.finish_debate, ended(id=id, **more)) for id in ids),
                partial(store.recorder.start_debate, DebateId("d", 0, "q"), Sample("q", "?"), ()),
                partial(store.recorder.keep_fact, "scope", scope.to_fact()))
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
    store.write(*(partial(store.recorder.finish_debate, ended(id=DebateId("c7", 0, f"q{i}"))) for i in range(2)),
                partial(store.recorder.keep_fact, "scope", Scope(frozenset(dropped), 1, dropped).to_fact()))
    assert [(c.cell, c.done) for c in store.reader.overview()] == [("c7", 1)]


def test_a_recorder_knows_its_calls_and_those_of_earlier_runs_and_no_others(store):
    for i in range(60):
        key = i.to_bytes(4, "big")
        assert store.recorder.call(key) is None
        store.write(lambda key=key: store.recorder.keep_call(call_row(key), Call(Completion(key.hex()))))
        if i == 50:
            store.recorder.close()
            store.recorder = open_recorder(store.reader.folder)
    assert [store.recorder.call(i.to_bytes(4, "big")) is None for i in range(62)] == [False] * 60 + [True] * 2
