"""The tables of a report about what was spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from madplug_report.tables import Table, label, money, number, percent, reached


def costs(report: Mapping[str, Any]) -> Table:
    """What each cell spent per debate, and in all."""
    priced = ["USD at --price"] * bool(report["prices"])
    recounted = [f"written ({report['tokenizer']})"] if report["tokenizer"] else []
    queued = any((cell["spending"]["critical"] or {}).get("queued") for cell in report["cells"])
    dear = any(cell["cost_usd"] for cell in report["cells"])
    head = ["cell", "calls", "read", "cached", "written", *recounted, "reasoned", "chain", "seconds of it",
            *(["in batches"] if queued else []), "USD", *([f"USD/{reached(report)}"] if dear else []),
            *priced, "undecided", "failed"]
    rows = []
    for cell in report["cells"]:
        own, n = cell["spending"], cell["debates"] or 1
        chain, known = own["critical"] or {}, own["by_call"] or {}
        rows.append([label(cell), number(cell["calls"], 1), number(cell["read"], 0), number(cell["cached"], 0),
                     number(cell["written"], 0), *(number(_per(known.get("written"), n), 0) for _ in recounted),
                     number(_per(own["reasoned"], n), 0), number(chain.get("calls"), 1),
                     number(chain.get("seconds"), 1), *([number(chain.get("queued"), 1)] if queued else []),
                     money(cell["cost_usd"]), *([money(cell["usd_per_right"])] if dear else []),
                     *(money(own["at_price"]) for _ in priced), percent(cell["undecided"]),
                     percent(cell["failed"])])
    spent = any(cell["calls"] for cell in report["cells"])
    return Table("Cost", head, rows if spent else [], notes=[
        "means per debate, whichever cell paid, and dollars in all; the chain is the longest of calls that wait for "
        "each other from round 1 to the decision", *_with_metrics(report, ["reasoned", *recounted]),
        *([f"{priced[0]}: {_prices(report)}; other models as they were paid, and with what "
           "metrics asked models for"] if priced else [])])


def _with_metrics(report: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """A note that these columns count calls which others leave out, if there are any."""
    more = any((cell["spending"]["by_call"] or {"calls": 0})["calls"] > cell["spending"]["calls"]
               for cell in report["cells"])
    return [f"{' and '.join(names)}: with what metrics asked models for, which calls, read, cached and written "
            "leave out"] * more


def _prices(report: Mapping[str, Any]) -> str:
    """The prices that were given, as words."""
    return ", ".join(f"{p['name']} {p['read']:g}/{p['written']:g}/{p['cached']:g}" for p in report["prices"])


def _per(whole: float | None, n: int) -> float | None:
    return None if whole is None else whole / n


def caches(report: Mapping[str, Any]) -> Table:
    """Which share of the prompts' tokens came from a prefix cache, and which could have come from one."""
    rows = []
    for cell in report["cells"]:
        own, known = cell["spending"], cell["spending"]["by_call"] or {}
        could = known.get("cacheable")
        if own["cached"] or could is not None:
            rows.append([label(cell), number(cell["read"], 0),
                         percent(own["cached"] / own["read"] if own["cached"] else None),
                         percent(could and could / known["read"])])
    return Table("Prefix caches", ["cell", "read", "cached", "could be cached"], rows, notes=[
        "cached: as providers say; could be cached (--prefixes): stands at the beginning of an earlier prompt to the "
        "same model, in blocks of 16 tokens", *_with_metrics(report, ["could be cached"])])


def paid(report: Mapping[str, Any]) -> Table:
    """What was paid for, each call once."""
    priced = ["USD at --price"] * bool(report["prices"])
    rows = [[row["model"], row["purpose"], *(f"{row[name]:,}" for name in ("calls", "read", "cached", "written",
             "reasoned")), money(row["cost_usd"]), *(money(row["at_price"]) for _ in priced)]
            for row in report["paid"]]
    return Table("Paid", ["model", "for", "calls", "read", "cached", "written", "reasoned", "USD",
                          *priced], rows)


def spending(report: Mapping[str, Any]) -> Table:
    """What the debates of each cell used by round, role and model, per debate."""
    rows = []
    for cell in report["cells"]:
        for row in cell["spending"]["rows"]:
            n = cell["debates"] or 1
            rows.append([label(cell), row["by"], row["value"], number(row["calls"] / n, 1),
                         *(number(_per(row[name], n), 0) for name in ("read", "cached", "written", "reasoned")),
                         money(row["cost_usd"])])
    return Table("Cost by round, role and model", ["cell", "by", "", "calls", "read", "cached", "written", "reasoned",
                                                   "USD in all"], rows,
                 notes=["with what metrics asked models for, which calls, read, cached and written of the tables "
                        "before leave out"])
