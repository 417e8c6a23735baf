"""Casting by proposals and peer review."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Agent, Casting, Message, ModelName, Options, Persona, Plan, Reply, Setup, Turn, hookimpl
from madplug_common.prompts import fill, question_parts, user
from madplug_common.ties import Tie, break_tie
from madplug_metadebate.criteria import BUILT_IN, Criterion, criteria_of
from madplug_metadebate.review import Row, best_candidates, means, read_scores

if TYPE_CHECKING:
    from madplug import Debate

PROPOSAL = """{question}

{setting}

{context}You take this part: {role}. {description}

Write what you would say first in this part. {format}"""
CONTEXT = """What was said before you:

{proposals}

"""
REVIEW = """{question}

{setting}

{count} independent agents have each written what they would say first in this part: {role}. {description}

{proposals}

Score each of them on each of these criteria, with a whole number from 1 to 5:

{criteria}

5: excellent, nothing is missing or wrong. 4: good, with small flaws. 3: fair, with flaws that matter. 2: poor, with \
serious flaws. 1: fails. Judge what is said and whether it is right; do not favour a style, a length or a place in the \
list. Reply with one JSON object that has a field for each agent ("Agent 1" and so on), which has a field for each \
criterion, by its name, with the score, and a field "explanation" with one sentence."""
CRITERIA = """{setting}

One of the parts is: {role}. {description}

Some of the questions:

{examples}

By which 2 or 3 criteria can one judge how well an agent plays this part on such questions? They should cover whether \
the part is fulfilled and what is said is right, and not how it is worded. Reply with one JSON object that has the \
field "criteria": a list of objects with the fields "name" (a few words) and "explanation" (one sentence)."""


class CastOptions(Options):
    """Options of `metadebate.cast`."""

    assignment: Literal["reviewed", "random", "uniform"] = Field(
        default="reviewed", description="by peer review; or a baseline: drawn once for the study, one model for all")
    proposal_context: Literal["sequential_winner", "independent", "none"] = Field(
        default="sequential_winner", description="what a proposal sees of earlier roles")
    reviews: Literal["batched", "single"] = Field(
        default="batched", description="all proposals for a role in one call, or a call for each")
    self_scores: bool = Field(default=True, description="count what a model gives its own proposal")
    reuse_proposals: bool = Field(default=False, description=(
        "the winning proposal is its agent's first message, which saves the call; for agents that vote"))
    default: ModelName | None = Field(default=None, description=(
        "the model where no review can be read, and for `uniform`; unset: the first"))
    tie: Tie = Field(
        default="first",
        description="among equal means; first: higher median, then first named; undecided: default")
    retries: int = Field(default=1, ge=0, le=10, description="times to ask again for scores or criteria to be read")
    setting: str = Field(default="", description="the debate in a sentence or two, shown as {setting}")
    roles: Mapping[str, str] = Field(default={},
                                     description="roles to make criteria for, and what they are there for")
    criteria_model: ModelName | None = Field(default=None, description="makes the criteria; unset: the first")
    examples: int = Field(default=3, ge=0, le=20,
                          description="questions shown to the model that makes the criteria")
    proposal: str = Field(default=PROPOSAL, description=(
        "asks for a proposal; {question}, {setting}, {context}, {role}, {description}, {format}"))
    context: str = Field(default=CONTEXT, description="{context} where there are earlier {proposals}")
    review: str = Field(default=REVIEW, description=(
        "asks for scores; {question}, {setting}, {count}, {role}, {description}, {proposals}, {criteria}"))
    criteria: str = Field(default=CRITERIA, description=(
        "asks for criteria; {setting}, {role}, {description}, {examples}"))


class Cast(Casting):
    """Gives each role to the model whose proposal for it the models themselves score best, question by question.

    Every model of `debate.models` writes a proposal for every role: what it would say first. Every model then
    scores all proposals for a role, its own included, without knowing whose they are, on two or three criteria from
    1 to 5. The role goes to the highest mean; of equal means to the one with the higher median, then to the model
    named first. A model may play several roles. With `proposal_context = "sequential_winner"` roles are cast in the
    order of the debate, and a proposal sees the winning ones before it; `"independent"`: the same model's own
    earlier ones; `"none"`: nothing.

    The criteria of the roles named in `roles` are generated once for the data set and stored with the study. If they
    cannot be read, and for other roles, built-in ones are used; the debate's notes say so. A reviewer
    whose scores cannot be read is asked again, then dropped for that role; without any reviewer the role goes to
    `default`, and the notes say so. Proposals, scores and the cast are in the notes under `metadebate`.

    `assignment = "random"` draws a model for each role, once for the whole study; `"uniform"` gives them all to
    `default`: baselines that make no call.

    Differs from the paper, which leaves open how scores on several criteria become one (their mean), what happens to
    ties, to scores that cannot be read, and whose text a proposal for the negative side answers.
    """

    name = "cast"
    source = "Meta-Debate (dynamic role assignment for multi-agent debate), section 3"
    Options = CastOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._seed = 0
        self._criteria: dict[str, tuple[Sequence[Criterion], bool]] = {}

    def calls(self, plan: Plan) -> int:
        """A proposal and a review by every model for every role; as many models as roles are assumed."""
        if self.options.assignment != "reviewed":
            return 0
        models = int(plan.models) or 1
        reviews = models if self.options.reviews == "batched" else models**2
        return plan.agents * (models + reviews * (1 + int(self.options.retries)))

    def check(self, cell: Any) -> Iterable[str]:
        """There has to be a model to cast, and the default has to be one of them."""
        if not cell.models:
            yield "there is no model to cast; name one in [models.NAME]"
        elif self.options.default is not None and self.options.default not in cell.models:
            yield f"'default' names '{self.options.default}', which is not among the models: {', '.join(cell.models)}"

    async def prepare(self, setup: Setup) -> None:
        """Make the criteria, once for the data set and each role."""
        self._seed = setup.seed
        if self.options.assignment != "reviewed":
            return
        made = await setup.ask_all(criteria_of(setup, self.options, role) for role in self.options.roles)
        self._criteria = dict(zip(self.options.roles, made, strict=True))

    async def cast(self, debate: Debate, personas: Sequence[Persona]) -> Sequence[Agent]:
        """A model for each persona."""
        models = list(dict.fromkeys(debate.models))
        if self.options.assignment == "reviewed":
            played = await self._reviewed(debate, personas, models)
        elif self.options.assignment == "uniform":
            played = [self.options.default or models[0] for _ in personas]
        else:
            draw = random.Random(f"metadebate.cast/{self._seed}")
            played = [draw.choice(sorted(models)) for _ in personas]
        return [Agent(i, persona, model) for i, (persona, model) in enumerate(zip(personas, played, strict=True))]

    @hookimpl
    def madplug_reply(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Awaitable[Reply] | None:
        """The winning proposal instead of an agent's first turn, where proposals are reused."""
        if not self.options.reuse_proposals or not turn.agent.persona.votes or debate.transcript.by(turn.agent):
            return None
        won: list[dict[str, Any]] = debate.notes.get("metadebate", {}).get("cast", [])
        text = won[turn.agent.id]["proposal"] if won else None

        async def reused() -> Reply:
            return Reply(text or "", data={"metadebate": {"reused": True}})

        return None if text is None else reused()

    async def _reviewed(self, debate: Debate, personas: Sequence[Persona], models: Sequence[str]) -> list[str]:
        """Role after role: proposals, reviews, a winner."""
        before: list[tuple[Persona, list[str], int]] = []
        cast: list[dict[str, Any]] = []
        for i, persona in enumerate(personas):
            proposals = await debate.ask_all(
                self._propose(debate, persona, model, self._context(before, j)) for j, model in enumerate(models))
            rows = await debate.ask_all(self._review(debate, persona, model, proposals) for model in models)
            chosen = self._choose_model(debate, i, persona, models, rows)
            winner = models.index(chosen["model"])
            cast.append({**chosen, "proposal": proposals[winner]})
            before.append((persona, proposals, winner))
        debate.notes["metadebate"] = {"cast": cast}
        return [chosen["model"] for chosen in cast]

    def _choose_model(self, debate: Debate, i: int, persona: Persona, models: Sequence[str],
                      rows: Sequence[Row | None]) -> dict[str, Any]:
        """Which model plays a role, and why."""
        options = self.options
        best = best_candidates(rows, self_scores=options.self_scores)
        j = break_tie(debate, best, options.tie, f"metadebate.cast:{i}", name=models.__getitem__)
        default = options.default or models[0]
        mean = means(rows, self_scores=options.self_scores)
        chosen: dict[str, Any] = {
            "role": persona.role, "model": default if j is None else models[j],
            "scores": None if mean is None else {m: float(s) for m, s in zip(models, mean, strict=True)}}
        if dropped := [model for model, row in zip(models, rows, strict=True) if row is None]:
            chosen["dropped"] = dropped
        if j is None:
            chosen["fallback"] = True
        if self._criteria.get(persona.role, (BUILT_IN, True))[1]:
            chosen["built_in_criteria"] = True
        return chosen

    def _context(self, before: Sequence[tuple[Persona, list[str], int]], j: int) -> str:
        """What candidate `j` sees of the roles before."""
        if not before or self.options.proposal_context == "none":
            return ""
        winners = self.options.proposal_context == "sequential_winner"
        said = "\n\n".join(f"{p.name}:\n{texts[w if winners else j]}" for p, texts, w in before)
        return fill(self.options.context, proposals=said)

    def _facts(self, debate: Debate, persona: Persona) -> dict[str, str]:
        return {"question": question_parts(debate.sample), "setting": self.options.setting, "role": persona.name,
                "description": self.options.roles.get(persona.role, persona.description)}

    async def _propose(self, debate: Debate, persona: Persona, model: str, context: str) -> str:
        text = fill(self.options.proposal, **self._facts(debate, persona), context=context,
                    format=debate.answers.instruction(debate.sample))
        return (await debate.ask([user(debate.sample, text)], model=model, purpose="propose")).text

    async def _review(self, debate: Debate, persona: Persona, model: str, proposals: Sequence[str]) -> Row | None:
        """One model's scores of all proposals for a role; None when they cannot be read."""
        batches = [proposals] if self.options.reviews == "batched" else [[p] for p in proposals]
        rows = await debate.ask_all(self._score(debate, persona, model, batch) for batch in batches)
        return None if None in rows else [score for row in rows if row is not None for score in row]

    async def _score(self, debate: Debate, persona: Persona, model: str, proposals: Sequence[str]) -> Row | None:
        """Ask until the scores can be read."""
        criteria = self._criteria.get(persona.role, (BUILT_IN, True))[0]
        text = fill(self.options.review, **self._facts(debate, persona), count=len(proposals),
                    proposals="\n\n".join(f"Agent {i + 1}:\n{p}" for i, p in enumerate(proposals)),
                    criteria="\n".join(f"{name}: {why}" for name, why in criteria))
        names = [name for name, _ in criteria]
        for _ in range(self.options.retries + 1):
            said = await debate.ask([user(debate.sample, text)], model=model, purpose="review",
                                    form={"json_schema": _schema(len(proposals), names)})
            row = read_scores(said.text, len(proposals), names)
            if row is not None:
                return row
        return None


def _schema(candidates: int, criteria: Sequence[str]) -> dict[str, Any]:
    """The form of a review."""
    fields: dict[str, Any] = {name: {"type": "integer", "minimum": 1, "maximum": 5} for name in criteria}
    fields["explanation"] = {"type": "string"}
    entry = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    names = [f"Agent {i + 1}" for i in range(candidates)]
    return {"type": "object", "properties": dict.fromkeys(names, entry), "required": names,
            "additionalProperties": False}
