"""What debates spent, call by call: by cell, round, role and model, and which calls had to wait for others."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from madplug import UserError, nearest_or_all
from madplug.store import CallFigures
from madplug_report.prefixes import Prefixes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from madplug_report.analysis import Analysis

OPENING = "before round 1"
REST = "decision, phases, metrics"
UNKNOWN = "behind no message, or not on record here"
CLOSING = -1
"""The round of calls that are behind no message of a round."""
_LAST = np.iinfo(np.intc).max
AMOUNTS = ("calls", "read", "cached", "cacheable", "written", "reasoned", "cost_usd")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens of a model."""

    name: str
    """Of the model, as in `[models.NAME]`."""
    read: float
    written: float
    cached: float

    def of(self, read: float, cached: float, written: float) -> float:
        """The price of so many tokens; cached ones are among those read."""
        return ((read - cached) * self.read + cached * self.cached + written * self.written) / 1e6


def read_price(text: str) -> Price:
    """`NAME=READ/WRITTEN` or `NAME=READ/WRITTEN/CACHED`. Raises `UserError` for anything else."""
    name, equals, given = text.partition("=")
    try:
        numbers = [float(part) for part in given.split("/")]
    except ValueError:
        numbers = []
    if not (name and equals) or len(numbers) not in (2, 3) or not all(0 <= n < 1e6 for n in numbers):
        raise UserError(f"--price {text}: expected NAME=READ/WRITTEN or NAME=READ/WRITTEN/CACHED in US dollars per "
                        "million tokens, such as --price large=2.50/10/1.25")
    return Price(name, numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else numbers[0])


class Calls:
    """The answered calls of studies as columns, found by their keys."""

    def __init__(self, prices: Sequence[Price] = ()) -> None:
        if twice := next((p.name for i, p in enumerate(prices) if p.name in {q.name for q in prices[:i]}), None):
            raise UserError(f"--price {twice}=... is given twice")
        self.models: dict[str, int] = {}
        self._prices = {price.name: price for price in prices}
        self._amounts = (*AMOUNTS[1:], *(["at_price"] if prices else []))
        self.purposes: dict[str, int] = {}
        self._keys, self._model, self._purpose, self._study = array("Q"), array("i"), array("i"), array("i")
        self._studies = 0
        self._numbers: dict[str, array[float]] = {
            name: array("d") for name in (*AMOUNTS[1:], "at_price", "seconds", "queued")}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, calls: Iterable[CallFigures], batched: Set[bytes] = frozenset()) -> None:
        """The calls of a study. batched: the keys of those that were answered in a batch, most of the time in a queue.
        """
        read, cached, cacheable, written, reasoned, cost, at_price, seconds, queued = self._numbers.values()
        for call in calls:
            self._keys.append(int.from_bytes(call.key[:8].ljust(8, b"\0"), "big"))
            self._model.append(self.models.setdefault(call.model, len(self.models)))
            self._purpose.append(self.purposes.setdefault(call.purpose, len(self.purposes)))
            read.append(call.prompt)
            cached.append(call.cached)
            cacheable.append(np.nan)
            written.append(call.completion)
            reasoned.append(call.reasoning)
            cost.append(np.nan if call.cost_usd is None else call.cost_usd)
            price = self._prices.get(call.model)
            at_price.append(price.of(call.prompt, call.cached, call.completion) if price else cost[-1])
            seconds.append(0.0 if call.key in batched else call.seconds)
            queued.append(call.seconds if call.key in batched else 0.0)
            self._study.append(self._studies)
        self._studies += 1

    def recount(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        """Count what was written with one tokenizer. texts: the replies of the study added last, in its order."""
        counts: array[float] = array("d", (float(len(tokenizer.encode(text))) for text in texts))
        written = self._numbers["written"]
        written[len(written) - len(counts):] = counts

    def find_prefixes(self, calls: Iterable[Mapping[str, Any]], prefixes: Prefixes) -> None:
        """Count what a prefix cache could have served. calls: the rows of the study added last, in its order."""
        read, cacheable = self._numbers["read"], self._numbers["cacheable"]
        shares = [prefixes.share(call["model"], call["request"]["messages"], call["usage"]["raw"].get("samples", 1))
                  for call in calls]
        first = len(read) - len(shares)
        cacheable[first:] = array("d", np.asarray(read[first:]) * shares)

    def finish(self, studies: int) -> None:
        """Sort the calls by key, after the last one; equal keys stay in the order of their studies.

        studies: how many of those that were added, from the first, have paid for their calls; the others' were reused.
        Raises `UserError` for a price of a model that made none.
        """
        self._paying = studies
        if odd := next((name for name in self._prices if name not in self.models), None):
            raise UserError(f"--price {odd}=...: no model of this name was asked{nearest_or_all(odd, self.models)}")
        order = np.argsort(np.asarray(self._keys, np.uint64), kind="stable")
        self.keys = np.asarray(self._keys, np.uint64)[order]
        self.model, self.purpose, self.study = (
            np.asarray(column)[order] for column in (self._model, self._purpose, self._study))
        self.numbers = {name: np.asarray(column)[order] for name, column in self._numbers.items()}

    def find(self, keys: NDArray[np.uint64], studies: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where the calls with these keys are, and which of the keys are known.

        studies: the numbers of the studies whose debates used them, which may have made them or taken them from others.
        """
        if not len(self.keys):
            return np.zeros(len(keys), np.intp), np.zeros(len(keys), bool)
        first = at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        for further in range(1, self._studies):
            other = np.minimum(first + further, len(self.keys) - 1)
            at = np.where((self.keys[other] == keys) & (self.study[other] == studies), other, at)
        return at, self.keys[first] == keys

    def paid(self, keys: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """What was paid for, each call once, by model and purpose. keys: only calls with these."""
        own = self.study < self._paying
        own &= True if keys is None else np.isin(self.keys, np.asarray(keys, np.uint64))
        found = []
        for model, m in self.models.items():
            for purpose, p in self.purposes.items():
                rows = np.flatnonzero((self.model == m) & (self.purpose == p) & own)
                if len(rows):
                    found.append({"model": model, "purpose": purpose, **self.amounts(rows)})
        return found

    def amounts(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """The sums over some calls; None where the number of one is unknown."""
        sums = {name: float(self.numbers[name][rows].sum()) for name in self._amounts}
        return {"calls": len(rows), **{
            name: None if np.isnan(value) else value if name in ("cost_usd", "at_price") else int(value)
            for name, value in sums.items()}}


class Used:
    """Which calls the debates used, whichever cell paid for them: one row each."""

    def __init__(self) -> None:
        self.roles: dict[str, int] = {}
        self._cell, self._round, self._role = array("i"), array("i"), array("i")
        self._wave, self._message = array("q"), array("q")
        self.keys = array("Q")
        self._waves = self._messages = 0

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, cell: int, roles: Mapping[int, str], opening: Sequence[int],
            said: Iterable[tuple[int, int, bool, int | None, Sequence[int]]], closing: Sequence[int] = ()) -> None:
        """The calls of one debate: keys of those before round 1, (round, wave, retracted, agent, keys) of each message,
        and keys of those that are behind no message."""
        before: tuple[int, int, bool, bool] | None = None
        for key in opening:
            self._append(cell, 0, "", key)
        for number, wave, retracted, agent, keys in said:
            now = number, wave, retracted, agent is None  # what an extension asks between rounds has no wave
            self._waves += now != before
            self._messages += 1
            before = now
            role = "" if agent is None else roles.get(agent, "")
            for key in keys:
                self._append(cell, number, role, key)
        for key in closing:
            self._append(cell, CLOSING, "", key)

    def _append(self, cell: int, number: int, role: str, key: int) -> None:
        self._cell.append(cell)
        self._round.append(number)
        self._role.append(self.roles.setdefault(role, len(self.roles)))
        self._wave.append(self._waves)
        self._message.append(self._messages)
        self.keys.append(key)

    def figures(self, calls: Calls, study_of: Sequence[int]) -> UsedFigures:
        """The rows with what is known of their calls. study_of: the number of the study that a cell belongs to."""
        studies = np.asarray(study_of, int)[np.asarray(self._cell)]
        at, known = calls.find(np.asarray(self.keys, np.uint64), studies)
        columns = {name: np.asarray(getattr(self, f"_{name}"))[known]
                   for name in ("cell", "round", "role", "wave", "message")}
        return UsedFigures(calls, at[known], columns, list(self.roles))


class UsedFigures:
    """Sums over the calls that debates used."""

    def __init__(self, calls: Calls, at: NDArray[np.intp], columns: Mapping[str, NDArray[Any]],
                 roles: Sequence[str]) -> None:
        self._calls, self._at, self._columns, self._roles = calls, at, columns, roles

    def rows(self, cell: int) -> Iterator[dict[str, Any]]:
        """What a cell used by round, by role and by model: totals over its debates.

        A call before round 1 or behind no message has the purpose for which it was made as its role.
        """
        own = np.flatnonzero(self._columns["cell"] == cell)
        rounds, roles = self._columns["round"][own], self._columns["role"][own]
        outside = rounds <= 0
        purposes = np.where(outside, len(self._roles) + self._calls.purpose[self._at[own]], roles)
        kinds: dict[str, tuple[Any, Callable[[int], str]]] = {
            "round": (np.where(rounds == CLOSING, _LAST, rounds), self._round_name),
            "role": (purposes, self._role_name),
            "model": (self._calls.model[self._at[own]], list(self._calls.models).__getitem__)}
        for by, (values, name) in kinds.items():
            by_name: dict[str, list[int]] = {}
            for value in np.unique(values):
                by_name.setdefault(name(int(value)), []).append(int(value))
            for text, alike in by_name.items():
                yield {"by": by, "value": text, **self._calls.amounts(self._at[own[np.isin(values, alike)]])}

    def _round_name(self, number: int) -> str:
        return OPENING if number == 0 else REST if number == _LAST else f"{number}"

    def _role_name(self, number: int) -> str:
        """Of an agent, or of a purpose, which are numbered after the roles."""
        if number < len(self._roles):
            return self._roles[number] or "no agent"
        return list(self._calls.purposes)[number - len(self._roles)]

    def total(self, cell: int) -> dict[str, Any]:
        """What a cell used, as far as it is known call by call."""
        return self._calls.amounts(self._at[self._columns["cell"] == cell])

    def critical(self, cell: int, debates: int) -> dict[str, float] | None:
        """Means per debate of the longest chain of calls that wait for each other, in calls and in seconds, in batches
        and otherwise.

        Calls of a message follow each other, messages of a wave run at the same time, waves follow each other. Calls
        before round 1 and of the decision are not in it: which of them wait for others is not on record.
        debates: of the cell; one that failed before its first call has a chain of none.
        """
        own = np.flatnonzero((self._columns["cell"] == cell) & (self._columns["round"] > 0))
        if not len(own):
            return None
        seconds, queued = (self._calls.numbers[name][self._at[own]] for name in ("seconds", "queued"))
        _, first, of_message = np.unique(self._columns["message"][own], return_index=True, return_inverse=True)
        _, of_wave = np.unique(self._columns["wave"][own][first], return_inverse=True)
        found = {}
        for name, values in (("calls", np.ones(len(own))), ("seconds", seconds), ("queued", queued)):
            longest = np.zeros(of_wave.max() + 1)
            np.maximum.at(longest, of_wave, np.bincount(of_message, values))
            found[name] = float(longest.sum()) / debates
        return found


def spend(analysis: Analysis) -> None:
    """Add to every cell what its debates spent: totals by round, role and model, and means of the longest chain."""
    debates = analysis.debates
    used = debates.used.figures(debates.spent, [cell.study for cell in debates.cells])
    for i, cell in enumerate(analysis.cells):
        whole = {name: int(analysis.column(name, i).sum()) for name in ("calls", "read", "cached", "written")}
        rows, known = list(used.rows(i)), used.total(i)
        rest = {name: whole[name] - known[name] for name in ("calls", "read", "cached")}
        if rest["calls"] > 0 and rows:  # of a message that was not recorded, or in a study of an earlier version
            rows.append({"by": "round", "value": UNKNOWN, **rest,
                         **dict.fromkeys(("cacheable", "written", "reasoned", "cost_usd"))})
        cell["spending"] = {
            **whole, "reasoned": known["reasoned"] if rows else None, "by_call": known if rows else None,
            "critical": used.critical(i, analysis.rows(i).size), "rows": rows,
            "at_price": known.get("at_price") if rows and rest["calls"] <= 0 else None}


def paid(analysis: Analysis, *, every: bool = True) -> list[dict[str, Any]]:
    """What the studies paid for, by model and purpose, and what it costs at the prices that were given.

    every: False: only calls that debates in the report used, whichever cell paid.
    """
    return analysis.debates.spent.paid(None if every else analysis.debates.used.keys)


class Tokenizer:
    """Finds tokens with a `tokenizer.json` of the tokenizers library, or an encoding of tiktoken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.encode: Callable[[str], Sequence[int]]
        try:
            if Path(name).is_file():
                from tokenizers import Tokenizer as FromFile

                own = FromFile.from_file(name)
                self.encode = lambda text: own.encode(text, add_special_tokens=False).ids
                return
            import tiktoken

            encoding = tiktoken.get_encoding(name)
            self.encode = lambda text: encoding.encode(text, disallowed_special=())
        except ImportError as error:
            raise UserError(f"--tokenizer {name}: needs {error.name}: pip install {error.name}") from None
        except Exception as error:  # a file that is no tokenizer, an unknown encoding, one that cannot be downloaded
            raise UserError(f"--tokenizer {name}: is neither a tokenizer.json nor an encoding of tiktoken that can be "
                            f"loaded: {' '.join(str(error).split())[:120]}") from None
