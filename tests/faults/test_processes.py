"""Studies whose debates run in several processes: equal results, and nothing lost when a process is killed.

    KILLS=20 pytest tests/faults/test_processes.py -k kill      kills a worker at 20 moments, and the driver at 20
"""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from madplug_testing.endpoint import running_endpoint
from tests.faults import studies

pytest.importorskip("madplug_processes", reason="madplug-processes is not installed")
IN_FLIGHT = 20
KILLS = int(os.environ.get("KILLS", "1"))
SETTINGS = ("dataset.size=40", f"models.m.max_in_flight={IN_FLIGHT}", 'execution={use="processes.pool", workers=2}')


def workers_of(process):
    """The process ids of its workers."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = status.parent.name, status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(rest[1]) == process.pid and rest[0] != "Z":
            found.append(int(pid))
    return found


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The study, run in one process."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    with running_endpoint(text="{letter}") as endpoint:
        assert studies.run(folder, endpoint.url, "dataset.size=40") == 0
        requests = endpoint.stats()["requests"]
    return studies.debates(folder), studies.summary(folder), requests


def test_a_limit_is_kept_across_processes(tmp_path):
    with running_endpoint(text="{letter}") as endpoint:
        assert studies.run(tmp_path / "study", endpoint.url, *SETTINGS, "limits.calls=50") == 3
        assert endpoint.stats()["requests"] == 50
        assert studies.run(tmp_path / "study", endpoint.url, *SETTINGS) == 0
        assert endpoint.stats()["requests"] == endpoint.stats()["ok"] == 160


@pytest.fixture
def endpoint(tmp_path):
    """An endpoint that takes a while to answer."""
    with studies.EndpointProcess(tmp_path, "--latency-ms", 40, "--text", "{letter}") as endpoint:
        yield endpoint


def begin(folder, endpoint, calls, settings=SETTINGS):
    """Start the study, and wait until so many calls were answered; the process and its workers."""
    study = studies.start(folder, endpoint.url, *settings)
    studies.wait_until(lambda: len(endpoint.answered()) > calls)
    studies.wait_until(lambda: len(workers_of(study)) == 2)
    return study, workers_of(study)


def check_end(study, folder, endpoint, whole, again=IN_FLIGHT):
    """It ends with the results of a study in one process, and few calls were paid again; what it said."""
    _, errors = study.communicate(timeout=120)
    assert study.returncode == 0, errors
    answered = endpoint.answered()
    assert len(studies.calls(folder)) == len(set(answered)) == whole[2]
    print(f"{len(answered) - whole[2]} calls paid again")
    assert len(answered) - whole[2] <= again
    assert studies.debates(folder) == whole[0]
    assert studies.summary(folder) == whole[1]
    return errors


@pytest.mark.parametrize("number", range((KILLS + 1) // 2))
def test_the_debates_of_killed_workers_are_run_again_and_calls_in_flight_at_most_are_paid_twice(tmp_path, endpoint,
                                                                                                whole, number):
    folder = tmp_path / "study"
    study, workers = begin(folder, endpoint, 10 + number)
    os.kill(random.choice(workers), signal.SIGKILL)
    studies.wait_until(lambda: len(endpoint.answered()) > 90 + 3 * number)  # a debate that is lost three times fails
    studies.wait_until(lambda: len(workers_of(study)) == 2)
    os.kill(random.choice(workers_of(study)), signal.SIGKILL)
    check_end(study, folder, endpoint, whole, 2 * IN_FLIGHT)
    assert "was killed by SIGKILL" in (folder / "log.jsonl").read_text()


@pytest.mark.parametrize("number", range(KILLS))
def test_no_worker_outlives_a_killed_driver_and_the_study_is_resumed(tmp_path, endpoint, whole, number):
    study, workers = begin(tmp_path / "study", endpoint, 40 + 5 * number)
    study.kill()
    study.communicate()
    studies.wait_until(lambda: not any(map(is_alive, workers)))
    study = studies.start(tmp_path / "study", endpoint.url, *SETTINGS)
    check_end(study, tmp_path / "study", endpoint, whole)


def test_the_debates_of_workers_that_stand_still_are_run_again_and_they_are_ended(tmp_path, endpoint, whole):
    study, stopped = begin(tmp_path / "study", endpoint, 10, (*SETTINGS, "execution.silence=10"))
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    assert "stood still for 10 s; " in check_end(study, tmp_path / "study", endpoint, whole)
    assert not any(map(is_alive, stopped))


@pytest.mark.parametrize("numbers", [[signal.SIGKILL], [signal.SIGINT, signal.SIGINT]])
def test_no_worker_that_stands_still_outlives_its_driver(tmp_path, endpoint, numbers):
    study, workers = begin(tmp_path / "study", endpoint, 10)
    os.kill(workers[0], signal.SIGSTOP)
    for number in numbers:
        study.send_signal(number)
        time.sleep(0.5)
    study.communicate(timeout=60)
    studies.wait_until(lambda: not any(map(is_alive, workers)))


def test_a_driver_that_stood_still_itself_loses_no_worker(tmp_path, endpoint, whole):
    study, _ = begin(tmp_path / "study", endpoint, 10, (*SETTINGS, "execution.silence=3"))
    os.kill(study.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(study.pid, signal.SIGCONT)
    assert "stood still" not in check_end(study, tmp_path / "study", endpoint, whole, again=0)


def test_an_interrupt_waits_for_calls_in_flight_and_loses_none(tmp_path, endpoint, whole):
    study, workers = begin(tmp_path / "study", endpoint, 40)
    for pid in (study.pid, *workers):  # as a terminal does
        os.kill(pid, signal.SIGINT)
    study.communicate(timeout=60)
    assert study.returncode == 130
    assert not any(map(is_alive, workers))
    assert len(studies.calls(tmp_path / "study")) == len(endpoint.answered()) < whole[2]
    study = studies.start(tmp_path / "study", endpoint.url, *SETTINGS)
    check_end(study, tmp_path / "study", endpoint, whole, again=0)


MINE = '''
import logging, os, structlog
from madplug import Extension, hookimpl

class Exit(Extension):
    """Ends the process at question 7."""
    @hookimpl(wrapper=True)
    def madplug_opening(self, debate):
        if debate.sample.id == "q0007":
            os._exit(3)
        return (yield)

class Log(Extension):
    """Logs every debate."""
    @hookimpl(wrapper=True)
    def madplug_opening(self, debate):
        structlog.get_logger().info("opening", sample=debate.sample.id, pid=os.getpid())
        logging.getLogger("chatty").warning("library")
        return (yield)
'''


def run_with(folder, extension, *settings):
    """The status of a study with an extension of `MINE`."""
    folder.with_name("mine.py").write_text(MINE)
    with running_endpoint(text="{letter}") as endpoint:
        return studies.run(folder, endpoint.url, *SETTINGS, f'extensions=["./mine.py:{extension}"]', *settings)


def test_a_debate_that_takes_its_worker_down_fails_by_name_and_the_others_are_run(tmp_path):
    assert run_with(tmp_path / "study", "Exit") == 1
    found = studies.debates(tmp_path / "study")
    assert {name: debate["error"] for name, debate in found.items() if debate["error"]} == {
        "q0007 0": "the worker that ran this debate was lost 3 times"}
    assert len(found) == 40


def test_log_lines_and_problems_of_a_worker_reach_the_study(tmp_path):
    run_with(tmp_path / "study", "Log", "dataset.size=3")
    log = [json.loads(line) for line in (tmp_path / "study" / "log.jsonl").read_text().splitlines()]
    assert sorted(line["sample"] for line in log if line["event"] == "opening") == ["q0000", "q0001", "q0002"]
    assert [line["event"] for line in log if line.get("logger") == "chatty"] == ["library"] * 3
    assert {line["pid"] for line in log if line["event"] == "opening"}.isdisjoint({os.getpid()})
