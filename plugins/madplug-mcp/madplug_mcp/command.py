"""The command `madplug mcp`."""

from __future__ import annotations

import hmac
import json
import os
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import UserError

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

TIMEOUT = 3600
"""Seconds that clients are asked to wait for a tool, where they can be."""
CLIENTS = ("claude", "codex", "cursor", "vscode", "desktop")


@click.command()
@click.option("--council", metavar="NAME", help="The council to ask unless a call names one.  [default: auto]")
@click.option("--base", type=click.Path(path_type=Path), help="Where debates are kept.  [default: runs/ask]")
@click.option("--set", "settings", metavar="K=V", multiple=True, help="Any key of every run file.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen at.")
@click.option("--port", default=8643, show_default=True, type=click.IntRange(0, 65535), help="With --http: the port.")
@click.option("--key-env", metavar="NAME", default="MADPLUG_MCP_KEY", show_default=True, help="With --http: the "
              "variable whose value clients send as Bearer.")
@click.option("--allow-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="The directory whose "
              "files may be read.  [default: the current one; with --http none]")
@click.option("--read-only", is_flag=True, help="Offer what is on record, and ask nobody.")
@click.option("--max-usd", type=click.FloatRange(0), metavar="USD", help="The most that one question may cost.")
@click.option("--max-usd-day", type=click.FloatRange(0), metavar="USD", help="Start no question once this is spent.")
@click.option("--install", type=click.Choice(CLIENTS), help="Print how to add this server to a client, and stop.")
def mcp(council: str | None, base: Path | None, settings: tuple[str, ...], http: bool, host: str, port: int,
        key_env: str, allow_dir: Path | None, read_only: bool, max_usd: float | None,
        max_usd_day: float | None, install: str | None) -> None:
    """Serve councils of models to assistants by the Model Context Protocol.

    Over standard input and output, or with --http over streamable HTTP at /mcp. Debates are kept as studies and go on
    when a client gives up waiting.
    """
    from madplug_ask.councils import FOLDER
    from madplug_mcp.server import Settings, server_of

    if install:
        words = [f"--council={council}"] if council else []
        click.echo(installation(install, [*words, f"--base={(base or FOLDER).absolute()}"]))
        return
    allowed = Settings((base or FOLDER).absolute(), allow_dir or (None if http else Path.cwd()), read_only, max_usd,
                       max_usd_day, council, settings)
    if http:
        serve_http(allowed, host, port, os.environ.get(key_env), key_env)
    else:
        server_of(allowed).run("stdio")


def serve_http(allowed: Any, host: str, port: int, key: str | None, key_env: str) -> None:
    """Serve until a signal ends it. Raises `UserError` for an address that others reach, without a key."""
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.transport_security import TransportSecuritySettings

    from madplug_mcp.server import server_of

    if key is None and not _is_loopback(host):
        raise UserError(f"--host {host}: others can reach it; set {key_env} to a key that clients send as Bearer")
    address: Any = f"http://{host}:{port}"
    options: dict[str, Any] = {} if key is None else {
        "token_verifier": Keyed(key), "auth": AuthSettings(
            issuer_url=address, resource_server_url=address, validate_token_resource=False)}
    names = [f"{name}:{port}" for name in {host, "localhost", "127.0.0.1"}]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    click.echo(f"{address}/mcp", err=True)
    server_of(allowed, **options).run("streamable-http", host=host, port=port, transport_security=security)


class Keyed:
    """Lets in who sends the key."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def verify_token(self, token: str) -> AccessToken | None:
        """The token's access, or None."""
        from mcp.server.auth.provider import AccessToken

        right = hmac.compare_digest(token.encode(), self._key.encode())
        return AccessToken(token=token, client_id="key", scopes=[]) if right else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def installation(client: str, words: list[str]) -> str:
    """The line or the JSON that adds this server to a client; with the names of variables, never their values."""
    command = [sys.executable, "-m", "madplug", "mcp", *words]
    server: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if client == "claude":
        return f"claude mcp add madplug -- {' '.join(command)}"
    if client == "codex":
        return (f"[mcp_servers.madplug]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
                f"tool_timeout_sec = {TIMEOUT}")
    kept = {"cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json", "desktop": "claude_desktop_config.json"}[client]
    name = "servers" if client == "vscode" else "mcpServers"
    return f"# {kept}\n{json.dumps({name: {'madplug': server}}, indent=2)}"
