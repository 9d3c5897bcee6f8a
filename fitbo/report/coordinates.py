"""Parallel coordinates: every point of a study as a line through the axes of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from fitbo.mixture import Array
from fitbo.records.events import Entry
from fitbo.report import drawing
from fitbo.report.drawing import INK, MUTED, looks, shorten
from fitbo.report.palette import COLOURS, Style
from fitbo.space import Categorical, Parameter, Space

# From the best values to the worst; dark to light, so that it also reads in grey.
SHADES = ["#08306b", "#0072B2", "#5aa9d6", "#c9d6df", "#e3e6ea"]
BEST_FIRST = LinearSegmentedColormap.from_list("fitbo", SHADES)
FAILED: Style = {"colors": COLOURS[1], "linewidths": 0.9, "linestyles": (0, (2, 2)), "alpha": 0.55}
BESIDE: Style = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "zorder": 6}
MOST_TICKS = 40
BOX = {"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.8}


@looks
def parallel_figure(
    name: str, space: Space, outcomes: Sequence[Entry], sign: float = 1.0
) -> Figure | None:
    """Each point as a line through the axes of the parameters, the best darkest and in front.

    With ``sign`` -1 the best is the highest.
    """
    told = [e for e in outcomes if e.value is not None]
    told.sort(key=lambda e: -sign * (e.value or 0.0))
    if len(told) < 2 or len(space.parameters) < 2:
        return None
    failed = [e for e in outcomes if e.state == "failed"]
    pairs = list(zip(space.names, space.parameters, strict=True))
    values = sign * np.array([float(e.value or 0.0) for e in told])
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(1, len(values) - 1)
    figure = drawing.blank(4.3, max(9.6, 1.1 * len(pairs)))
    axes = figure.subplots()
    axes.grid(False)
    axes.spines[:].set_visible(False)

    def lines(entries: Sequence[Entry], **look: Any) -> None:
        heights = [np.array([height(p, e.point.get(label)) for label, p in pairs]) for e in entries]
        axes.add_collection(LineCollection([_smooth(each) for each in heights], **look))

    lines(failed, **FAILED, zorder=2)
    widths = [2.6 if e is told[-1] else 1.2 for e in told]
    lines(told, colors=[BEST_FIRST(r) for r in rank], linewidths=widths, alpha=0.9, zorder=3)
    for i, (label, parameter) in enumerate(pairs):
        axes.axvline(i, color="#9ca3af", lw=1.0, zorder=1)
        for at, text in ticks(parameter):
            look: Style = {"fontsize": 7.5, "color": MUTED, "bbox": BOX}
            axes.annotate(shorten(text, 12), (i, at), **BESIDE, **look)
        bold: Style = {"fontsize": 9.5, "fontweight": "bold", "color": INK}
        axes.text(i, 1.075, shorten(label, 16), ha="center", **bold)
    axes.set(xlim=(-0.15, len(pairs) - 1 + 0.35), ylim=(-0.06, 1.06), xticks=[], yticks=[])
    colours = ScalarMappable(Normalize(0.0, 1.0), BEST_FIRST)
    bar = figure.colorbar(colours, ax=axes, fraction=0.025, pad=0.01, aspect=30)
    bar.outline.set_visible(False)
    places = [0.0, 0.25, 0.5, 0.75, 1.0]
    bar.set_ticks(places, labels=[f"{v:.3g}" for v in sign * np.quantile(values, places)])
    bar.ax.invert_yaxis()
    bar.set_label("value (by rank)", fontsize=8.5)
    dashed = ", failures dashed" if failed else ""
    drawing.title_line(figure, name, f"all points, the best in front{dashed}")
    return figure


def height(parameter: Parameter, value: Any) -> float:
    """Where a value is on its axis, from 0 to 1; NaN of one that does not exist."""
    if value is None and not (isinstance(parameter, Categorical) and None in parameter.choices):
        return float("nan")
    if isinstance(parameter, Categorical):
        return parameter.choices.index(value) / max(1, len(parameter.choices) - 1)
    return float(parameter.encode(value)[0])


def ticks(parameter: Parameter) -> list[tuple[float, str]]:
    """Values of a parameter to be written on its axis, with their heights."""
    if isinstance(parameter, Categorical):
        every = -(-parameter.size // MOST_TICKS)  # as many as can be read
        return [(height(parameter, c), str(c)) for c in parameter.choices[::every]]
    middle = parameter.decode(np.array([[0.5]]))[0]
    low, between, high = f"{parameter.low:.4g}", f"{middle:.3g}", f"{parameter.last:.4g}"
    inner = [] if between in (low, high) else [(height(parameter, middle.item()), between)]
    return [(0.0, low), *inner, (1.0, high)]


def _smooth(y: Array) -> Array:
    """The polyline through (i, y_i) with its corners eased: level at each axis, (k, 2)."""
    t = np.linspace(0.0, 1.0, 13)
    ease = t * t * (3 - 2 * t)
    X = (np.arange(len(y) - 1.0)[:, None] + t).ravel()
    Y = (y[:-1, None] + (y[1:] - y[:-1])[:, None] * ease).ravel()
    return np.column_stack([X, Y])
