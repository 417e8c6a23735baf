"""How many calls debates usually make, and `madplug check FILE --calls N`: which agents, rounds or samples make N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import click

from madplug import Cell, Component, columns, count, safe

C = TypeVar("C", bound=Component)

MOST_TOLD = 6
"""Cells of which the usual calls are told."""
AGENTS, ROUNDS, SAMPLES = range(1, 31), range(1, 11), range(1, 101)
"""The settings that are tried."""
NEAR = 0.25
"""Sizes with at most this share more or fewer calls are near."""
ONCE: dict[str, Any] = {"attempts": 1, "retries": 0}
"""The options that say how often a reply is asked for, with which it is asked for once."""
UNASKED = {"final": ("ask_if_unread", "recorded"), "extract": ("regex_then_llm", "regex"),
           "conclude": ("unread", "never")}
"""The options for which a model is asked where a reply gives no answer, and what they are where all do."""


def add_calls(cli: click.Group) -> None:
    """Add the option to `madplug check`."""
    check: Any = cli.commands["check"]
    shown = check.callback

    def callback(*, calls: int | None, **given: Any) -> Any:
        resolved = shown(**given)
        if usual := usually(cells := resolved.plan.cells):
            more = any(cell.worst_calls() > cell.worst_calls(scored=False) for cell in cells)
            click.echo(f"calls/debate where every reply can be read{', without those of metrics' * more}: {usual}")
        if calls is not None:
            rows = [[cell.slug, *("" if n is None else str(n) for n in nearest_settings(cell, calls))]
                    for cell in resolved.plan.cells
                    if cell.match is None and (cell.wanted * cell.rounds > 1 or samples_of(cell))]
            head = ("cell", "debate.agents", "debate.rounds", "debate.turns.samples", "calls/debate", "at most")
            used = [i for i, name in enumerate(head) if not name.endswith("samples") or any(row[i] for row in rows)]
            click.echo(f"\nat about {calls} calls a debate that runs all its rounds (at most: if replies cannot be "
                       "read and are asked for again); a matched cell and a single answer choose none, and what has "
                       "several agents or rounds keeps two; a size with a warning is left out if another is near; up "
                       f"to {AGENTS[-1]} agents, {ROUNDS[-1]} rounds and {SAMPLES[-1]} samples are tried:")
            click.echo(columns([[row[i] for i in used] for row in rows], [head[i] for i in used]))
        return resolved

    check.callback = callback
    check.params.append(click.Option(["--calls"], type=click.IntRange(1), metavar="N", help=(
        "Also show the agents and rounds with which each cell makes about N calls a debate.")))


def usually(cells: Sequence[Cell]) -> str:
    """The calls of a debate of each cell that makes fewer than the most if every reply can be read."""
    fewer = [f"{made:,} ({safe(cell.slug)})" for cell in cells
             if cell.match is None and (made := expected(cell)) < cell.worst_calls()]
    return ", ".join(fewer[:MOST_TOLD]) + (
        f", and {count(len(fewer) - MOST_TOLD, 'more cell')}" if fewer[MOST_TOLD:] else "")


def nearest_settings(cell: Cell, calls: int) -> tuple[int, int, int | None, int, int]:
    """Agents, rounds, samples, calls of a debate and the most of them, nearest to a number of calls, then to what the
    cell has. A size of which components warn is taken only if none that is near has fewer warnings.
    """
    distances = [(abs(expected(made) - calls), made) for made in candidates(cell)] or [(0, cell)]
    limit = max(NEAR * calls, min(distance for distance, _ in distances))
    _, best = min(((distance, made) for distance, made in distances if distance <= limit), key=lambda found: (
        warnings(found[1]), found[0], abs(found[1].wanted - cell.wanted), abs(found[1].rounds - cell.rounds)))
    return best.plan.agents, best.rounds, samples_of(best), expected(best), best.worst_calls(scored=False)


def warnings(cell: Cell) -> int:
    """Of how much the cell's components warn."""
    return sum(1 for component in cell.components() for _ in component.warn(cell))


def samples_of(cell: Cell) -> int | None:
    """How many samples the turn order's options say, if they do."""
    samples = getattr(cell.turns.options, "samples", None)
    return samples if isinstance(samples, int) else None


def expected(cell: Cell) -> int:
    """The calls of a debate that runs all its rounds and in which every reply can be read."""
    once = partial(_once, stated=all(getattr(bound.style, "states_answers", True) for bound in cell.styles))
    return replace(cell, decision=once(cell.decision), personas=[*map(once, cell.personas)], answers=once(cell.answers),
                   casting=None if cell.casting is None else once(cell.casting), phases=[*map(once, cell.phases)],
                   styles=[replace(bound, style=once(bound.style)) for bound in cell.styles]).worst_calls(scored=False)


def _once(component: C, *, stated: bool) -> C:
    """The component as if every reply could be read. stated: whether the replies give answers."""
    given: Any = component.options
    unasked = {name: never for name, (asked, never) in UNASKED.items() if stated and getattr(given, name, "") == asked}
    once = {name: least for name, least in ONCE.items() if name in type(given).model_fields}
    return type(component)(given.model_copy(update=once | unasked))


def candidates(cell: Cell) -> Iterator[Cell]:
    """The cell with other sizes that its components accept, with a place for each of its roles, and with all its moves.

    What has several agents or rounds does not become single. A cell whose personas fix their number keeps it, and one
    whose turn order says how many samples has others of these.
    """
    if samples_of(cell):
        for samples in SAMPLES:
            options = cell.turns.options.model_copy(update={"samples": samples})
            yield replace(cell, turns=type(cell.turns)(options))
        return
    least = min(cell.wanted, max(2, len(cell.roles), len(cell.personas)))
    every = moves(cell)
    fixed = cell.agents is None or (cell.personas and cell.personas[-1].count)
    for agents in [cell.agents] if fixed else AGENTS[least - 1:]:
        for rounds in ROUNDS[1:] if cell.rounds > 1 else [1]:
            made = replace(cell, agents=agents, rounds=rounds)
            if moves(made) == every and made.turns.turns(made.wanted, rounds) and not any(
                    problem for component in made.components() for problem in component.check(made)):
                yield made


def moves(cell: Cell) -> set[str]:
    """What is done in the rounds of a debate."""
    return {move for n in range(1, cell.rounds + 1) for move in cell.turns.by_move(cell.wanted, n)}
