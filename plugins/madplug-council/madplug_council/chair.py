"""How a council ends: a chair writes the answer, the best-ranked answer stands, or a model picks one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Message, ModelError, ModelName, Options, Plan, Reply, Turn
from madplug.study import describe_error
from madplug_council.ballots import Rank, agreement, mean_places, order, scores
from madplug_council.stages import (
    LLM_COUNCIL,
    ItemOptions,
    ballots,
    noted,
    opinions,
    relabelled,
    reviews,
    seat,
    under_letters,
)
from madplug_judge.synthesis import read_number
from madplug_prompting.prompts import as_text, fill, letter, question_parts, user
from madplug_prompting.replies import read_json, spoken
from madplug_prompting.ties import highest, leaders

if TYPE_CHECKING:
    from madplug import Debate

UNREAD = "no ranking could be read"
ANALYSIS = ("consensus", "contradictions", "partial_coverage", "unique_insights", "blind_spots")
"""The keys of an analysis."""


class RankOptions(Options):
    """How rankings are added up."""

    rank: Rank = Field(default="mean", description=(
        "mean: the mean place; borda: the mean share of those ranked below; copeland: pairwise majorities"))


class Best(DecisionProtocol):
    """The answer that the reviewers rank best; without a call.

    Equals with different answers are a tie: the one with more first places is taken, then the first seat's. If no
    answer could be read in what is ranked first, the next is a fallback; without any ranking that could be read, the
    most frequent answer is, in a tie the first seat's. Places, the agreement of the reviewers (Kendall's W) and what
    was odd about their rankings are in the notes under `council`.

    Differs from the original: it has only a chair; mean places are not rounded; its ties go to the first in its table.
    """

    name = "best"
    source = LLM_COUNCIL
    needs = frozenset({"ranking"})
    Options = RankOptions

    async def at_end(self, debate: Debate) -> Decision:
        """The decision, and the notes."""
        found = opinions(debate)
        if not found:
            return Decision.undecided("no seat gave an answer")
        note(debate, self.options.rank)
        return await self.decide(debate, found)

    async def decide(self, debate: Debate, found: Sequence[Message]) -> Decision:
        """Among at least one answer."""
        return by_rank(debate, found, self.options.rank)


def note(debate: Debate, rank: Rank) -> None:
    """Put the figures of the reviews into the debate's notes."""
    read = ballots(debate)
    debate.notes["council"] = {
        "places": {str(id): place for id, place in mean_places(read).items()}, "order": order(read, rank),
        "agreement": agreement(read), "ballots": len(read), "reviews": len(reviews(debate)),
        "odd": {str(m.agent): odd for m in reviews(debate) if (odd := noted(m).get("odd"))}}


def by_rank(debate: Debate, found: Sequence[Message], rank: Rank, why: str = "") -> Decision:
    """The best-ranked answer. why: what else was to decide, and did not; the answer is then a fallback."""
    by_id = {m.agent: m for m in found if m.key is not None}
    if not by_id:
        return Decision.undecided(f"{why}no answer could be read")
    read = ballots(debate)
    placed = order(read, rank)
    ranked = [[id for id in ids if id in by_id] for ids in placed]
    group: Sequence[int | None] = next(filter(None, ranked), [])
    place = "ranked first" if group else "given most often"
    if not group and len(found) > 1:
        why = f"{why}{unranked(debate)}; "
    elif group and not ranked[0]:
        place, first = "ranked next", _listed(_names(debate, placed[0]))
        why = f"{why}no answer could be read in what was ranked first, of {first}; "
    if group and by_id[group[0]].round > reviews(debate)[-1].round:
        place += ", before its revision"
    group = group or _most_frequent(by_id)
    best, names = by_id[group[0]], _names(debate, group)
    tie = len({by_id[id].key for id in group}) > 1
    how = f"the only answer, of {names[0]}" if len(found) == 1 else \
        f"{place} (a tie): the answers of {_listed(names)}; taken: that of {names[0]}" if tie else \
        f"{place}: the answer of {_listed(names)}"
    figures = highest((by_id[id].key, value) for id, value in scores(read, rank).items() if id in by_id)
    return Decision(best.key, best.answer, agreed=not why and not tie, tie=tie, fallback=bool(why), scores=figures,
                    reason=f"{why}{how}")


def unranked(debate: Debate) -> str:
    """Why there is no ranking."""
    return UNREAD if any(noted(m)["odd"] for m in reviews(debate)) else "nothing was ranked"


def _names(debate: Debate, seats: Sequence[int | None]) -> list[str]:
    return [debate.agents[id or 0].persona.name for id in seats]


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _most_frequent(by_id: Mapping[int | None, Message]) -> list[int | None]:
    """The seats whose answer most seats give; of several such answers, all these seats."""
    counts = Counter(m.key for m in by_id.values())
    most = leaders(counts)
    return [id for id, m in by_id.items() if m.key in most]


class ChairOptions(RankOptions, ItemOptions):
    """Who chairs, what the chair sees, and the prompts."""

    model: ModelName | None = Field(default=None, description="the chair; default: the model of the best-ranked seat")
    fallback: tuple[ModelName, ...] = Field(default=(), description=(
        "who chairs if that model fails, in this order; default: the seats' models, the best-ranked first"))
    sees: tuple[Literal["critiques", "rankings"], ...] = Field(default=("critiques", "rankings"), description=(
        "what the chair is shown beside the answers"))
    names: bool = Field(default=False, description="show which model wrote which answer and review")
    analysis: bool = Field(default=False, description=(
        "first ask for an analysis in one more call: " + ", ".join(ANALYSIS)))
    prompt: str = Field(default=(
        "{question}\n\nA council was asked this. Its answers:\n\n{answers}\n\n{reviews}{rankings}{analysis}"
        "You chair it. Write the council's answer to the question: weigh the answers and what was said about them, "
        "correct what is wrong, and settle contradictions or say that they are open. Answer the reader directly; say "
        "nothing of the council, its members or their labels.\n\n{format}"), description=(
        "prompt. {question}; {answers}, under letters; {reviews}, {rankings} and {analysis}, empty where there are "
        "none; {format}: how the answer format asks for the answer"))
    reviews: str = Field(default="What reviewers said:\n\n{items}\n\n", description="prompt: {reviews}. {items}")
    rankings: str = Field(default="The reviewers' ranking, the best first: {items}.\n\n", description=(
        "prompt: {rankings}. {items}: labels with their mean places, equals joined by \"=\""))
    analyse: str = Field(default=(
        "{question}\n\nSeveral answers to this were given independently:\n\n{answers}\n\n{reviews}"
        "Compare them. Reply with a JSON object and nothing else. Its keys, each with a list of short statements that "
        "name the answers concerned: \"consensus\" (what all agree on), \"contradictions\", \"partial_coverage\" (what "
        "only some of them treat), \"unique_insights\" (what only one of them saw), \"blind_spots\" (what none of them "
        "treats and the question needs)."), description="prompt, with `analysis`. As `prompt`")
    analysed: str = Field(default="An analysis of the answers:\n\n{items}\n\n", description=(
        "prompt: {analysis}. {items}: JSON"))


class Chair(Best):
    """A chair reads all answers, reviews and rankings and writes the council's answer.

    In one call; with `analysis`, in two. Letters are the same in answers, reviews and rankings: those that a reviewer
    used are replaced. If the chair's model fails, the next of `fallback` is asked; if all fail, or the answer cannot be
    read, the best-ranked answer is the decision, and the reason begins with that. A single answer is the decision
    without a call. Who was asked, and what failed, is in the notes.

    Differs from the original: the chair sees letters instead of names (`names = true` is the original), sees the
    rankings too (`sees = ["critiques"]`), and a chair that fails is replaced instead of its error being the answer.
    """

    name = "chair"
    source = LLM_COUNCIL
    needs = frozenset()
    Options = ChairOptions

    def calls(self, plan: Plan) -> int:
        """One, and one for the analysis."""
        return 1 + self.options.analysis

    async def decide(self, debate: Debate, found: Sequence[Message]) -> Decision:
        """The chair's answer, or the best-ranked one."""
        if len(found) == 1:
            return by_rank(debate, found, self.options.rank)
        failures: dict[str, str] = {}
        debate.notes["council"]["chairs"] = failures
        for model in self.chairs(debate, found):
            try:
                text = await self.write(debate, found, model)
            except ModelError as error:
                failures[str(model)] = describe_error(error)
                continue
            answer, key = await debate.read(Turn(debate.agents[0], "final"), Reply(text))
            why = "".join(f"chair '{name}' failed ({said}); " for name, said in failures.items())
            if key is None:
                debate.notes["council"]["unparsed"] = True
                return by_rank(debate, found, self.options.rank, f"{why}no answer of the chair could be read; ")
            debate.notes["council"]["chair"] = model
            unread = f"; {UNREAD}" if unranked(debate) == UNREAD and not ballots(debate) else ""
            return Decision(key, answer, agreed=True, reason=f"{why}written by the chair, '{model}', "
                            f"from {len(found)} answers{unread}")
        why = "; ".join(f"'{name}': {said}" for name, said in failures.items())
        return by_rank(debate, found, self.options.rank, f"no chair answered ({why}); ")

    def chairs(self, debate: Debate, found: Sequence[Message]) -> list[str | None]:
        """Models, in the order in which they are asked."""
        ranked = [id for group in order(ballots(debate), self.options.rank) for id in group]
        ids = [*ranked, *(m.agent for m in found if m.agent is not None)]
        left = debate.transcript.left
        seats = [debate.agents[id].model for id in ids if id not in left]
        return list(dict.fromkeys([*filter(None, [self.options.model]), *(self.options.fallback or seats)]))

    async def write(self, debate: Debate, found: Sequence[Message], model: str | None) -> str:
        """The chair's answer."""
        values = self.shown(debate, found)
        if self.options.analysis:
            fields = await self.analyse(debate, model, values)
            values["analysis"] = fill(self.options.analysed, items=as_text(fields)) if fields else ""
        text = fill(self.options.prompt, **values, format=debate.answers.instruction(debate.sample)).strip()
        said = await debate.ask([user(debate.sample, text)], model=model, purpose="chair")
        return spoken(said.text)

    async def analyse(self, debate: Debate, model: str | None, values: dict[str, object]) -> dict[str, Any] | None:
        """The analysis, which is kept in the notes; None if it could not be read."""
        text = fill(self.options.analyse, **values)
        fields = read_json((await debate.ask([user(debate.sample, text)], model=model, purpose="analysis")).text)
        found = {key: fields[key] for key in ANALYSIS if key in fields} if fields else None
        debate.notes["council"]["analysis"] = found
        if not found:
            debate.notes["council"]["unparsed"] = True
        return found

    def shown(self, debate: Debate, found: Sequence[Message]) -> dict[str, object]:
        """What the prompts show, by placeholder."""
        labels: dict[int | None, str] = {m.agent: letter(i) for i, m in enumerate(found)}
        name = {id: f"{label} ({seat(debate.agents[id or 0], debate.agents)})" if self.options.names else label
                for id, label in labels.items()}
        said = [f"{seat(debate.agents[m.agent or 0], debate.agents)}:\n" * self.options.names
                + relabelled(m, labels) for m in reviews(debate)] if "critiques" in self.options.sees else []
        read = ballots(debate)
        places = mean_places(read)
        ranked = ", ".join(" = ".join(f"{labels[id]} ({places[id]:.4g})" for id in group if id in labels)
                           for group in order(read, self.options.rank)) if "rankings" in self.options.sees else ""
        answers = under_letters(self.options.item, found, name)
        return {"question": question_parts(debate.sample), "answers": answers, "analysis": "",
                "reviews": fill(self.options.reviews, items="\n\n".join(said)) if said else "",
                "rankings": fill(self.options.rankings, items=ranked) if ranked else ""}


class SelectOptions(RankOptions):
    """Who selects, and the prompt."""

    model: ModelName | None = Field(default=None, description="who selects; default: the first seat's model")
    prompt: str = Field(default=(
        "{question}\n\nSeveral answers to this:\n\n{answers}\n\nWhich of them is the best? Reply with its number and "
        "nothing else."), description="prompt. {question}; {answers}: numbered, in an order drawn for the question")


class Select(Best):
    """One model sees the question and all answers, in an order drawn for the question, and picks one of them.

    n opinions and one call. If its reply names none, or several, the best-ranked answer is a fallback, or else the
    first in the drawn order. DeliberationBench's "best single" is this with a strong selector.
    """

    name = "select"
    source = "arXiv 2601.08835 (DeliberationBench), its baseline"
    needs = frozenset()
    Options = SelectOptions

    def calls(self, plan: Plan) -> int:
        """One."""
        return 1

    async def decide(self, debate: Debate, found: Sequence[Message]) -> Decision:
        """The answer that is named."""
        if len(found) == 1:
            return by_rank(debate, found, self.options.rank)
        drawn = [m for m in found if m.key is not None]
        debate.rng("council.select").shuffle(drawn)
        items = "\n\n".join(f"{i}. {m.content.strip()}" for i, m in enumerate(drawn, 1))
        text = fill(self.options.prompt, question=question_parts(debate.sample), answers=items)
        said = await debate.ask([user(debate.sample, text)], model=self.options.model or found[0].model,
                                purpose="select", form={"regex": "|".join(str(i + 1) for i in range(len(drawn)))})
        number = read_number(said.text, len(drawn), 1)
        if number is None:
            debate.notes["council"]["unparsed"] = True
        if number is None and (ballots(debate) or not drawn):
            return by_rank(debate, found, self.options.rank, "no choice could be read; ")
        picked = drawn[number or 0]
        who = debate.agents[picked.agent or 0].persona.name
        return Decision(picked.key, picked.answer, agreed=number is not None, fallback=number is None,
                        reason=f"selected: {who}" if number is not None else f"no choice could be read: drew {who}")
