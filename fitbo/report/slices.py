"""The figures of one study's report. Each function returns a ``Figure`` and changes nothing else.

progress_figure      every value by its evaluation, and the best so far
slice_figure         the posterior along each parameter, the others at the recommended point
dependence_figure    the same averaged over the space: the partial dependence
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fitbo.mixture import Array, Mixture
from fitbo.records.events import Entry, Point
from fitbo.report import drawing
from fitbo.report.drawing import INK, MUTED, looks, shorten
from fitbo.report.palette import COLOURS, Style
from fitbo.space import Categorical, Integer, Parameter
from fitbo.study import LARGEST, Study, bounded

BLUE, RED, GREEN = COLOURS[:3]
GRID, COARSE, BACKGROUND = 101, 33, 96  # points along a slice, along a dependence, averaged over
MOST_PANELS = 24
Band = Callable[[Mixture, int], tuple[Array, Array, Array]]
BAND = 1.645  # standard deviations: 90% of a normal distribution


class Line(NamedTuple):
    """One parameter's axis: values x and a curve with its band, all (k,)."""

    name: str
    parameter: Parameter
    x: Any
    mean: Array
    low: Array
    high: Array

    def place(self, value: Any) -> Any:
        """Where a value is on the axis; nan for a choice that has no room there."""
        if not isinstance(self.parameter, Categorical):
            return value
        return list(self.x).index(value) if value in self.x else np.nan


@looks
def progress_figure(
    name: str,
    outcomes: Sequence[Entry],
    n_initial: int,
    sign: float = 1.0,
    counts: Callable[[Entry], bool] = lambda entry: True,
) -> Figure:
    """Values against evaluations, failures at the foot, and the best value so far.

    With ``sign`` -1 the best is the highest. Where a value does not ``count``, an outcome
    constraint is broken.
    """
    figure = drawing.blank(3.6)
    axes = figure.subplots()
    n = np.arange(1, len(outcomes) + 1)
    y = np.array([np.nan if e.value is None else e.value for e in outcomes])
    known = np.isfinite(y)
    held = known & np.array([counts(e) for e in outcomes], dtype=np.bool_)
    good = np.where(held, y, np.nan)
    best, worst = sign * np.array(value_limits(sign * y[known]))
    inside, beyond = known & (sign * (y - worst) <= 0), known & (sign * (y - worst) > 0)
    arrow = "^" if sign > 0 else "v"
    foot = axes.get_xaxis_transform()
    for part, face in ((inside & held, MUTED), (inside & ~held, "none")):
        edges = "none" if face == MUTED else MUTED
        axes.plot(n[part], y[part], "o", ms=4.2, mfc=face, alpha=0.55, mec=edges)
    edge = np.full(beyond.sum(), worst)
    axes.plot(n[beyond], edge, arrow, ms=4.6, color=MUTED, alpha=0.55, mec="none")
    axes.step(n, sign * np.fmin.accumulate(sign * good), where="post", color=BLUE, lw=2.0)
    failed = np.full((~known).sum(), 0.03)
    axes.plot(n[~known], failed, "x", ms=5, mew=1.4, color=RED, transform=foot)
    if held.any():
        i = int(np.nanargmin(sign * good))
        axes.plot(n[i], y[i], "o", ms=7.5, mfc="white", mec=BLUE, mew=2.0, zorder=5)
    if known.any():
        span = worst - best
        axes.set_ylim(*sorted([best - 0.12 * span, worst + 0.08 * span]))
    axes.set_xlim(0.5, len(n) + 0.5)
    shown = [("best so far", BLUE, "-", ""), ("value", MUTED, "none", "o")]
    shown += [("beyond the axis", MUTED, "none", arrow)] if beyond.any() else []
    shown += [("failed", RED, "none", "x")] if len(failed) else []
    shown += [("infeasible", MUTED, "none", "o")] if (known & ~held).any() else []
    for label, colour, line, marker in shown:
        face = "none" if label == "infeasible" else colour
        axes.plot([], [], color=colour, ls=line, marker=marker, mfc=face, label=label, lw=2, ms=5)
    drawing.legend_line(axes, len(shown), bbox_to_anchor=(1.0, 0.99), handlelength=1.4)
    axes.set_ylabel("value")
    drawing.evaluations_axis(axes, min(n_initial, len(n)), 0.5)
    drawing.title_line(figure, name, "best so far")
    return figure


def slice_figure(
    name: str,
    study: Study,
    told: Sequence[Point],
    point: Point,
    lines: Sequence[Line] | None = None,
) -> Figure:
    """The posterior of f along each parameter, the others as in ``point``: mean and 90% band."""
    lines = slice_lines(study, point) if lines is None else lines
    return _panels(name, "slices through the recommended point", lines, study, told, BLUE, point)


def slice_lines(study: Study, point: Point) -> list[Line]:
    """The curves of ``slice_figure``."""

    def band(f: Mixture, _: int) -> tuple[Array, Array, Array]:
        half = BAND * np.sqrt(f.variance)
        return f.mean, f.mean - half, f.mean + half

    return _along(study, study.space.check(point)[None], GRID, band)


def dependence_figure(
    name: str,
    study: Study,
    told: Sequence[Point],
    rng: np.random.Generator,
    lines: Sequence[Line] | None = None,
) -> Figure:
    """The mean of f along each parameter, averaged over points of the space that have its value.

    Each hyperparameter sample has its own such curve; the band holds 90% of them.
    """
    lines = dependence_lines(study, rng) if lines is None else lines
    return _panels(name, "partial dependence", lines, study, told, GREEN)


def dependence_lines(study: Study, rng: np.random.Generator) -> list[Line]:
    """The curves of ``dependence_figure``."""
    space = study.space
    V = space.place(rng.random((4 * BACKGROUND, len(space.parameters))))
    good = V[space.feasible(V)][:BACKGROUND]
    behind = good if len(good) else V[:BACKGROUND]

    def band(f: Mixture, points: int) -> tuple[Array, Array, Array]:
        curves = f.means.reshape(-1, points, f.means.shape[-1]).mean(1)  # (k, M)
        low, high = np.quantile(curves, [0.05, 0.95], axis=1)
        return curves.mean(1), low, high

    return _along(study, behind, COARSE, band)


def _along(study: Study, behind: Array, most: int, band: Band) -> list[Line]:
    """A curve for each parameter, from the posterior at points ``behind`` (b, dim) with its values.

    The posterior is at (k b, dim) points for k values; ``band`` makes a curve (k,) of it and of b.
    """
    fit, space, lines = study.fit(), study.space, []
    scale = fit.scale
    for name, parameter, columns in zip(
        space.names, space.parameters, space.columns_of, strict=True
    ):
        if isinstance(parameter, Categorical):
            codes = parameter.codes[_shown(parameter, name, study, behind[0, columns], most)]
        elif parameter.continuous or parameter.size > most:
            codes = np.unique(parameter.snap(np.linspace(0.0, 1.0, most)[:, None]), axis=0)
        else:
            codes = parameter.codes
        there = behind[space.active(behind)[:, space.names.index(name)]]
        if not len(there):  # a parameter that exists at none of them
            continue
        U = np.repeat(there[None], len(codes), axis=0)
        U[:, :, columns] = codes[:, None, :]
        U = space.settle(U.reshape(-1, space.dim))
        # In standardised units: the square of a value may be no number where the value is.
        curves = band(fit.surrogate.predict(U), len(there))
        middle, *ends = (study.sign * (scale.location + scale.scale * each) for each in curves)
        shown = np.clip([middle, np.minimum(*ends), np.maximum(*ends)], -LARGEST, LARGEST)
        lines.append(Line(name, parameter, parameter.decode(codes), *shown))
    return lines


def _shown(parameter: Categorical, name: str, study: Study, first: Array, most: int) -> list[int]:
    """The choices that a panel has room for: all, or that of ``first`` and the most told."""
    if parameter.size <= most:
        return list(range(parameter.size))
    told = [parameter.choices.index(point[name]) for point in study.X]
    told.append(parameter.choices.index(parameter.decode(first[None])[0]))
    often = sorted(set(told), key=lambda k: (k != told[-1], -told.count(k), k))
    return sorted(often[:most])


@looks
def _panels(
    name: str,
    what: str,
    lines: Sequence[Line],
    study: Study,
    told: Sequence[Point],
    colour: str,
    point: Point | None = None,
) -> Figure:
    lines = lines[:MOST_PANELS]
    figure, panels = drawing.grid(len(lines), 0.45, 2.35)
    for axes, line in zip(panels.flat, lines, strict=False):
        _draw_line(axes, line, colour)
        seen = [each[line.name] for each in told if line.name in each]
        x = [line.place(value) for value in seen]  # as ticks at the foot
        foot = {"ms": 5, "mew": 0.8, "transform": axes.get_xaxis_transform()}
        axes.plot(x, np.full(len(x), 0.022), "|", color=MUTED, alpha=0.5, **foot)
        if point is not None:
            at = line.place(point[line.name])
            if isinstance(line.parameter, Categorical):
                ring: Style = {"ms": 9, "mfc": "white", "mew": 2.0, "zorder": 5}
                axes.plot(at, line.mean[at], "o", mec=colour, **ring)
            else:
                axes.axvline(at, color=INK, lw=0.9, ls=(0, (3, 2)), alpha=0.7, zorder=1)
        axes.set_xlabel(shorten(line.name), color=INK)
    for axes in panels[:, 0]:
        axes.set_ylabel("value")
    panels[0, 0].set_ylim(*common_limits(lines, study))
    drawing.title_line(figure, name, what)
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
    x, whole = np.asarray(line.x, dtype=np.float64), isinstance(line.parameter, Integer)
    axes.fill_between(x, line.low, line.high, color=colour, alpha=0.16, lw=0)
    marker = "o" if whole and len(x) <= 25 else ""
    axes.plot(x, line.mean, color=colour, lw=1.9, marker=marker, ms=3.5)
    if line.parameter.log:
        axes.set_xscale("log")
        decades = np.log10(x[-1] / x[0])
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", which="minor", length=0)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=whole, nbins=6 if whole else 5))
    axes.margins(x=0.02)


def value_limits(known: Array) -> tuple[float, float]:
    """A range that shows the best well: the worst tenth may lie beyond if it is far away."""
    if not len(known):
        return 0.0, 1.0
    low, most, usual = float(known.min()), float(known.max()), float(np.quantile(known, 0.9))
    return drawing.apart(low, most if most - low <= 2.5 * (usual - low) else usual)


def common_limits(lines: Sequence[Line], study: Study) -> tuple[float, float]:
    """The range of value that all panels share."""
    low = min(float(line.low.min()) for line in lines)
    high = max(float(line.high.max()) for line in lines)
    # A band far beyond all that was seen would flatten the rest.
    seen = bounded(study.y)
    span = float(np.ptp(seen))
    low, high = max(low, float(seen.min()) - span), min(high, float(seen.max()) + span)
    return drawing.roomy(low, high, 0.05, least=1.0)
