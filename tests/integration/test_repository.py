"""What holds for every distribution of the repository, found by walking it."""

import ast
import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from madplug.cli.program import DISTRIBUTIONS
from madplug.config import load
from madplug.errors import UserError
from madplug.registry.installed import Registry
from madplug_testing.contracts.imports import HEAVY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(ROOT.glob("plugins/*/pyproject.toml"))
HEAVY_TOO = {"inspect_ai", "mlflow", "opentelemetry", "ray", "wandb"}

LIBRARIES = {"prompting", "testing", "tracking", "workers"}
"""Distributions that other plugins use, and that offer no component."""
UNUSED = {"asyncio", "concurrent.futures", "http", "multiprocessing", "pydantic.plugin._loader", "sqlite3",
          "ssl", "urllib.request", "madplug.debate.cell", "madplug.debate.state", "madplug.store.base"}
"""What running a study takes, and looking at components does not: together a third of what a listing would cost."""


def table(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PLUGINS, ids=lambda p: p.parent.name)
def test_a_plugin_is_named_versioned_and_pinned_like_every_other(path):
    project, host = table(path)["project"], table(ROOT / "pyproject.toml")["project"]
    short = path.parent.name.removeprefix("madplug-").replace("-", "_")
    assert project["name"] == path.parent.name
    assert project["version"] == host["version"]
    assert "madplug>=0.1,<0.2" in project["dependencies"]
    assert project["requires-python"] == host["requires-python"]
    if short not in LIBRARIES:
        assert project["entry-points"]["madplug"] == {short: f"madplug_{short}"}
    assert "```console\n$ " in (path.parent / "README.md").read_text(encoding="utf-8")
    assert list((path.parent / "tests").glob("test_*.py"))


BROUGHT = {"madplug-datasets": {"httpx"}, "madplug-gate": {"sklearn"}, "madplug-litellm": {"aiohttp", "httpx"},
           "madplug-otel": {"opentelemetry", "requests"}}
"""What is imported of a package that a declared one brings."""
ASKED_FOR = {"madplug-embeddings": {"huggingface_hub"}, "madplug-report": {"tiktoken", "tokenizers"},
             "madplug-text": {"huggingface_hub"}}
"""What a message asks to install where it is missing."""


def declared(project):
    """What a distribution declares, extras included, as the names of packages to import."""
    extras = project.get("optional-dependencies", {}).values()
    needs = [*project["dependencies"], *(need for extra in extras for need in extra)]
    return {re.split(r"[^\w-]", need)[0].replace("-", "_").lower() for need in needs}


@pytest.mark.parametrize("path", PLUGINS, ids=lambda p: p.parent.name)
def test_a_plugin_declares_what_it_imports_anywhere(path):
    """Imports in functions included, which `tests/tools/smoke.py` does not reach."""
    own = path.parent.name.replace("-", "_")
    known = declared(table(path)["project"]) | declared(table(ROOT / "pyproject.toml")["project"]) | {own, "madplug"}
    known |= BROUGHT.get(path.parent.name, set()) | ASKED_FOR.get(path.parent.name, set())
    nodes = [node for file in (path.parent / own).rglob("*.py") for node in ast.walk(ast.parse(file.read_bytes()))]
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    assert {name.partition(".")[0] for name in names} - known - sys.stdlib_module_names == set()


def test_the_contributors_set_up_holds_every_distribution():
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    named = {re.sub(r"\[.*", "", line.removeprefix("-e ./")) for line in lines if line.startswith("-e ./")}
    assert named == {str(p.parent.relative_to(ROOT)) for p in [*PLUGINS, *ROOT.glob("examples/*/pyproject.toml")]}


def test_every_plugin_loads_without_a_problem():
    registry = Registry()
    registry.load_all()
    assert registry.problems == []
    names = {p.parent.name for p in PLUGINS}
    assert {o.distribution for o in registry.offers()} <= names | {"madplug-kit", "madplug-hello",
                                                                   "madplug-confidence-voting"}


def test_the_catalogue_is_complete():
    """If this fails: a component that shared/catalogue.md names is missing."""
    catalogue = ROOT.parent / "shared" / "catalogue.md"
    if not catalogue.is_file():
        pytest.skip("the catalogue is not beside the checkout")
    have = {o.name for o in Registry().offers()}
    assert set(CATALOGUE.split()) - have == set()


CATALOGUE = """
openai.chat litellm.chat llamacpp.chat cassette.replay
files.table puzzles.ordering puzzles.arithmetic puzzles.booleans replay.trajectories
answers.choice answers.number answers.yesno answers.math answers.text answers.free
personas.none personas.expert personas.ipip personas.fixed personas.neutral
casting.random casting.central metadebate.cast
styles.simple styles.freetext styles.split styles.critical styles.reasoning baselines.io baselines.cot som.exchange
freemad.anti_conformity mad.side mad.moderator dmad.cot dmad.step_back dmad.program dmad.io dmad.ccot dmad.ddcot
reconcile.discussion chateval.referee chateval.summariser eot.exchange replay.recorded simulator.debater
turns.round_robin turns.simultaneous turns.drafter_first turns.inner_debate mad.sides chateval.summarised
visibility.everything visibility.own visibility.previous_round visibility.relay visibility.report
visibility.inner_debate sparse.graph mad.opponent eot.peers chateval.summary madc.ordered reconcile.grouped
visibility.blind_first_round attack.drop eot.unanimous eot.confidence judge.intervention som.summary
som.agreement_intensity replay.seed_messages
consensus.majority consensus.supermajority consensus.unanimity consensus.hybrid consensus.threshold
voting.simple voting.approval voting.ranked voting.cumulative voting.plurality judge.synthesis freemad.score
mad.moderated reconcile.weighted chateval.scores eot.consistent challenge.final
mallm.memory mallm.relay mallm.report mallm.debate mallm.collective_refinement
baselines.self_consistency baselines.self_improvement som.debate sparse.debate freemad.n freemad.c freemad.baseline1
freemad.baseline2 mad.tit_for_tat dmad.text dmad.vision reconcile.round_table chateval.one_by_one
chateval.simultaneous eot.memory eot.report eot.relay eot.debate madc.debate metadebate.mad metadebate.dmad
replay.debate replay.personas replay.rounds
qa.accuracy qa.exact_match qa.f1 qa.includes qa.oracle
dynamics.entropy dynamics.log_likelihood dynamics.flips dynamics.agreement dynamics.conformity dynamics.diversity
dynamics.rounds dynamics.decided
"""


LISTING = """
import atexit, json, sys
from madplug.cli.program import main

def count():
    from madplug import Options

    every = [Options]
    for known in every:
        every += known.__subclasses__()
    print(json.dumps([len(every), sum(known.__pydantic_complete__ for known in every), sorted(sys.modules)]))

atexit.register(count)
main(["list", "--json"])
"""


def test_listing_every_component_imports_and_builds_only_what_that_takes_and_warns_of_nothing():
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # without the tests' own plugin
    done = subprocess.run([sys.executable, "-W", "error", "-c", LISTING], capture_output=True, text=True, check=False,
                          env=alone)
    assert done.returncode == 0, done.stderr
    options, built, modules = json.loads(done.stdout.splitlines()[-1])
    assert options > 150  # every plugin was loaded
    assert built == 0, "a plugin makes options when it is imported"
    assert (UNUSED | HEAVY | HEAVY_TOO) & set(modules) == set()
    assert sum(module.startswith("madplug.") for module in modules) <= 30


def test_every_preset_and_its_pasted_expansion_are_equal_studies(tmp_path):
    import tomli_w

    head = {"name": "same", "dataset": {"use": "puzzles.booleans"},
            "models": {"m": {"use": "openai.chat", "model": "m"}}, "oracle": True}
    registry = Registry()
    for offer in registry.offers("paradigm"):
        short, long = tmp_path / "short.toml", tmp_path / "long.toml"
        agents = {} if "agents" in offer.component.debate else {"agents": 3}
        short.write_text(tomli_w.dumps({**head, "debate": {"paradigm": offer.name, **agents}}))
        long.write_text(tomli_w.dumps({**head, "debate": {**offer.component.debate, **agents}}))
        try:
            resolved = load(short, registry=registry)
        except UserError as error:
            if offer.name.startswith("replay."):
                continue  # its personas come from recorded debates
            raise AssertionError(f"{offer.name}: {error}") from None
        assert resolved.identity == load(long, registry=registry).identity, offer.name


def test_no_file_names_a_registry_host_or_a_place_of_one_machine():
    words = re.compile(r"pypi\.org|pythonhosted|/work/|/root/|deb\.debian")
    for path in ROOT.rglob("*"):
        parts = set(path.relative_to(ROOT).parts)
        if path.suffix in (".py", ".md", ".toml", ".ini", ".txt") and not parts & {".tox", ".venv", ".git", "runs"}:
            found = words.search(path.read_text(encoding="utf-8"))
            assert not found or path == Path(__file__), (path, found)


def test_the_standard_set_is_the_same_from_a_clone_and_from_an_index():
    extra = table(ROOT / "pyproject.toml")["project"]["optional-dependencies"]["standard"]
    lines = [re.sub(r"\[.*", "", line) for line in (ROOT / "requirements-standard.txt").read_text().splitlines()
             if line[0] == "."]
    assert lines == [".", *(f"./plugins/{name.removesuffix('>=0.1,<0.2')}" for name in extra)]


def installed(lines):
    """The distributions of this repository among what pip or tox is asked for, with their extras."""
    for line in lines:
        local = re.fullmatch(r"(?:-e )?(\.[\w./-]*)(?:\[(.*)\])?", line.strip())
        if line.strip().startswith("-r "):
            yield from installed((ROOT / line.split()[1]).read_text(encoding="utf-8").splitlines())
        elif local:
            yield ROOT / local[1] / "pyproject.toml", set(filter(None, (local[2] or "").split(",")))


def needed_by(path, extras):
    """The names of the distributions of this repository that one of them needs."""
    project = table(path)["project"]
    needs = [*project.get("dependencies", ()),
             *(need for extra in extras for need in project["optional-dependencies"][extra])]
    return {name for need in needs if (name := Requirement(need).name).startswith("madplug")}


ENVIRONMENTS = ConfigParser(interpolation=None)
ENVIRONMENTS.read(ROOT / "tox.ini")
SETS = {**{name: [f"-r {name}"] for name in ("requirements-standard.txt", "requirements-demo.txt",
                                             "requirements-dev.txt", "requirements-integrations.txt")},
        **{name: ENVIRONMENTS[name].get("deps", "").splitlines() for name in ENVIRONMENTS.sections()
           if name.startswith("testenv:")},
        **{command: ["-r requirements-standard.txt", *command.replace('"', "").split()[2:]]
           for path in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md")]
           for command in re.findall(r"pip install [^`#\n]*/plugins/m[^`#\n]*", path.read_text(encoding="utf-8"))}}


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_distributions_has_everything_of_ours_that_it_depends_on(name):
    """If this fails: pip would look for the missing ones on an index, where they are not yet."""
    chosen = list(installed(SETS[name]))
    named = {table(path)["project"]["name"] for path, _ in chosen}
    assert set().union(*(needed_by(*one) for one in chosen)) <= named


@pytest.mark.parametrize("name", [
    name for name, own in ENVIRONMENTS.items() if re.search(r"pytest|-m tests", own.get("commands", ""))])
def test_an_environment_that_runs_tests_or_benchmarks_has_their_endpoint(name):
    chosen = installed(ENVIRONMENTS[name]["deps"].replace("{[testenv:host]deps}", ENVIRONMENTS["testenv:host"]["deps"]
                                                          ).splitlines())
    assert "madplug-testing" in {path.parent.name for path, _ in chosen}


def test_a_missing_sibling_would_be_noticed():
    chosen = list(installed(["-e .", "-e ./plugins/madplug-openai"]))
    assert set().union(*(needed_by(*one) for one in chosen)) == {"madplug", "madplug-prices", "madplug-prompting"}


def test_a_command_or_option_that_is_missing_is_said_to_be_in_the_distribution_that_adds_it():
    import click

    found = {}
    for path in PLUGINS:
        add = getattr(import_module(path.parent.name.replace("-", "_")), "madplug_register_commands", None)
        if add is not None:
            program = click.Group(commands={own: click.Command(own, callback=lambda: None) for own in ("run", "check")})
            add(program)
            of_host = [program.commands.pop("run"), program.commands.pop("check")]
            found |= dict.fromkeys(program.commands, path.parent.name)
            found |= {f"{own.name} {option}": path.parent.name for own in of_host for p in own.params
                      for option in p.opts if not p.hidden}
    for command in ("gap", "gate", "import", "ratings"):  # the host names no method
        found.pop(command, None)
    assert found == DISTRIBUTIONS


def test_the_contributors_guide_names_every_room_of_the_host_and_nothing_else():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)/` \|", guide.partition("### The host")[2].partition("## Test")[0], re.MULTILINE)
    assert sorted(named) == sorted(path.parent.name for path in ROOT.glob("madplug/*/__init__.py"))


def test_every_plugin_is_held_to_the_public_names():
    """`python tests/tools/imports.py` checks those that are listed."""
    linter = table(ROOT / "pyproject.toml")["tool"]["importlinter"]
    packages = {path.parent.name.replace("-", "_") for path in PLUGINS}
    assert set(linter["root_packages"]) == packages | {"madplug"}
    forbidden = next(contract for contract in linter["contracts"] if contract["type"] == "forbidden")
    assert set(forbidden["source_modules"]) == packages
    modules = {f"madplug.{path.stem}" for path in ROOT.glob("madplug/*.py")} - {"madplug.__init__", "madplug.__main__"}
    rooms = {f"madplug.{path.parent.name}" for path in ROOT.glob("madplug/*/__init__.py")}
    doors = {"madplug.store", "madplug.study"}
    assert set(forbidden["forbidden_modules"]) == modules | rooms - doors | {f"{door}.*" for door in doors}


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/**/*.md")), ids=lambda p: p.stem)
def test_a_document_links_to_what_its_site_has(path):
    """A link out of `docs/` leads nowhere there; `tox run -e docs` would fail."""
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)
    near = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [t for t in near if not (path.parent / t).resolve().is_relative_to(ROOT / "docs")
            or not (path.parent / t).exists()] == []


def test_methods_that_have_to_be_named_together_from_a_clone_are_told():
    projects = [table(path)["project"] for path in PLUGINS]
    needs = {one["name"]: {re.match(r"[\w-]+", need)[0] for need in one["dependencies"]} & {
        other["name"] for other in projects} for one in projects}
    at_hand = set(re.findall(r"plugins/(madplug-[\w-]+)", (ROOT / "requirements-standard.txt").read_text()))
    guide = (ROOT / "docs/which-method.md").read_text()
    told = " ".join(guide.split()).partition("have to be named together")[2].partition(". ")[0]
    for method in {f"madplug-{name}" for name in re.findall(r"^\| `(\w+)\.", guide, re.MULTILINE)} - at_hand:
        for other in needs[method] - at_hand:
            one, its = (f"`{name.removeprefix('madplug-')}`" for name in (method, other))
            assert re.search(rf"{one} \(with\s[^)]*{its}", told), (method, other)
