"""The criteria for judging proposals, made once for a data set and a role, and stored with the study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

from madplug_common.prompts import as_text, fill, question_parts
from madplug_common.replies import read_json

if TYPE_CHECKING:
    from madplug import Setup

Criterion = tuple[str, str]
"""A short name, and what it means."""

BUILT_IN: tuple[Criterion, ...] = (
    ("Role fulfilment", "The text does what its role is there for, and does not slip into another one."),
    ("Correctness", "The steps are right, and so is the answer they lead to or support."),
)
FORM = {"json_schema": {"type": "object", "required": ["criteria"], "properties": {"criteria": {
    "type": "array", "minItems": 2, "maxItems": 3, "items": {
        "type": "object", "required": ["name", "explanation"], "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "explanation": {"type": "string"}}}}}}}


async def criteria_of(setup: Setup, options: Any, role: str) -> tuple[Sequence[Criterion], bool]:
    """The criteria of a role, and whether they are the built-in ones because no others could be read."""
    model = options.criteria_model or (setup.models[0] if setup.models else "")
    prompt = fill(options.criteria, setting=options.setting, role=role, description=options.roles[role],
                  examples=_examples(setup, options.examples))
    facts = json.dumps([setup.cell.channels.get(model, model), setup.cell.dataset_key, prompt])
    digest = blake2b(facts.encode(), digest_size=6).hexdigest()

    async def make() -> dict[str, Any]:
        for _ in range(options.retries + 1):
            said = await setup.ask(prompt, purpose="criteria", model=model or None, form=FORM)
            found = read_criteria(said.text)
            if found:
                return {"criteria": found, "built_in": False}
        return {"criteria": BUILT_IN, "built_in": True}

    kept: dict[str, Any] = await setup.keep(f"metadebate.criteria.{role}.{digest}", make)
    return [(name, explanation) for name, explanation in kept["criteria"]], kept["built_in"]


def read_criteria(text: str) -> list[Criterion]:
    """Two or three criteria with different names; none when they cannot be read."""
    found = (read_json(text) or {}).get("criteria")
    if not isinstance(found, list):
        return []
    entries = [e for e in found if isinstance(e, dict)]
    named = {as_text(e.get("name"))[:100]: as_text(e.get("explanation"))[:1000] for e in entries[:3]}
    criteria = [(name, why) for name, why in named.items() if name and why]
    return criteria if len(criteria) >= 2 else []


def _examples(setup: Setup, number: int) -> str:
    """The first questions of the study, without their answers."""
    samples = islice(setup.samples(), number) if number else ()
    return "\n\n".join(question_parts(sample) for sample, _ in samples)
