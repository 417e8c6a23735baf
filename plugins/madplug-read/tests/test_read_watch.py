"""`madplug run --watch`: debates on the terminal as they are run, one at a time."""

import errno
import os
import pty
import subprocess
import sys
from contextlib import suppress
from io import StringIO

import pytest
from rich.console import Console

from madplug import (
    Agent,
    AgentsCast,
    Answered,
    CallAnswered,
    Caller,
    Completion,
    DebateFinished,
    DebateId,
    DebateResult,
    DebateStarted,
    Decided,
    Decision,
    Message,
    MessageRecorded,
    Persona,
    Request,
    Run,
    Sample,
)
from madplug.events import METHODS
from madplug.store import open_recorder
from madplug_read.watch import Watch


def of(name):
    return DebateId("c", 0, name), Sample(name, f"Question {name}?", ("red", "blue")), ("B",)


def started(name="a"):
    return DebateStarted(*of(name))


def cast(name="a"):
    return AgentsCast(of(name)[0], tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(2)))


def said(id, agent, key, round=1, seen=(), calls=(), name="a", content=None):
    return MessageRecorded(of(name)[0], Message(id, round, 0, agent, "improve", content or f"I say {key}", answer=key,
                                                key=key, seen=seen, calls=calls), None)


def asked(key, purpose, round, text, agent=None):
    return CallAnswered(of("a")[0], Caller("c", 0, "a", agent, purpose, round=round), Request((), purpose, "m"),
                        Answered(Completion(text), key=key))


def ended(key="B", error=None, name="a"):
    result = DebateResult("c", 0, *of(name)[1:], decision=None if error else Decision(key, answer=key, agreed=True),
                          calls=3, error=error, metrics={"qa.accuracy": float(key == "B")})
    return DebateFinished(of(name)[0], "failed" if error else "done", result)


@pytest.fixture
def shown(tmp_path):
    """What is printed on these events."""
    open_recorder(tmp_path / "study").close()

    def shown(*events, **more):
        text = StringIO()
        watch = Watch(console=Console(file=text, color_system=None, **{"width": 80} | more))
        watch.open(Run("s", tmp_path / "study", 1, None, lambda: None, print))
        for event in events:
            getattr(watch, METHODS[type(event)])(event)
        return text.getvalue()
    return shown


def test_one_debate_is_shown_at_a_time(shown):
    events = (started("a"), started("b"), cast("a"), cast("b"), said(0, 0, "A"), said(0, 0, "A", name="b"),
              said(1, 1, "B"), ended(name="b"), said(2, 0, "B", 2), ended())
    text = shown(*events)
    assert [line for line in text.splitlines() if "uestion" in line] == ["Question a?", "Question b?"]
    assert text.index("decision: B (agreed), right; 3 calls") < text.index("Question b?")
    assert shown(*events[:-1]).count("Question") == 1


@pytest.mark.parametrize(("events", "lines"), [
    ([said(0, 0, "17", content="\n12 + 5 = 17 \n\n\n  So 17.\nFinal answer: 17\n")],
     "round 1, Agent 1, improve: 12 + 5 = 17\n      So 17.\n    Final answer: 17\n"),
    ([said(0, 0, "B"), said(1, 1, "C"), said(2, 0, "C", 2, (0, 1))],
     "round 2, Agent 1, improve: I say C\n    B -> C after Agent 2\n"),
    ([said(0, 0, "B"), said(1, 1, "C"), said(2, 1, "B", 2)], "    C -> B\n"),
    ([said(0, 0, "B"), said(1, 1, "C"), said(2, 1, "B", 2), said(3, 0, "C", 3, (0, 1, 2))], "I say C\n    B -> C\n"),
    ([ended("A")], "decision: A (agreed), wrong (reference: B); 3 calls"),
    ([ended(error="no answer came")], "failed: no answer came"),
    ([asked("k", "vote", 1, "B, please", agent=1), Decided(DebateId("c", 0, "a"), Decision("A"))],
     "  vote of Agent 2: B, please\n"),
], ids=["the lines of a message without blank ones", "a change of mind and whom it follows", "a change after nobody",
        "a change to an answer that nobody has any more", "a wrong decision", "a failure", "a vote"])
def test_what_is_shown_of_an_event(shown, events, lines):
    assert lines in shown(started(), cast(), *events)


def test_calls_of_personas_are_shown_those_of_messages_once_and_a_further_sample_is_no_change_of_mind(shown):
    text = shown(started(), asked("k1", "persona", 0, "a careful critic"), cast(),
                 asked("k2", "discuss", 1, "I say A"), said(0, 0, "A", calls=("k2",)), said(1, 0, "C"), ended("A"))
    assert "  persona: a careful critic\n" in text
    assert text.count("I say A") == 1
    assert "->" not in text


def test_no_word_is_broken_on_a_terminal_and_no_line_elsewhere(shown):
    words = " ".join(f"word{i}" for i in range(30))
    events = (started(), cast(), said(0, 0, None, content=words))
    text = shown(*events, width=40, force_terminal=True)
    assert set(words.split()) <= set(text.split())
    assert max(map(len, text.splitlines())) <= 40
    assert words in shown(*events, width=40)


def test_the_option_shows_messages_graded_decisions_and_no_escape_and_other_observers_are_told_as_well(program):
    done = program("run", "study.toml", "--watch", "--set", "models.m.letters=\"\u001b\"", status=0)
    assert "round 2, Agent 1, improve: \N{REPLACEMENT CHARACTER}" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    done = program("run", "study.toml", "--watch", "--observe", "kit.starts", "--output", "other",
                   "--set", 'models.m.letters="A"')
    assert done.stderr.count("decision: A (agreed), right; 4 calls") == 6
    assert done.stderr.count("started q") == 6


def test_lines_stand_above_the_progress_bar(program):
    """If this fails: the bar is drawn into the messages, or they into the bar."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen([sys.executable, "-m", "madplug", "run", "study.toml", "--watch"], stderr=theirs,
                           stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""})
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # on Linux, the end of what was printed on a terminal that was closed
        while part := os.read(ours, 100_000):
            printed += part
    os.close(ours)
    assert run.wait() == 0
    text = printed.decode()
    assert "\x1b[2K\x1b[36m  round 1, Agent 1, improve: " in text  # the bar's line is cleared, and it is drawn again
    assert "6/6" in text


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_a_line_that_cannot_be_printed_ends_nothing(monkeypatch, number):
    class Gone(StringIO):
        def write(self, text):
            raise OSError(number, "gone")  # which makes BrokenPipeError of EPIPE

    watch = Watch()
    watch.open(Run("s", None, 1, None, lambda: None, print))
    monkeypatch.setattr("sys.stderr", Gone())
    for event in (started("a"), cast("a"), said(0, 0, "A"), ended()):
        getattr(watch, METHODS[type(event)])(event)
