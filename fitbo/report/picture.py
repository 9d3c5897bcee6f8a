"""The paper's one-dimensional picture: a surrogate, and the acquisition functions that it makes.

It is drawn from the journals of a campaign on a problem of one dimension. The methods of one seed
share their initial design, and so the posterior given it: that posterior is drawn, and each
method's acquisition function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fitbo.config.build import build_problem
from fitbo.decode import ConfigError
from fitbo.inference.propose import shown
from fitbo.mixture import Array
from fitbo.records.archive import journal_at
from fitbo.records.events import entries_of
from fitbo.records.notebook import config_of
from fitbo.records.replay import replay
from fitbo.report import drawing
from fitbo.report.charts import INK as PAGE_INK
from fitbo.report.charts import Panel, panel, series, thinned
from fitbo.report.drawing import INK, looks
from fitbo.report.history import Run
from fitbo.report.palette import COLOURS, Style

GRID = 501


class Picture(NamedTuple):
    """A one-dimensional surrogate on a grid: x, truth, mean, deviation (G,); data X, y (n,)."""

    name: str
    x: Array
    truth: Array
    mean: Array
    deviation: Array
    X: Array
    y: Array


class AcquisitionCurve(NamedTuple):
    """One method's acquisition on the picture's grid, alpha (G,), and the x it would ask next."""

    label: str
    alpha: Array
    x_next: float

    @property
    def scaled(self) -> Array:
        """From 0 to 1, (G,)."""
        return (self.alpha - self.alpha.min()) / (float(np.ptp(self.alpha)) or 1.0)


class Drawn(NamedTuple):
    """What a picture shows; ``normalise`` for methods whose values have no common unit."""

    picture: Picture
    curves: Sequence[AcquisitionCurve]
    normalise: bool

    @property
    def unit(self) -> str:
        return "acquisition" + (", scaled" if self.normalise else ", nats")

    def alpha(self, curve: AcquisitionCurve) -> Array:
        return curve.scaled if self.normalise else np.asarray(curve.alpha)


@looks
def figure_1d(drawn: Drawn, style: Mapping[str, Style]) -> Figure:
    """The paper's picture: surrogate above, acquisitions below, the next query of each marked."""
    p = drawn.picture
    figure = drawing.blank(5.4, 8.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for width, opacity, label in ((2, 0.13, None), (1, 0.20, "mean ± 1, 2 deviations")):
        low, high = p.mean - width * p.deviation, p.mean + width * p.deviation
        above.fill_between(p.x, low, high, color=COLOURS[0], alpha=opacity, lw=0, label=label)
    above.plot(p.x, p.mean, color=COLOURS[0], lw=1.8, label="surrogate mean")
    above.plot(p.x, p.truth, color=INK, lw=1.2, ls=(0, (4, 2)), label="truth")
    above.plot(p.X, p.y, "o", color=INK, ms=5, mec="white", mew=0.8, label="data", zorder=5)
    above.set_ylabel("f(x)")
    above.set_title(p.name)
    above.margins(x=0)
    for c in drawn.curves:
        alpha = drawn.alpha(c)
        below.plot(p.x, alpha, lw=1.7, label=c.label, **style[c.label])
        colour, peak = style[c.label]["color"], float(np.interp(c.x_next, p.x, alpha))
        for axes in (above, below):
            axes.axvline(c.x_next, color=colour, lw=1.0, alpha=0.55, zorder=1)
        below.plot([c.x_next], [peak], "v", color=colour, ms=8, mec="white", mew=0.9, zorder=6)
    below.set_ylabel(drawn.unit)
    below.set_xlabel("x")
    below.set_title("acquisition; ▼ next query")
    below.margins(y=0.12)
    for axes, columns in ((above, 4), (below, 3)):
        place = {"bbox_to_anchor": (1.0, 0.985), "handlelength": 1.6, "borderaxespad": 0.0}
        drawing.legend_line(axes, columns, **place)
    return figure


def picture_panels(drawn: Drawn, style: Mapping[str, Style]) -> list[Panel]:
    """The same for a page."""
    p, some = drawn.picture, thinned(len(drawn.picture.x))
    x, mean, deviation = p.x[some], p.mean[some], p.deviation[some]
    bands = [(mean - width * deviation, mean + width * deviation) for width in (2, 1)]
    above = [
        series("surrogate, ± 1 and 2 deviations", mean, COLOURS[0], bands),
        series("truth", p.truth[some], PAGE_INK, dash=[6, 4], width=1.5),
        series("data", p.y, PAGE_INK, at=p.X, kind="points", size=8),
    ]
    below = []
    for c in drawn.curves:
        alpha, look = drawn.alpha(c), style[c.label]
        peak = [float(np.interp(c.x_next, p.x, alpha))]
        below.append(series(c.label, alpha[some], look, group=c.label))
        notes = [f"{c.label} asks for {c.x_next:.5g}"]
        top: dict[str, Any] = {"group": c.label, "kind": "points", "size": 11, "notes": notes}
        below.append(series(f"{c.label}, next", peak, look["color"], at=[c.x_next], **top))
    axis = {"label": "x"}
    return [
        panel(axis, {"label": "f(x)"}, x, above, title=p.name),
        panel(axis, {"label": drawn.unit}, x, below, title="acquisition; dot: the next query"),
    ]


def picture_of(methods: Mapping[str, Sequence[Run]]) -> Drawn | None:
    """Surrogate and acquisitions after the initial design; None unless there is such a picture.

    For the first seed whose every journal goes beyond its initial design, and for our own methods
    only, since a journal does not say what another optimiser maximised.
    """
    ours = {
        label: {run.seed: run for run in runs if len(run) > run.initial}
        for label, runs in methods.items()
        if "acquisition" in runs[0].header["study"]["method"]
    }
    dims = {run.header["study"]["problem"].get("dim") for label in ours for run in methods[label]}
    common = set.intersection(*map(set, ours.values())) if dims == {1} else set()
    if not common:
        return None
    picture, curves, used = None, [], set()
    cube = np.linspace(0.0, 1.0, GRID)[:, None]
    for label, run in [(label, runs[min(common)]) for label, runs in ours.items()]:
        journal = journal_at(run.path)
        try:
            config = config_of(journal, run.path)
        except ConfigError:  # of another version, with settings that are not ours
            return None
        design = [row for row in journal.rows if 0 < row.get("id", 0) <= run.initial]
        study = replay(config, design, fits=False)
        if picture is not None and not np.array_equal(picture.X, study.X[:, 0]):
            return None  # of campaigns with other designs, which have no posterior in common
        fit, rng = study.fit(), study.search_rng()
        value = shown(fit, study.acting, rng, study.space)
        (x_next,) = list(entries_of(journal.rows).values())[run.initial].point.values()
        curves.append(AcquisitionCurve(label, value(cube), x_next))
        used.add(run.header["study"]["method"]["acquisition"])
        if picture is None:
            problem, x = build_problem(config.problem), study.space.from_cube(cube)
            predicted = fit.scale.restore(fit.surrogate.predict(cube))
            picture = Picture(
                name=f"{problem.name} after {run.initial} evaluations",
                x=x[:, 0],
                truth=problem.fun(x),
                mean=predicted.mean,
                deviation=np.sqrt(predicted.variance),
                X=study.X[:, 0],
                y=study.y,
            )
    return picture and Drawn(picture, curves, used != {"fitbo"})
