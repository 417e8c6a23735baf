"""How far voters agree, how different their answers are, how long it took, how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from madplug import Metric, Offers, Options, ServiceName
from madplug.services import Embedder
from madplug_common.finals import last_messages
from madplug_common.vectors import mean_cosine
from madplug_dynamics.table import Keys, columns, ratio

if TYPE_CHECKING:
    from madplug import Debate


class Agreement(Metric):
    """The share of pairs of voters with equal answers, in each round.

    Parts: `round_1`, `round_2`, ... and `last` (an answer that could not be read equals none); in the last round
    `strength`, the largest share of voters with one answer, `strength_parsed`, the same among the answers that could be
    read, and `unanimous`; `unique_first_answers`, how many answers there were in the first round.
    """

    name = "agreement"
    source = "Smit et al. 2024 (DebateLLM); this project's definitions"

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


class DiversityOptions(Options):
    """Options of `dynamics.diversity`."""

    embedder: Annotated[ServiceName, Offers(Embedder)] | None = Field(
        default=None, description="the [services.NAME] that embeds the texts; unset: only `distinct`")
    of: Literal["answer", "content"] = Field(
        default="answer", description="what is embedded: the final answers, or the messages that gave them")


class Diversity(Metric):
    """How different the voters' final answers are.

    Parts: `distinct`, the number of different answers of the last round divided by the number of voters; with an
    `embedder` also `similarity`, the mean cosine of the embeddings of all pairs of final texts (lower is more
    diverse): of the answers, or of the whole messages. A vector of zeros has the cosine 0 with every other; fewer than
    two texts have no similarity.
    """

    name = "diversity"
    source = "Kaesberg et al. 2025 (Voting or Consensus), table 1; Becker et al. 2025 (MALLM)"
    Options = DiversityOptions

    async def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """`distinct`, and `similarity` with an embedder."""
        last = next(reversed(columns(debate)), None)
        if not last:
            return None
        parts: dict[str, float | None] = {"distinct": len({key for key in last if key is not None}) / len(last)}
        if self.options.embedder is not None:
            parts["similarity"] = await self._similarity(debate, debate.service(self.options.embedder, Embedder))
        return parts

    async def _similarity(self, debate: Debate, embedder: Embedder) -> float | None:
        texts = [text for m in last_messages(debate).values() if (text := getattr(m, self.options.of))]
        if len(texts) < 2:
            return None
        return mean_cosine(await embedder.embed(texts))


class Rounds(Metric):
    """How many rounds there were, including the first."""

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
