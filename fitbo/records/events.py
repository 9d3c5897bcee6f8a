"""The events of a study's journal, and what they say about each point.

    {"event": "asked", "id": 7, "point": {...}, "fitted": 6, "eta": [...], "recommended": {...}}
    {"event": "told", "id": 7, "point": {...}, "value": 0.42, "seconds": 1.3, ...}
    {"event": "told", ..., "value": 0.42, "std": 0.05, "constraints": {"temperature": 81.2}}
    {"event": "failed", "id": 7, "point": {...}, "reason": "timeout after 5 s", ...}
    {"event": "again", "id": 7}            asked for before an interruption, now evaluated again
                           "run": 2        in either: by the second of several runs at a time
    {"event": "forgotten", "id": 7}        no longer waited for; or, if told before, withdrawn
    {"event": "corrected", "id": 7, "point": {...}, "value": 0.24, "was": 0.42}
    {"event": "corrected", "id": 7, "point": {...}, "reason": "leaked", "was": 0.42}
    {"event": "objective", "objective": {...}}    corrected before it had given any value
    {"event": "stopped", "reason": "the budget of 60 evaluations is spent", ...}

``fitted: n`` says that the posterior given n values was computed just before that line, and
``moved: m`` that its sampler moved last at m values. Each fit starts from the last one's ensemble,
so a study rebuilt with the same fits continues as before.
``recommended`` is what such a posterior recommends. On a test function ``f`` is the noise-free
value at a point told or recommended: regret is computed from it when the journal is read.

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
OF_A_FIT = ("fitted", "moved", "eta", "minimum", "recommended")
ETA_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
GIVEN = "given"  # source of values that were known before the study: they use no budget


@dataclass(frozen=True)
class Entry:
    """One point of a study and what has become of it."""

    id: int
    point: Point
    state: State = "pending"
    value: float | None = None
    reason: str | None = None
    std: float | None = None  # what the value states
    constraints: Mapping[str, float | None] | None = None  # what outcome constraints are about
    seconds: float | None = None
    source: str = "run"
    order: int = -1  # of its outcome: the place of that row in the journal
    run: int = 0  # the number of the run that has it evaluated; 0: somebody who asked by hand


def note(entries: dict[int, Entry], row: Row, place: int) -> None:
    """Enter one row, at this place in the journal, into the entries by id."""
    event, number = row.get("event"), row.get("id")
    if number is None:
        return
    known = entries.get(number)
    if event == "asked" or (known is None and event in OUTCOMES):
        source = row.get("source", "run")
        run = row.get("run", 1) if source == "run" else 0
        known = Entry(number, row["point"], source=source, run=run)
    if known is None:
        return
    if event in OUTCOMES or event == "corrected":
        known = replace(
            known,
            state=_state(row),
            value=row.get("value"),
            reason=row.get("reason"),
            std=row.get("std"),
            constraints=row.get("constraints"),
            seconds=row.get("seconds", known.seconds),
            order=known.order if event == "corrected" else place,
        )
    elif event == "again":
        known = replace(known, run=row.get("run", 1))
    elif event == "forgotten":
        known = Entry(number, known.point, "forgotten", source=known.source)
    entries[number] = known


def entries_of(rows: Iterable[Row]) -> dict[int, Entry]:
    """Every point by its id, in the order in which they came."""
    entries: dict[int, Entry] = {}
    for place, row in enumerate(rows):
        note(entries, row, place)
    return entries


def once(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without a second outcome of a point, which an interruption may have written."""
    kept, settled = [], set()
    for row in rows:
        if row.get("event") in OUTCOMES:
            if row["id"] in settled:
                continue
            settled.add(row["id"])
        elif row.get("event") == "forgotten":
            settled.discard(row["id"])  # an outcome after that is new
        kept.append(row)
    return kept


def amended(rows: Iterable[Row]) -> list[Row]:
    """The rows as they would be had every outcome been told right the first time.

    A fit to values that were corrected since no longer counts, so the fits before the last
    correction are left out: the next one starts from nothing.
    """
    kept: list[Row | None] = []
    places: dict[int, int] = {}  # of the outcomes, by id
    for row in rows:
        event, number = row.get("event"), row.get("id")
        if event in OUTCOMES:
            places[row["id"]] = len(kept)
        if number not in places or event not in ("corrected", "forgotten"):
            kept.append(row)
            continue
        kept = [each and {k: v for k, v in each.items() if k not in OF_A_FIT} for each in kept]
        if event == "corrected":
            kept[places[number]] = {**row, "event": _state(row)}
        else:
            kept[places.pop(number)] = None
    return [row for row in kept if row is not None]


def _state(outcome: Row) -> Literal["told", "failed"]:
    return "failed" if outcome.get("value") is None else "told"


def rounded(value: Any) -> Any:
    """Statistics and timings to four digits; None if not finite, which JSON cannot express."""
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if not isinstance(value, float):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else None


def rounded_quantiles(values: Sequence[float]) -> list[float]:
    """Ascending quantiles, rounded to a ten-thousandth of their range, finer than their error."""
    span = values[-1] - values[0]
    decimals = 4 - math.floor(math.log10(span)) if 0 < span < math.inf else 17
    return [round(value, decimals) for value in values]
