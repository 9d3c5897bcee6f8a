"""The paper's one-dimensional picture, of the journals of a campaign on a problem of one dimension.

The methods of one seed share their initial design, and so the posterior given it: drawn are that
posterior, and what each method makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fitbo.config.build import build_problem
from fitbo.config.campaign import from_dict
from fitbo.decode import ConfigError
from fitbo.inference.propose import worth
from fitbo.records.journal import read
from fitbo.report.figure_1d import AcquisitionCurve, Picture, figure_1d
from fitbo.report.regret import Run
from fitbo.runs.campaign import Task, replay

GRID = 501


def picture_figure(methods: Mapping[str, Sequence[Run]]) -> Figure | None:
    """Surrogate and acquisitions after the initial design; None unless there is such a picture.

    Of the first seed whose every journal goes beyond its initial design; of our own methods only,
    for what another optimiser maximised its journal does not say.
    """
    methods = {
        label: runs for label, runs in methods.items() if "acquisition" in runs[0].header["method"]
    }
    if not methods:
        return None
    header = next(iter(methods.values()))[0].header
    if header["problem"]["dim"] != 1:
        return None
    seeds = [{run.seed: run for run in runs if len(run) > run.initial} for runs in methods.values()]
    common = set.intersection(*[set(runs) for runs in seeds])
    if not common:
        return None
    chosen = dict(zip(methods, [runs[min(common)] for runs in seeds], strict=True))
    picture, curves = None, []
    try:
        tasks = [task_of(run.header) for run in chosen.values()]
    except ConfigError:  # of another version, whose settings are not ours
        return None
    for task, (label, run) in zip(tasks, chosen.items(), strict=True):
        problem = build_problem(task.campaign, task.problem)
        rows = read(run.path).rows
        study, _ = replay(task, problem, rows[: run.initial], {})
        if picture is not None and not np.array_equal(picture.X, study.X[:, 0]):
            return None  # of campaigns with other designs, which have no posterior in common
        fit = study.fit()
        cube = np.linspace(0.0, 1.0, GRID)[:, None]
        x = study.space.from_cube(cube)
        value = worth(fit, fit.surrogate, study.settings, study.search_rng())
        curves.append(AcquisitionCurve(label, value(cube), rows[run.initial]["x"][0]))
        if picture is None:
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
    if picture is None:
        return None
    alike = {run.header["method"]["acquisition"] for run in chosen.values()} == {"fitbo"}
    return figure_1d(picture, curves, normalise=not alike)


def task_of(header: Mapping[str, Any]) -> Task:
    """The study that a journal's header describes."""
    problem = {key: value for key, value in header["problem"].items() if key != "minimum"}
    data = {
        "name": header["campaign"],
        "problems": [problem],
        "methods": [header["method"]],
        "seeds": [header["seed"]],
        "budget": header["budget"],
        "initial": header["initial"],
    }
    campaign = from_dict(data)
    return Task(campaign, campaign.problems[0], campaign.methods[0], campaign.seeds[0])
