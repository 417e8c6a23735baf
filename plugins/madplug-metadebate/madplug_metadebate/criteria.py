"""The criteria for judging proposals, made once for a data set and a role, and stored with the study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

from madplug import ModelError, Sample, UserError
from madplug_prompting.prompts import as_text, fill, question_parts, user
from madplug_prompting.replies import read_json

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


@dataclass(frozen=True)
class Criteria:
    """By what the proposals for a role are judged."""

    items: Sequence[Criterion] = BUILT_IN
    note: str = "built_in"
    """`given` in the run file; `generated`, from training examples; `generated_from_study`, from the study's own
    questions, since the data set has no others; `unread`, the built-in ones, since those could not be read; `built_in`,
    since no model could be asked."""


async def criteria_of(setup: Setup, options: Any, role: str) -> Criteria:
    """The criteria of a role: made once for the data set and stored with the study, unless the run file has them.

    A model that cannot be asked leaves them to the next one. If none can be, the built-in criteria serve this run and
    are not stored, so that a later run asks again.
    """
    given = options.criteria.get(role, ()) if isinstance(options.criteria, Mapping) else options.criteria
    if given:
        return Criteria(given, "given")
    models = list(dict.fromkeys([*filter(None, [options.criteria_model]), *setup.models])) or [""]
    examples, note = _examples(setup, options)
    chat = _chat(setup, options, role, examples)
    facts = json.dumps([setup.model_identity(models[0]), setup.cell.dataset_key, chat])
    digest = blake2b(facts.encode(), digest_size=6).hexdigest()

    async def written(model: str) -> dict[str, Any]:
        for _ in range(options.retries + 1):
            said = await setup.ask(chat, purpose="criteria", model=model or None, form=FORM)
            found = read_criteria(said.text)
            if found:
                return {"criteria": found, "note": note}
        return {"criteria": BUILT_IN, "note": "unread"}

    async def make() -> dict[str, Any]:
        for model in models[:-1]:
            with suppress(ModelError):
                return await written(model)
        return await written(models[-1])

    try:
        kept: dict[str, Any] = await setup.keep(f"metadebate.criteria.{role}.{digest}", make)
    except ModelError:  # each debate says which of its models could not be asked
        return Criteria()
    return Criteria([(name, explanation) for name, explanation in kept["criteria"]], kept["note"])


def _chat(setup: Setup, options: Any, role: str, examples: Sequence[Sample]) -> list[dict[str, Any]]:
    """The request for criteria, with the images of the examples."""
    others = "\n".join(f"{name}: {what}" for name, what in options.roles.items() if name != role)
    has_images = any(sample.images for sample in examples)
    groups = ", ".join(dict.fromkeys(sample.group for sample in examples if sample.group))
    text = fill(options.criteria_prompt, setting=options.setting, role=role, description=options.roles[role],
                others=others or "(none)", domain=options.domain or groups or "as in the examples",
                modality="text and images" if has_images else "text",
                examples="\n\n".join(question_parts(sample) for sample in examples))
    images = tuple(url for sample in examples for url in sample.images)
    system = fill(options.criteria_system, setting=options.setting, role=role, description=options.roles[role]).strip()
    before = [{"role": "system", "content": system}] if system else []
    return [*before, user(Sample("", "", images=images), text)]


def read_criteria(text: str) -> list[Criterion]:
    """Two or three criteria with different names; none when they cannot be read."""
    found = (read_json(text) or {}).get("criteria")
    if not isinstance(found, list):
        return []
    entries = [e for e in found if isinstance(e, dict)]
    named = {as_text(e.get("name"))[:100]: as_text(e.get("explanation"))[:1000] for e in entries[:3]}
    criteria = [(name, why) for name, why in named.items() if name and why]
    return criteria if len(criteria) >= 2 else []


def _examples(setup: Setup, options: Any) -> tuple[list[Sample], str]:
    """Questions without their answers, of the training split where there is one, and what the note says of them."""
    if not options.examples:
        return [], "generated"
    try:
        found = [sample for sample, _ in islice(setup.samples(options.split), options.examples)]
    except UserError:  # a data set without this split says so; the notes do, too
        found = []
    if found:
        return found, "generated"
    return [sample for sample, _ in islice(setup.samples(), options.examples)], "generated_from_study"
