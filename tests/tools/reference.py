"""Writes the documents that are made from the code: `python tests/tools/reference.py`.

`docs/reference.md` is what plugins implement and are given, `docs/components.md` every component of this repository,
`docs/papers.md` the components of each paper. A test compares them.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from madplug import components, debate, describe, errors, hookspecs, records, runspecs, setup, transcript
from madplug.registry import Offer, Registry

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NOTICE = "<!-- Made by `python tests/tools/reference.py`; change the docstrings instead. -->"
GIVEN = {
    debate.Debate: "sample agents voters with_role agent transcript round rounds answers references rng ask ask_all "
                   "notes service neighbours view key models decision matched repeat",
    setup.Setup: "ask ask_all samples models answers keep",
    transcript.Transcript: "messages record of_round by last answers",
}
ATTRIBUTES = {
    "sample": "The question: a `Sample`, without its references.", "agents": "The agents, by id.",
    "transcript": "What was said: a `Transcript`.", "round": "The round that is being held, from 1; 0 before.",
    "rounds": "The most rounds there can be.",
    "decision": "How the debate ended, for phases and metrics; before, None.",
    "repeat": "Which independent repetition this is, from 0.",
    "notes": "A table for facts to keep beside the debate, under the plugin's name; components write and do not read.",
    "matched": "The same sample's result in the cell that this one is matched to, or None.",
}
PAPERS = (
    ("MALLM: Multi-Agent Large Language Models Framework", "Becker et al. 2025", r"Becker et al\. 2025|MALLM, release"),
    ("Voting or Consensus? Decision-Making in Multi-Agent Debate", "Kaesberg et al. 2025", r"Kaesberg et al\. 2025"),
    ("Improving Factuality and Reasoning in Language Models through Multiagent Debate", "Du et al. 2023",
     r"Du et al\. 2023(?! \(evaluation)"),
    ("Should we be going MAD? A Look at Multi-Agent Debate Strategies for LLMs (DebateLLM)", "Smit et al. 2024",
     r"Smit et al\. 2024"),
    ("Improving Multi-Agent Debate with Sparse Communication Topology", "Li et al. 2024", r"Li et al\. 2024"),
    ("Free-MAD: Consensus-Free Multi-Agent Debate", "Free-MAD 2025", r"Free-MAD 2025"),
    ("Encouraging Divergent Thinking in Large Language Models through Multi-Agent Debate", "Liang et al. 2024",
     r"Liang et al\. 2024"),
    ("Breaking Mental Set to Improve Reasoning through Diverse Multi-Agent Debate (DMAD)", "Liu et al. 2025",
     r"Liu et al\. 2025"),
    ("ReConcile: Round-Table Conference Improves Reasoning via Consensus among Diverse LLMs", "Chen et al. 2024",
     r"Chen et al\. 2024"),
    ("ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate", "Chan et al. 2024",
     r"Chan et al\. 2024"),
    ("Exchange-of-Thought: Enhancing Large Language Model Capabilities through Cross-Model Communication",
     "Yin et al. 2023", r"Yin et al\. 2023(?! \(evaluation)"),
    ("MADC", "MADC 2026", r"MADC 2026"),
    ("Meta-Debate: dynamic role assignment for multi-agent debate", "Meta-Debate", r"Meta-Debate"),
    ("Self-Consistency Improves Chain of Thought Reasoning in Language Models", "Wang et al. 2023",
     r"Wang et al\. 2023"),
)
"""Title, how `source` cites it, and the regular expression that finds it there."""


def offers() -> list[Offer]:
    """The components of this repository's plugins."""
    ours = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
    return [offer for offer in Registry().offers() if offer.distribution in ours]


def text_of(thing: Any) -> str:
    """A docstring as Markdown: indented blocks stay code."""
    return inspect.getdoc(thing) or ""


def cell(text: str) -> str:
    """A text that can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


# docs/reference.md

def reference() -> str:
    """Hooks, base classes, records, and what components are given."""
    parts = ["# Reference", NOTICE, "What plugins implement, and what they are given. `writing-plugins.md` shows how; "
             "`components.md` is what is installed. Everything here is imported from `madplug`."]
    parts += ["## Hooks: what a distribution offers", text_of(hookspecs), *hooks(hookspecs)]
    parts += ["## Hooks: what happens in a run", text_of(runspecs), *hooks(runspecs)]
    parts += ["## Base classes", "One for each kind of component. *Must* marks what a component has to implement; the "
              "rest has a default.", *base_classes()]
    parts += ["## What a component is given", *(given(owner, names.split()) for owner, names in GIVEN.items())]
    parts += ["## Records", text_of(records), *record_pages()]
    parts += ["## Errors", f"```text\n{text_of(errors).partition(chr(10) * 2)[2]}\n```"]
    return "\n\n".join(parts) + "\n"


def hooks(module: ModuleType) -> Iterator[str]:
    """A section for each hook of a module, in its order."""
    for name, hook in vars(module).items():
        if name.startswith("madplug_"):
            yield f"### `{name}({', '.join(inspect.signature(hook).parameters)})`\n\n{text_of(hook)}"


def base_classes() -> Iterator[str]:
    """A section for each base class."""
    for base in (components.Component, *components.KINDS.values()):
        kind = f" (kind `{base.kind}`)" if "kind" in vars(base) else ""
        rows = "\n".join(members(base))
        yield f"### `{base.__name__}`{kind}\n\n{text_of(base)}\n\n{rows}".rstrip()


def members(base: type) -> Iterator[str]:
    """What a class asks for and allows, as a list."""
    notes = attribute_docs(components)
    for name, value in vars(base).items():
        value = value.fget if isinstance(value, property) else value
        if name.startswith("_") or name in ("kind", "Options"):
            continue
        must = "*must* " if name in base.__abstractmethods__ else ""
        if inspect.isfunction(value):
            arguments = [p for p in inspect.signature(value).parameters if p != "self"]
            head = f"{name}({', '.join(arguments)})" if name != "price" else name
            yield f"* {must}`{head}`: {flowing(text_of(value))}"
        else:
            yield f"* `{name}`: {flowing(notes.get((base.__name__, name), ''))}".rstrip(": ")


def flowing(text: str) -> str:
    """Paragraphs in one."""
    return " ".join(text.split())


def attribute_docs(module: ModuleType) -> dict[tuple[str, str], str]:
    """The docstrings under attributes, by class and name."""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for item, after in zip(node.body, node.body[1:], strict=False):
            target = item.target if isinstance(item, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[node.name, target.id] = str(after.value.value)
    return found


def given(owner: type, names: list[str]) -> str:
    """What a component may use of an object."""
    lines = [f"### `{owner.__name__}`", text_of(owner), ""]
    rows = []
    for name in names:
        found = inspect.getattr_static(owner, name, None)
        found = found.fget if isinstance(found, property) else found
        if inspect.isfunction(found) and not isinstance(inspect.getattr_static(owner, name), property):
            arguments = ", ".join(p for p in inspect.signature(found).parameters if p != "self")
            rows.append(f"* `{name}({arguments})`: {flowing(text_of(found))}")
        else:
            rows.append(f"* `{name}`: {flowing(text_of(found) if found is not None else ATTRIBUTES[name])}")
    return "\n\n".join([*lines[:2], "\n".join(rows)])


def record_pages() -> Iterator[str]:
    """The fields of every record."""
    notes = attribute_docs(records)
    for name, record in vars(records).items():
        if inspect.isclass(record) and hasattr(record, "__dataclass_fields__"):
            rows = [f"| `{p.name}` | {'' if p.default is p.empty else 'optional'} | "
                    f"{cell(notes.get((name, p.name), ''))} |" for p in inspect.signature(record).parameters.values()]
            table = "\n".join(["| field | | |", "|---|---|---|", *rows])
            yield f"### `{name}`\n\n{text_of(record)}\n\n{table}"


# docs/components.md

def catalogue() -> str:
    """Every component, by kind."""
    every = offers()
    parts = ["# Components", NOTICE, "Every component of this repository, as `madplug show NAME` prints it, without "
             "the texts of prompts. What is installed on your machine: `madplug list`."]
    for kind in dict.fromkeys(offer.kind for offer in every):
        parts.append(f"## {kind}")
        parts += [component(offer) for offer in every if offer.kind == kind]
    return "\n\n".join(parts) + "\n"


def component(offer: Offer) -> str:
    """A component and its options."""
    facts = describe.component(offer)
    lines = [f"### `{offer.name}`", facts["description"]]
    if facts["source"]:
        lines.append(f"Source: {facts['source']}. Distribution: `{offer.distribution}`.")
    else:
        lines.append(f"Distribution: `{offer.distribution}`.")
    told = [f"{word.title()}: {', '.join(f'`{name}`' for name in facts[word])}." for word in ("moves", "needs", "gives")
            if word in facts]
    lines += [" ".join(told)] if told else []
    rows = [f"| `{o['name']}` | {cell(o['type'] + (' (' + o['limits'] + ')' if o['limits'] else ''))} | {default(o)} | "
            f"{cell(o['description'])} |" for o in facts["options"]]
    if rows:
        lines.append("\n".join(["| option | type | default | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(lines)


def default(option: dict[str, Any]) -> str:
    """A default that fits into a table."""
    from madplug.describe import default_text

    if option["required"]:
        return "required"
    text = default_text(option)
    return "a text" if len(text) > 60 or "\\n" in text else f"`{text}`".replace("|", "\\|")


# docs/papers.md

def papers() -> str:
    """The components of each paper, and where they deviate from it."""
    every = offers()
    parts = ["# Papers", NOTICE,
             "Which components a paper's method is made of, where in the paper each is described, and where it "
             "deviates and why. Prompts are this project's own words everywhere; every one is an option, so that a "
             "paper's wording can be pasted into a run file. Start from the paradigm where there is one: "
             "`madplug show NAME` prints what it stands for."]
    for title, cited, pattern in PAPERS:
        found = [offer for offer in every if re.search(pattern, offer.component.source)]
        parts.append(f"## {title}\n\nCited as {cited}.\n\n{paper(found, pattern)}")
    others = [o for o in every if o.component.source and not any(re.search(p, o.component.source) for *_, p in PAPERS)]
    rows = "\n".join(f"| `{o.name}` | {o.kind} | {cell(o.component.source)} |" for o in others)
    parts.append(f"## Data, metrics and answers\n\n| component | kind | source |\n|---|---|---|\n{rows}")
    return "\n\n".join(parts) + "\n"


def paper(found: list[Offer], pattern: str) -> str:
    """A paper's components, and their deviations."""
    rows = [f"| `{o.name}` | {o.kind} | {cell(where(o.component.source, pattern))} | {cell(o.summary)} |"
            for o in sorted(found, key=lambda o: (o.kind != "paradigm", o.name))]
    table = "\n".join(["| component | kind | where in the paper | |", "|---|---|---|---|", *rows])
    notes = [f"* `{o.name}`: {note}" for o in found for note in deviations(o)]
    return table + ("\n\nWhere they deviate:\n\n" + "\n".join(notes) if notes else "")


def where(source: str, pattern: str) -> str:
    """The part of a source that is about one paper, without its name."""
    about = [part.strip() for part in source.split(";") if re.search(pattern, part)]
    return "; ".join(part.partition(", ")[2] for part in about) or ""


def deviations(offer: Offer) -> Iterator[str]:
    """The paragraphs of a docstring that say where the component differs."""
    for paragraph in text_of(offer.component).split("\n\n"):
        if paragraph.startswith("Differs "):
            yield flowing(paragraph)


DOCUMENTS = {"reference.md": reference, "components.md": catalogue, "papers.md": papers}


def main() -> int:
    """Write what is not up to date."""
    DOCS.mkdir(exist_ok=True)
    for name, made in DOCUMENTS.items():
        (DOCS / name).write_text(made(), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
