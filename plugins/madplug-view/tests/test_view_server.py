"""The server: what it tells of a study, and whom it tells."""

import http.client
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from madplug import DebateId, UserError
from madplug.store import Scope, open_recorder
from madplug.store.scope import SCOPE
from madplug_view import charts, connections, export, rows, studies
from madplug_view.studies import Search, Study, open_studies

DEBATE = "cell=plain&repeat=0&sample=talked-out"


def picked(whole, like):
    """The parts of some JSON that another one names."""
    if isinstance(like, dict):
        return {name: picked(whole[name], part) for name, part in like.items()}
    return [picked(*pair) for pair in zip(whole, like, strict=True)] if isinstance(like, list) else whole


@pytest.mark.parametrize(("path", "told"), [
    ("/0", {"planned": 8, "metric": "qa.accuracy", "status": "stopped", "cells": [
        {"cell": "plain", "done": 4, "failed": 1, "undecided": 1},
        {"cell": "other way", "done": 2, "failed": 0, "undecided": 0, "score": {"mean": 1.0}}]}),
    ("/0/counts?cell=plain&traits=changed", {  # how many debates further filters leave
        "whole": True, "fitting": 2, "traits": {"changed": 2, "wrong": 1, "right": 1}}),
    ('/0/counts?cells=["other%20way"]', {"fitting": 2}),
    ("/0/page?cell=plain&traits=right_to_wrong", {"rows": [
        {"marks": [["rww", "011"], ["Www", "111"]], "answer": "B", "right": False, "changes": 1}]}),
    (f"/0/debate?{DEBATE}", {"changes": [{"agents": [1, 2]}], "cells": ["other way"], "behind": [  # no message
        {"purpose": "persona", "agent": None, "round": 0, "opening": True},
        *({"purpose": "vote", "agent": agent, "round": 2, "opening": False} for agent in range(3))]}),
    ("/0/contrast?first=plain&second=other%20way", {
        "both": 1, "first": 0, "second": 1, "neither": 0, "unpaired": [3, 0]})])
def test_what_pages_are_told_of_a_study(server, path, told):
    while not server.api(path).get("whole", True):
        pass  # an answer waits only so long for a busy machine
    assert picked(server.api(path), told) == told


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
    assert [row["sample"] for row in server.api(f"/0/page?cell=plain&{query}")["rows"]] == wanted


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
    monkeypatch.setattr(studies, "PAGE", 1)
    pages = all_pages(open_studies([folder])[0], Search("", (), order, descending))
    rows = [row for page in pages for row in page]
    value = {"sample": lambda row: 0, "metric:qa.accuracy": lambda row: row["metrics"].get("qa.accuracy", -1)}.get(
        order, lambda row: row[order])
    assert len({(row["cell"], row["sample"]) for row in rows}) == len(rows) == 7
    assert [value(row) for row in rows] == sorted(map(value, rows), reverse=descending)


def test_a_note_is_kept_beside_the_study_found_by_its_tag_and_exported(kit, tmp_path):
    folder = kit.small_study(tmp_path / "study")
    records = (folder / "study.db").read_bytes()
    note = json.dumps({"text": " look again ", "tags": ["odd", " odd", ""]})
    with kit.serving_here(folder) as server:
        def put(origin, path=f"note?{DEBATE}", body=note):
            return server.get(f"/api/studies/0/{path}", "PUT", body, Origin=origin)
        assert [put(None).status, put("http://evil.example").status] == [403, 403]
        assert (put(server.own, "calls").status, put(server.own, body="[1]").status) == (405, 404)
        assert json.loads(put(server.own).body) == {"text": "look again", "tags": ["odd"]}
        assert [row["note"]["text"] for row in server.api("/0/page?tag=odd")["rows"]] == ["look again"]
        assert [len(server.api(f"/0/page?text={text}")["rows"]) for text in ("LOOK", "odd", "oddest")] == [1, 1, 0]
        assert server.api("/0/counts?cell=plain")["tags"] == {"odd": 1}
    assert (folder / "study.db").read_bytes() == records
    export.export(open_studies([folder]), tmp_path / "page.html")
    assert "look again" in (tmp_path / "page.html").read_text()


def test_a_folder_of_studies_is_listed_and_cells_of_two_studies_are_compared(kit, tmp_path):
    pytest.importorskip("madplug_report", reason="the paired test is madplug-report's")
    kit.small_study(tmp_path / "runs" / "one")
    kit.write(tmp_path / "runs" / "two", [
        kit.debate("plain", "talked-out", decision="A"), kit.debate("plain", "agreed", decision="A"),
        kit.debate("plain", "agreed", repeat=1, decision="A"),
        replace(kit.debate("plain", "corrected"), references=("C",))])
    kit.write(tmp_path / "runs" / "zero", [kit.debate(cell, "q", decision="A") for cell in "ab"])
    with kit.serving_here(tmp_path / "runs") as server:
        assert [(row["folder"], row["state"], row["best"]["mean"], row["best"]["tied"]) for row in server.api("/list")
                ] == [("one", "stopped", 1.0, 0), ("two", "finished", pytest.approx(2 / 3), 0),
                      ("zero", "finished", 1.0, 1)]
        found = server.api("/0/contrast?first=plain&second=plain&with=1")
        assert (found["both"], found["second"], found["others"]) == (1, 1, 1)
        assert found["unpaired"] == [2, 1], "a score without one of the same sample and repeat"
        test = server.api("/0/test?first=plain&second=plain&with=1")
        assert (test["difference"], test["p"], test["samples"]) == (-0.5, 1.0, 2)
        rows = server.api("/0/page?cell=plain&other=plain&with=1&field=second&metric=qa.accuracy")["rows"]
        assert [row["sample"] for row in rows] == ["talked-out"]
        kit.small_study(tmp_path / "runs" / "a third")
        assert server.api("") == ["one", "two", "zero", "a third"]


def test_what_was_sent_and_replied_is_found_by_the_keys_of_messages_and_of_what_is_behind_none(server):
    found = server.api(f"/0/debate?{DEBATE}")
    assert found["messages"][0]["spent"] == {
        "calls": 1, "prompt": 100, "completion": 10, "cached": 0, "cost_usd": 0.001, "seconds": 0.5, "retries": 0}
    said, voted = server.api(f"/0/calls?keys={found['messages'][3]['calls'][0]},00ff,{found['behind'][2]['key']}")
    assert [m["text"] for m in said["messages"]] == ["You debate.", "prompt of message 3 of talked-out"]
    assert (said["reply"], voted["reply"], voted["round"]) == ("I say B.", "reply of vote 1", 2)
    assert voted["messages"][1]["text"] == "prompt of vote 1"


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
    folder = kit.write(tmp_path / "long", [*kit.some("c", 300), kit.debate("c", "z", decision=None)], calls=False)
    study = Study(folder, "long")
    monkeypatch.setattr(studies, "PATIENCE", 600.0)
    first = study.page(Search("c"))
    assert (len(first["rows"]), first["scanned"]) == (50, 50)
    monkeypatch.setattr(studies, "PATIENCE", 0.0)
    assert study.page(Search("c", traits=["undecided"]))["scanned"] == 1  # the store selects by the ending
    pages = list(all_pages(study, Search("c", text="question z")))
    assert [row["sample"] for page in pages for row in page] == ["z"]
    assert len(pages) > 100


def test_a_text_of_ten_megabytes_is_shown_in_parts(kit, tmp_path):
    text = "0123456789" * 1_000_000
    study = Study(kit.write(tmp_path / "big", [kit.debate("c", "q", text=text, keys=(("A",),))], calls=False), "big")
    message, = study.debate(DebateId("c", 0, "q"))["messages"]
    assert (len(message["content"]), message["length"]) == (20_000, 10_000_000)
    assert study.text(DebateId("c", 0, "q"), 0, 20_003)["text"] == text[20_003:20_003 + rows.MORE]


@pytest.mark.usefixtures("without_charts")
def test_what_left_the_run_file_is_not_shown(kit, tmp_path):
    scope = Scope(frozenset({"plain"}), 1, {"plain": frozenset({"talked-out"})})
    study, = open_studies([kit.small_study(tmp_path / "study", **{SCOPE: scope})])
    assert [row["sample"] for row in study.page(Search(""))["rows"]] == ["agreed", "broken", "corrected", "split"]
    with pytest.raises(UserError, match="there is no debate of"):
        study.debate(DebateId("plain", 0, "talked-out"))
    assert study.debate(DebateId("plain", 0, "agreed"))["cells"] == []
    assert export.export([study], tmp_path / "page.html").startswith("4 debates in ")


@pytest.mark.usefixtures("without_charts")
def test_an_export_into_the_place_of_another_leaves_nothing_of_it(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    for name in ("ONE_PAGE", "CHUNK"):
        monkeypatch.setattr(export, name, 500)
    export.export(open_studies([folder]), out)
    (out / "data" / "notes.js").write_text("the user's own")
    assert len(list((out / "data").iterdir())) > 4
    export.export(open_studies([folder]), out, export.Part(samples=["agreed"]))
    assert "talked-out" not in "".join(file.read_text(encoding="utf-8") for file in (out / "data").iterdir())
    monkeypatch.setattr(export, "ONE_PAGE", 10**7)
    export.export(open_studies([folder]), out)
    assert {file.name: file.read_text() for file in (out / "data").iterdir()} == {"notes.js": "the user's own"}


def test_charts_that_cannot_be_drawn_are_a_note_under_an_export_and_without_the_report_a_message(folder, tmp_path,
                                                                                                  monkeypatch):
    monkeypatch.setattr(export, "can_draw", lambda: True)
    monkeypatch.setattr(charts, "can_draw", lambda: False)
    with pytest.raises(UserError, match="pip install madplug-report"):
        Study(folder, "small").charts()
    said = export.export(open_studies([folder]), tmp_path / "page.html").splitlines()
    assert said[1] == "small: without charts: the charts are madplug-report's: pip install madplug-report"


def test_a_module_in_the_current_directory_is_not_executed_to_draw_charts(folder, tmp_path, monkeypatch):
    pytest.importorskip("madplug_report", reason="the charts are those of the report")
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
    assert {"httponly", "samesite=strict"} <= set(answer.headers["set-cookie"].lower().split("; "))


@pytest.mark.parametrize("other", ['a={"b":1}', 'a="unfinished', "a b", "=", 'a="' + "\\" * 40_000 + '"'])
def test_cookies_of_other_programs_on_the_same_host_do_no_harm(server, other):
    assert server.get("/", Cookie=f"{other}; {server.headers['Cookie']}").status == 200
    assert server.get("/", Cookie=other).status == 401


def test_a_page_of_its_own_origin_is_answered(server):
    assert server.get("/api/studies", **{"Origin": server.own, "Sec-Fetch-Site": "same-origin"}).status == 200
    assert server.get("/", Host=f"localhost:{server.port}").status == 200


@pytest.mark.parametrize(("status", "headers"), [  # of another host, whose name may be rebound, and of another origin
    *((421, {"Host": host}) for host in (
        "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1",
        "0.0.0.0:{port}", "127.0.0.1:{port}@evil.example:{port}")),
    *((403, {"Origin": origin}) for origin in (
        "http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://[", "")),
    (403, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
    (403, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}),
    (403, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"})])
def test_pages_of_other_hosts_and_origins_are_refused(server, status, headers):
    sent = {name: value.format(port=server.port) for name, value in headers.items()}
    assert server.get("/api/studies", **sent).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_get_is_answered(server, method):
    assert server.get("/api/studies", method).status == 405


@pytest.mark.parametrize("path", ["/", "/style.css", "/app/main.js", "/api/studies", "/no/such/page", "/?token=wrong"])
@pytest.mark.parametrize("more", [{}, {"Cookie": None}])
def test_every_answer_has_the_policy(server, path, more):
    headers = server.get(path, **more).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


@pytest.mark.parametrize("path", [
    "/../studies.py", "/app/../../studies.py", "/%2e%2e/studies.py", "/app/%2e%2e/%2e%2e/guard.py", "/..%2fserver.py",
    "//etc/passwd", "/app//main.js", "/vendor/README.md", "/vendor/preact/LICENSE", "/app/", "/study.db", "/%00"])
def test_no_other_path_can_be_read(server, path):
    assert server.get(path).status == 404


def test_an_open_address_is_warned_of_needs_its_own_token_and_changes_nothing_in_the_directory(kit, server, tmp_path):
    def contents():  # without what readers of a database leave while it is open
        return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith(("-shm", "-wal"))}

    folder = kit.small_study(tmp_path / "study")
    before = contents()
    with kit.serving(folder, "--host", "0.0.0.0") as other:
        assert len(other.token) >= 32
        assert other.token != server.token
        assert other.get("/", Cookie=None).status == 401
        assert other.get("/", Host=f"192.0.2.1:{other.port}").status == 200
        assert other.get("/", Host=f"evil.example:{other.port}").status == 421
        for path in ("/0", "/0/page?cell=plain&text=x", f"/0/debate?{DEBATE}"):
            assert other.api(path)
        other.process.terminate()
        assert "over the network" in other.process.stderr.read()
    assert contents() == before


# The command

def test_a_directory_without_a_study_and_a_port_that_is_taken_are_messages(program, tmp_path, folder):
    assert "no study here" in program("view", folder, tmp_path / "none", "--no-browser", status=2).stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "cannot listen there" in program("view", folder, "--no-browser", "--port", port, status=2).stderr


@pytest.mark.usefixtures("without_charts")
def test_the_command_exports_a_cell(program, folder, tmp_path):
    done = program("view", folder, "--export", tmp_path / "page.html", "--cell", "plain", status=0)
    assert done.stdout.startswith("5 debates in ")
    assert "--export" in program("view", folder, "--cell", "plain", status=2).stderr
    assert "go with studies, not with --ask" in program("view", "--ask", "--export", "page.html", status=2).stderr
    odd = program("view", folder, "--export", tmp_path / "page.html", "--cell", "plain", "--cell", "plane", status=2)
    assert "--cell: there is no cell 'plane'; did you mean 'plain'?" in odd.stderr


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"])
def test_a_request_that_does_not_arrive_is_given_up(kit, folder, monkeypatch, sent):
    monkeypatch.setattr(connections, "IDLE", 0.2)
    with kit.serving_here(folder) as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(sent)
        while connection.recv(1000):
            pass


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
        connection.request("GET", "/api/studies/0/events", headers=server.headers)
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 1000\n"
        subprocess.run([sys.executable, "-c", WRITER, str(folder)], check=True, timeout=60)
        told = (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))
        changed = (change["debates"] for change in told)  # that a process has begun is told, too
        assert next(filter(None, changed)) == [["plain", 0, "new"]]
        os.kill(server.process.pid, 2)
        status = server.process.wait(60)
        said = server.process.stderr.read()  # nothing, where this was started with interrupts ignored, as by `nohup`
        assert (status, said) in ((130, "madplug: interrupted\n"), (0, ""))
        stream.close()
        connection.close()


def test_a_study_being_written_is_read(tmp_path):
    recorder = open_recorder(tmp_path / "open")
    found = Study(tmp_path / "open", "open").overview()
    recorder.close()
    assert (found["cells"], found["status"]) == ([], "running")


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_summary_that_is_a_link_or_a_pipe_is_not_read(kit, tmp_path, kind):
    folder = kit.small_study(tmp_path / "study", status=None)
    if kind == "link":
        (tmp_path / "elsewhere.json").write_text('{"status": "failed"}')
        (folder / "summary.json").symlink_to(tmp_path / "elsewhere.json")
    else:
        os.mkfifo(folder / "summary.json")
    read = f"from madplug_view.studies import *; print(open_studies([Path({str(folder)!r})])[0].overview()['status'])"
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("stopped\n", "")
