"""Words matched by form, stem and meaning: METEOR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import ComponentError, Metric, Options, RunPath, Volatile
from madplug_qa.spans import answer_of

if TYPE_CHECKING:
    from madplug import Debate

SYSTEM = Path("/usr/share/wordnet")
"""Where Debian's package puts it."""
GET = ("METEOR matches synonyms, which needs WordNet: `python -m nltk.downloader wordnet`, or the system's package "
       "(Debian: wordnet-base), or name its folder with wordnet = \"...\"")
_TOKEN = re.compile(r"\w+|[^\w\s]+")


class MeteorOptions(Options):
    """Options of `text.meteor`."""

    alpha: float = Field(default=0.9, gt=0, lt=1, description="weight of recall over precision")
    beta: float = Field(default=3.0, gt=0, description="how fast the penalty for pieces grows")
    gamma: float = Field(default=0.5, ge=0, le=1, description="the largest penalty for pieces")
    wordnet: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="the folder of WordNet's files (data.noun, index.noun, ...)")


class Meteor(Metric):
    """How many words the answer shares with a reference, also by their stems and as synonyms, from 0 to 1.

    NLTK's METEOR, the best over the references; matches in few pieces count more. Words are runs of letters and digits,
    and runs of other signs, in small letters. Synonyms come from WordNet 3.0: in the option's folder, in NLTK's data,
    or where the system keeps it. Without it the metric does not start, since it would be another one. An undecided
    debate scores 0; without references the metric does not apply.

    Differs from METEOR 1.5 (the Java program): one set of weights, no paraphrase table, no function words; and NLTK
    looks synonyms up by stem, so that `automobile` (stem `automobil`) finds none. Scores agree with NLTK's exactly.
    """

    name = "meteor"
    source = "Banerjee and Lavie 2005"
    Options = MeteorOptions

    def check(self, cell: Any) -> Iterable[str]:
        """WordNet must be here."""
        if (found := folder(self.options.wordnet)) is None:
            yield GET if self.options.wordnet is None else f"there is no WordNet in {self.options.wordnet}; {GET}"
        elif found.is_dir() and not (found / "data.noun").is_file():
            yield f"{found} has no file data.noun; {GET}"

    def prepare(self, study: Any) -> None:
        """Reads WordNet's indexes."""
        self._reader()

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """Between 0 and 1."""
        if not references:
            return None
        said = words(answer_of(debate) or "")
        if not said:
            return 0.0
        return max(self._against(said, words(reference)) for reference in references)

    def _against(self, said: list[str], reference: list[str]) -> float:
        from nltk.translate.meteor_score import single_meteor_score

        options = self.options
        return float(single_meteor_score(reference, said, wordnet=self._reader(), alpha=options.alpha,
                                         beta=options.beta, gamma=options.gamma)) if reference else 0.0

    def _reader(self) -> Any:
        found = folder(self.options.wordnet)
        if found is None:
            raise ComponentError(GET)
        return reader(str(found))


def words(text: str) -> list[str]:
    """What METEOR compares."""
    return _TOKEN.findall(text.lower())


def folder(chosen: Path | None) -> Path | None:
    """Where WordNet is: the option's folder, NLTK's data, or the system's."""
    if chosen is not None:
        return chosen if chosen.is_dir() else None
    from nltk import data

    for place in data.path:
        found = Path(place) / "corpora" / "wordnet"
        if found.is_dir():
            return found
        if found.with_suffix(".zip").is_file():
            return found.with_suffix(".zip")
    return SYSTEM if (SYSTEM / "data.noun").is_file() else None


@lru_cache(maxsize=2)
def reader(place: str) -> Any:
    """WordNet; read once in a process."""
    import warnings

    from nltk import data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class WordNet(WordNetCorpusReader):  # type: ignore[misc]
        """Debian leaves out the names of the lexicographers' files, which matching does not ask for."""

        def open(self, file: str) -> Any:
            if file == "lexnames" and not (Path(place) / file).exists():
                return StringIO("".join(f"{i:02}\tfile{i}\t0\n" for i in range(45)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Maps other languages to another version, which NLTK would look for in its own data."""

    root: Any = place
    if place.endswith(".zip"):
        root = data.ZipFilePathPointer(place, "wordnet/")
    elif str(Path(place).parent) not in data.path:
        data.path.append(str(Path(place).parent))  # NLTK reads nothing outside of its search path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it speaks English only
        return WordNet(root, None)
