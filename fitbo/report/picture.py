"""The paper's one-dimensional picture: a surrogate, and the acquisition functions that it makes.

It is drawn from the journals of a campaign on a problem of one dimension. The methods of one seed
share their initial design, and so the posterior given it: that posterior is drawn, and each
method's acquisition function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fitbo.config.build import build_problem
from fitbo.decode import ConfigError
from fitbo.inference.propose import worth
from fitbo.mixture import Array
from fitbo.records.archive import journal_at
from fitbo.records.events import entries_of
from fitbo.records.notebook import config_of, replay
from fitbo.report import drawing
from fitbo.report.drawing import COLOURS, INK, looks
from fitbo.report.history import Run

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


@looks
def figure_1d(p: Picture, curves: Sequence[AcquisitionCurve], *, normalise: bool = False) -> Figure:
    """The paper's picture: surrogate above, acquisitions below, the next query of each marked.

    ``normalise`` maps each acquisition to [0, 1], for methods whose values have no common unit.
    """
    figure = drawing.blank(5.4, 8.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for width, opacity, label in ((2, 0.13, None), (1, 0.20, "mean ± 1, 2 deviations")):
        low, high = p.mean - width * p.deviation, p.mean + width * p.deviation
        above.fill_between(p.x, low, high, color=COLOURS[5], alpha=opacity, lw=0, label=label)
    above.plot(p.x, p.mean, color=COLOURS[0], lw=1.8, label="surrogate mean")
    above.plot(p.x, p.truth, color=INK, lw=1.2, ls=(0, (4, 2)), label="truth")
    above.plot(p.X, p.y, "o", color=INK, ms=5, mec="white", mew=0.8, label="data", zorder=5)
    above.set_ylabel("f(x)")
    above.set_title(p.name)
    above.margins(x=0)
    for c, style in zip(curves, drawing.styles([c.label for c in curves]), strict=True):
        span = float(np.ptp(c.alpha)) or 1.0
        alpha = (c.alpha - c.alpha.min()) / span if normalise else np.asarray(c.alpha)
        below.plot(p.x, alpha, lw=1.7, label=c.label, **style)
        colour, peak = style["color"], float(np.interp(c.x_next, p.x, alpha))
        for axes in (above, below):
            axes.axvline(c.x_next, color=colour, lw=1.0, alpha=0.55, zorder=1)
        below.plot([c.x_next], [peak], "v", color=colour, ms=8, mec="white", mew=0.9, zorder=6)
    below.set_ylabel("acquisition" + (", scaled" if normalise else ", nats"))
    below.set_xlabel("x")
    below.set_title("acquisition; ▼ next query")
    below.margins(y=0.12)
    for axes, columns in ((above, 4), (below, 3)):
        place = {"bbox_to_anchor": (1.0, 0.985), "handlelength": 1.6, "borderaxespad": 0.0}
        drawing.legend_line(axes, columns, **place)
    return figure


def picture_figure(methods: Mapping[str, Sequence[Run]]) -> Figure | None:
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
        fit = study.fit()
        value = worth(fit, fit.surrogate, study.settings, study.search_rng())
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
    return picture and figure_1d(picture, curves, normalise=used != {"fitbo"})
