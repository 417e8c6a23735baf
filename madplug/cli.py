"""The program `madplug`. Each command imports what it needs, so that `madplug --help` stays fast."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from madplug.errors import MadplugError, UserError
from madplug.text import columns, count, safe


class Program(click.Group):
    """The host's commands and those that plugins add; plugins are loaded only for a command the host does not have."""

    _added = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, by name."""
        self._add()
        return sorted(self.commands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command by its name."""
        if name not in self.commands:
            self._add()
        return self.commands.get(name)

    def _add(self) -> None:
        if not self._added:
            from madplug.registry import Registry

            self._added = True
            registry = Registry()
            registry.add_commands(self)
            for problem in registry.problems:
                click.echo(f"madplug: {safe(str(problem))}", err=True)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a mistake of the user is a message and exit status 2, never a traceback."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            for problem in error.problems:
                click.echo(f"madplug: {safe(str(problem))}", err=True)
            ctx.exit(2)
        except MadplugError as error:
            click.echo(f"madplug: {safe(str(error))}", err=True)
            ctx.exit(1)
        except BrokenPipeError:
            sys.stderr.close()
            ctx.exit(0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EIO) or error.filename is not None:
                raise
            click.echo(f"madplug: the output cannot be written: {error.strerror}", err=True)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer is written at the end
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("madplug: interrupted", err=True)
            ctx.exit(130)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="madplug")
def main() -> None:
    """Multi-agent debate between language models."""


@main.command("list")
@click.argument("kind", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--problems", "only_problems", is_flag=True, help="Print the problems only.")
def list_(kind: str | None, as_json: bool, only_problems: bool) -> None:
    """List every installed component, or those of one KIND or plugin."""
    from madplug.describe import kinds, listing
    from madplug.errors import nearest
    from madplug.registry import Registry

    known, registry = kinds(), Registry()
    plugin = kind if kind is not None and kind not in known else None
    found = listing(registry, known.get(kind or ""), plugin)
    if plugin and not found["components"] and plugin not in registry.plugin_names:
        every = [*known, *registry.plugin_names]
        raise UserError(f"list: there is no kind or plugin '{plugin}'{nearest(plugin, every)}; "
                        f"kinds are {', '.join(dict.fromkeys(known.values()))}")
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _print_listing(found, only_problems)
    sys.exit(1 if found["problems"] else 0)


def _print_listing(found: dict[str, Any], only_problems: bool) -> None:
    if not only_problems:
        rows = [(c["kind"], c["name"], f"{c['distribution']} {c['version']}", c["summary"])
                for c in found["components"]]
        click.echo(columns(rows, ("kind", "name", "distribution", "summary")))
    for problem in found["problems"]:
        click.echo(f"problem: {problem}")
    if only_problems and not found["problems"]:
        click.echo("no problems")


@main.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> None:
    """Show a component, or every component of a plugin: its options, and TOML to paste."""
    from madplug.describe import component, page
    from madplug.errors import nearest
    from madplug.registry import Registry

    registry = Registry()
    found = registry.named(name)
    if not found:
        every = [*(o.name for o in registry.offers()), *registry.plugin_names]
        raise UserError(f"show: no component or plugin '{name}'{nearest(name, every)}")
    pages = [component(offer) for offer in found]
    click.echo(json.dumps(pages, indent=2, ensure_ascii=False) if as_json else "\n\n".join(map(page, pages)))


_file = click.argument("file", type=click.Path(path_type=Path))
_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_settings = click.option("--set", "settings", metavar="K=V", multiple=True,
                         help="Change a value of the run file: --set debate.rounds=3.")


@main.command()
@_file
@_settings
def check(file: Path, settings: tuple[str, ...]) -> None:
    """Check a run FILE without calling a model.

    Shows its cells and samples, and the most model calls it can make.
    """
    from madplug.config import load
    from madplug.config.check import notes

    resolved = load(file, settings)
    plan, rows = resolved.plan, []
    totals: list[int | None] = []
    by_slug = {cell.slug: cell for cell in plan.cells}
    for cell in plan.cells:
        size = cell.dataset.size() if cell.dataset else None
        matched = by_slug[cell.match["cell"]].worst_calls() if cell.match else 0
        calls = max(cell.worst_calls(), matched)
        total = None if size is None else calls * size * plan.repeats
        totals.append(total)
        rows.append((cell.slug, str(cell.wanted), str(cell.rounds), "?" if size is None else str(size), str(calls),
                     "?" if total is None else str(total)))
    click.echo(columns(rows, ("cell", "agents", "rounds", "samples", "calls/debate", "calls")))
    most = "an unknown number of model calls" if None in totals else \
        f"at most {sum(t or 0 for t in totals):,} model calls (excluding retries)"
    click.echo(f"{plan.name}: {count(len(plan.cells), 'cell')} x {count(plan.repeats, 'repeat')}; {most}")
    for line in notes(plan):
        click.echo(line)


@main.command()
@_file
@_settings
@click.option("--output", type=click.Path(path_type=Path), help="The study's directory.  [default: runs/NAME]")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--watch", is_flag=True, help="Show every message as it is recorded.")
@click.option("--trace", is_flag=True, help="Log every hook call in DIR/log.jsonl.")
def run(file: Path, settings: tuple[str, ...], output: Path | None, quiet: bool, watch: bool, trace: bool) -> None:
    """Run a study, or resume it where it stopped."""
    from madplug.config import load
    from madplug.launch import launch

    resolved = load(file, settings)
    folder = output or Path("runs") / resolved.plan.name
    sys.exit(launch(resolved, folder, quiet=quiet, messages=watch, traced=trace))


@main.command()
@_folder
@click.option("--decision", required=True, metavar="NAME", help="The decision protocol to decide with.")
@click.option("--set", "settings", metavar="OPTION=V", multiple=True, help="An option of the decision protocol.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The new study's directory.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def decide(folder: Path, decision: str, settings: tuple[str, ...], output: Path, quiet: bool) -> None:
    """Decide recorded debates again with another decision protocol.

    No debate in DIR is run again and no answered call is repeated: only calls that the new decision, the phases and
    the metrics make for the first time are paid for.
    """
    from madplug.config.read import setting
    from madplug.launch import launch
    from madplug.redecide import Redecider, most_calls, resolve_again
    from madplug.store import open_study

    if output.resolve() == folder.resolve():
        raise UserError(f"--output {output}: is the study itself; name another directory")
    options = {key: value for text in settings for key, value in setting(text).items()}
    with open_study(folder) as recorded:
        resolved = resolve_again(folder, decision, options)
        resolved.recorded_from = recorded.fact("identity")
        if not quiet:
            click.echo(f"at most {most_calls(resolved, recorded):,} model calls (excluding retries); those answered "
                       "before are not repeated", err=True)
        status = launch(resolved, output, quiet=quiet, redecider=Redecider(recorded))
    sys.exit(status)


@main.command()
@_folder
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Show the progress of a study, also while it runs."""
    from madplug.export import status_of

    facts = status_of(folder)
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    rows = [(safe(c["cell"]), str(c["done"]), str(c["failed"]), str(c["undecided"]), str(c["calls"]), str(c["tokens"]))
            for c in facts["cells"]]
    click.echo(columns(rows, ("cell", "done", "failed", "undecided", "calls", "tokens")))
    left = "unknown" if facts["left"] is None else str(facts["left"])
    cost = "" if not facts["cost_usd"] else f", {facts['cost_usd']:.4f} USD"
    click.echo(f"{facts['done']} done, {facts['failed']} failed, {left} left; {facts['calls']} calls paid, "
               f"{facts['tokens']} tokens{cost}")
    for problem in facts["problems"]:
        click.echo(f"problem: {safe(problem)}")


@main.command()
@_folder
@click.option("--output", required=True, type=click.Path(path_type=Path), help="A name ending in .jsonl or .parquet.")
@click.option("--calls", is_flag=True, help="Write the model calls instead: requests and replies, as .jsonl.")
def export(folder: Path, output: Path, calls: bool) -> None:
    """Write the debates in DIR to a file, one row each."""
    from madplug.export import export_calls, export_to

    number = export_calls(folder, output) if calls else export_to(folder, output)
    click.echo(f"{count(number, 'call' if calls else 'debate')} in {output}")


if __name__ == "__main__":
    main()
