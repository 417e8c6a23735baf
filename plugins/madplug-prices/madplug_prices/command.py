"""The command `madplug prices`, and what `madplug check` says about money."""

from __future__ import annotations

from typing import Any

import click

from madplug import UserError, columns
from madplug_prices.table import table


@click.command()
@click.argument("words", metavar="[WORD]...", nargs=-1)
def prices(words: tuple[str, ...]) -> None:
    """Show the built-in prices of the models whose name or endpoint contains every WORD.

    `price` of a model in the run file goes before them.
    """
    known = table()
    rows = [(host, model, *(f"{one:g}" for one in usd), *[""] * (3 - len(usd)))
            for host, models in known["prices"].items() for model, usd in models.items()
            if all(word.lower() in f"{host} {model}".lower() for word in words)]
    if not rows:
        raise UserError(f"prices: no model has '{' '.join(words)}' in its name or endpoint; `price` of a model in the "
                        "run file says what it costs, in USD per million tokens")
    click.echo(columns(rows, ("endpoint", "model", "prompt", "completion", "cached")))
    click.echo(f"USD per million tokens, {known['date']}, from {known['source']}")


def add_forecast(cli: click.Group) -> None:
    """Let `madplug check` end with what the study, or the rest of it, may cost."""
    check: Any = cli.commands["check"]
    shown = check.callback

    def callback(**given: Any) -> Any:
        from madplug_prices.forecast import forecast, recorded

        resolved = shown(**given)
        if (found := forecast(resolved, *recorded(resolved))) is not None:
            click.echo(found.text)
        return resolved

    check.callback = callback
