"""Casting by proposals and peer review."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from madplug import (
    AccessError,
    Agent,
    Casting,
    ComponentError,
    Message,
    ModelError,
    Persona,
    Plan,
    Reply,
    Setup,
    Turn,
    UnreachableError,
    hookimpl,
    maybe_await,
)
from madplug_metadebate.criteria import Criteria, criteria_of
from madplug_metadebate.options import CastOptions
from madplug_metadebate.review import Row, best_candidates, means, read_scores
from madplug_prompting.prompts import Chat, fill, question_parts, user
from madplug_prompting.replies import spoken
from madplug_prompting.ties import break_tie

if TYPE_CHECKING:
    from madplug import Debate


@dataclass(frozen=True)
class Proposal:
    """What a model would say first in a role."""

    model: str
    text: str
    answer: str | None = None
    """The answer that its style read, or None."""
    context: str = ""
    """What it was shown of earlier roles."""


@dataclass(frozen=True)
class Role:
    """A role that was cast: all its proposals, by model, and the one that won."""

    persona: Persona
    proposals: dict[str, Proposal]
    winner: Proposal


class Cast(Casting):
    """Gives each role to the model whose proposal for it the models themselves score best, question by question.

    Every model of `debate.models` writes a proposal for every role: what it would say first, or with
    `proposals = "style"` its first turn, by the role's own style with all its calls. Every model then
    scores all proposals for a role, its own included, without knowing whose they are, on two or three criteria from
    1 to 5. The role goes to the highest mean; of equal means to the one with the higher median, then to the model
    named first. A model may play several roles. With `proposal_context = "sequential_winner"` roles are cast in the
    order of the debate, and a proposal sees the winning ones before it; `"independent"`: the same model's own
    earlier ones; `"none"`: nothing. A review shows what the proposals saw.

    The criteria stand in the run file (`criteria`), or are generated once for the data set and each role in `roles`,
    from training examples, and stored with the study. If they cannot be read, and for other roles, built-in ones are
    used. A reviewer whose scores cannot be read is asked again, then dropped for that role; without any readable
    review the role goes to `default`. A model whose call fails is no candidate for that role, or no reviewer; the
    debate fails when none is left. Proposals, scores, the cast, where the criteria come from, and who was dropped or
    failed are in the notes under `metadebate`.

    `assignment = "random"` draws a model for each role, once for each repeat of the study, so that the spread over
    repeats is that over assignments; `"uniform"` gives them all to `default`: baselines that make no call.

    Differs from the paper, which leaves open how scores on several criteria become one (their mean), what happens to
    ties, to scores that cannot be read and to models that fail, and whose text a proposal for the negative side answers
    (here that of the winner before it, which its reviewers are shown too). A score between two whole numbers counts.
    """

    name = "cast"
    source = "Meta-Debate (dynamic role assignment for multi-agent debate), section 3"
    Options = CastOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._seed = 0
        self._criteria: dict[str, Criteria] = {}

    def calls(self, plan: Plan) -> int:
        """A proposal and a review by every model for every role; as many models as roles are assumed."""
        if self.options.assignment != "reviewed":
            return 0
        models = int(plan.models) or 1
        proposals = models * (plan.per_turn if self.options.proposals == "style" else 1)
        reviews = models if self.options.reviews == "batched" else models**2
        return plan.agents * (proposals + reviews * (1 + int(self.options.retries)))

    def check(self, cell: Any) -> Iterable[str]:
        """There has to be a model to cast, and the default has to be one of them."""
        options = self.options
        if not cell.models:
            yield "there is no model to cast; name one in [models.NAME]"
        elif options.default is not None and options.default not in cell.models:
            yield f"'default' names '{options.default}', which is not among the models: {', '.join(cell.models)}"
        if options.proposals == "style" and options.proposal_context != "none":
            yield "proposals = \"style\" are first turns, which see no other role: set proposal_context = \"none\""

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
            draw = random.Random(f"metadebate.cast/{self._seed}/{debate.repeat}")
            played = [draw.choice(sorted(models)) for _ in personas]
        return [Agent(i, persona, model) for i, (persona, model) in enumerate(zip(personas, played, strict=True))]

    @hookimpl
    def madplug_reply(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Awaitable[Reply] | None:
        """The winning proposal instead of an agent's first turn, where proposals are reused."""
        if not self.options.reuse_proposals or not turn.agent.persona.votes or debate.transcript.by(turn.agent):
            return None
        won: list[dict[str, Any]] = debate.notes.get("metadebate", {}).get("cast", [])
        if not won:
            return None

        async def reused() -> Reply:
            chosen = won[turn.agent.id]
            return Reply(chosen["proposal"], chosen.get("answer"), data={"metadebate": {"reused": True}})

        return reused()

    async def _reviewed(self, debate: Debate, personas: Sequence[Persona], models: Sequence[str]) -> list[str]:
        """Role after role: proposals, reviews, a winner."""
        before: list[Role] = []
        cast: list[dict[str, Any]] = []
        gone: dict[str, str] = {}  # waiting for an endpoint that is down costs a deadline: once, and not in each stage
        for i, persona in enumerate(personas):
            failed = {f"proposal of {model}": reason for model, reason in gone.items()}
            made = await debate.ask_all(self._propose(debate, i, persona, model, before, failed, gone)
                                        for model in models if model not in gone)
            proposals = [proposal for proposal in made if proposal is not None]
            if not proposals:
                raise ModelError(f"no model wrote a proposal for the role '{persona.role}': {_listed(failed)}")
            failed |= {f"review by {model}": reason for model, reason in gone.items()}
            rows = await debate.ask_all(self._review(debate, persona, model, proposals, failed, gone)
                                        for model in models)
            if all(f"review by {model}" in failed for model in models):
                raise ModelError(f"no model reviewed the proposals for the role '{persona.role}': {_listed(failed)}")
            winner, facts = self._choose(debate, i, persona, models, proposals, rows)
            unread = facts["criteria"] == "unread" or any(
                row is None and f"review by {model}" not in failed for model, row in zip(models, rows, strict=True))
            cast.append(facts | ({"unparsed": True} if unread else {}) | ({"failed": failed} if failed else {}))
            before.append(Role(persona, {p.model: p for p in proposals}, winner))
        debate.notes["metadebate"] = {"cast": cast}
        return [role.winner.model for role in before]

    def _choose(self, debate: Debate, i: int, persona: Persona, models: Sequence[str], proposals: Sequence[Proposal],
                rows: Sequence[Row | None]) -> tuple[Proposal, dict[str, Any]]:
        """Whose proposal wins a role, and what the notes say about it."""
        options, names = self.options, [p.model for p in proposals]
        authors = [models.index(name) for name in names]
        best = best_candidates(rows, self_scores=options.self_scores, authors=authors)
        j = break_tie(debate, best, options.tie, f"metadebate.cast:{i}", name=names.__getitem__)
        default = names.index(options.default) if options.default in names else 0
        winner = proposals[default if j is None else j]
        mean = means(rows, self_scores=options.self_scores, authors=authors)
        facts: dict[str, Any] = {
            "role": persona.role, "model": winner.model, "proposal": winner.text,
            "scores": None if mean is None else {m: float(s) for m, s in zip(names, mean, strict=True)},
            "criteria": self._criteria_of(persona).note}
        if winner.answer is not None:
            facts["answer"] = winner.answer
        if dropped := [model for model, row in zip(models, rows, strict=True) if row is None]:
            facts["dropped"] = dropped
        return winner, facts | ({"fallback": True} if j is None else {})

    # Proposals

    async def _propose(self, debate: Debate, i: int, persona: Persona, model: str, before: Sequence[Role],
                       failed: dict[str, str], gone: dict[str, str]) -> Proposal | None:
        """A model's proposal for a role, or None if its call fails."""
        try:
            if self.options.proposals == "style":
                return await first_turn(debate, Agent(i, persona, model))
            return await self._written(debate, persona, model, self._context(before, model))
        except ModelError as error:
            failed[f"proposal of {model}"] = _reason(error)
            if _is_gone(error):
                gone[model] = _reason(error)
            return None

    async def _written(self, debate: Debate, persona: Persona, model: str, context: str) -> Proposal:
        """A proposal by the prompt that is the same for all roles."""
        facts = self._facts(debate, persona)
        text = fill(self.options.proposal, **facts, context=context,
                    format=debate.answers.instruction(debate.sample))
        chat = [*_system(self.options.system, facts), user(debate.sample, text)]
        said = await debate.ask(chat, model=model, purpose="propose")
        return Proposal(model, spoken(said.text), context=context)

    def _context(self, before: Sequence[Role], model: str) -> str:
        """What a model is shown of the roles before."""
        if self.options.proposal_context == "sequential_winner":
            said = [(role.persona, role.winner) for role in before]
        elif self.options.proposal_context == "independent":
            said = [(role.persona, role.proposals[model]) for role in before if model in role.proposals]
        else:
            said = []
        proposals = "\n\n".join(f"{persona.name}:\n{proposal.text}" for persona, proposal in said)
        return fill(self.options.context, proposals=proposals) if proposals else ""

    def _facts(self, debate: Debate, persona: Persona) -> dict[str, str]:
        return {"question": question_parts(debate.sample), "setting": self.options.setting, "role": persona.name,
                "description": self.options.roles.get(persona.role, persona.description)}

    # Reviews

    def _criteria_of(self, persona: Persona) -> Criteria:
        """The criteria of a role; without any of its own, those that the run file gives for all roles."""
        given = self.options.criteria
        general = Criteria() if isinstance(given, Mapping) or not given else Criteria(given, "given")
        return self._criteria.get(persona.role, general)

    async def _review(self, debate: Debate, persona: Persona, model: str, proposals: Sequence[Proposal],
                      failed: dict[str, str], gone: dict[str, str]) -> Row | None:
        """One model's scores of all proposals for a role; None if its call fails or they cannot be read."""
        if model in gone:
            return None
        batches = [proposals] if self.options.reviews == "batched" else [[p] for p in proposals]
        try:
            rows = await debate.ask_all(self._score(debate, persona, model, batch) for batch in batches)
        except ModelError as error:
            failed[f"review by {model}"] = _reason(error)
            if _is_gone(error):
                gone[model] = _reason(error)
            return None
        return None if None in rows else [score for row in rows if row is not None for score in row]

    async def _score(self, debate: Debate, persona: Persona, model: str, proposals: Sequence[Proposal]) -> Row | None:
        """Ask until the scores can be read."""
        criteria = self._criteria_of(persona).items
        facts = self._facts(debate, persona)
        contexts = {p.context for p in proposals}
        shared = contexts.pop() if len(contexts) == 1 else ""  # else each agent's own precedes its proposal
        listed = [f"Agent {i}:\n{p.context if contexts else ''}{p.text}" for i, p in enumerate(proposals, 1)]
        text = fill(self.options.review, **facts, context=shared, count=len(proposals), proposals="\n\n".join(listed),
                    criteria="\n".join(f"{name}: {why}" for name, why in criteria))
        names = [name for name, _ in criteria]
        chat = [*_system(self.options.review_system, facts), user(debate.sample, text)]
        for _ in range(self.options.retries + 1):
            said = await debate.ask(chat, model=model, purpose="review",
                                    form={"json_schema": _schema(len(proposals), names)})
            row = read_scores(said.text, len(proposals), names)
            if row is not None:
                return row
        return None


async def first_turn(debate: Debate, agent: Agent) -> Proposal:
    """What an agent says in its first turn, by the style that writes it, in view of nothing."""
    for move in ("draft", "improve"):
        turn = Turn(agent, move)
        bound = next((s for s in debate.cell.styles if s.takes(agent, turn)), None)
        if bound is not None:
            reply: Reply = await maybe_await(bound.style.respond(debate, turn, ()))
            return Proposal(agent.model or "", reply.content, reply.answer)
    raise ComponentError(f"no style of this cell writes a first turn of the role '{agent.persona.role}'; "
                         "set proposals = \"prompt\"")


def _system(template: str, facts: dict[str, str]) -> list[Chat]:
    text = fill(template, **facts).strip()
    return [{"role": "system", "content": text}] if text else []


def _is_gone(error: ModelError) -> bool:
    """Whether a model cannot be asked anything else either: no connection, a wrong key, no such model."""
    return isinstance(error, AccessError) or isinstance(error.__cause__, UnreachableError)


def _reason(error: ModelError) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _listed(failed: dict[str, str]) -> str:
    return "; ".join(f"{what}: {why}" for what, why in failed.items())


def _schema(candidates: int, criteria: Sequence[str]) -> dict[str, Any]:
    """The form of a review."""
    fields: dict[str, Any] = {name: {"type": "integer", "minimum": 1, "maximum": 5} for name in criteria}
    fields["explanation"] = {"type": "string"}
    entry = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    names = [f"Agent {i + 1}" for i in range(candidates)]
    return {"type": "object", "properties": dict.fromkeys(names, entry), "required": names,
            "additionalProperties": False}
