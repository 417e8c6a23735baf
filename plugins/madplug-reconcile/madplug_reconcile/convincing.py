"""Training samples whose explanation turned a model's wrong answer into the right one."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypedDict

from madplug import Sample
from madplug_prompting.prompts import as_text, fill, question_parts, user
from madplug_prompting.replies import read_json
from madplug_reconcile.reply import SCHEMA

if TYPE_CHECKING:
    from madplug import Setup


class Item(TypedDict):
    """A convincing sample, as it is stored with the study."""

    id: str
    question: str
    explanation: str
    answer: str


async def mine(setup: Setup, style: Any, model: str) -> list[Item]:
    """The first samples that convince a model, found once and stored with the study."""
    options = style.options
    facts = [setup.model_identity(model), setup.cell.dataset_key, options.model_dump(mode="json")]
    digest = blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=6).hexdigest()

    async def find() -> list[Item]:
        found: list[Item] = []
        for asked, (sample, references) in enumerate(setup.samples(options.split)):
            if len(found) == options.convincing or asked == options.look_at:
                break
            explanation = as_text(sample.metadata.get(options.explanation))
            if not explanation or not references:
                continue
            if await _convinces(setup, style, model, sample, references, explanation):
                found.append(Item(id=sample.id, question=question_parts(sample), explanation=explanation,
                                  answer=references[0]))
        return found

    return await setup.keep(f"reconcile.convincing.{model}.{digest}", find)


async def _convinces(setup: Setup, style: Any, model: str, sample: Sample, references: tuple[str, ...],
                     explanation: str) -> bool:
    """Whether a model errs on a sample and, shown the explanation, does not."""
    answers, options = setup.cell.answers, style.options
    right = {answers.canonical(r, sample) for r in references} - {None}
    values = {"question": question_parts(sample), "fields": style.fields(answers, sample), "convincing": "",
              "persona": "", "explanation": explanation}

    async def answers_right(template: str) -> bool:
        said = await setup.ask([user(sample, fill(template, **values))], purpose="convince", model=model,
                               form={"json_schema": SCHEMA})
        found = read_json(said.text)
        key = answers.canonical(as_text(found.get("answer")) if found else said.text, sample)
        return key is not None and any(answers.same(key, r, sample) for r in right if r)

    return not await answers_right(options.draft) and await answers_right(options.correct)
