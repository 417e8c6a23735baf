"""A kind describes itself; options that are components; services by protocol; observers; the study's identity."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests_support import RUN, problems

import madplug
from madplug import (
    Decision,
    DecisionProtocol,
    Options,
    Reply,
    Visibility,
    hookimpl,
)
from madplug.component import field_of
from madplug.config import load
from madplug.config.read import read
from madplug.config.shape import DebateSettings, RunSettings
from madplug.debate.cell import Cell
from madplug.kinds import HOST_KINDS
from madplug.options import Nested
from madplug.registry.installed import Registry
from madplug.registry.offers import RESERVED
from madplug_testing import SeeAll, play

# A new kind

REFEREES = '''
from madplug import Component, Options, hookimpl
from pydantic import Field
class Referee(Component):
    """Watches the clock."""
    kind, plural, label, slot = "referee", "referees", "referee", "debate.referee"
class Strict(Referee):
    """Stops the clock."""
    name = "strict"
    class Options(Options):
        minutes: int = Field(default=3, description="how long")
@hookimpl
def madplug_register_components():
    return [{offered}]
'''


def test_a_new_kind_is_one_class_that_a_component_brings_along(madplug_plugin, write):
    madplug_plugin("clock", REFEREES.replace("{offered}", "Strict"))
    resolved = load(write(RUN + '[debate.referee]\nuse = "strict"\nminutes = 5\n'))
    cell = resolved.plan.cells[0]
    [referee] = cell.more["referee"]
    assert referee.options.minutes == 5
    assert referee in cell.components()
    assert resolved.expanded()["cells"][0]["debate"]["referee"] == {"use": "clock.strict", "minutes": 5}
    assert resolved.identity != load(write(RUN + '[debate.referee]\nuse = "strict"\n')).identity
    assert [c["name"] for c in Registry().listing("referee")["components"]] == ["clock.strict"]
    assert problems(write(RUN + '[debate.referee]\nuse = "strikt"\n')) == [
        "debate.referee: no installed plugin offers a referee 'strikt'; did you mean 'clock.strict'?"]


def test_a_kind_without_a_component_has_a_table_too(madplug_plugin, write, tmp_path):
    madplug_plugin("clock", REFEREES.replace("{offered}", "Referee"))
    (tmp_path / "mine.py").write_text("from madplug_clock_under_test import Strict")
    cell = load(write(RUN + '[debate.referee]\nuse = "./mine.py:Strict"\n')).plan.cells[0]
    assert cell.more["referee"][0].full_name == "mine.py:Strict"


@pytest.mark.parametrize(("old", "new", "words"), [
    ("debate.referee", "debate.rounds", "Referee.slot is 'debate.rounds', which cannot be a table of the run file"),
    ("debate.referee", "limits.referee", "expected, for instance, 'referees'"),
    ("debate.referee", "debate.styles", "which cannot be told from madplug.kinds.Style"),
    ('"referees", "referee"', '"styles", "referee"', "cannot be told from madplug.kinds.Style"),
    ('"referee", "referees"', '"style", "referees"', "cannot be told from madplug.kinds.Style"),
    ('"referees", "referee"', '"referees", ""', "Referee is a kind of component without label"),
    ("class Strict", "    how_many = 'many'\nclass Strict", "Referee.how_many is 'many'; expected"),
    ("class Strict", "    of_study = True\nclass Strict", "a plugin's kind belongs to the cells of a study"),
    ("Strict(Referee)", "Strict(Component)", "Strict has no kind; inherit from a class that has one"),
    ("[{offered}]", "[int]", "offers int as a component; expected a subclass of madplug.Component")])
def test_a_kind_that_cannot_be_one_is_a_problem_of_its_plugin(madplug_plugin, old, new, words):
    madplug_plugin("clock", REFEREES.replace(old, new).replace("{offered}", "Strict"))
    registry = Registry()
    assert "clock" not in {o.name.partition(".")[0] for o in registry.offers()}
    assert [p.message for p in registry.problems if words in p.message and "madplug-clock 1.0" in p.place]


def test_no_slot_of_a_plugins_kind_is_a_key_of_the_run_file_or_a_field_of_a_cell():
    keys = {*RunSettings.model_fields, *DebateSettings.model_fields, *Cell.__dataclass_fields__}
    assert keys - RESERVED <= {field_of(base) for base in HOST_KINDS}


def test_messages_use_the_label_with_its_article(write):
    assert problems(write(), "debate.turns=x") == ["debate.turns: no installed plugin offers a turn order 'x'"]
    assert problems(write(), "answers=x") == ["answers: no installed plugin offers an answer format 'x'"]
    assert problems(write(), "debate.decision=kit.right")[0].startswith(
        "debate.decision: 'kit.right' is a metric, not a decision protocol")


def test_components_without_a_name_are_called_by_their_class():
    class Bare(DecisionProtocol):
        def at_end(self, debate):
            return Decision("A", reason="because")

    played = play(replies=["A"] * 3, decision=Bare())
    assert (played.decision.key, played.problems) == ("A", [])


# No module of the host has the name of a module of the standard library

def test_no_module_of_the_host_shadows_the_standard_library():
    """`python madplug/cli/program.py` puts the host's folder first on the path."""
    folder = Path(madplug.__file__).parent
    assert not {p.stem for p in folder.iterdir()} & set(sys.stdlib_module_names)
    done = subprocess.run([sys.executable, str(folder / "cli" / "program.py"), "--help"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Check a run FILE" in done.stdout


# Components within options

FRAME = '''
from madplug import Metric, Nested, Options, Visibility, ModelName, hookimpl
from pydantic import Field
class Frame(Visibility):
    """Shows what another visibility shows, in a frame."""
    name = "frame"
    class Options(Options):
        inner: Nested[Visibility] = Field(description="what is framed")
        more: list[Nested[Visibility]] = Field(default=[], description="others")
        maybe: Nested[Metric] | None = Field(default=None, description="a metric")
        width: int = Field(default=1, description="of the frame")
    def view(self, debate, turn):
        return self.options.inner.view(debate, turn)
class Asking(Visibility):
    """Asks a judge."""
    name = "asking"
    needs = frozenset({"agreement"})
    class Options(Options):
        judge: ModelName = Field(description="who judges")
    def view(self, debate, turn):
        return ()
    def check(self, cell):
        return ["is never content"]
class Default(Frame):
    """Frames everything unless told otherwise."""
    name = "default"
    class Options(Frame.Options):
        inner: Nested[Visibility] = Field(default="kit.everything", description="what is framed")
@hookimpl
def madplug_register_visibilities():
    return [Frame, Asking, Default]
'''


@pytest.fixture
def framed(madplug_plugin, write):
    madplug_plugin("frames", FRAME)
    head = RUN.replace('paradigm = "kit.pair"', 'paradigm = "kit.pair"\nmodels = ["m"]')
    return lambda inner, more="": write(head + f'[debate.visibility]\nuse = "frames.frame"\n{more}\ninner = {inner}\n')


def test_an_option_can_be_a_component_with_options_of_its_own_or_a_list_of_them(framed):
    path = framed('{use = "frames.frame", inner = {use = "kit.everything", window = 2}}',
                  'more = ["kit.everything", {use = "frames.default"}]')
    cell = load(path).plan.cells[0]
    options = cell.visibility.options
    assert options.inner.options.inner.options.window == 2
    assert [c.full_name for c in options.more] == ["kit.everything", "frames.default"]
    names = [c.full_name for c in cell.components()]
    assert (names.count("frames.frame"), names.count("kit.everything")) == (2, 3)


def test_a_mistake_within_an_option_names_the_place_and_the_nearest_name(framed):
    assert problems(framed('{use = "kit.everything", windw = 2}')) == [
        "debate.visibility.inner.windw: kit.everything has no such option; did you mean 'window'?"]
    assert problems(framed('"kit.evrything"')) == [
        "debate.visibility.inner: no installed plugin offers a visibility 'kit.evrything'; did you mean "
        "'kit.everything'?"]
    assert problems(framed('"kit.everything"', 'more = [{use = "kit.everything", window = 0}]\nwidht = 2')) == [
        "debate.visibility.more[0].window: should be greater than or equal to 1",
        "debate.visibility.widht: frames.frame has no such option; did you mean 'width'?"]
    assert problems(framed('3')) == ["debate.visibility.inner: expected a visibility"]


def test_what_a_component_within_an_option_needs_and_names_counts(framed):
    assert problems(framed('{use = "frames.asking", judge = "n"}')) == [
        "debate.visibility.inner.judge: there is no [models.n]; there is only m"]
    needs, check = problems(framed('{use = "frames.asking", judge = "m"}'))
    assert needs.startswith("debate.visibility.inner: frames.asking needs 'agreement', which no component of this cell")
    assert check == "debate.visibility.inner: is never content"


def test_a_study_with_components_in_options_is_stored_in_full_and_read_back_as_equal(framed, write):
    import tomli_w

    resolved = load(framed('{use = "frames.default"}'))
    visibility = resolved.expanded()["cells"][0]["debate"]["visibility"]
    assert visibility["inner"]["inner"] == {"use": "kit.everything"}
    again = load(write(tomli_w.dumps(resolved.expanded()), "again.toml"))
    assert again.identity == resolved.identity
    assert load(framed('{use = "frames.default", width = 2}')).identity != resolved.identity


def test_a_component_within_an_option_is_prepared_its_calls_count_and_its_hooks_are_called():
    class Inner(SeeAll):
        """Makes replies louder."""

        def calls(self, plan):
            return 7

        def prepare(self, setup):
            self.prepared = setup.models

        @hookimpl(wrapper=True)
        def madplug_reply(self, debate, turn, view):
            pending = yield

            async def loud():
                reply = await pending
                return Reply(reply.content + "!")

            return loud()

    class Outer(SeeAll):
        """Has one within."""

        class Options(Options):
            inner: Nested[Visibility]

        def view(self, debate, turn):
            assert self.options.inner.prepared == ("model",)
            return self.options.inner.view(debate, turn)

    played = play(replies=lambda request: "A", visibility=Outer(inner=Inner()))
    assert {m.content for m in played.messages} == {"A!"}
    cell = played.debate.cell
    assert cell.worst_calls() == play(replies=lambda request: "A").debate.cell.worst_calls() + 7
    assert cell.visibility.to_table() == {"use": "see_all", "inner": {"use": "see_all"}}


def test_the_moves_of_a_turn_order_within_an_option_are_asked_for(write, madplug_plugin):
    madplug_plugin("orders", '''
from madplug import Nested, Options, Turn, TurnOrder, hookimpl
from pydantic import Field
class Twice(TurnOrder):
    """Another order, twice."""
    name = "twice"
    class Options(Options):
        inner: Nested[TurnOrder] = Field(description="what is done twice")
    def waves(self, debate):
        for _ in range(2):
            yield from self.options.inner.waves(debate)
    def turns(self, agents, round):
        return 2 * self.options.inner.turns(agents, round)
class Sing(TurnOrder):
    """Asks for a song."""
    name = "sing"
    moves = frozenset({"sing"})
    def waves(self, debate):
        yield [Turn(a, "sing") for a in debate.agents]
@hookimpl
def madplug_register_components():
    return [Twice, Sing]
''')
    assert load(write(), ['debate.turns={use = "orders.twice", inner = "kit.everybody"}']).plan.cells[0].plan.turns == 4
    assert problems(write(), 'debate.turns={use = "orders.twice", inner = "orders.sing"}') == [
        "debate.styles: no style writes the move 'sing' that orders.twice asks for (they write improve)"]


def test_a_default_that_only_a_run_file_can_look_up_says_so(framed):
    cls = Registry().find("visibility", "frames.default").component
    with pytest.raises(TypeError, match="the default of 'inner' is a name, which only a run file can look up"):
        cls()
    assert cls(inner=SeeAll()).options.inner.name == SeeAll.name
    with pytest.raises(ValueError, match="expected a visibility as"):
        cls(inner="see_all")


# Services

EMBEDDERS = '''
from typing import Annotated
from madplug import Metric, Offers, Options, Service, ServiceName, hookimpl
from madplug.services import Embedder
from pydantic import Field
class Vectors(Service):
    """Embeds."""
    name = "vectors"
    async def embed(self, texts):
        return [[0.0] for _ in texts]
class Slow(Service):
    """Embeds, and blocks."""
    name = "slow"
    def embed(self, texts):
        return [[0.0] for _ in texts]
class Spread(Metric):
    """How far answers are apart."""
    name = "spread"
    class Options(Options):
        embedder: Annotated[ServiceName, Offers(Embedder)] = Field(description="embeds")
        others: list[ServiceName] = Field(default=[], description="others")
    def score(self, debate, references):
        return 0.0
@hookimpl
def madplug_register_components():
    return [Vectors, Slow, Spread]
'''


def test_a_service_that_lacks_what_an_option_asks_for_is_refused_before_the_first_call(write, madplug_plugin):
    madplug_plugin("space", EMBEDDERS)
    text = RUN + '[[metrics]]\nuse = "space.spread"\nembedder = "e"\n[services.e]\nuse = "space.vectors"\n'
    assert load(write(text)).plan.cells[0].services["e"].full_name == "space.vectors"
    [found] = problems(write(text.replace("space.vectors", "space.slow")))
    assert found.startswith("metrics[1].embedder: [services.e] uses 'space.slow', which is not an Embedder: it has no "
                            "async method 'embed'; services that are: ")
    assert "space.vectors" in found
    assert "space.slow" not in found.partition("services that are")[2]


# Observers

def test_observers_are_resolved_at_the_top_of_the_file_and_only_there(write, program):
    path = write('observers = ["kit.cry", {use = "starts"}]\n' + RUN)
    assert [o.full_name for o in load(path).plan.observers] == ["kit.cry", "kit.starts"]
    assert "observers: kit.cry, kit.starts" in program("check", path).stdout
    assert problems(write('observers = [{use = "cry", sped = 3}]\n' + RUN)) == [
        "observers[0].sped: kit.cry has no such key"]
    [found] = problems(write(RUN + '[[cells]]\nname = "a"\nobservers = ["kit.cry"]\n'))
    assert found.startswith("observers: a cell has no such key")


# Identity

MINE = '''
from madplug import Dataset, Executor, Extension, Options, RunPath, Sample
class Lines(Dataset):
    answers = "kit.stripped"
    class Options(Options):
        path: RunPath
    def samples(self, split=None):
        return ()
class Glossary(Extension):
    class Options(Options):
        path: RunPath
class Here(Executor):
    async def run(self, jobs, driver):
        await jobs.run()
'''


def test_observers_and_execution_are_no_part_of_the_identity(write):
    write(MINE, "mine.py")
    same = load(write()).identity
    assert load(write('observers = ["kit.cry"]\n' + RUN)).identity == same
    assert load(write(RUN + '[execution]\nuse = "./mine.py:Here"\n')).identity == same
    assert load(write(), ["name=other"]).identity == same


def test_moving_data_files_leaves_the_identity_and_changing_them_does_not(write, tmp_path):
    write(MINE, "mine.py")
    text = RUN.replace('use = "kit.numbered"\nsize = 6', 'use = "./mine.py:Lines"\npath = "a.txt"')
    text = 'extensions = [{use = "./mine.py:Glossary", path = "words"}]\n' + text
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "one.txt").write_text("one")
    (tmp_path / "a.txt").write_text("why?\n")
    same = load(write(text)).identity
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    (tmp_path / "words").rename(tmp_path / "terms")
    assert load(write(text.replace("a.txt", "b.txt").replace("words", "terms"))).identity == same
    (tmp_path / "terms" / "one.txt").write_text("two")
    other = load(write(text.replace("a.txt", "b.txt").replace("words", "terms"))).identity
    assert other != same
    (tmp_path / "b.txt").write_text("why not?\n")  # samples count one by one, when they are run
    assert load(write(text.replace("a.txt", "b.txt").replace("words", "terms"))).identity == other
    assert read(tmp_path / "study.toml", (), {})["dataset"]["path"] == "b.txt"
