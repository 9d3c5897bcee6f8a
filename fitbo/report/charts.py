"""The figures of a page as data: panels of series, which the page's script draws (``assets``).

    panel(...)      one coordinate system: axes, series, what lies behind them
    series(...)     one line, or points, with bands and with notes that the pointer brings up
    thinned(...)    places along an axis, as many as a screen can show

Numbers are rounded to what can be seen, and what is not finite is null. On a logarithmic axis the
data are logarithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fitbo.report.palette import Style

Panel = dict[str, Any]
Series = dict[str, Any]
MOST = 240  # places along an axis
EVALUATIONS = {"label": "evaluations", "readout": "evaluation", "whole": True}
INK, MUTED = "--ink", "--muted"  # colours of the page's own, which follow the theme


def numbers(values: ArrayLike, digits: int = 5) -> list[float | None]:
    """As JSON: so many digits, null where not finite, whole numbers without a point."""
    found: list[float | None] = []
    for value in np.asarray(values, dtype=np.float64).ravel().tolist():
        short = float(f"{value:.{digits}g}") if np.isfinite(value) else None
        found.append(int(short) if short is not None and short.is_integer() else short)
    return found


def thinned(n: int, most: int = MOST) -> NDArray[np.intp]:
    """Indices 0 to n - 1, or as many of them, evenly, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def panel(
    x: dict[str, Any], y: dict[str, Any], at: ArrayLike, listed: Iterable[Series], **more: Any
) -> Panel:
    """Axes, the places that the series share, the series; ``more`` as the script describes it."""
    known = {key: value for key, value in more.items() if value is not None}
    return {"x": x, "y": y, "at": numbers(at, 7), "series": list(listed), **known}


def series(
    name: str,
    y: ArrayLike,
    style: Style | str = MUTED,
    bands: Sequence[tuple[ArrayLike, ArrayLike]] = (),
    at: ArrayLike | None = None,
    **more: Any,
) -> Series:
    """A line by its name; ``style`` as of a method, or a colour; ``bands`` from outer to inner."""
    found: Series = {"name": name, "y": numbers(y), **more}
    found["colour"] = style if isinstance(style, str) else style["color"]
    if not isinstance(style, str) and style["linestyle"] != "-":
        found["dash"] = [round(2.5 * length, 1) for length in style["linestyle"][1]]
    if bands:
        found["bands"] = [[numbers(low), numbers(high)] for low, high in bands]
    if at is not None:
        found["at"] = numbers(at, 7)
    return found
