"""What plugins may rely on is written down in `public.txt`.

`python tests/host/test_public.py` writes it. Before you do: CONTRIBUTING.md says what may change in which version.
"""

import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path

import madplug
import madplug_testing as testing
from madplug import hookspecs, services
from madplug.component import Component
from madplug.context import Debate, Setup
from madplug.kinds import HOST_KINDS
from madplug.options import ModelOptions
from madplug.transcript import Transcript
from madplug_testing import contracts

FILE = Path(__file__).with_name("public.txt")
DEBATE = ("sample", "agents", "voters", "with_role", "agent", "transcript", "round", "rounds", "answers", "references",
          "rng", "ask", "read", "ask_all", "notes", "service", "neighbours", "view", "key", "models", "decision",
          "matched", "repeat")
SETUP = ("ask", "ask_all", "samples", "models", "answers", "keep")
TRANSCRIPT = ("messages", "record", "of_round", "by", "last", "answers")
"""What a component may use of what it is given; the rest of these classes is the host's own."""
KIND = ("kind", "plural", "label", "slot", "how_many", "required", "of_study")
"""How a kind describes itself to the host; no plugin sets these."""


def signature(function):
    """Names of arguments, with a default marked by `=` and keywords after `*`."""
    words, keywords = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            words.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        words.append(stars + parameter.name + ("=" if parameter.default is not parameter.empty else ""))
    return ", ".join(words)


def member(owner, name):
    """A method with its arguments, or an attribute."""
    found = inspect.getattr_static(owner, name, None)
    found = getattr(found, "__func__", found)
    return f"{name}({signature(found)})" if inspect.isfunction(found) else name


def public():
    """Every line of the file."""
    yield from (f"name madplug.{name}" for name in madplug.__all__)
    yield from (f"name madplug_testing.{name}" for name in testing.__all__)
    yield from (f"name madplug.services.{name}" for name in services.__all__)
    yield from (f"name madplug_testing.contracts.{name}" for name in contracts.__all__)
    for name, hook in vars(hookspecs).items():
        if name.startswith("madplug_"):
            first = " -> first result" if hook.madplug_spec["firstresult"] else ""
            yield f"hook {name}({signature(hook)}){first}"
    for name in madplug.__all__:
        record = getattr(madplug, name)
        if inspect.isclass(record) and is_dataclass(record) and not inspect.isabstract(record):
            yield f"record {name}({signature(record)})"
            assert {f.name for f in fields(record)} == set(inspect.signature(record).parameters)
    yield from (f"kind {base.kind}: {base.plural}, [{base.slot}], {base.how_many}" for base in HOST_KINDS)
    yield from (f"method {line}" for base in (Component, *HOST_KINDS) for line in methods(base))
    yield from (f"option ModelOptions.{name}" for name in ModelOptions.model_fields)
    for owner, names in ((Debate, DEBATE), (Setup, SETUP), (Transcript, TRANSCRIPT)):
        yield from (f"given {owner.__name__}.{member(owner, name)}" for name in names)
    for kind, contract in contracts.CONTRACTS.items():
        yield from (f"contract {kind} {name}" for name in contracts.contract_tests(contract))


def methods(base):
    """What a component must have and may have, beyond what all components have."""
    for name in vars(base):
        if name.startswith("_") or name in KIND or name == "Options":
            continue
        abstract = " (abstract)" if name in base.__abstractmethods__ else ""
        yield f"{base.__name__}.{member(base, name)}{abstract}"
    for name in base.__annotations__ if "__annotations__" in vars(base) else ():
        if name not in vars(base) and name not in KIND:
            yield f"{base.__name__}.{name}"


def written():
    """The file as it should be."""
    return "".join(f"{line}\n" for line in sorted(set(public())))


def test_what_plugins_rely_on_is_as_it_is_written_down():
    """If this fails: a public name, a hook, an argument, a field or a contract has changed.

    Plugins that others wrote may need the old one. If the change is meant, and CONTRIBUTING.md allows it in the next
    version, run `python tests/host/test_public.py` and add a line to `changelog.d/` that says how to move.
    """
    assert FILE.read_text(encoding="utf-8") == written()


def test_what_a_component_is_given_has_everything_that_is_promised():
    debate = testing.debate_from("A B", oracle=True)
    assert all(hasattr(debate, name) for name in DEBATE)
    assert all(hasattr(Setup, name) for name in SETUP)
    assert all(hasattr(debate.transcript, name) for name in TRANSCRIPT)


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
