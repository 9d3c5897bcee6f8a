"""The figures of one study's report. Each function returns a ``Figure`` and changes nothing else.

progress_figure      every value by its evaluation, and the best so far
slice_figure         the posterior along each parameter, the others at the recommended point
dependence_figure    the same averaged over the space: the partial dependence
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fitbo.mixture import Array
from fitbo.records.events import Entry, Point
from fitbo.report.drawing import COLOURS, INK, LOOK, MUTED, mark_initial, shorten, title_line
from fitbo.space import Categorical, Integer, Parameter, Real, Space
from fitbo.study import Study, bounded

BLUE, RED, GREEN = COLOURS[0], COLOURS[1], COLOURS[2]
GRID, COARSE, BACKGROUND = 101, 33, 96  # points along a slice, along a dependence, averaged over
MOST_PANELS = 24
BAND = 1.645  # deviations: 90% of a normal


@dataclass(frozen=True, eq=False)
class Line:
    """One parameter's axis: values x and a curve with its band, all (k,)."""

    name: str
    parameter: Parameter
    x: Any
    mean: Array
    low: Array
    high: Array


def progress_figure(name: str, outcomes: Sequence[Entry], n_initial: int) -> Figure:
    """Values against evaluations, failures at the foot, and the lowest value so far."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(9.6, 3.6), layout="constrained")
        axes = figure.subplots()
        n = np.arange(1, len(outcomes) + 1)
        y = np.array([np.nan if e.value is None else e.value for e in outcomes])
        best = np.fmin.accumulate(y)
        low, high = _limits(y)
        shown = np.clip(y, low, high)
        inside = y <= high
        mark_initial(axes, min(n_initial, len(n)), 0.5)
        axes.plot(n[inside], shown[inside], "o", ms=4.2, color=MUTED, alpha=0.55, mec="none")
        above = np.isfinite(y) & ~inside
        axes.plot(n[above], shown[above], "^", ms=4.6, color=MUTED, alpha=0.55, mec="none")
        axes.step(n, best, where="post", color=BLUE, lw=2.0)
        failed = ~np.isfinite(y)
        foot = axes.get_xaxis_transform()
        axes.plot(
            n[failed], np.full(failed.sum(), 0.03), "x", ms=5, mew=1.4, color=RED, transform=foot
        )
        if np.isfinite(y).any():
            i = int(np.nanargmin(y))
            axes.plot(n[i], y[i], "o", ms=7.5, mfc="white", mec=BLUE, mew=2.0, zorder=5)
            axes.set_ylim(low - 0.12 * (high - low), high + 0.08 * (high - low))
        axes.set_xlim(0.5, len(n) + 0.5)
        _legend(
            axes,
            [("best so far", BLUE, "-", ""), ("value", MUTED, "", "o")]
            + ([("beyond the axis", MUTED, "", "^")] if above.any() else [])
            + ([("failed", RED, "", "x")] if failed.any() else []),
        )
        axes.set_xlabel("evaluations")
        axes.set_ylabel("value")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        title_line(figure, name, "best so far")
    return figure


def slice_figure(name: str, study: Study, told: Sequence[Point], point: Point) -> Figure:
    """The posterior along each parameter with the others at ``point``."""
    lines, what = slices(study, point), "slices through the recommended point"
    return _panels(name, what, lines, study, told, point, BLUE)


def dependence_figure(
    name: str, study: Study, told: Sequence[Point], rng: np.random.Generator
) -> Figure:
    """The posterior mean along each parameter, averaged over the others."""
    return _panels(name, "partial dependence", dependences(study, rng), study, told, None, GREEN)


def slices(study: Study, point: Point) -> list[Line]:
    """For each parameter the posterior of f, the others as in ``point``: mean and 90% band."""
    fit, base = study.fit(), study.space.check(list(point.values()))
    lines = []
    for name, parameter, columns in _axes_of(study.space):
        codes = _codes(parameter, GRID)
        U = np.tile(base, (len(codes), 1))
        U[:, columns] = codes
        predicted = fit.scale.restore(fit.surrogate.predict(U))
        half = BAND * np.sqrt(predicted.variance)
        mean = predicted.mean
        lines.append(Line(name, parameter, parameter.decode(codes), mean, mean - half, mean + half))
    return lines


def dependences(study: Study, rng: np.random.Generator) -> list[Line]:
    """For each parameter the mean of f over points of the space that have its value.

    Each hyperparameter sample has its own such curve; the band holds 90% of them.
    """
    fit, space = study.fit(), study.space
    V = space.place(rng.random((4 * BACKGROUND, len(space.parameters))))
    good = V[space.feasible(V)][:BACKGROUND]
    behind = good if len(good) else V[:BACKGROUND]
    lines = []
    for name, parameter, columns in _axes_of(space):
        codes = _codes(parameter, COARSE)
        U = np.repeat(behind[None], len(codes), axis=0)
        U[:, :, columns] = codes[:, None, :]
        predicted = fit.scale.restore(fit.surrogate.predict(U.reshape(-1, space.dim)))
        curves = predicted.means.reshape(len(codes), len(behind), -1).mean(1)  # (k, M)
        low, high = np.quantile(curves, [0.05, 0.95], axis=1)
        lines.append(Line(name, parameter, parameter.decode(codes), curves.mean(1), low, high))
    return lines


def _panels(
    name: str,
    what: str,
    lines: Sequence[Line],
    study: Study,
    told: Sequence[Point],
    point: Point | None,
    colour: str,
) -> Figure:
    lines = lines[:MOST_PANELS]
    across = 2 if len(lines) == 4 else min(3, len(lines))
    down = -(-len(lines) // across)
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(9.6, 0.45 + 2.35 * down), layout="constrained")
        panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for axes, line in zip(panels, lines, strict=False):
            _draw_line(axes, line, colour)
            _rug(axes, line, [each[line.name] for each in told])
            if point is not None:
                _mark(axes, line, point[line.name], colour)
            axes.set_xlabel(shorten(line.name), color=INK)
        for axes in panels[len(lines) :]:
            axes.set_visible(False)
        for axes in panels[::across]:
            axes.set_ylabel("value")
        panels[0].set_ylim(*_common_limits(lines, study))
        title_line(figure, name, what)
    return figure


def _draw_line(axes: Axes, line: Line, colour: str) -> None:
    if isinstance(line.parameter, Categorical):
        x = np.arange(len(line.x))
        spread = np.abs(np.array([line.mean - line.low, line.high - line.mean]))
        axes.errorbar(x, line.mean, spread, fmt="o", color=colour, ms=6, lw=5, alpha=0.28, mew=0)
        axes.plot(x, line.mean, "o", color=colour, ms=6)
        axes.set_xticks(x, [shorten(str(choice), 12) for choice in line.x])
        axes.set_xlim(-0.5, len(x) - 0.5)
        axes.grid(False, axis="x")
        return
    x = np.asarray(line.x, dtype=np.float64)
    axes.fill_between(x, line.low, line.high, color=colour, alpha=0.16, lw=0)
    few = isinstance(line.parameter, Integer) and len(x) <= 25
    axes.plot(x, line.mean, color=colour, lw=1.9, marker="o" if few else "", ms=3.5)
    if line.parameter.log:
        axes.set_xscale("log")
        decades = np.log10(x[-1] / x[0])
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", which="minor", length=0)
    elif isinstance(line.parameter, Integer):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.margins(x=0.02)


def _mark(axes: Axes, line: Line, value: Any, colour: str) -> None:
    """A hair line where the point is."""
    x: Any = value
    if isinstance(line.parameter, Categorical):
        x = next(i for i, choice in enumerate(line.x) if choice == value)
        axes.plot(x, line.mean[x], "o", ms=9, mfc="white", mec=colour, mew=2.0, zorder=5)
        return
    axes.axvline(x, color=INK, lw=0.9, ls=(0, (3, 2)), alpha=0.7, zorder=1)


def _rug(axes: Axes, line: Line, values: Sequence[Any]) -> None:
    """Where values were told, as ticks at the foot."""
    x: Sequence[Any] = values
    if isinstance(line.parameter, Categorical):
        x = [next(i for i, c in enumerate(line.x) if c == value) for value in values]
    foot = axes.get_xaxis_transform()
    axes.plot(x, np.full(len(x), 0.022), "|", ms=5, mew=0.8, color=MUTED, alpha=0.5, transform=foot)


def _codes(parameter: Parameter, most: int) -> Array:
    """Places along one parameter's coordinates of the cube, (k, w), none twice."""
    if isinstance(parameter, Real) or parameter.size > most:
        return np.unique(parameter.snap(np.linspace(0.0, 1.0, most)[:, None]), axis=0)
    return parameter.codes


def _axes_of(space: Space) -> Iterable[tuple[str, Parameter, slice]]:
    return zip(space.names, space.parameters, space.columns_of, strict=True)


def _limits(y: Array) -> tuple[float, float]:
    """A range that shows the best well: the worst tenth may lie beyond if it is far away."""
    known = y[np.isfinite(y)]
    if not len(known):
        return 0.0, 1.0
    low, most = float(known.min()), float(known.max())
    usual = float(np.quantile(known, 0.9))
    high = most if most - low <= 2.5 * (usual - low) else usual
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _common_limits(lines: Sequence[Line], study: Study) -> tuple[float, float]:
    low = min(float(line.low.min()) for line in lines)
    high = max(float(line.high.max()) for line in lines)
    # A band far above all that was seen would flatten the rest.
    seen = bounded(study.y)
    high = min(high, float(seen.max()) + float(np.ptp(seen)))
    low = max(low, float(seen.min()) - float(np.ptp(seen)))
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _legend(axes: Axes, items: Sequence[tuple[str, str, str, str]]) -> None:
    for label, colour, line, marker in items:
        axes.plot([], [], color=colour, ls=line or "none", marker=marker, label=label, lw=2, ms=5)
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.99),
        ncols=len(items),
        fontsize=8.5,
        handlelength=1.4,
        columnspacing=1.4,
    )
