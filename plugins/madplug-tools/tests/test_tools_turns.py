"""Turns with tools."""

import json

import pytest

from madplug import Completion, Passage, Service, Usage
from madplug.debate.cell import BoundStyle
from madplug.store import MemoryStore
from madplug_testing import PlainStyle, debate_from, play
from madplug_tools import Calculator, Function, Pool, Result, Tool, Use, Verifier, With
from madplug_tools.requests import describe
from madplug_tools.tool import schema, text_argument


def block(name, **arguments):
    return f"```tool\n{json.dumps({'name': name, 'arguments': arguments})}\n```"


class Lookup(Tool):
    """Looks a word up."""

    name = "lookup"

    def __init__(self, options=None, **values):
        super().__init__(options, **values)
        self.asked = []

    def functions(self, name):
        return [Function("lookup", "Looks a word up.", schema(word="the word"))]

    async def call(self, debate, function, arguments):
        word = text_argument(arguments, "word")
        self.asked.append(word)
        return Result(f"about {word}", "words.txt:1")


class Changing(Lookup):
    """Changes something."""

    repeatable = False


def run(replies, tool=None, *, style=None, more=(), **options):
    """Play one turn with a tool."""
    options = {"style": style or PlainStyle(), "tools": ("words",), **options}
    return play(replies=replies, styles=[With(**options)], agents=1, more={"tools": {"words": tool or Lookup()}},
                **dict(more))


def test_a_turn_goes_on_until_the_model_answers():
    tool = Lookup()
    written_on = block("lookup", word="x").replace("\n```", "\nFinal answer: B\n```")
    both = f"Let me see.\n{block('lookup', word='mind')}\n{written_on}"
    played = run([block("lookup", word="gap"), both, "A"], tool)
    assert tool.asked == ["gap", "mind", "x"]
    assert [m.content for m in played.messages] == ["A"]
    last = played.requests[-1].messages
    assert [m["role"] for m in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert last[0]["content"].endswith("""
- lookup: Looks a word up.
  {"name": "lookup", "arguments": {"word": "..."}}
  word (string): the word""")
    assert last[3]["content"].startswith("Result of lookup (words.txt:1).")
    assert "> about gap" in last[3]["content"]
    assert last[5]["content"].index("> about mind") < last[5]["content"].index("> about x")
    call = played.messages[0].data["tools"]["calls"][0]
    assert call == {"name": "lookup", "arguments": {"word": "gap"}, "result": "about gap", "characters": 9,
                    "source": "words.txt:1", "seconds": call["seconds"], "error": False}


def test_arguments_that_are_more_than_plain_values_are_told_by_their_schema():
    plain = {"type": "object", "properties": {"n": {"type": "integer"}, "by": {"type": "string"}}, "required": ["n"]}
    nested = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "string"}}}}
    assert describe([Function("f", "Does.", plain), Function("g", "Sorts.", nested)]) == f"""- f: Does.
  {{"name": "f", "arguments": {{"n": "...", "by": "..."}}}}
  n (integer)
  by (string, may be left out)
- g: Sorts. Arguments: {json.dumps(nested)}"""


def test_after_the_last_call_the_model_has_to_answer():
    played = run([block("lookup", word="a"), block("lookup", word="b") + block("lookup", word="c"), "B"], most_calls=2)
    told = played.requests[-1].messages[-1]["content"]
    assert "> There are no calls left." in told
    assert told.endswith("There are no calls left. Answer now.")
    assert (played.messages[0].content, len(played.messages[0].data["tools"]["calls"])) == ("B", 2)
    again = run([block("lookup", word="a"), f"C\n{block('lookup', word='b')}"], most_calls=1)
    assert again.messages[0].content == "C"


@pytest.mark.parametrize(("show", "content"), [
    ("message", "A"), ("calls", '[lookup {"word":"gap"}]\nA'), ("results", '[lookup {"word":"gap"}]\n> about gap\nA')])
def test_what_others_see_of_it(show, content):
    assert run([block("lookup", word="gap"), "A"], show=show).messages[0].content == content


@pytest.mark.parametrize(("kind", "times", "told"), [
    (Lookup, 2, "> about gap"), (Changing, 1, "> The call was interrupted and is not made again")])
def test_a_call_that_was_interrupted_is_made_again_only_if_it_may_be(kind, times, told):
    store, tool = MemoryStore(), kind()

    async def dies(debate, function, arguments):
        tool.asked.append("gap")
        raise KeyboardInterrupt

    tool.call = dies
    with pytest.raises(KeyboardInterrupt):
        run([block("lookup", word="gap")], tool, more={"store": store})
    del tool.call
    played = run(["A"], tool, more={"store": store})
    assert told in played.requests[-1].messages[-1]["content"]
    assert len(tool.asked) == times


CALLS = [{"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{\"word\": \"gap\"}"}},
         {"function": {"name": "lookup", "arguments": "{"}}, 7]


def test_native_calls_are_answered_in_order_each_by_its_id():
    replies = iter([Completion("", Usage(1, 1, raw={"tool_calls": CALLS})), "A"])
    played = run(lambda request: next(replies), form="native")
    first, second = played.requests
    assert first.params["tools"][0]["function"]["name"] == "lookup"
    assert [(m["role"], m.get("tool_call_id")) for m in second.messages] == [
        ("user", None), ("assistant", None), ("tool", "c1"), ("tool", "call_1")]
    assert "not JSON" in second.messages[3]["content"]
    assert played.messages[0].content == "A"


@pytest.mark.parametrize(("expression", "value"), [
    ("1/3 + 1/6", "0.5"), ("2 ** 100", "1267650600228229401496703205376"), ("10 / 3", "10/3 = 3.33333333333"),
    ("0.1 + 0.2", "0.3"), ("-7 // 2", "-4"), ("-7 % 3", "2"), ("sqrt(2.25)", "1.5"), ("(3+4)*12", "84"),
    ("2^10", "1024"), *((expression, None) for expression in (
        "1/0", "9**9**9", "__import__('os')", "sqrt(2)", "sqrt(-1)", "x", "1 if 1 else 2", "'a'*9", "(" * 500, "True",
        "2**0.5", "1e999999999", "lambda: 1"))])
def test_the_calculator_is_exact_and_works_out_nothing_else(expression, value):
    [call] = run([block("words", expression=expression), "A"], Calculator()).messages[0].data["tools"]["calls"]
    assert call["error"] if value is None else call["result"] == value


def test_a_verifier_checks_what_the_others_said_last_and_gives_no_answer():
    people = pytest.importorskip("madplug_personas")
    order = pytest.importorskip("madplug_turns").Simultaneous()
    personas = [people.Neutral(description="You check facts."), people.NoPersona()]
    styles = [BoundStyle(Verifier(), "tools.verifier", ("neutral",)), PlainStyle()]
    played = play(replies={0: ["- 6 * 7 is 42", "- 6 * 7 is not 41"], 1: ["41", "42"], 2: ["42", "42"]}, styles=styles,
                  agents=3, rounds=2, personas=personas, turns=order, sample="What is 6 * 7?")
    assert [m.agent for m in played.messages] == [0, 1, 2, 0, 1, 2]
    assert [m.answer for m in played.messages] == ["", "41", "42", "", "42", "42"]
    first, second = (r.messages for r in played.requests if r.agent == 0)
    assert "What is 6 * 7?" in first[1]["content"]
    assert "> 41\n" in second[1]["content"]
    assert second[0]["content"] == "You check facts."
    assert played.decision.answer == "42"


class Shelf(Service):
    """Finds the same passages for every question."""

    asked = 0

    async def retrieve(self, query, k):
        self.asked += 1
        return [Passage("The lamp was lit in 1871.", "hay.md:3"), Passage("It rains.\nAnswer B!", "rain.md:1")]


@pytest.mark.parametrize(("choice", "shown"), [
    ("[1] could help, but [2] and [9] not. So [2].", ["rain.md:1"]), ("It helps: [1].", ["hay.md:3"]),
    ("[none]", []), ("Neither.", []), ("[1] [2] [1]", ["hay.md:3"])])
def test_an_agent_is_shown_the_passages_that_it_chose_from_the_pool(choice, shown):
    shelf = Shelf()
    played = play(replies=[choice, "A", "[none]", "B"], agents=1, rounds=2, services={"shelf": shelf},
                  extensions=[Pool(retrievers=["shelf"], most=1)])
    choosing, answering, again, _ = played.prompts
    assert "[1] hay.md:3\n> The lamp was lit in 1871." in choosing
    assert "[2] rain.md:1\n> It rains.\n> Answer B!" in choosing
    assert ["what you said last:\n\n> A" in prompt for prompt in (choosing, again)] == [False, True]
    assert [source for source in ("hay.md:3", "rain.md:1") if source in answering] == shown
    assert [m.data["tools"]["passages"] for m in played.messages] == [shown, []]
    assert (shelf.asked, played.result.unread) == (1, choice == "Neither.")
    played = run([choice, block("lookup", word="gap"), "A"], more={  # shown once where tools are used, too
        "extensions": [Pool(retrievers=["shelf"], most=1)], "services": {"shelf": shelf}})
    assert [prompt.count("The lamp was lit") for prompt in played.prompts[1:]] == ["hay.md:3" in shown] * 2
    assert played.messages[0].data["tools"]["calls"][0]["name"] == "lookup"


def test_the_metric_sets_turns_with_tools_beside_turns_without():
    used = {"tools": {"calls": [{"name": "lookup", "error": False}, {"name": "lookup", "error": True}]}}
    debate = debate_from("AB BB", references=["B"], data=[{}, {}, used, {}])
    assert Use().score(debate, ["B"]) == {
        "calls": 2 / 4, "errors": 1 / 2, "changed": 1.0, "right_with": 1.0, "right_without": 2 / 3}
    assert Use().score(debate_from("AB"), []) == {
        "calls": 0.0, "errors": None, "changed": None, "right_with": None, "right_without": None}
