"""Ways to think: each is one or two prompts, of which the others see what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field, create_model

from madplug import Message, Options, Persona, PersonaGenerator, Plan, Reply, Style, Turn
from madplug_prompting.asking import LengthOptions
from madplug_prompting.prompts import Chat, fill, merged, question_parts, transcribe, user
from madplug_prompting.replies import spoken

if TYPE_CHECKING:
    from madplug import Debate

OptionsT = TypeVar("OptionsT", bound="MethodOptions")
PAPER = "Liu et al. 2025, Breaking Mental Set to Improve Reasoning through Diverse Multi-Agent Debate"

DESCRIPTIONS = {
    "cot": ("Chain of thought", "Solves the question step by step and then gives the answer."),
    "step_back": ("Step back", "Asks for the general principle behind the question first, then applies it."),
    "program": ("Program of thought", "Writes a short program that computes the answer, and runs it."),
    "io": ("Direct answer", "Answers the question at once."),
    "ccot": ("Scene graph", "Writes down the objects of the image, their attributes and relations, then answers."),
    "ddcot": ("Sub-questions", "Breaks the question into smaller ones, answers these, then the question."),
}

ANSWER = """Give your answer. {format}"""
EXCHANGE = """These are the solutions of the other participants:

{others}

Use them as far as they help. {ask}"""


class MethodsOptions(Options):
    """Options of `dmad.methods`."""

    methods: tuple[str, ...] = Field(default=("cot", "step_back", "program"), min_length=1,
                                     description="methods, in the order of the agents")


class Methods(PersonaGenerator):
    """A persona per way to think, in turn; its role is the name of the method.

    The names and descriptions are for the record and for casting by merit; the methods of this plugin do not show
    them to the model unless their option `persona` does.
    """

    name = "methods"
    source = PAPER
    Options = MethodsOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.roles = frozenset(self.options.methods)

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The method whose turn it is."""
        again, i = divmod(len(roster), len(self.options.methods))
        role = self.options.methods[i]
        name, description = DESCRIPTIONS.get(role, (role, ""))
        return Persona(f"{name} {again + 1}" if again else name, description, role)


class MethodOptions(LengthOptions):
    """Options of every method."""

    ask: str = Field(default=ANSWER, description=(
        "how a turn ends in the agent's chat, whatever the method; {format}"))
    exchange: str = Field(default=EXCHANGE, description=(
        "precedes a turn from the second round on; {others} (solutions), {ask} (what is asked)"))
    persona: str = Field(default="", description="a system message; {name}, {description}; empty: none")


class OneStepOptions(MethodOptions):
    """Options of a method with one prompt."""

    prompt: str = Field(description="the method's prompt; {format}")
    shown: str = Field(description="what the others see; {solution}")


class TwoStepsOptions(MethodOptions):
    """Options of a method that prepares before it answers."""

    first: str = Field(description="the first step's prompt; {format}")
    second: str = Field(description="the second step's prompt; {first} (what came of the first), {format}")
    shown: str = Field(description="what the others see; {first}, {solution}")


def with_prompts(base: type[OptionsT], **defaults: str) -> type[OptionsT]:
    """The options of a method: the base's, with these prompts as defaults."""
    fields: dict[str, Any] = {name: (str, Field(default=text, description=base.model_fields[name].description))
                              for name, text in defaults.items()}
    return create_model("Options", __base__=base, __doc__=MethodOptions.__doc__, **fields)


class Method(Style):
    """What all methods share: the chat that an agent keeps, and the steps of a turn.

    The chat has, for each earlier turn, the others' solutions with a plain request for an answer, and the outcome of
    the turn; the prompts of the method itself are not repeated. A method's prompts follow after it.
    """

    source = PAPER + ", section 3; the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    Options: ClassVar[type[MethodOptions]] = MethodOptions

    async def think(self, debate: Debate, turn: Turn, view: Sequence[Message], asked: str, purpose: str) -> str:
        """What the model says to the chat with a method's prompt as its last message.

        purpose: `discuss` for the step that ends with the answer.
        """
        form = debate.answers.form(debate.sample, body=self.body) if purpose == "discuss" else None
        said = await debate.ask(self.chat(debate, turn, view, asked), agent=turn.agent, purpose=purpose, form=form)
        return spoken(said.text)

    @property
    def body(self) -> int | None:
        """The most characters before the answer."""
        return self.options.max_characters

    async def reply(self, debate: Debate, turn: Turn, content: str, text: str, **data: Any) -> Reply:
        """A reply whose answer is read from the text of its last step alone."""
        answer, _ = await debate.read(turn, Reply(text))
        return Reply(content, answer or "", data={"dmad": data} if data else {})

    def fill(self, debate: Debate, template: str, **values: object) -> str:
        """A prompt with its placeholders filled in."""
        return fill(template, **{"format": debate.answers.instruction(debate.sample), **values})

    def chat(self, debate: Debate, turn: Turn, view: Sequence[Message], asked: str) -> list[Chat]:
        """The agent's own chat, and what it is asked now."""
        persona, ask = turn.agent.persona, self.fill(debate, self.options.ask)
        system = fill(self.options.persona, name=persona.name, description=persona.description).strip()
        chat: list[Chat] = [{"role": "system", "content": system}] if system else []
        new = {m.id: m for m in view if m.agent != turn.agent.id}
        first = True
        for own in (m for m in view if m.agent == turn.agent.id):
            shown = [new.pop(i) for i in own.seen if i in new]
            chat += [self._asked(debate, shown, ask, first=first), {"role": "assistant", "content": own.content}]
            first = False
        return merged([*chat, self._asked(debate, list(new.values()), asked, first=first)])

    def _asked(self, debate: Debate, shown: Sequence[Message], ask: str, *, first: bool) -> Chat:
        text = ask
        if shown:
            others = transcribe(debate, shown)
            text = fill(self.options.exchange, others=others, ask=ask)
        return user(debate.sample, f"{question_parts(debate.sample)}\n\n{text}") if first else {
            "role": "user", "content": text}


class OneStep(Method):
    """A method with one prompt."""

    Options: ClassVar[type[OneStepOptions]] = OneStepOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        text = await self.think(debate, turn, view, self.fill(debate, self.options.prompt), "discuss")
        return await self.reply(debate, turn, fill(self.options.shown, solution=text), text)


class TwoSteps(Method):
    """A method that prepares before it answers."""

    Options: ClassVar[type[TwoStepsOptions]] = TwoStepsOptions

    def calls(self, plan: Plan) -> int:
        """One per step."""
        return 2

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """Two calls, the second with what came of the first."""
        first = await self.think(debate, turn, view, self.fill(debate, self.options.first), "think")
        second = self.fill(debate, self.options.second, first=first)
        text = await self.think(debate, turn, view, second, "discuss")
        return await self.reply(debate, turn, fill(self.options.shown, first=first, solution=text), text)


class Cot(OneStep):
    """Thinks step by step, then answers (chain of thought)."""

    name = "cot"
    Options = with_prompts(OneStepOptions, prompt="Think step by step, then give your answer. {format}",
                           shown="{solution}")


class Io(OneStep):
    """Answers at once, without reasoning first."""

    name = "io"
    Options = with_prompts(OneStepOptions, prompt="Answer at once, without any explanation. {format}",
                           shown="Direct answer: {solution}")

    @property
    def body(self) -> int | None:
        """Nothing precedes the answer."""
        return 0


class StepBack(TwoSteps):
    """Takes a step back to the principle behind the question, then solves the question with it.

    Differs from the paper: the prompts of the text methods were not published; these are our own.
    """

    name = "step_back"
    Options = with_prompts(TwoStepsOptions,
        first="Take a step back: which more general question lies behind this one, and which principle, law or rule "
              "answers it? State that principle. Do not solve the question yet.",
        second="The principle behind the question:\n{first}\n\nSolve the question with this principle, step by step, "
               "then give your answer. {format}",
        shown="Principle:\n{first}\n\nSolution:\n{solution}")


class CCoT(TwoSteps):
    """Writes a scene graph of the image as JSON, then answers with it (compositional chain of thought)."""

    name = "ccot"
    Options = with_prompts(TwoStepsOptions,
        first="Describe the image as a scene graph for this question, in JSON: the objects that matter, their "
              "attributes, and the relations between them. Do not answer the question yet.",
        second="A scene graph of the image:\n{first}\n\nUse the image and the scene graph to give your answer. "
               "{format}",
        shown="Scene graph:\n{first}\n\nSolution:\n{solution}")


class DDCoT(TwoSteps):
    """Breaks the question into sub-questions, answers those, then the question (duty-distinct chain of thought)."""

    name = "ddcot"
    Options = with_prompts(TwoStepsOptions,
        first="Break the question into the smaller questions that have to be answered first, and answer each. Where "
              "the image is needed, look at it; say so if something cannot be determined.",
        second="Sub-questions and their answers:\n{first}\n\nUse the image and these to give your answer, with your "
               "reasons. {format}",
        shown="Sub-questions:\n{first}\n\nSolution:\n{solution}")
