"""The figures of a study's page as data: what ``slices`` and ``coordinates`` draw for paper.

A pointer brings up each evaluation: its number, its value or why it failed, and its point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fitbo.records.events import Entry, Point
from fitbo.report.charts import EVALUATIONS, MUTED, Panel, numbers, panel, series, thinned
from fitbo.report.coordinates import height, ticks
from fitbo.report.palette import COLOURS
from fitbo.report.slices import MOST_PANELS, Line, common_limits, value_limits
from fitbo.screen import digits, short
from fitbo.space import Categorical, Space
from fitbo.study import Study

BLUE, RED, GREEN = COLOURS[:3]
MOST_LINES = 160  # of parallel coordinates: the best ones and an even choice of the others
MOST_NOTES = 2000  # evaluations that a pointer can bring up


def note(entry: Entry) -> str:
    """An evaluation in a line: its number, outcome and point."""
    outcome = digits(entry.value) if entry.value is not None else f"failed: {entry.reason}"
    return f"#{entry.id}: {outcome} at {short(entry.point)}"


def progress_panels(
    outcomes: Sequence[Entry],
    n_initial: int,
    sign: float,
    optimum: Sequence[float] | None = None,
    counts: Callable[[Entry], bool] = lambda entry: entry.value is not None,
) -> list[Panel]:
    """Every value by its evaluation, the best so far and, if known, the posterior of f*, (3,).

    ``counts`` says of which entries the outcome constraints hold: the best is one of those.
    """
    y = np.array([np.nan if e.value is None else e.value for e in outcomes], dtype=np.float64)
    n, known = np.arange(1, len(y) + 1), np.isfinite(y)
    best, worst = sign * np.array(value_limits(sign * y[known]))
    span = worst - best
    ends = sorted([best - 0.12 * span, worst + 0.08 * span])
    beyond = known & (sign * (y - worst) > 0)
    held = known & np.array([counts(e) for e in outcomes], dtype=np.bool_)
    so_far = sign * np.fmin.accumulate(sign * np.where(held, y, np.nan))
    steps = np.flatnonzero(np.isfinite(so_far))
    heavy: dict[str, Any] = {"kind": "step", "width": 2.5}
    listed = [series("best so far", so_far[steps], BLUE, at=n[steps], **heavy)]
    foot = ends[0] + 0.03 * (ends[1] - ends[0])
    for name, which, at, colour in (
        ("value", held & ~beyond, y, MUTED),
        ("infeasible", known & ~held & ~beyond, y, RED),
        ("beyond the axis", beyond, np.full(len(n), worst), MUTED),
        ("failed", ~known, np.full(len(n), foot), RED),
    ):
        if which.any():
            some = np.flatnonzero(which)[thinned(int(which.sum()), MOST_NOTES)]
            notes = [note(outcomes[int(i)]) for i in some]
            listed.append(series(name, at[some], colour, at=n[some], kind="points", notes=notes))
    if optimum is not None and len(n):
        low, middle, high = np.sort(optimum)
        about: dict[str, Any] = {"kind": "bars", "at": [len(n) + 1]}
        name = "f* now: median and 90%"
        listed.append(series(name, [middle], GREEN, [([low], [high])], **about))
        ends = [min(ends[0], low), max(ends[1], middle)]
    axis = {"label": "value", "range": numbers(ends)}
    strip = [0.5, min(n_initial, len(n)) + 0.5] if min(n_initial, len(n)) > 1 else None
    x = {**EVALUATIONS, "range": [0.5, len(n) + (1.5 if optimum is not None else 0.5)]}
    return [panel(x, axis, n, listed, strip=strip)]


def line_panels(
    lines: Sequence[Line],
    study: Study,
    told: Sequence[Point],
    colour: str,
    what: str,
    point: Point | None = None,
) -> list[Panel]:
    """A panel for each parameter: the curve with its band, ticks where values were told."""
    lines = lines[:MOST_PANELS]
    limits = numbers(common_limits(lines, study)) if lines else []
    found = []
    for line in lines:
        categorical = isinstance(line.parameter, Categorical)
        log = not categorical and bool(getattr(line.parameter, "log", False))
        places = np.arange(len(line.x)) if categorical else np.asarray(line.x, dtype=np.float64)
        axis: dict[str, Any] = {"label": "", "readout": line.name}  # the title has it
        if categorical:
            axis["names"] = [str(choice) for choice in line.x]
        elif log:
            axis["log"] = True

        def place(value: Any, line: Line = line, log: bool = log) -> Any:
            at = line.place(value)
            return np.log10(at) if log else at

        some = thinned(len(places))
        band = [(line.low[some], line.high[some])]
        kind: dict[str, Any] = {"kind": "bars", "size": 9} if categorical else {}
        curve = series(what, line.mean[some], colour, band, **kind)
        foot = sorted({place(each[line.name]) for each in told if line.name in each})
        mark = place(point[line.name]) if point is not None and line.name in point else None
        if mark is not None and not np.isfinite(mark):
            mark = None
        at = np.log10(places[some]) if log else places[some]
        more = {"title": line.name, "foot": [x for x in numbers(foot) if x is not None]}
        y = {"label": "value", "range": limits}
        found.append(panel(axis, y, at, [curve], mark=mark, **more))
    return found


def parallel_panels(space: Space, outcomes: Sequence[Entry], sign: float) -> list[Panel]:
    """Each point as a line through the axes of the parameters, the best strongest and in front."""
    told = sorted(
        (e for e in outcomes if e.value is not None), key=lambda e: -sign * (e.value or 0.0)
    )
    if len(told) < 2 or len(space.parameters) < 2:
        return []
    failed = [e for e in outcomes if e.state == "failed"]
    half, chosen = MOST_LINES // 2, told
    if len(told) > MOST_LINES:
        chosen = [*(told[i] for i in thinned(len(told) - half, half)), *told[-half:]]
    pairs = list(zip(space.names, space.parameters, strict=True))

    def line(entry: Entry, name: str, colour: str, **look: Any) -> dict[str, Any]:
        heights = [height(p, entry.point.get(label)) for label, p in pairs]
        return series(name, heights, colour, notes=[note(entry)] * len(heights), **look)

    listed = [
        line(e, "failed", RED, dash=[4, 4], width=1, fade="99") for e in failed[: MOST_LINES // 4]
    ]
    for rank, entry in enumerate(chosen):
        fade = f"{round(30 + 225 * (rank / max(1, len(chosen) - 1)) ** 2):02x}"
        last = entry is told[-1]
        look = {"width": 3.5 if last else 1.5, "fade": "" if last else fade}
        listed.append(line(entry, "best" if last else "evaluations", BLUE, **look))
    axes = [
        {"at": i, "labels": [[float(at), text] for at, text in ticks(p)[:12]]}
        for i, (_, p) in enumerate(pairs)
    ]
    x = {"label": "", "names": [name for name, _ in pairs], "readout": "at"}
    y = {"label": "", "range": [-0.06, 1.06], "names": []}
    more: dict[str, Any] = {"axes": axes, "focus": True, "gaps": True}
    return [panel(x, y, np.arange(len(pairs)), listed, **more)]
