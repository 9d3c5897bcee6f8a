"""The figures of a report. Each function returns a ``Figure``; no global state is touched.

A method keeps its colour and its line through all figures of a report: ``run_styles`` deals them
out once, from the colour-blind-safe palette of Okabe and Ito [1].

[1] Okabe, Ito, Color universal design, 2008; Wong, Points of view: color blindness, Nature Methods
    8, 2011.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from fitbo.mixture import Array
from fitbo.regret import Curve, Run, Runs, curve, eta_band, folder, seconds_curve

Style = dict[str, Any]
Methods = Mapping[str, Sequence[Run]]
Ends = dict[str, tuple[float, float]]  # where a method's curve ends, in the units of the axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1, 1.5)))
INK, MUTED, RULE = "#22272e", "#6b7280", "#e5e7eb"
DPI = 160
LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9ca3af",
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "fitbo",  # ids of an SVG by content, not by chance
    "text.parse_math": False,  # a label is text, whatever dollars it holds
}


def styles(methods: Sequence[str], campaigns: Sequence[str] | None = None) -> list[Style]:
    """A colour for each distinct method, a line for each distinct campaign, in the order given.

    Two campaigns' versions of one method so share a colour. Beyond eight methods the colours come
    round again with other lines.
    """
    colour = {name: i for i, name in enumerate(dict.fromkeys(methods))}
    campaigns = campaigns or [""] * len(methods)
    line = {name: i for i, name in enumerate(dict.fromkeys(campaigns))}
    return [
        {
            "color": COLOURS[colour[method] % len(COLOURS)],
            "linestyle": LINES[
                (line[campaign] + len(line) * (colour[method] // len(COLOURS))) % len(LINES)
            ],
        }
        for method, campaign in zip(methods, campaigns, strict=True)
    ]


def run_styles(grouped: Runs) -> dict[str, Style]:
    """The style of each method's label, for all problems of a report."""
    first = {label: runs[0] for methods in grouped.values() for label, runs in methods.items()}
    dealt = styles(
        [run.method for run in first.values()], [str(folder(run)) for run in first.values()]
    )
    return dict(zip(first, dealt, strict=True))


def regret_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure:
    """log10 immediate and simple regret, median and quartile band over seeds.

    The line is dotted where not every run has got so far.
    """
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(9.6, 3.9), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, regret in ((left, "immediate"), (right, "simple")):
            ends: Ends = {}
            for method, runs in methods.items():
                band = curve(runs, regret)
                _draw_curve(axes, band, style[method])
                ends[method] = (float(band.n[-1]), float(band.median[-1]))
            _mark_initial(axes, methods)
            axes.set_title(f"{regret.capitalize()} regret")
            axes.set_xlabel("evaluations")
            axes.yaxis.set_major_formatter(FuncFormatter(_power))
            axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.margins(x=0.01)
        left.set_ylabel("regret (log scale)")
        _label_ends(right, ends, style)
        count = {len(runs) for runs in methods.values()}
        seeds = f"{count.pop()} seeds" if len(count) == 1 else f"{min(count)}-{max(count)} seeds"
        title_line(figure, problem, f"median and quartiles over {seeds}")
    return figure


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
        _label_ends(axes, ends, style)
        title_line(figure, problem, "seconds per suggestion (MCMC and search), median over seeds")
    return figure


def eta_figure(problem: str, methods: Methods, style: Mapping[str, Style]) -> Figure | None:
    """eta's posterior, 50 and 90% bands, against the true minimum; a panel for each method.

    None if no method has a posterior of eta.
    """
    bands = {method: eta_band(runs) for method, runs in methods.items()}
    bands = {method: band for method, band in bands.items() if np.isfinite(band).any()}
    if not bands:
        return None
    minimum = next(iter(methods.values()))[0].minimum
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
            if np.isfinite(minimum):
                axes.axhline(minimum, color=INK, lw=1.1, ls=(0, (4, 2)))
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
        title_line(
            figure, problem, "posterior of the minimum η (median, 50%, 90%); dashed: the truth"
        )
    return figure


@dataclass(frozen=True, eq=False)
class Picture:
    """A one-dimensional surrogate on a grid: x, truth, mean, deviation (G,); data X, y (n,)."""

    name: str
    x: Array
    truth: Array
    mean: Array
    deviation: Array
    X: Array
    y: Array


@dataclass(frozen=True, eq=False)
class AcquisitionCurve:
    """One method's acquisition on the picture's grid, alpha (G,), and the x it would ask next."""

    label: str
    alpha: Array
    x_next: float


def figure_1d(
    problem: Picture, curves: Sequence[AcquisitionCurve], *, normalise: bool = False
) -> Figure:
    """The paper's picture: surrogate above, acquisitions below, the next query of each marked.

    ``normalise`` maps each acquisition to [0, 1], for methods whose values have no common unit.
    """
    names = [c.label for c in curves]
    style = dict(zip(names, styles(names), strict=True))
    p = problem
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(8.4, 5.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for width, opacity in ((2, 0.13), (1, 0.20)):
            label = "mean ± 1, 2 deviations" if width == 1 else None
            low, high = p.mean - width * p.deviation, p.mean + width * p.deviation
            above.fill_between(p.x, low, high, color=COLOURS[5], alpha=opacity, lw=0, label=label)
        above.plot(p.x, p.mean, color=COLOURS[0], lw=1.8, label="surrogate mean")
        above.plot(p.x, p.truth, color=INK, lw=1.2, ls=(0, (4, 2)), label="truth")
        above.plot(p.X, p.y, "o", color=INK, ms=5, mec="white", mew=0.8, label="data", zorder=5)
        above.set_ylabel("f(x)")
        above.set_title(p.name)
        above.margins(x=0)
        peaks = []
        for c in curves:
            span = float(np.ptp(c.alpha)) or 1.0
            alpha = (c.alpha - c.alpha.min()) / span if normalise else np.asarray(c.alpha)
            below.plot(p.x, alpha, lw=1.7, label=c.label, **style[c.label])
            peaks.append(float(np.interp(c.x_next, p.x, alpha)))
        for c, peak in zip(curves, peaks, strict=True):
            colour = style[c.label]["color"]
            for axes in (above, below):
                axes.axvline(c.x_next, color=colour, lw=1.0, alpha=0.55, zorder=1)
            below.plot([c.x_next], [peak], "v", color=colour, ms=8, mec="white", mew=0.9, zorder=6)
        below.set_ylabel("acquisition" + (", scaled" if normalise else ", nats"))
        below.set_xlabel("x")
        below.set_title("acquisition; ▼ next query")
        below.margins(y=0.12)
        for axes, columns in ((above, 4), (below, 3)):  # on the title's line, clear of the curves
            axes.legend(
                loc="lower right",
                bbox_to_anchor=(1.0, 0.985),
                ncols=columns,
                fontsize=8.5,
                columnspacing=1.4,
                handlelength=1.6,
                borderaxespad=0.0,
            )
    return figure


def image(figure: Figure, kind: str = "png") -> bytes:
    """The figure as PNG or SVG bytes, the same at every call: no dates, no version, fixed ids."""
    buffer = io.BytesIO()
    metadata = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}[kind]
    with matplotlib.rc_context(LOOK):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata, facecolor="white")
    return buffer.getvalue()


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
    if len(sizes) == 1 and (size := sizes.pop()) > 1:
        axes.axvspan(1, size, color="#6b7280", alpha=0.09, lw=0, zorder=0)
        axes.text(
            size,
            0.985,
            " initial design",
            transform=axes.get_xaxis_transform(),
            va="top",
            fontsize=7.5,
            color=MUTED,
        )


def _label_ends(axes: Axes, ends: Ends, style: Mapping[str, Style]) -> None:
    """Names at the right of the axes, near the ends of their curves but never on one another."""
    shown = {method: end for method, end in ends.items() if np.isfinite(end[1])}
    if not shown:
        return
    height = axes.figure.bbox.height / axes.figure.dpi * 72 * 0.72  # points of the axes, nearly
    names = sorted(shown, key=lambda method: shown[method][1])
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    axes.set_xlim(*axes.get_xlim())
    scale = np.log if axes.get_yscale() == "log" else np.asarray
    wanted = (scale([shown[m][1] for m in names]) - scale(low)) / (scale(high) - scale(low))
    size = min(9.0, height / (1.35 * len(names)))
    places = spread(wanted, 1.35 * size / height)
    places -= max(0.0, places[-1] - 1.05) + min(0.0, places[0] + 0.05)
    for method, start, y in zip(names, wanted, places, strict=True):
        colour, (x, level) = style[method]["color"], shown[method]
        axes.plot([x, axes.get_xlim()[1]], [level, level], lw=0.7, color=colour, alpha=0.45)
        axes.plot(
            [1.005, 1.035],
            [start, y],
            transform=axes.transAxes,
            clip_on=False,
            color=colour,
            lw=1.2,
            alpha=0.8,
        )
        axes.text(
            1.045,
            y,
            shorten(method),
            transform=axes.transAxes,
            va="center",
            color=colour,
            fontsize=size,
            fontweight="bold",
        )


def spread(wanted: Array, gap: float) -> Array:
    """Ascending places at least ``gap`` apart, each close to the ascending one wanted, (k,).

    Least squares under the gaps: subtracting the gaps makes it an isotonic regression, done by
    pooling adjacent violators.
    """
    wanted = np.asarray(wanted, dtype=np.float64)
    steps = gap * np.arange(len(wanted))
    pools: list[tuple[float, int]] = []
    for value in wanted - steps:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        pools.append((mean, size))
    return np.concatenate([np.full(size, mean) for mean, size in pools]) + steps


def _eta_limits(bands: Sequence[Array], minimum: float) -> tuple[float, float]:
    """The later half's 90% bands and the truth, with room; a wild start is cut off."""
    late = [band[np.isfinite(band[:, 0])] for band in bands]
    late = [band[len(band) // 2 :] for band in late if len(band)]
    values = np.concatenate([band[:, [0, 4]].ravel() for band in late])
    values = np.append(values, minimum) if np.isfinite(minimum) else values
    low, high = float(values.min()), float(values.max())
    room = 0.35 * (high - low) or 1.0
    return low - room, high + room


def title_line(figure: Figure, name: str, rest: str) -> None:
    """The problem or study in bold and, on the same line, what the figure shows."""
    head = figure.suptitle(
        shorten(name, 40), x=0.008, ha="left", fontsize=12, fontweight="bold", color=INK
    )
    line = figure.axes[0].annotate(
        rest,
        xy=(1, 0),
        xycoords=head,
        xytext=(9, 0.5),
        textcoords="offset points",
        va="bottom",
        fontsize=10,
        color=MUTED,
        annotation_clip=False,
    )
    line.set_in_layout(False)


def _power(value: float, _: int) -> str:
    exponent = round(value, 6)
    if exponent != int(exponent):
        return ""
    return "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _sparse_minor(seconds: float, _: int) -> str:
    lead = f"{seconds:e}"[0]
    return f"{seconds:g}" if lead in "25" else ""


def shorten(label: str, most: int = 34) -> str:
    """The label, its end cut off if it is too long."""
    return label if len(label) <= most else label[: most - 1] + "…"
