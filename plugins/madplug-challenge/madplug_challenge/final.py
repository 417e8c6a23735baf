"""The phase: every agent examines the final answer, in up to five settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from madplug import Agent, Decision, Phase, Plan, Reply, Retriever, Turn
from madplug_challenge.options import SETTINGS, FinalOptions, Setting
from madplug_prompting import prompts
from madplug_prompting.layout import compose
from madplug_prompting.replies import read_agreement
from madplug_prompting.ties import leaders

if TYPE_CHECKING:
    from madplug import Debate

KEPT = 500
"""At most this many characters of a reply go into the notes."""


@dataclass(frozen=True)
class Shown:
    """An answer that is examined, and what the notes say about it."""

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Final(Phase):
    """Every agent examines the final answer on its own, and gives another one if it disagrees.

    In each setting every voter is shown an answer and says AGREE or DISAGREE: the debate's answer alone
    (`only_solution`), with the discussion it could see (`history`), or with retrieved passages (`information`); and
    for comparison an answer that has nothing to do with the task (`irrelevant`) and one that is wrong on purpose
    (`wrong`). The decision stays as it is. `notes.challenge` has for each setting every agent's verdict and new
    answer, the share of challenges, how many verdicts could not be read, and the new answer that most challengers
    give.

    With `oracle = true` the wrong answer is compared with the references and is never right. Without, it differs from
    the debate's answer, and may be right where that is not: the notes say what it was `checked` against, and
    `challenge.outcome` in how many debates it was right. The notes also say where a question has only two choices, so
    that the wrong answer is simply the other one, and where it is the debate's own answer.

    Differs from the paper: one fixed sentence is the irrelevant answer, unless `irrelevant = "generated"`. Differs
    from the released code, which scores the first agent's new answer only, and has the debate's own model write the
    wrong one.
    """

    name = "final"
    source = "Kaesberg et al. 2025 (Voting or Consensus), section 4.2 and appendix E.3"
    Options = FinalOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        given = {"information": self.options.retriever, "wrong": self.options.challenger_model}
        self.settings = tuple(s for s in SETTINGS if given.get(s, True)) if self.options.settings is None else \
            tuple(dict.fromkeys(self.options.settings))

    def check(self, cell: Any) -> Iterable[str]:
        """Settings that need a model or a service have it."""
        if "wrong" in self.settings and self.options.challenger_model is None:
            yield "the setting 'wrong' needs the option 'challenger_model': the name of a [models.NAME]"
        if "irrelevant" in self.settings and self.options.irrelevant == "generated" \
                and self.options.challenger_model is None:
            yield "irrelevant = \"generated\" needs the option 'challenger_model': the name of a [models.NAME]"
        if "information" in self.settings and self.options.retriever is None:
            yield "the setting 'information' needs the option 'retriever': the name of a [services.NAME]"

    def calls(self, plan: Plan) -> int:
        """A verdict and a new answer from every agent in every setting, and what the challenger writes."""
        wrong = self.options.attempts if "wrong" in self.settings else 0
        stray = "irrelevant" in self.settings and self.options.irrelevant == "generated"
        return 2 * plan.agents * len(self.settings) + wrong + stray

    async def run(self, debate: Debate, decision: Decision) -> None:
        """All settings at the same time; no agent sees what another says."""
        if decision.key is None:
            debate.notes["challenge"] = {"skipped": "the debate has no answer"}
            return
        answer = decision.answer or decision.key
        passages = await self._passages(debate)
        shown = dict(zip(self.settings, await debate.ask_all(
            self._shown(debate, setting, answer, decision.key) for setting in self.settings), strict=True))
        examined = await debate.ask_all(
            self._examine_all(debate, setting, one, passages) for setting, one in shown.items() if one is not None)
        results: dict[str, dict[str, Any]] = {result["setting"]: result for result in examined}
        debate.notes["challenge"] = {
            setting: results.get(setting, {"setting": setting, "skipped": "the challenger gave no wrong answer"})
            for setting in self.settings}

    # What is shown

    async def _passages(self, debate: Debate) -> str:
        if self.options.retriever is None or "information" not in self.settings:
            return ""
        retriever = debate.service(self.options.retriever, Retriever)
        found = await retriever.retrieve(debate.sample.question, self.options.passages)
        return "\n\n".join(passage.text for passage in found)

    async def _shown(self, debate: Debate, setting: Setting, answer: str, key: str) -> Shown | None:
        """The answer that is examined; None where the challenger writes none."""
        if setting == "wrong":
            return await self._wrong(debate, answer, key)
        if setting != "irrelevant":
            return Shown(answer)
        if self.options.irrelevant == "fixed":
            return Shown(self.options.irrelevant_answer)
        said = await self._challenger(debate, self.options.stray)
        return Shown(said.strip()) if said.strip() else None

    async def _wrong(self, debate: Debate, answer: str, key: str) -> Shown | None:
        """An answer that is not right, or is not the debate's where nothing tells what is right."""
        right = {debate.key(r): r for r in debate.references} if debate.cell.oracle else {}
        right.pop(None, None)
        avoided: Mapping[str | None, str] = right or {key: answer}
        facts: dict[str, Any] = {"checked": "references" if right else "decision"}
        if len(debate.sample.choices) == 2:
            facts["two_choices"] = True
        request = prompts.fill(self.options.mislead, answer=next(iter(avoided.values())))
        form = debate.answers.form(debate.sample, body=0)
        for _ in range(self.options.attempts):
            said = await self._challenger(debate, f"{request}\n{debate.answers.instruction(debate.sample)}", form)
            text, wrong = await debate.read(Turn(debate.agents[0]), Reply(said))
            if text is not None and wrong is not None and not any(
                    k == wrong or debate.answers.same(wrong, str(k), debate.sample) for k in avoided):
                same = {"same_as_decision": True} if wrong == key else {}
                return Shown(text, {"key": wrong, **facts, **same})
        return None

    async def _challenger(self, debate: Debate, request: str, form: Mapping[str, Any] | None = None) -> str:
        chat = prompts.merged([{"role": "system", "content": self.options.challenger},
                               prompts.user(debate.sample, prompts.question_parts(debate.sample)),
                               {"role": "user", "content": request}])
        return (await debate.ask(chat, model=self.options.challenger_model, purpose="challenge", form=form)).text

    # Who examines it

    async def _examine_all(self, debate: Debate, setting: Setting, shown: Shown, passages: str) -> dict[str, Any]:
        """One setting: every voter's verdict, and the statistics."""
        records = await debate.ask_all(
            self._examine(debate, agent, setting, shown.text, passages) for agent in debate.voters)
        challenges = [r for r in records if r["verdict"] == "disagree"]
        new = Counter(r["key"] for r in challenges if r["key"] is not None)
        most = leaders(new)
        return {"setting": setting, "shown": shown.text, **shown.facts, "asked": len(records),
                "challenges": len(challenges), "rate": len(challenges) / len(records) if records else None,
                "failed": sum(r["verdict"] is None for r in records),
                "new_key": most[0] if len(most) == 1 else None, "tie": len(most) > 1, "agents": records}

    async def _examine(self, debate: Debate, agent: Agent, setting: Setting, shown: str,
                        passages: str) -> dict[str, Any]:
        """One agent's verdict, and its new answer if it disagrees."""
        chat = await self._chat(debate, agent, setting, shown, passages)
        form = {"regex": "AGREE|DISAGREE"} if self.options.constrain else None
        said = (await debate.ask(chat, agent=agent, purpose="challenge", form=form)).text
        agrees, unread = read_agreement(said)
        record: dict[str, Any] = {"agent": agent.id, "verdict": "agree" if agrees else "disagree", "answer": None,
                                  "key": None}
        if unread:
            return {**record, "verdict": None, "unparsed": True, "said": said[:KEPT]}
        return record if agrees else {**record, **await self._revised(debate, agent, chat, said)}

    async def _revised(self, debate: Debate, agent: Agent, chat: Sequence[prompts.Chat], said: str) -> dict[str, Any]:
        request = "\n".join([self.options.revise, debate.answers.instruction(debate.sample)])
        again = prompts.merged([*chat, {"role": "assistant", "content": said[:KEPT]},
                                {"role": "user", "content": request}])
        new = (await debate.ask(again, agent=agent, purpose="revise", form=debate.answers.form(debate.sample))).text
        answer, key = await debate.read(Turn(agent), Reply(new))
        found = {"answer": answer, "key": key}
        return found if key is not None else {**found, "unparsed": True, "said": new[:KEPT]}

    async def _chat(self, debate: Debate, agent: Agent, setting: Setting, shown: str,
                    passages: str) -> list[prompts.Chat]:
        """Who examines the answer, the task, the evidence, and the request for a verdict."""
        turn, options = Turn(agent, "challenge"), self.options
        body = prompts.discussion(debate, turn, await debate.view(turn), options.said) if setting == "history" else []
        evidence = prompts.fill(options.information, passages=passages) if setting == "information" else ""
        return compose(debate, agent, options, options.persona, options.frame,
                       [*body, {"role": "user", "content": evidence}], [prompts.fill(options.review, answer=shown)])
