"""Run files into which a paper's own wording is pasted: one for each paper, with every prompt of its methods.

Made from the options of the components, so that a new prompt appears by itself. Instead of the paper's sentences there
are placeholders, which say what a prompt can be filled with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from madplug.registry.offers import Offer

HEAD = """[dataset]
use = "files.table"
path = "questions.jsonl"
answers = "answers.choice"
instruction = "<the task in words>"

[answers]
use = "answers.choice"
instruction = "<the paper's request for the closing line, with {form}>"

[models.first]
use = "openai.chat"
model = "<a model>"

[models.second]
use = "openai.chat"
model = "<another model>"

[debate]
models = ["first"]
"""
SHORT = 25
"""A text of fewer characters, without a placeholder, is a word or a name and no prompt."""
LAYOUT = ("persona_place", "frame_place")
"""Options that say in which role a prompt is sent."""
LISTS = ("styles", "personas", "phases", "extensions")
SLOTS = {"style": "styles", "personas": "personas", "turns": "turns", "visibility": "visibility", "casting": "casting",
         "decision": "decision", "phase": "phases", "extension": "extensions"}
Cell = tuple[str, dict[str, list[str]]]
"""A name, and the components with prompts by the slot of `[debate]`; `paradigm` is one of them."""


def run_file(found: Sequence[Offer], every: Mapping[str, Sequence[Offer]]) -> str:
    """The run file of a paper's components; empty if none of them has a prompt.

    every: all offers by name.
    """
    cells = list(distinct(cells_of(found, every), every))
    return "\n".join([HEAD, *(cell_text(name, slots, every) for name, slots in cells)]) if cells else ""


def cells_of(found: Sequence[Offer], every: Mapping[str, Sequence[Offer]]) -> Iterator[Cell]:
    """A cell for each paradigm, and one for each other component, on a paradigm that it works with."""
    paradigms = [offer for offer in found if offer.kind == "paradigm"]
    for offer in paradigms:
        yield offer.name, {"paradigm": [offer.name], **expanded(offer)}
    several = [offer.name for offer in paradigms if offer.component.debate.get("agents", 2) > 1]
    base = "mallm.memory" if any("agreement" in o.component.needs for o in found) else [*several, "som.debate"][0]
    used = {name for offer in paradigms for names in expanded(offer).values() for name in names}
    for offer in found:
        if offer.kind in SLOTS and offer.name not in used and "references" not in offer.component.needs:
            yield offer.name, {"paradigm": [base], SLOTS[offer.kind]: [offer.name]}


def expanded(paradigm: Offer) -> dict[str, list[str]]:
    """The components of a paradigm by slot."""
    table: Mapping[str, Any] = getattr(paradigm.component, "debate", {})
    found = {}
    for slot, value in table.items():
        values = value if isinstance(value, list) else [value]
        names = [v["use"] if isinstance(v, Mapping) else v for v in values if isinstance(v, str | Mapping)]
        if slot in SLOTS.values() and names:
            found[slot] = names
    return found


def distinct(cells: Iterable[Cell], every: Mapping[str, Sequence[Offer]]) -> Iterator[Cell]:
    """The cells that have a prompt which none before them has; further slots are left to the paradigm."""
    shown: set[str] = set()
    for name, slots in cells:
        paradigm = slots["paradigm"]
        prompted = {slot: names for slot, names in slots.items() if slot != "paradigm"
                    and any(prompts_of(offer_of(n, slot, every)) for n in names)}
        new = {n for names in prompted.values() for n in names} - shown
        if new:
            shown |= new
            yield name, {"paradigm": paradigm, **prompted}


def offer_of(name: str, slot: str, every: Mapping[str, Sequence[Offer]]) -> Offer:
    """The component of this name that fits a slot."""
    return next(offer for offer in every[name] if SLOTS.get(offer.kind) == slot)


def prompts_of(offer: Offer) -> dict[str, str]:
    """The prompts among a component's options, with what the run file says about each."""
    found = {}
    for name, option in offer.component.Options.model_fields.items():
        default, about = option.default, option.description or ""
        if option.annotation is str and isinstance(default, str) and (
                "prompt" in about or "{" in default or len(default) > SHORT):
            found[name] = words(default)
    return found


def words(default: str) -> str:
    """The placeholder for a prompt of the paper: what this project's prompt is filled with."""
    used = dict.fromkeys(re.findall(r"\{\w+\}", default))
    return f"<the paper's words{', with ' + ', '.join(used) if used else ''}>"


def cell_text(name: str, slots: Mapping[str, list[str]], every: Mapping[str, Sequence[Offer]]) -> str:
    """A cell in TOML."""
    lines = ["[[cells]]", f"name = {json.dumps(name)}", f"debate.paradigm = {json.dumps(slots['paradigm'][0])}"]
    lines += ['debate.models = ["first", "second"]'] if "casting" in slots else []
    for slot, names in slots.items():
        if slot == "paradigm":
            continue
        tables = [table(offer_of(n, slot, every)) for n in names]
        at = f"cells.{slot}" if slot == "extensions" else f"cells.debate.{slot}"
        for made in tables:
            lines += ["", f"[[{at}]]" if slot in LISTS else f"[{at}]", *made]
    return "\n".join(lines) + "\n"


def table(offer: Offer) -> list[str]:
    """A component with its prompts, and with the roles in which they are sent."""
    fields = offer.component.Options.model_fields
    places = [f"{name} = {json.dumps(fields[name].default)}" for name in LAYOUT if name in fields]
    return [f"use = {json.dumps(offer.name)}", *places,
            *(f"{name} = {json.dumps(text)}" for name, text in prompts_of(offer).items())]
