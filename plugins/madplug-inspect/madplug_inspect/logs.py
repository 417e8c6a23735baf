"""A study as logs of inspect_ai: one for each cell."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import ModelUsage

from madplug import Reader, UserError, message_of, open_study
from madplug.study import CellScores, read_manifest, read_text, scores_by_cell
from madplug_inspect.samples import to_eval_sample

MOST_NAMED = 1_000
"""A log lists the ids of its samples if there are no more than these."""


def write_logs(folder: Path, target: Path, summary: Mapping[str, Any] | None = None) -> list[Path]:
    """Write a log for each cell of the study in a folder in which a debate has ended. Raises `UserError`.

    summary: of a run that is about to end; by default the one in the folder. The study may be somebody else's: no link
    in its directory is followed.
    """
    if target.is_symlink() and target.absolute().parent == folder.absolute():
        raise UserError(f"{target}: is a symbolic link, which is not followed; name another directory")
    with open_study(folder) as study:
        try:
            facts = _Facts(folder, study, _read_summary(folder / "summary.json") if summary is None else summary)
            target.mkdir(parents=True, exist_ok=True)
            written = [_write(facts, study, cell, target) for cell in facts.cells]
        except OSError as error:
            raise UserError(f"{target}: cannot be written: {error.strerror or error}") from None
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            why = message_of(error, 200)
            raise UserError(f"{folder}: its records are not as madplug writes them: {why}") from error
    return [path for path in written if path is not None]


class _Facts:
    """What all logs of a study have in common."""

    def __init__(self, folder: Path, study: Reader, summary: Mapping[str, Any]) -> None:
        identity = study.fact("identity") or {}
        self.cells: dict[str, Mapping[str, Any]] = identity.get("cells", {})
        self.repeats = int(identity.get("repeats", 1))
        self.seed = identity.get("seed")
        self.name = folder.resolve().name
        manifest = read_manifest(folder)
        runs = manifest["runs"]
        self.created = runs[0]["started"] if runs else datetime.now(timezone.utc).isoformat()
        self.packages = {facts["distribution"]: facts["version"] for facts in manifest["components"].values()}
        self.summary = summary
        self.scores = scores_by_cell(study.figures())

    def id_of(self, *parts: str) -> str:
        """An id that is the same whenever the study is written again."""
        return blake2b("\0".join([self.name, self.created, *parts]).encode(), digest_size=11).hexdigest()


def _read_summary(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError):
        return {}  # the study is still running
    return found if isinstance(found, dict) else {}


def _write(facts: _Facts, study: Reader, cell: str, target: Path) -> Path | None:
    """The log of a cell; none if no debate of it has ended, which inspect_ai would show as an evaluation of nothing."""
    samples = list(_samples(study, cell))
    if not samples:
        return None
    path = target / f"{''.join(c if c.isalnum() or c in '-_.=,' else '-' for c in cell)[:80]}_{facts.id_of(cell)}.eval"
    log = EvalLog(
        status=_status(facts), eval=_spec(facts, cell, samples), samples=samples, stats=_stats(facts, samples),
        results=_results(facts.scores.get(cell, CellScores()), samples, _told_shares(facts.summary, cell)))
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)  # it would be written through a link
    write_eval_log(log, part, format="eval")
    part.replace(path)
    return path


def _samples(study: Reader, cell: str) -> Iterable[EvalSample]:
    """The debates of a cell that have ended, each with the calls behind it."""
    keys: dict[tuple[int, str], list[str]] = defaultdict(list)
    for call in study.calls(cell):
        keys[call["repeat"], call["sample"]].append(call["key"])
    for result in study.debates(cell):
        if result.decision is None and result.error is None:
            continue  # it is running, or was stopped
        shared = [key for m in result.messages for key in m.calls]  # other cells may have paid for some
        wanted = dict.fromkeys([*result.opening_calls, *shared, *keys[result.repeat, result.sample.id]])
        yield to_eval_sample(result, {call["key"]: call for call in study.calls(keys=wanted)})


def _status(facts: _Facts) -> Any:
    return {"finished": "success", "stopped": "cancelled", "failed": "error"}.get(
        str(facts.summary.get("status")), "started")


def _spec(facts: _Facts, cell: str, samples: Sequence[EvalSample]) -> EvalSpec:
    settings = facts.cells[cell]
    dataset = settings.get("dataset") or {}
    ids = list(dict.fromkeys(str(sample.id) for sample in samples))
    return EvalSpec(
        eval_id=facts.id_of(cell, "eval"), run_id=facts.id_of("run"), task_id=facts.id_of(cell), created=facts.created,
        task=f"{facts.name}/{cell}", task_args={}, model=_model(settings), packages=facts.packages,
        dataset=EvalDataset(name=dataset.get("use"), samples=len(ids),
                            sample_ids=ids if len(ids) <= MOST_NAMED else None),
        config=EvalConfig(epochs=facts.repeats), metadata={"madplug": {"cell": cell, "seed": facts.seed, **settings}})


def _model(settings: Mapping[str, Any]) -> str:
    """The models of a cell, as one name."""
    models = settings.get("models") or {}
    names = [str(table.get("model") or table.get("weights") or table.get("use") or name)
             for name, table in models.items()]
    return "madplug/" + "+".join(dict.fromkeys(names)) if names else "none/none"


def _stats(facts: _Facts, samples: Sequence[EvalSample]) -> EvalStats:
    usage: dict[str, ModelUsage] = {}
    for sample in samples:
        for model, used in sample.model_usage.items():
            usage[model] = usage[model] + used if model in usage else used
    ended = max((s.completed_at for s in samples if s.completed_at), default="")
    return EvalStats(started_at=facts.created, completed_at=ended, model_usage=usage)


def _told_shares(summary: Mapping[str, Any], cell: str) -> dict[str, bool]:
    """Of each metric of a cell whether it is a share of right answers, as far as the summary says."""
    found: Mapping[str, Any] = next((c for c in summary.get("cells") or () if c.get("cell") == cell), {})
    return {name: metric["proportion"] for name, metric in (found.get("metrics") or {}).items()
            if "proportion" in metric}


def _results(own: CellScores, samples: Sequence[EvalSample], told: Mapping[str, bool]) -> EvalResults:
    """The metrics of a cell, with the intervals of the summary; until there is one, scores of 0 and 1 are a share."""
    scored = Counter(name for sample in samples for name in sample.scores or {})
    others = {name for sample in samples for name, score in (sample.scores or {}).items() if score.value not in (0, 1)}
    shares = [name for name in scored if told.get(name, name not in others)]
    scores = []
    found = own.metrics(shares)
    for name in (name for name in scored if name in found):  # in the order of the run file: the viewer lists the first
        metric = found[name]
        interval = metric["ci95"] or []
        values = {"mean": metric["mean"], **dict(zip(("ci95_low", "ci95_high"), interval, strict=False))}
        scores.append(EvalScore(
            name=name, scorer=name, scored_samples=scored[name], unscored_samples=len(samples) - scored[name],
            metrics={key: EvalMetric(name=key, value=value) for key, value in values.items()}))
    return EvalResults(total_samples=len(samples), completed_samples=sum(s.error is None for s in samples),
                       scores=scores)

