"""The command `madplug show`, and the page of a component that it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

import click

from madplug import UserError, nearest
from madplug.study import Registry
from madplug_show.facts import component, default_text

WIDTH = 100


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> None:
    """Show a component, or every component of a plugin: its options, and TOML to paste."""
    registry = Registry()
    pages = [component(offer) for offer in registry.named(name)]
    if not pages:
        every = [*(o.name for o in registry.offers()), *registry.plugin_names]
        raise UserError(registry.unusable(name) or
                        f"show: no component or plugin '{name}'{registry.installable(name)}{nearest(name, every)}")
    click.echo(json.dumps(pages, indent=2, ensure_ascii=False) if as_json else "\n\n".join(map(page, pages)))


def page(facts: Mapping[str, Any]) -> str:
    """The page of a component, as `madplug show` prints it."""
    lines = [f"{facts['name']}  ({facts['kind']}, {facts['distribution']} {facts['version']})", "",
             facts["description"], ""]
    if facts["source"]:
        lines += [f"Source: {facts['source']}", ""]
    for name, words in (("moves", "Moves"), ("needs", "Needs"), ("gives", "Can give")):
        if name in facts:
            lines += [f"{words}: {', '.join(facts[name])}", ""]
    if facts["options"]:
        lines += ["Options:", "", *(line for option in facts["options"] for line in _option(option))]
    if "debate" in facts:
        import tomli_w

        lines += ["Stands for:", "", tomli_w.dumps({"debate": facts["debate"]}).strip(), ""]
    lines += ["In a run file:", "", facts["toml"].strip()]
    return "\n".join(lines)


def _option(option: Mapping[str, Any]) -> Iterator[str]:
    """An option: name, type and default on a line, then its meaning, then a default that is too long for the line."""
    limits = f" ({option['limits']})" if option["limits"] else ""
    default = default_text(option)
    long = len(default) > WIDTH // 2
    ending = "required" if option["required"] else "default below" if long else f"default {default}"
    yield f"{option['name']}  {option['type']}{limits}, {ending}"
    yield from wrap(option["description"] + (" (may change within a study)" if option["may_change"] else ""), WIDTH,
                    initial_indent="    ", subsequent_indent="    ")
    if long and not option["required"]:
        text = option["default"] if isinstance(option["default"], str) else default
        yield from (piece for line in text.splitlines()
                    for piece in wrap(line, WIDTH, initial_indent="  | ", subsequent_indent="  | ") or ["  |"])
    yield ""
