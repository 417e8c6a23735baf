"""Every test of a contract fails for the component it is there for, and passes for a sound one."""

import inspect
import random

import pytest
from pydantic import Field

from madplug import (
    Agent,
    Casting,
    Completion,
    Decision,
    Options,
    Persona,
    PersonaGenerator,
    Phase,
    Reply,
    Sample,
    Service,
    Turn,
    Vote,
    hookimpl,
)
from madplug_kit import Hash, Numbered, Pair, Right, Shout, Starts
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText
from madplug_testing.contracts import CONTRACTS, contract_tests, heavy_imports


def outcome(contract, test, component, **more):
    """What a test of a contract says of a component: None, or the error."""
    cls = type("TestIt", (contract,), {"component": component, **more})
    function = inspect.getattr_static(cls, test)
    marks = getattr(function, "pytestmark", [])
    values = [{name: value} for mark in marks for name, value in [(mark.args[0], v) for v in mark.args[1]]] or [{}]
    for arguments in values:
        try:
            function(cls(), **arguments)
        except BaseException as error:
            return error
    return None


# Sound ones

class InTurn(Casting):
    """The models in turn."""

    name = "in_turn"

    def cast(self, debate, personas):
        return [Agent(i, p, debate.models[i % len(debate.models)]) for i, p in enumerate(personas)]


class Doubt(Phase):
    """Asks once more."""

    name = "doubt"

    async def run(self, debate, decision):
        said = await debate.ask("sure?", purpose="challenge", agent=debate.agents[0])
        debate.notes["doubt"] = {"said": said.text}

    def calls(self, plan):
        return 1


def sound(base, **parts):
    return type("Sound", (base,), {"__doc__": "A sound one.", "name": "sound", **parts})


NAMED = sound(PersonaGenerator, generate=lambda self, debate, roster: Persona(f"P{len(roster)}"))
SOUND = {"model": Hash, "service": sound(Service), "dataset": Numbered, "answers": StrippedText, "personas": NAMED,
         "casting": InTurn, "style": PlainStyle, "turns": SpeakAll, "visibility": SeeAll, "decision": LastRound,
         "phase": Doubt, "metric": Right, "extension": Shout, "observer": Starts, "paradigm": Pair}


@pytest.mark.parametrize("kind", SOUND)
def test_a_sound_component_keeps_its_contract(kind):
    for test in contract_tests(CONTRACTS[kind]):
        assert outcome(CONTRACTS[kind], test, SOUND[kind]) is None, test


# Broken ones: (kind, test, how to break a sound component)

def methods(**changes):
    return lambda base: type("Broken", (base,), {"__doc__": "Broken.", **changes})


class Bare(Options):
    """An option without a description."""

    least: int = 1


class Loose(Options):
    """Options that take anything."""

    model_config = {"extra": "ignore"}


class Odd(Options):
    """An option that JSON changes."""

    ratio: complex = Field(default=1j, description="a number of an unusual kind")
    when: object = Field(default_factory=object, description="anything")


def remembers(self, debate):
    self.seen = [*getattr(self, "seen", []), debate.sample.id]
    return Decision.undecided("never")


def draws(self, debate):
    return Decision.undecided(f"because {random.random()}")


def peeks(self, debate):
    keys = [m.key for m in debate.transcript.messages]
    return Decision.undecided(str(debate.references if debate.cell.oracle else keys))


def scribbles(self, debate, turn):
    view = yield
    debate.sample.metadata["read"] = True
    return view


async def trusting(self, debate, turn, view):
    import json

    text = (await debate.ask("a number", agent=turn.agent, purpose="discuss")).text
    return Reply("A" if text in "ABC" and text else str(json.loads(text)["answer"]))


async def twice(self, debate, turn, view):
    await debate.ask("first", agent=turn.agent, purpose="discuss")
    return Reply((await debate.ask("then", agent=turn.agent, purpose="discuss")).text)


def two_per_agent(self, debate):
    yield [Turn(agent) for agent in (*debate.agents, *debate.agents)]


def fresh(self, debate, turn):
    return [m for m in debate.transcript.messages if random.random() < 0.5]


async def only_when_it_is_run(self, debate, decision):
    if debate.recorded:
        raise RuntimeError("the debate is over")
    debate.notes["doubt"] = {"said": "yes"}


BROKEN = [
    ("decision", "test_it_tells_what_it_is", methods(name="Broken One")),
    ("decision", "test_it_tells_what_it_is", methods(__doc__="not a sentence")),
    ("decision", "test_every_option_is_described_and_frozen", methods(Options=Bare)),
    ("decision", "test_every_option_is_described_and_frozen", methods(Options=Loose)),
    ("decision", "test_its_options_can_be_written_down_and_read_back", methods(Options=Odd)),
    ("decision", "test_making_it_is_cheap", methods(__init__=lambda self, options: __import__("aiohttp"))),
    ("decision", "test_a_debate_with_it_comes_to_its_end", methods(at_end=lambda self, debate: "A")),
    ("decision", "test_it_fits_the_debate_it_is_tested_in", methods(needs=frozenset({"logprobs"}))),
    ("decision", "test_it_fits_the_debate_it_is_tested_in", methods(check=lambda self, cell: ["never fits"])),
    ("decision", "test_the_same_debate_ends_the_same_way", methods(at_end=draws)),
    ("decision", "test_it_keeps_nothing_of_a_debate", methods(at_end=remembers)),
    ("decision", "test_it_reads_references_only_if_it_says_so", methods(at_end=peeks)),
    ("decision", "test_it_reads_references_only_if_it_says_so", methods(needs=frozenset({"references"}))),
    ("extension", "test_it_leaves_the_record_alone", methods(madplug_view=hookimpl(scribbles, wrapper=True))),
    ("style", "test_it_announces_every_call", methods(respond=twice)),
    ("style", "test_whatever_the_model_says_nothing_breaks", methods(respond=trusting)),
    ("personas", "test_a_debate_with_it_comes_to_its_end", methods(generate=lambda self, debate, roster: "Ada")),
    ("personas", "test_it_makes_the_personas_that_are_wanted",
     methods(generate=lambda self, debate, roster: Persona(""))),
    ("personas", "test_it_declares_the_roles_of_its_personas", methods(roles=frozenset({"judge"}))),
    ("casting", "test_every_persona_is_played_once_in_its_place",
     methods(cast=lambda self, debate, personas: [Agent(i, p, "first") for i, p in enumerate(reversed(personas))])),
    ("style", "test_it_declares_its_moves", methods(moves=frozenset())),
    ("style", "test_it_writes_every_move_it_declares",
     methods(moves=frozenset({"improve", "sing"}), accepts=lambda self, agent, turn: turn.move != "sing")),
    ("style", "test_what_it_reads_is_what_it_says",
     methods(respond=lambda self, debate, turn, view: Reply("A", confidence=85))),
    ("style", "test_what_it_reads_is_what_it_says",
     methods(respond=lambda self, debate, turn, view: Reply("A", data={"broken": {1, 2}}))),
    ("style", "test_a_turn_makes_no_more_calls_than_announced", methods(respond=twice)),
    ("turns", "test_it_asks_for_the_moves_it_declares", methods(moves=frozenset({"draft"}))),
    ("turns", "test_it_announces_the_turns_of_a_round", methods(waves=two_per_agent)),
    ("turns", "test_it_asks_the_agents_of_the_debate", methods(waves=lambda self, debate: iter(()))),
    ("visibility", "test_a_view_is_a_function_of_the_transcript", methods(view=fresh)),
    ("visibility", "test_a_view_shows_messages_that_stand",
     methods(view=lambda self, debate, turn: debate.transcript.messages * 2)),
    ("visibility", "test_neighbours_are_agents_of_the_debate",
     methods(neighbours=lambda self, debate, agent, round: (17,))),
    ("decision", "test_it_decides_however_a_debate_has_gone",
     methods(at_end=lambda self, debate: Decision(debate.transcript.messages[0].key))),
    ("decision", "test_what_it_decides_was_said", methods(at_end=lambda self, debate: Decision("nobody said this"))),
    ("decision", "test_what_it_decides_was_said",
     methods(at_end=lambda self, debate: Decision(None, agreed=True, reason="so there"))),
    ("decision", "test_ballots_are_of_agents_of_the_debate",
     methods(at_end=lambda self, debate: Decision(None, votes=(Vote(0, {}), Vote(0, {})), reason="no"))),
    ("decision", "test_after_a_round_it_decides_or_waits", methods(after_wave=draws)),
    ("phase", "test_it_follows_any_decision", methods(run=lambda self, debate, decision: decision.key.upper())),
    ("phase", "test_a_recorded_debate_keeps_its_record", methods(run=only_when_it_is_run)),
    ("phase", "test_its_notes_can_be_kept",
     methods(run=lambda self, debate, decision: debate.notes.update(made={Sample("a", "b"): 1}))),
    ("metric", "test_it_scores_however_a_debate_has_gone",
     methods(score=lambda self, debate, references: 1 / len(debate.transcript.messages))),
    ("metric", "test_it_sums_up_whatever_there_is",
     methods(summarise=lambda self, results: {"keys": [r.decision.key for r in results]})),
    ("metric", "test_it_sums_up_whatever_there_is", methods(summarise=lambda self, results: {"by": {1: 2}})),
    ("extension", "test_its_hooks_exist_and_are_marked", methods(madplug_requests=lambda self, debate: None)),
    ("extension", "test_its_hooks_exist_and_are_marked", methods(madplug_view=lambda self, debate: None)),
    ("extension", "test_what_it_wraps_goes_on",
     methods(madplug_request=hookimpl(lambda self, debate, request: request))),
    ("answers", "test_it_says_how_to_answer", methods(instruction=lambda self, sample: "")),
    ("answers", "test_a_canonical_answer_is_its_own", methods(canonical=lambda self, text, sample: text + "!")),
    ("answers", "test_the_same_answer_is_the_same_both_ways", methods(same=lambda self, a, b, sample: a < b)),
    ("answers", "test_its_form_is_one_a_model_can_hold", methods(pattern=lambda self, sample: "(?=x)")),
    ("dataset", "test_it_gives_samples_with_their_references",
     methods(samples=lambda self, split=None: iter([(Sample("q", "?"), "A")]))),
    ("dataset", "test_it_gives_samples_with_their_references",
     methods(samples=lambda self, split=None: iter([(Sample("q", "?", metadata={"at": object()}), ("A",))]))),
    ("dataset", "test_every_pass_is_the_same",
     methods(samples=lambda self, split=None: iter([(Sample("q", "?"), ()), (Sample("q", "?"), ())]))),
    ("dataset", "test_its_size_is_true", methods(size=lambda self: 3)),
    ("dataset", "test_it_tells_itself_from_other_data", methods(fingerprint=lambda self: random.random())),
    ("dataset", "test_its_answer_format_is_a_slot", methods(answers={"name": "x"})),
    ("observer", "test_its_methods_are_events", methods(message_recoded=lambda self, event: None)),
    ("model", "test_it_has_the_options_of_every_model", methods(Options=Options)),
    ("model", "test_it_answers_without_blocking", methods(complete=lambda self, request: Completion("A"))),
    ("model", "test_its_price_is_a_table_or_unknown", methods(price={"input": 1.0})),
    ("paradigm", "test_it_is_a_debate_that_a_run_file_could_hold", methods(debate={"turn": "kit.everybody"})),
    ("paradigm", "test_what_it_names_is_installed_and_takes_its_options", methods(debate={"turns": "speak_all"})),
    ("paradigm", "test_what_it_names_is_installed_and_takes_its_options",
     methods(debate={"decision": {"use": "kit.last_round", "kept": 1}})),
]


@pytest.mark.parametrize(("kind", "test", "broken"), BROKEN, ids=[f"{k}-{t}" for k, t, _ in BROKEN])
def test_a_contract_finds_the_component_it_is_there_for(kind, test, broken):
    assert outcome(CONTRACTS[kind], test, broken(SOUND[kind])) is not None


def test_claims_of_symmetry_are_checked():
    class First(LastRound):
        """What agent 0 says."""

        def at_end(self, debate):
            return Decision(debate.transcript.messages[0].key)

    class Alphabet(LastRound):
        """The first answer of the alphabet."""

        def at_end(self, debate):
            return Decision(min(m.key for m in debate.transcript.messages))

    contract = CONTRACTS["decision"]
    exchanged, renamed = ("test_agents_that_count_the_same_can_be_exchanged",
                          "test_answers_that_count_the_same_can_be_renamed")
    assert outcome(contract, exchanged, First, agents_alike=True)
    assert not outcome(contract, exchanged, First)
    assert outcome(contract, renamed, Alphabet, answers_alike=True)
    assert not outcome(contract, renamed, First, answers_alike=True)
    for test in (exchanged, renamed):
        assert not outcome(contract, test, LastRound, agents_alike=True, answers_alike=True)


def test_a_heavy_import_at_module_level_is_found(tmp_path, monkeypatch):
    (tmp_path / "heavy_one.py").write_text("import numpy_like\n")
    (tmp_path / "numpy_like.py").write_text("import sympy\n")
    (tmp_path / "sympy.py").write_text("")
    (tmp_path / "light_one.py").write_text("def later():\n    import sympy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert heavy_imports(["light_one", "heavy_one"]) == {"light_one": [], "heavy_one": ["sympy"]}


def test_a_test_of_a_contract_cannot_be_replaced_or_removed():
    """If this fails: a third party's component can lose a test without anybody noticing."""
    contract, mixed = CONTRACTS["decision"], type("Mixed", (), {"test_it_announces_every_call": lambda self: None})
    for bases, own in (((contract,), {"test_it_announces_every_call": lambda self: None}),
                       ((contract,), {"test_it_announces_every_call": None}), ((mixed, contract), {})):
        with pytest.raises(TypeError, match=r"replaces test_it_announces_every_call .* give your own tests other"):
            type("TestIt", bases, {"component": LastRound, **own})


def test_every_test_of_every_contract_says_what_to_do_if_it_fails():
    for contract in CONTRACTS.values():
        for name, test in contract_tests(contract).items():
            assert "If this fails: " in (test.__doc__ or ""), f"{contract.__name__}.{name}"


def test_every_test_of_every_contract_has_a_component_that_fails_it():
    """If this fails: a test of a contract cannot fail; add a broken component to BROKEN."""
    here = {test for _, test, _ in BROKEN}
    source = inspect.getsource(inspect.getmodule(test_claims_of_symmetry_are_checked))
    for kind, contract in CONTRACTS.items():
        for name in contract_tests(contract) if kind != "executor" else ():  # test_jobs.py breaks executors
            assert name in here or f'"{name}"' in source or name == "test_importing_it_is_cheap", name

