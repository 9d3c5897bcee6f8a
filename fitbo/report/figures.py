"""The figures of a campaign's report. Each function returns a ``Figure``; no global state changes.

A method keeps its colour and its line through all figures of a report: ``run_styles`` assigns them
once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from fitbo.mixture import Array
from fitbo.report import drawing
from fitbo.report.drawing import INK, Ends, looks
from fitbo.report.history import Run, Runs
from fitbo.report.palette import Style, styles, written
from fitbo.report.regret import Curve, curve, quantile_band, seconds_curve

Methods = Mapping[str, Sequence[Run]]
RUNNING = 9  # suggestions behind a thick line of seconds
SYMBOLS = {"minimum": "f*", "eta": "η"}
NAMES = {"minimum": "f*, the optimum", "eta": "η, the model's bound, which is not the optimum"}


def run_styles(grouped: Runs) -> dict[str, Style]:
    """The style of each method's label, for all problems of a report."""
    first = {label: runs[0] for methods in grouped.values() for label, runs in methods.items()}
    runs = first.values()
    dealt = styles([run.method for run in runs], [str(run.folder) for run in runs])
    return dict(zip(first, dealt, strict=True))


def regret_measures(methods: Methods) -> dict[str, str]:
    """The regrets that are known, with their names."""
    unknown = any(np.isnan(run.immediate).all() for runs in methods.values() for run in runs)
    simple = {"simple": "Simple regret"}
    return simple if unknown else {"immediate": "Immediate regret", **simple}


def regret_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """log10 immediate and simple regret, median and quartile band over seeds.

    The line is dotted where not every run has reached that far. Immediate regret is left out where
    the value of a recommended point is unknown.
    """
    figure, axes = _curves(problem, methods, style, regret_measures(methods))
    _regret_ticks(axes)
    axes.set_ylabel("regret (log scale)")
    return figure


def best_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """The best value so far, median and quartile band over seeds."""
    figure, axes = _curves(problem, methods, style, {"best": "Best value so far"})
    axes.set_ylabel("value")
    axes.set_ylim(*best_limits([curve(runs, "best") for runs in methods.values()]))
    return figure


@looks
def _curves(
    problem: str, methods: Methods, style: Mapping[str, Style], measures: Mapping[str, str]
) -> tuple[Figure, Axes]:
    """A panel for each measure; the figure and its first panel."""
    figure = drawing.blank(3.9)
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    initial = {run.initial for runs in methods.values() for run in runs}
    for axes, (what, title) in zip(panels, measures.items(), strict=True):
        ends: Ends = {}
        for method, runs in methods.items():
            band = curve(runs, what)
            _draw_curve(axes, band, style[method])
            ends[method] = (float(band.n[-1]), float(band.median[-1]))
        axes.set_title(title)
        drawing.evaluations_axis(axes, min(initial) if len(initial) == 1 else 0)
    drawing.label_ends(panels[-1], ends, style)
    count = {len(runs) for runs in methods.values()}
    seeds = f"{min(count)}-{max(count)}" if len(count) > 1 else str(count.pop())
    drawing.title_line(figure, problem, f"median and quartiles over {seeds} seeds")
    return figure, panels[0]


def _draw_curve(axes: Axes, band: Curve, style: Style) -> None:
    known = np.isfinite(band.median)
    if not known.any():
        return
    n, ragged = band.n[known], (band.count < band.runs)[known]
    median, low, high = band.median[known], band.low[known], band.high[known]
    upper = np.where(np.isfinite(high), high, median.max())
    axes.fill_between(n, low, upper, color=style["color"], alpha=0.13, lw=0)
    axes.plot(n[~ragged], median[~ragged], lw=1.9, **style)
    if ragged.any():
        first = max(0, int(np.argmax(ragged)) - 1)
        axes.plot(n[first:], median[first:], lw=1.4, ls=":", color=style["color"])


def running_mean(values: Array, width: int) -> Array:
    """The mean of the values about each, as many as there are up to ``width``, (n,) -> (n,)."""
    ones = np.ones(min(width, len(values)))
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


@looks
def seconds_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """Seconds of MCMC and search for each suggestion, median over seeds, against evaluations.

    Suggestions of different kinds take turns, so the thick lines are means of several.
    """
    figure = drawing.blank(3.3)
    axes = figure.subplots()
    ends: Ends = {}
    for method, runs in methods.items():
        seconds = seconds_curve(runs)
        known = np.flatnonzero(np.isfinite(seconds) & (seconds > 0))
        if len(known):
            each, smooth = seconds[known], running_mean(seconds[known], RUNNING)
            axes.plot(known + 1, each, lw=0.6, alpha=0.3, color=style[method]["color"])
            axes.plot(known + 1, smooth, lw=1.9, **style[method])
            ends[method] = (float(known[-1] + 1), float(smooth[-1]))
    axes.set_yscale("log")
    axes.set_ylabel("seconds (log scale)")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s:g}"))
    low, high = axes.get_ylim()
    # Within a decade and a half the powers of ten alone are too few.
    few = high < 30 * low
    axes.yaxis.set_minor_formatter(FuncFormatter(_sparse_minor) if few else NullFormatter())
    axes.tick_params(axis="y", which="minor", length=0, labelsize=8)
    drawing.evaluations_axis(axes)
    drawing.label_ends(axes, ends, style)
    what = f"seconds per suggestion, median over seeds; thick: running mean of {RUNNING}"
    drawing.title_line(figure, problem, what)
    return figure


def posterior_bands(methods: Methods) -> tuple[str, dict[str, Array]]:
    """The kind "minimum" and each method's quantiles of f*, (N, 5); without any, those of "eta"."""

    def known(what: str) -> dict[str, Array]:
        bands = {method: quantile_band(runs, what) for method, runs in methods.items()}
        return {method: band for method, band in bands.items() if np.isfinite(band).any()}

    bands = known("optimum")
    return ("minimum", bands) if bands else ("eta", known("eta"))


@looks
def posterior_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure | None:
    """The posterior of f*, or else of eta: 50 and 90% bands; a panel per method.

    Against the minimum, or the best value where it is unknown. None if there is no posterior.
    """
    kind, bands = posterior_bands(methods)
    if not bands:
        return None
    minimum = next(iter(methods.values()))[0].minimum
    known = np.isfinite(minimum)
    figure, grid = drawing.grid(len(bands), 0.7, 2.5, sharex=True)
    for axes, (method, band) in zip(grid.flat, bands.items(), strict=False):
        n, colour = np.arange(1, len(band) + 1), style[method]["color"]
        axes.fill_between(n, band[:, 0], band[:, 4], color=colour, alpha=0.13, lw=0)
        axes.fill_between(n, band[:, 1], band[:, 3], color=colour, alpha=0.24, lw=0)
        axes.plot(n, band[:, 2], color=colour, lw=1.8)
        if known:
            axes.axhline(minimum, color=INK, lw=1.1, ls=(0, (4, 2)))
        else:
            axes.step(n, curve(methods[method], "best").median, where="post", color=INK, lw=1.1)
        axes.set_title(drawing.shorten(method, 32), fontsize=9.5, color=written(colour))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.margins(x=0.02)
    grid[0, 0].set_ylim(*band_limits(list(bands.values()), minimum))
    for axes in grid[:, 0]:
        axes.set_ylabel(SYMBOLS[kind])
    for column in grid.T:
        [axes for axes in column if axes.get_visible()][-1].tick_params(labelbottom=True)
    figure.supxlabel("evaluations", fontsize=9.5)
    reference = "dashed: the true optimum" if known else "black: the best value so far"
    what = f"posterior of {NAMES[kind]} (median, 50%, 90%); {reference}"
    drawing.title_line(figure, problem, what)
    return figure


def band_limits(bands: Sequence[Array], minimum: float) -> tuple[float, float]:
    """The later half's 90% bands and the minimum, with room; a wild start is cut off."""
    known = [band[np.isfinite(band[:, 0])][:, [0, 4]] for band in bands]
    values = np.concatenate([band[len(band) // 2 :].ravel() for band in known])
    values = np.append(values, minimum) if np.isfinite(minimum) else values
    return drawing.roomy(float(values.min()), float(values.max()), 0.35, least=1.0)


def best_limits(bands: Sequence[Curve]) -> tuple[float, float]:
    """A range that shows where the curves end: the first tenth of each may lie beyond."""
    late = [(band.low[len(band.n) // 10 :], band.high[len(band.n) // 10 :]) for band in bands]
    lows, highs = (np.concatenate(ends) for ends in zip(*late, strict=True))
    low = float(min(lows[np.isfinite(lows)], default=0.0))
    high = float(max(highs[np.isfinite(highs)], default=1.0))
    return drawing.roomy(*drawing.apart(low, high), 0.06)


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
    return drawing.power(int(exponent))


def _sparse_minor(seconds: float, _: int) -> str:
    return f"{seconds:g}" if f"{seconds:e}"[0] in "25" else ""
