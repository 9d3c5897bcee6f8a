"""The figures of a report. Each function returns a ``Figure``; no global state is touched.

A method keeps its colour and its line through all figures of a report: ``run_styles`` deals them
out once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from fitbo.mixture import Array
from fitbo.report.drawing import (
    INK,
    LOOK,
    Ends,
    Style,
    label_ends,
    mark_initial,
    shorten,
    styles,
    title_line,
)
from fitbo.report.history import Run, Runs
from fitbo.report.regret import Curve, curve, eta_band, seconds_curve

Methods = Mapping[str, Sequence[Run]]


def run_styles(grouped: Runs) -> dict[str, Style]:
    """The style of each method's label, for all problems of a report."""
    first = {label: runs[0] for methods in grouped.values() for label, runs in methods.items()}
    dealt = styles(
        [run.method for run in first.values()], [str(run.folder) for run in first.values()]
    )
    return dict(zip(first, dealt, strict=True))


def regret_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """log10 immediate and simple regret, median and quartile band over seeds.

    The line is dotted where not every run has reached that far. Immediate regret is left out where
    nobody knows what a recommended point is worth.
    """
    tracked = not any(np.isnan(run.immediate).all() for runs in methods.values() for run in runs)
    measures = {"simple": "Simple regret"}
    if tracked:
        measures = {"immediate": "Immediate regret", **measures}
    figure, axes = _curves(problem, methods, style, measures)
    _regret_ticks(axes)
    axes.set_ylabel("regret (log scale)")
    return figure


def best_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """The best value so far, median and quartile band over seeds."""
    figure, axes = _curves(problem, methods, style, {"best": "Best value so far"})
    axes.set_ylabel("value")
    low, high = _late([curve(runs, "best") for runs in methods.values()])
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    return figure


def _curves(
    problem: str, methods: Methods, style: Mapping[str, Style], measures: Mapping[str, str]
) -> tuple[Figure, Axes]:
    """A panel for each measure; the figure and its first panel."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(9.6, 3.9), layout="constrained")
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, (what, title) in zip(panels, measures.items(), strict=True):
            ends: Ends = {}
            for method, runs in methods.items():
                band = curve(runs, what)
                _draw_curve(axes, band, style[method])
                ends[method] = (float(band.n[-1]), float(band.median[-1]))
            _mark_initial(axes, methods)
            axes.set_title(title)
            axes.set_xlabel("evaluations")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.margins(x=0.01)
        label_ends(panels[-1], ends, style)
        count = {len(runs) for runs in methods.values()}
        seeds = f"{count.pop()} seeds" if len(count) == 1 else f"{min(count)}-{max(count)} seeds"
        title_line(figure, problem, f"median and quartiles over {seeds}")
    return figure, panels[0]


def _late(bands: Sequence[Curve]) -> tuple[float, float]:
    """A range that shows where the curves end: the first tenth of each may lie beyond."""
    lows = [band.low[np.isfinite(band.low)].min() for band in bands if np.isfinite(band.low).any()]
    late = [band.high[len(band.high) // 10 :] for band in bands]
    highs = [each[np.isfinite(each)].max() for each in late if np.isfinite(each).any()]
    low, high = min(lows, default=0.0), max(highs, default=1.0)
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def seconds_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """Seconds of MCMC and search for each suggestion, median over seeds, against evaluations."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(9.6, 3.3), layout="constrained")
        axes = figure.subplots()
        ends: Ends = {}
        for method, runs in methods.items():
            seconds = seconds_curve(runs)
            known = np.flatnonzero(np.isfinite(seconds) & (seconds > 0))
            if len(known):
                axes.plot(known + 1, seconds[known], lw=1.6, **style[method])
                ends[method] = (float(known[-1] + 1), float(seconds[known[-1]]))
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s:g}"))
        low, high = axes.get_ylim()
        if high < 30 * low:  # within a decade and a half the powers of ten alone are too few
            axes.yaxis.set_minor_formatter(FuncFormatter(_sparse_minor))
        else:
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="y", which="minor", length=0, labelsize=8)
        axes.set_xlabel("evaluations")
        axes.set_ylabel("seconds (log scale)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(x=0.01)
        label_ends(axes, ends, style)
        title_line(figure, problem, "seconds per suggestion (MCMC and search), median over seeds")
    return figure


def eta_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure | None:
    """eta's posterior, 50 and 90% bands, against the minimum or the best value; a panel per method.

    None if no method has a posterior of eta.
    """
    bands = {method: eta_band(runs) for method, runs in methods.items()}
    bands = {method: band for method, band in bands.items() if np.isfinite(band).any()}
    if not bands:
        return None
    minimum = next(iter(methods.values()))[0].minimum
    known = np.isfinite(minimum)
    reference = "dashed: the true minimum" if known else "black: the best value so far"
    columns = 2 if len(bands) == 4 else min(3, len(bands))
    rows = -(-len(bands) // columns)
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(9.6, 0.7 + 2.5 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (method, band) in zip(grid.flat, bands.items(), strict=False):
            n, colour = np.arange(1, len(band) + 1), style[method]["color"]
            axes.fill_between(n, band[:, 0], band[:, 4], color=colour, alpha=0.13, lw=0)
            axes.fill_between(n, band[:, 1], band[:, 3], color=colour, alpha=0.24, lw=0)
            axes.plot(n, band[:, 2], color=colour, lw=1.8)
            if known:
                axes.axhline(minimum, color=INK, lw=1.1, ls=(0, (4, 2)))
            else:
                axes.step(n, curve(methods[method], "best").median, where="post", color=INK, lw=1.1)
            axes.set_title(shorten(method, 32), fontsize=9.5, color=colour)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
            axes.margins(x=0.02)
        for axes in grid.flat[len(bands) :]:
            axes.set_visible(False)
        grid[0, 0].set_ylim(*_eta_limits(list(bands.values()), minimum))
        for axes in grid[:, 0]:
            axes.set_ylabel("η")
        for column in range(columns):
            below = [axes for axes in grid[:, column] if axes.get_visible()]
            below[-1].tick_params(labelbottom=True)
        figure.supxlabel("evaluations", fontsize=9.5)
        title_line(figure, problem, f"posterior of η (median, 50%, 90%); {reference}")
    return figure


def _draw_curve(axes: Axes, band: Curve, style: Style) -> None:
    known = np.isfinite(band.median)
    n, whole = band.n[known], (band.count == band.runs)[known]
    median, low, high = band.median[known], band.low[known], band.high[known]
    if not len(n):
        return
    upper = np.where(np.isfinite(high), high, median.max())
    axes.fill_between(n, low, upper, color=style["color"], alpha=0.13, lw=0)
    axes.plot(n[whole], median[whole], lw=1.9, **style)
    ragged = ~whole
    if ragged.any():
        first = max(0, int(np.argmax(ragged)) - 1)
        axes.plot(n[first:], median[first:], lw=1.4, ls=":", color=style["color"])


def _mark_initial(axes: Axes, methods: Methods) -> None:
    """The initial design as a grey strip, if all runs have one of the same size."""
    sizes = {run.initial for runs in methods.values() for run in runs}
    if len(sizes) == 1:
        mark_initial(axes, sizes.pop())


def _eta_limits(bands: Sequence[Array], minimum: float) -> tuple[float, float]:
    """The later half's 90% bands and the truth, with room; a wild start is cut off."""
    late = [band[np.isfinite(band[:, 0])] for band in bands]
    late = [band[len(band) // 2 :] for band in late if len(band)]
    values = np.concatenate([band[:, [0, 4]].ravel() for band in late])
    values = np.append(values, minimum) if np.isfinite(minimum) else values
    low, high = float(values.min()), float(values.max())
    room = 0.35 * (high - low) or 1.0
    return low - room, high + room


def _regret_ticks(axes: Axes) -> None:
    """Powers of ten on an axis of logarithms; within two decades 1, 2 and 5 of each."""
    low, high = axes.get_ylim()
    if high - low > 2:
        axes.yaxis.set_major_formatter(FuncFormatter(_power))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
        return
    decades = range(math.floor(low), math.ceil(high))
    ticks = [k * 10.0**decade for decade in decades for k in (1, 2, 5)]
    shown = [tick for tick in ticks if low <= math.log10(tick) <= high]
    if len(shown) > 1:
        axes.set_yticks([math.log10(tick) for tick in shown], [f"{tick:g}" for tick in shown])
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda exponent, _: f"{10**exponent:.3g}"))


def _power(value: float, _: int) -> str:
    exponent = round(value, 6)
    if exponent != int(exponent):
        return ""
    return "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _sparse_minor(seconds: float, _: int) -> str:
    lead = f"{seconds:e}"[0]
    return f"{seconds:g}" if lead in "25" else ""
