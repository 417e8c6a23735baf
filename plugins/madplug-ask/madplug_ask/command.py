"""The command `madplug ask`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import count, safe

if TYPE_CHECKING:
    from madplug import DebateResult, StudyResult


@click.command()
@click.argument("question")
@click.option("--choice", "choices", multiple=True, help="An option to choose from; give it twice or more.")
@click.option("--use", "paradigm", metavar="PARADIGM", help="How to debate: madplug list paradigms.")
@click.option("--model", metavar="MODEL", help="A model component, or PLUGIN:MODEL such as openai:gpt-4o-mini.  "
              "[default: the embedded one]")
@click.option("--set", "settings", metavar="K=V", multiple=True, help="Any key of a run file: --set debate.rounds=3.")
@click.option("--output", type=click.Path(path_type=Path), help="The study's directory.  [default: in runs/ask]")
@click.option("--quiet", is_flag=True, help="Print the answer only.")
def ask(question: str, choices: tuple[str, ...], paradigm: str | None, model: str | None, settings: tuple[str, ...],
        output: Path | None, quiet: bool) -> None:
    """Have a debate on QUESTION, and show it as it goes.

    Without a run file: three agents on the embedded model, unless other things are named. The debate is kept as a
    study, to be read with `madplug status`, `export` and `decide` like any other.
    """
    from rich.console import Console

    import madplug
    from madplug import listening_to
    from madplug_ask.show import Transcript
    from madplug_ask.study import output_of, study_of

    table, resolved = study_of(question, choices, paradigm, model, settings)
    folder = output or output_of(resolved.plan.name)
    console = Console(stderr=True, highlight=False)
    transcript = Transcript(console)
    with nullcontext() if quiet else listening_to(transcript.listen):
        result = madplug.run(table, settings=_by_key(settings), output=folder, quiet=True,
                             observers=[] if quiet else [transcript])
    sys.exit(conclude(result, quiet=quiet))


def _by_key(settings: tuple[str, ...]) -> Mapping[str, Any]:
    from madplug.study import as_toml

    return {key: as_toml(value) for key, _, value in (text.partition("=") for text in settings)}


def conclude(result: StudyResult, *, quiet: bool) -> int:
    """Print the answer to standard output, and what there is to say about it; return the exit status."""
    debates = result.debates()
    if debates and debates[0].decision is not None and not debates[0].error:
        click.echo(answer_of(debates[0]))
        if not quiet:
            for line in about(debates[0]):
                click.echo(line, err=True)
    for problem in (*result.summary["problems"], *(d.error for d in debates if d.error)):
        click.echo(f"madplug: {safe(problem)}", err=True)
    if result.summary["reason"]:
        click.echo(f"stopped: {safe(result.summary['reason'])}", err=True)
    if not quiet:
        click.echo(f"results saved in {result.folder}{os.sep}", err=True)
    return 0 if result.status == "finished" and not result.summary["problems"] else \
        3 if result.summary["ending"] == "limit" else 1


def answer_of(debate: DebateResult) -> str:
    """The decision in words; a choice with its letter."""
    decision = debate.decision
    assert decision is not None
    if decision.key is None:
        return f"no answer: {safe(decision.reason)}"
    letters = {chr(ord("A") + i): choice for i, choice in enumerate(debate.sample.choices)}
    if decision.key in letters:
        return f"{decision.key}) {safe(letters[decision.key])}"
    return safe(decision.answer or decision.key)


def about(debate: DebateResult) -> Iterator[str]:
    """Who agreed, and what it cost."""
    decision = debate.decision
    assert decision is not None
    latest = {m.agent: m.key for m in debate.messages if m.key is not None and not m.retracted}
    voters = [a for a in debate.agents if a.persona.votes]
    agree = [a for a in voters if latest.get(a.id) == decision.key and decision.key is not None]
    spoke = {m.agent for m in debate.messages}
    others = [f"{safe(a.persona.name)}: {safe(latest.get(a.id) or ('no answer' if a.id in spoke else 'did not speak'))}"
              for a in voters if a not in agree]
    rule = "agreed" if decision.agreed else "decided by the fallback" if decision.fallback else "not agreed"
    yield "; ".join([f"{len(agree)} of {count(len(voters), 'agent')} gave it ({rule})", *others])
    tokens = debate.tokens
    cost = f", {tokens.cost_usd:.4f} USD" if tokens.cost_usd else ""
    yield (f"{count(debate.rounds, 'round')}, {count(debate.calls, 'call')}, "
           f"{count(tokens.prompt + tokens.completion, 'token')}{cost}, {debate.seconds:.0f} s")
