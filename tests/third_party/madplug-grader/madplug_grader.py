"""A second model grades the answers."""

import re

from pydantic import Field

from madplug import Metric, ModelName, Options, hookimpl

PROMPT = """Question: {question}
Right answer: {reference}
Given answer: {answer}

Does the given answer mean the same as the right one? Reply with a grade from 0 (no) to 10 (yes)."""


class Grade(Metric):
    """What another model thinks of the answer, from 0 to 1.

    An undecided debate gets 0; a grade that cannot be read is left out of the mean.
    """

    name = "grade"

    class Options(Options):
        """Options of `grader.grade`."""

        grader: ModelName = Field(description="the model that grades")
        prompt: str = Field(default=PROMPT, description="{question}, {reference} and {answer} are filled in")

    def calls(self, plan):
        """One for each debate."""
        return 1

    async def score(self, debate, references):
        """Ask the grader, with all references at once."""
        if debate.decision.key is None:
            return 0.0
        values = {"question": debate.sample.question, "reference": " or ".join(references),
                  "answer": debate.decision.answer}
        prompt = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), self.options.prompt)
        said = await debate.ask(prompt, model=self.options.grader, purpose="grade", params={"temperature": 0.0})
        grade = re.search(r"\d+(\.\d+)?", said.text)
        return min(float(grade[0]), 10.0) / 10 if grade else None


@hookimpl
def madplug_register_metrics():
    """Register metrics."""
    return [Grade]
