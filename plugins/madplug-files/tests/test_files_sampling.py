import json
from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from madplug import UserError
from madplug_files import Table
from madplug_files.sampling import quotas, sample_size

TABLE = [("MMLU", 14042, 373.96, 374, 375), ("MMLU-Pro", 12032, 372.30, 373, 374), ("GPQA", 546, 225.74, 226, 227),
         ("StrategyQA", 2289, 329.08, 330, 330), ("MuSR", 250, 151.68, 152, 152),
         ("SQuAD 2.0", 11873, 372.15, 373, 373)]


@pytest.mark.parametrize(("name", "population", "exact", "up", "two_step"), TABLE)
def test_sizes_of_published_samples(name, population, exact, up, two_step):
    assert round(sample_size(population, rounding="none"), 2) == exact
    assert sample_size(population, rounding="up") == up
    assert sample_size(population) == two_step


def test_the_size_for_an_endless_population_is_384():
    assert sample_size(10 ** 12, rounding="none") == pytest.approx(384.16)


def test_one_of_one():
    assert sample_size(1) == 1
    assert sample_size(0) == 0


@given(st.integers(1, 10 ** 7), st.floats(0.5, 0.999), st.floats(0.001, 0.4))
def test_a_sample_is_never_larger_than_the_population(population, confidence, margin):
    assert 1 <= sample_size(population, confidence, margin) <= population


@given(st.integers(1, 10 ** 6))
def test_two_steps_are_never_below_one(population):
    assert ceil(round(sample_size(population, rounding="none"), 6)) <= sample_size(population) + 1
    assert sample_size(population, rounding="up") <= sample_size(population)


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 500), min_size=1), st.integers(0, 2000))
def test_quotas_add_up_and_are_within_one_of_their_share(groups, size):
    divided = quotas(groups, size)
    total = sum(groups.values())
    assert sum(divided.values()) == min(size, total)
    for group, n in groups.items():
        assert divided.get(group, 0) <= n
        assert not total or abs(divided.get(group, 0) - n * min(size, total) / total) < 1


def table(folder, **options):
    path = folder / "rows.jsonl"
    rows = [{"id": str(i), "question": f"q{i}", "reference": "x", "level": "easy" if i % 4 else "hard"}
            for i in range(400)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return Table(path=path, **options)


def ids(data):
    return [int(sample.id) for sample, _ in data.samples()]


def test_a_margin_of_error_takes_that_many_rows_at_random(tmp_path):
    data = table(tmp_path, limit="95% +- 5%")
    assert len(ids(data)) == data.size() == sample_size(400) == 197
    assert ids(data) != sorted(ids(data)), "a margin is valid for a random sample only"
    assert ids(data) == ids(table(tmp_path, limit="95% +- 5%", shuffle=0))
    assert ids(data) != ids(table(tmp_path, limit="95% +- 5%", shuffle=1))


@pytest.mark.parametrize("spelled", ["95%+-5%", " 95 % ± 5% ", "95.0% +/- 5.0%"])
def test_a_margin_has_one_meaning_however_it_is_spelled(tmp_path, spelled):
    assert table(tmp_path, limit=spelled).options.limit == "95% +- 5%"


@pytest.mark.parametrize("wrong", ["95", "95% +- 5", "all", "0% +- 5%", "95% +- 0%", "100% +- 5%", 0, -1, True])
def test_what_is_no_limit_is_refused(tmp_path, wrong):
    with pytest.raises(ValidationError):
        table(tmp_path, limit=wrong)


def test_a_stratified_sample_has_the_shares_of_the_whole(tmp_path):
    for seed in (None, 5):
        chosen = ids(table(tmp_path, limit=100, stratify="level", shuffle=seed))
        assert Counter("easy" if i % 4 else "hard" for i in chosen) == {"easy": 75, "hard": 25}
    assert chosen != sorted(chosen)


def test_rows_of_a_stratified_sample_keep_their_order(tmp_path):
    chosen = ids(table(tmp_path, limit=8, stratify="level"))
    assert chosen == [0, 1, 2, 3, 4, 5, 6, 7]


def test_a_column_to_stratify_by_must_be_there(tmp_path):
    with pytest.raises(UserError, match="has no column 'levle' to stratify by; did you mean 'level'"):
        ids(table(tmp_path, limit=5, stratify="levle"))
    assert any("levle" in text for text in table(tmp_path, limit=5, stratify="levle").check(None))
