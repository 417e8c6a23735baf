"""What a run shows: progress and what it waits for, and a table with a conclusion."""

import errno
import time
from io import StringIO

import pytest
from rich.console import Console

from madplug.cli import terminal
from madplug.cli.progress import ProgressText, clock_text
from madplug.cli.tables import conclusion, summary_table
from madplug.cli.terminal import Terminal
from madplug.context import Progress, Run
from madplug.text import dollars


class Clock:
    def __init__(self):
        self.now, self.state = 0.0, Progress(0, 0, 0, 0, 0.0)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def line(clock):
    text = ProgressText(lambda: clock.state, 10, clock)

    def line(seconds, *state, ended=0, **more):
        clock.now += seconds
        clock.state = Progress(*state, *[0, 0, 0, 0, 0.0][len(state):], **more)
        return text.text(ended)

    return line


def test_calls_in_flight_stand_apart_from_those_answered(line):
    assert line(0.5, 3, 8) == "3 answered, 8 in flight, 6.0 calls/s, 0 tokens/s, 0:00 elapsed"


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
    text = ProgressText(lambda: clock.state, 10, clock)
    clock.now += 60.0
    clock.state = Progress(5, 8, 1, 100, 0.5)
    whole = text.text(5)
    assert whole == "5 answered, 8 in flight, 0.1 calls/s, 2 tokens/s, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left"
    assert text.text(5, width=len(whole)) == whole
    assert text.text(5, width=80) == "5 answered, 8 in flight, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left"
    assert text.text(5, width=50) == "5 answered, $0.5000, 1:00 elapsed, about 1:00 left"
    clock.now, clock.state = 120.0, clock.state._replace(in_flight=0, waiting="model 'm' cannot be reached; " * 3)
    assert text.text(5, width=40) == "5 answered, model 'm' cannot be..."


def test_after_twenty_debates_a_line_of_80_columns_foretells_calls_dollars_and_time(clock):
    clock.state = Progress(0, 0, 0, 0, 1.0)
    text = ProgressText(lambda: clock.state, 200, clock)
    clock.now += 60.0
    clock.state = Progress(19 * 6, 16, 0, 100_000, 1.95)
    assert "114 answered" in text.text(19 + 50, before=50)
    clock.state = Progress(20 * 6, 16, 0, 100_000, 2.0)
    assert text.text(20 + 50, before=50, width=80 - len("debates ") - terminal.BAR - len(" 100/200 ")) == (
        "120/~900 answered, $2.00/~$8.50, about 6:30 left")
    bounded = ProgressText(lambda: clock.state, 200, clock, most=600)
    assert bounded.text(20 + 50, before=50).startswith("120/~600 answered, ")


def test_of_calls_nothing_is_said_while_debates_end_without_any(line):
    assert line(1.0).startswith("0 answered, ")
    assert line(1.0, ended=4) == "0:02 elapsed, about 0:03 left"


def test_elapsed_and_remaining_time_failures_cost_and_retries(line):
    assert line(60.0, 5, 0, 1, 0, 0.5, ended=5) == (
        "5 answered, 0.1 calls/s, 0 tokens/s, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left")
    assert clock_text(3725) == "1:02:05"


def test_elsewhere_than_on_a_terminal_a_line_comes_when_nothing_was_printed_for_a_while(clock, monkeypatch):
    monkeypatch.setattr(terminal, "PLAIN_EVERY", 0.05)
    text = StringIO()
    shown = terminal.Terminal(console=Console(file=text, width=200))
    shown.open(Run("s", None, 1, 10, lambda: Progress(3, 8, 0, 0, 0.0), print))
    end = time.monotonic() + 20
    while "0/10 debates  3 answered, 8 in flight" not in text.getvalue():
        assert time.monotonic() < end
        time.sleep(0.01)
    shown.close()


# The end

def cell(name, means, **more):
    metrics = {n: {"mean": m, "ci95": [m - 0.1, m + 0.1], "n": 20, "proportion": n == "qa.accuracy"}
               for n, m in means.items()}
    return {"cell": name, "oracle": False, "metrics": metrics, "done": 20, "failed": 0, "undecided": 1, "calls": 60,
            "tokens": {"prompt": 400, "completion": 200}, "cost_usd": 0.0, **more}


def table(*cells, width=80):
    return summary_table({"cells": cells}, width)


MEANS = {"qa.accuracy": 0.5, "dynamics.rounds": 2.0}


def test_metrics_come_first_in_the_order_of_the_run_file():
    head = table(cell("a", {"z.last": 0.1, **MEANS}), width=120).splitlines()[0]
    assert head.split() == ["cell", "z.last", "qa.accuracy", "dynamics.rounds", "debates", "undecided", "failed",
                            "calls", "tokens"]


@pytest.mark.parametrize(("cells", "first"), [
    (["a", "b"], "cell"), (["decision=a", "decision=b"], ""),
    (["decision=" + "x" * 40, "decision=" + "y" * 40], "decision=" + "x" * 40)])
def test_a_table_is_readable_at_eighty_columns(cells, first):
    means = {"qa.accuracy": 0.5} if len(cells[0]) < 3 else {**MEANS, "qa.f1.recall": 0.2, "qa.f1.precision": 0.3}
    text = table(*(cell(name, means) for name in cells))
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[0].split("  ")[0] == first
    assert text.count("[0.40, 0.60]") == 2


def test_metrics_of_several_figures_make_room_for_a_row_for_each_cell():
    means = {"qa.accuracy": 0.5} | {f"dynamics.entropy.round_{i}": 0.2 for i in (1, 2, 3)}
    lines = table(*(cell(name, means) for name in "abcdefg")).splitlines()
    assert len(lines) == 1 + 7 + 1
    assert lines[-1] == "dynamics.entropy: 3 figures in summary.json"


@pytest.mark.parametrize(("cells", "words"), [
    ([cell("a", MEANS)], "qa.accuracy lies between 0.40 and 0.60, with 95% confidence, from 20 samples."),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.6})],
     "'b' has the highest qa.accuracy, but its interval overlaps that of 'a': on 20 samples these intervals do not "
     "tell them apart."),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.6}), cell("c", {"qa.accuracy": 0.55})], "those of 2 other cells"),
    ([cell("a", MEANS), cell("b", MEANS)], "qa.accuracy is the same in both cells: 20 samples show no difference."),
    ([cell("a", MEANS), cell("b", MEANS), cell("c", {"qa.accuracy": 0.45})], "'a' is among those with the highest"),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.9})], "'b' has the highest qa.accuracy, and its interval overlaps "
     "no other cell's."),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.9}, settings={"dataset.path": "other.csv"})],
     "Cells with different data sets have different questions"),
    ([cell("a", MEANS, oracle=True)], "Components saw the references, so this is not about models.")])
def test_it_ends_with_what_can_be_concluded(cells, words):
    assert words in conclusion({"cells": cells})


def test_without_a_share_of_right_answers_nothing_is_concluded():
    assert conclusion({"cells": [cell("a", {"dynamics.rounds": 2.0})]}) is None
    assert conclusion({"cells": []}) is None


class Gone(StringIO):
    """A terminal that was closed, or a pipe that is no longer read."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, "gone")  # which makes BrokenPipeError of EPIPE


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_a_line_that_cannot_be_printed_ends_nothing(monkeypatch, number):
    monkeypatch.setattr("sys.stderr", Gone(number))
    terminal = Terminal()
    terminal.say("worker 1 was lost")
    terminal.say("worker 2 was lost")
    terminal.close()


@pytest.mark.parametrize(("amount", "shown"), [(0, "0"), (1234.5, "1,234.50"), (0.12, "0.1200"), (6e-05, "0.00006")])
def test_dollars_are_shown_without_exponents(amount, shown):
    assert dollars(amount) == shown
