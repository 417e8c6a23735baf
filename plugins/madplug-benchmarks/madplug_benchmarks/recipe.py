"""Recipes of benchmarks, and the changes that turn their cells into parts of a sample."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

from madplug_files.cells import as_word, is_empty
from madplug_files.references import LETTERS, Wanted

Cells = Mapping[str, Any]
"""The cells of a row, by part of a sample."""
Layout = Mapping[str, "str | tuple[str, ...]"]
"""Column by part of a sample."""
Answers = "str | Mapping[str, Any]"


class CellError(ValueError):
    """A cell does not fit the benchmark. part: the part of a sample that it is."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


@dataclass(frozen=True)
class Recipe:
    """One benchmark."""

    name: str
    about: str
    """The summary, a blank line, and what else a reader must know."""
    hub: str
    layouts: tuple[Layout, ...]
    """The columns of the hub's copy, then those of other copies."""
    answers: str | Mapping[str, Any]
    metric: str
    licence: str
    source: str
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    instruction: str = ""
    """The task in words."""
    reference_as: Wanted = "auto"
    change: Callable[[Cells, random.Random], Cells] | None = None
    """Cells to replace."""
    keep: Callable[[Mapping[str, Any], str | None], bool] | None = None
    """Whether a row belongs to the subset, or without one to the benchmark."""
    subset_of: Literal["config", "split", "column", "rows"] | None = None
    """What a subset is: a configuration or a split of the hub, a value of the `group` column, or what `keep` says."""
    subsets: tuple[str, ...] = ()
    subset: str | None = None
    by_subset: Mapping[str, str] = field(default_factory=dict)
    """Answer formats that differ by subset."""
    choice_seed: bool = False
    per_group: int | None = None
    """The most rows of a group, unless the run file says otherwise."""


# Changes: from the cells of a row that has a question and a reference, the cells to replace

def final_number(cells: Cells, rng: random.Random) -> Cells:
    """GSM8K: the number after the worked solution."""
    _, mark, number = str(cells["reference"]).rpartition("####")
    if not mark or not number.strip():
        raise CellError("reference", "the answer has no line '#### N'")
    return {"reference": number.strip().replace(",", "")}


def integer(cells: Cells, rng: random.Random) -> Cells:
    """AIME: a whole number, also where it is written 033 or with a degree sign."""
    found = re.fullmatch(r"\s*\$?\s*(\d{1,9})\s*(?:\^?\s*\{?\\circ\}?|°)?\s*\$?\s*", as_word(cells["reference"]))
    if not found:
        raise CellError("reference", f"the answer {cells['reference']!r:.40} is not a whole number")
    return {"reference": str(int(found[1]))}


def yes_no(cells: Cells, rng: random.Random) -> Cells:
    """StrategyQA: true is yes."""
    said = str(cells["reference"]).lower()
    if said not in ("true", "false", "yes", "no"):
        raise CellError("reference", f"the answer {cells['reference']!r:.40} is neither true nor false")
    return {"reference": "yes" if said in ("true", "yes") else "no"}


def shuffled(cells: Cells, rng: random.Random) -> Cells:
    """GPQA: the right answer comes first in the row, and must not be first among the choices."""
    choices = cells["choices"]
    if not isinstance(choices, list) or len(choices) < 2 or choices[0] != cells["reference"]:
        raise CellError("choices", f"the choices are {choices!r:.80}; expected the right answer and wrong ones")
    order = list(range(len(choices)))
    rng.shuffle(order)
    return {"choices": [as_word(choices[i]) for i in order], "reference": LETTERS[order.index(0)]}


def option_block(cells: Cells, rng: random.Random) -> Cells:
    """BIG-Bench Hard: the options stand in the question."""
    question, mark, block = str(cells["question"]).partition("\nOptions:\n")
    options = re.findall(r"(?m)^(?:\([A-Z]\)|-) ?(.*)$", block)
    if not mark or not options:
        raise CellError("question", "has no block of options; this preset takes the tasks that have one")
    return {"question": question, "choices": options}


def scored_choices(cells: Cells, rng: random.Random) -> Cells:
    """BIG-bench: a score by choice, and the choices once more in the question."""
    scores = cells["reference"]
    if not isinstance(scores, list) or not scores or not all(isinstance(score, int | float) for score in scores):
        raise CellError("reference", f"the scores are {scores!r:.80}; expected a number for each choice")
    lines = str(cells["question"]).splitlines()
    kept = [line for line in lines if not line.lstrip().startswith("choice:") and line.strip() != "A:"]
    return {"question": "\n".join(kept).strip().removeprefix("Q:").strip(), "reference": scores.index(max(scores))}


def letter_set(cells: Cells, rng: random.Random) -> Cells:
    """AICrypto: several may be right, and only all of them together are."""
    right = cells["reference"]
    if not isinstance(right, list) or not right or not all(
            type(i) is int and 0 <= i < len(cells["choices"] or ()) for i in right):
        raise CellError("reference", f"the answer is {right!r:.80}; expected the positions of the right choices from 0")
    return {"reference": "".join(LETTERS[i] for i in sorted(set(right)))}


def paraphrase(cells: Cells, rng: random.Random) -> Cells:
    """ETPC: the kinds of paraphrase, each once and in a fixed order."""
    kinds = [] if is_empty(cells["context"]) else cells["context"]
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise CellError("context", f"the kinds of paraphrase are {kinds!r:.80}; expected a list of texts")
    return {"context": "Paraphrase types: " + ", ".join(sorted(set(kinds)))}


def joined(cells: Cells, rng: random.Random) -> Cells:
    """Texts that are kept as a list of sentences."""
    question = cells["question"]
    if isinstance(question, list):
        question = " ".join(str(sentence) for sentence in question)
    return {"question": question}


def open_or_choice(cells: Cells, rng: random.Random) -> Cells:
    """MathVision: a question without options has an empty list of them."""
    return {} if cells.get("choices") else {"choices": None}


def numbered_id(cells: Cells, rng: random.Random) -> Cells:
    """SQuAD: a copy may lack some ids."""
    return {} if cells.get("id") else {"id": None}


_DIRECTLY = re.compile(r"\s*\bplease answer directly\b[^.\n]*\.?\s*\Z", re.IGNORECASE)
_OPTION = re.compile(r"\s*\(?([A-Z])[.):]\s*(\S.*?)\s*")


def listed_options(cells: Cells, rng: random.Random) -> Cells:
    """RealWorldQA: the options are the last lines, and a sentence after them asks for a bare answer.

    The sentence is left out: how to answer is the answer format's to say.
    """
    question, options = split_options(str(cells["question"]))
    return {"question": question, "choices": options or None}


def split_options(question: str) -> tuple[str, dict[str, str]]:
    """A question without its options and the sentence about answering directly; the options by letter."""
    lines = _DIRECTLY.sub("", question).rstrip().split("\n")
    options: dict[str, str] = {}
    while lines and (found := _OPTION.fullmatch(lines[-1])):
        options = {found[1]: found[2], **options}
        lines.pop()
    if len(options) < 2 or "".join(options) != LETTERS[:len(options)] or not lines:
        return _DIRECTLY.sub("", question).strip(), {}
    return "\n".join(lines).strip(), options


def photograph_kind(row: Mapping[str, Any], subset: str | None) -> bool:
    """RealWorldQA: `choice` lists options, `open` does not; `verifiable`: options, yes or no, or a number."""
    listed = bool(split_options(str(row.get("question") or ""))[1])
    if subset == "verifiable":
        return listed or re.fullmatch(r"(?i)\s*(?:yes|no|[-+]?\d+(?:[.,]\d+)?)\s*\.?\s*",
                                      str(row.get("answer"))) is not None
    return subset is None or (subset == "choice") == listed


_LEFT_OUT = {
    "Boys Do Bleed": "", "MONICA!": "", "The Girl in His Mind": "", "The Blue Tower": "between the humans and",
    "Conditionally Human": "Anne becomes pregnant", "Conspiracy on Callisto": "willing to fight",
    "Name Your Symptom": "characterize Price EXCEPT", "Mars Confidential": "prostitution on Mars",
    "Letter of the Law": "warrant imprisonment", "Judas Ram": "remarkable abilities EXCEPT",
    "A Fall of Glass": "The Movement believes", "The Desert and the Stars": "ultimate goal for Flamme"}
"""QuALITY: by story, words of the question that the authors of the debates left out; empty where it is all of them."""
_NO_ANSWER = ("all of the above", "none of the above", "neither of these")


def needs_its_story(row: Mapping[str, Any], subset: str | None) -> bool:
    """QuALITY: who has read the story is right, who has skimmed it is not, and a sentence or two are not enough."""
    gold, untimed = row.get("gold_label"), row.get("validation") or ()
    left_out = _LEFT_OUT.get(str(row.get("title")).strip())
    if (not untimed or row.get("source") != "Gutenberg" or row.get("difficult") != 1 or row.get("writer_label") != gold
            or (left_out is not None and left_out in str(row.get("question")))):
        return False
    two = _two_answers(row.get("options") or (), gold, untimed)
    return (all(v["untimed_eval1_answerability"] <= 1 and int(v["untimed_answer"]) == gold for v in untimed)
            and fmean(int(v["speed_answer"]) == gold for v in row.get("speed_validation") or ()) <= 0.5
            and fmean(v["untimed_eval2_context"] for v in untimed) >= 1.5
            and len(set(two)) == 2 and not any(words in text.lower() for text in two for words in _NO_ANSWER))


def right_and_distractor(cells: Cells, rng: random.Random) -> Cells:
    """QuALITY: of four answers the right one and the one that annotators named most often as the best wrong one."""
    gold, untimed = cells["reference"]
    two = _two_answers(cells["choices"], gold, untimed)
    story = re.sub("[\u2028\u2029\x85\x0b\x0c]", "", str(cells["context"])).replace("\xa0", " ")
    return {**shuffled({"choices": two, "reference": two[0]}, rng), "context": story}


def _two_answers(options: Any, gold: Any, untimed: Any) -> list[str]:
    """The right answer, and the distractor named most often; of equals the first. Labels count from 1."""
    named = Counter(label for label in sorted(v["untimed_best_distractor"] for v in untimed) if label != gold)
    return [str(options[label - 1]) for label in (gold, *(label for label, _ in named.most_common(1)))]
