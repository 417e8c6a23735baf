"""The page to ask from: `madplug view --ask` as a process, over HTTP and in a real browser."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from tests_support import chromium

from madplug_testing.endpoint import running_endpoint

REFUSED = {"error": {"message": "the account is closed", "code": "insufficient_quota"}}
EVIL = "<img src=x onerror=\"document.title='hacked'\"> **bold**"


def reply(body):
    text = body["messages"][-1]["content"]
    if body["model"] == "dead":
        return REFUSED
    if "You chair it" in text:
        return "Go north." + " On and on." * (12 if "slowly" in text else 0)
    labels = re.findall(r"^Answer (\w):$", text, re.MULTILINE)
    if "Then rank" in text:
        return "FINAL RANKING:\n" + "\n".join(f"{i}. Answer {label}" for i, label in enumerate(sorted(labels), 1))
    words = f"I am {body['model']}: {EVIL}"
    if body["model"] != "c" or "slowly" not in text:
        return words
    pieces = [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in ("Piece by ", words)]
    return [pieces[0], 2.0, pieces[1], {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"]


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(reply, keep=1000) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory, endpoint):
    """The command as a process, its address, and requests to it as the page sends them."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "config" / "madplug").mkdir(parents=True)
    slot = '{{use = "openai.chat", model = "{}", base_url = "{}"}}'.format
    seats = {name: ", ".join(f"{m} = {slot(m, endpoint.url)}" for m in models)
             for name, models in {"three": "abc", "hurt": ("a", "dead", "b", "c")}.items()}
    seats["priced"] = seats["three"].replace("}", ", price = {prompt = 100.0, completion = 100.0}}")
    (folder / "config" / "madplug" / "councils.toml").write_text(
        "".join(f"[{name}]\nseats = {{{s}}}\n" for name, s in seats.items()))
    environ = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    environ |= {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    process = subprocess.Popen([sys.executable, "-m", "madplug", "view", "--ask", "--no-browser"], cwd=folder,
                               env=environ, text=True, stdout=subprocess.PIPE)
    url = process.stdout.readline().strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", url)
    yield SimpleNamespace(url=url, port=int(found[1]), token=found[2])
    process.terminate()
    process.wait(30)
    process.stdout.close()


def send(server, path, body=None, method="POST", **headers):
    """A request as the page sends it; headers that are None are left out."""
    host = f"127.0.0.1:{server.port}"
    given = {"Host": host, "Cookie": f"madplug-view-{server.port}={server.token}", "Origin": f"http://{host}",
             "X-Madplug": "ask"} | headers
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, f"/ask/api/{path}", json.dumps(body), {k: v for k, v in given.items() if v is not None})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def asked(server, **question):
    """Ask, and wait for the end; the id and the last state."""
    status, text = send(server, "ask", {"council": "three", **question})
    assert status == 200, text
    id = json.loads(text)["id"]
    events = send(server, f"{id}/events", method="GET")[1]
    return id, last_state(events)


def last_state(events):
    return json.loads(re.findall(r"^event: state\ndata: (.*)$", events, re.MULTILINE)[-1])


@pytest.mark.parametrize(("headers", "status"), [
    ({"X-Madplug": None}, 403), ({"Origin": None}, 403), ({"Origin": "http://evil.example"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Cookie": None}, 401), ({"Host": "evil.example"}, 421)])
def test_a_question_of_another_site_is_refused(server, headers, status):
    before = send(server, "history", method="GET")
    assert send(server, "ask", {"question": "Which way?", "council": "three"}, **headers)[0] == status
    assert send(server, "history", method="GET") == before


@pytest.mark.parametrize(("body", "message"), [
    ({"question": ""}, "question: String should have at least 1 character"), ({"question": "x", "foo": 1}, "foo"),
    ({"question": "x", "council": "thre"}, "there is no [thre]"), ({"question": "x", "seats": ["a=b:c"]}, "plugin 'b'"),
    ({"question": "x", "council": "three", "files": [{"name": ".env", "text": "KEY=1"}]}, "file of secrets"),
    ({"question": "x", "council": "three", "images": ["data:text/html;base64,AAAA"]}, "an image is a file"),
    ({"question": "x", "council": "three", "max_usd": 1}, "the price of model"), ([], "Input should be")])
def test_mistakes_are_told_in_words_before_anything_is_asked(server, endpoint, body, message):
    before = len(endpoint.seen)
    status, text = send(server, "ask", body)
    assert (status, len(endpoint.seen)) == (400, before)
    assert message in text


def test_a_question_that_its_budget_has_ended_can_go_on_beyond_it(server):
    id, state = asked(server, question="At what cost?", council="priced", max_usd=0.0001)
    assert (state["status"], state["limited"], state["calls"]) == ("stopped", True, 3)
    for beyond, status in ((False, "stopped"), (True, "decided")):
        send(server, f"{id}/resume", beyond)
        assert last_state(send(server, f"{id}/events", method="GET")[1])["status"] == status


def test_who_was_dropped_is_said_and_another_rule_decides_without_a_call(server, endpoint):
    id, state = asked(server, question="Which way?", council="hurt", files=[{"name": "map.txt", "text": "A river."}])
    assert (state["status"], state["answer"]) == ("partial", "Go north.")
    assert "the account is closed" in state["missing"][0]
    assert {r["seat"]: sorted(r["places"].values()) for r in state["reviews"]} == {
        0: [1, 2, 3], 2: [1, 2, 3], 3: [1, 2, 3]}
    before = len(endpoint.seen)
    status, text = send(server, f"{id}/decide", "borda")
    assert (status, len(endpoint.seen)) == (200, before)
    assert json.loads(text)["answer"].startswith("I am ")
    assert send(server, f"{id}/export.md", method="GET")[1].startswith("# Which way?\n\n**Partial.** Not heard:")
    follow = asked(server, question="And then?", follow=id)[0]
    assert "Which way?\\n\\nGo north." in json.dumps([body for _, body in endpoint.seen[-7:]])
    assert asked(server, question="And then?", follow=id)[0] == follow
    assert len(endpoint.seen) == before + 7


def test_a_debate_is_stopped_and_goes_on_without_paying_twice(server, endpoint):
    before = len(endpoint.seen)
    id = json.loads(send(server, "ask", {"question": "Slow?", "council": "three"})[1])["id"]
    while len(endpoint.seen) == before:
        time.sleep(0.01)
    assert send(server, f"{id}/stop")[0] == 200
    assert send(server, f"{id}/resume")[0] == 200
    assert asked(server, question="Slow?")[1]["answer"] == "Go north."
    assert len(endpoint.seen) == before + 7


def test_names_are_kept_until_a_pick_and_picks_add_up(server):
    id, state = asked(server, question="Blindly?", blind=True)
    assert "answer" not in state
    assert "reviews" not in state
    assert [seat["name"] for seat in state["seats"]] == ["Answer A", "Answer B", "Answer C"]
    who = re.match(r"I am (\w)", state["seats"][1]["answer"])[1]
    assert send(server, f"{id}/pick", 7)[0] == 400
    assert send(server, f"{id}/pick", 1)[0] == 200
    assert asked(server, question="Blindly?")[1]["picked"] == who
    assert send(server, f"{id}/pick", 0)[0] == 400
    rows = json.loads(send(server, "picks", method="GET")[1])
    assert {row["seat"]: (row["wins"], row["of"]) for row in rows} == {m: (int(m == who), 1) for m in "abc"}


def test_a_question_with_keys_alone_on_a_small_dark_screen(server):
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        wrong, hosts = [], set()
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: hosts.add(re.match(r"\w+://[^/:]*", r.url)[0]))
        page.goto(server.url)
        expect = sync_api.expect
        expect(page.get_by_role("textbox", name="Question")).to_be_focused()
        page.keyboard.type("Which way, slowly?")
        expect(page.get_by_text("3 seats, at most 10 calls")).to_be_visible()
        press_on(page, "Ask")
        expect(page.get_by_role("article", name="c")).to_contain_text("Piece by")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text("Go north.", timeout=30_000)
        expect(page.get_by_role("article", name="a")).to_contain_text("<img src=x onerror")
        assert page.locator("main img").count() == 0
        assert page.get_by_role("table").locator("tbody tr").count() == 3
        press_on(page, "the ranking, by pairwise majorities")
        expect(page.get_by_text("no model is asked")).to_be_visible()
        expect(page.locator("[role=status] .question-box")).to_contain_text("I am ")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        press_on(page, "prompts and replies")
        expect(page.get_by_role("region", name="The decision in full")).to_have_text("Go north." + " On and on." * 12)
        press_on(page, "Ask a council: this question")
        expect(page.get_by_role("heading", level=1)).to_have_text("Which way, slowly?")
    assert (wrong, hosts) == ([], {"http://127.0.0.1"})


def press_on(page, name):
    """Go to a button with the Tab key, and press it."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == name:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"no Tab leads to {name!r}")
