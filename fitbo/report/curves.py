"""The figures of a campaign's page as data: what ``figures`` draws for paper, for a pointer.

The quartiles behind a median are bands. Single runs are there too, hidden until they are asked for,
as steps: of each improvement the evaluation, the value and the point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitbo.report.charts import EVALUATIONS, INK, Panel, Series, numbers, panel, series, thinned
from fitbo.report.figures import (
    SYMBOLS,
    Methods,
    band_limits,
    best_limits,
    posterior_bands,
    regret_measures,
)
from fitbo.report.history import Run
from fitbo.report.palette import Style
from fitbo.report.picture import Drawn, picture_panels
from fitbo.report.regret import Curve, curve, known_minimum, log10, seconds_curve
from fitbo.screen import short

FEW = 80  # places along a band of quantiles
Styles = Mapping[str, Style]


def problem_panels(
    methods: Methods, style: Styles, picture: Drawn | None
) -> dict[str, list[Panel]]:
    """The figures of one problem by kind, each a list of panels."""
    known = all(known_minimum(runs) for runs in methods.values())
    kind, posterior = posterior_panels(methods, style)
    found = {
        "regret": regret_panels(methods, style) if known else [],
        "best": [] if known else best_panels(methods, style),
        kind: posterior,
        "seconds": seconds_panels(methods, style),
        "picture": picture_panels(picture, style) if picture is not None else [],
    }
    return {kind: panels for kind, panels in found.items() if panels}


def regret_panels(methods: Methods, style: Styles) -> list[Panel]:
    """Immediate and simple regret, on a logarithmic scale; single runs with the simple one."""
    axis = {"label": "regret", "log": True}
    return [
        _medians(methods, style, what, axis, title)
        for what, title in regret_measures(methods).items()
    ]


def best_panels(methods: Methods, style: Styles) -> list[Panel]:
    """The best value so far."""
    limits = best_limits([curve(runs, "best") for runs in methods.values()])
    axis = {"label": "value", "range": numbers(limits)}
    return [_medians(methods, style, "best", axis, "Best value so far")]


def posterior_panels(methods: Methods, style: Styles) -> tuple[str, list[Panel]]:
    """What is believed of the optimum, or of eta where journals have that only; one per method."""
    kind, bands = posterior_bands(methods)
    if not bands:
        return kind, []
    minimum = next(iter(methods.values()))[0].minimum
    known = bool(np.isfinite(minimum))
    axis = {"label": SYMBOLS[kind], "range": numbers(band_limits(list(bands.values()), minimum))}
    found = []
    for method, band in bands.items():
        there = np.flatnonzero(np.isfinite(band).all(1))
        some = there[thinned(len(there), FEW)]
        q = band[some].T
        bounds = [(q[0], q[4]), (q[1], q[3])]
        listed = [series(method, q[2], style[method]["color"], bounds, group=method)]
        if not known:
            best = curve(methods[method], "best").median[some]
            listed.append(series("best value so far", best, INK, kind="step", width=1.5))
        more = {"title": method, "group": method, "level": minimum if known else None}
        found.append(panel(EVALUATIONS, axis, some + 1, listed, **more))
    return kind, found


def seconds_panels(methods: Methods, style: Styles) -> list[Panel]:
    """Seconds of each suggestion, median over seeds, on a logarithmic scale."""
    listed, longest = [], 0
    for method, runs in methods.items():
        seconds = seconds_curve(runs)
        known = np.flatnonzero(np.isfinite(seconds) & (seconds > 0))
        if len(known):
            some = known[thinned(len(known))]
            look: dict[str, Any] = {"group": method, "at": some + 1}
            listed.append(series(method, np.log10(seconds[some]), style[method], **look))
            longest = max(longest, len(seconds))
    axis = {"label": "seconds", "log": True}
    return [panel(EVALUATIONS, axis, [1, longest], listed)] if listed else []


def _medians(methods: Methods, style: Styles, what: str, axis: dict[str, Any], title: str) -> Panel:
    initial = {run.initial for runs in methods.values() for run in runs}
    first = min(initial) if len(initial) == 1 else 0
    listed: list[Series] = []
    curves = {method: curve(runs, what) for method, runs in methods.items()}
    for method, band in curves.items():
        listed += _median(method, band, style[method])
    if what != "immediate":
        for method, runs in methods.items():
            listed += [_single(method, run, what, style[method]) for run in runs]
    longest = max(len(run) for runs in methods.values() for run in runs)
    at = thinned(longest) + 1
    return panel(
        EVALUATIONS, axis, at, listed, title=title, strip=[1, first] if first > 1 else None
    )


def _median(method: str, band: Curve, style: Style) -> list[Series]:
    """The line with its band; dotted where not every run has reached that far."""
    known = np.flatnonzero(np.isfinite(band.median))
    if not len(known):
        return []
    some = known[thinned(len(known))]
    upper = np.where(np.isfinite(band.high), band.high, band.median[known].max())
    ragged = band.count[some] < band.runs

    def part(which: NDArray[np.bool_], look: Style) -> Series:
        at = some[which]
        bounds = [(band.low[at], upper[at])]
        return series(method, band.median[at], look, bounds, at=at + 1, group=method)

    whole = [part(~ragged, style)] if (~ragged).any() else []
    if not ragged.any():
        return whole
    first = max(0, int(np.argmax(ragged)) - 1)
    return [*whole, part(np.arange(len(some)) >= first, {**style, "linestyle": (0, (0.8, 1.6))})]


def _single(method: str, run: Run, what: str, style: Style) -> Series:
    """One run as steps, with the points at which it improved."""
    at = np.array([i for i, _ in run.found], dtype=np.intp)
    values = run.best[at] if what == "best" else log10(run.simple[at])
    shown = run.best[at] if what == "best" else run.simple[at]
    notes = [
        f"{method}, seed {run.seed}: {value:.4g} since evaluation {i + 1}, "
        f"at {short(_brief(point))}"
        for (i, point), value in zip(run.found, shown, strict=True)
    ]
    if len(at) and at[-1] < len(run) - 1:  # to where it has come
        at, values = np.append(at, len(run) - 1), np.append(values, values[-1])
        notes.append(notes[-1])
    look: dict[str, Any] = {"kind": "step", "width": 1, "fade": "99", "run": True, "notes": notes}
    return series(
        f"{method}, seed {run.seed}", values, style["color"], at=at + 1, group=method, **look
    )


def _brief(point: Mapping[str, Any]) -> dict[str, Any]:
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in point.items()}
