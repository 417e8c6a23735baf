"""Discovery: what is installed, what is broken, and that loading is lazy."""

import json
import subprocess
import sys

import pytest

from madplug import hookspecs
from madplug.errors import UserError
from madplug.registry.installed import Registry

GOOD = '''
from madplug import Decision, DecisionProtocol, hookimpl
class D(DecisionProtocol):
    """Decides nothing. And says so."""
    name = "nothing"
    def at_end(self, debate):
        return Decision.undecided("never")
@hookimpl
def madplug_register_decisions():
    return [D]
'''


def test_an_installed_plugin_is_listed_with_its_distribution_version_and_summary(madplug_plugin):
    madplug_plugin("good", GOOD, version="1.2")
    offer = Registry().find("decision", "good.nothing")
    assert (offer.distribution, offer.version, offer.summary) == ("madplug-good", "1.2", "Decides nothing.")


def test_only_the_plugin_that_is_named_is_loaded(madplug_plugin):
    madplug_plugin("good", GOOD)
    madplug_plugin("bomb", "raise SystemError('loaded')")
    registry = Registry()
    registry.find("decision", "good.nothing")
    assert registry.problems == []


@pytest.mark.parametrize(("source", "message"), [
    ("import nothing_of_the_kind", "does not load: ModuleNotFoundError"),
    ("raise RuntimeError('boom')", "does not load: RuntimeError: boom"),
    (GOOD.replace("madplug_register_decisions", "madplug_register_decision"),
     "the hook 'madplug_register_decision', which does not exist; did you mean 'madplug_register_decisions'?"),
    (GOOD.replace("@hookimpl\n", ""), "'madplug_register_decisions' is not marked with @hookimpl"),
    (GOOD.replace("register_decisions", "register_styles"),
     "offers D as a style; expected a subclass of madplug.Style"),
    (GOOD.replace("return [D]", "return [D()]"), "expected a subclass of madplug.DecisionProtocol"),
    (GOOD.replace("return [D]", "return D"), "madplug_register_decisions raised TypeError"),
    (GOOD.replace("return [D]", "return [D, D]"), "offers two decision protocols named 'broken.nothing'"),
    (GOOD.replace('name = "nothing"', 'name = "No Thing"'), "expected lower_snake_case"),
    (GOOD.replace("def at_end", "def at_ned"), "D does not implement at_end"),
    (GOOD.replace('"""Decides nothing. And says so."""', "pass"), "D has no docstring"),
    (GOOD.replace("madplug_register_decisions()", "madplug_register_decisions(cli)"), "does not load"),
])
def test_a_plugin_that_breaks_a_rule_is_named_with_its_version_and_the_others_go_on(madplug_plugin, source, message):
    madplug_plugin("broken", source)
    madplug_plugin("good", GOOD)
    registry = Registry()
    names = [o.name for o in registry.offers("decision")]
    assert "good.nothing" in names
    found = [str(p) for p in registry.problems]
    assert [p for p in found if message in p and "madplug-broken 1.0" in p], found


def test_python_without_docstrings_has_components_without_a_summary(madplug_plugin):
    folder = madplug_plugin("good", GOOD)
    code = ("from madplug.registry.installed import Registry; "
            "print([Registry().find('decision', 'good.nothing').summary])")
    done = subprocess.run([sys.executable, "-OO", "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['']\n", "")


def test_two_distributions_that_claim_one_name_are_both_reported_and_neither_loaded(madplug_plugin):
    madplug_plugin("good", GOOD, distribution="madplug-good", version="1.0")
    madplug_plugin("good", GOOD, distribution="madplug-goods", version="2.0")
    registry = Registry()
    assert not [o for o in registry.offers("decision") if o.name == "good.nothing"]
    assert "claimed by madplug-good 1.0 and madplug-goods 2.0; neither is loaded" in str(registry.problems[0])
    with pytest.raises(UserError, match="cannot be used"):
        registry.find("decision", "good.nothing")


@pytest.mark.parametrize(("name", "said"), [
    ("kit", "'kit' offers kit.last_round, kit.needy"),
    ("good", "did you mean 'good.nothing'?"), ("goood", "did you mean 'good'?")])
def test_the_name_of_a_plugin_alone_is_answered_with_what_it_offers(madplug_plugin, name, said):
    madplug_plugin("good", GOOD)
    with pytest.raises(UserError) as found:
        Registry().find("decision", name)
    assert str(found.value).endswith(f"; {said}")


def test_a_plugin_can_be_disabled(madplug_plugin, monkeypatch):
    madplug_plugin("good", GOOD)
    monkeypatch.setenv("MADPLUG_DISABLE", "good, other")
    with pytest.raises(UserError, match="disabled by MADPLUG_DISABLE"):
        Registry().find("decision", "good.nothing")


def test_list_exits_1_with_problems_and_prints_json(program, madplug_plugin):
    madplug_plugin("broken", "import nothing_of_the_kind")
    done = program("list", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert "madplug-broken 1.0" in found["problems"][0]
    assert {"kind", "name", "distribution", "version", "summary"} == set(found["components"][0])


def test_a_plugin_can_add_a_command(madplug, madplug_plugin):
    madplug_plugin("greet", '''
import click
from madplug import hookimpl
@hookimpl
def madplug_register_commands(cli):
    @cli.command()
    def greet():
        """Say hello."""
        click.echo("hello")
''')
    assert madplug("greet").stdout == "hello\n"
    assert "Say hello." in madplug("--help").stdout


def test_every_hook_says_when_it_is_called_and_what_to_return():
    for name, hook in vars(hookspecs).items():
        if name.startswith("madplug_"):
            arguments = hook.__code__.co_varnames[:hook.__code__.co_argcount]
            assert all(f"{a}:" in hook.__doc__ or f"{a}, " in hook.__doc__ for a in arguments), name


def test_an_interrupt_before_anything_runs_is_one_line(madplug, madplug_plugin):
    madplug_plugin("slow", "raise KeyboardInterrupt")
    done = madplug("list")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "madplug: interrupted\n")


ENDING = """
from madplug import hookimpl
@hookimpl
def madplug_register_results(summary):
    {results}
@hookimpl
def madplug_register_hints(folder):
    {hints}
"""


def test_a_run_ends_with_the_results_that_plugins_show_and_what_they_suggest(program, madplug_plugin, write):
    madplug_plugin("opener", ENDING.format(results="return [summary['cells'][0]['cell'] + '\\x1b']",
                                           hints="return [f'opener {folder} \\x1b[31m']"))
    done = program("run", write())
    assert done.stdout.startswith("study: finished\n\n")
    assert "\n\nmain\N{REPLACEMENT CHARACTER}\n\n" in done.stdout
    assert "results saved in runs/study/\nopener runs/study \N{REPLACEMENT CHARACTER}[31m\n" in done.stdout
    assert program("run", write(), "--quiet").stdout == ""


def test_a_plugin_that_fails_at_the_end_is_a_message_and_not_a_failed_run(program, madplug_plugin, write):
    madplug_plugin("opener", ENDING.format(results="raise RuntimeError('no')", hints="raise RuntimeError('no')"))
    done = program("run", write())
    assert done.returncode == 0
    assert "cannot show the results: RuntimeError: no" in done.stderr
    assert "cannot suggest what to do next: RuntimeError: no" in done.stderr
    assert "Traceback" not in done.stderr


COMMANDS = """
from madplug import hookimpl
@hookimpl
def madplug_register_commands(cli):
    {body}
"""


@pytest.mark.parametrize("source", [COMMANDS.format(body="raise RuntimeError('no')"), "raise SystemExit(3)"])
def test_a_plugin_whose_commands_break_leaves_the_program_whole(madplug, madplug_plugin, source):
    madplug_plugin("broken", source)
    done = madplug("--help")
    assert done.returncode == 0
    assert "List every installed component" in done.stdout
    assert "madplug: madplug-broken 1.0: plugin 'broken': " in done.stderr
    assert "Traceback" not in done.stderr
    assert madplug("list", "model").returncode in (0, 1)
