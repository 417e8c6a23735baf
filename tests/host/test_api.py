"""Studies from Python: run and resumed as with the command, in scripts and inside a running event loop."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from copy import deepcopy
from dataclasses import replace

import pytest
from tests_support import RUN, made, paid

import madplug
from madplug import (
    AccessError,
    Completion,
    Dataset,
    Decision,
    DecisionProtocol,
    Metric,
    Model,
    Observer,
    Sample,
    Usage,
    UserError,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STUDY = tomllib.loads(RUN)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Longest(DecisionProtocol):
    def at_end(self, debate):
        return Decision("long", reason="a class without a plugin")


class Said(Metric):
    def score(self, debate, references):
        return float(len(debate.transcript.messages))


def test_a_run_file_and_a_mapping_give_the_same_study_as_the_command(write, program, tmp_path):
    program("run", write(), "--output", "cli")
    results = [madplug.run(write(), output="file"), madplug.run(str(write()), output="text"),
               madplug.run(STUDY, output=tmp_path / "mapping")]
    for result in results:
        assert result.status == "finished"
        assert result.metrics == results[0].metrics
        with madplug.open_study("cli") as study, result.open() as own:
            assert [r.messages for r in study.debates()] == [r.messages for r in own.debates()]
    assert madplug.run(STUDY).folder.as_posix() == "runs/study"


def test_a_study_prints_as_the_command_prints_it_and_a_debate_in_a_line_for_each_round(write, program):
    result = madplug.run(STUDY)
    assert program("run", write(RUN)).stdout.startswith(f"{result}\n")
    assert repr(result) == f"StudyResult(folder={result.folder!r})"
    debate = result.debates()[0]
    lines = str(debate).splitlines()
    assert lines[0].endswith(debate.sample.question)
    assert [line.split(":")[0] for line in lines[1:]] == [*(f"round {n + 1}" for n in range(debate.rounds)), "decided"]
    assert "\nfailed: \N{REPLACEMENT CHARACTER}no model" in str(replace(debate, error="\u202eno model"))


def test_settings_are_values_by_dotted_key():
    settings = {"debate.rounds": 1, "dataset.size": 3, 'sweep."debate.agents"': (2, 3)}
    before = deepcopy(STUDY)
    result = madplug.run(STUDY, settings=settings)
    assert list(result.metrics) == ["agents=2", "agents=3"]
    assert len(result.debates()) == 6
    assert {d.rounds for d in result.debates("agents=3")} == {1}
    assert before == STUDY, "what was passed is not changed"


def test_classes_of_the_session_need_no_plugin_and_observers_receive_the_events():
    finished = []
    observer = made(Observer, debate_finished=lambda self, event: finished.append(event))
    study = {**STUDY, "debate": {**STUDY["debate"], "decision": "Longest"}, "metrics": ["Said", {"use": "python:Said"}]}
    result = madplug.run(study, components=[Longest, Said], observers=[observer])
    assert len(finished) == 6
    assert {d.decision.key for d in result.debates()} == {"long"}
    assert result.metrics["main"] == {"python:Said": 4.0, "python:Said#2": 4.0}
    manifest = (result.folder / "manifest.json").read_text()
    assert '"decision python:Longest"' in manifest
    assert "sha256" in manifest


@pytest.mark.parametrize(("components", "decision", "words"), [
    ([Longest], "Longst", "did you mean 'Longest'?"), ([Said], "Said", "'Said' is a metric, not a decision protocol"),
    ([3], "Longest", "components: 3 is not a class of component")])
def test_mistakes_are_user_errors(components, decision, words):
    with pytest.raises(UserError) as error:
        madplug.run({**STUDY, "debate": {**STUDY["debate"], "decision": decision}}, components=components)
    assert words in str(error.value)


def test_all_problems_come_at_once_and_no_directory_is_made(tmp_path):
    with pytest.raises(UserError) as error:
        madplug.run(STUDY, settings={"debate.rouns": 3, "models.m.latency": "long"})
    assert len(error.value.problems) == 2
    assert not list(tmp_path.iterdir())


def test_run_can_be_called_inside_a_running_loop():
    async def cell(settings):
        return madplug.run(STUDY, settings=settings)

    assert asyncio.run(cell({})).status == "finished"
    with pytest.raises(UserError):
        asyncio.run(cell({"debate.rouns": 3}))


NOTEBOOK = """
class Same(madplug.Metric):
    scale = 1.0

    def score(self, debate, references):
        return {} * self.scale
"""


def in_a_cell(text):
    """The class of a notebook's cell, which is in no file."""
    names = {"madplug": madplug, "__name__": "a_notebook"}
    exec(text, names)
    return names["Same"]


@pytest.mark.parametrize(("text", "warned"), [
    (NOTEBOOK.format(1), False), ("print()\n" + NOTEBOOK.format(1), False), (NOTEBOOK.format(0), True),
    (NOTEBOOK.format(1).replace("scale = 1.0", "scale = 2.0"), True)])
def test_a_class_that_has_changed_in_a_notebook_is_a_warning(text, warned):
    study = {**STUDY, "metrics": [{"use": "Same"}]}
    madplug.run(study, components=[in_a_cell(NOTEBOOK.format(1))])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        madplug.run(study, components=[in_a_cell(text)])
    assert any("debates on record are scored again" in str(warning.message) for warning in found) == warned


def wait_until(holds):
    while not holds():
        time.sleep(0.01)


SLOW = {"models.m.latency": 0.5, "models.m.ledger": "calls.txt", "dataset.size": 200, "models.m.max_in_flight": 8}


class Counted(Model):
    """Counts the requests that are made, answered or not."""

    name = "counted"
    made = 0

    async def complete(self, request):
        Counted.made += 1
        await asyncio.sleep(0.3)
        return Completion("A", Usage(1, 1))


@pytest.fixture
def counted():
    Counted.made = 0
    return {**STUDY, "models": {"m": {"use": "Counted", "max_in_flight": 8}}}


@pytest.mark.parametrize("times", [1, 5])
def test_a_cancelled_task_keeps_every_call_in_flight(counted, times):
    """However often it is cancelled, as by the scopes of anyio."""
    async def main():
        task = asyncio.ensure_future(madplug.arun(counted, components=[Counted]))
        await asyncio.to_thread(wait_until, lambda: Counted.made >= 6)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    with madplug.open_study("runs/study") as study:
        assert study.totals().calls == Counted.made >= 6


def test_a_task_that_is_cancelled_before_the_first_call_makes_none(counted):
    async def main():
        task = asyncio.ensure_future(madplug.arun(counted, components=[Counted]))
        for _ in range(2):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert Counted.made == 0


@pytest.mark.parametrize("inside", [False, True])
def test_an_interrupt_keeps_every_call_in_flight_and_is_raised(tmp_path, inside):
    def interrupt():
        wait_until(lambda: paid(tmp_path) >= 4)
        os.kill(os.getpid(), signal.SIGINT)

    async def cell():
        return madplug.run(STUDY, settings=SLOW)

    handler = signal.getsignal(signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell()) if inside else madplug.run(STUDY, settings=SLOW)
    assert signal.getsignal(signal.SIGINT) is handler
    with madplug.open_study("runs/study") as study:
        assert study.totals().calls == paid(tmp_path)


def test_a_program_may_change_its_directory_while_a_study_runs(tmp_path):
    async def elsewhere():
        settings = {**SLOW, "dataset.size": 6}
        run = asyncio.ensure_future(madplug.arun(STUDY, settings=settings, output="here", quiet=True))
        await asyncio.sleep(0.2)
        (tmp_path / "elsewhere").mkdir()
        os.chdir(tmp_path / "elsewhere")
        return await run

    assert asyncio.run(elsewhere()).status == "finished"
    assert (tmp_path / "here" / "summary.json").exists()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_limit_and_a_failure_are_a_status_and_the_summary_says_what_was_paid(tmp_path):
    result = madplug.run(STUDY, settings={"models.m.ledger": "calls.txt", "limits.calls": 5})
    with result.open() as study:
        assert result.summary["paid"]["calls"] == study.totals().calls == paid(tmp_path)
    assert result.status == "stopped"
    few = madplug.run(STUDY, settings={"models.m.max_in_flight": 3, "models.m.latency": 0.001, "limits.calls": 12},
                      output="few")
    assert few.summary["cells"][0]["done"] >= 2, "what was paid for is whole debates"
    assert madplug.run(STUDY).summary["paid"]["cost_usd"] is None, "the price is unknown"
    priced = {"models.m.price": {"prompt": 1.0, "completion": 1.0}}
    assert madplug.run(STUDY, settings=priced, output="priced").summary["paid"]["cost_usd"] > 0
    result = madplug.run(STUDY, settings={"models.m.fault": "refuse"}, output="other")
    assert (result.status, result.summary["cells"][0]["failed"]) == ("failed", 6)
    assert "6 failed: 400 content filter" in str(result)


def test_no_plugin_and_nothing_heavy_is_imported_by_the_package_or_to_look_at_a_study():
    everything = ["pydantic", "rich", "structlog", "click", "asyncio", "madplug_kit", "sqlite3"]
    for used, heavy in (("madplug", everything),
                        ("madplug.run, madplug.StudyResult", ["IPython", "matplotlib", "aiohttp"]),
                        ("madplug.open_study", ["pydantic", "rich", "asyncio"])):
        code = f"import sys, madplug; {used}; print([m for m in {heavy} if m in sys.modules])"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_studies_that_run_at_the_same_time_have_and_log_what_is_theirs(tmp_path):
    async def both():
        return await asyncio.gather(*(madplug.arun(
            STUDY, settings={"name": f"s{i}", "models.m.latency": 0.01 * i, "models.m.letters": "ABC"[i]},
            output=tmp_path / f"s{i}", quiet=True) for i in range(3)))

    for i, result in enumerate(asyncio.run(both())):
        assert [debate.decision.key for debate in result.debates()] == ["ABC"[i]] * 6
        logged = [json.loads(line) for line in (tmp_path / f"s{i}" / "log.jsonl").read_text().splitlines()]
        assert [(line["event"], line.get("study")) for line in logged] == [("run", f"s{i}"), ("ended", None)]


class Surrogate(Dataset):
    answers = "kit.stripped"

    def samples(self, split=None):
        yield Sample("fine", "?"), ()
        yield Sample("\ud800", "?"), ()


@pytest.mark.parametrize(("arguments", "words"), [
    ({"observers": [3]}, "observers: 3 is not an observer"),
    ({"observers": [Observer]}, "is not an observer"),
    ({"observers": [None]}, "observers: None is not an observer"),
    ({"output": "a\0b"}, "cannot be used: .*embedded null"),
    ({"source": "x" * 5000}, "cannot be read: File name too long")])
def test_arguments_that_cannot_be_used_are_user_errors(arguments, words):
    with pytest.raises(UserError, match=words):
        madplug.run(**{"source": STUDY, **arguments})


def test_an_id_that_cannot_be_stored_is_refused_before_anything_is_paid(tmp_path):
    with pytest.raises(madplug.StudyError, match="has a character that cannot be stored"):
        madplug.run({**STUDY, "dataset": "Surrogate"}, components=[Surrogate],
                    settings={"models.m.ledger": "calls.txt"})
    assert not (tmp_path / "calls.txt").exists()


def test_a_cell_of_any_text_can_be_stored():
    result = madplug.run({**STUDY, "sweep": {"models.m.letters": ["AB", "A\ud800"]}})
    assert list(result.metrics) == ["letters=AB", "letters=A?"]


class Refused(Model):
    async def complete(self, request):
        raise AccessError("incorrect key: " + os.environ["LAB_API_KEY"])


class Closed(Model):
    def open(self):
        raise RuntimeError("bad key " + os.environ["LAB_API_KEY"])

    async def complete(self, request):
        return Completion("A")


@pytest.mark.parametrize("model", [Refused, Closed])
def test_why_a_study_ended_says_no_secret(model, monkeypatch, capsys):
    """An endpoint that echoes the key it refuses."""
    monkeypatch.setenv("LAB_API_KEY", "sk-lab-0123456789")
    result = madplug.run({**STUDY, "models": {"m": {"use": model.__name__}}}, components=[model])
    assert result.status == "failed"
    assert "[secret]" in (result.folder / "summary.json").read_text()
    written = b"".join(path.read_bytes() for path in result.folder.rglob("*") if path.is_file())
    assert b"0123456789" not in written + "".join(capsys.readouterr()).encode()


def test_check_and_list_components_are_what_the_commands_tell_as_data(write, program):
    found, said = madplug.check(write()), program("check", write()).stdout
    assert [str(value) for cell in found["cells"] for value in cell.values()] == said.splitlines()[1].split()
    assert all(note in said for note in found["notes"])
    listed = json.loads(program("list", "decisions", "--json").stdout)["components"]
    assert madplug.list_components("decision") == listed
    assert "kit.last_round" in [component["name"] for component in listed]
    with pytest.raises(madplug.UserError, match="no kind or plugin 'decisoin'; did you mean 'decision'"):
        madplug.list_components("decisoin")
