"""How different the voters' answers are, and how different the voters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from madplug import Embedder, Metric, Offers, Options, ServiceName
from madplug_prompting.finals import answers_decided_on, last_messages
from madplug_prompting.vectors import mean_cosine

if TYPE_CHECKING:
    from madplug import Debate


class EmbedderOptions(Options):
    """What texts are compared with."""

    embedder: Annotated[ServiceName, Offers(Embedder)] | None = Field(
        default=None, description="the [services.NAME] that embeds the texts; unset: only `distinct`")


class DiversityOptions(EmbedderOptions):
    """Options of `dynamics.diversity`."""

    of: Literal["answer", "content"] = Field(default="answer", description=(
        "what is embedded: the final answers that the decision was made on, or the voters' last messages"))


class Diversity(Metric):
    """How different the voters' final answers are.

    The final answers are those that the decision was made on: what voters wrote down when they were asked for it, else
    each voter's last answer that could be read. Parts: `distinct`, the number of different answers divided by the
    number of voters; with an `embedder` also `similarity`, the mean cosine of the embeddings of all pairs of texts
    (lower is more diverse). A vector of zeros has the cosine 0 with every other; fewer than two texts have no
    similarity.
    """

    name = "diversity"
    source = "Kaesberg et al. 2025 (Voting or Consensus), table 1; Becker et al. 2025 (MALLM)"
    Options = DiversityOptions

    async def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """`distinct`, and `similarity` with an embedder."""
        finals = answers_decided_on(debate)
        if not finals:
            return None
        distinct = len({one.key for one in finals if one.key is not None}) / len(debate.voters)
        texts = [one.text for one in finals if one.key is not None] if self.options.of == "answer" else [
            message.content for message in last_messages(debate).values()]
        return {"distinct": distinct, **await similarity(debate, self.options.embedder, texts)}


class PersonaDiversity(Metric):
    """How different the voters' personas are.

    Parts: `distinct`, the number of different personas (name and description) divided by the number of voters; with an
    `embedder` also `similarity`, the mean cosine of the embeddings of all pairs of personas (lower is more diverse).
    Fewer than two voters have no similarity.
    """

    name = "persona_diversity"
    source = "Becker et al. 2025 (MALLM), section 3.4"
    Options = EmbedderOptions

    async def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """`distinct`, and `similarity` with an embedder."""
        personas = [f"{a.persona.name}: {a.persona.description}".strip(": ") for a in debate.voters]
        if not personas:
            return None
        return {"distinct": len(set(personas)) / len(personas),
                **await similarity(debate, self.options.embedder, personas)}


async def similarity(debate: Debate, embedder: str | None, texts: Sequence[str]) -> dict[str, float | None]:
    """`similarity`, the mean cosine of all pairs of texts; nothing without an embedder."""
    if embedder is None:
        return {}
    written = [text for text in texts if text]
    if len(written) < 2:
        return {"similarity": None}
    return {"similarity": mean_cosine(await debate.service(embedder, Embedder).embed(written))}
