"""How all figures look: palette, lines, titles, labels, and a figure as bytes.

The palette is the colour-blind-safe one of Okabe and Ito [1].

[1] Okabe, Ito, Color universal design, 2008; Wong, Points of view: color blindness, Nature Methods
    8, 2011.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from fitbo.mixture import Array

Style = dict[str, Any]
Ends = dict[str, tuple[float, float]]  # where a method's curve ends, in the units of the axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1, 1.5)))
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


def image(figure: Figure, kind: str = "png") -> bytes:
    """The figure as PNG or SVG bytes, the same at every call: no dates, no version, fixed ids."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(LOOK):
        if kind == "svg":
            nothing: dict[str, Any] = {"Date": None, "Creator": None}
            figure.savefig(buffer, format=kind, metadata=nothing, facecolor="white")
            return buffer.getvalue()
        figure.savefig(buffer, format="rgba", dpi=DPI, facecolor="white")
    # With a palette a picture of lines and text takes a third of the bytes.
    width, height = (round(DPI * inches) for inches in figure.get_size_inches())
    picture = Image.frombytes("RGBA", (width, height), buffer.getvalue()).convert("RGB")
    small = io.BytesIO()
    picture.quantize(PALETTE, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


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


def mark_initial(axes: Axes, size: int, margin: float = 0.0) -> None:
    """The initial design as a grey strip."""
    if size > 1:
        axes.axvspan(1 - margin, size + margin, color="#6b7280", alpha=0.09, lw=0, zorder=0)
        place: Any = axes.text
        where = {"transform": axes.get_xaxis_transform(), "va": "top"}
        place(size + margin, 0.985, " initial design", fontsize=7.5, color=MUTED, **where)


def label_ends(axes: Axes, ends: Ends, style: Mapping[str, Style]) -> None:
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


def shorten(label: str, most: int = 34) -> str:
    """The label, its end cut off if it is too long."""
    return label if len(label) <= most else label[: most - 1] + "…"
