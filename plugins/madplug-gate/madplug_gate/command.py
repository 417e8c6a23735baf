"""The command `madplug gate train`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from madplug import UserError, count, open_study
from madplug_gate.features import NAMES, Classifier, features, question_digest

LEAST = 5
"""The fewest questions that debate mended, and that it did not: one for each fold."""


@click.group()
def gate() -> None:
    """Decide when to debate."""


@gate.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--cell", metavar="NAME", help="The cell to learn from; by default all with a gate.")
@click.option("--seed", default=0, show_default=True, help="Of the folds.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The classifier's file.")
def train(folder: Path, cell: str | None, seed: int, output: Path) -> None:
    """Train a classifier that says from a first answer whether a debate would mend it.

    Learns from the debates in DIR, a study with `gate.behind` at `threshold = 1`, so that every question was debated,
    and the metric `gate.curve`, which says what was right.
    """
    if find_spec("sklearn") is None:
        raise UserError("madplug gate train needs scikit-learn: pip install 'madplug-gate[train]'")
    with open_study(folder) as reader:
        study = str(reader.fact("identity") or "")
        found = [_examples(result) for result in reader.debates(cell) if result.notes.get("gate")]
    examples = [example for some in found for example in some]
    made = fitted(examples, study, seed)
    output.write_text(json.dumps(made._asdict(), indent=1) + "\n", encoding="utf-8")
    debates, questions, report = count(len(examples), "debate"), count(len(made.questions), "question"), made.report
    click.echo(f"{debates} of {questions}, {report['mended']:.0f} of which mended the first answer; out of fold the "
               f"classifier puts a mended one first in {report['auc']:.2f} of all pairs\nsaved in {output}")
    if left := found.count([]):
        click.echo(f"{count(left, 'debate')} left out: not opened by the gate (threshold = 1 opens all), without "
                   "a first answer, or not scored by gate.curve", err=True)


def _examples(result: Any) -> list[tuple[str, list[float], bool]]:
    """(question, features, mended) of a debate that was held behind a gate."""
    scores = {name.rpartition(".")[2]: value for name, value in result.metrics.items() if ".curve" in f".{name}"}
    noted = result.notes.get("gate") or {}
    said = [m for m in result.messages if m.stage == "gate" and not m.retracted]
    if scores.get("last") is None or noted.get("key") is None or not any(m.key == noted["key"] for m in said):
        return []
    return [(question_digest(result.sample), features(result.sample, said, noted["key"]),
             scores["first"] == 0 and scores["last"] == 1)]


def fitted(examples: list[tuple[str, list[float], bool]], study: str, seed: int) -> Classifier:
    """The classifier of all examples, with what it reaches out of fold. Raises `UserError` if there are too few."""
    mended = sum(label for _, _, label in examples)
    if min(mended, len(examples) - mended) < LEAST:
        raise UserError(f"{count(len(examples), 'debate')} behind a gate scored by gate.curve, {mended} of which "
                        f"mended the first answer; it takes {LEAST} that were and {LEAST} that were not")
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    groups, values, labels = zip(*examples, strict=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedGroupKFold(LEAST, shuffle=True, random_state=seed)  # repeats of a question stay together
    held_out = cross_val_predict(model, values, labels, groups=groups, cv=folds, method="predict_proba")[:, 1]
    model.fit(values, labels)
    scaler, regression = model[0], model[1]
    return Classifier(
        NAMES, scaler.mean_.tolist(), scaler.scale_.tolist(), regression.coef_[0].tolist(),
        float(regression.intercept_[0]), study, sorted(set(groups)),
        {"debates": len(examples), "mended": mended, "auc": float(roc_auc_score(labels, held_out))})
