"""Debates in which every reply travels with how uncertain the model was about it (DebUnc)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Message, Metric, Paradigm, Style, hookimpl
from madplug_prompting.prompts import fill
from madplug_prompting.tokens import TokenProbabilities, mean_entropy, mean_log_probability
from madplug_qa.keys import canonical_references, is_right
from madplug_som import Exchange, ExchangeOptions

if TYPE_CHECKING:
    from madplug import Debate

__all__ = ["Calibration", "DebuncDebate", "Oracle", "Uncertain", "scale"]

SOURCE = "DebUnc (arXiv 2407.06426); the authors' code"
EXCHANGE = """Other agents worked on the same question. Their answers, each with how confident its author is, from 1 \
(not at all) to 10 (entirely):

{answers}

Take their reasoning into account, and rely on it as far as their confidence goes; compare it with your own, and give \
an updated answer. Do not mention confidence in your reply. {format}"""


class DebuncDebate(Paradigm):
    """Everybody reads the others' answers with their confidence, as the uncertainty of their tokens has it.

    agents x rounds calls, 9 by default. The endpoint has to give log-probabilities; sample at temperature 1.
    """

    name = "debate"
    source = SOURCE
    debate = {
        "agents": 3, "rounds": 3, "turns": "turns.simultaneous", "visibility": "visibility.everything",
        "styles": ["debunc.exchange"], "decision": {"use": "voting.plurality", "tie": "first"}}


def scale(uncertainties: Sequence[float]) -> list[int]:
    """The confidences from 1 to 10 of the agents of a round.

    14 times the share of the inverse uncertainty, plus 1 / n, cut to 1 to 10 and rounded half to even. An uncertainty
    of 0 is taken for 1e-6.
    """
    inverse = [1 / max(u, 1e-6) for u in uncertainties]
    return [round(min(10.0, max(1.0, 14 * i / fsum(inverse) + 1 / len(inverse)))) for i in inverse]


class ConfidentOptions(ExchangeOptions):
    """The prompts, those of `som.exchange` among them."""

    exchange: str = Field(default=EXCHANGE, description=(
        "a turn with others to listen to; {answers} (their blocks), {question}, {format}"))
    sure: str = Field(default="(confidence: {confidence})", description=(
        "what follows an answer whose confidence is known; {confidence}, from 1 to 10"))


class Confident(Exchange):
    """The exchange of `som.exchange`, with a confidence after each answer of another agent."""

    source = SOURCE
    Options = ConfidentOptions

    @abstractmethod
    def confidences(self, debate: Debate, round: int) -> Mapping[int, int]:
        """From 1 to 10, by the id of each message of a round whose confidence is known."""

    def later_prompt(self, debate: Debate, shown: Sequence[Message]) -> str:
        """The others' answers with their confidences; the agent's own is not shown."""
        known = {id: sure for k in {m.round for m in shown} for id, sure in self.confidences(debate, k).items()}
        return super().later_prompt(debate, [self.marked(m, known.get(m.id)) for m in shown])

    def marked(self, message: Message, sure: int | None) -> Message:
        """The message, with its confidence."""
        if sure is None:
            return message
        return replace(message, content=f"{message.content}\n{fill(self.options.sure, confidence=sure)}")


class UncertainOptions(ConfidentOptions):
    """Options of `debunc.exchange`."""

    uncertainty: Literal["entropy", "drawn"] = Field(default="entropy", description=(
        "of a token: the entropy of its distribution, or -log p of the one drawn, for endpoints that give no others"))
    likeliest: int = Field(default=20, ge=1, le=1000, description=(
        "with 'entropy': how many tokens at each place the endpoint is asked for; the rest counts as one"))


class Uncertain(TokenProbabilities, Confident):
    """An exchange in which each answer is shown with a confidence from the uncertainty of its tokens.

    The confidence of an agent is relative to those of the same round: it grows with the inverse of the mean entropy of
    the reply's tokens. A reply without their probabilities is shown without a confidence, counts as unread, and is
    counted by `debunc.calibration`. With `uncertainty = "drawn"`, the mean of -log p of the tokens that were drawn
    takes the entropy's place, which is its expectation where they are sampled at temperature 1.

    Differs from the paper: an endpoint gives the probabilities of the likeliest tokens only, so that what they leave
    counts as one token more. Scaling the model's attention by the confidence, the paper's better variant, needs the
    model's weights and is not offered; nor is TokenSAR.
    """

    name = "exchange"
    Options = UncertainOptions

    @property
    def likeliest(self) -> int:
        """Of the options, where entropies are measured."""
        return self.options.likeliest if self.options.uncertainty == "entropy" else 0

    def confidences(self, debate: Debate, round: int) -> Mapping[int, int]:
        """Of every message whose tokens were measured."""
        found = {m.id: self.uncertainty(m) for m in debate.transcript.of_round(round)}
        known = {id: u for id, u in found.items() if u is not None}
        return dict(zip(known, scale(list(known.values())), strict=True)) if known else {}

    def uncertainty(self, message: Message) -> float | None:
        """Of a message; None if it was not measured."""
        if self.options.uncertainty == "entropy":
            return mean_entropy(message)
        logp = mean_log_probability(message)
        return None if logp is None else -logp


class Oracle(Confident):
    """An exchange in which a right answer is shown with confidence 10 and any other with 1: an upper bound.

    It reads the references, so a run file needs `oracle = true`, and every result is marked.
    """

    name = "oracle"
    needs = frozenset({"references"})

    def confidences(self, debate: Debate, round: int) -> Mapping[int, int]:
        """10 or 1."""
        right = canonical_references(debate, debate.references)
        return {m.id: 10 if is_right(debate, m.key, right) else 1
                for m in debate.transcript.of_round(round) if m.agent is not None}


class Calibration(Metric):
    """How confident right answers and wrong ones were, as far as the uncertainty of their tokens was measured.

    Parts: `right` and `wrong`, the mean confidence from 1 to 10 of such answers; one that could not be read is
    neither. `measured`, the share of messages with log-probabilities. Without references only the last.
    """

    name = "calibration"
    source = SOURCE

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Means by name."""
        style = next((bound.style for bound in debate.cell.styles if isinstance(bound.style, Uncertain)), Uncertain())
        right = canonical_references(debate, references)
        sure = {id: c for k in range(1, debate.round + 1) for id, c in style.confidences(debate, k).items()}
        said = [m for m in debate.transcript.messages if m.agent is not None and m.answers]
        if not said:
            return None
        parts: dict[str, float | None] = {"measured": sum(m.id in sure for m in said) / len(said)}
        for name, wanted in (("right", True), ("wrong", False)) if right else ():
            values = [sure[m.id] for m in said if m.id in sure and m.key is not None
                      and is_right(debate, m.key, right) is wanted]
            parts[name] = fmean(values) if values else None
        return parts


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [DebuncDebate]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register two styles."""
    return [Uncertain, Oracle]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Calibration]
