"""A person as a model: two judge in two browsers while a third seat is a model, and a killed study loses nothing."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request as Http
from urllib.request import urlopen

import pytest
from tests_support import chromium

from madplug import Request
from madplug.store import open_study
from madplug_human import Chat
from madplug_human.desk import id_of, last_lines

RUN = """
seed = 7
dataset = {{use = "puzzles.hidden_facts", size = 1}}
models.small = {{use = "oversight.simulated"}}
models.anna = {{use = "human.chat", person = "Anna", port = {anna}}}
models.ben = {{use = "human.chat", person = "Ben", port = {ben}}}
[debate]
paradigm = "oversight.debate"
rounds = 1
styles = ["oversight.speech", {{use = "oversight.judge", orders = "one"}}]
[[cells]]
name = "anna"
debate.models = ["small", "small", "anna"]
[[cells]]
name = "ben"
debate.models = ["small", "small", "ben"]
[[cells]]
name = "model"
debate.models = ["small"]
"""
JUDGED = "Ben was clear.\nProbability of A: 70%\nAnswer: A"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def start(tmp_path):
    """Start the study, or resume it; gives its process and the links by person."""
    (tmp_path / "run.toml").write_text(RUN.format(anna=free_port(), ben=free_port()))
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-m", "madplug", "run", "run.toml", "--output", "study"], cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "MADPLUG_HUMAN_KEY": "of the test"})
        started.append(process)
        links = {}
        while len(links) < 2:
            line = process.stderr.readline()
            assert line, "the study has ended"
            if found := re.match(r"(\w+) answers at (\S+)", line):
                links[found[1]] = found[2]
        return process, links

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def open_page():
    with chromium() as browser:
        def open_page(address):
            page = browser.new_context().new_page()
            page.goto(address)
            page.get_by_label("Your reply").wait_for()
            return page

        yield open_page


def ended(folder):
    """The decision of each cell that has ended."""
    with open_study(folder) as reader:
        return {result.cell: result.decision.key for result in reader.results()}


def test_two_people_judge_beside_a_model_and_a_killed_study_loses_nothing(start, open_page, tmp_path):
    for plugin in ("oversight", "puzzles", "answers"):
        pytest.importorskip(f"madplug_{plugin}")
    process, links = start()
    anna, ben = open_page(links["Anna"]), open_page(links["Ben"])
    assert "Debater A:" in anna.inner_text("main")
    while "model" not in ended(tmp_path / "study"):
        anna.wait_for_timeout(100)  # it does not wait for people
    anna.get_by_label("Your reply").fill("Probability of A: 20%")
    anna.get_by_role("button", name="Answer: A").click()
    anna.get_by_role("button", name="Answer: B").click()
    anna.reload()
    assert anna.get_by_label("Your reply").input_value() == "Probability of A: 20%\nAnswer: B"
    process.send_signal(signal.SIGKILL)
    process.wait()
    ben.get_by_label("Your reply").fill(JUDGED)
    ben.get_by_role("button", name="Send").click()
    ben.get_by_text("1 answer not on record yet").wait_for()
    process, again = start()
    assert again == links
    ben.get_by_text("Nothing to answer").wait_for()
    assert anna.get_by_label("Your reply").input_value() == "Probability of A: 20%\nAnswer: B"
    while "ben" not in ended(tmp_path / "study"):
        ben.wait_for_timeout(100)
    anna.get_by_role("button", name="Send").click()
    assert process.wait(60) == 0
    assert set(ended(tmp_path / "study")) == {"anna", "ben", "model"}
    with open_study(tmp_path / "study") as reader:
        judged = {r.cell: r.messages[-1] for r in reader.results()}
        assert (judged["ben"].content, judged["ben"].model) == (JUDGED, "ben")
        assert tuple(judged["anna"].data["oversight"]["picked"]) == ("B",)
        assert reader.calls([judged["ben"].calls[0]])
    ben.wait_for_function("localStorage.length === 0")


def status_of(request):
    """The status of the reply to a request."""
    try:
        with urlopen(request) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def test_an_answer_is_taken_with_the_token_from_the_own_page_once_it_is_one():
    asked = Request(({"role": "user", "content": "Yes?"},), "discuss", "anna", seed=3)

    async def run():
        person = Chat(person="Anna", port=0)
        await person.open()
        replying = asyncio.ensure_future(person.complete(asked))
        here, token = person._server.address.split("/?token=")
        known = {"id": id_of(asked), "Origin": here, "Cookie": f"madplug-view-{here.rpartition(':')[2]}={token}"}

        async def put(body, **more):
            headers = known | more
            address = f"{here}/api/requests/{headers.pop('id')}/answer"
            return await asyncio.to_thread(status_of, Http(address, body, headers, method="PUT"))

        good = json.dumps({"text": "Yes."}).encode()
        assert await put(good, Cookie="") == 401
        assert await put(good, Origin="http://127.0.0.1:1") == 403
        assert await put(good, id="other") == 404
        for body in (b"{}", b'{"text": " "}', b"[", b'{"text": "%s"}' % (b"x" * 10**6)):
            assert await put(body) == 400
        sending = asyncio.ensure_future(put(good))
        assert (await replying).text == "Yes."
        await asyncio.sleep(0.05)
        assert not sending.done()  # it is not on record yet
        person.kept(asked)
        assert await sending == 200
        assert await put(good) == 200  # sent again
        await person.close()

    asyncio.run(run())


@pytest.mark.parametrize(("form", "lines"), [
    (r"(?:[\s\S]*\n)?Final answer: \((A|B)\)", ["Final answer: (A)", "Final answer: (B)"]),
    (r"(?:[\s\S]{0,9}\n)?Sure: [0-9]+%\nAnswer: (A|B)", ["Answer: A", "Answer: B"]),
    ("yes|no", ["yes", "no"]), ("[0-9]+", []), ("", [])])
def test_the_last_lines_that_a_form_allows_are_offered(form, lines):
    assert list(last_lines(Request((), "vote", "anna", form={"regex": form}))) == lines
