"""Every reply that an endpoint bills counts, whatever it says, and is not paid for without end."""

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest

from madplug import Completion, EmptyReplyError, RefusedError, Sample, TransientError, Usage
from madplug.calls.gateway import MOST_TOKENS, MOST_USD
from madplug.config.plan import StudyPlan
from madplug.config.shape import Limits
from madplug.store import MemoryStore
from madplug.study import cost_of
from madplug.study.run import StudyRun
from madplug_testing import Scripted, play

BILL = Usage(prompt=7, completion=3, raw={"finish_reason": "length"})
EMPTY = EmptyReplyError("the answer is empty", BILL)
CUT = RefusedError("the answer's tokens were used up", BILL)
UNREADABLE = TransientError("the reply has no message", BILL)


def test_more_cached_tokens_than_the_prompt_has_cost_what_the_prompt_costs():
    assert cost_of(Usage(10, 1, cached=30), {"prompt": 2.0, "completion": 4.0, "cached": 1.0}) == 14 / 1e6


class Billing(Scripted):
    """Raises an error about a paid reply as often as asked for, then answers."""

    def __init__(self, error, times=10_000, **options):
        super().__init__(lambda request: "A")
        self.__dict__["options"] = self.Options(**{"price": {"prompt": 1e6, "completion": 1e6}, **options})
        self.error, self.left, self.asked = error, times, 0

    async def complete(self, request):
        self.asked += 1
        if self.left:
            self.left -= 1
            raise self.error
        return Completion("A", BILL)


def run(model, store=None, *, samples=1, warn=print, **limits):
    """Run a study of debates with one call each."""
    rows = [Sample(f"q{i}", f"question {i}") for i in range(samples)]
    cell = play(replies=lambda r: "A", agents=1, sample=rows).debate.cell
    plan = StudyPlan("s", [cell], {"model": model}, limits=Limits(**limits))
    study = StudyRun(plan, store or MemoryStore(), warn=warn)
    return asyncio.run(study.run())


@pytest.mark.parametrize("error", [EMPTY, CUT, UNREADABLE], ids=["empty", "refused", "unreadable"])
@pytest.mark.parametrize("limits", [{"calls": 10}, {"tokens": 100}, {"cost_usd": 100}], ids=["calls", "tokens", "cost"])
def test_limits_count_replies_that_were_paid_and_were_no_answers(error, limits):
    model = Billing(error, max_in_flight=1)
    summary = run(model, samples=40, **limits)
    assert (summary["status"], summary["ending"]) == ("stopped", "limit")
    assert model.asked == 10
    assert summary["paid"] == {"calls": 10, "tokens": 100, "cost_usd": 100.0}


@pytest.mark.parametrize(("error", "most"), [(EMPTY, 3), (CUT, 1), (UNREADABLE, 2)],
                         ids=["empty", "refused", "unreadable"])
def test_the_figures_of_a_debate_have_what_its_replies_cost(error, most):
    model, store = Billing(error, attempts=2 if error is UNREADABLE else 8), MemoryStore()
    [cell] = run(model, store)["cells"]
    assert model.asked == cell["calls"] == most
    assert cell["tokens"] == {"prompt": 7 * most, "completion": 3 * most, "cached": 0}
    assert cell["cost_usd"] == 10 * most
    assert [row["usage"]["prompt"] for row in store.calls()] == [7] * most
    [debate] = store.debates()
    keys = [*debate.opening_calls, *debate.other_calls, *(key for m in debate.messages for key in m.calls)]
    assert store.spent(keys).calls == most


def test_a_reply_of_unknown_usage_is_estimated():
    store = MemoryStore()
    summary = run(Billing(EmptyReplyError("empty"), times=1), store)
    estimated, answered = store.calls()
    assert (estimated["text"], answered["text"]) == ("", "A")
    assert estimated["usage"]["raw"]["estimated"]
    assert summary["paid"]["tokens"] == 10 + estimated["usage"]["prompt"]


@pytest.mark.parametrize(("error", "options", "most"), [
    (CUT, {}, 3), (CUT, {"empty_attempts": 1}, 1), (CUT, {"attempts": 2}, 2), (UNREADABLE, {"attempts": 2}, 2),
    (EMPTY, {}, 3)])
def test_a_study_run_again_and_again_pays_no_more_often_than_the_attempts_say(error, options, most):
    store, model = MemoryStore(), Billing(error, **options)
    for _ in range(6):
        run(model, store)
    assert model.asked == store.totals().calls == most


def test_a_study_that_was_stopped_between_two_empty_replies_makes_only_the_attempts_that_are_left():
    store, model = MemoryStore(), Billing(EMPTY)
    assert run(model, store, calls=2)["status"] == "stopped"
    [cell] = run(model, store)["cells"]
    assert (model.asked, cell["done"], cell["calls"], cell["retries"]) == (3, 1, 3, 2)


def test_a_cell_that_shares_a_call_counts_every_reply_to_it_and_none_is_paid_again():
    model = Billing(EMPTY, times=1)
    cell = play(replies=lambda r: "A", agents=1).debate.cell
    cells = [replace(cell, slug=slug) for slug in ("first", "second")]
    summary = asyncio.run(StudyRun(StudyPlan("s", cells, {"model": model}), MemoryStore()).run())
    assert model.asked == summary["paid"]["calls"] == 2
    assert [(c["calls"], c["retries"], c["tokens"]["prompt"]) for c in summary["cells"]] == [(2, 1, 14)] * 2


def test_replies_cut_off_by_max_tokens_are_a_problem_that_is_said_once_for_a_model():
    problems = run(Billing(CUT), samples=20)["problems"]
    assert len(problems) == 1
    assert problems[0].startswith("model 'model': replies were empty")
    assert problems[0].endswith("raise max_tokens and run with another --output")


def test_what_the_user_cannot_see_in_replies_is_told_once_for_a_model(monkeypatch):
    told = []
    run(Billing(None, times=0), samples=20, warn=told.append)
    monkeypatch.setitem(globals(), "BILL", Usage())
    run(Billing(None, times=0), samples=20, warn=told.append)
    assert told == ["model 'model': replies were cut off; if answers cannot be read, raise max_tokens and run with "
                    "another --output",
                    "model 'model': the endpoint reports no tokens; they are estimated from the texts"]
    assert run(Billing(None, times=0), samples=2)["estimated"] == ["model"]


CLAMPED, NAN, INFINITE = {"clamped": True}, float("nan"), float("inf")


@pytest.mark.parametrize(("said", "kept"), [
    *((Usage(tokens, 1, 0, 0.5), Usage(MOST_TOKENS, 1, 0, 0.5, CLAMPED)) for tokens in (2**63, 10**400, INFINITE)),
    *((Usage(tokens, 1, 0, 0.5), Usage(0, 1, 0, 0.5, CLAMPED)) for tokens in (-1, NAN, "many", None)),
    *((Usage(1, 1, 0, cost), Usage(1, 1, 0, None, CLAMPED)) for cost in (NAN, INFINITE, -1.0, 1e300, "free")),
    *((usage, usage) for usage in (Usage(10, 5, 2, 0.1, {"a": 1}), Usage(MOST_TOKENS, 0, 0, MOST_USD))),
    (Usage(Fraction(3), Fraction(2), True, Fraction(1, 2)), Usage(3, 2, 1, 0.5)),  # real numbers, as NumPy's are
    (Usage(3, 3, 0, 0.1, None), Usage(3, 3, 0, 0.1))])  # what reads `raw` would raise, and the slot stay taken
def test_an_absurd_usage_is_clamped_and_marked_and_sums_stay_exact(said, kept):
    class Boaster(Billing):
        async def complete(self, request):
            return Completion("A", said)

    store = MemoryStore()
    summary = run(Boaster(None, price=None, max_in_flight=1), store, samples=20)
    assert [call.usage for call in (store.call(row["key"]).completion for row in store.calls())] == [kept] * 20
    [cell] = summary["cells"]
    assert (cell["tokens"]["prompt"], cell["cost_usd"]) == (20 * kept.prompt, kept.cost_usd and cell["cost_usd"])
    assert summary["paid"]["tokens"] == store.totals().tokens == 20 * (kept.prompt + kept.completion)
    assert type(summary["paid"]["tokens"]) is int
