"""The command `madplug mcp`."""

from __future__ import annotations

import hmac
import json
import os
import shlex
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import UserError
from madplug.study import write_whole

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

TIMEOUT = 3600
"""Seconds that clients are asked to wait for a tool, where they can be."""
CLIENTS = ("claude", "codex", "cursor", "vscode", "desktop")
FROM_ENVIRONMENT = {"claude": "${%s}", "cursor": "${env:%s}", "vscode": "${env:%s}"}
"""How a client's file refers to a variable of the environment, where it can."""
COMMAND = [sys.executable, "-m", "madplug", "mcp"]


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
@click.option("--confirm-usd", type=click.FloatRange(0), metavar="USD", help="Have the client's user confirm a "
              "question that may cost more.")
@click.option("--client-seat", is_flag=True, help="Give the client's own model a seat in every council; it needs no "
              "key.")
@click.option("--install", type=click.Choice(CLIENTS), help="Print how to add this server to a client, and stop.")
@click.option("--write", "writes", is_flag=True, help="With --install: add it to the client's file (for claude and "
              "editors, the project's).")
def mcp(council: str | None, base: Path | None, settings: tuple[str, ...], http: bool, host: str, port: int,
        key_env: str, allow_dir: Path | None, read_only: bool, max_usd: float | None,
        max_usd_day: float | None, confirm_usd: float | None, client_seat: bool, install: str | None,
        writes: bool) -> None:
    """Serve councils of models to assistants by the Model Context Protocol.

    Over standard input and output, or with --http over streamable HTTP at /mcp. Debates are kept as studies and go on
    when a client gives up waiting.
    """
    from madplug.study import read, secrets
    from madplug_ask.councils import FOLDER
    from madplug_mcp.server import Settings, server_of

    if install:
        if found := [*secrets(read({}, settings, {}))]:  # the client's file is no place for them either
            raise UserError(found)
        limits = {"max-usd": max_usd, "max-usd-day": max_usd_day, "confirm-usd": confirm_usd}
        words = [*([f"--council={council}"] if council else []), *(["--client-seat"] if client_seat else []),
                 *(["--read-only"] if read_only else []), *(f"--set={text}" for text in settings),
                 *(f"--{name}={most:g}" for name, most in limits.items() if most is not None),
                 *([f"--allow-dir={allow_dir.absolute()}"] if allow_dir else []),
                 f"--base={(base or FOLDER).absolute()}"]
        click.echo(f"added to {write_installation(install, words)}" if writes else installation(install, words))
        return
    if writes:
        raise UserError("--write: goes with --install")
    allowed = Settings((base or FOLDER).absolute(), allow_dir or (None if http else Path.cwd()), read_only, max_usd,
                       max_usd_day, council, settings, confirm_usd, client_seat)
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
    """The line or the text that adds this server to a client; with the names of variables, never their values."""
    if client == "claude":
        return f"claude mcp add madplug -- {shlex.join([*COMMAND, *words])}"
    path, key = file_of(client)
    return f"# {path}\n{codex(words)}" if client == "codex" else \
        f"# {path}\n{json.dumps({key: {'madplug': server(client, words)}}, indent=2)}"


def write_installation(client: str, words: list[str]) -> Path:
    """Add this server to a client's file, of which all else is kept. Raises `UserError` if that cannot be done."""
    path, key = file_of(client)
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if client == "codex":
            if "[mcp_servers.madplug]" in text:
                raise UserError(f"{path}: has [mcp_servers.madplug] already; remove it first")
            made = f"{text.rstrip()}\n\n{codex(words)}\n".lstrip()
        else:
            table = json.loads(text or "{}")
            table.setdefault(key, {})["madplug"] = server(client, words)
            made = f"{json.dumps(table, indent=2, ensure_ascii=False)}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, made)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UserError(f"{path}: cannot be added to ({error}); add this by hand:\n"
                        f"{installation(client, words)}") from None
    return path


def file_of(client: str) -> tuple[Path, str]:
    """The file in which a client has its servers, and the key in it."""
    home = Path.home()
    desktop = {"darwin": home / "Library" / "Application Support", "win32": home / "AppData" / "Roaming"}
    found = {"claude": Path(".mcp.json"), "codex": home / ".codex" / "config.toml", "cursor": Path(".cursor/mcp.json"),
             "vscode": Path(".vscode/mcp.json"),
             "desktop": desktop.get(sys.platform, home / ".config") / "Claude" / "claude_desktop_config.json"}
    return found[client], "servers" if client == "vscode" else "mcpServers"


def server(client: str, words: list[str]) -> dict[str, Any]:
    """How a client starts this server, and with which keys of its own environment."""
    refer = FROM_ENVIRONMENT.get(client)
    keys = {"env": {key: refer % key for key in keys_set()}} if refer and keys_set() else {}
    return {"command": COMMAND[0], "args": [*COMMAND[1:], *words], **keys}


def codex(words: list[str]) -> str:
    """The same as a table of Codex."""
    made = {**server("codex", words), "env_vars": keys_set(), "tool_timeout_sec": TIMEOUT}
    return "\n".join(["[mcp_servers.madplug]", *(f"{key} = {json.dumps(value)}" for key, value in made.items())])


def keys_set() -> list[str]:
    """The names of the variables that have a provider's key."""
    from madplug_ask.councils import KEYS

    return [key for key in KEYS if os.environ.get(key)]
