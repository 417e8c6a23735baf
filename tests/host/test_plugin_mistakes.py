"""Errors that plugin authors meet: each names the component, and says what was expected and what to do."""

import copy
import json
import pickle
import re
import sys
from dataclasses import replace

import pytest
from tests_support import RUN

from madplug import (
    Agent,
    Casting,
    Dataset,
    Decision,
    Extension,
    MadplugError,
    Message,
    Metric,
    Model,
    ModelOptions,
    Persona,
    PersonaGenerator,
    Phase,
    Reply,
    Sample,
    Turn,
    Vote,
    hookimpl,
)
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText, debate_from, play


def broken(base, **methods):
    return type("Broken", (base,), {"__doc__": "Broken.", "__module__": "third_party", "name": "broken", **methods})()


def giving(value):
    return lambda self, *arguments, **more: value


async def says(self, request):
    return "A"


async def later(self, debate, turn):
    return ()


def nowhere(self, debate, request):
    asked = yield
    return replace(asked, model="nowhere")


def elsewhere(self, debate, personas):
    return [Agent(i, persona, "nope") for i, persona in enumerate(personas)]


def error_of(**parts):
    """What a debate with these parts fails with, or why none could be held."""
    try:
        played = play(replies=lambda request: "A", expect_failure=True, **parts)
        return played.result.error or played.problems[0]
    except (AssertionError, MadplugError) as error:
        return str(error)


@pytest.mark.parametrize(("parts", "message"), [
    ({"visibility": broken(SeeAll, view=giving(None))},
     "Broken.view returned NoneType None; expected a sequence of Message"),
    ({"visibility": broken(SeeAll, view=giving(["a"]))}, "Broken.view returned str 'a'; expected Message"),
    ({"visibility": broken(SeeAll, view=later)}, "expected a sequence of Message; is an `await` missing?"),
    ({"personas": [broken(PersonaGenerator, generate=giving("Ada"))]},
     "Broken.generate returned str 'Ada'; expected a sequence of Persona"),
    ({"casting": broken(Casting, cast=giving(None))},
     "Broken.cast returned NoneType None; expected a sequence of Agent"),
    ({"casting": broken(Casting, cast=giving([]))}, "Broken.cast returned 0 agents; expected 3 agents with ids from 0"),
    ({"casting": broken(Casting, cast=elsewhere)},
     "Broken.cast returned agent 0 on model 'nope'; expected 3 agents with ids from 0 in the order of the personas, on "
     "models of model"),
    ({"turns": broken(SpeakAll, waves=giving(None))}, "Broken.waves returned NoneType None; expected a generator"),
    ({"turns": broken(SpeakAll, waves=giving([["A"]]))}, "Broken.waves returned str 'A'; expected Turn"),
    ({"styles": [broken(PlainStyle, respond=giving("just text"))]},
     "Broken.respond returned str 'just text'; expected Reply"),
    ({"styles": [broken(PlainStyle, respond=giving(Reply(5)))]},
     "Broken.respond returned a Reply whose content is int 5; expected a valid string"),
    ({"styles": [broken(PlainStyle, respond=giving(Reply("A", confidence=85)))]},
     "a Reply whose confidence is int 85; expected less than or equal to 1"),
    ({"styles": [broken(
        PlainStyle, respond=lambda self, debate, turn, view: Reply(debate.ask("?", purpose="discuss")))]},
     "is an `await` missing?"),
    ({"turns": broken(SpeakAll, waves=lambda self, debate: [[Turn(0)]])},
     "waves returned a Turn whose agent is int 0; expected an instance of Agent"),
    ({"turns": broken(SpeakAll, waves=lambda self, debate: [Turn(a) for a in debate.agents])},
     "expected a sequence of Turn"),
    ({"decision": broken(LastRound, at_end=lambda self, debate: Decision("A", votes=(Vote(debate.agents[0], {}),)))},
     "a Decision whose votes[0].agent is Agent Agent(id=0"),
    ({"decision": broken(LastRound, at_end=giving(Decision("A", scores={"A": float("nan")})))},
     "a Decision whose scores.A is float nan; expected a finite number"),
    ({"visibility": broken(SeeAll, view=lambda self, debate, turn: [Message(99, 1, 0, 0, "improve", "x")])},
     "the hook 'madplug_view' gave a message with the id 99, which is not on record (ids are below 0)"),
    ({"extensions": [broken(Extension, madplug_round_ended=hookimpl(lambda self, debate: True))]},
     "the hook 'madplug_round_ended' gave bool True; expected Review"),
    ({"extensions": [broken(Extension, madplug_request=hookimpl(nowhere, wrapper=True))]},
     "a request to the model 'nowhere', which this cell does not have; it has model"),
    ({"decision": broken(LastRound, after_round=giving("A"))},
     "Broken.after_round returned str 'A'; expected Decision"),
    ({"phases": [broken(Phase, run=giving("A"))]}, "Broken.run returned str 'A'; expected Decision"),
    ({"answers": broken(StrippedText, extract=giving(["A"]))}, "Broken.extract returned list ['A']; expected str"),
    ({"answers": broken(StrippedText, canonical=giving(7), extract=giving("7"))},
     "Broken.canonical returned int 7; expected str"),
    ({"metrics": {"m": broken(Metric, score=giving("good"))}}, "Broken.score gave 'good' for m; expected a number"),
    ({"model": broken(Model, Options=ModelOptions, complete=says)},
     "complete returned str 'A'; expected Completion"),
    ({"dataset": broken(Dataset, samples=giving(None))},
     "Broken.samples returned NoneType None; expected a generator"),
    ({"dataset": broken(Dataset, samples=giving([Sample("q", "?")]))}, "Broken.samples gave Sample"),
    ({"dataset": broken(Dataset, samples=giving([(Sample("q", "?"), "AB")]))},
     "expected a Sample and a tuple of references as text"),
    ({"decision": broken(LastRound, at_end=giving(Decision("A", votes=(Vote(0, {"A": 1}, None),))))},
     "Broken.at_end returned a Decision whose votes[0].valid is NoneType None; expected a valid boolean"),
    ({"personas": [broken(PersonaGenerator, generate=giving(Persona("Ada", votes=None)))]},
     "Broken.generate returned a Persona whose votes is NoneType None; expected a valid boolean"),
    ({"casting": broken(Casting, cast=lambda self, debate, personas: [
        Agent(i, replace(p, description=None), "model") for i, p in enumerate(personas)])},
     "Broken.cast returned a Persona whose description is NoneType None; expected a valid string"),
    ({"dataset": broken(Dataset, samples=giving([(Sample("q", "?", choices="AB"), ())]))},
     "Broken.samples gave a Sample whose choices is str 'AB'; expected a valid tuple"),
    ({"metrics": {"m": broken(Metric, score=giving(1e200))}},
     "Broken.score gave 1e+200 for m; expected a number up to 1e+100"),
    ({"metrics": {"m": broken(Metric, score=giving(10**400))}}, "for m; expected a number up to 1e+100"),
])
def test_a_wrong_return_type_says_which_component_returned_what_and_what_was_expected(parts, message):
    assert message in error_of(**parts)


def cyclic():
    found = {}
    found["again"] = found
    return found


@pytest.mark.parametrize("give", [cyclic, lambda: sys.exit(3)])
def test_what_a_metric_reports_for_a_cell_cannot_keep_the_study_from_its_end(give):
    whole = broken(Metric, score=giving(1.0), summarise=lambda self, results: give())
    played = play(replies=lambda request: "A", metrics={"m": whole}, repeats=2)
    assert "summarise raised" in played.problems[0]
    assert len(list(played.store.results("play"))) == 2


@pytest.mark.filterwarnings("ignore")  # the coroutine that the wrapper forgot is never awaited
@pytest.mark.parametrize(("hook", "expected"), [
    ("request", "Request"), ("reply", "Reply"), ("view", "a sequence"), ("complete", "Completion"),
    ("opening", "a sequence")])
def test_a_wrapper_that_forgets_to_return_is_told_what_to_return(hook, expected):
    arguments = {"request": "debate, request", "reply": "debate, turn, view", "view": "debate, turn",
                 "complete": "debate, request", "opening": "debate"}[hook]
    scope: dict = {}
    exec(f"def forgets(self, {arguments}):\n    yield", scope)
    extension = broken(Extension, **{f"madplug_{hook}": hookimpl(wrapper=True)(scope["forgets"])})
    error = error_of(extensions=[extension])
    assert f"the hook 'madplug_{hook}' gave NoneType None; expected {expected}; a wrapper returns the result" in error


class Crashing(PlainStyle):
    """Fails in a method of its own, in a debate or before the first."""

    async def respond(self, debate, turn, view):
        return self.read({})

    def read(self, found):
        return Reply(found["answer"])


class Unprepared(Crashing):
    prepare = Crashing.read


@pytest.mark.parametrize("crashing", [Crashing(), Unprepared()])
def test_an_error_in_a_component_names_the_method_and_the_line(crashing):
    where = rf"\S*test_plugin_mistakes\.{type(crashing).__name__}\.read, test_plugin_mistakes\.py:\d+"
    assert re.search(rf"Error: .* \(in {where}\)", error_of(styles=[crashing]))


def edits(self, debate):
    debate.transcript.messages[0].data["scribe"]["n"] = 2


@pytest.mark.parametrize(("at_end", "message"), [
    (lambda self, debate: debate.transcript.append(Message(0, 1, 0, 0, "improve", "forged", key="F")),
     "a component called transcript.append; only the host changes the record"),
    (lambda self, debate: debate.transcript.retract([0]), "return Review(redo=True) from `madplug_round_ended`"),
    (edits, "a component changed the data of a message on record; make a new one: {**data, ...}")])
def test_a_component_cannot_change_the_record(at_end, message):
    scribe = broken(PlainStyle, respond=giving(Reply("A", data={"scribe": {"n": 1}})))
    assert message in error_of(styles=[scribe], decision=broken(LastRound, at_end=at_end))


def test_a_transcript_of_ones_own_can_be_written():
    debate = debate_from("A B")
    debate.transcript.append(Message(0, 2, 0, 0, "improve", "C", key="C"))
    debate.transcript.retract([0])
    assert [m.key for m in debate.transcript.messages] == ["B", "C"]


def test_data_on_record_reads_pickles_and_copies_like_any_table():
    played = play(styles=[broken(PlainStyle, respond=giving(Reply("A", data={"a": {"b": [1]}})))], agents=1)
    data = played.messages[0].data
    assert data == {"a": {"b": [1]}} == pickle.loads(pickle.dumps(data)) == copy.deepcopy(data)
    assert json.dumps(data) == '{"a": {"b": [1]}}'
    assert {**data["a"], "c": 2} == {"b": [1], "c": 2}


# Hooks of a run

@pytest.mark.parametrize(("body", "message"), [
    ("@hookimpl\n    def madplug_views(self, debate): pass",
     ": implements the hook 'madplug_views', which does not exist; did you mean 'madplug_view'?"),
    ("@hookimpl(specname='madplug_veiw')\n    def madplug_told(self, debate): pass",
     ": implements the hook 'madplug_veiw', which does not exist; did you mean 'madplug_view'?"),
    ("@hookimpl(specname='madplug_view')\n    def madplug_told(self, debate, turn, sink=print): pass", ""),
    ("def madplug_view(self, debate, turn): pass",
     ": 'madplug_view' is not marked with @hookimpl, so it is never called"),
    ("@hookimpl\n    def madplug_view(self, debate, trun): pass",
     ": the hook 'madplug_view' has no argument 'trun'; it has debate, turn"),
])
def test_a_hook_that_would_never_be_called_is_a_problem_of_the_run_file(program, write, body, message):
    write(f"from madplug import Extension, hookimpl\nclass X(Extension):\n    {body}", "mine.py")
    done = program("check", write(RUN + '[[extensions]]\nuse = "./mine.py:X"'))
    assert done.stderr == (f"madplug: extensions[0]: mine.py:X{message}\n" if message else "")


ODD = """
from pydantic import BaseModel, Field
from madplug import Observer, Options, Visibility, hookimpl
from madplug_testing import SeeAll
class Bare(Visibility):
    \"\"\"Has a component for an option.\"\"\"
    name = "bare"
    class Options(Options):
        inner: Visibility = Field(description="what is narrowed down")
    def view(self, debate, turn):
        return ()
class Loose(SeeAll):
    \"\"\"Has options of its own making.\"\"\"
    name = "loose"
    class Options(BaseModel):
        n: int = 1
class Deaf(Observer):
    \"\"\"Misspells an event.\"\"\"
    name = "deaf"
    def debate_finish(self, event):
        pass
@hookimpl
def madplug_register_components():
    return [Bare, Loose, Deaf]
"""


def test_a_component_that_cannot_work_says_so_before_a_run(program, madplug_plugin, write):
    madplug_plugin("odd", ODD)
    listed = program("list", "--problems").stdout
    assert ("Loose.Options is <class 'madplug_odd_under_test.Loose.Options'>; expected a subclass of madplug.Options"
            in listed)
    assert "Deaf.debate_finish is called by no event; did you mean 'debate_finished'?" in listed

    file = write(RUN + '[debate.visibility]\nuse = "odd.bare"\ninner = "odd.bare"\n')
    refused = program("check", file)
    assert refused.returncode in (1, 2)
    assert "madplug_odd_under_test.Bare.Options has an option of a type that no run file can give" in refused.stderr
    assert "`Nested[Visibility]`" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_component_of_a_plugin_that_is_not_installed_is_named_with_what_to_install(program, write):
    refused = program("check", write(RUN), "--set", "debate.turns=absent.turn").stderr
    assert "; if it is an installable plugin: pip install madplug-absent" in refused
    assert "pip install" not in program("check", write(RUN), "--set", "debate.turns=kit.absent").stderr


def test_a_trace_shows_every_hook_call_and_who_was_heard(program, write, tmp_path):
    file = write(RUN.replace("size = 6", "size = 1") + '[[extensions]]\nuse = "kit.shout"')
    assert program("run", file, "--output", "o", "--trace", "--quiet").returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "o" / "log.jsonl").read_text().splitlines()]
    calls = [line for line in lines if line["event"] == "hook"]
    assert {"madplug_samples", "madplug_opening", "madplug_view", "madplug_reply", "madplug_request",
            "madplug_complete", "madplug_round_ended"} <= {call["hook"] for call in calls}
    reply = next(call for call in calls if call["hook"] == "madplug_reply")
    assert (reply["implementations"], reply["gave"]) == (["0.extension.kit.shout", "host"], "coroutine")
    assert (reply["sample"], reply["round"], reply["cell"]) == ("q0000", 1, "main")
    assert program("run", file, "--output", "p", "--quiet").returncode == 0
    assert "madplug_view" not in (tmp_path / "p" / "log.jsonl").read_text()
    assert program("run", write(), "--output", "q", "--trace", "--quiet").returncode == 0
    assert '"implementations":["host"]' in (tmp_path / "q" / "log.jsonl").read_text().replace(": ", ":")


# Another madplug

def test_a_plugin_built_for_another_madplug_gets_a_clear_answer_and_is_not_imported(program, madplug_plugin):
    for name, source, needs in (("old", "raise SystemError('imported')", "madplug>=0.0.1,<0.1"), (
            "good", "", "madplug>=0.1,<0.2\nRequires-Dist: madplug-x; extra == 'x'")):
        metadata = madplug_plugin(name, source) / f"madplug_{name}-1.0.dist-info" / "METADATA"
        metadata.write_text(f"{metadata.read_text()}Requires-Dist: {needs}\n")
    assert program("list", "--problems").stdout == (
        "problem: madplug-old 1.0: plugin 'old': is built for madplug <0.1,>=0.0.1, and this is 0.1.0; pip install "
        "--upgrade madplug madplug-old\n")


@pytest.mark.parametrize(("given", "message"), [
    (Reply(5), "the hook 'madplug_reply' gave a Reply whose content is int 5; expected a valid string"),
    (Reply("A", data={1: 2}), "a Reply whose data[1].[key] is int 1; expected a valid string"),
])
def test_a_reply_of_a_wrapper_is_checked_like_that_of_a_style(given, message):
    def wrapper(self, debate, turn, view):
        (yield).close()
        return giving(given)(self)

    extension = broken(Extension, madplug_reply=hookimpl(wrapper=True)(wrapper))
    assert message in error_of(extensions=[extension])


def test_what_can_be_converted_is_converted():
    loose = broken(PlainStyle, respond=giving(Reply("A", confidence="0.5")))
    counted = broken(LastRound, at_end=giving(Decision("A", votes=[Vote("0", {"A": "1"})])))
    played = play(styles=[loose], decision=counted, agents=1)
    assert (played.messages[0].confidence, played.decision.votes) == (0.5, (Vote(0, {"A": 1}),))


@pytest.mark.parametrize(("rows", "said"), [([1], "int 1; expected a Sample"), (5, "int 5; expected a generator")])
def test_samples_of_a_hook_are_checked_in_its_name(rows, said):
    def wrapper(self, setup):
        yield
        return rows

    extension = broken(Extension, madplug_samples=hookimpl(wrapper=True)(wrapper))
    assert f"the hook 'madplug_samples' gave {said}" in error_of(extensions=[extension])
