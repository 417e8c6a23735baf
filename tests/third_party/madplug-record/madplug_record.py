"""Votes weighted by the accuracy of each voter's model on other questions."""

from collections import defaultdict
from itertools import islice

from pydantic import Field

from madplug import Decision, DecisionProtocol, Options, Vote, hookimpl

PROMPT = "{question}\n\n{format}"


class Weighted(DecisionProtocol):
    """Weighs the agents' latest answers by the accuracy of their models on a calibration split.

    Before the first debate every model answers the questions of `split` alone, once, and the share of right answers is
    stored with the study. An agent's vote weighs as much as that share, and at least `least`.
    """

    name = "weighted"

    class Options(Options):
        """Options of `record.weighted`."""

        split: str = Field(default="train", description="the part of the data set to calibrate on")
        questions: int = Field(default=20, ge=1, description="how many of its questions are asked")
        least: float = Field(default=0.05, gt=0, le=1, description="the least weight of an agent")
        prompt: str = Field(default=PROMPT, description="what is asked; {question} and {format} are filled in")

    async def prepare(self, setup):
        """Measure every model once; a resumed study reuses the figures."""
        self.accuracy = await setup.keep("record.accuracy", lambda: self.measure(setup))

    async def measure(self, setup):
        """The share of right answers by model."""
        rows = list(islice(setup.samples(self.options.split), self.options.questions))
        right = {}
        for model in dict.fromkeys(setup.models):
            answers = await setup.ask_all(self.right(setup, model, *row) for row in rows)
            right[model] = sum(answers) / len(answers) if answers else 0.0
        return right

    async def right(self, setup, model, sample, references):
        """Whether a model's answer is one of the references."""
        options = "\n".join(f"({'ABCDEFGHIJ'[i]}) {choice}" for i, choice in enumerate(sample.choices))
        prompt = self.options.prompt.replace("{question}", f"{sample.question}\n{options}")
        prompt = prompt.replace("{format}", setup.answers.instruction(sample))
        text = (await setup.ask(prompt, model=model, purpose="calibrate")).text
        answers = setup.answers
        key = answers.canonical(text, sample)
        wanted = [answers.canonical(reference, sample) for reference in references]
        return key is not None and any(w is not None and answers.same(w, key, sample) for w in wanted)

    def at_end(self, debate):
        """Add up the weights of the latest answers."""
        scores, votes = defaultdict(float), []
        for agent in debate.voters:
            keys = [m.key for m in debate.transcript.by(agent) if m.key is not None]
            if keys:
                weight = max(self.accuracy.get(agent.model, 0.0), self.options.least)
                scores[keys[-1]] += weight
                votes.append(Vote(agent.id, {keys[-1]: weight}))
        if not scores:
            return Decision.undecided("no voter gave an answer that could be read")
        most = max(scores.values())
        best = [key for key, score in scores.items() if score == most]
        return Decision(best[0], agreed=most > sum(scores.values()) / 2, scores=dict(scores), votes=tuple(votes),
                        tie=len(best) > 1)


@hookimpl
def madplug_register_decisions():
    """Register decision protocols."""
    return [Weighted]
