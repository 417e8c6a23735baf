"""Passages of local files."""

import json

import pytest

from madplug import ComponentError
from madplug.services import Retriever, lacks
from madplug_retrieval import Bm25
from madplug_retrieval.passages import cut
from madplug_testing import wait_for


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


@pytest.mark.parametrize(("query", "best", "source"), [
    ("What is the capital of France?", "Paris is the capital of France.", "france.md:3"),
    ("Lyon", "Lyon is a city in France.", "france.md:5"),
    ("Which river is in Vienna? The Danube?", "The Danube flows through Vienna.", "rows.jsonl:1"),
    ("salt", "Bread is made of flour,\nwater and salt.", "more/bread.txt:1")])
def test_the_best_passage_comes_first_and_says_where_it_is_from(books, query, best, source):
    assert [(p.text, p.source) for p in found(books, query, 1)] == [(best, source)]
    assert lacks(Bm25, Retriever) == []


@pytest.mark.parametrize(("query", "options", "passages"), [
    ("quantum chromodynamics", {}, 0), ("is the of", {}, 0), ("", {}, 0), ("France", {}, 3),
    ("is", {"stopwords": "none"}, 3)])
def test_as_many_are_found_as_share_a_word_that_counts(books, query, options, passages):
    assert len(found(books, query, 100, **options)) == passages


def test_long_paragraphs_are_cut(tmp_path):
    (tmp_path / "long.txt").write_text(" ".join(f"word{i}" for i in range(25)))
    assert sorted(len(p.split()) for p in texts(tmp_path, "word3 word13 word23", 9, words=10)) == [5, 10, 10]
    assert list(cut("a b c", 2)) == ["a b", "c"]
    assert list(cut("  \n ", 2)) == []


@pytest.mark.parametrize(("name", "text", "problem"), [
    ("rows.jsonl", '{"txt": "x"}\n', "line 1: has no text in the column 'text'; it has txt"),
    ("rows.jsonl", "[1]\n", "it is not a table"), ("rows.jsonl", "{\n", "line 1: is not JSON"),
    ("rows.jsonl", "[" * 200_000, "line 1: is not JSON"),
    ("empty.txt", " \n", " is empty"), ("latin.txt", b"caf\xe9", "is not UTF-8 text (byte 3)")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, text, problem):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ComponentError) as error:
        found(tmp_path, "x")
    assert problem in str(error.value)


def test_a_path_without_texts_is_refused_before_the_run(tmp_path):
    (tmp_path / "a.pdf").write_text("x")
    for name, problem in (("nothing", "does not exist"), ("", "has no file that ends in .txt, .md, .jsonl"),
                          ("a.pdf", "does not end in")):
        assert problem in next(iter(Bm25(path=tmp_path / name).check(None)))


def test_rows_have_their_text_in_a_column_may_begin_with_a_mark_and_contain_any_line_end_of_unicode(tmp_path):
    text = '\ufeff{"body": "salt\u2028and water"}\r\n{"body": "bread\x85and flour"}\n'
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8")
    assert texts(tmp_path / "rows.jsonl", "salt", column="body") == ["salt\u2028and water"]
    assert texts(tmp_path / "rows.jsonl", "bread", column="body") == ["bread\x85and flour"]
