"""The server: what it tells of a study, and whom it tells."""

import functools
import http.client
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from urllib.parse import quote, urlsplit

import pytest

from madplug.store import open_recorder
from madplug_view import connections

DEBATE = "cell=plain&repeat=0&sample=talked-out"


def test_the_cells_of_a_study_with_scores(server):
    found = server.api("/0")
    assert [(c["cell"], c["done"], c["failed"], c["undecided"]) for c in found["cells"]] == [
        ("plain", 4, 1, 1), ("other way", 2, 0, 0)]
    assert found["cells"][1]["score"]["mean"] == 1.0
    assert (found["planned"], found["metric"], found["status"]) == (8, "qa.accuracy", "stopped")


def samples(server, query):
    return [row["sample"] for row in server.api(f"/0/page?cell=plain&{query}")["rows"]]


@pytest.mark.parametrize(("query", "wanted"), [
    ("", ["agreed", "broken", "corrected", "split", "talked-out"]), ("traits=wrong", ["talked-out"]),
    ("traits=changed", ["corrected", "talked-out"]), ("traits=changed,wrong", ["talked-out"]),
    ("traits=right_to_wrong", ["talked-out"]), ("traits=minority_right", ["broken", "split", "talked-out"]),
    ("traits=undecided", ["split"]), ("traits=failed", ["broken"]), ("other=other%20way", ["talked-out"]),
    ("other=other%20way&field=second&metric=qa.accuracy", ["talked-out"]),
    ("other=other%20way&field=both&metric=qa.accuracy", ["agreed"]),
    ("text=QUESTION%20split", ["split"]), ("text=endpoint", ["broken"]), ("text=nowhere", []),
    ("order=calls&descending=1", ["talked-out", "corrected", "split", "broken", "agreed"]),
    ("order=changes&descending=1", ["talked-out", "corrected", "split", "broken", "agreed"]),
    ("order=metric:qa.accuracy&traits=changed", ["talked-out", "corrected"]), ("group=none", []), ("tag=*", [])])
def test_a_cell_is_filtered_sorted_and_searched(server, query, wanted):
    assert samples(server, query) == wanted


def test_filters_say_how_many_debates_they_leave(server):
    found = server.api("/0/counts?cell=plain&traits=changed")
    assert (found["whole"], found["fitting"]) == (True, 2)
    assert [found["traits"][name] for name in ("changed", "wrong", "right")] == [2, 1, 1]
    assert server.api('/0/counts?cells=["other%20way"]')["fitting"] == 2


def all_pages(study, search):
    """The rows of all pages, page after page."""
    while True:
        part = study.page(search)
        yield part["rows"]
        if part["next"] is None:
            return
        search = replace(search, after=part["next"])


@pytest.mark.parametrize("order", ["sample", "changes", "calls", "metric:qa.accuracy"])
@pytest.mark.parametrize("descending", [False, True])
def test_all_cells_are_sorted_together(folder, monkeypatch, order, descending):
    from madplug_view import studies

    monkeypatch.setattr(studies, "PAGE", 1)
    pages = all_pages(studies.open_studies([folder])[0], studies.Search("", (), order, descending))
    rows = [row for page in pages for row in page]
    value = {"sample": lambda row: 0, "metric:qa.accuracy": lambda row: row["metrics"].get("qa.accuracy", -1)}.get(
        order, lambda row: row[order])
    assert len({(row["cell"], row["sample"]) for row in rows}) == len(rows) == 7
    assert [value(row) for row in rows] == sorted(map(value, rows), reverse=descending)


def test_a_note_is_kept_beside_the_study_found_by_its_tag_and_exported(kit, tmp_path):
    from madplug_view.export import export
    from madplug_view.studies import open_studies

    folder = kit.small_study(tmp_path / "study")
    records = (folder / "study.db").read_bytes()
    note = json.dumps({"text": " look again ", "tags": ["odd", " odd", ""]})
    with kit.serving(folder) as server:
        own = f"http://127.0.0.1:{server.port}"
        put = functools.partial(server.get, f"/api/studies/0/note?{DEBATE}", "PUT", body=note)
        assert [put(Origin=origin).status for origin in (None, "http://evil.example")] == [403, 403]
        assert server.get("/api/studies/0/calls", "PUT", Origin=own, body=note).status == 405
        assert json.loads(put(Origin=own).body) == {"text": "look again", "tags": ["odd"]}
        assert [row["note"]["text"] for row in server.api("/0/page?tag=odd")["rows"]] == ["look again"]
        assert server.api("/0/counts?cell=plain")["tags"] == {"odd": 1}
        assert server.get(f"/api/studies/0/note?{DEBATE}", "PUT", Origin=own, body="[1]").status == 404
    assert (folder / "study.db").read_bytes() == records
    export(open_studies([folder]), tmp_path / "page.html")
    assert "look again" in (tmp_path / "page.html").read_text()


def test_a_folder_of_studies_is_listed_and_cells_of_two_studies_are_compared(kit, tmp_path):
    pytest.importorskip("madplug_report", reason="the paired test is madplug-report's")
    kit.small_study(tmp_path / "runs" / "one")
    kit.write(tmp_path / "runs" / "two", [
        kit.debate("plain", "talked-out", decision="A"), kit.debate("plain", "agreed", decision="A"),
        kit.debate("plain", "agreed", repeat=1, decision="A"),
        replace(kit.debate("plain", "corrected"), references=("C",))])
    with kit.serving(tmp_path / "runs") as server:
        listed = server.api("/list")
        found = server.api("/0/contrast?first=plain&second=plain&with=1")
        test = server.api("/0/test?first=plain&second=plain&with=1")
        rows = server.api("/0/page?cell=plain&other=plain&with=1&field=second&metric=qa.accuracy")["rows"]
        kit.small_study(tmp_path / "runs" / "a third")
        assert server.api("") == ["one", "two", "a third"]
    assert [(row["folder"], row["state"], row["best"]["mean"]) for row in listed] == [
        ("one", "stopped", 1.0), ("two", "finished", pytest.approx(2 / 3))]
    assert (found["both"], found["second"], found["others"]) == (1, 1, 1)
    assert found["unpaired"] == [2, 1], "a score without one of the same sample and repeat"
    assert (test["difference"], test["p"], test["samples"]) == (-0.5, 1.0, 2)
    assert [row["sample"] for row in rows] == ["talked-out"]


def test_a_row_has_the_answers_of_every_agent_and_round(server):
    row = server.api("/0/page?cell=plain&traits=right_to_wrong")["rows"][0]
    assert row["marks"] == [["rww", "011"], ["Www", "111"]]
    assert (row["answer"], row["right"], row["changes"]) == ("B", False, 1)


def test_a_debate_has_its_outline_and_what_each_message_used(server):
    found = server.api(f"/0/debate?{DEBATE}")
    assert found["changes"][0]["agents"] == [1, 2]
    assert found["messages"][0]["spent"] == {
        "calls": 1, "prompt": 100, "completion": 10, "cost_usd": 0.001, "seconds": 0.5, "retries": 0}
    assert found["cells"] == ["other way"]


def test_what_was_sent_and_replied_is_found_by_the_keys_of_a_message(server):
    key = server.api(f"/0/debate?{DEBATE}")["messages"][3]["calls"][0]
    call, = server.api(f"/0/calls?keys={key},00ff")
    assert [m["text"] for m in call["messages"]] == ["You debate.", "prompt of message 3 of talked-out"]
    assert call["reply"] == "I say B."


def test_the_calls_behind_no_message_are_named_without_their_texts(server):
    behind = server.api(f"/0/debate?{DEBATE}")["behind"]
    assert [(c["purpose"], c["agent"], c["round"], c["opening"]) for c in behind] == [
        ("persona", None, 0, True), ("vote", 0, 2, False), ("vote", 1, 2, False), ("vote", 2, 2, False)]
    call, = server.api(f"/0/calls?keys={behind[2]['key']}")
    assert (call["messages"][0]["text"], call["reply"], call["round"]) == ("prompt of vote 1", "reply of vote 1", 2)


def test_two_cells_make_a_four_fold_table(server):
    found = server.api(f"/0/contrast?first=plain&second={quote('other way')}")
    assert (found["both"], found["first"], found["second"], found["neither"]) == (1, 0, 1, 0)
    assert found["unpaired"] == [3, 0]


@pytest.mark.parametrize("path", [
    "/9", f"/{'9' * 4301}", "/-1", "/0x0",
    "/0/debate?cell=plain", "/0/debate?cell=plain&repeat=0&sample=none", "/0/debate?cell=plain&repeat=x&sample=s",
    "/0/page?cell=plain&after=[", "/0/page?cell=plain&order=colour",
    "/0/page?after=[", '/0/page?after=["none","x"]', "/0/page?cell=plain&other=x&field=y",
    "/0/text?cell=a&repeat=0&sample=b&message=-1", f"/0/text?{DEBATE}&message=99&offset=0"])
def test_a_wrong_address_is_a_message(server, path):
    answer = server.get(f"/api/studies{path}")
    assert answer.status == 404
    assert json.loads(answer.body)["error"]


def test_a_page_of_a_long_cell_costs_its_rows_and_a_rare_thing_is_searched_for_in_parts(kit, tmp_path, monkeypatch):
    from madplug_view import studies

    folder = kit.write(tmp_path / "long", [*kit.some("c", 300), kit.debate("c", "z", decision=None)], calls=False)
    study = studies.Study(folder, "long")
    monkeypatch.setattr(studies, "PATIENCE", 600.0)
    first = study.page(studies.Search("c"))
    assert (len(first["rows"]), first["scanned"]) == (50, 50)
    monkeypatch.setattr(studies, "PATIENCE", 0.0)
    assert study.page(studies.Search("c", traits=["undecided"]))["scanned"] == 1  # the store selects by the ending
    pages = list(all_pages(study, studies.Search("c", text="question z")))
    assert [row["sample"] for page in pages for row in page] == ["z"]
    assert len(pages) > 100


def test_a_text_of_ten_megabytes_is_shown_in_parts(kit, tmp_path):
    from madplug_view import rows

    text = "0123456789" * 1_000_000
    folder = kit.write(tmp_path / "big", [kit.debate("c", "q", text=text, keys=(("A",),))], calls=False)
    with kit.serving(folder) as server:
        found = server.api("/0/debate?cell=c&repeat=0&sample=q")
        assert (len(found["messages"][0]["content"]), found["messages"][0]["length"]) == (20_000, 10_000_000)
        part = server.api("/0/text?cell=c&repeat=0&sample=q&message=0&offset=20003")
        assert part["text"] == text[20_003:20_003 + rows.MORE]


@pytest.mark.usefixtures("without_charts")
def test_what_left_the_run_file_is_not_shown(kit, tmp_path):
    from madplug.errors import UserError
    from madplug.store import DebateId, Scope
    from madplug.store.scope import SCOPE
    from madplug_view.export import export
    from madplug_view.studies import Search, open_studies

    folder = kit.small_study(tmp_path / "study")
    scope = Scope(frozenset({"plain"}), 1, {"plain": frozenset({"talked-out"})})
    kit.keep(folder, SCOPE, scope.to_fact())
    study, = open_studies([folder])
    assert [c["cell"] for c in study.overview()["cells"]] == ["plain"]
    assert [row["sample"] for row in study.page(Search("plain"))["rows"]] == ["agreed", "broken", "corrected", "split"]
    assert study.page(Search("other way"))["rows"] == []
    with pytest.raises(UserError, match="there is no debate of"):
        study.debate(DebateId("plain", 0, "talked-out"))
    assert study.debate(DebateId("plain", 0, "agreed"))["cells"] == []
    assert export([study], tmp_path / "page.html").startswith("4 debates in ")


@pytest.mark.usefixtures("without_charts")
def test_an_export_into_the_place_of_another_leaves_nothing_of_it(folder, tmp_path, monkeypatch):
    from madplug_view import export, studies

    out = tmp_path / "out"
    for name in ("ONE_PAGE", "CHUNK"):
        monkeypatch.setattr(export, name, 500)
    export.export(studies.open_studies([folder]), out)
    (out / "data" / "notes.js").write_text("the user's own")
    assert len(list((out / "data").iterdir())) > 4
    export.export(studies.open_studies([folder]), out, export.Part(samples=["agreed"]))
    assert "talked-out" not in "".join(file.read_text(encoding="utf-8") for file in (out / "data").iterdir())
    assert (out / "data" / "notes.js").read_text() == "the user's own"
    monkeypatch.setattr(export, "ONE_PAGE", 10**7)
    export.export(studies.open_studies([folder]), out)
    assert [file.name for file in (out / "data").iterdir()] == ["notes.js"]


def test_a_summary_that_is_a_link_is_not_followed(kit, tmp_path):
    from madplug_view.studies import open_studies

    folder = kit.small_study(tmp_path / "study")
    (tmp_path / "elsewhere.json").write_text('{"status": "failed"}')
    (folder / "summary.json").unlink(missing_ok=True)
    (folder / "summary.json").symlink_to(tmp_path / "elsewhere.json")
    assert open_studies([folder])[0].overview()["status"] == "stopped"


def test_charts_that_cannot_be_drawn_are_a_note_under_an_export(folder, tmp_path, monkeypatch):
    from madplug.errors import UserError
    from madplug_view import export, studies

    def draw(folder):
        raise UserError("the charts cannot be drawn: no ink")

    monkeypatch.setattr(export, "can_draw", lambda: True)
    monkeypatch.setattr(studies, "draw", draw)
    said = export.export(studies.open_studies([folder]), tmp_path / "page.html").splitlines()
    assert said[1] == "small: without charts: the charts cannot be drawn: no ink"


def test_without_the_report_the_charts_are_a_message(folder, monkeypatch):
    from madplug import UserError
    from madplug_view import charts, studies

    monkeypatch.setattr(charts, "can_draw", lambda: False)
    with pytest.raises(UserError, match="pip install madplug-report"):
        studies.Study(folder, "small").charts()


def test_a_module_in_the_current_directory_is_not_executed_to_draw_charts(folder, tmp_path, monkeypatch):
    pytest.importorskip("madplug_report", reason="the charts are those of the report")
    from madplug_view import charts

    for name in ("json", "orjson", "pluggy", "madplug_report"):
        (tmp_path / f"{name}.py").write_text("open(__file__ + '.ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    assert charts.draw(folder)
    assert not list(tmp_path.glob("*.ran"))


# Whom it tells

def test_without_the_token_nothing_is_shown(server):
    for path in ("/", "/api/studies", "/app/main.js", "/style.css"):
        assert server.get(path, Cookie=None).status == 401
        assert server.get(path, Cookie=f"madplug-view-{server.port}=wrong").status == 401
    assert server.get("/?token=wrong", Cookie=None).status == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address(server):
    answer = server.get(f"/?token={server.token}", Cookie=None)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize("other", ['a={"b":1}', 'a="unfinished', "a b", "=", 'a="' + "\\" * 40_000 + '"'])
def test_cookies_of_other_programs_on_the_same_host_do_no_harm(server, other):
    ours = f"madplug-view-{server.port}={server.token}"
    assert server.get("/", Cookie=f"{other}; {ours}").status == 200
    assert server.get("/", Cookie=other).status == 401


def test_every_start_has_another_token(kit, folder, server):
    with kit.serving(folder) as other:
        assert other.token != server.token
        assert len(other.token) >= 32


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1",
    "0.0.0.0:{port}", "127.0.0.1:{port}@evil.example:{port}"])
def test_another_host_name_is_refused_so_that_a_name_cannot_be_rebound(server, host):
    assert server.get("/", Host=host.format(port=server.port)).status == 421


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://127.0.0.1:{port}"},
    {"Origin": "http://127.0.0.1:1"}, {"Origin": "http://["}, {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}])
def test_pages_of_other_origins_are_refused(server, headers):
    sent = {name: value.format(port=server.port) for name, value in headers.items()}
    assert server.get("/api/studies", **sent).status == 403


def test_its_own_pages_are_answered(server):
    own = {"Origin": f"http://127.0.0.1:{server.port}", "Sec-Fetch-Site": "same-origin"}
    assert server.get("/api/studies", **own).status == 200
    assert server.get("/", Host=f"localhost:{server.port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_get_is_answered(server, method):
    assert server.get("/api/studies", method).status == 405


@pytest.mark.parametrize("path", ["/", "/style.css", "/app/main.js", "/api/studies", "/no/such/page", "/?token=wrong"])
def test_every_answer_has_the_policy(server, path):
    for more in ({}, {"Cookie": None}):
        headers = server.get(path, **more).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", [
    "/../studies.py", "/app/../../studies.py", "/%2e%2e/studies.py", "/app/%2e%2e/%2e%2e/guard.py", "/..%2fserver.py",
    "//etc/passwd", "/app//main.js", "/vendor/README.md", "/vendor/preact/LICENSE", "/app/", "/study.db", "/%00"])
def test_no_other_path_can_be_read(server, path):
    assert server.get(path).status == 404


def contents(folder):
    """Its files, without those that readers of a database leave while it is open."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith(("-shm", "-wal"))}


def test_nothing_in_the_directory_changes(kit, tmp_path):
    folder = kit.small_study(tmp_path / "study")
    before = contents(folder)
    with kit.serving(folder) as server:
        for path in ("/0", "/0/page?cell=plain&text=x", f"/0/debate?{DEBATE}"):
            server.api(path)
    assert contents(folder) == before


def test_an_open_address_is_warned_of_and_needs_the_token(kit, folder):
    with kit.serving(folder, "--host", "0.0.0.0") as server:
        assert server.get("/", Cookie=None).status == 401
        assert server.get("/", Host=f"192.0.2.1:{server.port}").status == 200
        assert server.get("/", Host=f"evil.example:{server.port}").status == 421
        server.process.terminate()
        assert "over the network" in server.process.stderr.read()


# The command

def run(*words):
    return subprocess.run([sys.executable, "-m", "madplug", "view", *map(str, words)], capture_output=True, text=True,
                          timeout=60, check=False)


def test_a_directory_without_a_study_is_a_message(tmp_path, folder):
    done = run(folder, tmp_path / "none", "--no-browser")
    assert done.returncode == 2
    assert "no study here" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"])
def test_a_request_that_does_not_arrive_is_given_up(kit, folder, monkeypatch, sent):
    monkeypatch.setattr(connections, "IDLE", 0.2)
    with kit.serving_here(folder) as url, socket.create_connection(("127.0.0.1", urlsplit(url).port)) as connection:
        connection.sendall(sent)
        while connection.recv(1000):
            pass


def test_a_port_that_is_taken_is_a_message(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(folder, "--no-browser", "--port", taken.getsockname()[1])
    assert done.returncode == 2
    assert "cannot listen there" in done.stderr


WRITER = """
import asyncio, sys
from madplug import DebateResult, Decision, Sample
from madplug.store import open_recorder

store = open_recorder(sys.argv[1])
asyncio.run(store.finish_debate(DebateResult("plain", 0, Sample("new", "?"), (), decision=Decision("A"))))
store.close()
"""


def test_a_page_is_told_what_changed_in_another_process_and_an_interrupt_ends_the_server_all_the_same(kit, tmp_path):
    folder = kit.small_study(tmp_path / "study")
    with kit.serving(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/api/studies/0/events", headers={
            "Host": f"127.0.0.1:{server.port}", "Cookie": f"madplug-view-{server.port}={server.token}"})
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 1000\n"
        subprocess.run([sys.executable, "-c", WRITER, str(folder)], check=True, timeout=60)
        lines = [stream.readline() for _ in range(3)]
        assert b"event: change\n" in lines
        assert json.loads(lines[-1].removeprefix(b"data: "))["debates"] == [["plain", 0, "new"]]
        os.kill(server.process.pid, 2)
        status = server.process.wait(60)
        said = server.process.stderr.read()  # nothing, where this was started with interrupts ignored, as by `nohup`
        assert (status, said) in ((130, "madplug: interrupted\n"), (0, ""))
        stream.close()
        connection.close()


def test_a_study_being_written_is_read(kit, tmp_path):
    recorder = open_recorder(tmp_path / "open")
    try:
        with kit.serving(tmp_path / "open") as server:
            assert server.api("/0")["cells"] == []
            assert server.api("/0")["status"] == "running"
    finally:
        recorder.close()


def test_a_pipe_in_the_place_of_a_summary_is_not_waited_for(tmp_path, kit):
    folder = kit.small_study(tmp_path / "study")
    (folder / "summary.json").unlink()
    os.mkfifo(folder / "summary.json")
    command = [sys.executable, "-m", "madplug", "view", str(folder), "--export", str(tmp_path / "page.html"),
               "--cell", "plain"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
