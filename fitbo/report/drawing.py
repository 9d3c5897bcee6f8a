"""How all figures look: lines, axes, titles, labels, and a figure as bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from PIL import Image

from fitbo.mixture import Array
from fitbo.report.palette import Style, written

Ends = dict[str, tuple[float, float]]  # where a method's curve ends, in the units of the axes

INK, MUTED, RULE = "#22272e", "#6b7280", "#e5e7eb"
DPI = 160
PALETTE = 192  # colours of a picture
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
    "text.parse_math": False,  # a label is text, whatever dollar signs it holds
}
looks = matplotlib.rc_context(LOOK)  # decorates every function that draws


class Picture(Figure):
    """A figure that a notebook shows, whether or not pyplot is in use there."""

    def _repr_png_(self) -> bytes:
        return image(self)


def blank(height: float, width: float = 9.6) -> Figure:
    """An empty figure; sizes are in inches."""
    return Picture(figsize=(width, height), layout="constrained")


def grid(count: int, top: float, each: float, sharex: bool = False) -> tuple[Figure, Any]:
    """A figure with ``count`` panels in rows of up to three, and its axes, (rows, columns)."""
    columns = 2 if count == 4 else min(3, count)
    rows = -(-count // columns)
    figure = blank(top + each * rows)
    axes = figure.subplots(rows, columns, sharex=sharex, sharey=True, squeeze=False)
    for unused in axes.flat[count:]:
        unused.set_visible(False)
    return figure, axes


@looks
def image(figure: Figure) -> bytes:
    """The figure as PNG, the same bytes at every call: no dates, no version.

    With a palette, a picture of lines and text takes a third of the bytes.
    """
    buffer, small = io.BytesIO(), io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=DPI, facecolor="white")
    width, height = (round(DPI * inches) for inches in figure.get_size_inches())
    picture = Image.frombytes("RGBA", (width, height), buffer.getvalue()).convert("RGB")
    picture.quantize(PALETTE, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def title_line(figure: Figure, name: str, rest: str) -> None:
    """The problem or study in bold and, on the same line, what the figure shows."""
    bold: Style = {"ha": "left", "fontsize": 12, "fontweight": "bold", "color": INK}
    head = figure.suptitle(shorten(name, 40), x=0.008, **bold)
    after: Style = {"xy": (1, 0), "xycoords": head, "xytext": (9, 0.5), "va": "bottom"}
    muted: Style = {"fontsize": 10, "color": MUTED, "annotation_clip": False}
    line = figure.axes[0].annotate(rest, textcoords="offset points", **after, **muted)
    line.set_in_layout(False)


def legend_line(axes: Axes, columns: int, **place: Any) -> None:
    """The legend on the line of the title, clear of the curves."""
    look: Style = {"loc": "lower right", "fontsize": 8.5, "columnspacing": 1.4}
    axes.legend(ncols=columns, **look, **place)


def evaluations_axis(axes: Axes, initial: int = 0, margin: float = 0.0) -> None:
    """An x axis that counts evaluations, with the initial design as a grey strip."""
    axes.set_xlabel("evaluations")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.01)
    if initial > 1:
        right = initial + margin
        axes.axvspan(1 - margin, right, color="#6b7280", alpha=0.09, lw=0, zorder=0)
        look: Style = {"va": "top", "fontsize": 7.5, "color": MUTED}
        foot = axes.get_xaxis_transform()
        axes.text(right, 0.985, " initial design", transform=foot, **look)


def power(exponent: int) -> str:
    """10 to a whole power, in text that needs no typesetting."""
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def powers_of_ten(*axes: Axis) -> None:
    """Logarithmic axes with powers of ten alone."""
    for axis in axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _: power(round(math.log10(value)))))
        axis.set_minor_formatter(NullFormatter())
        axis.set_tick_params(which="minor", length=0)


def apart(low: float, high: float) -> tuple[float, float]:
    """The range, or one of length 1 about ``low`` if it is empty."""
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def roomy(low: float, high: float, share: float, least: float = 0.0) -> tuple[float, float]:
    """A range with this share of itself, or ``least`` if it is empty, added at both ends."""
    room = share * (high - low) or least
    return low - room, high + room


def label_ends(axes: Axes, ends: Ends, style: Mapping[str, Style]) -> None:
    """Names at the right of the axes, near the ends of their curves but never overlapping."""
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
    beside: Style = {"transform": axes.transAxes}
    for method, start, y in zip(names, wanted, places, strict=True):
        colour, (x, level) = style[method]["color"], shown[method]
        axes.plot([x, axes.get_xlim()[1]], [level, level], lw=0.7, color=colour, alpha=0.45)
        line: Style = {"lw": 1.2, "color": colour, "alpha": 0.8, "clip_on": False}
        axes.plot([1.005, 1.035], [start, y], **line, **beside)
        text: Style = {"va": "center", "fontsize": size, "fontweight": "bold"}
        axes.text(1.045, y, shorten(method), color=written(colour), **text, **beside)


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


def shorten(label: str, most: int = 34) -> str:
    """The label, its end cut off if it is too long."""
    return label if len(label) <= most else label[: most - 1] + "…"
