"""A debater that is a formula: what it would say alone, and how far it follows others."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import exp
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from typing_extensions import override

from madplug import Agent, ComponentError, Message, Options, Plan, Reply, Style, Turn
from madplug_prompting.prompts import letter

if TYPE_CHECKING:
    from madplug import Debate

Share = Annotated[float, Field(gt=0, lt=1)]
Pull = Annotated[float, Field(ge=-50, le=50)]


class DebaterOptions(Options):
    """What a debater is like. A list is taken by agent, in turn; a table by persona name or role."""

    competence: Share | tuple[Share, ...] | dict[str, Share] = Field(default=0.7, description=(
        "probability of a right answer alone, on a question of middle difficulty"))
    conformity: Pull | tuple[Pull, ...] | dict[str, Pull] = Field(default=2.0, description=(
        "how much the support of an answer among the visible peers counts; 0: not at all, below 0: against it"))
    stubbornness: Pull | tuple[Pull, ...] | dict[str, Pull] = Field(default=1.0, description=(
        "how much an agent's own last answer counts, on the same scale"))
    recency: float = Field(default=1.0, ge=0, le=100, description=(
        "how much more the last peer in the view counts than the first: weights rise from 1 to 1 + recency"))
    difficulty: float = Field(default=2.0, ge=0, le=50, description=(
        "effect of the sample's metadata `difficulty` (0 easy to 1 hard; 0.5 where there is none) on the logit of "
        "competence: plus this for the easiest, minus this for the hardest"))
    lure: float = Field(default=0.0, ge=0, le=1, description=(
        "share of the wrong answers that goes to one wrong option, the same for all agents; the rest is even"))
    wrong: int = Field(default=3, ge=1, le=1000, description="wrong answers to a question without options")
    text: str = Field(default="The answer is {answer}.", description="what a debater says; {answer}")


class Debater(Style):
    """Draws answers at random, from a model of a debater. No model is asked, and no prompt is written.

    The probability of an answer is proportional to its probability alone, times exp(conformity * support +
    stubbornness * own). Support is the weight of the visible peers whose latest message gives that answer,
    divided by the weight of all of them; a peer weighs more, the later it is in the view. Own is 1 for the
    agent's own last answer. Alone, an agent is right with its competence, raised or lowered by the
    difficulty of the sample, and wrong answers share the rest. Below 0, `conformity` makes an agent avoid
    the others' answers: anti-conformity.

    Everything is drawn from the study's seed, the sample, the agent and its place in the record, so that
    cells of one study share their first answers. The confidence is the probability of the answer that was
    drawn; the agreement is whether it equals the latest answer of another agent. It reads the references,
    to know which answer is right, so a run file needs `oracle = true`.

    Differs from the paper: its conformity score and coefficient are missing from the available text;
    exponent, weights and stubbornness are this project's.
    """

    name = "debater"
    source = "Free-MAD 2025, equation 4 (a debater's probability of an answer)"
    moves = frozenset({"draft", "improve", "feedback"})
    needs = frozenset({"references"})
    gives = frozenset({"agreement", "confidence"})
    Options = DebaterOptions

    def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """Draw an answer."""
        options, right = possible(debate, self.options.wrong)
        alone = self.alone(debate, turn.agent, options, right)
        peers = latest(view, turn.agent.id, options)
        chances = self.chances(debate, turn.agent, alone, peers)
        sums = list(accumulate(chances.values()))
        rng = debate.rng(f"simulator.debater:{turn.agent.id}:{len(debate.transcript.record)}")
        answer = options[min(bisect(sums, rng.random() * sums[-1]), len(options) - 1)]
        return Reply(self.options.text.replace("{answer}", answer), answer, confidence=chances[answer] / sums[-1],
                     agreement=answer == peers[-1] if peers else None)

    @override
    def calls(self, plan: Plan) -> int:
        return 0

    def alone(self, debate: Debate, agent: Agent, options: Sequence[str], right: Sequence[str]) -> dict[str, float]:
        """The probability of each answer of an agent that sees no other."""
        o = self.options
        p = of(o.competence, agent)
        if o.difficulty:
            hard = float(debate.sample.metadata.get("difficulty", 0.5))
            p = 1 / (1 + (1 - p) / p * exp(o.difficulty * (2 * hard - 1)))
        wrong = [a for a in options if a not in right]
        if not wrong:
            return dict.fromkeys(options, 1 / len(options))
        even = (1 - p) * (1 - o.lure) / len(wrong)
        chances = {a: p / len(right) if a in right else even for a in options}
        if o.lure:
            chances[debate.rng("simulator.debater:lure").choice(wrong)] += (1 - p) * o.lure
        return chances

    def chances(self, debate: Debate, agent: Agent, alone: Mapping[str, float],
                peers: Sequence[str]) -> dict[str, float]:
        """The chances of each answer, not yet divided by their sum."""
        pulls = dict.fromkeys(alone, 0.0)
        step = self.options.recency / max(1, len(peers) - 1)
        weights = [1 + step * i for i in range(len(peers))]
        pull = of(self.options.conformity, agent) / sum(weights) if peers else 0.0
        for answer, weight in zip(peers, weights, strict=True):
            pulls[answer] += pull * weight
        own = debate.transcript.last(agent)
        if own is not None and own.answer in pulls:
            pulls[own.answer] += of(self.options.stubbornness, agent)
        return {a: max(p * exp(pulls[a]), 1e-300) for a, p in alone.items()}

    def check(self, cell: Any) -> Iterable[str]:
        """Lists and tables have a value for every agent."""
        for name in ("competence", "conformity", "stubbornness"):
            value = getattr(self.options, name)
            if isinstance(value, dict | tuple) and not value:
                yield f"'{name}' is empty"


def of(value: float | Sequence[float] | Mapping[str, float], agent: Agent) -> float:
    """An agent's own value."""
    if isinstance(value, float | int):
        return value
    if isinstance(value, Mapping):
        found = value.get(agent.persona.name, value.get(agent.persona.role, value.get("default")))
        if found is None:
            raise ComponentError(f"simulator.debater has no value for '{agent.persona.name}' nor for the role "
                                 f"'{agent.persona.role}'; give one, or one for 'default'")
        return found
    return value[agent.id % len(value)]


def latest(view: Sequence[Message], me: int, options: Sequence[str]) -> list[str]:
    """The latest answer of every peer in a view, in the order of the view; messages without an author each count."""
    found: list[str] = []
    seen: set[int] = set()
    for m in reversed(view):
        if m.agent == me or m.agent in seen:
            continue
        if m.agent is not None:
            seen.add(m.agent)
        answer = m.answer if m.answer in options else m.key
        if answer is not None and answer in options:
            found.append(answer)
    return found[::-1]


def possible(debate: Debate, wrong: int) -> tuple[list[str], list[str]]:
    """What can be answered, and what of it is right."""
    references = debate.references
    if not debate.sample.choices:
        others = [a for a in made_up(references[0] if references else "0", wrong) if a not in references]
        return [*references, *others], list(references)
    options = [letter(i) for i in range(len(debate.sample.choices))]
    right = [r if r in options else debate.answers.canonical(r, debate.sample) for r in references]
    missing = [r for r, key in zip(references, right, strict=True) if key not in options]
    if missing:
        raise ComponentError(f"the reference '{missing[0]}' is none of the options of sample '{debate.sample.id}'")
    return options, [r for r in right if r is not None]


def made_up(reference: str, n: int) -> list[str]:
    """Wrong answers to a question without options: the other of yes and no, the next numbers, other words."""
    low = reference.strip().lower()
    if low in ("yes", "no", "true", "false"):
        return [{"yes": "no", "no": "yes", "true": "false", "false": "true"}[low]]
    try:
        number = float(reference)
    except ValueError:
        return [f"another answer {i + 1}" for i in range(n)]
    return [f"{number + 1 + i:.12g}" for i in range(n)]
