"""The host beside libraries that its own environment of tests lacks: its intervals, and the types of its options."""

import random
from pathlib import Path

import pytest

from madplug.study import intervals
from madplug.study.intervals import t_quantile

ROOT = Path(__file__).parents[2]


def spread(repeats, *, proportion=False):
    return intervals.spread([(list(scores), list(scores.values())) for scores in repeats], proportion=proportion)


def test_quantiles_of_students_t_agree_with_scipy():
    from scipy import stats

    for freedom in (*range(1, 30), 99, 200, 201, 1000, 99_999):
        assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-8)


def test_intervals_agree_with_statsmodels_on_random_scores():
    """Of single shares with Wilson's, of means with those of a regression whose errors are clustered by sample."""
    from statsmodels import api
    from statsmodels.stats import proportion

    dice = random.Random(3)
    for _ in range(50):
        n, repeats = dice.randint(3, 60), dice.randint(2, 4)
        right = dice.randint(0, n)
        expected = proportion.proportion_confint(right, n, method="wilson")
        once = {f"q{i}": float(i < right) for i in range(n)}
        assert spread([once], proportion=True)["ci95"] == pytest.approx(expected, abs=1e-12)
        scores = [{f"q{i}": dice.gauss(i % 3, 1) for i in range(n)} for _ in range(repeats)]
        rows = [(i, scores[r][f"q{i}"]) for i in range(n) for r in range(repeats)]
        fit = api.OLS([y for _, y in rows], [1.0] * len(rows)).fit(
            cov_type="cluster", cov_kwds={"groups": [i for i, _ in rows], "use_correction": True}, use_t=True)
        # Its correction for few clusters also counts the debates: (N - 1) / (N - 1) with one constant.
        assert spread(scores)["ci95"] == pytest.approx(fit.conf_int()[0], rel=1e-7)


TYPED = '''
from __future__ import annotations
import madplug
from madplug import Nested, Visibility, Model, ModelOptions
from typing import Any

class NearOptions(madplug.Options):
    window: int = 3
    inner: Nested[Visibility]
    others: list[Nested[Visibility]] = []

class Near(Visibility):
    Options = NearOptions

    def view(self, debate: Any, turn: Any) -> Any:
        reveal_type(self.options.window)
        reveal_type(self.options.inner)
        reveal_type(self.options.others)
        return ()

class NearerOptions(NearOptions):
    nearer: str = ""

class Nearer(Near):
    Options = NearerOptions

reveal_type(Nearer().options.nearer)
reveal_type(Nearer().options.window)

class Plain(Visibility):
    class Options(madplug.Options):
        depth: int = 3

    def view(self, debate: Any, turn: Any) -> Any:
        reveal_type(self.options.depth)

class Chat(Model):
    class Options(ModelOptions):
        url: str = ""

    async def complete(self, request: Any) -> Any:
        reveal_type(self.options.url)
        reveal_type(self.options.max_in_flight)
'''


def test_options_are_typed_without_a_cast(tmp_path):
    from mypy import api as mypy

    path = tmp_path / "near.py"
    path.write_text(TYPED)
    out, _, status = mypy.run(["--config-file", str(ROOT / "pyproject.toml"), str(path)])
    shown = [line.partition('"')[2].rstrip('"') for line in out.splitlines() if "Revealed type" in line]
    assert status == 0, out
    assert shown == ["int", "madplug.kinds.Visibility", "list[madplug.kinds.Visibility]", "str", "int",
                     "int", "str", "int"]
