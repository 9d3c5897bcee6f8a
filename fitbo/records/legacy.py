"""Journals of format 1, as those of today.

Format 1 had two kinds. A study's had today's events under a header with the black box at its top
level. A campaign's had one row for each evaluation, with everything known after it:

    {"n": 7, "x": [...], "y": 0.42, "f": 0.41, "x_recommended": [...], "f_recommended": 0.3,
     "simple_regret": ..., "immediate_regret": ..., "eta": [...], "seconds": {...}}

Such a row becomes three events: asked, told, and what was recommended after it. Its regrets follow
from f, and statistics and timings are rounded as they are today.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fitbo.records.events import rounded, rounded_quantiles


def upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """A header as it would be written today."""
    if "study" in header and "problem" not in header["study"]:
        old = dict(header["study"])
        black_box = {key: old.pop(key, None) for key in ("objective", "space", "constraints")}
        initial = {**old["initial"], "n": old["initial"]["n"] or 2 * len(black_box["space"])}
        return {**header, "study": {"problem": black_box, **old, "initial": initial}}
    if "study" not in header and "problem" in header and "method" in header:
        parts = ("problem", "method", "seed", "initial")
        rest = {key: value for key, value in header.items() if key not in parts}
        return {**rest, "study": {key: header[key] for key in parts if key in header}}
    return header


def events(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The events that a row of a campaign's journal stands for; today's rows are kept."""
    if "event" in row or "n" not in row:
        return [dict(row)]
    n, seconds = int(row["n"]), rounded(row.get("seconds") or {})
    point = _point(row.get("x"))
    asked = {"event": "asked", "id": n, "point": point, "suggestion_seconds": seconds}
    asked |= {key: row[key] for key in ("budget", "note", "fallback") if key in row}
    outcome: dict[str, Any] = {"event": "failed", "id": n, "point": point}
    if row.get("y") is None:
        outcome["reason"] = row.get("reason") or "failed"
    else:
        outcome |= {"event": "told", "value": row["y"], "f": row.get("f", row["y"])}
    outcome["seconds"] = seconds.get("objective")
    after: dict[str, Any] = {"event": "recommended"}
    if row.get("f_recommended") is not None:
        recommended = {"point": _point(row.get("x_recommended")), "f": row["f_recommended"]}
        after["recommended"] = recommended
    if row.get("eta") is not None:
        mcmc = rounded(row.get("mcmc"))
        after |= {"fitted": n, "eta": rounded_quantiles(row["eta"]), "mcmc": mcmc}
    return [asked, outcome, after]


def _point(x: Any) -> dict[str, Any]:
    return {f"x{i}": value for i, value in enumerate(x or ())}
