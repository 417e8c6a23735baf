"""Every component of this repository keeps the contract of its kind: found by discovery, not by a list.

A component is looked at in the plainest debate there is; where a preset of the repository names it, in that
preset's debate; where its plugin has a data set, on a sample of that.
"""

import tempfile
from functools import cache
from pathlib import Path

import pytest

import madplug
from madplug.component import field_of
from madplug.config import Resolver
from madplug.config.shape import slots as kinds_of
from madplug.errors import ComponentError, UserError
from madplug.kinds import HOST_KINDS
from madplug.registry.installed import Registry
from madplug_embeddings import Hashing
from madplug_puzzles import HiddenFacts, Ordering
from madplug_retrieval import Bm25
from madplug_testing import PlainStyle, SeeAll, contracts
from madplug_testing.contracts.base import DebateContract
from madplug_testing.contracts.supplies import slots
from madplug_tools import Calculator
from madplug_turns import Simultaneous
from madplug_voting import Plurality

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "recorded"
OURS = {path.parent.name for path in (*ROOT.glob("plugins/*/pyproject.toml"), *ROOT.glob("examples/*/pyproject.toml"))}

ROWS = ROOT.parent / "shared" / "data" / "benchmarks"
@cache
def earlier_study():
    """The options of a component that learns from an earlier study: the directory of one."""
    folder = Path(tempfile.mkdtemp())
    (folder / "run.toml").write_text("""
oracle = true
dataset = {use = "simulator.questions", size = 2}
[debate]
agents = 8
personas = ["dylan.roles"]
turns = "turns.simultaneous"
visibility = "visibility.everything"
styles = ["simulator.debater"]
decision = "dylan.consensus"
""")
    madplug.run(folder / "run.toml", output=folder / "study", quiet=True)
    return {"study": folder / "study"}


OPTIONS = {
    "dylan.team": earlier_study, "selective.embeddings": {"embedder": "words"},
    "ask.question": {"question": "What is 2 + 2?"}, "datasets.hub": {"path": RECORDED / "questions.jsonl"},
    "cassette.replay": {"path": RECORDED / "calls.jsonl"}, "openai.chat": {"model": "small"},
    "human.chat": {"person": "Anna"},
    "litellm.chat": {"model": "openai/small"}, "files.table": {"path": RECORDED / "questions.jsonl"},
    "replay.trajectories": {"path": RECORDED / "debates.jsonl"},
    "replay.replies": {"path": RECORDED / "replies.jsonl", "questions": RECORDED / "questions.jsonl"},
    "visibility.hidden": {"columns": {"context": ("judge",)}},
    "dar.retained": {"inner": SeeAll()}, "gate.first": {"inner": Simultaneous()},
    "gate.behind": {"inner": Plurality()},
    "controls.noise": {"study": RECORDED / "study.jsonl"},
    "retrieval.bm25": {"path": RECORDED / "questions.jsonl", "column": "question"},
    "madc.order": {"inner": SeeAll()}, "selective.novel": {"inner": SeeAll()},
    "serve.conversations": {"like": Ordering()},
    "shards.part": {"part": 1, "of": 1},
    "tools.with": {"style": PlainStyle(), "tools": ("calculator",)}, "tools.search": {"retriever": "library"},
    "tools.pool": {"retrievers": ("library",)}, "tools.python": {"sandbox": "sandbox"},
    "tools.mcp": {"server": "server"},
    "inspect.dataset": {"source": "inspect_ai.dataset:example_dataset", "args": {"name": "theory_of_mind"}},
}
"""Options by name, for components that can do nothing without any."""
AROUND = {"selective.embeddings": {"services": {"words": Hashing()}},
          "tools.pool": {"services": {"library": Bm25(path=RECORDED / "questions.jsonl", column="question")}}}
"""What is to be around a component that no preset names."""
PARTS = [field_of(base) for base in kinds_of(HOST_KINDS, "debate")]
AGENTS_ALIKE = {"baselines.most_common", "eot.consistent", "voting.plurality"}
ANSWERS_ALIKE = {"baselines.most_common", "baselines.last", "eot.consistent", "voting.plurality", "freemad.score"}


@cache
def registry():
    return Registry()


@cache
def offers():
    return [offer for offer in registry().offers() if offer.distribution in OURS]


@cache
def dataset(plugin):
    """The data set of a plugin, where it has one."""
    found = (o for o in offers() if o.kind == "dataset" and o.name.partition(".")[0] == plugin)
    offer = next(found, None)
    return offer and offer.component(offer.component.Options(**OPTIONS.get(offer.name, {})))


@cache
def rows(offer):
    """A local file with rows of a data set that comes from a network, where there is one."""
    for path in sorted(ROWS.glob("*.jsonl")):
        if path.name.startswith(offer.name.partition(".")[2]):
            try:
                if next(iter(offer.component(offer.component.Options(path=path)).samples())):
                    return path
            except UserError:
                continue
    return None


def preset(offer):
    """The preset that names a component; its own plugin's before others."""
    own = offer.name.partition(".")[0]
    if offer.name == "council.stages":  # the first of its presets has no style for reviews
        return registry().find("paradigm", "council.three_stages")
    paradigms = [o for o in offers() if o.kind == "paradigm"]
    for paradigm in sorted(paradigms, key=lambda p: p.name.partition(".")[0] != own):
        named = slots(paradigm.component.debate, registry())
        if (offer.kind, offer.name) in [(base.kind, slot["use"]) for base, slot in named]:
            return paradigm
    return None


@cache
def cell(paradigm):
    """A preset's debate, resolved."""
    size = {} if "agents" in registry().find("paradigm", paradigm).component.debate else {"agents": 3}
    table = {"models": {"m": {"use": "openai.chat", "model": "m"}}, "oracle": True,
             "answers": "answers.yesno" if paradigm == "council.jury" else "answers.choice",
             "debate": {"paradigm": paradigm, **size}}
    return Resolver(table, ROOT, registry(), recorded=True).resolve().plan.cells[0]


def around(offer):
    """What is to be around a component, as arguments of `play`."""
    if offer.name == "tools.with":
        return {"more": {"tools": {"calculator": Calculator()}}}
    paradigm = preset(offer)
    if paradigm is None:
        return AROUND.get(offer.name, {})
    there = cell(paradigm.name)
    scene = {slot: getattr(there, slot) for slot in (*PARTS, "agents", "services", "answers")}
    scene["rounds"] = min(there.rounds, 3)
    if offer.kind == "style":  # the preset's other styles write what this one does not
        scene["styles"] = [s for s in there.styles if not isinstance(s.style, offer.component)]
    return scene


class Discovered:
    """Mixed into the contract of each component."""

    offer = None

    @pytest.fixture(autouse=True)
    def reachable(self, request):
        """A data set that comes from a network needs a local file of it, and some components an extra package."""
        if request.node.originalname in contracts.contract_tests(contracts.ComponentContract):
            return  # it is looked at, and not used
        if self.offer.distribution == "madplug-benchmarks" and not self.options:
            pytest.skip(f"no rows of {self.offer.name} beside the checkout")
        if self.offer.name == "shards.preparation":
            pytest.skip("it makes what the debates of a study share, and runs none of them")
        if missing := lacking(type(self)):
            pytest.skip(missing)

    @property
    def options(self):
        if self.offer.name in OPTIONS or self.offer.distribution != "madplug-benchmarks":
            made = OPTIONS.get(self.offer.name, {})
            return made() if callable(made) else made
        found = rows(self.offer)
        return {"path": found} if found else {}

    @property
    def agents_alike(self):
        return self.offer.name in AGENTS_ALIKE

    @property
    def answers_alike(self):
        return self.offer.name in ANSWERS_ALIKE

    @property
    def around(self):
        return around(self.offer)

    def make(self):
        made = super().make()
        made.full_name = self.offer.name
        return made

    @property
    def sample(self):
        plugin = self.offer.name.partition(".")[0]
        data = HiddenFacts(size=1) if plugin == "oversight" else dataset(plugin)  # which is about two choices
        return next(iter(data.samples()))[0] if data else contracts.DecisionContract.sample


def name_of(offer):
    return f"Test{offer.kind.title()}_{offer.name.replace('.', '_')}"


@cache
def lacking(contract):
    """What a component says that it needs and that is not installed here; nothing where all is there."""
    try:
        if issubclass(contract, contracts.DatasetContract):
            contract().make().size()
        elif issubclass(contract, DebateContract):
            contract().trial()
    except (ComponentError, UserError) as error:
        return str(error) if "needs" in str(error) else ""
    return ""


for found in offers():
    contract = contracts.CONTRACTS.get(found.kind, contracts.ComponentContract)  # which a kind of a plugin has
    globals()[name_of(found)] = type(name_of(found), (Discovered, contract),
                                     {"component": found.component, "offer": found, "__module__": __name__})


def ordered_over(name):
    """The contract of `madc.order` over another visibility."""
    order, inner = registry().find("visibility", "madc.order"), registry().find("visibility", name)
    options = {"inner": inner.component(), "rounds": "all"}
    return type(f"TestOrder_over_{name.replace('.', '_')}", (Discovered, contracts.VisibilityContract),
                {"component": order.component, "offer": order, "options": options, "__module__": __name__})


for over in ("sparse.graph", "reconcile.grouped", "eot.peers"):
    globals()[f"TestOrder_over_{over.replace('.', '_')}"] = ordered_over(over)


@pytest.fixture(scope="module", autouse=True)
def imported_at_once():
    """One interpreter for all modules."""
    contracts.heavy_imports(sorted({offer.component.__module__ for offer in offers()}))


def test_every_component_of_every_distribution_has_a_contract():
    """If this fails: a distribution offers nothing, or is not installed (`pip install -r requirements-dev.txt`)."""
    # These add commands only, or are libraries.
    silent = {"madplug-init", "madplug-prices", "madplug-report", "madplug-view", "madplug-prompting",
              "madplug-tracking", "madplug-testing", "madplug-workers", "madplug-export", "madplug-read",
              "madplug-askpage", "madplug-show"}
    assert OURS - {offer.distribution for offer in offers()} <= silent
    assert all(name_of(offer) in globals() for offer in offers())
