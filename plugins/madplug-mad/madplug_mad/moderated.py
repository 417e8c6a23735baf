"""How the debate ends: when the moderator decides, or after the last round by a judge who reads it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, ModelName, Options, Plan
from madplug_mad.moderator import AGAIN, META, ask_for_json
from madplug_mad.sides import PAPER, debaters
from madplug_prompting.finals import last_messages
from madplug_prompting.prompts import Chat, as_text, fill, instruction_alone, question_parts, transcribe, user
from madplug_prompting.ties import Tie, break_tie, leaders

if TYPE_CHECKING:
    from madplug import Completion, Debate

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["answer", "reason"],
          "properties": {"answer": {"type": "string"}, "reason": {"type": "string"}}}

CANDIDATES = """The question of a debate:

{question}

What the sides have said:

{history}

Which answers to the question are there in this debate? List them, without reasons."""
PICK = """Now decide which of these answers is right. Reply with one JSON object that has the fields "answer" (the one \
you choose) and "reason". About the answer: {format}"""


class ModeratedOptions(Options):
    """Options of `mad.moderated`."""

    ends_on: Literal["answer", "preference"] = Field(
        default="answer", description="what the moderator has to give to end the debate")
    history: Literal["full", "first_round"] = Field(default="full", description="what the judge reads")
    model: ModelName | None = Field(default=None, description="the judge's model; unset: the moderator's")
    meta: str = Field(default=META, description="the system prompt of the judge")
    candidates: str = Field(default=CANDIDATES,
                            description="the judge's first call; {question}, {history}")
    pick: str = Field(default=PICK, description="the judge's second call; {format}")
    again: str = Field(default=AGAIN, description="after a choice that could not be read; {fields}")
    retries: int = Field(default=3, ge=0, le=10,
                         description="times to ask again for a choice that can be read")
    tie: Tie = Field(
        default="first", description="among the debaters' last answers; first: the negative side's")


class Moderated(DecisionProtocol):
    """Ends the debate when the moderator decides; after the last round a judge picks the answer.

    The debate is over when the moderator's message has an answer that can be read, with or without a
    preference (`ends_on = "preference"`: both are needed). After the last round a judge, on the moderator's
    model unless `model` names another, reads the debaters' texts, lists the candidate answers in a first
    call and picks one in a second. If its choice cannot be read, the last answers of the debaters are
    counted, and the negative side's wins a tie; this is a fallback, not an agreement.

    As in the paper, the judge reads the whole debate; the authors' code shows it the statements of the first round
    only (`history = "first_round"`).
    """

    name = "moderated"
    source = PAPER + "; the authors' code"
    Options = ModeratedOptions

    def calls(self, plan: Plan) -> int:
        """The judge's."""
        return 2 + int(self.options.retries)

    def after_round(self, debate: Debate) -> Decision | None:
        """The moderator's answer, if it gave one in this round."""
        said = [m for a in debate.with_role("moderator") for m in debate.transcript.by(a)
                if m.round == debate.round]
        if not said or said[-1].key is None:
            return None
        if self.options.ends_on == "preference" and not said[-1].data.get("mad", {}).get("preference"):
            return None
        return Decision(said[-1].key, said[-1].answer, agreed=True,
                        reason=f"the moderator, round {debate.round}")

    async def at_end(self, debate: Debate) -> Decision:
        """Ask the judge."""
        ended = self.after_round(debate)
        if ended is not None:
            return ended
        moderator = next(iter(debate.with_role("moderator")), None)

        def ask(chat: Sequence[Chat]) -> Awaitable[Completion]:
            form = {"json_schema": SCHEMA} if len(chat) > 2 else None
            return debate.ask(chat, agent=moderator, model=self.options.model, purpose="judge", form=form)

        chat = self._candidates(debate)
        listed = (await ask(chat)).text
        pick = fill(self.options.pick, format=instruction_alone(debate.answers, debate.sample))
        chat += [{"role": "assistant", "content": listed or "(nothing)"}, {"role": "user", "content": pick}]
        again = fill(self.options.again, fields='"answer", "reason"')
        _, found, _ = await ask_for_json(ask, chat, again, self.options.retries,
                                         lambda found: debate.key(as_text(found.get("answer"))) is not None)
        answer = as_text(found.get("answer"))
        key = debate.key(answer)
        if key is None:
            debate.notes["mad"] = {"unparsed": True}
            return self._fallback(debate)
        return Decision(key, answer, agreed=True, reason="the judge, after the last round")

    def _candidates(self, debate: Debate) -> list[Chat]:
        sides = {a.id for a in debaters(debate)}
        said = [m for m in debate.transcript.messages if m.agent in sides
                and (self.options.history == "full" or m.round == 1)]
        text = fill(self.options.candidates, question=question_parts(debate.sample),
                    history=transcribe(debate, said))
        return [{"role": "system", "content": self.options.meta}, user(debate.sample, text)]

    def _fallback(self, debate: Debate) -> Decision:
        """The debaters' last answers, the negative side's first."""
        voters = sorted((a for a in debaters(debate) if a.persona.votes),
                        key=lambda a: a.persona.role != "negative")
        counts = Counter(m.key for m in last_messages(debate, voters).values() if m.key is not None)
        if not counts:
            return Decision.undecided("neither the judge nor a debater gave an answer that could be read")
        best = leaders(counts)
        key = break_tie(debate, best, self.options.tie, "mad.moderated:tie")
        return Decision(key, scores=dict(counts), tie=len(best) > 1, fallback=True,
                        reason="the judge's choice could not be read; the debaters' last answers")
