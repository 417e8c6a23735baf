"""`madplug show`: what a component is, what it takes, and the TOML to paste."""

import json

import pytest

TYPES = '''
from pathlib import Path
from typing import Annotated, Any, Literal
from madplug import (
    Component, ModelName, Nested, Offers, Options, ServiceName, Visibility, Volatile, hookimpl)
from madplug.services import Embedder
from madplug_testing import LastRound, SeeAll
from pydantic import BaseModel, Field
class Referee(Component):
    """Watches the clock."""
    kind, plural, label, slot = "referee", "referees", "referee", "debate.referee"
class Strict(Referee):
    """Stops the clock."""
    name = "strict"
    gives = frozenset({"time", "breaks"})
    class Options(Options):
        minutes: int = Field(description="how long")
class Base(LastRound):
    class Options(Options):
        inherited: str = Field(default="x", pattern="[a-z]", description="of all")
class Part(BaseModel):
    size: int = 1
class Every(Base):
    """Has options of every type.

    Differs from nothing.
    """
    name = "every"
    source = "A paper, section 2"
    class Options(Base.Options):
        judge: ModelName = Field(description="who judges")
        judges: list[ModelName] = Field(default=[], description="more of them")
        embedder: Annotated[ServiceName, Offers(Embedder)] | None = Field(default=None, description="embeds")
        inner: Nested[Visibility] = Field(default=SeeAll(), description="shows")
        more: list[Nested[Visibility]] = Field(default=[], description="show, too")
        n: Annotated[int, Volatile] = Field(default=3, ge=1, lt=9, description="how many")
        way: Literal["a", "b"] | None = Field(default="a", description="which way")
        table: dict[str, float] = Field(default={}, description="points")
        tables: list[dict[str, Any]] = Field(default=[], description="rows")
        part: Part = Field(default=Part(size=2), description="of a whole")
        path: Path | None = Field(default=None, description="where")
        prompt: str = Field(default="word " * 30 + "\\n\\nend", description="the words")
@hookimpl
def madplug_register_components():
    return [Strict, Every]
'''
PAGE = """every.every  (decision, madplug-every 1.0)

Has options of every type.

Differs from nothing.

Source: A paper, section 2

Options:

judge  model name, required
    who judges

judges  list of model names, default []
    more of them

embedder  service name | none, default none
    embeds

inner  visibility, default {"use": "see_all"}
    shows

more  list of visibilities, default []
    show, too

n  integer (>= 1, < 9), default 3
    how many (may change within a study)

way  "a" | "b" | none, default "a"
    which way

table  table of number, default {}
    points

tables  list of tables, default []
    rows

part  table, default {"size": 2}
    of a whole

path  path | none, default none
    where

prompt  text, default below
    the words
"""


@pytest.fixture
def every(madplug_plugin):
    madplug_plugin("every", TYPES)


def test_a_page_has_every_option_with_its_type_and_limits_in_words(program, every):
    shown = program("show", "every.every", status=0).stdout
    assert shown.startswith(PAGE)
    words = "word " * 18 + "word"
    assert shown.removeprefix(PAGE) == f"""  | {words}
  | {"word " * 10}word
  |
  | end

inherited  text (matches [a-z]), default "x"
    of all

In a run file:

[debate.decision]
use = "every.every"
judge = ...
"""


def test_the_toml_to_paste_has_the_table_of_the_kind(program, every):
    shown = program("show", "every.strict").stdout
    assert "\nCan give: breaks, time\n" in shown
    assert shown.endswith('\nIn a run file:\n\n[debate.referee]\nuse = "every.strict"\nminutes = ...\n')
    assert '[[observers]]\nuse = "kit.cry"' in program("show", "kit.cry").stdout
    assert '[models.NAME]\nuse = "kit.hash"' in program("show", "kit.hash").stdout


def test_a_paradigm_is_shown_with_what_it_stands_for(program):
    shown = program("show", "pair").stdout
    assert 'Stands for:\n\n[debate]\n' in shown
    assert shown.endswith('In a run file:\n\n[debate]\nparadigm = "kit.pair"\n')
    [facts] = json.loads(program("show", "kit.pair", "--json").stdout)
    assert (facts["kind"], facts["summary"]) == ("paradigm", facts["description"].splitlines()[0])
    assert "agents" in facts["debate"]


def test_all_components_of_a_plugin_or_a_distribution_are_shown(program, madplug_plugin):
    madplug_plugin("s2", """
from madplug import hookimpl
from madplug_testing import LastRound, SeeAll
@hookimpl
def madplug_register_components():
    return [LastRound, SeeAll]
""", distribution="madplug-second")
    for name in ("s2", "madplug-second"):
        shown = program("show", name, status=0).stdout
        assert "\n\ns2.last_round  (decision, madplug-second 1.0)\n" in shown
        assert shown.startswith("s2.see_all  (visibility, madplug-second 1.0)\n")
        assert "kit." not in shown


@pytest.mark.parametrize(("name", "said"), [
    ("kit.everythin", "show: no component or plugin 'kit.everythin'; did you mean 'kit.everything'?"),
    ("absent.turn", "show: no component or plugin 'absent.turn'; if it is an installable plugin: pip install "
                    "madplug-absent")])
def test_an_unknown_name_gets_the_nearest_or_what_to_install(program, name, said):
    assert said in program("show", name, status=2).stderr


@pytest.mark.parametrize("name", ["lost", "lost.anything"])
def test_a_plugin_that_does_not_load_is_told_with_the_reason(program, madplug_plugin, name):
    madplug_plugin("lost", "import nothing_of_the_kind")
    said = program("show", name, status=2).stderr
    assert f"'{name}' cannot be used: madplug-lost 1.0: plugin 'lost': does not load: " in said
    assert "nothing_of_the_kind" in said
    assert "did you mean" not in said


def test_a_type_that_no_run_file_can_give_is_said(program, madplug_plugin):
    madplug_plugin("odd", '''
from madplug import DecisionProtocol, Options, hookimpl
from madplug_testing import SeeAll
class Bare(SeeAll):
    """Forgets `Nested`."""
    name = "bare"
    class Options(Options):
        inner: DecisionProtocol
@hookimpl
def madplug_register_visibilities():
    return [Bare]
''')
    said = program("show", "odd.bare", status=1).stderr
    assert "madplug_odd_under_test.Bare.Options has an option of a type that no run file can give" in said
