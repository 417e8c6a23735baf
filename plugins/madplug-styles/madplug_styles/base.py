"""What the styles of this plugin have in common: the frame of a prompt, and how a reply is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from typing_extensions import override

from madplug import Message, Plan, Reply, Style, Turn
from madplug_prompting import prompts
from madplug_prompting.asking import LengthOptions
from madplug_prompting.layout import IN_PERSONA, IN_TASK, PERSONA, LayoutOptions, compose
from madplug_prompting.replies import AgreementRule, announces_answer, read_agreement, read_json, read_share, spoken
from madplug_prompting.solutions import current_solution, is_opening

if TYPE_CHECKING:
    from madplug import Debate

FIELDS = {
    "reasoning": '"reasoning" (your explanation)',
    "agreement": '"agreement" ("agree" or "disagree")',
    "answer": '"answer" (your final answer)',
    "confidence": '"confidence" (a number from 0 to 1)',
}
TYPES: Mapping[str, Mapping[str, Any]] = {
    "reasoning": {"type": "string"},
    "agreement": {"type": "string", "enum": ["agree", "disagree"]},
    "answer": {"type": "string"},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
}


class StyleOptions(LayoutOptions, LengthOptions):
    """What every style lets a run file choose. Prompts that are empty are left out."""

    agreement: Literal["tag", "legacy", "none"] = Field(default="tag", description=(
        "how agreement is read: the bracketed tag at the beginning, else the last one, else the words; `legacy`: the "
        "letters 'agree' anywhere and 'disagree' nowhere, as MALLM's code does; `none`: it is not asked for"))
    structured: bool = Field(default=False, description=(
        "ask for a JSON object, and send its schema to models whose replies can be constrained; prose is read as text"))
    step_by_step: bool = Field(default=True, description="whether `trigger` is part of every prompt")
    trigger: str = Field(default="Think step by step.", description="prompt: the step-by-step trigger")
    frame: str = Field(default="A group works on this task together.\n\n{question}", description=(
        f"prompt, before the discussion: the task. {IN_TASK}; {{solution}}: the current solution; {IN_PERSONA}"))
    persona: str = Field(default=PERSONA, description=(
        f"prompt: who the agent is. {IN_PERSONA}, and what is in `frame`"))
    solution: str = Field(default="Current solution: {solution}", description=(
        "prompt, after the discussion: the current solution. {solution}: the latest draft, disagreeing improvement or "
        "adopted answer that the agent knows of, however long ago"))
    no_solution: str = Field(default="", description=(
        "what {solution} is while there is none; empty: no such line"))
    propose: str = Field(default=(
        "There is no solution yet. Propose the first solution and explain it briefly."),
        description="prompt: any move in the very first turn, and in a blind one")
    draft: str = Field(default="Use the discussion so far. Write the full solution again.",
                       description="prompt: the move `draft`")
    improve: str = Field(default=(
        "Do you agree with the current solution? Explain why. If you disagree, give an improved solution."),
        description="prompt: the move `improve`")
    feedback: str = Field(default=(
        "Do you agree with the current solution? Say what is right and what is wrong about it. "
        "Do not write a solution yourself."), description="prompt: the move `feedback`")
    tag: str = Field(default="Begin your reply with [AGREE] or [DISAGREE].", description=(
        "prompt: how to mark agreement, where it is asked for"))
    structure: str = Field(default="Reply with one JSON object and nothing else. Its fields: {fields}.",
                           description=("prompt, with `structured`: the form of the reply, instead of `tag`. "
                                        "{fields}: the fields that are wanted"))
    structure_answer: str = Field(
        default='About the field "answer": {instruction}',
        description="prompt, with `structured`: what an answer is. {instruction}: as the answer format says it")


class DiscussionStyle(Style):
    """Drafts, improves and comments in the frame that all styles of this plugin share.

    The persona is the system message. The task comes next, then the discussion as chat (own messages as assistant,
    others as user after their name), then the current solution and the instruction of the move.
    """

    moves = frozenset({"draft", "improve", "feedback"})
    gives = frozenset({"agreement", "confidence"})
    shows_images = True
    source = "Becker et al. 2025 (MALLM), section 3.1 and appendix G; Kaesberg et al. 2025, appendix C"
    Options = StyleOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        given = {"agreement": self.options.agreement != "none", "confidence": self.options.structured}
        self.gives = frozenset(name for name, gives in given.items() if gives)

    @override
    def calls(self, plan: Plan) -> int:
        return 1

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call: the instruction of the move, or `propose` where there is nothing to go by."""
        draft, opening = current_solution(debate, turn, view), is_opening(debate, turn, view)
        asks = self.asks_agreement(turn, opening)
        solves = opening or turn.move != "feedback"
        instruction = self.instruction(turn, opening)
        text = await self.say(debate, turn, view, instruction, draft=draft, asks=asks, solves=solves)
        return self.read(debate, turn, text, draft=draft, asks=asks, solves=solves)

    def instruction(self, turn: Turn, opening: bool) -> str:
        """What is asked for."""
        prompt: str = getattr(self.options, "propose" if opening else turn.move)
        return prompt

    def asks_agreement(self, turn: Turn, opening: bool) -> bool:
        """A draft agrees with nothing, and neither does the first message of a discussion."""
        return self.options.agreement != "none" and turn.move != "draft" and not opening

    # Writing

    async def say(self, debate: Debate, turn: Turn, view: Sequence[Message], instruction: str, *,
                  draft: Message | None, asks: bool, solves: bool) -> str:
        """Ask for one text. asks: agreement is wanted; solves: a final answer is wanted."""
        chat = self.chat(debate, turn, view, draft, [instruction, *self.manners(debate, asks, solves)])
        form = self.form(debate, asks, solves)
        return (await debate.ask(chat, agent=turn.agent, purpose="discuss", form=form)).text

    def chat(self, debate: Debate, turn: Turn, view: Sequence[Message], draft: Message | None,
             instructions: Sequence[str]) -> list[prompts.Chat]:
        """The whole prompt. Nothing that changes from round to round precedes the discussion."""
        options = self.options
        return compose(debate, turn.agent, options, options.persona, options.frame,
                       prompts.discussion(debate, turn, view, options.said), [self.show(draft), *instructions],
                       solution=self.solution_text(draft))

    def solution_text(self, draft: Message | None) -> str:
        """The current solution, or what stands for none."""
        return draft.answer if draft and draft.answer else str(self.options.no_solution)

    def show(self, draft: Message | None) -> str:
        """The line with the current solution; none where the frame has it."""
        framed = "solution" in prompts.placeholders(self.options.frame + self.options.persona)
        solution = "" if framed else self.solution_text(draft)
        return prompts.fill(self.options.solution, solution=solution) if solution else ""

    def manners(self, debate: Debate, asks: bool, solves: bool) -> list[str]:
        """How to think and in which form to reply."""
        trigger = self.options.trigger if self.options.step_by_step else ""
        if not self.options.structured:
            answer = debate.answers.instruction(debate.sample) if solves else ""
            return [trigger, self.options.tag if asks else "", answer]
        answer = prompts.instruction_alone(debate.answers, debate.sample) if solves else ""
        fields = ", ".join(FIELDS[name] for name in wanted(asks, solves))
        structure = prompts.fill(self.options.structure, fields=fields)
        return [trigger, structure, prompts.fill(self.options.structure_answer, instruction=answer) if answer else ""]

    def form(self, debate: Debate, asks: bool, solves: bool) -> Mapping[str, Any] | None:
        """The form of a reply, for models that can be constrained."""
        if self.options.structured:
            return {"json_schema": schema(wanted(asks, solves))}
        longest = self.options.max_characters
        if solves:
            form = debate.answers.form(debate.sample, body=longest)
        else:
            form = None if longest is None else {"regex": rf"[\s\S]{{1,{longest}}}"}
        if not asks or not self.options.tag or (form and "regex" not in form):
            return form
        return {"regex": r"\[(?:AGREE|DISAGREE)\] " + (form["regex"] if form else r"[\s\S]*")}

    # Reading

    def read(self, debate: Debate, turn: Turn, text: str, *, draft: Message | None, asks: bool,
             solves: bool, stance: str | None = None) -> Reply:
        """What a text says, and what of it could not be read. stance: where to read the agreement instead."""
        fields = read_fields(text) if self.options.structured else None
        unread = {"form"} if self.options.structured and fields is None else set()
        agreement: bool | None = None
        if asks:
            agreement, unparsed = self.read_agreement(*((text, fields) if stance is None else (stance, None)))
            unread |= {"agreement"} if unparsed else set()
        elif turn.move != "draft" and self.options.agreement != "none":
            agreement = False
        marked = agreement if asks and "agreement" not in unread else None
        content = spoken(text) if fields is None else write_out(fields, marked)
        answer = self.answer(debate, text, fields, draft if agreement else None) if solves else ""
        data: dict[str, Any] = {f"unparsed_{what}": True for what in sorted(unread)}
        data |= {"unparsed": True} if unread else {}
        data |= {"stated": True} if fields and answer and answer == prompts.as_text(fields.get("answer")) else {}
        data |= {"about": draft.id} if agreement and draft else {}
        data |= {"adopted": draft.id} if agreement and draft and answer == draft.answer else {}
        confidence = read_share(fields.get("confidence")) if fields else None
        return Reply(content, answer if solves else None, agreement, confidence, {"styles": data} if data else {},
                     answers=solves)

    @property
    def agreement_rule(self) -> AgreementRule:
        """How agreement is read where it is asked for."""
        return "legacy" if self.options.agreement == "legacy" else "tag"

    def read_agreement(self, text: str, fields: Mapping[str, Any] | None) -> tuple[bool, bool]:
        """Whether it agrees, and whether that could not be read."""
        if fields is None:
            return read_agreement(text, self.agreement_rule)
        said = fields.get("agreement")
        if isinstance(said, bool):
            return said, False
        return read_agreement(prompts.as_text(said), self.agreement_rule)

    def answer(self, debate: Debate, text: str, fields: Mapping[str, Any] | None,
               agreed: Message | None) -> str | None:
        """The answer; an agent that agrees without stating one has the draft's. None leaves it to the answer format."""
        stated = prompts.as_text(fields.get("answer")) if fields is not None else None
        if agreed is None or stated:
            return stated
        return None if fields is None and announces_answer(debate, text) else agreed.answer


def wanted(asks: bool, solves: bool) -> list[str]:
    """The fields of a structured reply, in the order to write them: reasons before what follows from them."""
    left_out = ({"agreement"} if not asks else set()) | ({"answer", "confidence"} if not solves else set())
    return [name for name in FIELDS if name not in left_out]


def schema(fields: Sequence[str]) -> dict[str, Any]:
    """A JSON schema with these fields, all required."""
    return {"type": "object", "properties": {name: dict(TYPES[name]) for name in fields},
            "required": list(fields), "additionalProperties": False}


def read_fields(text: str) -> dict[str, Any] | None:
    """The fields of a structured reply, or None."""
    fields = read_json(text)
    return fields if fields and FIELDS.keys() & fields.keys() else None


def write_out(fields: Mapping[str, Any], agreement: bool | None) -> str:
    """A structured reply as a person would have written it, which is what others are shown."""
    stance = {True: "[AGREE]", False: "[DISAGREE]", None: ""}[agreement]
    answer = prompts.as_text(fields.get("answer"))
    parts = [stance, prompts.as_text(fields.get("reasoning")), f"Answer: {answer}" if answer else ""]
    return "\n".join(part for part in parts if part)
