"""What a run shows: progress and what it waits for, debates one at a time, and a table with a conclusion."""

import errno
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
    Sample,
)
from madplug.cli.progress import ProgressText, clock_text
from madplug.cli.tables import conclusion, summary_table
from madplug.cli.terminal import Terminal
from madplug.context import Progress
from madplug.watch import Watch


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
    assert text.text(5, width=50) == "5 answered, 8 in flight, $0.5000, 1:00 elapsed"


def test_of_calls_nothing_is_said_while_debates_end_without_any(line):
    assert line(1.0).startswith("0 answered, ")
    assert line(1.0, ended=4) == "0:02 elapsed, about 0:03 left"


def test_elapsed_and_remaining_time_failures_cost_and_retries(line):
    assert line(60.0, 5, 0, 1, 0, 0.5, ended=5) == (
        "5 answered, 0.1 calls/s, 0 tokens/s, $0.5000, 1 retry, 1:00 elapsed, about 1:00 left")
    assert clock_text(3725) == "1:02:05"


def test_elsewhere_than_on_a_terminal_a_line_comes_when_nothing_was_printed_for_a_while(clock, monkeypatch):
    import time

    from madplug.cli import terminal
    from madplug.context import Run

    monkeypatch.setattr(terminal, "PLAIN_EVERY", 0.05)
    text = StringIO()
    shown = terminal.Terminal(console=Console(file=text, width=200))
    shown.open(Run("s", None, 1, 10, lambda: Progress(3, 8, 0, 0, 0.0)))
    end = time.monotonic() + 20
    while "0/10 debates  3 answered, 8 in flight" not in text.getvalue():
        assert time.monotonic() < end
        time.sleep(0.01)
    shown.close()


# Watching

def sample(name):
    return Sample(name, f"Question {name}?", ("red", "blue"))


def started(name):
    return DebateStarted(DebateId("c", 0, name), sample(name), ("B",))


def cast(name):
    return AgentsCast(DebateId("c", 0, name), tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(2)))


def said(name, id, agent, key, round=1, seen=(), calls=()):
    return MessageRecorded(DebateId("c", 0, name), Message(id, round, 0, agent, "improve", f"I say {key}", answer=key,
                                                           key=key, seen=seen, calls=calls), None)


def asked(name, key, purpose, round, text, agent=None):
    answered = Answered(Completion(text), key=key)
    return CallAnswered(DebateId("c", 0, name), Caller("c", 0, name, agent, purpose, round=round),
                        Request((), purpose, "m"), answered)


def ended(name, key="B", error=None):
    decision = None if error else Decision(key, answer=key, agreed=True)
    return DebateFinished(DebateId("c", 0, name), "failed" if error else "done",
                          DebateResult("c", 0, sample(name), ("B",), decision=decision, calls=3, error=error))


METHODS = {DebateStarted: "debate_started", AgentsCast: "agents_cast", CallAnswered: "call_answered",
           MessageRecorded: "message_recorded", Decided: "decided", DebateFinished: "debate_finished"}


def shown(*events, width=80):
    text = StringIO()
    watch = Watch(lambda result: result.decision.key == "B", console=Console(file=text, width=width))
    for event in events:
        getattr(watch, METHODS[type(event)])(event)
    return text.getvalue()


def test_one_debate_is_shown_at_a_time():
    events = (started("a"), started("b"), cast("a"), cast("b"), said("a", 0, 0, "A"), said("b", 0, 0, "A"),
              said("a", 1, 1, "B"), ended("b"), said("a", 2, 0, "B", 2), ended("a"))
    text = shown(*events)
    assert [line for line in text.splitlines() if "uestion" in line] == ["Question a?", "Question b?"]
    assert text.index("decision: B (agreed), right; 3 calls") < text.index("Question b?")
    assert shown(*events[:-1]).count("Question") == 1


def test_the_lines_of_a_message_stand_below_each_other_without_blank_ones():
    message = Message(0, 1, 0, 0, "draft", "\n12 + 5 = 17 \n\n\n  So 17.\nFinal answer: 17\n", answer="17", key="17")
    text = shown(started("a"), cast("a"), MessageRecorded(DebateId("c", 0, "a"), message, None))
    assert "round 1, Agent 1, draft: 12 + 5 = 17\n      So 17.\n    Final answer: 17\n" in text


def test_a_change_of_mind_is_marked_with_whom_it_follows():
    text = shown(started("a"), cast("a"), said("a", 0, 0, "B"), said("a", 1, 1, "C"), said("a", 2, 0, "C", 2, (0, 1)),
                 said("a", 3, 1, "B", 2))
    assert "round 2, Agent 1, improve: I say C\n    B -> C after Agent 2\n" in text
    assert "    C -> B\n" in text


def test_a_further_sample_of_an_agent_that_was_shown_nothing_is_no_change_of_mind():
    assert "->" not in shown(started("a"), cast("a"), said("a", 0, 0, "B"), said("a", 1, 0, "C"))


def test_a_decision_is_right_or_wrong():
    assert "decision: A (agreed), wrong (reference: B); 3 calls" in shown(started("a"), ended("a", "A"))
    assert "failed: no answer came" in shown(started("a"), ended("a", error="no answer came"))


def test_calls_of_personas_and_votes_are_shown_and_those_of_messages_once():
    text = shown(started("a"), asked("a", "k1", "persona", 0, "a careful critic"), cast("a"),
                 asked("a", "k2", "discuss", 1, "I say A"), said("a", 0, 0, "A", calls=("k2",)),
                 asked("a", "k3", "vote", 1, "B, please", agent=1), Decided(DebateId("c", 0, "a"), Decision("A")),
                 ended("a", "A"))
    assert "  persona: a careful critic\n" in text
    assert "  vote of Agent 2: B, please\n" in text
    assert text.count("I say A") == 1


def test_no_word_is_broken_on_a_terminal_and_no_line_elsewhere():
    words = " ".join(f"word{i}" for i in range(30))
    event = MessageRecorded(DebateId("c", 0, "a"), Message(0, 1, 0, 0, "improve", words), None)
    text = StringIO()
    watch = Watch(console=Console(file=text, width=40, force_terminal=True, color_system=None))
    for one in (started("a"), cast("a"), event):
        getattr(watch, METHODS[type(one)])(one)
    assert set(words.split()) <= set(text.getvalue().split())
    assert max(map(len, text.getvalue().splitlines())) <= 40
    assert words in shown(started("a"), cast("a"), event, width=40)


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
