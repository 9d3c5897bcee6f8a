"""What a caller of ``minimize`` gave: names of arguments, a seed, points to begin with."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import nearest
from fitbo.inference.settings import Settings
from fitbo.records.events import GIVEN
from fitbo.records.journal import read
from fitbo.records.notebook import Notebook

# What others call the arguments: Optuna, scipy, scikit-optimize, Ax, bayes_opt, hyperopt.
ELSEWHERE = {
    "fun": "fn func function f objective evaluation_function",
    "bounds": "space dimensions domain parameters search_space pbounds variables",
    "n_calls": "n_trials n_iter n_iterations max_evals maxiter max_iter maxfun maxfev total_trials "
    "num_trials budget n_evaluations",
    "n_initial": "n_initial_points init_points n_random_starts n_startup_trials n_startup_jobs "
    "num_initialization_trials",
    "seed": "random_state rng rstate random_seed",
    "callback": "callbacks",
    "n_workers": "n_jobs workers max_workers parallelism",
    "time_limit": "timeout max_time",
    "target": "loss_threshold f_target stop_value",
    "tolerance": "tol ftol xtol ftarget",
    "progress": "verbose disp show_progress_bar show_progressbar progress_bar",
    "journal": "storage log_file checkpoint",
    "direction": "maximise maximize minimize sense objective_type",
    "acquisition": "acq_func acquisition_function acq",
    "n_samples": "num_samples mcmc_samples samples",
}
CALLED_HERE = {theirs: ours for ours, names in ELSEWHERE.items() for theirs in names.split()}


def check_names(
    minimize: Callable[..., Any], fun: Any, bounds: Any, others: Collection[str]
) -> None:
    """A TypeError about an argument that is not ``minimize``'s, with what it is called here."""
    ours = {
        name
        for name, p in inspect.signature(minimize).parameters.items()
        if p.kind != p.VAR_KEYWORD
    }
    known = ours | {field.name for field in fields(Settings)}
    for name in others:
        if name not in known:
            hint = f": here it is called {CALLED_HERE[name]}" if name in CALLED_HERE else ""
            hint = hint or nearest(name, known) or f"; it takes {', '.join(sorted(known))}"
            raise TypeError(f"minimize has no argument {name!r}{hint}")
    if fun is None or bounds is None:
        missing = "a function" if fun is None else "bounds, such as [(0, 1), (-5, 5)]"
        raise TypeError(f"minimize(fun, bounds) needs {missing}")
    if not callable(fun):
        raise TypeError(f"fun must be a function of x, got {fun!r:.80}")


def drawn_seed(journal: str | os.PathLike[str] | None) -> int:
    """A new seed; or that of the journal that is continued."""
    if journal is not None and Path(journal).exists() and Path(journal).stat().st_size:
        study = read(Path(journal)).header.get("study", {})
        return int(study.get("seed", 0))
    return int(np.random.SeedSequence().generate_state(1)[0])


def begin(notebook: Notebook, x0: Any, y0: ArrayLike | None) -> None:
    """Tell what is known of x0; points whose values are not known are evaluated first.

    What the notebook has of it already, from the journal, is left out.
    """
    if x0 is None:
        if y0 is not None:
            raise ValueError("y0 needs x0: give the points that the values belong to")
        return
    if y0 is not None and notebook.study.constraints:
        raise ValueError(
            "y0 must be left out with outcome_constraints, which need more than a value: x0 alone "
            "is evaluated first, and a Study can be told both"
        )
    space = notebook.study.space
    points = _several(x0) if space.named else np.atleast_2d(np.asarray(x0, dtype=np.float64))
    for point in points:
        space.check(point)
    values: list[float | None] = [None] * len(points)
    if y0 is not None:
        y = np.atleast_1d(np.asarray(y0, dtype=np.float64))
        if y.shape != (len(points),):
            raise ValueError(f"y0 must have shape ({len(points)},), one for each x0, got {y.shape}")
        values = y.tolist()
    given = (entry for entry in notebook.entries.values() if entry.source in (GIVEN, "x0"))
    known = Counter(repr(entry.point) for entry in given)
    for point, value in zip(points, values, strict=True):
        x = notebook.plain(space.plain_values(point) if space.named else point)
        if known[repr(x)]:
            known[repr(x)] -= 1
        elif value is None:
            notebook.expect(notebook.entry_of(x, "x0"))
        elif np.isfinite(value):
            notebook.told(notebook.entry_of(x, GIVEN), value, source=GIVEN)
        else:
            notebook.failed(notebook.entry_of(x, GIVEN), f"the value is {value}", source=GIVEN)


def _several(x0: Any) -> list[Any]:
    """One named point or several, each a dict or the values in order, as a list."""
    points = [x0] if isinstance(x0, Mapping | str) or not np.iterable(x0) else list(x0)
    single = not all(isinstance(point, Mapping | list | tuple | np.ndarray) for point in points)
    return [x0] if single else points
