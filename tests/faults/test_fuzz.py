"""Random run files and damaged studies: mistakes are told, nothing else comes out.

What fuzzing has found lies in `corpus/` and is tried first, each time.
"""

import json
import shutil
import sqlite3
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import UserError
from madplug.config import load
from madplug.store import open_study
from madplug_testing.endpoint import running_endpoint
from tests.faults import studies

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORPUS = Path(__file__).parent / "corpus"
KEYS = """name seed repeats oracle share_completions dataset models m debate paradigm agents rounds turns visibility
styles decision personas casting answers phases metrics extensions observers services limits calls tokens seconds
cost_usd cells grid match use model base_url api_key_env max_in_flight attempts deadline price prompt completion
temperature extra stop size options votes executor x 0 use.use"""
TEXTS = """kit.numbered kit.hash kit.pair kit.plain kit.right kit.everybody kit.everything openai.chat m files.table
mallm.memory consensus.majority voting.simple som.debate qa.accuracy llamacpp.chat answers.choice ../x
http://127.0.0.1:9/v1 /dev/null nan 1e999 -"""
NAMES = st.sampled_from(KEYS.split()) | st.text(max_size=6)
WORDS = st.sampled_from(TEXTS.split()) | st.text(max_size=8)
NUMBERS = st.integers(-2**63, 2**63 - 1) | st.integers(-3, 9) | st.floats()
PLAIN = st.one_of(st.booleans(), NUMBERS, WORDS, st.dates(), st.datetimes(), st.times())
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
                      max_leaves=8)
WHOLE = tomllib.loads(studies.RUN)


def check_run_file(path):
    """A run file is loaded, or refused with messages."""
    try:
        load(path)
    except UserError as error:
        problems = error.problems
    else:
        return
    assert problems
    assert all(problem.message for problem in problems)


@st.composite
def tables(draw):
    """Tables of a run file's shape: the whole study, with values put, replaced and removed at random places."""
    table = json.loads(json.dumps(WHOLE))
    for _ in range(draw(st.integers(1, 4))):
        place = table
        while nested := [v for v in (place.values() if isinstance(place, dict) else place) if isinstance(v, dict | list)
                         and v]:
            if draw(st.booleans()):
                break
            place = draw(st.sampled_from(nested))
        if isinstance(place, list):
            place.append(draw(VALUES))
        elif place and draw(st.booleans()):
            place[draw(st.sampled_from(sorted(place)))] = draw(VALUES)
        else:
            place[draw(NAMES)] = draw(VALUES)
    return table


def test_run_files_that_were_found_are_loaded_or_refused(tmp_path):
    for path in (CORPUS / "runfiles").glob("*.toml"):
        shutil.copy(path, tmp_path / "study.toml")
        check_run_file(tmp_path / "study.toml")


@settings(max_examples=60)
@given(tables() | st.dictionaries(NAMES, VALUES, max_size=6))
def test_a_random_table_is_loaded_or_refused(tmp_path_factory, table):
    path = tmp_path_factory.getbasetemp() / "random.toml"
    with suppress(UnicodeEncodeError):
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        check_run_file(path)


@settings(max_examples=100)
@given(st.binary(max_size=200) | st.builds(lambda a, b: studies.RUN.encode()[:a] + b + studies.RUN.encode()[a:],
                                           st.integers(0, len(studies.RUN)), st.binary(min_size=1, max_size=4)))
def test_random_bytes_are_loaded_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(data)
    check_run_file(path)


def read_all(folder):
    """Read everything that a study has; damage is told as a `UserError`."""
    with suppress(UserError), open_study(folder) as study:
        for read in (lambda: study.fact("identity"), lambda: study.fact("planned"), lambda: study.fact("no such"),
                     study.problems, study.totals, study.overview, study.since, study.figures, study.records,
                     study.calls, study.results, study.debates):
            with suppress(UserError):
                found = read()
                deque(found if isinstance(found, Iterator) else (), maxlen=0)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A study without a journal, so that all of it is in one file."""
    folder = tmp_path_factory.mktemp("sound") / "study"
    with running_endpoint(text="{letter}") as endpoint:
        assert studies.run(folder, endpoint.url, "dataset.size=3") == 0
    with closing(sqlite3.connect(folder / "study.db")) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return folder


def again(sound):
    """The study in a directory of its own, as it was."""
    folder = sound.with_name("damaged")
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(sound, folder)


@pytest.mark.parametrize("path", sorted((CORPUS / "studies").glob("*.json")), ids=lambda path: path.stem)
def test_damage_that_was_found_is_told(path, sound):
    damaged = again(sound)
    found = json.loads(path.read_text(encoding="utf-8"))
    if "table" in found:
        edit(damaged, **found)
    else:
        overwrite(damaged, [(place, bytes.fromhex(data)) for place, data in found["edits"]], found["cut"])
    read_all(damaged)


def edit(folder, table, column, value):
    """Set a column of every row."""
    with closing(sqlite3.connect(folder / "study.db")) as db, suppress(sqlite3.Error, OverflowError, UnicodeError):
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()


def overwrite(folder, edits, cut):
    """Put bytes at places, as shares of the length, and cut the end."""
    content = bytearray((folder / "study.db").read_bytes())
    for place, data in edits:
        start = int(place * len(content))
        content[start:start + len(data)] = data
    if cut is not None:
        del content[int(cut * len(content)):]
    (folder / "study.db").write_bytes(content)


@settings(max_examples=100)
@given(st.data())
def test_random_values_in_a_study_are_told(sound, data):
    damaged = again(sound)
    with closing(sqlite3.connect(damaged / "study.db")) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = data.draw(st.sampled_from([n for n in names if not n.startswith("sqlite_")]))
        column = data.draw(st.sampled_from([row[1] for row in db.execute(f"PRAGMA table_info({table})")]))
    texts = st.sampled_from(["null", "{}", "[]", "[null]", "[[]]", '{"text": 1}', "1e999", "[" * 2000, '"\\ud800"',
                             "\n"])
    value = data.draw(st.none() | st.integers(-2**63, 2**63 - 1) | st.floats() | st.binary(max_size=20) | texts
                      | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
                      | VALUES.map(lambda v: json.dumps(v, default=str)))
    edit(damaged, table, column, value)
    read_all(damaged)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)), min_size=1,
                max_size=4), st.none() | st.floats(0, 1))
def test_random_bytes_in_a_study_are_told(sound, edits, cut):
    damaged = again(sound)
    overwrite(damaged, edits, cut)
    read_all(damaged)
