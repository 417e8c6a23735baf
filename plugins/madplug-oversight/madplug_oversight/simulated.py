"""A model that argues and judges by a formula, to try studies of oversight without a real one."""

from __future__ import annotations

import re
from hashlib import blake2b
from math import exp, log

from pydantic import Field

from madplug import Completion, Model, ModelOptions, Request

_MINE = re.compile(r"^Your answer: (.*)$", re.MULTILINE)
_THING = re.compile(r"^Question: Where is the (\w+)", re.MULTILINE)
_STRENGTH = re.compile(r"^(Debater ([AB])|Consultant):\n.*?strength (-?\d+\.\d+)", re.MULTILINE | re.DOTALL)


class SimulatedOptions(ModelOptions):
    """Options of `oversight.simulated`."""

    persuasiveness: float = Field(default=1.0, ge=-20, le=20, description="how strong every argument is, on average")
    truth: float = Field(default=1.0, ge=-20, le=20, description=(
        "how much stronger an argument for the right answer is"))
    spread: float = Field(default=1.0, ge=0, le=20, description="how far strengths are drawn around their mean")
    ability: float = Field(default=6.0, ge=0, le=50, description="how sure a judge is that reads the passage itself")


class Simulated(Model):
    """Argues with a strength that it states, and judges by the strengths that it reads. No language model is asked.

    The strength of an argument is drawn around `persuasiveness`, plus `truth` if it is for the right answer: the last
    sentence of the passage that has what is asked about in one of the two places has it there. A judge's log-odds are
    the strengths of Debater A minus those of Debater B, or a consultant's strengths; with the passage, `ability` for
    what it says; without either, a coin. A speaker that chooses its answer takes the one for which a stronger argument
    comes to its mind. Made for `puzzles.hidden_facts` and the shipped prompts.
    """

    name = "simulated"
    Options = SimulatedOptions

    async def complete(self, request: Request) -> Completion:
        """What the formula says, from the request and its seed alone."""
        text = "\n".join(str(m["content"]) for m in request.messages)
        if request.purpose == "argue":
            return Completion(self._argument(text, request.seed))
        if request.purpose == "ask":
            return Completion("Where in the passage does it say so?")
        if request.purpose == "critique":
            return Completion("Quote the sentence that says where it is last.")
        if request.purpose == "choose":
            return Completion(f"Answer: {'A' if self._chooses_a(text, request.seed) else 'B'}")
        belief = self._belief(text, request.seed)
        letter = "A" if belief >= 0.5 else "B"
        if "top_logprobs" in request.params:
            return Completion(letter, top_logprobs=({"A": log(belief), "B": log(1 - belief)},))
        enough = f"Enough: {'yes' if abs(belief - 0.5) > 0.45 else 'no'}\n" if "Enough: yes or no" in text else ""
        return Completion(f"{enough}I weigh the arguments.\nProbability of A: {100 * belief:.1f}%\nAnswer: {letter}")

    def _argument(self, text: str, seed: int) -> str:
        mine = _MINE.search(text)
        answer = mine[1] if mine else ""
        passage = text.partition("Passage:\n")[2].partition("\n\nQuestion:")[0]
        other = text.partition("The other answer: ")[2].partition("\n")[0]
        found = _last(text, passage, answer)
        right = found > _last(text, passage, other)
        said = re.split(r"(?<=\.) ", passage)[found] if found >= 0 else answer
        strength = self.options.persuasiveness + self.options.truth * right + self.options.spread * _drawn(seed)
        return f"<argument>My argument has strength {strength:.2f}: <quote>{said}</quote></argument>"

    def _chooses_a(self, text: str, seed: int) -> bool:
        """The answer for which the stronger argument comes to mind."""
        a, b = _answers(text)
        passage = text.partition("Passage:\n")[2].partition("\n\nQuestion:")[0]
        lead = self.options.truth * (1 if _last(text, passage, a) > _last(text, passage, b) else -1)
        return lead + 2 * self.options.spread * _drawn(seed) > 0

    def _belief(self, text: str, seed: int) -> float:
        """The probability of answer A."""
        a, b = _answers(text)
        odds = 0.0
        for _, name, strength in _STRENGTH.findall(text):
            sign = -1 if name == "B" or (not name and "argue for answer B" in text) else 1
            odds += sign * float(strength)
        if "Passage:\n" in text:
            passage = text.partition("Passage:\n")[2]
            odds += self.options.ability * (1 if _last(text, passage, a) > _last(text, passage, b) else -1)
        odds = odds or _drawn(seed)
        return 1 / (1 + exp(-max(-30.0, min(30.0, odds))))


def _answers(text: str) -> list[str]:
    """The answers that are called A and B."""
    return [text.partition(f"Answer {name}: ")[2].partition("\n")[0] for name in "AB"]


def _last(text: str, passage: str, answer: str) -> int:
    """The last sentence of a passage that names what the question is about and the last word of an answer; -1: none."""
    asked = _THING.search(text)
    names = (f"the {asked[1]}" if asked else "").lower(), answer.strip().strip(".").split(" ")[-1].lower()
    sentences = re.split(r"(?<=\.) ", passage.lower())
    return max((i for i, sentence in enumerate(sentences) if all(name in sentence for name in names)), default=-1)


def _drawn(seed: int) -> float:
    """A number from -1 to 1."""
    return int.from_bytes(blake2b(str(seed).encode(), digest_size=4).digest(), "big") / 2**31 - 1
