"""`madplug ask` with seats: processes and an endpoint, a dead seat, a kill, the record."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from madplug import main
from madplug_testing.endpoint import running_endpoint

REFUSED = {"error": {"message": "the account is closed", "code": "insufficient_quota"}}
QUESTION = "Which way?"


def reply(body):
    text = body["messages"][-1]["content"]
    if body["model"] == "dead":
        return REFUSED
    if "South" in text and "Then rank" not in text:
        return f"Final answer: {'B' if body['model'] == 'c' and 'You chair it' not in text else 'A'}"
    if "You chair it" in text:
        return "Go north."
    labels = re.findall(r"^Answer (\w):$", text, re.MULTILINE)
    ranking = "\n".join(f"{i}. Answer {label}" for i, label in enumerate(sorted(labels), 1))
    return f"Well.\nFINAL RANKING:\n{ranking}" if "Then rank" in text else f"By {body['model']}."


@pytest.fixture
def endpoint():
    with running_endpoint(reply, keep=1000) as running:
        yield running


@pytest.fixture
def ask(tmp_path, endpoint, monkeypatch):
    for key in [k for k in os.environ if k.endswith("_API_KEY")]:
        monkeypatch.delenv(key)
    for key, value in {"OPENAI_BASE_URL": endpoint.url, "XDG_CONFIG_HOME": tmp_path / "config",
                       "XDG_STATE_HOME": tmp_path / "state"}.items():
        monkeypatch.setenv(key, str(value))
    monkeypatch.chdir(tmp_path)

    def ask(*words, question=QUESTION):
        done = CliRunner().invoke(main, ["ask", question, *map(str, words)], prog_name="madplug")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    folder = tmp_path / "config" / "madplug"
    folder.mkdir(parents=True)
    slot = '{{use = "openai.chat", model = "{}", base_url = "{}"}}'.format
    seats = {name: ", ".join(f"{m} = {slot(m, endpoint.url)}" for m in models)
             for name, models in {"three": ("a", "b", "c"), "hurt": ("a", "dead", "c"), "one": ("a",)}.items()}
    seats["one"] = seats["one"].replace("}", ', role = "You are a ferryman."}')
    (folder / "councils.toml").write_text("".join(f"[{name}]\nseats = {{{s}}}\n" for name, s in seats.items()))
    return ask


def test_a_council_answers_says_what_it_took_and_answers_from_the_record_unless_again(ask, endpoint, tmp_path):
    status, stdout, stderr = ask("--council", "three", "--export", "out.md")
    assert (status, stdout) == (0, "Go north.\n")
    assert "a (a), b (b), c (c): at most 10 calls (excluding retries), about" in stderr
    assert re.search(r"\n\na\nBy a\.\n\nb\nBy b\.\n(.*\n)*  \(A is \w, B is \w, C is \w\)\n\n"
                     r"\(the chair is writing the answer\)\n\nAnswer\nwritten by the chair, '\w', from 3", stderr)
    assert (tmp_path / "out.md").read_text().startswith("# Which way?\n\nGo north.\n")
    assert ask("--council", "three")[1] == "Go north.\n"
    assert len(endpoint.endpoint.seen) == 7
    ask("--council", "three", "--again")
    assert len(endpoint.endpoint.seen) == 14


@pytest.mark.parametrize(("words", "who"), [
    (("--council", "hurt"), "dead"), (("--council", "three", "--chair", "openai:dead"), "openai:dead, as the chair")])
def test_a_dead_seat_or_chair_is_told_first_with_the_provider_s_words(ask, words, who):
    status, stdout, stderr = ask(*words)
    assert (status, "openai:dead (dead, the chair): at most" in stderr) == (0, "--chair" in words)
    assert re.fullmatch(f"partial: not heard: {who}: .*the account is closed.*\nGo north.\n", stdout)


def test_after_a_dead_chair_another_one_is_paid_alone_with_what_is_said(ask, endpoint):
    said = ask("--council", "three", "--chair", "openai:dead")[2]
    asked = len(endpoint.endpoint.seen)
    again = re.search(r"to pay for a chair alone, ask again with another --chair and --set '(reuse=.*)'", said)[1]
    status, _, stderr = ask("--council", "three", "--chair", "openai:d", "--set", again)
    assert (status, len(endpoint.endpoint.seen)) == (0, asked + 1)
    assert "written by the chair, 'openai:d'" in stderr
    assert "to pay for a chair alone" not in stderr


def test_who_ends_on_another_choice_is_named(ask):
    _, stdout, stderr = ask("--council", "three", "--choice", "North", "--choice", "South")
    assert stdout == "A) North\n"
    assert re.findall("(.*) answered otherwise: (.*)\n", stderr) == [("c", "B")]


def test_nothing_is_asked_in_a_dry_run_and_nothing_paid_is_lost_where_it_cannot_be_exported(ask, endpoint):
    status, stdout, stderr = ask("--council", "one", "--dry-run")
    assert (status, stdout) == (0, "")
    assert "one seat, so that nothing is reviewed" in stderr
    assert "--export out.pdf: is written as .md or .html" in ask("--council", "one", "--export", "out.pdf")[2]
    assert not endpoint.endpoint.seen
    status, stdout, stderr = ask("--council", "one", "--export", "gone/out.md")
    assert (status, stdout) == (2, "By a.\n"), "what cannot be exported is printed all the same"
    assert "madplug: --export gone/out.md: cannot be written: No such file" in stderr


def test_a_question_that_a_limit_ended_goes_on_with_a_higher_one(ask, endpoint):
    said = ask("--council", "three", "--set", "limits.calls=2")[2]
    assert "the same command with a higher limit goes on from there" in said
    assert ask("--council", "three", "--set", "limits.calls=20")[1] == "Go north.\n"
    assert len(endpoint.endpoint.seen) == 7
    said = ask("--council", "three", "--again", "--set", "limits.calls=2")[2]
    assert "--output runs/ask/which-way" in said
    assert "in place of --again and a higher limit" in said


@pytest.mark.parametrize("calls", [1, 4, 6])
def test_a_killed_question_goes_on_and_pays_for_no_answered_call_again(ask, endpoint, calls):
    process = subprocess.Popen([sys.executable, "-m", "madplug", "ask", QUESTION, "--council", "three"])
    while len(endpoint.endpoint.seen) < calls and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(endpoint.endpoint.seen)
    assert ask("--council", "three")[1] == "Go north.\n"
    assert len(endpoint.endpoint.seen) <= 7 + min(3, before)  # only calls that were in flight may be made again


def test_a_difference_is_sent_without_secret_files(ask, endpoint, tmp_path):
    (tmp_path / "conf").mkdir()
    for text in ("old", "new"):
        for name in ("map.txt", "conf/.env"):
            (tmp_path / name).write_text(f"{text} {name}\n")
        for words in ("init -q", "add map.txt conf", "-c user.name=a -c user.email=a commit -qm x"):
            subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    ask("--council", "one", "--diff", "HEAD~1")
    sent = endpoint.endpoint.seen[0][1]["messages"][1]["content"]
    assert ("+new map.txt" in sent, "new conf/.env" in sent) == (True, False)


def test_a_role_files_and_an_earlier_debate_reach_the_seats(ask, endpoint, tmp_path):
    (tmp_path / "map.txt").write_text("The river bends.")
    ask("--council", "one", "--file", "map.txt")
    role, sent = (message["content"] for message in endpoint.endpoint.seen[0][1]["messages"])
    assert role == "You are a ferryman."
    assert re.search(r"\[File map.txt, between the marks (\w{16});.*\]\n\1\nThe river bends.\n\1", sent)
    [folder] = (tmp_path / "runs/ask").iterdir()
    ask("--council", "one", "--follow", folder, question="And then?")
    assert "Which way?\n\nBy a." in endpoint.endpoint.seen[1][1]["messages"][1]["content"]


@pytest.mark.parametrize(("method", "of_chair"), [("council.ranked", 2), ("council.fusion", 3), (None, 3)])
def test_the_chair_of_a_council_is_left_out_where_another_method_has_none(ask, endpoint, tmp_path, method,
                                                                              of_chair):
    councils = tmp_path / "config/madplug/councils.toml"
    councils.write_text(councils.read_text().replace("[three]\n", '[three]\nchair = "c"\n'))
    status, _, stderr = ask("--council", "three", *(["--use", method] if method else []))
    assert status == 0, stderr
    assert [body["model"] for _, body in endpoint.endpoint.seen].count("c") == of_chair


@pytest.mark.parametrize(("words", "message"), [
    (("--council", "two"), "there is no [two]"),
    (("--council", "a, b"), "takes the name of one council; for a council of these models, give each a seat: "
     "--seat a --seat b"), (("--chair", "x"), "--chair: goes with --seat or --council"),
    (("--council", "one", "--file", ".env"), "looks like a file of secrets"),
    (("--council", "one", "--file", "gone.txt"), "cannot be read: No such file"),
    (("--council", "one", "--max-usd", "1"), "the price of model 'a' is unknown"),
    (("--council", "auto"), "no key of a provider is set"),
    (("--seat", "small=openai:x", "--seat", "big=openai:y", "--chair", "smal"), "did you mean 'small'?"),
    (("--council", "three", "--chair", "a", "--use", "council.ranked"), "--chair a: council.ranked has no chair"),
    (("--seat", "a=nothing:x"), "--seat a=nothing:x: no installed plugin 'nothing' offers a model; for "
     "models at an OpenAI-compatible endpoint write --seat a=openai:x, for other providers --seat a=litellm:nothing/x"),
    (("--seat", "a=openai:x", "--set", "models.a.base_url=https://api.openai.com/v1"), "OPENAI_API_KEY is not set"),
    (("--seat", "a b=openai:x"), "a seat's name has letters"),
    (("--council", "one", "--follow", "whch-way"), "did you mean 'which-way'?; madplug status runs/ask lists them")])
def test_mistakes_are_told_before_anything_is_asked(ask, endpoint, tmp_path, words, message):
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "runs/ask/which-way").mkdir(parents=True)
    status, _, stderr = ask(*words)
    assert (status, len(endpoint.endpoint.seen)) == (2, 0)
    assert message in stderr
    assert "Traceback" not in stderr
