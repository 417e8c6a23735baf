"""Debates, messages, calls and figures as data frames."""

import sys

import pytest

import madplug
from madplug import UserError
from madplug_export import export, to_pandas, to_polars
from madplug_export.flat import CALL, MESSAGE, debate_row, marked


@pytest.fixture
def result(program):
    """A study that was run."""
    return madplug.run("study.toml", settings={"repeats": 2})


def test_records_as_pandas_frames(result):
    pytest.importorskip("pandas")
    debates = to_pandas(result)
    assert debates.shape[0] == 12
    assert debates.groupby("repeat")["kit.right"].mean().to_list() == result.summary["cells"][0]["metrics"][
        "kit.right"]["per_repeat"]
    messages, calls = to_pandas(result, "messages"), to_pandas(result, "calls")
    assert (len(messages), len(calls)) == (48, 48)
    joined = messages.explode("calls").merge(calls, left_on="calls", right_on="key", suffixes=("", "_call"))
    assert (joined["content"] == joined["text"]).all()
    with result.open() as study:
        names = {name.removeprefix("metric.") for name in debate_row(next(marked(study)))}
        assert (set(debates), set(messages)) == (names, set(MESSAGE))
        assert set(calls) == {*CALL, "prompt", "completion", "cached", "cost_usd"} - {"usage"}
        assert to_pandas(study, "figures")["calls"].sum() == 48
        assert len(to_pandas(study, cell="other")) == 0
    assert [row["content"] for row in export(result.folder, "messages")] == messages["content"].to_list()


def test_records_as_polars_frames(result):
    polars = pytest.importorskip("polars")
    right = sum(d.metrics["kit.right"] for d in result.debates())
    assert to_polars(result).filter(polars.col("kit.right") == 1.0).height == right
    assert to_polars(result, "calls")["prompt"].sum() == 480
    assert set(to_polars(result, "figures").columns) >= {"cell", "repeat", "sample", "kit.right"}


def test_a_table_that_does_not_exist_and_a_library_that_is_not_installed(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"pip install 'madplug-export\[pandas\]'"):
        to_pandas(result)
    with pytest.raises(UserError, match="unknown table 'debtes'; did you mean 'debates'"):
        to_polars(result, "debtes")
