"""What every store promises: a recorder that writes, and a reader that sees what was written, also while it runs."""

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
from madplug.rows import to_json
from madplug.store import Call, CallRow, DebateId, MemoryStore, open_recorder, open_study, sample_digest
from madplug.store.encode import MOST_TOKENS, clamp_usage, drop_unstorable

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
    """A recorder, and the reader of what it recorded."""

    def __init__(self, recorder, read):
        self.recorder, self._read = recorder, read

    @property
    def reader(self):
        return self._read()

    def write(self, *steps):
        async def all_of_them():
            for step in steps:
                done = step()
                if hasattr(done, "__await__"):
                    await done
        asyncio.run(all_of_them())


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        memory = MemoryStore()
        yield Both(memory, lambda: memory)
        return
    recorder, opened = open_recorder(tmp_path / "study"), []

    def read():
        opened.append(open_study(tmp_path / "study"))
        return opened[-1]

    yield Both(recorder, read)
    for reader in opened:
        reader.close()
    recorder.close()


def start(store, *messages, agents=AGENTS):
    recorder = store.recorder
    store.write(lambda: recorder.start_debate(ID, ended().sample, ("A",)), lambda: recorder.keep_agents(ID, agents),
                *(lambda m=m: recorder.keep_message(ID, m) for m in messages), lambda: recorder.keep_fact("now", 1))


def test_a_running_debate_is_read_as_far_as_it_went(store):
    start(store, said(0), said(1, "B"))
    found = store.reader.debate(ID)
    assert (found.agents, [m.content for m in found.messages]) == (AGENTS, ["A", "B"])
    assert (found.decision, found.error) == (None, None)
    assert [r.sample.id for r in store.reader.debates()] == ["q"]


def test_a_running_debate_is_neither_done_nor_a_result_nor_exported(store):
    start(store, said(0))
    assert store.recorder.done() == {}
    assert store.recorder.result(ID) is None
    for rows in (store.recorder.results(), store.recorder.figures(), store.reader.records()):
        assert list(rows) == []


def test_a_message_recorded_again_replaces_the_first(store):
    start(store, said(0), said(0, retracted=True))
    assert store.reader.debate(ID).messages == (said(0, retracted=True),)


def test_a_debate_that_was_never_started_is_finished_whole(store):
    result = ended(said(0), said(1, "B", data={"x": {"y": 1}}), calls=2, tokens=Usage(3, 4, 1, 0.5), notes={"n": [1]})
    store.write(lambda: store.recorder.finish_debate(result))
    assert store.reader.debate(ID) == result
    assert store.recorder.result(ID) == result


@pytest.mark.parametrize("final", [
    [said(0), said(1)],  # all of it was on record
    [said(0), said(1), said(2)],  # a message more
    [said(0)],  # one less
    [said(0, retracted=True), said(1)],  # one changed
    []])
def test_the_result_is_the_truth_about_the_messages(store, final):
    start(store, said(0), said(1))
    store.write(lambda: store.recorder.finish_debate(ended(*final)))
    assert store.reader.debate(ID).messages == tuple(final)


def test_agents_and_sample_of_the_result_are_the_truth_too(store):
    start(store, said(0), agents=AGENTS[:1])
    result = replace(ended(said(0)), sample=Sample("q", "another question"))
    store.write(lambda: store.recorder.finish_debate(result))
    assert store.reader.debate(ID) == result


def test_a_debate_that_starts_again_drops_what_an_earlier_attempt_left(store):
    start(store, said(0), said(1), said(2))
    start(store, said(0, "B"))
    assert [m.content for m in store.reader.debate(ID).messages] == ["B"]
    assert len(list(store.reader.debates())) == 1


def test_a_failure_is_replaced(store):
    store.write(lambda: store.recorder.finish_debate(ended(said(0), said(1), error="no")))
    assert store.recorder.done() == {}
    store.write(lambda: store.recorder.finish_debate(ended(said(0))))
    assert store.reader.debate(ID) == ended(said(0))
    assert store.recorder.done() == {ID: sample_digest(ended().sample, ("A",))}


def test_results_come_in_the_order_of_cell_repeat_and_sample(store):
    ids = [DebateId(cell, repeat, sample) for cell in "ba" for repeat in (1, 0) for sample in ("q2", "q1")]
    store.write(*(lambda i=i: store.recorder.finish_debate(ended(said(0), said(1), id=i)) for i in ids))
    assert [DebateId(r.cell, r.repeat, r.sample.id) for r in store.reader.debates()] == sorted(ids)
    assert [r.repeat for r in store.recorder.results("a")] == [0, 0, 1, 1]
    assert [f["sample"] for f in store.reader.figures()] == ["q1", "q2"] * 4


def test_a_line_of_an_export_is_the_whole_debate(store):
    result = ended(*(said(i, f"{i},") for i in range(12)), notes={"n": "]"})
    store.write(lambda: store.recorder.finish_debate(result))
    assert [json.loads(line) for line in store.reader.records()] == [json.loads(to_json(result))]


def test_figures_say_what_the_result_says(store):
    result = ended(said(0), calls=3, retries=1, tokens=Usage(5, 6, 2, 0.25), seconds=1.5)
    store.write(lambda: store.recorder.finish_debate(result))
    assert dict(next(store.reader.figures())) == {
        "cell": "c", "repeat": 0, "sample": "q", "error": None, "decided": True, "agreed": False, "rounds": 1,
        "calls": 3, "retries": 1, "prompt": 5, "completion": 6, "cached": 2, "cost_usd": 0.25, "seconds": 1.5,
        "metrics": {"x": 1.0}}


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


def test_a_call_recorded_twice_counts_once(store):
    for text in "AB":
        store.write(lambda text=text: store.recorder.keep_call(call_row(b"k"), Call(Completion(text, Usage(1, 1)))))
    assert store.recorder.call(b"k").completion.text == "A"
    assert (store.reader.totals().calls, store.reader.totals().tokens) == (1, 2)


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
    store.write(lambda: store.recorder.finish_debate(drop_unstorable(result, str(refused))))
    assert len(list(store.reader.debates())) == 4
    assert store.reader.debate(ID).error == str(refused)
    assert store.reader.debate(ID).messages[0].content == "A"


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
