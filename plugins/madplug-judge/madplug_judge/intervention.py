"""A judge that steps in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Extension, ModelName, Options, Plan, Review, hookimpl, maybe_await
from madplug_judge.candidates import plurality
from madplug_prompting import prompts
from madplug_prompting.finals import FinalAnswer, recorded_answers
from madplug_prompting.layout import IN_TASK
from madplug_prompting.replies import without_quotations, without_thoughts

if TYPE_CHECKING:
    from madplug import Debate

Reviewed = Review | Awaitable[Review | None] | None
"""What extensions further in make of a round."""
_ALONE = re.compile(r"\W*(?:answer|option)?\W*([AB])\W*", re.IGNORECASE)
_STATED = re.compile(r"\b(?:better|best|prefer\w*|choose|verdict|choice)\b\W{0,5}(?:answer|option|is|one|:)?"
                     r"\W{0,5}(?:answer|option|is|:)?\W{0,5}\b([AB])\b")
_LETTER = re.compile(r"\b([AB])\b")
_DENIED = re.compile(r"(?:\b[Nn]ot|\b[Nn]ever|n't) (?:\w{1,9} ){0,3}[AB]\b")


class InterventionOptions(Options):
    """Who judges, and what follows."""

    model: ModelName | None = Field(default=None, description="the judge's model; default: the first agent's")
    action: Literal["regenerate", "policy"] = Field(default="regenerate", description=(
        "retract the round and run it again, or give the group feedback"))
    always: bool = Field(default=False, description="step in after every change, whichever answer the judge prefers")
    attempts: int = Field(default=3, ge=1, le=20, description="the most attempts to get a reply that can be read")
    compare: str = Field(default=(
        "{question}\n\nTwo answers to this task:\n\nAnswer A:\n{older}\n\nAnswer B:\n{newer}\n\n"
        "Which answer is better? Reply with one letter, A or B, and nothing else."), description=(
        f"prompt. {IN_TASK}; {{older}}, {{newer}}: the answers with their reasons"))
    feedback: str = Field(default=(
        "{question}\n\nA group discusses this task. It moved from this answer:\n\n{older}\n\nto this one:\n\n{newer}"
        "\n\nThe first answer was better. Tell the group in at most three sentences what went wrong and what to "
        "look at again. Do not give an answer yourself."), description=(
        "prompt, with action = \"policy\". As `compare`"))
    system: str = Field(default="", description="prompt: the system message of both; empty: none")


class Intervention(Extension):
    """A judge compares the group's answer with that of the round before, and steps in when the older one is better.

    Against problem drift. From round 2 on, when the most frequent answer of the voters has changed, a model sees
    the older one as A and the newer one as B. If it prefers A, the round is retracted and run again (`action =
    "regenerate"`, at most once a round), or the group gets feedback on what went wrong (`action = "policy"`, a
    message that all agents see). A judge whose reply cannot be read, or that prefers B, changes nothing. Its
    preference is in the debate's notes. A round that another extension retracts, or ends the debate with, is not
    judged.

    Differs from the released code of MALLM, which steps in when the newer answer is better, can repeat a round
    without end, and compares drafts that are still empty while agents vote.
    """

    name = "intervention"
    source = "MALLM, release 1.0.5"
    Options = InterventionOptions

    @hookimpl(wrapper=True)
    def madplug_round_ended(self, debate: Debate) -> Generator[None, Reviewed, Reviewed]:
        """The judge's review where the answer has changed, added to what extensions further in decided."""
        reviewed = yield
        if debate.round < 2 or (self.options.action == "policy" and debate.round == debate.rounds):
            return reviewed
        if any(m.retracted and m.round == debate.round for m in debate.transcript.record):
            return reviewed
        older, newer = group(debate, debate.round - 1), group(debate, debate.round)
        if older is None or newer is None or older.key == newer.key:
            return reviewed
        return self._combined(debate, reviewed, older, newer)

    async def _combined(self, debate: Debate, reviewed: Reviewed, older: FinalAnswer,
                        newer: FinalAnswer) -> Review | None:
        inner: Review | None = await maybe_await(reviewed)
        if inner is not None and (inner.redo or inner.stop):
            return inner
        own = await self.review(debate, older, newer)
        if own is None or inner is None or own.redo:  # what was to be said was about the round that is retracted
            return own or inner
        return replace(inner, say="\n\n".join(filter(None, [inner.say, own.say])))

    async def review(self, debate: Debate, older: FinalAnswer, newer: FinalAnswer) -> Review | None:
        """Compare, and step in when the older answer is better."""
        shown = {"older": statement(debate, older, debate.round - 1), "newer": statement(debate, newer, debate.round)}
        preferred = "A" if self.options.always else await self.prefer(debate, shown)
        found = {"round": debate.round, "older": older.key, "newer": newer.key, "preferred": preferred,
                 **({"unparsed": True} if preferred is None else {})}
        debate.notes.setdefault("judge", []).append(found)
        if preferred != "A":
            return None
        if self.options.action == "regenerate":
            return Review(redo=True)
        said = (await self.ask(debate, self.options.feedback, shown)).strip()
        return Review(say=said) if said else None

    async def prefer(self, debate: Debate, shown: dict[str, str]) -> str | None:
        """A or B, or None when no attempt could be read."""
        for _ in range(self.options.attempts):
            letter = read_preference(await self.ask(debate, self.options.compare, shown, {"regex": "[AB]"}))
            if letter is not None:
                return letter
        return None

    async def ask(self, debate: Debate, prompt: str, shown: dict[str, str], form: dict[str, str] | None = None) -> str:
        """One call to the judge."""
        system = prompts.fill_task(self.options.system, debate.sample)
        text = prompts.fill_task(prompt, debate.sample, beside=self.options.system, **shown)
        chat = [{"role": "system", "content": system}, prompts.user(debate.sample, text)]
        model = self.options.model or debate.voters[0].model
        return (await debate.ask(prompts.merged(chat), model=model, purpose="judge", form=form)).text

    def calls(self, plan: Plan) -> int:
        """The calls to compare, and to run every round but the first twice, at one call a turn."""
        asks = 0 if self.options.always else self.options.attempts
        more = plan.turns if self.options.action == "regenerate" else 1
        return (plan.rounds - 1) * (asks + more)


def group(debate: Debate, round: int) -> FinalAnswer | None:
    """What most voters answer at the end of a round; in a tie, the first agent's answer."""
    return plurality(debate, recorded_answers(debate, round), "first")[0]


def statement(debate: Debate, answer: FinalAnswer, round: int) -> str:
    """An answer with the latest message, up to a round, that gives it."""
    said = [m for m in debate.transcript.messages if m.key == answer.key and m.round <= round and m.agent is not None]
    return said[-1].content if said else answer.text


def read_preference(text: str) -> str | None:
    """The letter a reply decides on: alone, after a word such as `better`, or the only one there is."""
    text = _DENIED.sub(" ", without_quotations(without_thoughts(text), _LETTER))
    alone = _ALONE.fullmatch(text.strip()[:40]) if len(text.strip()) <= 40 else None
    if alone:
        return alone[1].upper()
    stated = set(_STATED.findall(text)) or set(_LETTER.findall(text))
    return stated.pop() if len(stated) == 1 else None
