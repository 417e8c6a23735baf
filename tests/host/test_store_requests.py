"""Requests and messages are compressed with what they repeat, and read back whole."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import UserError
from madplug.rows import to_json
from madplug.store import DebateId, Reader, compress, open_recorder, open_study
from madplug.store.compress import RequestReader, RequestWriter, pack, unpack
from madplug_testing import play

LONG = "an argument that goes on for a while, "
texts = st.lists(st.sampled_from([LONG * 30, "short", "\n\\", "ü" * 400, "A" * 1_500]), max_size=6).map("".join)


@settings(deadline=None, derandomize=True)
@given(st.lists(texts, min_size=1, max_size=30), st.integers(1, 5))
def test_any_series_of_requests_is_read_back_in_any_order(requests, fresh):
    """Also with a request in between that is compressed with an early one."""
    before, compress.FRESH_EVERY = compress.FRESH_EVERY, fresh
    writer = RequestWriter()
    rows = {number: writer.pack(number, text) for number, text in enumerate(requests, 1)}
    compress.FRESH_EVERY = before
    for numbers in (rows, reversed(rows)):
        reader = RequestReader(rows.get)
        assert {n: reader.read(n).decode() for n in numbers} == dict(enumerate(requests, 1))


def test_a_single_request_takes_few_steps_to_read():
    writer, loaded = RequestWriter(), []
    rows = {number: writer.pack(number, LONG * 30 + str(number)) for number in range(1, 1_001)}
    RequestReader(lambda number: loaded.append(number) or rows[number]).read(1_000)
    assert len(loaded) < compress.FRESH_EVERY + 10


def test_a_short_question_in_between_does_not_cost_the_next_request_its_dictionary():
    writer, long = RequestWriter(), "".join(hex(i * 7919 ** 5) for i in range(500))
    first, _, third = (len(writer.pack(n, text)[1]) for n, text in enumerate((long, LONG * 30, f"{long}."), 1))
    assert third < first / 10


@pytest.mark.parametrize("packed", [
    b"", b"nonsense", pack(b"text")[:-1], pack(b"text") + b"more", pack(bytes(range(256)), bytes(range(256))), 7, None,
    bytes.fromhex("28b52ffda0ffffffff")])  # which says that it has four gigabytes
def test_what_was_not_compressed_here_is_refused(packed):
    with pytest.raises((ValueError, TypeError), match=r"\w"):
        unpack(packed)


@pytest.mark.parametrize("rows", [{1: (1, pack(b"a"))}, {1: (2, pack(b"a")), 2: (1, pack(b"a"))}, {1: (-1, pack(b"a"))},
                                  {1: ("x", pack(b"a"))}, {}])
def test_requests_that_lead_in_a_circle_or_nowhere_are_refused(rows):
    with pytest.raises(ValueError, match="not there"):
        RequestReader(rows.get).read(1)


def of_one_debate(folder, replies=lambda request: LONG * 8 + str(request.seed), **more):
    """A debate that is recorded in a directory, and the requests that its model got."""
    asked = []

    def answer(request):
        asked.append(request)
        return replies(request)

    store = open_recorder(folder)
    played = play(replies=answer, store=store, **more)
    store.close()
    return played, asked


def test_what_is_stored_grows_with_what_is_said(tmp_path):
    sizes = []
    for rounds in (4, 8):
        played, _ = of_one_debate(tmp_path / str(rounds), agents=8, rounds=rounds)
        with closing(sqlite3.connect(tmp_path / str(rounds) / "study.db")) as db:
            sizes.append(db.execute("SELECT (SELECT sum(length(request)) FROM contents) + "
                                    "(SELECT sum(length(record)) FROM messages)").fetchone()[0])
        assert sizes[-1] < 1.2 * sum(len(m.content) for m in played.messages)
    assert sizes[1] < 2.2 * sizes[0]


def test_a_debate_that_is_run_again_keeps_the_requests_of_its_first_attempt(tmp_path):
    id = DebateId("play", 0, "q1")
    _, asked = of_one_debate(tmp_path, agents=4, rounds=2)
    store = open_recorder(tmp_path)
    result = store.result(id)
    store.start_debate(id, result.sample, result.references)
    store.close()
    played, again = of_one_debate(tmp_path, agents=4, rounds=3)
    with open_study(tmp_path) as reader:
        requests = [to_json(row["request"]["messages"]) for row in reader.calls()]
    assert set(requests) == {to_json(r.messages) for r in (*asked, *again)}
    assert played.result.error is None


@pytest.mark.parametrize(("read", "change"), [
    *((Reader.calls, change) for change in (
        "contents SET request = x'28b52ffd' WHERE base IS NOT NULL", "contents SET base = 999 WHERE number > 5",
        "contents SET request = 7", "contents SET text = x'ff'", "contents SET base = 'one'",
        "contents SET number = 600 WHERE number = 6", "contents SET request = zeroblob(40)")),
    *((Reader.debates, change) for change in (
        "contents SET number = 600 + number", "contents SET text = text || 'x'", "contents SET text = x'ff'",
        "messages SET record = 7", "messages SET record = x'00'", "messages SET reply = 'x'"))])
def test_damaged_requests_and_messages_are_named(tmp_path, read, change):
    of_one_debate(tmp_path, agents=4, rounds=3)
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as db:
        db.execute(f"UPDATE {change}")
    with open_study(tmp_path) as reader, pytest.raises(UserError, match=r"(the call \w+|sample 'q1') cannot be read"):
        list(read(reader))
