"""Long requests are recorded as references to lines of earlier ones, and read back whole."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import DebateResult, Message, Sample, UserError
from madplug.rows import storable_text, to_json
from madplug.store import DebateId, copy_records, open_recorder, open_study
from madplug.store.parts import Book, fold_ids, lines_of, unfold, with_seen
from madplug.testing import StrippedText, play

LONG = "an argument that goes on for a while, "
PIECES = ("a line that is long enough to be found", "short", "", "\n", "\n\n", '"},{', "\\n", "\\", '"', "ü", "A" * 40)
requests = st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), min_size=1, max_size=6)


@settings(deadline=None, derandomize=True)
@given(st.lists(requests, min_size=1, max_size=6), st.lists(st.sampled_from(PIECES), max_size=3).map("".join))
def test_what_is_folded_is_unfolded_to_the_same_text(made, reply):
    book, lines, reply = Book(), [], f"the reply{reply}"
    folded = []
    book.expect(b"key", reply)
    for contents in made:
        contents = *contents, f"A: {reply}", reply
        request = to_json({"messages": [{"role": "user", "content": c} for c in contents], "params": {}, "form": None})
        references, parts = book.fold(request)
        for start, text, key in parts:
            assert start == len(lines)
            lines += lines_of([(0, text, key and reply)])
        folded.append((request, references))
    assert [unfold(references, lines) for _, references in folded] == [request for request, _ in folded]


@pytest.mark.parametrize(("ids", "text"), [((), ""), ((3,), "3"), ((0, 1, 2), "0+3"), ((5, 4, 6, 7), "5,4,6+2")])
def test_ids_in_a_row_are_written_as_one(ids, text):
    assert fold_ids(ids) == text
    if ids:
        assert json.loads(with_seen('{"seen":[],"x":{"seen":[]}}', text)) == {"seen": list(ids), "x": {"seen": []}}


@pytest.mark.parametrize("references", ["5", "0+9", "-1", "0+-1", "x", "", "0+0"])
def test_references_that_lead_nowhere_are_refused(references):
    with pytest.raises(ValueError, match=r"\w"):
        unfold(references, ["a", "b"])


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


def test_the_requests_of_a_long_debate_are_read_back_whole(tmp_path):
    played, asked = of_one_debate(tmp_path, agents=6, rounds=4)
    with open_study(tmp_path) as reader:
        rows = list(reader.calls())
        by_key = {m.calls[0]: m for m in played.messages}
        again = [next(iter(reader.calls(keys=[row["key"]])))["request"] for row in rows]
        assert next(iter(reader.debates())).messages == tuple(played.messages)
        assert [json.loads(line)["messages"] for line in reader.records()] == [
            json.loads(to_json(tuple(played.messages)))]
    assert sorted(to_json(row["request"]["messages"]) for row in rows) == sorted(to_json(r.messages) for r in asked)
    assert again == [row["request"] for row in rows]
    assert all(row["text"] == by_key[row["key"]].content for row in rows)


def test_what_is_stored_grows_with_what_is_said(tmp_path):
    sizes = []
    for rounds in (4, 8):
        played, _ = of_one_debate(tmp_path / str(rounds), agents=8, rounds=rounds)
        with closing(sqlite3.connect(tmp_path / str(rounds) / "study.db")) as db:
            (requests,), (parts,), (messages,) = (db.execute(f"SELECT {sql}").fetchone() for sql in (
                "sum(length(request)) FROM calls", "sum(length(text)) FROM parts", "sum(length(record)) FROM messages"))
        sizes.append(requests + parts + messages)
        said = sum(len(m.content) for m in played.messages)
        assert requests + parts < 0.6 * said
    assert sizes[1] < 2.2 * sizes[0]


def test_a_debate_that_is_run_again_has_a_book_of_its_own(tmp_path):
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


def test_requests_of_merged_studies_are_whole(tmp_path):
    asked = [of_one_debate(tmp_path / name, agents=5, rounds=3, sample=Sample(name, f"{name}?"))[1] for name in "abc"]
    copy_records([tmp_path / name for name in "abc"], tmp_path / "all")
    with open_study(tmp_path / "all") as reader:
        requests = [to_json(row["request"]["messages"]) for row in reader.calls()]
        assert all(len(debate.messages) == 15 for debate in reader.debates())
    assert sorted(requests) == sorted(to_json(r.messages) for each in asked for r in each)


@pytest.mark.parametrize("change", [
    "UPDATE calls SET request = '0+999999999' WHERE book IS NOT NULL",
    "UPDATE calls SET request = '0,x' WHERE book IS NOT NULL", "DELETE FROM parts",
    "UPDATE parts SET line = line + 1000",
    "UPDATE parts SET text = x'ff'", "UPDATE parts SET reply = x'00' WHERE reply IS NOT NULL",
    "UPDATE parts SET text = 'both'", "UPDATE calls SET book = 'one' WHERE book IS NOT NULL"])
def test_damaged_references_are_named(tmp_path, change):
    of_one_debate(tmp_path, agents=4, rounds=3)
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as db:
        db.execute(change)
    with open_study(tmp_path) as reader, pytest.raises(UserError, match="cannot be read"):
        list(reader.calls())


def test_a_message_whose_call_is_gone_is_named(tmp_path):
    of_one_debate(tmp_path, agents=2, rounds=1)
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as db:
        db.execute("DELETE FROM calls")
    with open_study(tmp_path) as reader, pytest.raises(UserError, match="cannot be read"):
        list(reader.debates())


@pytest.mark.parametrize("replies", [
    lambda request: f"{LONG * 6}\n\nAnd: \"{request.seed}\"", lambda request: f"Case {request.seed}: {LONG * 6}",
    lambda request: f"  {LONG * 6}{request.seed}  \n", lambda request: "é\ud800" * 80,
    lambda request: f"{LONG * 6}\x00{request.agent}", lambda request: f'"content":"","seen":[]{LONG * 6}'])
def test_a_reply_that_is_referred_to_is_read_back_as_it_was(tmp_path, replies):
    played, asked = of_one_debate(tmp_path, replies, agents=3, rounds=3)
    with open_study(tmp_path) as reader:
        assert next(iter(reader.debates())).messages == tuple(json_round(played.messages))
        requests = [to_json(row["request"]["messages"]) for row in reader.calls()]
    assert sorted(requests) == sorted(to_json(r.messages) for r in asked)


def json_round(messages):
    """Messages as JSON can have them, without lone surrogates."""
    return [replace(m, **{name: value and storable_text(value) for name, value in (
        ("content", m.content), ("answer", m.answer), ("key", m.key))}) for m in messages]


def test_a_reply_is_stored_once(tmp_path):
    played, _ = of_one_debate(tmp_path, lambda request: f"{LONG * 20}{request.seed}", agents=5, rounds=4,
                              answers=LastWord())
    with closing(sqlite3.connect(tmp_path / "study.db")) as db:
        texts = [row[0] for sql in ("SELECT text FROM calls", "SELECT text FROM parts WHERE text IS NOT NULL",
                                    "SELECT record FROM messages") for row in db.execute(sql)]
    for message in played.messages:
        assert sum(message.content in text for text in texts) == 1


class LastWord(StrippedText):
    """Takes the last word for the answer."""

    def extract(self, debate, turn, text):
        return text.split()[-1]


@pytest.mark.parametrize("seen", ["'x'", "'0+99999999999'", "x'00'"])
def test_damaged_lists_of_what_was_seen_are_named(tmp_path, seen):
    of_one_debate(tmp_path, agents=6, rounds=6)
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as db:
        assert db.execute(f"UPDATE messages SET seen = {seen} WHERE seen IS NOT NULL").rowcount > 0
    with open_study(tmp_path) as reader, pytest.raises(UserError, match="cannot be read"):
        list(reader.debates())


def test_a_message_that_saw_much_is_read_back_as_it_was(tmp_path):
    id = DebateId("c", 0, "q")
    messages = [Message(i, 1, 0, 0, "improve", '"seen":[]', seen=tuple(range(i))[::-1] if i % 2 else tuple(range(i)),
                        data={"x": {"seen": []}}) for i in range(40)]
    store = open_recorder(tmp_path)
    store.start_debate(id, Sample("q", "?"), ())
    for message in messages[:20]:
        store.keep_message(id, message)
    asyncio.run(store.finish_debate(DebateResult("c", 0, Sample("q", "?"), (), messages=tuple(messages), error="x")))
    assert store.result(id).messages == tuple(messages)
    store.close()
