"""The options of `challenge.final`, and its prompts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from madplug import ModelName, Offers, Retriever, ServiceName
from madplug_prompting.layout import IN_PERSONA, IN_TASK, PERSONA, LayoutOptions

Setting = Literal["only_solution", "history", "information", "irrelevant", "wrong"]
SETTINGS: tuple[Setting, ...] = ("only_solution", "history", "information", "irrelevant", "wrong")


class FinalOptions(LayoutOptions):
    """Which settings, what they need, and the prompts."""

    settings: tuple[Setting, ...] | None = Field(default=None, min_length=1, description=(
        "which of only_solution, history, information, irrelevant and wrong; by default all that can be run: "
        "`information` with a retriever, `wrong` with a challenger_model"))
    challenger_model: ModelName | None = Field(default=None, description=(
        "the model that writes the wrong answer, and the irrelevant one where it is generated"))
    retriever: Annotated[ServiceName, Offers(Retriever)] | None = Field(default=None, description=(
        "for `information`: the [services.NAME] that finds passages about the question"))
    passages: int = Field(default=3, ge=1, le=100, description="for `information`: how many passages to retrieve")
    irrelevant: Literal["fixed", "generated"] = Field(default="fixed", description=(
        "the irrelevant answer: `fixed`, or written by the challenger_model"))
    attempts: int = Field(default=3, ge=1, le=20, description=(
        "times the challenger_model is asked for a wrong answer that can be read: with oracle = true one that is not "
        "right, else one that is not the debate's"))
    constrain: bool = Field(default=True, description=(
        "send the form of a verdict to models whose replies can be constrained to one"))
    persona: str = Field(default=PERSONA, description=f"prompt: who examines the answer. {IN_PERSONA}")
    frame: str = Field(default="{question}", description=f"prompt: the task. {IN_TASK}")
    information: str = Field(default="These passages may help:\n{passages}", description=(
        "prompt, `information`. {passages}"))
    review: str = Field(default=(
        "The final answer to the task is: {answer}\nExamine it critically. Reply with one word: AGREE if you "
        "accept it, DISAGREE if you do not."), description="prompt: the request for a verdict. {answer}")
    revise: str = Field(default="You do not accept this answer. Give your own answer to the task.", description=(
        "prompt: the request for a new answer, after a DISAGREE"))
    mislead: str = Field(default=(
        "Give an answer to this task that looks plausible and is wrong. It must not be: {answer}"),
        description="prompt, `wrong`: the challenger_model's. {answer}: with oracle = true the right answer, else the "
                    "debate's")
    challenger: str = Field(default="", description=(
        "prompt: a system message of the challenger_model; empty: none"))
    stray: str = Field(default=(
        "Write one short sentence that could be an answer to some other question but has nothing to do with this "
        "task."), description="prompt, `irrelevant = \"generated\"`: the challenger_model's")
    irrelevant_answer: str = Field(default="I do not know anything about that.", min_length=1, description=(
        "the irrelevant answer, where it is fixed"))
