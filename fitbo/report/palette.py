"""The colours of methods: the same in pictures and on pages, on white paper and in the dark.

Sixteen colours, each with a contrast of at least 3 to white and to the dark page, and at least 0.08
apart in OKLab [1]. The first four keep close to Okabe and Ito's palette for colour-blind readers
[2]; from the ninth on lines are dashed as well.

[1] Ottosson, A perceptual color space for image processing, 2020.
[2] Okabe, Ito, Color universal design, 2008.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#C7689E",
    "#A67C00",
    "#8A5CF0",
    "#7A7474",
    "#E1005A",
    "#3A9BD6",
    "#6B8500",
    "#C31EA5",
    "#A0623A",
    "#0A8F96",
    "#4A6CFF",
    "#D25AFF",
    "#FF4B69",
)
SOLID = 8  # methods before lines change too
# Lengths of dashes and gaps, in widths of the line; of four, as there may be four campaigns.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.5, 1.2), (5, 1.5, 1, 1.5))
DARK, LIGHT = "#1b2129", "#ffffff"  # what figures are drawn on

Style = dict[str, Any]


def styles(methods: Sequence[str], campaigns: Sequence[str] | None = None) -> list[Style]:
    """A colour for each distinct method, a line for each distinct campaign, in the order given.

    So two campaigns' versions of one method share a colour. Beyond sixteen methods the colours
    repeat with other lines.
    """
    colour = {name: i for i, name in enumerate(dict.fromkeys(methods))}
    campaigns = campaigns or [""] * len(methods)
    line = {name: i for i, name in enumerate(dict.fromkeys(campaigns))}
    dealt = []
    for method, campaign in zip(methods, campaigns, strict=True):
        number = colour[method]
        shape = DASHES[(line[campaign] + len(line) * (number // SOLID)) % len(DASHES)]
        dealt.append(
            {"color": COLOURS[number % len(COLOURS)], "linestyle": (0, shape) if shape else "-"}
        )
    return dealt


def luminance(colour: str) -> float:
    """The relative luminance of ``#rrggbb``, from 0 to 1, as WCAG defines it."""
    channels = [int(pair, 16) / 255 for pair in re.findall("..", colour[1:])]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21, as WCAG defines it."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def written(colour: str, ratio: float = 4.5) -> str:
    """The colour as text on white: as dark as it must be for this contrast."""
    channels = [int(pair, 16) for pair in re.findall("..", colour[1:])]
    while contrast(colour, LIGHT) < ratio:
        channels = [round(0.95 * c) for c in channels]
        colour = "#" + "".join(f"{c:02X}" for c in channels)
    return colour
