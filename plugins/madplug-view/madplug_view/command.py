"""The command `madplug view`."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import Problem, UserError, nearest_or_all
from madplug.store import find_studies, has_study

if TYPE_CHECKING:
    from madplug_askpage.desk import Desk
    from madplug_view.studies import Study


@click.command()
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--ask", "asks", is_flag=True, help="Open a page to ask councils of models from, which keeps the "
              "questions in DIR.  [default: runs/ask]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The port.  [default: any free one]")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--export", "output", metavar="OUT", type=click.Path(path_type=Path),
              help="Write the pages as files instead: to a directory, or one .html file.")
@click.option("--cell", "cells", metavar="CELL", multiple=True, help="With --export: only this cell.")
@click.option("--sample", "samples", metavar="SAMPLE", multiple=True, help="With --export: only on this sample.")
def view(folders: tuple[Path, ...], asks: bool, host: str, port: int, no_browser: bool, output: Path | None,
         cells: tuple[str, ...], samples: tuple[str, ...]) -> None:
    """Look at the studies in DIR... in the browser: cells, debates to replay, comparisons. Works while they run.

    A DIR may also be a folder of studies.
    """
    from madplug_view.studies import open_studies

    if asks:
        if output is not None or cells or samples:
            raise UserError("--export, --cell and --sample: go with studies, not with --ask")
        ask(folders, host, port, browser=not no_browser)
        return
    if not folders:
        raise click.UsageError("Missing argument 'DIR...'.")
    studies = open_studies(folders)
    if output is not None:
        from madplug_view.export import Part, export

        known = [found["cell"] for study in studies if cells for found in study.overview()["cells"]]
        if unknown := [Problem("--cell", f"there is no cell '{cell}'{nearest_or_all(cell, dict.fromkeys(known))}")
                       for cell in cells if cell not in known]:
            raise UserError(unknown)
        click.echo(export(studies, output, Part(cells, samples)))
        return
    if cells or samples:
        raise UserError("--cell and --sample choose what --export writes; the pages show everything")
    serve(studies, host, port, browser=not no_browser, folders=folders)


def ask(folders: Sequence[Path], host: str, port: int, *, browser: bool) -> None:
    """Serve the page to ask from. Raises `UserError`, also if it is not installed."""
    from madplug_view.studies import open_studies

    try:
        from madplug_askpage.desk import FOLDER, Desk
    except ImportError as error:
        raise UserError(f"--ask: needs madplug-askpage; pip install madplug-askpage ({error})") from None
    base = folders[0] if folders else FOLDER
    if len(folders) > 1:
        raise UserError(f"--ask: keeps its questions in one directory, {base}; leave out {folders[1]}")
    base.mkdir(parents=True, exist_ok=True)
    studies = open_studies([path for path in find_studies([base]) if has_study(path)])
    serve(studies, host, port, browser=browser, folders=[base], desk=Desk(base))


def serve(studies: Sequence[Study], host: str, port: int, *, browser: bool, folders: Sequence[Path] = (),
          desk: Desk | None = None) -> None:
    """Serve until interrupted. folders: where studies that begin meanwhile are found. desk: what is asked from."""
    import uvicorn

    from madplug_view.connections import Patience
    from madplug_view.guard import Guard, host_names
    from madplug_view.listening import Listening
    from madplug_view.server import application

    listener = Listening(host, port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    pages = application(studies, folders, desk.routes(), desk.lifespan) if desk else application(studies, folders)
    app: Any = Guard(pages, token, port, host_names(host), home="/ask/" if desk else "/")
    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False, lifespan="on",
                            timeout_graceful_shutdown=10, ws="none", loop="asyncio", http=Patience)
    server = uvicorn.Server(config)
    pages.state.ending = lambda: server.should_exit
    if not is_loopback(host):
        can = "read these studies, and have models asked," if desk else "read these studies"
        click.echo(f"madplug: listening at {host}: anyone who has the address below can {can} over the network, and it "
                   "is not encrypted", err=True)
    address = f"http://{in_address(host)}:{port}/?token={token}"
    click.echo(f"{address}\npress Ctrl-C to stop")
    sys.stdout.flush()
    for study in studies:
        threading.Thread(target=study.prepare, daemon=True).start()
    if browser and has_browser():
        click.launch(address)
    server.run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def in_address(host: str) -> str:
    """The host as it is written in an address that opens from this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if address.version == 6 else host


def has_browser() -> bool:
    """Whether there is a display that a browser could open on; one in the terminal would be in the way."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
