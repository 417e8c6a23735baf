"""The program `madplug`. Each command imports what it needs, so that `madplug --help` stays fast."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from madplug.errors import MadplugError, UserError, nearest
from madplug.redaction import redact
from madplug.text import columns, count, safe

if TYPE_CHECKING:
    from madplug.config import ResolvedStudy
    from madplug.registry.installed import Registry


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""A full disk, a quota, a limit of a file's size, a terminal that is gone, and a file that was opened to be read."""


DISTRIBUTIONS: Mapping[str, str] = {
    **{name: f"madplug-{name}" for name in ("ask", "batch", "export", "init", "inspect", "mcp", "prices", "read",
                                            "report", "serve", "show", "view")},
    "check --calls": "madplug-baselines", "check --ping": "madplug-init", "decide": "madplug-redecide",
    "merge": "madplug-shards", "rescore": "madplug-redecide", "run --batch": "madplug-batch",
    "run --detach": "madplug-batch", "run --prepare": "madplug-shards", "run --prepared": "madplug-shards",
    "run --shard": "madplug-shards", "run --watch": "madplug-read", "status": "madplug-read"}
"""The distribution to install for a command, or an option of a command, that is not there."""


class Program(click.Group):
    """The host's commands, and the commands and options that plugins add.

    Plugins are loaded only for what the host does not have.
    """

    _registry: Registry | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, by name."""
        self._add()
        return sorted(self.commands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command by its name."""
        if name not in self.commands and name in DISTRIBUTIONS:
            self._add(DISTRIBUTIONS[name].removeprefix("madplug-"))
        if name not in self.commands:
            self._add()
        return self.commands.get(name)

    def resolve_command(self, ctx: click.Context,
                        args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, with the options that plugins add to it.

        Raises `UserError` if it, or an option of it, has to be installed.
        """
        name, command = args[0], self.get_command(ctx, args[0])
        if command is check:
            self._add()  # plugins have something to say about a study
        if command is None:
            if home := DISTRIBUTIONS.get(name):
                raise UserError(f"no command '{name}'; it comes with {home}: pip install {home}")
            more = "; plugins of methods bring commands of their own: README says which"
            ctx.fail(f"No such command '{name}'{nearest(name, self.commands) or more}")
        if _unknown(command, args):
            self._add()
            for option in _unknown(command, args):
                if home := DISTRIBUTIONS.get(f"{name} {option}"):
                    raise UserError(f"{name}: no option '{option}'; it comes with {home}: pip install {home}")
                if "." in option and any("--set" in parameter.opts for parameter in command.params):
                    raise UserError(f"{name}: no option '{option}'; keys of the run file are changed with "
                                    f"--set {option.lstrip('-')}=VALUE")
        for option in _repeated(command, args):
            raise UserError(f"{name}: {option} is given more than once and takes one value")
        return super().resolve_command(ctx, args)

    def _add(self, plugin: str | None = None) -> None:
        """Add what a plugin has, or all of them."""
        from madplug.registry.installed import Registry

        registry = self._registry = self._registry or Registry()
        registry.add_commands(self, plugin)
        while registry.problems and plugin is None:
            click.echo(f"madplug: {safe(str(registry.problems.pop(0)))}", err=True)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a mistake of the user is a message and exit status 2, never a traceback."""
        if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
            sys.stdout.reconfigure(errors="replace")  # models write characters that a terminal may not have
        try:
            return super().invoke(ctx)
        except UserError as error:
            _fail(ctx, 2, *error.problems)
        except MadplugError as error:
            _fail(ctx, 1, error)
        except BrokenPipeError:
            sys.stderr.close()
            ctx.exit(0)
        except OSError as error:
            if error.errno == errno.ENOENT and error.filename is None:  # only `os.getcwd` names no file
                _fail(ctx, 2, "the current directory was deleted; change to another one")
            if error.errno not in _UNWRITABLE or error.filename is not None:
                raise
            from madplug.study.process import discard

            discard(1)
            _fail(ctx, 1, f"the output cannot be written: {error.strerror}")
        except KeyboardInterrupt:
            _fail(ctx, 130, "interrupted")


def _fail(ctx: click.Context, status: int, *problems: object) -> NoReturn:
    for problem in problems:
        click.echo(f"madplug: {safe(redact(str(problem)))}", err=True)
    ctx.exit(status)


def _unknown(command: click.Command, args: Sequence[str]) -> list[str]:
    """The arguments that look like options and are not the command's own; `--help` is one, since it shows them all."""
    known = {name for parameter in command.params for name in parameter.opts}
    return [option for text in args if text.startswith("-") and (option := text.partition("=")[0]) not in known]


def _repeated(command: click.Command | None, args: Sequence[str]) -> list[str]:
    """The options with one value that are given more than once: click would use the last and say nothing."""
    single = [name for option in (command.params if command else ()) for name in option.opts
              if isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)]
    given = [text.partition("=")[0] for text in args]
    return [name for name in single if given.count(name) > 1]


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
    from madplug.registry.installed import Registry

    found = Registry().listing(kind)
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


_file = click.argument("file", type=click.Path(path_type=Path))
_settings = click.option("--set", "settings", metavar="K=V", multiple=True,
                         help="Change a value of the run file: --set debate.rounds=3.")

_output = click.option("--output", type=click.Path(path_type=Path),
                       help="The study's directory.  [default: runs/NAME]")
_yes = click.option("--yes", is_flag=True, help="Do not ask whether a study that somebody else began is trusted: its "
                    "components, the local files that it has executed, the addresses that it sends keys to.")


@main.command()
@_file
@_settings
@_output
def check(file: Path, settings: tuple[str, ...], output: Path | None) -> ResolvedStudy:
    """Check a run FILE without calling a model.

    Shows its cells and samples, and the most model calls it can make.
    """
    from madplug.cli.api import facts
    from madplug.config import load

    resolved = replace(load(file, settings), output=output)
    plan, found = resolved.plan, facts(resolved)
    rows = found["cells"]
    shown = [["?" if value is None else str(value) for value in row.values()] for row in rows]
    click.echo(columns(shown, list(rows[0])))
    known = [row["calls"] for row in rows if row["calls"] is not None]
    most = [f"at most {sum(known):,} model calls (excluding retries)"] if known else []
    if unknown := len(rows) - len(known):
        most.append(f"an unknown number of model calls in {count(unknown, 'cell')}")
    click.echo(f"{plan.name}: {count(len(rows), 'cell')} x {count(plan.repeats, 'repeat')}; {' and '.join(most)}")
    for line in found["notes"]:
        click.echo(safe(line))
    return resolved


@main.command()
@_file
@_settings
@_output
@_yes
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--observe", "observers", metavar="NAME", multiple=True,
              help="An observer beside those of the run file, a name or '{use = \"NAME\", ...}'.")
@click.option("--trace", is_flag=True, help="Log every hook call in DIR/log.jsonl.")
def run(file: Path, settings: tuple[str, ...], output: Path | None, yes: bool, quiet: bool,
        observers: tuple[str, ...], trace: bool) -> None:
    """Run a study, or resume it where it stopped."""
    from madplug.cli.api import trusted
    from madplug.cli.launch import launch
    from madplug.config.read import as_toml
    from madplug.registry.installed import Registry
    from madplug.store import has_study

    registry = Registry()
    resolved, folder = trusted(file, settings, output, registry, [as_toml(text) for text in observers], yes=yes)
    with suppress(OSError):  # which whoever opens it will tell
        if has_study(beside := file.parent / folder) and not has_study(folder):
            click.echo(f"{folder} is a new study; the one beside the run file goes on with --output {beside}", err=True)
    sys.exit(launch(resolved, folder, quiet=quiet, traced=trace, registry=registry))


if __name__ == "__main__":
    main()
