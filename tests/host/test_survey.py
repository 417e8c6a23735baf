"""What a resumed study does with data that have changed: rows that are new, changed, gone, or back."""

import asyncio
from dataclasses import replace

from madplug import Metric, Sample
from madplug.config.plan import StudyPlan
from madplug.config.shape import Limits
from madplug.store import DebateId, MemoryStore
from madplug.study.run import StudyRun
from madplug_testing import Scripted, play
from madplug_testing.debates import Listed


class Counted(Listed):
    """A data set that counts how often it is read."""

    def __init__(self, rows):
        super().__init__(rows)
        self.reads = 0

    def samples(self, split=None):
        self.reads += 1
        return super().samples(split)


def rows(*names, said="?"):
    return [(Sample(name, said), ("A",)) for name in names]


def run(store, data, *, cells=("a", "b"), repeats=2, replies=lambda r: "A", samples=None, limit=None):
    """How often the data were read in a run, its summary, and its warnings."""
    model, dataset, warnings = Scripted(replies), Counted(data), []
    base = play(replies=lambda r: "A", agents=1, sample=Sample("q", "?")).debate.cell
    made = [replace(base, slug=slug, dataset=dataset, models=("m",), channels={"m": "m"}) for slug in cells]
    plan = StudyPlan("s", made, {"m": model}, repeats=repeats, share_completions=False,
                     limits=Limits(calls=limit))
    summary = asyncio.run(StudyRun(plan, store, warn=warnings.append, samples=samples).run())
    return dataset.reads, summary, warnings


def test_cells_read_their_common_data_together_once_to_check_them_and_once_for_each_repeat():
    store = MemoryStore()
    assert run(store, rows("q1", "q2"))[0] == 3
    reads, summary, warnings = run(store, rows("q1", "q2", "q3"))
    assert (reads, warnings, [cell["done"] for cell in summary["cells"]]) == (3, [], [6, 6])


def test_a_row_that_changed_is_run_again_in_every_cell_and_repeat():
    store = MemoryStore()
    run(store, rows("q1", "q2"))
    warnings = run(store, rows("q1") + rows("q2", said="changed"))[2]
    assert warnings == ["1 sample changed since the last run; the debates are run again, with what is on record of "
                        "the same calls"]
    assert {store.result(DebateId(cell, n, "q2")).sample.question for cell in "ab" for n in (0, 1)} == {"changed"}


def test_a_row_that_is_gone_is_dropped_from_the_figures():
    store = MemoryStore()
    run(store, rows("q1", "q2", "q3"))
    _, summary, _ = run(store, rows("q1", "q3"))
    assert [cell["done"] for cell in summary["cells"]] == [4, 4]
    assert store.reported().scope.dropped == {"a": {"q2"}, "b": {"q2"}}


def test_a_debate_that_failed_is_run_again_and_one_that_is_gone_is_dropped():
    store = MemoryStore()

    def refuse(request):
        raise RuntimeError("no")

    run(store, rows("q1", "q2"))
    run(store, rows("q1", "q2", "q3", "q4"), replies=refuse)
    _, summary, _ = run(store, rows("q1", "q2", "q3"))
    assert [(cell["done"], cell["failed"]) for cell in summary["cells"]] == [(6, 0), (6, 0)]
    assert store.reported().scope.dropped == {"a": {"q4"}, "b": {"q4"}}


def test_data_that_break_off_drop_no_sample():
    async def broken(setup, repeat):
        yield rows("q1")[0]
        raise OSError("no disk")

    store, alone = MemoryStore(), {"cells": ("a",), "repeats": 1}
    run(store, rows("q1", "q2"), **alone)
    _, summary, _ = run(store, rows("q1", "q2"), samples=broken, **alone)
    assert (summary["status"], summary["cells"][0]["done"]) == ("failed", 2)


def test_a_row_that_comes_back_is_shown_again_even_if_the_run_is_stopped():
    store = MemoryStore()
    run(store, rows("q1", "q2", "q3"))
    run(store, rows("q1"))
    _, summary, _ = run(store, rows("q1", "q2", "q3", "q4"), limit=13)
    assert (summary["status"], [cell["done"] for cell in summary["cells"]]) == ("stopped", [7, 6])
    assert store.reported().scope.dropped == {}


def test_a_metric_sums_up_the_figures_of_its_cell_without_the_debates():
    class Decided(Metric):
        """Counts from figures alone."""

        name = "decided"

        def score(self, debate, references):
            return 1.0

        def summarise_figures(self, rows):
            found = list(rows)
            return {"decided": sum(bool(row["decided"]) for row in found), "scores": len({**found[0]["metrics"]})}

    store, cell = MemoryStore(), play(replies=lambda r: "A", agents=1).debate.cell
    cells = [replace(cell, slug=slug, dataset=Listed(rows("q1", "q2")), models=("m",), channels={"m": "m"},
                     metrics={"kit.decided": Decided()}) for slug in "ab"]
    summary = asyncio.run(StudyRun(StudyPlan("s", cells, {"m": Scripted(lambda r: "A")}), store).run())
    assert [found["figures"] for found in summary["cells"]] == [{"kit.decided": {"decided": 2, "scores": 1}}] * 2
