"""One agent alone: with and without a step-by-step trigger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import override

from madplug import Embedder, Message, Plan, Reply, Style, Turn
from madplug_baselines.neighbours import NeighbourOptions, Solved, examples, solutions
from madplug_prompting import prompts
from madplug_prompting.asking import LengthOptions, ask_for_answer

if TYPE_CHECKING:
    from madplug import CellFacts, Debate, Setup


class AloneOptions(LengthOptions):
    """Prompts; those that are empty are left out."""

    frame: str = Field(default="{question}", description=(
        "prompt: the task. {question}: passages, question and choices"))
    persona: str = Field(default="", description="prompt: who the agent is, before the task. {name}, {description}")
    trigger: str = Field(default="", description="prompt: a step-by-step trigger, before the answer format")
    improve: str = Field(default="Current solution:\n{solution}\n\nCheck it. Write an improved solution.", description=(
        "prompt: the move `improve`. {solution}: the latest visible message; {answer}: the answer read from it"))
    no_solution: str = Field(default="There is no solution yet.", description=(
        "what {solution} and {answer} are while there is none"))


class Io(Style):
    """Asks the question and for the answer format, and nothing else.

    The move `draft` shows nothing that was said; `improve` shows the latest visible message as the current
    solution, or says that there is none.
    """

    name = "io"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    source = "Becker et al. 2025 (MALLM), appendix H"
    Options = AloneOptions

    @override
    def calls(self, plan: Plan) -> int:
        return 1

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        chat = self.chat(debate, turn, view[-1] if view else None)
        return Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters))

    def chat(self, debate: Debate, turn: Turn, latest: Message | None) -> list[prompts.Chat]:
        """The task, then the solution so far where it is to be improved, then the form of the answer."""
        options, sample, persona = self.options, debate.sample, turn.agent.persona
        who = prompts.fill(options.persona, name=persona.name, description=persona.description)
        task = prompts.fill(options.frame, question=prompts.question_parts(sample))
        improve = self.improve(latest) if turn.move == "improve" else ""
        last = "\n".join(part for part in (options.trigger, debate.answers.instruction(sample)) if part)
        return [prompts.user(sample, "\n\n".join(part for part in (who, task, improve, last) if part))]

    def improve(self, latest: Message | None) -> str:
        """The instruction with the current solution."""
        nothing = self.options.no_solution
        solution = (latest.content if latest else "") or nothing
        answer = (latest.answer if latest else "") or nothing
        return prompts.fill(self.options.improve, solution=solution, answer=answer)


class Cot(Io):
    """Asks the question, for thinking step by step, and for the answer format.

    Otherwise as `baselines.io`. In the paper's code a second call extracts the answer; here the answer format
    reads it, and may ask a model.
    """

    name = "cot"
    source = "Becker et al. 2025 (MALLM), appendix G.4"

    class Options(AloneOptions):
        """With a trigger."""

        trigger: str = Field(default="Think step by step.", description=(
            "prompt: the step-by-step trigger, before the answer format"))


class SampledOptions(AloneOptions):
    """How an answer is sampled."""

    trigger: str = Field(default="Think step by step.", description=(
        "prompt: the step-by-step trigger, before the answer format"))
    temperature: float | None = Field(default=0.5, ge=0, le=5, description=(
        "of a sample; none: the model's own"))
    top_p: float | None = Field(default=0.5, gt=0, le=1, description="of a sample; none: the model's own")

    def sampling(self, cooler: float = 0.0) -> dict[str, float]:
        """The parameters of a call, at a temperature lower by `cooler`."""
        t = self.temperature
        given = {"temperature": None if t is None else round(max(0.0, t - cooler), 6), "top_p": self.top_p}
        return {name: value for name, value in given.items() if value is not None}


class ShuffledOptions(SampledOptions, NeighbourOptions):
    """How a sample is asked for, and what stands before it."""


class Shuffled(Io):
    """As `baselines.cot`, with the choices in an order drawn for the agent under the same letters.

    The letter of the reply is mapped back to the choice that it stood for, so that a preference for a letter does not
    lead to one for a choice. A question without choices is asked as it is. An answer that is no letter stays as it is.

    With `neighbours`, solved questions stand before the task: those of a training split that the model itself, at
    temperature 0, answers rightly, the nearest by the embeddings of an `embedder`. Solving them takes one call each for
    the whole study, before its first debate, and none in a debate.

    Differs from the code: two choices with the same text are told apart.
    """

    name = "shuffled"
    moves = frozenset({"draft"})
    source = "Smit et al. 2024, DebateLLM (Medprompt); arXiv 2311.16452 (choice shuffling)"
    Options = ShuffledOptions

    _solved: Sequence[Solved] = ()
    _vectors: Sequence[Sequence[float]] = ()

    def check(self, cell: CellFacts) -> Iterable[str]:
        """Neighbours need an embedder."""
        if bool(self.options.neighbours) != (self.options.embedder is not None):
            yield "'neighbours' and 'embedder' belong together: questions are near by their embeddings"

    async def prepare(self, setup: Setup) -> None:
        """Solve the training questions."""
        if self.options.embedder is None:
            return
        parts = [self.options.frame, "\n".join(part for part in (self.options.trigger, "{format}") if part)]
        self._solved = await solutions(setup, self.options, "\n\n".join(parts))
        service = setup.service(self.options.embedder, Embedder)
        self._vectors = await service.embed([question for question, _ in self._solved]) if self._solved else ()

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        order = list(range(len(debate.sample.choices)))
        debate.rng(f"baselines.shuffled:{turn.agent.id}").shuffle(order)
        shown = replace(debate.sample, choices=tuple(debate.sample.choices[i] for i in order))
        task = prompts.fill(self.options.frame, question=prompts.question_parts(shown))
        last = "\n".join(part for part in (self.options.trigger, debate.answers.instruction(shown)) if part)
        before = await examples(debate, self.options, self._solved, self._vectors)
        chat = [prompts.user(shown, "\n\n".join([*before, task, last]))]
        text = await ask_for_answer(debate, turn, chat, self.options.max_characters, self.options.sampling())
        if not order:
            return Reply(text)
        said = debate.answers.canonical(text, shown)
        letters = [prompts.letter(i) for i in range(len(order))]
        answer = letters[order[letters.index(said)]] if said in letters else said
        return Reply(text, answer=answer or "", data={"baselines": {"order": order}})


class RefineOptions(SampledOptions):
    """The prompts of samples and refinements, and how they are sampled."""

    examples: str = Field(default="", description="prompt: solved questions, before the task of a sample")
    temperature: float | None = Field(default=0.7, ge=0, le=5, description="of a sample; none: the model's own")
    cooler: float = Field(default=0.2, ge=0, le=5, description="how much lower the temperature of a refinement is")
    improve: str = Field(default=(
        "These were several attempts at the question, which may contradict each other. Weigh their reasoning, keep "
        "what is sound, and write one better answer."), description="prompt: the move `improve`, after all attempts")


class Refine(Io):
    """Reads several sampled answers as its own earlier messages, and writes a better one.

    A draft is a sample, with the solved `examples` before the question; a refinement sees the question without them,
    the messages that the visibility shows, and the request to weigh them, at a lower temperature.
    """

    name = "refine"
    source = "Smit et al. 2024, DebateLLM (ensemble refinement, after Med-PaLM 2)"
    Options = RefineOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        options, sample, draft = self.options, debate.sample, turn.move == "draft"
        task = prompts.fill(options.frame, question=prompts.question_parts(sample))
        before = [options.examples, task] if draft else [task]
        last = [options.trigger if draft else options.improve, debate.answers.instruction(sample)]
        chat = prompts.merged([
            prompts.user(sample, "\n\n".join(part for part in before if part)),
            *({"role": "assistant", "content": m.content} for m in view if not draft),
            {"role": "user", "content": "\n".join(part for part in last if part)}])
        params = options.sampling(0.0 if draft else options.cooler)
        return Reply(await ask_for_answer(debate, turn, chat, options.max_characters, params))
