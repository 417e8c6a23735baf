"""A study whose agents search, compute and ask an MCP server: real processes, a real endpoint, a real server."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

import madplug
from madplug import open_study
from madplug_testing.endpoint import running_endpoint
from madplug_tools import Function, Mcp, Result, Tool

for needed in ("mcp", "madplug_retrieval", "madplug_sandbox", "madplug_openai"):
    pytest.importorskip(needed)

SERVER = """
import sys
from mcp.server import MCPServer
server = MCPServer("numbers", log_level="CRITICAL")

@server.tool()
def add(a: int, b: int) -> int:
    "Adds two numbers."
    with open(sys.argv[1], "a") as file:
        print(a, b, file=file)
    return a + b

@server.tool()
def fail() -> int:
    "Fails."
    raise ValueError("out of numbers")

server.run()
"""
STUDY = """
name = "evidence"
dataset = {{use = "puzzles.ordering", size = 2}}
models.small = {{use = "openai.chat", model = "small", base_url = "{url}"}}
services.library = {{use = "retrieval.bm25", path = "books"}}
services.sandbox = {{use = "sandbox.monty"}}
metrics = ["tools.use"]
[tools]
search = {{use = "tools.search", retriever = "library"}}
python = {{use = "tools.python", sandbox = "sandbox"}}
numbers = {{use = "tools.mcp", server = "{python} server.py calls.txt"}}
[debate]
paradigm = "som.debate"
agents = 3
rounds = 2
[[debate.styles]]
use = "tools.with"
style = "som.exchange"
tools = ["search", "python", "numbers"]
form = "{form}"
"""
STEPS = [("search", {"query": "rivers"}), ("python", {"program": "print(6 * 7)"}), ("add", {"a": 20, "b": 22}),
         ("fail", {})]


def answer(body):
    """One call after the other, then the answer."""
    done = sum(m["role"] == "tool" or "Result of " in str(m.get("content")) for m in body["messages"])
    if done == len(STEPS):
        return "Final answer: B"
    name, arguments = STEPS[done]
    if "tools" not in body:
        return f"```tool\n{json.dumps({'name': name, 'arguments': arguments})}\n```"
    call = {"id": f"c{done}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"id": "1", "model": "small", "usage": {"prompt_tokens": 7, "completion_tokens": 3}, "choices": [
        {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}


@pytest.fixture
def folder(tmp_path):
    """A folder with the server, and with something to search."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "rivers.md").write_text("The Danube is one of the rivers of Vienna.")
    return tmp_path


@pytest.fixture
def start(folder):
    """Starts `madplug run` on the study in a process of its own."""
    def start(url, form):
        (folder / "study.toml").write_text(STUDY.format(url=url, form=form, python=sys.executable))
        command = [sys.executable, "-m", "madplug", "run", "study.toml", "--output", "out"]
        return stack.enter_context(subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE,
                                                    stderr=subprocess.STDOUT))

    with ExitStack() as stack:
        yield start


@pytest.mark.parametrize("form", ["text", "native"])
def test_a_study_with_tools_calls_nothing_twice_also_when_it_is_killed_and_resumed(start, folder, form):
    with running_endpoint(answer, latency_ms=10) as endpoint:
        process = start(endpoint.url, form)
        while form == "text" and endpoint.stats()["requests"] < 15 and process.poll() is None:
            time.sleep(0.01)
        if form == "text":
            process.kill()
            process.wait()
            process = start(endpoint.url, form)
        printed, _ = process.communicate()
        assert process.returncode == 0, printed
    with open_study(folder / "out") as reader:
        debates, calls = list(reader.debates()), sum(1 for _ in reader.calls())
    turns = [m for d in debates for m in d.messages]
    assert (len(turns), calls, {m.answer for m in turns}) == (12, 12 * 5, {"B"})
    made = [[(c["name"], c["result"].strip().split("\n")[-1], c["source"], c["error"])
             for c in m.data["tools"]["calls"]] for m in turns]
    expected = [("search", "The Danube is one of the rivers of Vienna.", "rivers.md:1", False),
                ("python", "42", "", False), ("add", "42", "", False)]
    cut_off = "The call was interrupted and is not made again; it may have had its effect."
    assert all(step in (wanted, (wanted[0], cut_off, "", True)) for steps in made
               for step, wanted in zip(steps[:3], expected, strict=True))
    assert all(steps[3][0] == "fail" and steps[3][3] for steps in made)
    # A call that was under way when the process was killed is not made again: its server may have done its work.
    interrupted = sum(step[1] == cut_off for steps in made for step in steps)
    assert 12 - interrupted <= len((folder / "calls.txt").read_text().splitlines()) <= 12
    assert form == "text" or not interrupted
    assert [debates[0].metrics[f"tools.use.{name}"] for name in ("calls", "changed")] == [4.0, 0.0]


class Tally(Tool):
    """Counts how often it was called."""

    name = "tally"
    called = 0

    def functions(self, name):
        return [Function(name, "Counts.")]

    async def call(self, debate, function, arguments):
        Tally.called += 1
        return Result("counted")


def test_a_limit_on_calls_of_tools_stops_the_study_and_counts_those_of_earlier_runs(tmp_path):
    def reply(body):
        counted = "Result of" in str(body["messages"][-1]["content"])
        return "Final answer: B" if counted else '```tool\n{"name": "tally"}\n```'

    style = {"use": "tools.with", "style": "som.exchange", "tools": ["tally"]}
    study = {"dataset": {"use": "puzzles.ordering", "size": 3}, "tools": {"tally": {"use": "Tally"}},
             "debate": {"paradigm": "som.debate", "agents": 2, "styles": [style]}}
    ends = []
    with running_endpoint(reply) as endpoint:
        study["models"] = {"m": {"use": "openai.chat", "model": "m", "base_url": endpoint.url}}
        for most in (5, 5, 7, 99):
            done = madplug.run(study, output=tmp_path / "out", settings={"limits.tool_calls": most}, quiet=True,
                               components=[Tally])
            ends.append((done.status, Tally.called))
    assert ends == [("stopped", 5), ("stopped", 5), ("stopped", 7), ("finished", 3 * 2 * 2)]


@pytest.mark.parametrize(("command", "setting", "problem"), [
    ("check", "limits.tool_calls=2.5", "limits.tool_calls: expected a whole number"),
    ("check", "limits.tool_cals=5", "limits.tool_cals: nothing in this study counts that; did you mean 'tool_calls'?"),
    ("check", "tools.numbers.server=no-such-program -v", "the program 'no-such-program' of 'server' is not installed"),
    ("check", "tools.numbers.server=a ' b", "'server' is not a command line: No closing quotation"),
    ("check", 'debate.styles.0.tools=["serch"]', "there is no [tools.serch]; did you mean 'search'?"),
    ("check", 'debate.styles.0.tools=["python", "python"]', "the tool 'python' is named twice"),
    ("check", 'debate.styles.0.style={use="tools.with", style="som.exchange", tools=["python"]}', "all tools in one"),
    ("run", "tools.numbers.server=http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp: cannot be reached"),
    ("run", 'tools.numbers.only=["ad"]', "the server has no tool 'ad'; did you mean 'add'?"),
    ("run", 'tools.python={use="tools.mcp", server="{python} server.py"}', "offered by [tools.python] already")])
def test_what_can_never_be_used_is_told_before_anything_is_paid(program, folder, command, setting, problem):
    (folder / "study.toml").write_text(STUDY.format(url="http://127.0.0.1:9/v1", form="text", python=sys.executable))
    done = program(command, "study.toml", "--set", setting.replace("{python}", sys.executable), status=2)
    assert problem in done.stderr + done.stdout


def test_a_server_needs_the_sdk(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert list(Mcp(server="http://127.0.0.1:9/mcp").check(None)) == [
        "tools.mcp needs the MCP SDK: pip install 'madplug-tools[mcp]'"]
