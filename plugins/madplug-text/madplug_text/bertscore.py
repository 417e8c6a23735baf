"""Words matched by what a language model makes of them: BERTScore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import ComponentError, Metric, Options, Volatile
from madplug_qa.spans import answer_of

if TYPE_CHECKING:
    from madplug import Debate

INSTALL = "needs bert-score, which brings PyTorch: pip install 'madplug-text[bertscore]'"


class BertScoreOptions(Options):
    """Options of `text.bertscore`."""

    model: str = Field(
        default="roberta-large", description="a folder with a model, or a name of one in the hub's cache")
    layer: int | None = Field(
        default=None, ge=1, description="the layer to compare; unset: bert-score's choice for a model it knows")
    rescale: bool = Field(
        default=False, description="stretch the scores by bert-score's baseline for English and this model")
    device: Annotated[str | None, Volatile] = Field(
        default=None, description="where PyTorch computes; unset: a GPU where there is one")


class BertScore(Metric):
    """How well each word of the answer matches one of a reference in a language model's eyes, and the other way round.

    Parts: `precision`, `recall`, `f1`, of the reference with the best f1. The model is on this machine already: a
    folder, or a name in the hub's cache; it is never fetched by a study. Scores of different models or layers cannot be
    compared. An undecided debate scores 0; without references the metric does not apply.
    """

    name = "bertscore"
    source = "Zhang et al. 2020 (BERTScore)"
    Options = BertScoreOptions

    def check(self, cell: Any) -> Iterable[str]:
        """The library and the model must be here."""
        if find_spec("bert_score") is None:
            yield INSTALL
            return
        try:
            place(self.options.model)
        except ComponentError as error:
            yield str(error)
        if self.options.layer is None and self.options.model not in known_layers():
            yield f"bert-score knows no best layer of '{self.options.model}'; name one with layer"

    def prepare(self, study: Any) -> None:
        """Loads the model."""
        scorer(self.options)

    async def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float] | None:
        """By part."""
        from asyncio import to_thread

        if not references:
            return None
        said = answer_of(debate)
        if not said or not said.strip():
            return {"precision": 0.0, "recall": 0.0, "f1": 0.0}
        # Seconds on a CPU; the other debates go on meanwhile.
        return await to_thread(self._against, said, list(references))

    def _against(self, said: str, references: list[str]) -> dict[str, float]:
        # One at a time: in a batch, padding stands in for the match of a word whose best cosine is negative, so that a
        # score would depend on the other references.
        found = scorer(self.options).score([said] * len(references), references, batch_size=1)
        rows = [dict(zip(("precision", "recall", "f1"), map(float, row), strict=True))
                for row in zip(*found, strict=True)]
        return max(rows, key=lambda row: row["f1"])


def known_layers() -> Mapping[str, int]:
    """bert-score's table of the best layer of each model."""
    from bert_score.utils import model2layers

    return model2layers  # type: ignore[no-any-return]


def place(model: str) -> str:
    """The folder of a model that is on this machine."""
    if Path(model).is_dir():
        return model
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return snapshot_download(model, local_files_only=True)
    except (LocalEntryNotFoundError, HFValidationError):
        raise ComponentError(f"the model '{model}' is not on this machine: `hf download {model}`, or name the folder "
                             "of another one") from None


@lru_cache(maxsize=2)
def scorer(options: Any) -> Any:
    """The loaded model."""
    if find_spec("bert_score") is None:
        raise ComponentError(f"text.bertscore {INSTALL}")
    import bert_score

    baseline = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{options.model}.tsv"
    return bert_score.BERTScorer(
        model_type=place(options.model), num_layers=options.layer or known_layers().get(options.model),
        lang="en", rescale_with_baseline=options.rescale, baseline_path=str(baseline) if options.rescale else None,
        device=options.device)
