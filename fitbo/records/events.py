"""The events of a study's journal, and what they say of each point.

    {"event": "asked", "id": 7, "point": {...}, "fitted": 6, "eta": [...], "recommended": {...}}
    {"event": "told", "id": 7, "point": {...}, "value": 0.42, "seconds": 1.3, ...}
    {"event": "failed", "id": 7, "point": {...}, "reason": "timeout after 5 s", ...}
    {"event": "again", "id": 7}            asked for before an interruption, and now evaluated again
    {"event": "forgotten", "id": 7}        no longer waited for; or, told before, withdrawn
    {"event": "corrected", "id": 7, "point": {...}, "value": 0.24, "was": 0.42}
    {"event": "corrected", "id": 7, "point": {...}, "reason": "leaked", "was": 0.42}
    {"event": "stopped", "reason": "the budget of 60 evaluations is spent", ...}

``fitted: n`` says that the posterior given n values was computed just before that line. Since each
fit starts from the last one's ensemble, a study rebuilt with the same fits continues as before.
``recommended`` is what such a posterior recommends. On a test function ``f`` is the noise-free
value of a point told or recommended: from it regret is computed when the journal is read.

A correction erases nothing: the line that it corrects stays, and the later line prevails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Point = dict[str, Any]
Row = Mapping[str, Any]
State = Literal["pending", "told", "failed", "forgotten"]
OUTCOMES = ("told", "failed")
OF_A_FIT = ("fitted", "eta", "recommended")
ETA_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
GIVEN = "given"  # the source of values that were known before the study: they cost no budget


@dataclass(frozen=True)
class Entry:
    """One point of a study and what has become of it."""

    id: int
    point: Point
    state: State = "pending"
    value: float | None = None
    reason: str | None = None
    seconds: float | None = None
    source: str = "run"
    order: int = -1  # among the outcomes, by time


def note(entries: dict[int, Entry], row: Row, outcomes: int) -> int:
    """Enter one row into the entries by id; how many outcomes there are after it."""
    event, number = row.get("event"), row.get("id")
    if number is None:
        return outcomes
    known = entries.get(number)
    if event == "asked":
        entries[number] = Entry(number, row["point"], source=row.get("source", "run"))
    elif event in OUTCOMES:
        known = known or Entry(number, row["point"], source=row.get("source", "run"))
        entries[number] = _with_outcome(known, row, event, outcomes)
        return outcomes + 1
    elif known is not None and event == "corrected":
        entries[number] = _with_outcome(known, row, _corrected_to(row), known.order)
    elif known is not None and event == "forgotten":
        entries[number] = Entry(number, known.point, "forgotten", source=known.source)
    return outcomes


def entries_of(rows: Iterable[Row]) -> dict[int, Entry]:
    """Every point by its id, in the order in which they came."""
    entries: dict[int, Entry] = {}
    outcomes = 0
    for row in rows:
        outcomes = note(entries, row, outcomes)
    return entries


def once(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without a second outcome of a point, as an interruption may have written it."""
    kept, settled = [], set()
    for row in rows:
        if row.get("event") in OUTCOMES:
            if row["id"] in settled:
                continue
            settled.add(row["id"])
        elif row.get("event") == "forgotten":
            settled.discard(row["id"])  # what is told of it after that is news
        kept.append(row)
    return kept


def amended(rows: Iterable[Row]) -> list[Row]:
    """The rows as they would be had every outcome been told right the first time.

    A fit to values that were corrected since is of no use, so the fits before the last correction
    are left out: the next one starts from nothing.
    """
    kept: list[Row | None] = []
    places: dict[int, int] = {}  # of the outcomes, by id
    for row in rows:
        event, number = row.get("event"), row.get("id")
        corrects = number in places and event in ("corrected", "forgotten")
        if event in OUTCOMES:
            places[row["id"]] = len(kept)
        if not corrects:
            kept.append(row)
            continue
        kept = [each and {k: v for k, v in each.items() if k not in OF_A_FIT} for each in kept]
        if event == "corrected":
            kept[places[row["id"]]] = {**row, "event": _corrected_to(row)}
        else:
            kept[places.pop(row["id"])] = None
    return [row for row in kept if row is not None]


def _with_outcome(entry: Entry, row: Row, state: State, order: int) -> Entry:
    kept = entry.seconds if row.get("event") == "corrected" else None
    return replace(
        entry,
        state=state,
        value=row.get("value"),
        reason=row.get("reason"),
        seconds=row.get("seconds", kept),
        order=order,
    )


def _corrected_to(row: Row) -> Literal["told", "failed"]:
    return "failed" if row.get("value") is None else "told"


def rounded(value: Any) -> Any:
    """Statistics and timings to four digits; what is not finite, which JSON lacks, is None."""
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if not isinstance(value, float):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else None


def rounded_quantiles(values: Sequence[float]) -> list[float]:
    """Quantiles, ascending, to a ten-thousandth of their range, which is finer than they are."""
    span = values[-1] - values[0]
    decimals = 4 - math.floor(math.log10(span)) if 0 < span < math.inf else 17
    return [round(value, decimals) for value in values]
