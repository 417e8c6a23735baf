"""The commands as functions that return data."""

import asyncio

import pytest

import madplug
from madplug_redecide import decide, rescore


def test_decide_and_rescore_return_studies_also_where_a_loop_runs(tmp_path, program):
    assert program("run", "study.toml", "--output", "first", "--quiet").exit_code == 0

    async def in_a_notebook():
        return decide("first", "again", {"use": "kit.last_round", "keep": 2}, settings=["debate.rounds=1"])

    again = asyncio.run(in_a_notebook())
    assert (again.status, again.summary["study"], again.summary["paid"]["calls"]) == ("finished", "again", 0)
    assert {debate.rounds for debate in again.debates()} == {1}
    assert rescore("again").metrics.keys() == again.metrics.keys()
    assert rescore("again", "kit.right").metrics.keys() == again.metrics.keys()
    with pytest.raises(madplug.UserError, match="is the study itself"):
        decide("first", "first")
