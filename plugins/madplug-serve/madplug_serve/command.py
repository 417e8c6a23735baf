"""The command `madplug serve`."""

from __future__ import annotations

import ipaddress
import os
import secrets
import sys
from pathlib import Path

import click

from madplug import UserError

KEY = "MADPLUG_SERVE_KEY"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set", "settings", metavar="K=V", multiple=True,
              help="Change a value of the run file: --set debate.rounds=3.")
@click.option("--output", type=click.Path(path_type=Path), help="The study's directory.  [default: runs/NAME-served]")
@click.option("--yes", is_flag=True, help="Do not ask whether a study that somebody else began is trusted.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8642, show_default=True, type=click.IntRange(0, 65535),
              help="The port to listen on; 0 is a free one.")
@click.option("--key-env", default=KEY, show_default=True, metavar="NAME",
              help="The variable with the API key that clients send; if it is not set, a key is made and shown.")
@click.option("--no-key", is_flag=True, help="Ask for no key; only for clients of this machine.")
@click.option("--template", default="{answer}", show_default=True,
              help="The text of an answer: {answer} is the decision's, {message} the last message that gives it.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="How long one request may take.  [default: no limit]")
@click.option("--quiet", is_flag=True, help="Print nothing but the address, the key and problems.")
def serve(file: Path, settings: tuple[str, ...], output: Path | None, yes: bool, host: str, port: int, key_env: str,
          no_key: bool, template: str, timeout: float | None, quiet: bool) -> None:
    """Serve the cells of a run FILE as models of an OpenAI-compatible endpoint.

    A request to /v1/chat/completions runs a debate on the conversation and is answered with the decision. Debates are
    recorded in a directory like those of any study.
    """
    if not quiet:
        click.echo(f"loading {file}", err=True)
    from madplug.study import confirm, read
    from madplug_serve.running import Address, resolve_served, serve_study

    _check_template(template)
    if no_key and not _is_loopback(host):
        raise UserError(f"serve: --no-key allows anyone who reaches {host} to spend your tokens; leave it out, or "
                        "listen on 127.0.0.1")
    confirm(file.parent, read(file, settings), yes=yes)
    resolved, left_out = resolve_served(file, settings)
    folder = output or Path("runs") / f"{resolved.plan.name}-served"
    confirm(folder, resolved.table, yes=yes)
    key = None if no_key else os.environ.get(key_env) or secrets.token_urlsafe(24)
    made = "" if no_key or os.environ.get(key_env) else key_env
    if not _is_loopback(host):
        click.echo(f"warning: requests to {host} are not encrypted; put a proxy with TLS in front", err=True)
    for text in () if quiet else left_out:
        click.echo(text, err=True)
    sys.exit(serve_study(resolved, folder, Address(host, port, key, template, timeout, made), quiet=quiet))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_template(template: str) -> None:
    if "{answer}" not in template and "{message}" not in template:
        raise UserError(f"serve: --template {template!r:.60} contains neither {{answer}} nor {{message}}, so every "
                        "reply would be the same")
