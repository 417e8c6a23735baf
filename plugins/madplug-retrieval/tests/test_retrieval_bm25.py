"""Passages of local files."""

import json

import pytest

from madplug import ComponentError
from madplug.services import Retriever, lacks
from madplug.testing import wait_for
from madplug_retrieval import Bm25
from madplug_retrieval.passages import cut


@pytest.fixture
def books(tmp_path):
    """A folder with texts of all kinds."""
    (tmp_path / "france.md").write_text("# France\n\nParis is the capital of France.\n\nLyon is a city in France.")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "bread.txt").write_text("Bread is made of flour,\nwater and salt.")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"text": "The Danube flows through Vienna."}) + "\n\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path


def found(path, query, k=2, **options):
    async def both():
        service = Bm25(path=path, **options)
        await service.open()
        return list(await service.retrieve(query, k))

    return wait_for(both())


def texts(*args, **options):
    return [passage.text for passage in found(*args, **options)]


def test_it_is_a_retriever():
    assert lacks(Bm25, Retriever) == []


def test_the_best_passage_comes_first(books):
    assert texts(books, "What is the capital of France?", 3)[0] == "Paris is the capital of France."
    assert texts(books, "Which river is in Vienna?") == ["The Danube flows through Vienna."]
    assert texts(books, "salt", 1) == ["Bread is made of flour,\nwater and salt."]


def test_a_passage_says_where_it_is_from(books):
    assert [found(books, query, 1)[0].source for query in ("Lyon", "salt", "Danube")] == [
        "france.md:5", "more/bread.txt:1", "rows.jsonl:1"]
    assert found(books / "france.md", "capital", 1)[0].source == "france.md:3"


def test_what_shares_no_word_is_not_found(books):
    assert found(books, "quantum chromodynamics") == []
    assert found(books, "is the of") == []
    assert found(books, "") == []


def test_frequent_words_can_count(books):
    assert found(books, "is", 9, stopwords="none") != []


def test_at_most_as_many_as_there_are(books):
    assert len(found(books, "France", 100)) == 3


def test_long_paragraphs_are_cut(tmp_path):
    (tmp_path / "long.txt").write_text(" ".join(f"word{i}" for i in range(25)))
    assert sorted(len(p.split()) for p in texts(tmp_path, "word3 word13 word23", 9, words=10)) == [5, 10, 10]
    assert list(cut("a b c", 2)) == ["a b", "c"]
    assert list(cut("  \n ", 2)) == []


def test_rows_have_their_text_in_a_column(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps({"body": "All about salt."}) + "\n")
    assert texts(tmp_path / "rows.jsonl", "salt", column="body") == ["All about salt."]


@pytest.mark.parametrize(("name", "text", "problem"), [
    ("rows.jsonl", '{"txt": "x"}\n', "line 1: has no text in the column 'text'; it has txt"),
    ("rows.jsonl", "[1]\n", "it is not a table"), ("rows.jsonl", "{\n", "line 1: is not JSON"),
    ("empty.txt", " \n", " is empty"), ("latin.txt", b"caf\xe9", "is not UTF-8 text (byte 3)")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, text, problem):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ComponentError) as error:
        found(tmp_path, "x")
    assert problem in str(error.value)


def test_a_path_without_texts_is_refused_before_the_run(tmp_path):
    assert "does not exist" in next(iter(Bm25(path=tmp_path / "nothing").check(None)))
    assert "has no file that ends in .txt, .md, .jsonl" in next(iter(Bm25(path=tmp_path).check(None)))
    (tmp_path / "a.pdf").write_text("x")
    assert "does not end in" in next(iter(Bm25(path=tmp_path / "a.pdf").check(None)))


def test_rows_may_begin_with_a_mark_and_contain_any_line_end_of_unicode(tmp_path):
    text = '\ufeff{"text": "salt\u2028and water"}\r\n{"text": "bread\x85and flour"}\n'
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8")
    assert texts(tmp_path / "rows.jsonl", "salt") == ["salt\u2028and water"]
    assert texts(tmp_path / "rows.jsonl", "bread") == ["bread\x85and flour"]


def test_a_row_that_is_nested_too_deep_is_told(tmp_path):
    (tmp_path / "rows.jsonl").write_text("[" * 200_000)
    with pytest.raises(ComponentError, match=r"line 1: is not JSON"):
        found(tmp_path / "rows.jsonl", "salt")
