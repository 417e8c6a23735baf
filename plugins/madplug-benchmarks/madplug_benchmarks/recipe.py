"""What a recipe says, and the few ways in which its cells differ from what a sample holds."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from madplug_files.columns import LETTERS, Wanted

Cells = Mapping[str, Any]
"""What the columns of a row hold, by part of a sample."""
Layout = Mapping[str, "str | tuple[str, ...]"]
"""Column by part of a sample."""
Answers = "str | Mapping[str, Any]"


@dataclass(frozen=True)
class Recipe:
    """One benchmark."""

    name: str
    about: str
    """The summary, and whatever a reader must know of it."""
    hub: str
    layouts: tuple[Layout, ...]
    """The columns of the hub's copy; then those of other copies."""
    answers: str | Mapping[str, Any]
    metric: str
    licence: str
    source: str
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    instruction: str = ""
    """Stands before the question where the row does not say what to do."""
    reference_as: Wanted = "auto"
    change: Callable[[Cells, random.Random], Cells] | None = None
    """Cells to replace."""
    keep: Callable[[Mapping[str, Any], str | None], bool] | None = None
    """Whether a row belongs to the benchmark, or to its subset."""
    subset_of: Literal["config", "split", "column", "rows"] | None = None
    """What a subset is: a configuration or a split of the hub, a value of the `group` column, or what `keep` says."""
    subsets: tuple[str, ...] = ()
    subset: str | None = None
    by_subset: Mapping[str, str] = field(default_factory=dict)
    """Answer formats that differ by subset."""
    choice_seed: bool = False


# Changes

def final_number(cells: Cells, rng: random.Random) -> Cells:
    """GSM8K: the number after the worked solution."""
    _, mark, number = str(cells["reference"]).rpartition("####")
    if not mark:
        raise ValueError("the answer has no line '#### N'")
    return {"reference": number.strip().replace(",", "")}


def integer(cells: Cells, rng: random.Random) -> Cells:
    """AIME: a whole number, also where it is written 033 or with a degree sign."""
    found = re.fullmatch(r"\s*\$?\s*(\d+)\s*(?:\^?\s*\{?\\circ\}?|°)?\s*\$?\s*", str(cells["reference"]))
    if not found:
        raise ValueError(f"the answer {cells['reference']!r:.40} is no whole number")
    return {"reference": str(int(found[1]))}


def yes_no(cells: Cells, rng: random.Random) -> Cells:
    """StrategyQA: true is yes."""
    said = str(cells["reference"]).lower()
    if said not in ("true", "false", "yes", "no"):
        raise ValueError(f"the answer {cells['reference']!r:.40} is neither true nor false")
    return {"reference": "yes" if said in ("true", "yes") else "no"}


def shuffled(cells: Cells, rng: random.Random) -> Cells:
    """GPQA: the right answer comes first in the row, and must not on screen."""
    order = list(range(len(cells["choices"])))
    rng.shuffle(order)
    return {"choices": [cells["choices"][i].strip() for i in order], "reference": LETTERS[order.index(0)]}


def option_block(cells: Cells, rng: random.Random) -> Cells:
    """BIG-Bench Hard: the options stand in the question."""
    question, mark, block = str(cells["question"]).partition("\nOptions:\n")
    options = re.findall(r"(?m)^(?:\([A-Z]\)|-) ?(.*)$", block)
    if not mark or not options:
        raise ValueError("has no block of options; this preset takes the tasks that have one")
    return {"question": question, "choices": options}


def scored_choices(cells: Cells, rng: random.Random) -> Cells:
    """BIG-bench: a score by choice, and the choices once more in the question."""
    scores: Sequence[float] = cells["reference"]
    lines = str(cells["question"]).splitlines()
    kept = [line for line in lines if not line.lstrip().startswith("choice:") and line.strip() != "A:"]
    return {"question": "\n".join(kept).strip().removeprefix("Q:").strip(), "reference": scores.index(max(scores))}


def letter_set(cells: Cells, rng: random.Random) -> Cells:
    """AICrypto: several may be right, and only all of them together are."""
    return {"reference": "".join(LETTERS[i] for i in sorted(set(cells["reference"])))}


def paraphrase(cells: Cells, rng: random.Random) -> Cells:
    """ETPC: the kinds of paraphrase, each once and in a fixed order."""
    return {"context": "Paraphrase types: " + ", ".join(sorted(set(cells["context"] or ())))}


def joined(cells: Cells, rng: random.Random) -> Cells:
    """Texts that are kept as a list of sentences."""
    question = cells["question"]
    return {"question": " ".join(question) if isinstance(question, list) else question}


def open_or_choice(cells: Cells, rng: random.Random) -> Cells:
    """MathVision: a question without options has an empty list of them."""
    return {} if cells.get("choices") else {"choices": None}


def numbered_id(cells: Cells, rng: random.Random) -> Cells:
    """SQuAD: a copy may lack some ids."""
    return {} if cells.get("id") else {"id": None}
