"""The command `madplug ask`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import Problem, UserError, count, dollars, nearest, safe

if TYPE_CHECKING:
    from madplug import DebateResult, StudyResult
    from madplug.study import ResolvedStudy
    from madplug_ask.councils import Asked

MOST_KEY = 60
"""Characters of an answer that are shown of an agent that gave another than the debate's."""


@click.command()
@click.argument("question")
@click.option("--choice", "choices", multiple=True, help="An option to choose from; give it twice or more.")
@click.option("--use", "paradigm", metavar="PARADIGM", help="How to debate: madplug list paradigms.")
@click.option("--model", "models", metavar="MODEL", multiple=True, help="A model component, or PLUGIN:MODEL such as "
              "openai:gpt-4o-mini; given several times, the agents use them in turn.  [default: the embedded one]")
@click.option("--seat", "seats", metavar="NAME=MODEL", multiple=True, help="A seat of a council; give it twice or "
              "more.")
@click.option("--chair", metavar="MODEL", help="Who writes the council's answer: a seat or another model.  [default: "
              "the seat that is ranked best, and of two the first]")
@click.option("--council", metavar="NAME", help="A council of your councils.toml; auto: whatever has a key or runs on "
              "this machine; or embedded: the embedded model, twice.")
@click.option("--file", "files", metavar="PATH", multiple=True, type=click.Path(path_type=Path), help="A text file "
              "that the question is about; - is standard input.")
@click.option("--image", "images", metavar="PATH", multiple=True, type=click.Path(path_type=Path), help="An image that "
              "the question is about.")
@click.option("--diff", metavar="REV", help="What has changed in this Git repository since REV.")
@click.option("--follow", metavar="DIR", type=click.Path(path_type=Path), help="An earlier debate, or its name in "
              "runs/ask: its question and answer are shown to the seats.")
@click.option("--max-usd", type=click.FloatRange(0), metavar="USD", help="Start no call once this is spent.")
@click.option("--max-seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="Stop after so many seconds.")
@click.option("--dry-run", is_flag=True, help="Say what it may take, and ask nobody.")
@click.option("--again", is_flag=True, help="Ask again what is on record.")
@click.option("--export", metavar="FILE", type=click.Path(path_type=Path), help="Write the debate as .md or .html.")
@click.option("--set", "settings", metavar="K=V", multiple=True, help="Any key of a run file: --set debate.rounds=3.")
@click.option("--output", type=click.Path(path_type=Path), help="The study's directory.  [default: in runs/ask]")
@click.option("--quiet", is_flag=True, help="Print the answer only.")
def ask(question: str, choices: tuple[str, ...], paradigm: str | None, models: tuple[str, ...],
        settings: tuple[str, ...], output: Path | None, quiet: bool, **council: Any) -> None:
    """Have a debate on QUESTION, and show it as it goes.

    Without a run file: three agents on the embedded model, unless other things are named. The debate is kept as a
    study, to be read with `madplug status`, `export` and `decide` like any other.

    With --seat or --council, several models answer alone, review each other's answers under letters, and a chair
    writes the answer (madplug-council). The same question to the same council is answered from the record, and one
    that was broken off goes on where it was.
    """
    from rich.console import Console

    import madplug
    from madplug_ask.show import Transcript
    from madplug_ask.study import output_of, study_of
    from madplug_prompting.streaming import listening_to

    named = [option.opts[0] for option in click.get_current_context().command.params
             if council.get(str(option.name)) not in (None, False, ())]
    if (output_file := council["export"]) and output_file.suffix not in (".md", ".html"):
        raise UserError(f"--export {output_file}: is written as .md or .html; name a file that ends so")
    if models and (council["seats"] or council["council"]):
        raise UserError("--model: goes without --seat and --council; a further seat is --seat NAME=MODEL")
    if council["seats"] or council["council"]:
        asked = asked_of(question, choices, paradigm, settings, **council)
        table, folder = asked.table, output or asked.folder(again=council["again"])
        resolved = asked.resolve()
        expect(resolved, quiet=quiet and not council["dry_run"])
        if council["dry_run"]:
            return
        if all(resolved.plan.models[name].missing() for name in asked.council.seats):
            can_ask(resolved)
    elif named:
        raise UserError(f"{named[0]}: goes with --seat or --council")
    else:
        table, resolved = study_of(question, choices, paradigm, models, settings)
        can_ask(resolved)
        folder = output or output_of(resolved.plan.name)
    console = Console(stderr=True, highlight=False)
    transcript = Transcript(console)
    with in_words(), nullcontext() if quiet else listening_to(transcript.listen):
        result = madplug.run(table, settings=_by_key(settings), output=folder, quiet=True,
                             observers=[] if quiet else [transcript])
    status = conclude(result, quiet=quiet)
    if output_file:
        write(folder, output_file)
    if named and result.summary["ending"] == "limit":
        where = f"--output {folder} in place of --again and " if council["again"] else ""
        click.echo(f"{paid(folder)}; the same command with {where}a higher limit goes on from there", err=True)
    sys.exit(status)


def asked_of(question: str, choices: tuple[str, ...], method: str | None, settings: tuple[str, ...], *,
             seats: tuple[str, ...], chair: str | None, council: str | None, files: tuple[Path, ...],
             images: tuple[Path, ...], diff: str | None, follow: Path | None, max_usd: float | None,
             max_seconds: float | None, **_: Any) -> Asked:
    """The question with what it is about, and the council. Raises `UserError`."""
    from madplug.study import Registry
    from madplug_ask import attachments as attached
    from madplug_ask.councils import FOLDER, Asked, chosen, parsed_seats

    found = chosen(Registry(), council, parsed_seats(seats), chair, method)
    if follow and not (follow := follow if follow.exists() else FOLDER / follow).exists():
        near = nearest(follow.name, (path.name for path in follow.parent.glob("*")))
        raise UserError(f"--follow {follow}: there is no such debate{near}; madplug status {FOLDER} lists them")
    context = [attached.earlier(follow)] if follow else []
    context += [attached.passage("Standard input", sys.stdin.read()) if str(path) == "-" else
                attached.file_passage(path) for path in files]
    context += [attached.diff_passage(diff, Path())] if diff else []
    return Asked(question, found, choices, tuple(context), tuple(map(attached.image_url, images)), settings,
                 max_usd=max_usd, max_seconds=max_seconds)


def can_ask(resolved: ResolvedStudy) -> None:
    """Raises `UserError` for every model that this machine cannot ask, for want of a key, say."""
    missing = {name: model.missing() for name, model in resolved.plan.models.items()}
    if problems := [Problem(f"models.{name}", text) for name, text in missing.items() if text]:
        raise UserError(problems)


def expect(resolved: ResolvedStudy, *, quiet: bool) -> None:
    """Say who is asked, and what it may take."""
    from madplug_ask.councils import estimate, model_in

    if not quiet:
        [cell] = resolved.plan.cells
        seats = ", ".join(f"{name} ({model_in(slot)}{'' if name in cell.models else ', the chair'})"
                          for name, slot in resolved.table["models"].items())
        alone = "; one seat, so that nothing is reviewed" if cell.wanted == 1 else ""
        click.echo(f"{safe(seats)}: {estimate(resolved).text}{alone}", err=True)


@contextmanager
def in_words() -> Iterator[None]:
    """What may be wrong without being an error is told as everything else, and not as Python's warnings."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: click.echo(f"madplug: {safe(str(message))}", err=True)
        yield


def paid(folder: Path) -> str:
    """What a question has taken so far."""
    from madplug_ask.told import progress

    now = progress(folder)
    return f"{count(now.calls, 'call')}{f' for ${dollars(now.cost_usd)}' if now.cost_usd else ''} on record"


def write(folder: Path, output: Path) -> None:
    """Write a debate as Markdown, or with `madplug view` as a page. Raises `UserError`."""
    from madplug_ask.told import markdown, recorded

    if output.suffix == ".md":
        try:
            if (debate := recorded(folder)) is not None:
                output.write_text(markdown(debate), encoding="utf-8")
        except OSError as error:
            raise UserError(f"--export {output}: cannot be written: {error.strerror}") from None
        return
    try:
        from madplug_view.export import Part, export
        from madplug_view.studies import open_studies
    except ImportError:
        raise UserError(f"--export {output}: a page needs madplug-view; write a .md file, or pip install "
                        "madplug-view") from None
    export(open_studies([folder]), output, Part(samples=("question",)))  # opens on the debate


def _by_key(settings: tuple[str, ...]) -> Mapping[str, Any]:
    from madplug.study import as_toml

    return {key: as_toml(value) for key, _, value in (text.partition("=") for text in settings)}


def conclude(result: StudyResult, *, quiet: bool) -> int:
    """Print the answer to standard output, and what there is to say about it; return the exit status.

    Where there is no answer, that is said on standard error.
    """
    from madplug_ask.told import failed_chairs, missing

    debates, unanswered = result.debates(), True
    if debates and debates[0].decision is not None and not debates[0].error:
        unanswered = debates[0].decision.key is None
        if not quiet:
            click.secho("\nAnswer", fg="cyan", err=True)
        for line in missing(debates[0]):
            click.echo(f"partial: not heard: {safe(line)}", err=quiet)
        click.echo(answer_of(debates[0]), err=unanswered)
        if not quiet:
            for line in about(debates[0]):
                click.echo(line, err=True)
    for problem in (*result.summary["problems"], *(d.error for d in debates if d.error)):
        click.echo(f"madplug: {safe(problem)}", err=True)
    if result.summary["reason"]:
        click.echo(f"stopped: {safe(result.summary['reason'])}", err=True)
    if not quiet:
        click.echo(f"results saved in {result.folder}{os.sep}", err=True)
        if debates and failed_chairs(debates[0]):
            click.echo("to pay for a chair alone, ask again with another --chair and --set "
                       f"'reuse=[\"{result.folder}\"]'", err=True)
    if result.summary["ending"] == "limit":
        return 3
    return 1 if unanswered or result.status != "finished" or result.summary["problems"] else 0


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
    """Who gave or supports the answer, or how the council decided, and what it cost."""
    from madplug_ask.told import dissent

    decision = debate.decision
    assert decision is not None
    if (ranked := debate.notes.get("council")) is not None:
        places = [f"{safe(debate.agents[int(id)].persona.name)} {place:.3g}"
                  for id, place in ranked.get("places", {}).items()]
        yield safe(decision.reason) + (f"; mean places: {', '.join(places)}" if places else "")
        for name, answer in dissent(debate).items():
            yield f"{safe(name)} answered otherwise: {safe(answer)}"
    else:
        yield _support(debate)
    tokens = debate.tokens
    cost = f", ${dollars(tokens.cost_usd)}" if tokens.cost_usd else ""
    yield (f"{count(debate.rounds, 'round')}, {count(debate.calls, 'call')}, "
           f"{count(tokens.prompt + tokens.completion, 'token')}{cost}, {debate.seconds:.0f} s")


def _support(debate: DebateResult) -> str:
    """How many agents gave the answer, or support it where some of them gave another, and what the rest answered."""
    decision = debate.decision
    assert decision is not None
    last = {m.agent: m.key for m in debate.messages if m.answers and not m.retracted}
    voters = {a.id: safe(a.persona.name) for a in debate.agents if a.persona.votes}
    gave = {id for id in voters if decision.key is not None and last.get(id) == decision.key}
    backers = voters.keys() & {v.agent for v in decision.votes if v.valid and v.weights.get(decision.key or "", 0) > 0}
    counted, verb = (gave, "gave") if backers <= gave else (backers, "supports" if len(backers) == 1 else "support")
    rule = "decided by the fallback" if decision.fallback else "agreed" if decision.agreed else "not agreed"
    head = f"{len(counted)} of {count(len(voters), 'agent')} {verb} it"
    if decision.key is None:
        head = "undecided"
    elif decision.votes or decision.fallback or not decision.reason:
        head += f" ({rule})"
    else:  # nobody voted: it was decided in another way
        head = f"{safe(decision.reason)}; {head}"
    against = [f"{name} supports it, but answered {_ending(debate, id, last)}" for id, name in voters.items()
               if id in counted - gave and last.get(id) is not None]
    others = [f"{name}: {_ending(debate, id, last)}" for id, name in voters.items() if id not in counted]
    return "; ".join([head, *against, *others])


def _ending(debate: DebateResult, id: int, last: Mapping[int | None, str | None]) -> str:
    """The answer that an agent ended with. last: the key of each one's last answer, None where it was not read."""
    if (key := last.get(id)) is not None:
        line = " ".join(safe(key).split())
        return line if len(line) <= MOST_KEY else f"{line[:MOST_KEY - 3]}..."
    own = [m for m in debate.messages if m.agent == id]
    return "did not speak" if not own else "no answer at the end" if any(m.key for m in own) else "no answer"
