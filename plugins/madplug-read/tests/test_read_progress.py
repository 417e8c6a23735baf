"""What a run shows while it goes on: how far it is, how fast, and what it waits for."""

import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from madplug import DebateFinished, DebateId, DebateResult, Decision, Progress, Run, Sample, Vote
from madplug_read import bar
from madplug_read.progress import ProgressText, clock_text


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0, state=Progress(0, 0, 0, 0, 0.0))


def text_of(clock, debates, **more):
    return ProgressText(lambda: clock.state, debates, lambda: clock.now, **more)


@pytest.fixture
def line(clock):
    text = text_of(clock, 10)

    def line(seconds, *state, ended=0, **more):
        clock.now += seconds
        clock.state = Progress(*state, *[0, 0, 0, 0, 0.0][len(state):], **more)
        return text.text(ended)

    return line


@pytest.mark.parametrize(("seconds", "state", "ended", "said"), [
    (0.5, (3, 8), 0, "3 answered, 8 in flight, 6.0 calls/s, 0 tokens/s, 0:00 elapsed"),  # apart from those answered
    (60.0, (5, 0, 1, 0, 0.5), 5,
     "5 answered, 0.1 calls/s, 0 tokens/s, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left"),
    (1.0, (), 0, "0 answered, 0:01 elapsed"), (2.0, (), 4, "0:02 elapsed, about 0:03 left")])  # debates without calls
def test_calls_rates_cost_retries_and_time_are_told(line, seconds, state, ended, said):
    assert line(seconds, *state, ended=ended) == said
    assert clock_text(3725) == "1:02:05"


def test_after_a_second_without_news_it_says_what_the_run_waits_for(line):
    line(0.0, 3, 8)
    assert line(0.9, 3, 8).startswith("3 answered, 8 in flight")
    assert line(11.1, 3, 8) == "3 answered, 8 calls in flight, 0:12, 0:12 elapsed"
    assert line(0.1, 3, 1, waiting="loading the model 'small'") == (
        "3 answered, loading the model 'small', 0:12, 0:12 elapsed")
    assert "rate limited, next attempt in 40 s" in line(1, 3, 0, waiting="rate limited, next attempt in 40 s")
    assert line(0.1, 4, 8).startswith("4 answered, 8 in flight")


def test_rates_are_of_the_last_seconds(line):
    for _ in range(10):
        line(1.0, 0, 8)
    for n in range(1, 7):
        last = line(1.0, 20 * n, 8, 0, 200 * n)
    assert "20.0 calls/s, 200 tokens/s" in last
    for _ in range(6):
        last = line(1.0, 120, 8, 0, 1200)
    assert "calls/s" not in last


def test_a_line_that_is_too_long_leaves_out_what_matters_least(clock):
    text = text_of(clock, 10)
    clock.now, clock.state = 60.0, Progress(5, 8, 1, 100, 0.5)
    whole = text.text(5)
    assert whole == "5 answered, 8 in flight, 0.1 calls/s, 2 tokens/s, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left"
    assert text.text(5, width=len(whole)) == whole
    assert text.text(5, width=80) == "5 answered, 8 in flight, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left"
    assert text.text(5, width=50) == "5 answered, $0.5000, 1:00 elapsed, about 1:00 left"
    clock.now, clock.state = 120.0, clock.state._replace(in_flight=0, waiting="model 'm' cannot be reached; " * 3)
    assert text.text(5, width=40) == "5 answered, model 'm' cannot be..."


def test_after_twenty_debates_a_line_of_80_columns_foretells_calls_dollars_and_time(clock):
    clock.state = Progress(0, 0, 0, 0, 1.0)
    text, bounded = text_of(clock, 200), text_of(clock, 200, most=600)
    clock.now, clock.state = 60.0, Progress(19 * 6, 16, 0, 100_000, 1.95)
    assert "114 answered" in text.text(19 + 50, before=50)
    clock.state = Progress(20 * 6, 16, 0, 100_000, 2.0)
    assert text.text(20 + 50, before=50, width=80 - len("debates ") - bar.BAR - len(" 100/200 ")) == (
        "120/~900 answered, $2.00/~$8.50, about 6:30 left")
    assert bounded.text(20 + 50, before=50).startswith("120/~600 answered, ")


@pytest.mark.parametrize(("nth", "paid", "warned"), [(None, 1, True), (20, 1, True), (19, 1, False), (None, 0, False)])
def test_a_cell_of_which_nothing_can_be_read_is_told_early_and_once(nth, paid, warned):
    """nth: a debate that can be read. paid: calls; a run that pays none, such as one that scores, is not stopped."""
    text = StringIO()
    shown = bar.Terminal(Console(file=text, width=80))
    shown.open(Run("s", Path("runs/s"), 1, 80, lambda: Progress(paid, 0, 0, 0, 0.0), print))
    for n in range(40):
        for cell in "ab":
            read = cell == "b" or n == nth
            shown.debate_finished(DebateFinished(DebateId(cell, 0, f"q{n}"), "done", DebateResult(
                cell, 0, Sample(f"q{n}", "?"), (), (), (), Decision("A", votes=(Vote(0, {}, valid=read),)))))
    shown.close()
    told = ("warning: in all of the first 20 debates of 'a' a final answer, a ballot or another reply could not be "
            "read; madplug read runs/s --unread lists them, and Ctrl-C stops the run\n")
    assert text.getvalue() == told * warned


def test_elsewhere_than_on_a_terminal_a_whole_line_comes_every_few_seconds(monkeypatch):
    monkeypatch.setattr(bar, "PLAIN_EVERY", 0.05)
    text = StringIO()
    shown = bar.Terminal(Console(file=text, width=80))
    waiting = "model 'm' cannot be reached: http://127.0.0.1:9/v1/chat/completions: connection refused; next in 40 s"
    monkeypatch.setattr("madplug_read.progress.QUIET", -1.0)
    shown.open(Run("s", None, 1, 10, lambda: Progress(3, 8, 0, 0, 0.0, waiting=waiting), print))
    end = time.monotonic() + 20
    while f"0/10 debates  3 answered, {waiting}, 0:00, 0:00 elapsed\n" not in text.getvalue():
        assert time.monotonic() < end
        time.sleep(0.01)
    shown.close()
