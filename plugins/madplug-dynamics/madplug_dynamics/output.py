"""What a debate cost in output tokens: by round and by agent, with the models' own counts or one tokenizer's."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Completion, Metric, Options, Request, RunPath, hookimpl, maybe_await

if TYPE_CHECKING:
    from madplug import Debate

NOTES = "dynamics.output_tokens"


class OutputTokensOptions(Options):
    """Options of `dynamics.output_tokens`."""

    tokenizer: RunPath | None = Field(default=None, description=(
        "a `tokenizer.json` to count every reply with, so that models with different tokenizers can be compared; "
        "default: the counts that the models report"))


class OutputTokens(Metric):
    """Output tokens of all calls of a debate, by round and by agent.

    Parts: `total`; `exchange`, the rounds after the first, since papers differ in whether the independent answers
    count; `before`, what personas, casting and openings cost before round 1; `round_1`, `round_2`, ...; `agent_0`,
    `agent_1`, ... (calls of no agent, such as a judge's, are in `total` and in their round only). Calls of decisions
    and phases count in the round after which they were made; those of metrics do not count. Completions that another
    debate has paid for count, so that cells can be compared. The debate's notes have the counts by round, agent and
    purpose.

    Replies are counted while a debate runs: one that was on record before this metric was added has no score.

    With `tokenizer` all replies are counted with that tokenizer (extra `tokenizer`), as papers do that compare
    different models. In a study that is decided again, calls that are not repeated keep the counts they had.

    Differs from the paper, whose text leaves open whether the independent first answers count: `total` includes them,
    `exchange` does not.
    """

    name = "output_tokens"
    source = "Free-MAD 2025, section 5 (token cost)"
    Options = OutputTokensOptions

    _encoder: Any = None

    def check(self, cell: Any) -> Iterable[str]:
        """A tokenizer is a file, and needs the package."""
        path = self.options.tokenizer
        if path is not None and find_spec("tokenizers") is None:
            yield "'tokenizer' needs the package tokenizers: pip install 'madplug-dynamics[tokenizer]'"
        elif path is not None:
            try:
                self._load()
            except Exception as error:  # the package raises bare exceptions
                yield f"'tokenizer' names {path}, which cannot be read as a tokenizer.json: {error}"

    def prepare(self, setup: Any) -> None:
        """Load the tokenizer."""
        if self.options.tokenizer is not None:
            self._load()

    def _load(self) -> None:
        from tokenizers import Tokenizer

        self._encoder = Tokenizer.from_file(str(self.options.tokenizer))

    @hookimpl(wrapper=True)
    def madplug_complete(self, debate: Debate, request: Request,
                         ) -> Generator[None, Awaitable[Completion], Awaitable[Completion]]:
        """Count a reply."""
        completion = yield
        if debate.scored or (debate.recorded and (self.score_name or NOTES) not in debate.notes):
            return completion  # of a debate on record without counts, those of a new decision would be taken for all

        async def counted() -> Completion:
            answered: Completion = await maybe_await(completion)
            by_round = debate.notes.setdefault(self.score_name or NOTES, {})
            agent = "none" if request.agent is None else str(request.agent)
            by_purpose = by_round.setdefault(str(debate.round), {}).setdefault(agent, {})
            by_purpose[request.purpose] = by_purpose.get(request.purpose, 0) + self.count(answered)
            return answered

        return counted()

    def count(self, completion: Completion) -> int:
        """Tokens of one reply."""
        if self._encoder is None:
            return completion.usage.completion
        return len(self._encoder.encode(completion.text, add_special_tokens=False).ids)

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Sums by name."""
        by_round: Mapping[str, Mapping[str, Mapping[str, int]]] = debate.notes.get(self.score_name or NOTES, {})
        rounds = {int(k): sum(sum(by.values()) for by in agents.values()) for k, agents in by_round.items()}
        by_agent = {f"agent_{a.id}": float(sum(sum(agents.get(str(a.id), {}).values()) for agents in by_round.values()))
                    for a in debate.agents}
        return {"total": float(sum(rounds.values())),
                "exchange": float(sum(n for k, n in rounds.items() if k > 1)), "before": float(rounds.get(0, 0)),
                **{f"round_{k}": float(n) for k, n in sorted(rounds.items()) if k}, **by_agent} if rounds else None
