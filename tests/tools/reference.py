"""Writes the documents that are made from the code: `python tests/tools/reference.py`.

`docs/reference.md` is what plugins implement and are given, `docs/run-file.md` every key of a run file,
`docs/components/` every component of this repository, `docs/papers.md` the components of each paper. A test compares
them.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pasting

import madplug_export
import madplug_prompting
import madplug_read
import madplug_testing as testing
from madplug import context as debate
from madplug import (
    errors,
    events,
    hookspecs,
    options,
    records,
    services,
    store,
    transcript,
)
from madplug import kinds as bases
from madplug.calls import driver
from madplug.component import kind_of
from madplug.debate import cell as cell_module
from madplug.registry.installed import Registry
from madplug.registry.offers import Offer
from madplug.store import base
from madplug.study import worker
from madplug.text import a
from madplug_show.facts import component as facts_of
from madplug_show.facts import default_text, field_facts

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NOTICE = "<!-- Made by `python tests/tools/reference.py`; change the docstrings instead. -->"
GIVEN = {
    debate.Debate: "sample agents voters with_role agent transcript round rounds answers references rng ask ask_all "
                   "read notes service neighbours view key models decision matched repeat spent cell",
    debate.Setup: "ask ask_all samples models answers service keep cell seed spent model_identity",
    transcript.Transcript: "messages record of_round by last answers",
}
KIND = ("kind", "plural", "label", "slot", "how_many", "required", "of_study", "from_slot")
"""What a kind says of itself, and what only the host calls."""
PLAIN = ("DebateResult", "Job", "Played")
"""Records whose properties are listed too."""
READ = ("DebateId", "Call", "CallRow", "Totals", "Progress", "Changes")
"""What a reader returns, beside records and rows."""
CELL = ["components", "of_kind", "wanted", "plan", "worst_calls"]
"""What a component may ask of a cell, beside its fields."""
PAPERS = (
    ("MALLM: Multi-Agent Large Language Models Framework", "Becker et al. 2025", r"Becker et al\. 2025|MALLM, release"),
    ("Voting or Consensus? Decision-Making in Multi-Agent Debate", "Kaesberg et al. 2025", r"Kaesberg et al\. 2025"),
    ("Improving Factuality and Reasoning in Language Models through Multiagent Debate", "Du et al. 2023",
     r"Du et al\. 2023(?! \(evaluation)"),
    ("Should we be going MAD? A Look at Multi-Agent Debate Strategies for LLMs (DebateLLM)", "Smit et al. 2024",
     r"Smit et al\. 2024"),
    ("Improving Multi-Agent Debate with Sparse Communication Topology", "Li et al. 2024", r"Li et al\. 2024"),
    ("Free-MAD: Consensus-Free Multi-Agent Debate", "Free-MAD 2025", r"Free-MAD 2025"),
    ("Debating with More Persuasive LLMs Leads to More Truthful Answers", "Khan et al. 2024", r"Khan et al\. 2024"),
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
    ("Mixture-of-Agents Enhances Large Language Model Capabilities", "Wang et al. 2024 (MoA)",
     r"Wang et al\. 2024 \(MoA\)"),
    ("Rethinking Mixture-of-Agents: Is Mixing Different Large Language Models Beneficial?",
     "Li et al. 2025 (Self-MoA)", r"Li et al\. 2025 \(Self-MoA\)"),
    ("Dynamic LLM-Agent Network: An LLM-agent Collaboration Framework with Agent Team Optimization (DyLAN)",
     "Liu et al. 2023 (DyLAN)", r"Liu et al\. 2023 \(DyLAN\)"),
    ("GroupDebate: Enhancing the Efficiency of Multi-Agent Debate Using Group Discussion",
     "Liu et al. 2024 (GroupDebate)", r"Liu et al\. 2024 \(GroupDebate\)"),
    ("S²-MAD: Breaking the Token Barrier to Enhance Multi-Agent Debate Efficiency", "Zeng et al. 2025 (S2-MAD)",
     r"Zeng et al\. 2025 \(S2-MAD\)"),
    ("Self-Consistency Improves Chain of Thought Reasoning in Language Models", "Wang et al. 2023",
     r"Wang et al\. 2023"),
    ("Controls of multi-agent debate (arXiv 2605.00914) and its disagreement collapse (arXiv 2509.23055)",
     "arXiv 2605.00914 and arXiv 2509.23055", r"2605\.00914|2509\.23055"),
    ("Debate Only When Necessary (DOWN)", "arXiv 2504.05047", r"2504\.05047"),
    ("iMAD", "arXiv 2511.11306", r"2511\.11306"),
    ("HCP-MAD", "arXiv 2604.09679", r"2604\.09679"),
    ("DAR", "arXiv 2603.20640", r"2603\.20640"),
    ("DebUnc", "arXiv 2407.06426", r"2407\.06426"),
    ("Towards Reasoning in Large Language Models via Multi-Agent Peer Review Collaboration", "arXiv 2311.08152",
     r"2311\.08152"),
    ("Heterogeneous models in multi-agent debate", "arXiv 2502.08788", r"2502\.08788"),
    ("Scaling Large Language Model-based Multi-Agent Collaboration (MacNet)", "arXiv 2406.07155", r"2406\.07155"),
)
"""Title, how `source` cites it, and the regular expression that finds it there."""


@cache
def offers() -> list[Offer]:
    """The components of this repository's plugins."""
    ours = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
    return [offer for offer in Registry().offers() if offer.distribution in ours]


def kinds() -> list[type[Any]]:
    """The host's kinds of component, and those of this repository's plugins."""
    return list(dict.fromkeys([*bases.HOST_KINDS, *(kind_of(o.component) for o in offers())]))


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
             "`run-file.md` has the keys of a run file; `components/` lists the components. Everything named here "
             "can be imported from `madplug` unless another module is given. In signatures, `Maybe[T]` is `T` or an "
             "awaitable of it (declare what your method returns), `Sampled` is `tuple[Sample, tuple[str, ...]]`, and "
             "`Form` is one of `{\"json_schema\": {...}}`, `{\"regex\": \"...\"}` and `{\"grammar\": \"...\"}`, "
             "`Outcome` is `\"done\"`, `\"failed\"` or `\"stopped\"`, and `Source` is `\"shared\"` (by an identical "
             "request in flight) or `\"stored\"`. `Replies` are scripted replies: a sequence for all agents, one "
             "sequence per agent id, or a function of the request."]
    parts += ["## Hooks", text_of(hookspecs), *hooks()]
    parts += ["## Base classes", text_of(bases), *base_classes()]
    parts += ["## Options", text_of(options), *option_types(), "### Options of every model (`ModelOptions`)",
              keys(bases.Model.Options)]
    parts += ["## What a component is given", *(given(owner, names.split()) for owner, names in GIVEN.items())]
    parts += record_pages(debate, only=("Spending",))
    parts += ["## Services (`madplug.services`)", text_of(services),
              *(interface(getattr(services, name)) for name in services.__all__)]
    parts += ["## Records", text_of(records), *record_pages(records)]
    parts += ["## Events", text_of(events), *record_pages(events), "### `Run`\n\n"
              "The argument of `Observer.open`.", *record_pages(debate, only=("Run", "Progress"))]
    parts += ["## A cell", "The argument of `check(cell)`, and `setup.cell`: one configuration of a study, resolved.",
              interface(debate.CellFacts), *record_pages(cell_module),
              "\n\n".join(given(cell_module.Cell, CELL).split("\n\n")[2:])]
    parts += ["## Records of a study (`madplug.store`)", f"`{signature('open_study', store.open_study)}`: "
              f"{flowing(text_of(store.open_study))}", *record_pages(base, only=READ), interface(store.Reader)]
    parts += ["## Executors (`madplug.study`)", text_of(driver),
              interface(debate.Jobs), interface(debate.RunDriver), interface(driver.Driver),
              "`StudyDriver` is the one `Driver` of a study: it grants slots, counts and stores. Its `folder` is the "
              "study's directory.",
              given(worker.Worker, ["from_file", "open", "run", "close"])]
    parts += ["## Functions", *function_rows()]
    parts += ["## Prompts and replies (`madplug_prompting`)", text_of(madplug_prompting), *prompting_pages()]
    parts += ["## Outlines of debates (`madplug_read`)", text_of(madplug_read), *outline_pages()]
    parts += ["## Data frames (`madplug_export`)", text_of(madplug_export), "\n".join(
        f"* `{signature(f.__name__, f)}`: {flowing(text_of(f))}" for f in (madplug_export.to_pandas,
                                                                          madplug_export.to_polars))]
    parts += ["## Testing (`madplug_testing`)", text_of(testing), *testing_pages()]
    parts += ["## Errors", f"```text\n{text_of(errors).partition(chr(10) * 2)[2]}\n```"]
    return "\n\n".join(parts) + "\n"


def hooks() -> Iterator[str]:
    """A section for each hook."""
    for name, hook in vars(hookspecs).items():
        if name.startswith("madplug_"):
            arguments = ", ".join(inspect.signature(hook).parameters)
            yield f"### `{name}({arguments})`\n\n```python\n{signature(name, hook)}\n```\n\n{text_of(hook)}"


def base_classes() -> Iterator[str]:
    """A section for each base class."""
    for cls in (bases.Component, *bases.HOST_KINDS):
        kind = f" (kind `{cls.kind}`, in the run file `{cls.slot}`)" if "kind" in vars(cls) else ""
        rows = "\n".join(members(cls, sys.modules[cls.__module__], skip=(*KIND, "Options")))
        yield f"### `{cls.__name__}`{kind}\n\n{text_of(cls)}\n\n{rows}".rstrip()


def members(cls: type, module: ModuleType, skip: tuple[str, ...] = ()) -> Iterator[str]:
    """The attributes and methods of a class, as a list; abstract ones are marked *required*."""
    notes, types = attribute_docs(module), annotations(cls)
    for name, value in vars(cls).items():
        if name.startswith("_") or name in skip:
            continue
        required = "*required* " if name in getattr(cls, "__abstractmethods__", ()) else ""
        if isinstance(value, property):
            yield f"* `{name}: {returned(value.fget)}`: {flowing(text_of(value.fget))}"
        elif inspect.isfunction(found := getattr(value, "__func__", value)):
            yield f"* {required}`{signature(name, found)}`: {flowing(text_of(found))}"
        elif (cls.__name__, name) in notes:
            kind = f": {types[name]}" if name in types else ""
            yield f"* `{name}{kind}`: {flowing(notes[cls.__name__, name])}".rstrip(": ")
    missing = [name for name in types if name not in vars(cls) and (cls.__name__, name) in notes and name not in skip]
    for name in missing:
        yield f"* `{name}: {types[name]}`: {flowing(notes[cls.__name__, name])}"


def annotations(cls: type) -> dict[str, str]:
    """The annotations of a class, as they are written."""
    found = vars(cls).get("__annotations__", {})
    return {name: str(getattr(kind, "__forward_arg__", kind)) for name, kind in found.items()}


def signature(name: str, function: Any) -> str:
    """A function with its types, as it is written; `self` is left out."""
    found = inspect.signature(function)
    kept = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    text = re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", str(found.replace(parameters=kept)))
    begin = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{begin}{name}{text}"


def returned(function: Any) -> str:
    """The type that a property has."""
    return str(getattr(function, "__annotations__", {}).get("return", "Any")).strip("'")


def flowing(text: str) -> str:
    """Paragraphs in one."""
    return " ".join(text.split())


def attribute_docs(module: ModuleType) -> dict[tuple[str, str], str]:
    """The docstrings under attributes, by class and name; those at the top of a module by an empty class."""
    found: dict[tuple[str, str], str] = {}
    tree = ast.parse(inspect.getsource(module))
    for owner, body in [("", tree.body), *((n.name, n.body) for n in tree.body if isinstance(n, ast.ClassDef))]:
        for item, after in pairwise(body):
            targets = [item.target] if isinstance(item, ast.AnnAssign) else getattr(item, "targets", [])
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                for target in targets:
                    if isinstance(target, ast.Name):
                        found[owner, target.id] = str(after.value.value)
    return found


def given(owner: type, names: list[str]) -> str:
    """What a component may use of an object."""
    notes, types, rows = attribute_docs(sys.modules[owner.__module__]), annotations(owner), []
    for name in names:
        found = inspect.getattr_static(owner, name, None)
        plain = not isinstance(found, property | cached_property)
        found = found.fget if isinstance(found, property) else getattr(found, "func", getattr(found, "__func__", found))
        if inspect.isfunction(found) and plain:
            rows.append(f"* `{signature(name, found)}`: {flowing(text_of(found))}")
        elif inspect.isfunction(found):
            rows.append(f"* `{name}: {returned(found)}`: {flowing(text_of(found))}")
        else:
            rows.append(f"* `{name}: {types.get(name, 'Any')}`: {flowing(notes.get((owner.__name__, name), ''))}")
    return "\n\n".join([f"### `{owner.__name__}`", text_of(owner), "\n".join(rows)])


def interface(protocol: type) -> str:
    """What a protocol requires."""
    rows = "\n".join(members(protocol, sys.modules[protocol.__module__]))
    return f"### `{protocol.__name__}`\n\n{text_of(protocol)}\n\n{rows}"


def record_pages(module: ModuleType, only: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields of the records of a module: name, type, default, meaning."""
    inherited = {("Cell", name): text for (owner, name), text in attribute_docs(debate).items() if owner == "CellFacts"}
    notes = inherited | attribute_docs(module)
    for name, record in vars(module).items():
        own = inspect.isclass(record) and record.__module__ == module.__name__ and (not only or name in only)
        if own and (hasattr(record, "__dataclass_fields__") or hasattr(record, "_fields")):
            types = annotations(record)
            rows = [f"| `{p.name}` | `{cell(types.get(p.name, ''))}` | {'yes' if p.default is p.empty else ''} | "
                    f"{cell(notes.get((name, p.name), ''))} |" for p in inspect.signature(record).parameters.values()]
            table = "\n".join(["| field | type | required | meaning |", "|---|---|---|---|", *rows])
            methods = [f"* `{signature(n, getattr(f, '__func__', f))}`: {flowing(text_of(f))}"
                       for n, f in vars(record).items()
                       if n[:1] != "_" and (inspect.isfunction(f) or isinstance(f, classmethod))]
            properties = [f"* `{n}: {returned(f.fget)}`: {flowing(text_of(f.fget))}" for n, f in vars(record).items()
                          if isinstance(f, property) and name in PLAIN]
            more = "\n\n" + "\n".join([*methods, *properties]) if methods or properties else ""
            yield f"### `{name}`\n\n{text_of(record)}\n\n{table}" + ("" if name == "Cell" else more)


def option_types() -> Iterator[str]:
    """The types that an option can have."""
    notes = attribute_docs(options)
    rows = [f"* `{name}`: {flowing(notes['', name])}" for name in ("ModelName", "ServiceName", "RunPath", "Nested",
                                                                  "Volatile")]
    rows += [f"* `{name}`: {flowing(text_of(getattr(options, name)))}" for name in ("Offers", "Price", "Options")]
    yield "\n".join(rows)


def function_rows() -> Iterator[str]:
    """The functions of the public names."""
    from madplug import aio, errors

    rows = [(aio.maybe_await, "maybe_await"), (errors.nearest, "nearest")]
    yield "\n".join(f"* `{signature(name, function)}`: {flowing(text_of(function))}" for function, name in rows)


def prompting_pages() -> Iterator[str]:
    """What the modules of `madplug-prompting` define."""
    for found in iter_modules(madplug_prompting.__path__, "madplug_prompting."):
        module = import_module(found.name)
        yield f"### `{module.__name__}`\n\n{text_of(module)}"
        names = {name: thing for name, thing in vars(module).items()
                 if name[0] != "_" and getattr(thing, "__module__", "") == module.__name__ and callable(thing)}
        yield "\n".join(f"* `{name if inspect.isclass(thing) else signature(name, thing)}`: {flowing(text_of(thing))}"
                        for name, thing in names.items())


def outline_pages() -> Iterator[str]:
    """What `madplug-read` offers other plugins."""
    from madplug_read import Grader, grading, outline, records

    yield f"`{signature('outline', outline)}`: {flowing(text_of(outline))}"
    yield f"### `Grader`\n\n{text_of(Grader)}\n\n* `{signature('grade', Grader.grade)}`: " \
          f"{flowing(text_of(Grader.grade))}\n* `Grades`: {flowing(attribute_docs(grading)['', 'Grades'])}"
    yield "\n".join(["### `TRAITS`\n\n| trait | meaning |", "|---|---|",
                     *(f"| `{name}` | {meaning} |" for name, meaning in madplug_read.TRAITS.items())])
    yield from record_pages(records)


def testing_pages() -> Iterator[str]:
    """What `madplug_testing` and its modules offer."""
    from madplug_testing import clock, contracts, endpoint, fixtures

    play = import_module("madplug_testing.debates")
    functions = [*((testing, n) for n in testing.__all__ if inspect.isfunction(getattr(testing, n)))]
    yield "\n".join(f"* `{signature(n, getattr(m, n))}`: {flowing(text_of(getattr(m, n)))}" for m, n in functions)
    classes = [n for n in testing.__all__ if inspect.isclass(getattr(testing, n)) and n != "Played"]
    yield "\n".join(f"* `{n}`: {flowing(text_of(getattr(testing, n)))}" for n in classes)
    yield from record_pages(play, only=("Played",))
    yield f"### `madplug_testing.contracts`\n\n{text_of(contracts)}"
    yield "\n".join(["| kind | contract |", "|---|---|",
                     *(f"| {kind} | `{contract.__name__}` |" for kind, contract in contracts.CONTRACTS.items())])
    yield f"### `madplug_testing.endpoint`\n\n{text_of(endpoint)}"
    yield f"`{signature('running_endpoint', endpoint.running_endpoint)}`: {flowing(text_of(endpoint.running_endpoint))}"
    yield from record_pages(endpoint, only=("Settings",))
    clocked = f"`{signature('on_virtual_clock', clock.on_virtual_clock)}`: {flowing(text_of(clock.on_virtual_clock))}"
    yield f"### `madplug_testing.clock`\n\n{text_of(clock)}\n\n{clocked}"
    install = inspect.getdoc(getattr(fixtures.madplug_plugin, "__wrapped__", fixtures.madplug_plugin)) or ""
    yield f"### The fixture `madplug_plugin`\n\n{install}"


# docs/run-file.md

HEAD = """A run file is TOML. It has a table for each thing that a study consists of. A table that names a
component does so with `use`; its other keys are the options of that component (`madplug show NAME` lists them).
A string is short for `{use = "..."}`. An option that is itself a component is written the same way. Relative
paths are relative to the run file.

`madplug check FILE` reports all mistakes of the file at once, and then those of the data, before anything runs."""
PRECEDENCE = """A key set with `--set a.b=c` on the command line takes precedence over `MADPLUG_A__B` in the environment
(`MADPLUG_SEED` for a key of no table), and that over the file. Values of the first two are read as TOML, or as text if
they are not TOML.
Cells are made from the result, so a cell's changes take precedence over all three; and every key that is given
takes precedence over the preset of `debate.paradigm`."""
IDENTITY = """A directory belongs to one study; running the same command again resumes it. A study can grow: with
more `repeats`, a data set with a larger `limit` or `size`, further cells or values of the sweep, or further
`[[metrics]]`, the same command goes on and pays only for what is new. A new metric scores the recorded debates and
asks only what it needs itself. Debates of cells, repeats or samples that the run file no longer has stay on record
and are not reported; nor are the scores of a metric that is no longer there. Put back, they cost nothing.

Refused is whatever would change a recorded debate: another `seed`, `share_completions` or `oracle`, and other
settings of a cell that was run under the same name, even if the file did not have it for a while. The message
names each difference. Free to change between two runs are `name`, `[[observers]]`, `[execution]`, `[limits]`, the
location of files, and options that `madplug show` marks, for instance addresses, keys and rate limits of models.
Debates of a sample whose content has changed are run again.

`reuse = ["runs/other"]` names other studies whose answered calls are used before a call is paid for: those with the
same model and options (and code, if it is in a local file), request, agent, sample, repeat and seed. Both
studies have to say the same of `share_completions`; where it is `false` the cell must have the same name too. A
relative path is relative to the run file or to the current directory. Their prompts and replies stay in that study:
`madplug read --prompts` and `madplug export --calls` have them there."""
SHARING = """With `share_completions = true`, identical requests (the same model with the same options, the same
sample, agent, repeat and messages) of different cells are sent once, and every cell uses the same completion.
Methods are then compared on the same first answers, and round 1 is paid for once. It also means that the cells
are not independent: differences between them are measured with less noise, but each cell is not a replication
of the others. Set `false` to replicate a paper that ran its methods independently of each other, or to treat
cells as independent samples; every cell then pays for its own completions. Repeats, samples and agents never
share completions, and a request that one debate makes twice is sent twice."""
CELLS = """Without `sweep` and `cells`, a study has one cell. `sweep` has lists of values by dotted key, and
every combination is a cell; `[[cells]]` adds cells one by one. A cell is a set of changes to the file. A change
with `use` (or a string) replaces a whole slot; one without `use` changes options of the component that is
there. An item of a list is named by its position, from 0: `"extensions.0.share" = [0.25, 0.5]` (with `--set`, also by
its name: `--set cells.debate.debate.rounds=3`); a name with dots is quoted: `'models."gpt-4.1".temperature' = [0, 1]`.
A cell that sets
`debate.paradigm` starts from that paradigm alone: of the file's `[debate]`, it inherits only `models`, since a
size that suits one paradigm changes what another is. A key of `[debate]` that no cell takes is a warning, with the
place that a cell has for it; a setting (`--set debate.rounds=5`) that no cell takes is refused. Extensions are
inherited; `extensions = []` removes them. A cell can set these keys, and `name`:"""
EXAMPLE = """```toml
[sweep]
"debate.rounds" = [1, 2, 3]
"debate.decision" = ["voting.plurality", {use = "voting.plurality", tie = "random"}]

[[cells]]
name = "self-consistency"
debate = {paradigm = "baselines.self_consistency"}
match = {cell = "rounds=3,decision=voting.plurality", by = "calls"}
```"""
MATCHING = """`match` gives a cell the same budget as another one: each of its debates is run once the other
cell's debate of the same sample and repeat has ended, and components of the cell can use as many calls or
tokens as that one did. Only a cell with a component that can follow a budget carries it: the turn
orders `baselines.samples` and `baselines.steps`, so `baselines.self_consistency`, `baselines.best_of_n` and
`baselines.self_improvement` among others. So `match` stands in the control, and names the debate; a debate makes as
many calls as its own agents and rounds say, and several debates of different calls need a control each."""
RESERVED = """Reserved in every slot: `use`, the component's full name (`plugin.component`), or its bare name if
only one plugin offers it; and in `[[debate.styles]]` also `for`: ids, roles or persona names of the agents that
the style is for. Without `for`, the first style that can write a turn's move is used.

`use = "./mine.py:Firmest"` names a class in a local file, for a component of any kind; the path is relative to the
run file. The class is written like that of a plugin, but needs no `name`, no docstring and no registration. The
study's `manifest.json` has the file's hash: a changed metric scores the recorded debates again, and any other
component that has changed is reported when the study goes on, and from then on by `madplug status`, the page and the
report if debates were run with both."""


def run_file() -> str:
    """Every key of a run file."""
    from madplug.config import shape

    tables = {"[debate]": shape.tables(tuple(kinds())).debate, "[limits]": shape.Limits, "match": shape.Match}
    parts = ["# The run file", NOTICE, HEAD, "## Top level", keys(shape.tables(tuple(kinds())).run)]
    for name, table in tables.items():
        parts += [f"## `{name}`", sentence(text_of(table).partition(": ")[2]), keys(table)]
        parts += [MATCHING] if name == "match" else []
    own = ", ".join(f"`{name}`" for name in shape.tables(tuple(kinds())).cell.model_fields)
    parts += ["## Precedence", PRECEDENCE, "## `[sweep]` and `[[cells]]`", CELLS, f"{own}.", EXAMPLE,
              "## `share_completions`", SHARING, "## What makes it the same study", IDENTITY]
    head = ["| table | what it names | hook that registers it |", "|---|---|---|"]
    parts += ["## Slots", RESERVED, "\n".join([*head, *map(slot_row, kinds())])]
    parts += ["## Options of every model", "In `[models.NAME]`, in addition to those of the model itself. All of "
              "them may change between two runs of a study.", keys(bases.Model.Options)]
    return "\n\n".join(parts) + "\n"


def sentence(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


def keys(table: Any) -> str:
    """The keys of a table."""
    def row(fact: dict[str, Any]) -> str:
        kind = fact["type"].removesuffix(" | none") + (f" ({fact['limits']})" if fact["limits"] else "")
        given = "required" if fact["required"] else "" if fact["default"] in (None, [], {}) else default(fact)
        return f"| `{fact['name']}` | {cell(kind)} | {given} | {cell(fact['description'])} |"

    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *map(row, field_facts(table))])


def slot_row(base: Any) -> str:
    """A kind's row in the table of slots."""
    table = {"list": f"`[[{base.slot}]]`", "none": f"`{base.slot} = \"...\"`"}.get(base.how_many, f"`[{base.slot}]`")
    hook = base.plural if base in bases.HOST_KINDS else "components"
    return f"| {table} | {a(base.label)} | `madplug_register_{hook}` |"


# docs/components

SHARED_BY = 3
"""An option that this many components of a kind have, worded alike, is described once for all of them."""


def catalogue() -> str:
    """The kinds, and the components of each in one line."""
    parts = ["# Components", NOTICE, "Every component of this repository. What is installed on your machine: "
             "`madplug list`; what a component does and the TOML to paste: `madplug show NAME`."]
    for one in kinds():
        found = [offer for offer in offers() if offer.kind == one.kind]
        if found:
            rows = (f"| [`{o.name}`]({one.plural}.md#{anchor(o.name)}) | {cell(o.summary)} |" for o in found)
            parts += [f"## {heading(one)}", "\n".join(["| name | |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def anchor(name: str) -> str:
    """The place of a heading `NAME` on its page."""
    return name.replace(".", "")


def heading(kind: Any) -> str:
    """A kind's name as a heading."""
    return str(kind.plural).replace("_", " ").capitalize()


def kind_page(kind: Any) -> str:
    """Every component of a kind, as `madplug show NAME` prints it, without the texts of prompts."""
    found = [facts_of(o) for o in offers() if o.kind == kind.kind]
    for facts in found:
        facts["rows"] = [option_row(option) for option in facts["options"]]
    uses = Counter(row for facts in found for row in facts["rows"])
    wordings = {row.split("|")[1]: row for row, count in reversed(uses.most_common()) if count >= SHARED_BY}
    parts = [f"# {heading(kind)}", NOTICE]
    if wordings:
        parts += ["## Options that several have", "Described once here, named where they apply.",
                  table_of(sorted(wordings.values()))]
    return "\n\n".join([*parts, *(component(facts, {*wordings.values()}) for facts in found)]) + "\n"


def option_row(option: dict[str, Any]) -> str:
    """An option's row in a table."""
    limits = re.sub(r"matches (\S+)", r"matches `\1`", option["limits"])
    kind = option["type"] + (f" ({limits})" if limits else "")
    return f"| `{option['name']}` | {cell(kind)} | {default(option)} | {cell(option['description'])} |"


def table_of(rows: Sequence[str]) -> str:
    """Rows of options as a table."""
    return "\n".join(["| option | type | default | meaning |", "|---|---|---|---|", *rows])


def component(facts: dict[str, Any], common: set[str]) -> str:
    """A component and its options. common: rows of options that are described above."""
    lines = [f"## `{facts['name']}`", facts["description"]]
    source = f"Source: {facts['source']}. " if facts["source"] else ""
    lines.append(f"{source}Distribution: `{facts['distribution']}`.")
    told = [f"{text}: {', '.join(f'`{name}`' for name in facts[word])}."
            for word, text in (("moves", "Moves"), ("needs", "Needs"), ("gives", "Can give")) if word in facts]
    lines += [" ".join(told)] if told else []
    own = [row for row in facts["rows"] if row not in common]
    lines += [table_of(own)] if own else []
    if shared := [row.split("|")[1].strip() for row in facts["rows"] if row in common]:
        lines.append(f"{'Also' if own else 'Options'}, as [above](#options-that-several-have): {', '.join(shared)}.")
    return "\n\n".join(lines)


def default(option: dict[str, Any]) -> str:
    """A default that fits into a table."""
    if option["required"]:
        return "required"
    text = default_text(option)
    return "a text" if len(text) > 60 or "\\n" in text else f"`{text}`".replace("|", "\\|")


# docs/papers.md

WORDING = """## A paper's own wording, and what to set for a replication

Prompts are this project's own words everywhere. Every one is an option, system messages included, so that a paper's
wording can be pasted into a run file; below each paper is the run file for that, with placeholders instead of the
paper's sentences. In any prompt that has the task, `{question}` is all of it: the instruction of the data set, the
passages, the question and its choices. Where a prompt has `{instruction}` or `{context}`, these are left out of
`{question}`.

* **Who an agent is** stands in the system message of discussions, final answers and votes, as in the papers. With
  `persona_place = "last"` it follows everything that the agents' prompts have in common, the task and what all of them
  see, so that a server's prefix cache serves that part to all agents; a model then reads who it is right before the
  request, and results need not be the same. `frame_place = "system"` puts the task into the system message, too.
* **`final = "ask"`** of a vote, a judge or a consensus asks for final answers before every decision, as the papers do.
  By default an agent is asked only where its message does not state one.
* **`share_completions = false`** makes every cell's debates independent, as a paper's were. Otherwise the cells of a
  study share personas and first answers, and rules that are the same for three agents (more than 50 % and more than
  66 %) give the same debates.
* **`index_base = 1`**, as in the papers' figures, is the number of the first solution on a ballot; their code begins
  with 0."""


def papers() -> str:
    """The components of each paper, and where they deviate from it."""
    every = offers()
    by_name = {name: [o for o in every if o.name == name] for name in {o.name for o in every}}
    parts = ["# Papers", NOTICE,
             "Which components a paper's method is made of, where in the paper each is described, and where it "
             "deviates and why. Start from the paradigm where there is one: `madplug show NAME` prints what it stands "
             "for.", WORDING]
    for title, cited, pattern in PAPERS:
        found = [offer for offer in every if re.search(pattern, offer.component.source)]
        parts.append(f"## {title}\n\nCited as {cited}.\n\n{paper(found, pattern)}")
        if pasted := pasting.run_file(found, by_name):
            parts.append(f"<details>\n<summary>The run file that pastes the paper's wording</summary>\n\n```toml\n"
                         f"{pasted}```\n\n</details>")
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


DOCUMENTS: dict[str, Callable[[], str]] = {
    "reference.md": reference, "run-file.md": run_file, "papers.md": papers, "components/index.md": catalogue,
    **{f"components/{kind.plural}.md": partial(kind_page, kind) for kind in kinds()
       if any(offer.kind == kind.kind for offer in offers())}}


def main() -> int:
    """Write what is not up to date."""
    (DOCS / "components").mkdir(parents=True, exist_ok=True)
    for name, made in DOCUMENTS.items():
        (DOCS / name).write_text(made(), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
