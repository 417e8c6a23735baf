"""What the page shows of a debate: read from its record, without names where the reader is still to pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from madplug import DebateResult, Message
from madplug.store import is_running, open_study
from madplug.study import read
from madplug_ask.told import progress, told
from madplug_askpage.picks import Picks, blind_order

RANKS: Mapping[str, tuple[str, Any]] = {
    rank: (text, {"use": "council.best", "rank": rank}) for rank, text in (
        ("mean", "the ranking, by mean place"), ("borda", "the ranking, by Borda's count"),
        ("copeland", "the ranking, by pairwise majorities"))}
RULES: Mapping[str, tuple[str, Any]] = {
    **RANKS, "vote": ("a vote among the answers", "consensus.majority"),
    "two_thirds": ("two thirds of the jury", {"use": "council.jury", "threshold": 0.66})}
"""What a debate can be decided by again without a call: what it is called, and the decision."""
MOST = 1_000_000
"""Characters of an answer."""


def shown(folder: Path, picks: Picks, *, runs: bool) -> dict[str, Any]:
    """The debate in a directory as the page shows it. runs: whether it runs in this server."""
    id, runs = folder.name, runs or bool(is_running(folder))
    with open_study(folder) as study:
        debate = next(study.debates(), None)
    if debate is None:
        question = read(folder / "study.toml", environ={})["cells"][0]["dataset"]["question"]
        return {"id": id, "status": "running" if runs else "stopped", "question": question, "stage": "", "seats": []}
    facts, now = told(debate, MOST), progress(folder)
    seats = [{**seat, "id": i, "heard": i in now.heard} for i, seat in enumerate(facts["seats"])]
    if facts["status"] == "running" and not runs:
        facts["status"] = "stopped"
    common = {"id": id, "question": debate.sample.question, "texts": len(debate.sample.context),
              "images": len(debate.sample.images), "choices": debate.sample.choices, "status": facts["status"],
              "calls": now.calls, "cost_usd": now.cost_usd}
    if picks.hides(id):
        return {**common, "hidden": True, "stage": "", "seats": _without_names(id, seats)}
    return {**facts, **common, "seats": seats, "stage": now.text, "picked": picks.picked(id),
            "reviews": [_review(m) for m in _last_reviews(debate)], "rules": _rules(debate)}


def _without_names(id: str, seats: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": place, "name": f"Answer {chr(ord('A') + place)}", "answer": seats[i]["answer"],
             "heard": seats[i]["heard"], "status": "silent" if seats[i]["status"] == "failed" else seats[i]["status"]}
            for place, i in enumerate(blind_order(id, len(seats)))]


def _last_reviews(debate: DebateResult) -> list[Message]:
    found = [m for m in debate.messages if m.move == "review" and not m.retracted]
    return [m for m in found if m.round == found[-1].round]


def _review(message: Message) -> dict[str, Any]:
    """A reviewer's text, the letters that it uses, and the places that it gives, by seat."""
    noted = message.data.get("council") or {}
    return {"seat": message.agent, "text": message.content, "labels": noted.get("labels") or {},
            "places": {id: place for place, id in enumerate(noted.get("ranking") or (), 1) if id is not None}}


def _rules(debate: DebateResult) -> dict[str, str]:
    """What it can be decided by again."""
    if debate.decision is None or debate.error:
        return {}
    jury = "votes" in (debate.notes.get("council") or {})
    found = [*(RANKS if any(_review(m)["places"] for m in _last_reviews(debate)) else ()),
             *(["vote"] if debate.sample.choices else ()), *(["two_thirds"] if jury else ())]
    return {name: RULES[name][0] for name in found}
