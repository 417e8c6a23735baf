"""`madplug batch`, and the options of `madplug run` that send requests as batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import Model, UserError, columns, listed, maybe_await, safe, to_json
from madplug_batch.journal import INDEX, Batch, Entry, Journal, entries_in, local
from madplug_prompting.batches import batches_of

if TYPE_CHECKING:
    from madplug.store import Recorder

_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_yes = click.option("--yes", is_flag=True, help="Do not ask whether a study that somebody else began is trusted.")


def add_options(run: click.Command) -> None:
    """Add `--batch` and `--detach` to `madplug run`, which set `[execution]`."""
    run.params += [
        click.Option(["--batch"], is_flag=True, help="Send each round of all debates as one batch, at half the price."),
        click.Option(["--detach"], is_flag=True,
                     help="As --batch, and stop once everything is with the provider; run it again to go on.")]
    original = run.callback
    assert original is not None

    def run_batched(batch: bool, detach: bool, **given: Any) -> Any:
        if batch or detach:
            given["settings"] = (*given["settings"], *_settings(detach, given["file"], given["settings"]))
        return original(**given)

    run.callback = run_batched


def _settings(detach: bool, file: Path, settings: tuple[str, ...]) -> list[str]:
    """What to set for these options. file, settings: may name the executor already, with its options."""
    from madplug.study import read

    table = read(file, settings).get("execution")
    use = table.get("use") if isinstance(table, dict) else table
    if use not in (None, "batch.rounds", "rounds"):
        raise UserError(f"--batch: the run file's [execution] is {use}; name batch.rounds there")
    given = table if isinstance(table, dict) else {}
    written = (f"{key} = {to_json(value)}" for key, value in {"use": "batch.rounds", **given}.items())
    first = [] if "use" in given else [f"execution={{{', '.join(written)}}}"]
    return [*first, f"execution.detach={str(detach).lower()}"]


@click.group()
def batch() -> None:
    """Look after the batches of a study that is not running."""


@batch.command("list")
@_folder
def list_(folder: Path) -> None:
    """List the batches of a study, also while it runs."""
    from madplug.store import open_study

    with open_study(folder) as study:
        entries = entries_in(study.fact(INDEX)).values()
    rows = [(safe(e.id) or "?", safe(e.model), e.state, safe(e.said), f"{e.requests or '?'}", str(e.answered),
             local(e.expires) if e.expires and e.state != "done" else "")
            for e in entries]
    click.echo(columns(rows, ("batch", "model", "state", "provider", "requests", "answered", "expires"))
               if rows else "no batches")


@batch.command()
@_folder
@_yes
def cancel(folder: Path, yes: bool) -> None:
    """Ask the provider to stop working on the batches of a study; what it has answered by then is kept by the next run.

    What was not answered is asked again if the study is run again.
    """
    async def stop(journal: Journal, models: dict[str, Model]) -> None:
        for one in await journal.load():
            support = batches_of(models[one.entry.model])
            assert support is not None
            if found := one.entry.id or await support.find(one.tag):
                await support.cancel(found)
                click.echo(f"{safe(found)}: cancelled")

    _with_study(folder, stop, yes=yes)


@batch.command()
@_folder
@click.argument("id", metavar="BATCH")
@click.option("--model", help="The model's name in the run file, if several have batches.")
@_yes
def adopt(folder: Path, id: str, model: str | None, yes: bool) -> None:
    """Have a study use a BATCH that it does not know of, by the provider's id: its directory was restored, say.

    The next run waits for it before it sends anything, and takes from it whatever it needs.
    """
    async def add(journal: Journal, models: dict[str, Model]) -> None:
        if model not in models and (model is not None or len(models) != 1):
            raise UserError(f"--model: name the one that has the batch: {listed(models)}")
        name = model or next(iter(models))
        support = batches_of(models[name])
        assert support is not None
        status = await support.poll(id)
        if status.state == "not found":
            raise UserError(f"model '{name}': the provider has no batch {id}")
        if any(id == known.entry.id for known in await journal.load()):
            raise UserError(f"the study knows of batch {id} already")
        await journal.write([Batch(id, Entry(name, 0, "submitted", id, status.state), set())])
        click.echo(f"{safe(id)}: {safe(status.state)}; the next run waits for it")

    _with_study(folder, add, yes=yes)


def _with_study(folder: Path, work: Callable[[Journal, dict[str, Model]], Awaitable[None]], *, yes: bool) -> None:
    """Do something with the journal of a study that no process runs, and its models that have batches."""
    from madplug.store import has_study, open_recorder
    from madplug.study import confirm, load, read

    if not has_study(folder):
        raise UserError(f"{folder}: no study")
    confirm(folder, read(folder / "study.toml"), yes=yes)
    models = {name: model for name, model in load(folder / "study.toml", environ={}).plan.models.items()
              if batches_of(model) is not None}
    recorder = open_recorder(folder)
    try:
        asyncio.run(_opened(recorder, models, work))
    finally:
        recorder.close()


async def _opened(recorder: Recorder, models: dict[str, Model],
                  work: Callable[[Journal, dict[str, Model]], Awaitable[None]]) -> None:
    from madplug.study import StudyDriver

    try:
        for model in models.values():
            await maybe_await(model.open())
        await work(Journal(StudyDriver({}, recorder, lambda event: None)), models)
    finally:
        for model in models.values():
            await maybe_await(model.close())
