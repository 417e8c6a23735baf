"""What goes wrong at the endpoint: requests, clients that leave, limits, signals, keys."""

import asyncio
import http.client
import json
import signal
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from aiohttp.web import AppRunner, SockSite
from click.testing import CliRunner

from madplug.cli.program import main
from madplug_serve import web
from madplug_serve.conversation import Asked
from madplug_serve.debates import Debates
from madplug_view.listening import Listening

KEY = "serve-key-0123456789"


PLAIN = """answers = "answers.choice"
[debate]
paradigm = "som.debate"
agents = 2
[models.m]
use = "openai.chat"
model = "x"
"""


def request(served, body, *, key=KEY, path="/v1/chat/completions", **headers):
    """Send a body as it is."""
    connection = http.client.HTTPConnection(served.url.removeprefix("http://").partition("/")[0], timeout=60)
    sent = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", path, body if isinstance(body, bytes | str) else json.dumps(body), sent)
    return connection


def post(served, body, **more):
    """The status and the error of a reply."""
    connection = request(served, body, **more)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, json.loads(text).get("error", {})


def body(**more):
    return {"model": "main", "messages": [{"role": "user", "content": "(A) or (B)?"}], **more}


def wait_until(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize(("sent", "status", "said"), [
    (b"{", 400, "not valid JSON"),
    (b"[" * 100_000, 400, "not valid JSON"),
    (b"[]", 400, "not a JSON object"),
    (body(model=None), 400, "'model' is required"),
    (body(model="mains"), 404, "did you mean 'main'?"),
    (body(messages=[]), 400, "'messages' is required"),
    (body(messages=["hello"]), 400, "messages[0] is not an object"),
    (body(messages=[{"role": "tool", "content": "x"}]), 400, "messages[0].role is not supported"),
    (body(messages=[{"role": "assistant", "content": "x"}]), 400, "the last message has to be one of the user"),
    (body(messages=[{"role": "user", "content": " "}]), 400, "with a text"),
    (body(messages=[{"role": "user", "content": [{"type": "input_audio"}]}]), 400, "neither a text nor an image"),
    (body(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]),
     400, "begins with https://"),
    (body(messages=[{"role": "user", "content": "Is 91 prime?"}]), 400, "answer format of 'main': it has no choices"),
    (body(stream=True, messages=[{"role": "user", "content": "Is 91 a prime?"}]), 400, "does not fit answers.choice"),
    (body(n=0), 400, "'n' is not a whole number from 1 to 128"),
    (body(n=True), 400, "'n' is not"),
    (body(seed="x"), 400, "'seed' is not"),
    (body(tools=[{"type": "function"}]), 400, "'tools' is not supported"),
    (body(logprobs=True), 400, "'logprobs' is not supported"),
    (body(response_format={"type": "json_object"}), 400, "'response_format' is not supported"),
    (b" " * (33 * 2**20), 413, "larger than"),
    (body(messages=[{"role": [], "content": "x"}]), 400, "messages[0].role is not supported"),
], ids=range(22))
def test_a_request_that_is_not_valid_is_told_why(shared, agents, sent, status, said):
    found, error = post(shared, sent)
    assert found == status
    assert said in error["message"]
    assert agents.stats()["requests"] == 0


@pytest.mark.parametrize(("more", "status", "said"), [
    ({"path": "/v1/completions"}, 404, "/v1/chat/completions"),
    ({"Content_Encoding": "gzip"}, 400, "the body is not what its Content-Encoding says"),
    ({"Content_Encoding": "deflate"}, 400, "the body is not what its Content-Encoding says"),
    *(({"key": key}, 401, "") for key in (None, "wrong", KEY + "x", "", "\xe9", "\xff\xfe"))])
def test_a_wrong_path_encoding_or_key_is_told_and_asks_no_agent(shared, agents, more, status, said):
    found, error = post(shared, body(), **more)
    assert (found, said in error["message"]) == (status, True)
    assert agents.stats()["requests"] == 0


def test_without_a_key_other_names_and_web_pages_are_refused(serve, agents):
    with serve("--no-key", "--quiet") as served:
        assert post(served, body(), key=None)[0] == 200
        assert post(served, body(), key=None, Host="attacker.example")[0] == 403
        assert post(served, body(), key=None, Host="attacker.example:8642")[0] == 403
        assert post(served, body(), key=None, **{"Content-Type": "text/plain"})[0] == 415
        for origin in ("https://attacker.example", "http://127.0.0.1:1", "null"):
            assert post(served, body(), key=None, Origin=origin)[0] == 403
        assert post(served, body(), key=None, Origin="app://notes")[0] == 200


@pytest.mark.parametrize("leaves", [True, False])
def test_a_client_that_leaves_or_waits_too_long_ends_its_debate_and_pays_nothing_twice(serve, agents, question, leaves):
    """The debate is in its second round."""
    agents.configure(faults=[None, None, None, "hang", "hang", "hang"])
    with serve("--timeout", "60" if leaves else "1.5") as served:
        if leaves:
            connection = request(served, json.dumps(body(messages=question)))
            wait_until(lambda: agents.stats()["requests"] == 6)
            connection.close()
            served.wait_for(r"main \S+\] stopped")
        else:
            status, error = post(served, body(messages=question))
            assert (status, error["code"]) == (504, "timeout")
        wait_until(lambda: agents.endpoint.in_flight == 0)
        assert post(served, body(messages=question))[0] == 200
    assert agents.stats()["requests"] == 9, "round 1 was not paid again"


def test_a_limit_of_the_study_is_a_quota_of_the_endpoint(serve, agents):
    with serve(more="[limits]\ncalls = 6\n") as served:
        assert post(served, body())[0] == 200
        for _ in range(2):
            status, error = post(served, body())
            assert (status, error["code"]) == (429, "insufficient_quota")
            assert "limits.calls: 6 reached" in error["message"]
        assert served.stop() == 3
    assert agents.stats()["requests"] == 6


def test_calls_that_prepare_a_study_are_told_before_the_first_request(serve, tmp_path):
    (tmp_path / "asks.py").write_text("""from madplug import Extension
class Asks(Extension):
    async def prepare(self, setup):
        await setup.ask("Which questions?", purpose="criteria")
""")
    with serve(more=f'[[extensions]]\nuse = "{tmp_path}/asks.py:Asks"\n') as served:
        served.wait_for("^1 model call made to prepare the cells")


@pytest.mark.parametrize(("number", "unread"), [(signal.SIGINT, False), (signal.SIGHUP, True)])
def test_a_signal_lets_calls_in_flight_end_and_keeps_them(serve, agents, question, number, unread):
    """Also when the terminal is closed, or nothing reads what the server prints any more."""
    agents.configure(latency_ms=1500)
    with serve() as served:
        replies = []
        asking = threading.Thread(target=lambda: replies.append(post(served, body(messages=question))))
        asking.start()
        wait_until(lambda: agents.stats()["requests"] == 3)
        if unread:
            served.printed.kill()
            served.printed.wait()
        assert served.stop(number) == 0
        asking.join()
    assert replies[0][0] == 503
    assert agents.stats()["ok"] == 3
    agents.configure(latency_ms=0)
    with serve() as served:
        assert post(served, body(messages=question))[0] == 200
    assert agents.stats()["requests"] == 3, "the three of round 1 were kept"


HALF = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"


def test_a_stop_does_not_wait_for_half_sent_bodies(serve):
    with serve() as served, socket.create_connection(("127.0.0.1", urlsplit(served.url).port)) as connection:
        connection.sendall(HALF + b"Authorization: Bearer %s\r\n\r\n{" % KEY.encode())
        time.sleep(0.5)
        assert served.stop() == 0
        assert b"503" in connection.recv(100)


@pytest.mark.parametrize(("sent", "said"), [(HALF, b""), (HALF + b"\r\n{", b"HTTP/1.1 408 ")])
def test_a_request_that_does_not_arrive_is_given_up(monkeypatch, sent, said):
    monkeypatch.setattr(web, "SENDING", 0.2)

    async def main():
        runner = AppRunner(web.Api(Debates(), ["m"], key=None, hosts=["x"]).application(), keepalive_timeout=0.2)
        await runner.setup()
        with Listening("127.0.0.1", 0) as listener:
            await SockSite(runner, listener).start()
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(sent)
            found = await reader.read(13)
            writer.close()
            await runner.cleanup()
        return found

    assert asyncio.run(main()) == said


def test_the_key_is_written_nowhere(serve, agents):
    with serve(environ={"MADPLUG_SERVE_KEY": ""}) as served:
        served.wait_for("API key")
        made = served.text.partition("): ")[2].split()[0]
        assert len(made) >= 32
        assert post(served, body(), key=made)[0] == 200
        assert post(served, body(), key="wrong")[0] == 401
        served.stop()
    for path in served.folder.iterdir():
        assert made.encode() not in path.read_bytes(), path
    assert served.text.count(made) == 1


@pytest.mark.parametrize(("options", "left_out", "said"), [
    (["--no-key", "--host", "0.0.0.0"], "", "--no-key allows anyone who reaches 0.0.0.0"),
    (["--template", "yes"], "", "contains neither {answer} nor {message}"),
    ([], 'answers = "answers.choice"', "answers: is required"), ([], "", "cannot listen there")])
def test_a_mistake_of_the_user_is_a_message_and_nothing_is_written(tmp_path, shared, options, left_out, said):
    (tmp_path / "x.toml").write_text(PLAIN.replace(left_out, ""))
    port = shared.url.removesuffix("/v1").rpartition(":")[2]  # which is in use
    words = ["serve", str(tmp_path / "x.toml"), "--output", str(tmp_path / "out"), "--port", port, *options]
    done = CliRunner().invoke(main, words, env={"MADPLUG_SERVE_KEY": ""})
    assert done.exit_code == 2
    assert done.stderr.startswith(f"loading {tmp_path / 'x.toml'}\n")
    assert said in done.stderr
    assert "API key" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_served_study_is_not_the_one_that_was_run(tmp_path):
    from madplug.config import load

    pytest.importorskip("madplug_puzzles")
    from madplug_serve.running import resolve_served

    file = tmp_path / "x.toml"
    file.write_text('repeats = 4\ndataset = {use = "puzzles.ordering"}\n' + PLAIN.partition("\n")[2])
    (served, left_out), run = resolve_served(file), load(file)
    assert left_out == ["repeats and [execution] are left out: a request is one debate, in this process"]
    assert served.identity != run.identity
    [cell] = served.plan.cells
    assert cell.dataset.full_name == "serve.conversations"
    assert cell.answers.full_name == run.plan.cells[0].answers.full_name
    assert list(cell.dataset.samples()) == list(run.plan.cells[0].dataset.samples()), "for components that prepare"


def test_a_served_cell_is_told_by_what_it_changes_and_a_matched_one_is_left_out(tmp_path):
    pytest.importorskip("madplug_baselines")
    from madplug_serve.running import resolve_served

    file = tmp_path / "x.toml"
    file.write_text(PLAIN + '[[cells]]\nname = "two"\ndebate.rounds = 2\n[[cells]]\nname = "votes"\n'
                    'debate.paradigm = "baselines.self_consistency"\nmatch.cell = "two"\n')
    served, left_out = resolve_served(file, ["repeats=3"])
    assert [(cell.slug, cell.settings) for cell in served.plan.cells] == [("two", {"debate.rounds": 2})]
    assert [text.partition(" ")[0] for text in left_out] == ["cell", "repeats"]
    assert "'votes' is matched" in left_out[0]


def test_a_changed_cell_is_refused_also_if_it_came_later(two_cells, serve, tmp_path):
    with serve() as served:
        assert served.stop() == 0
    with serve(more=two_cells) as served:
        assert post(served, body(model="short", seed=1))[0] == 200
        assert served.stop() == 0
    changed = (tmp_path / "served.toml").read_text().replace("debate.rounds = 1", "debate.agents = 5")
    (tmp_path / "served.toml").write_text(changed)
    done = CliRunner().invoke(main, ["serve", str(tmp_path / "served.toml"), "--port", "0", "--output",
                                     str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "debate.rounds was 1 and is now 2" in done.stderr


def test_the_next_debate_of_a_conversation_is_found_without_trying_all():
    debates = Debates()
    debates.check_open = lambda: None  # no study runs
    asked = Asked("main", "What?", n=128)
    ids = [id for _ in range(300) for id in debates.allot(asked, "main")]
    assert len(set(ids)) == 300 * 128
    debates._give_back(ids[7])
    assert debates.allot(Asked("main", "What?", n=2), "main") == [ids[7], (*ids[0][:2], f"{asked.digest}-38401")]
