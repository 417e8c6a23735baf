"""Which rows a study takes: published sample sizes, margins of error, and strata."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from madplug import UserError
from madplug_files import Table
from madplug_files.sampling import quotas, sample_size


@pytest.mark.parametrize(("name", "population", "exact", "up", "two_step"), [
    ("MMLU", 14042, 373.96, 374, 375), ("MMLU-Pro", 12032, 372.30, 373, 374), ("GPQA", 546, 225.74, 226, 227),
    ("StrategyQA", 2289, 329.08, 330, 330), ("MuSR", 250, 151.68, 152, 152), ("SQuAD 2.0", 11873, 372.15, 373, 373),
    ("one", 1, 1, 1, 1), ("none", 0, 0, 0, 0), ("endless", 10**12, 384.16, 385, 385)])
def test_sizes_of_published_samples(name, population, exact, up, two_step):
    assert round(sample_size(population, rounding="none"), 2) == exact
    assert sample_size(population, rounding="up") == up
    assert sample_size(population) == two_step


@given(st.integers(1, 10 ** 7), st.floats(0.5, 0.999), st.floats(0.001, 0.4))
def test_a_sample_is_never_larger_than_the_population_nor_smaller_for_rounding_twice(population, confidence, margin):
    once = sample_size(population, confidence, margin, rounding="up")
    assert 1 <= once <= sample_size(population, confidence, margin) <= population


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 500), min_size=1), st.integers(0, 2000))
def test_quotas_add_up_and_are_within_one_of_their_share(groups, size):
    divided = quotas(groups, size)
    total = sum(groups.values())
    assert sum(divided.values()) == min(size, total)
    for group, n in groups.items():
        assert divided.get(group, 0) <= n
        assert not total or abs(divided.get(group, 0) - n * min(size, total) / total) < 1


@pytest.fixture
def table(tmp_path):
    """A table of 400 rows of which a quarter is hard."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "question": f"q{i}", "reference": "x",
                                        "level": "easy" if i % 4 else "hard"}) + "\n" for i in range(400)), "utf-8")
    return lambda **options: Table(path=path, **options)


def ids(data):
    return [int(sample.id) for sample, _ in data.samples()]


def test_a_margin_of_error_takes_that_many_rows_at_random(table):
    data = table(limit="95% +- 5%")
    assert len(ids(data)) == data.size() == sample_size(400) == 197
    assert ids(data) != sorted(ids(data)), "a margin is valid for a random sample only"
    assert ids(data) == ids(table(limit="95% +- 5%", shuffle=0))
    assert ids(data) != ids(table(limit="95% +- 5%", shuffle=1))
    for spelled in ("95%+-5%", " 95 % ± 5% ", "95.0% +/- 5.0%"):
        assert table(limit=spelled).options.limit == "95% +- 5%"


@pytest.mark.parametrize("wrong", ["95", "95% +- 5", "all", "0% +- 5%", "95% +- 0%", "100% +- 5%", 0, -1, True])
def test_what_is_no_limit_is_refused(table, wrong):
    with pytest.raises(ValidationError):
        table(limit=wrong)


def test_a_stratified_sample_has_the_shares_of_the_whole_and_keeps_their_order(table):
    assert ids(table(limit=8, stratify="level")) == [0, 1, 2, 3, 4, 5, 6, 7]
    chosen = ids(table(limit=100, stratify="level", shuffle=5))
    assert Counter("easy" if i % 4 else "hard" for i in chosen) == {"easy": 75, "hard": 25}
    assert chosen != sorted(chosen)


def test_a_column_to_stratify_by_must_be_there(table):
    with pytest.raises(UserError, match="has no column 'levle' to stratify by; did you mean 'level'"):
        ids(table(limit=5, stratify="levle"))
    assert any("levle" in text for text in table(limit=5, stratify="levle").check(None))
