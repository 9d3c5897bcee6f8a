"""Parallel coordinates: every point of a study as a line through the axes of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from fitbo.mixture import Array
from fitbo.records.events import Entry
from fitbo.report.drawing import COLOURS, INK, LOOK, MUTED, shorten, title_line
from fitbo.space import Categorical, Integer, Parameter, Space

FAILED = COLOURS[1]
# From the best values to the worst; dark to light, so that it also reads in grey.
BEST_FIRST = LinearSegmentedColormap.from_list(
    "fitbo", ["#08306b", "#0072B2", "#5aa9d6", "#c9d6df", "#e3e6ea"]
)


def parallel_figure(name: str, space: Space, outcomes: Sequence[Entry]) -> Figure | None:
    """Each point as a line through the axes of the parameters, the best darkest and in front."""
    told = sorted([e for e in outcomes if e.value is not None], key=lambda e: -(e.value or 0.0))
    if len(told) < 2 or len(space.parameters) < 2:
        return None
    pairs = list(zip(space.names, space.parameters, strict=True))
    heights = {e.id: np.array([_height(p, e.point[k]) for k, p in pairs]) for e in outcomes}
    values = np.array([float(e.value or 0.0) for e in told])
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(1, len(values) - 1)
    with matplotlib.rc_context(LOOK):
        width = max(9.6, 1.1 * len(pairs))
        figure = Figure(figsize=(width, 4.3), layout="constrained")
        axes = figure.subplots()
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        x = np.arange(float(len(pairs)))
        failed = [e for e in outcomes if e.state == "failed"]
        axes.add_collection(
            LineCollection(
                [_smooth(x, heights[e.id]) for e in failed],
                colors=FAILED,
                linewidths=0.9,
                linestyles=(0, (2, 2)),
                alpha=0.55,
                zorder=2,
            )
        )
        axes.add_collection(
            LineCollection(
                [_smooth(x, heights[e.id]) for e in told],
                colors=[BEST_FIRST(r) for r in rank],
                linewidths=[2.6 if e is told[-1] else 1.2 for e in told],
                alpha=0.9,
                zorder=3,
            )
        )
        for i, (label, parameter) in enumerate(pairs):
            axes.axvline(i, color="#9ca3af", lw=1.0, zorder=1)
            for height, text in _ticks(parameter):
                axes.annotate(
                    shorten(text, 12),
                    (i, height),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7.5,
                    color=MUTED,
                    zorder=6,
                    bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.8},
                )
            axes.text(
                i,
                1.075,
                shorten(label, 16),
                ha="center",
                fontsize=9.5,
                fontweight="bold",
                color=INK,
            )
        axes.set_xlim(-0.15, len(pairs) - 1 + 0.35)
        axes.set_ylim(-0.06, 1.06)
        axes.set_xticks([])
        axes.set_yticks([])
        norm = Normalize(0.0, 1.0)
        bar = figure.colorbar(
            ScalarMappable(norm, BEST_FIRST), ax=axes, fraction=0.025, pad=0.01, aspect=30
        )
        bar.outline.set_visible(False)
        places = [0.0, 0.25, 0.5, 0.75, 1.0]
        bar.set_ticks(places, labels=[f"{v:.3g}" for v in np.quantile(values, places)])
        bar.ax.invert_yaxis()
        bar.set_label("value (by rank)", fontsize=8.5)
        title_line(
            figure, name, f"all points, the best in front{', failures dashed' if failed else ''}"
        )
    return figure


def _height(parameter: Parameter, value: Any) -> float:
    """Where a value is on its axis, from 0 to 1."""
    if isinstance(parameter, Categorical):
        i = next(k for k, choice in enumerate(parameter.choices) if choice == value)
        return i / max(1, len(parameter.choices) - 1)
    return float(parameter.encode(value)[0])


def _ticks(parameter: Parameter) -> list[tuple[float, str]]:
    if isinstance(parameter, Categorical):
        return [(_height(parameter, choice), str(choice)) for choice in parameter.choices]
    last = parameter.last if isinstance(parameter, Integer) else parameter.high
    middle = parameter.decode(np.array([[0.5]]))[0]
    low, high = f"{parameter.low:.4g}", f"{last:.4g}"
    between = [(_height(parameter, middle.item()), f"{middle:.3g}")]
    return [(0.0, low), *([] if between[0][1] in (low, high) else between), (1.0, high)]


def _smooth(x: Array, y: Array) -> Array:
    """The polyline through (x, y) with its corners eased: level at each axis, (k, 2)."""
    t = np.linspace(0.0, 1.0, 13)
    ease = t * t * (3 - 2 * t)
    X = (x[:-1, None] + t).ravel()
    Y = (y[:-1, None] + (y[1:] - y[:-1])[:, None] * ease).ravel()
    return np.column_stack([X, Y])
