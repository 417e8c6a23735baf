"""How far voters agree, how different their answers are, how long it took, how it ended."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Metric, Options, ServiceName
from madplug_dynamics.table import Keys, columns, ratio

if TYPE_CHECKING:
    from madplug import Debate

Vector = Sequence[float]


class Agreement(Metric):
    """The share of pairs of voters with equal answers, in each round.

    Parts: `round_1`, `round_2`, ... and `last` (an answer that could not be read equals none); in the last round
    `strength`, the largest share of voters with one answer, `strength_parsed`, the same among the answers that could be
    read, and `unanimous`; `unique_first_answers`, how many answers there were in the first round.
    """

    name = "agreement"
    source = "Smit et al. 2024 (DebateLLM); definitions of our own"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Shares by name."""
        table = columns(debate)
        if not table or not table[0]:
            return None
        pairs = [pairwise_agreement(keys) for keys in table]
        last = Counter(key for key in table[-1] if key is not None)
        most, voters = max(last.values(), default=0), len(table[-1])
        return {**{f"round_{k}": share for k, share in enumerate(pairs, 1)}, "last": pairs[-1],
                "strength": most / voters, "strength_parsed": ratio(most, sum(last.values())),
                "unanimous": float(most == voters),
                "unique_first_answers": float(len({key for key in table[0] if key is not None}))}


class Diversity(Metric):
    """How different the voters' final answers are.

    Parts: `distinct`, the number of different answers of the last round divided by the number of voters; with an
    `embedder` also `similarity`, the mean cosine of the embeddings of all pairs of final texts (lower is more
    diverse): of the answers, or of the whole messages. A vector of zeros has the cosine 0 with every other; fewer than
    two texts have no similarity.

    The embedder is a service with `embed(texts: list[str])`, plain or async, that returns one list of numbers per text,
    all of one length.
    """

    name = "diversity"
    source = "Kaesberg et al. 2025 (Voting or Consensus), table 1; Becker et al. 2025 (MALLM)"

    class Options(Options):
        """Options of `dynamics.diversity`."""

        embedder: ServiceName | None = Field(
            default=None, description="a service with embed(texts) -> list of vectors; unset: only `distinct`")
        of: Literal["answer", "content"] = Field(
            default="answer", description="what is embedded: the final answers, or the messages that gave them")

    async def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """`distinct`, and `similarity` with an embedder."""
        last = next(reversed(columns(debate)), None)
        if not last:
            return None
        parts: dict[str, float | None] = {"distinct": len({key for key in last if key is not None}) / len(last)}
        if self.options.embedder is not None:
            parts["similarity"] = await self._similarity(debate)
        return parts

    async def _similarity(self, debate: Debate) -> float | None:
        final = [debate.transcript.last(voter) for voter in debate.voters]
        texts = [text for m in final if m is not None and (text := getattr(m, self.options.of))]
        if len(texts) < 2:
            return None
        service: Any = debate.service(self.options.embedder)
        vectors = service.embed(texts)
        return mean_cosine(await vectors if inspect.isawaitable(vectors) else vectors)


class Rounds(Metric):
    """How many rounds were held, the first included."""

    name = "rounds"
    source = "Becker et al. 2025 (MALLM), figure 9"

    def score(self, debate: Debate, references: Sequence[str]) -> float:
        """A whole number."""
        return float(max((m.round for m in debate.transcript.messages), default=0))


class Decided(Metric):
    """How the debate ended.

    Parts, each 1 or 0: `agreed`, the decision protocol's own rule was met (a mean is the paper's decision success
    rate); `answered`, there is an answer at all; `fallback`, a fallback gave it; `tie`.
    """

    name = "decided"
    proportion = True
    source = "Becker et al. 2025 (MALLM), figure 9; Kaesberg et al. 2025 (Voting or Consensus)"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float] | None:
        """Facts by name."""
        made = debate.decision
        return None if made is None else {"agreed": float(made.agreed), "answered": float(made.key is not None),
                                          "fallback": float(made.fallback), "tie": float(made.tie)}


def pairwise_agreement(keys: Keys) -> float | None:
    """The share of pairs with equal keys; None for fewer than two voters."""
    pairs = [a is not None and a == b for a, b in combinations(keys, 2)]
    return ratio(sum(pairs), len(pairs))


def mean_cosine(vectors: Sequence[Vector]) -> float:
    """The mean over all pairs of vectors."""
    return fmean(cosine(a, b) for a, b in combinations(vectors, 2))


def cosine(a: Vector, b: Vector) -> float:
    """The cosine of two vectors; 0 where one of them is zero."""
    norm = math.hypot(*a) * math.hypot(*b)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0
