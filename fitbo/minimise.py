"""``minimize``: one call for a Python function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import whole
from fitbo.entropy import Entropy
from fitbo.inference.settings import Settings
from fitbo.mixture import Array, Mixture
from fitbo.objectives import Outcome
from fitbo.objectives.outcome import described, number
from fitbo.records.events import GIVEN, Entry
from fitbo.records.notebook import Notebook
from fitbo.runs.limits import Limits
from fitbo.runs.loop import Loop, inline
from fitbo.space import Space
from fitbo.study import Study


def minimize(
    fun: Callable[[Any], float],
    bounds: Sequence[tuple[float, float]] | Mapping[str, Any] | Space,
    *,
    n_calls: int = 100,
    n_initial: int | None = None,
    entropy: str | Entropy | Callable[[Mixture], Array] = "memel",
    seed: int = 0,
    callback: Callable[[Study], bool | None] | None = None,
    x0: Any = None,
    y0: ArrayLike | None = None,
    constraints: Sequence[str | Callable[[Any], bool]] = (),
    executor: Executor | None = None,
    n_workers: int | None = None,
    max_failures: int | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    tolerance: float | None = None,
    direction: str = "minimize",
    **settings: Any,
) -> Any:
    """Minimise ``fun(x)`` over ``bounds`` in ``n_calls`` evaluations in total.

    bounds        pairs (low, high), and x is an array (d,); or a dict of ``Real``, ``Integer`` and
                  ``Categorical`` by name, and x is a dict; or a ``Space``
    constraints   expressions or functions of x that must be true: see ``fitbo.space.constraints``
    x0, y0        points to begin with, one or several, and their values if known; points without
                  values are evaluated first and count as calls, values given do not
    n_initial     points of the initial design, x0 among them; twice the parameters if None
    callback      called with the study after each evaluation; a true result ends the search
    executor      a ``concurrent.futures.Executor`` to evaluate on, as processes, threads, or
                  Dask's ``client.get_executor(pure=False)``; this thread if None
    n_workers     evaluations at a time on the executor, 1 if None; a free worker gets a new point
    max_failures  the search ends with this many failures: exceptions, and values that are not
                  finite. Fewer do not end it; their neighbourhood is avoided
    time_limit    seconds after which the search ends
    target        the search ends with a value at or below this; at or above, if maximised
    tolerance     the search ends when the expected further improvement is below this
    direction     ``minimize`` or ``maximize``: whether low values of fun are sought or high ones
    settings      the other fields of ``fitbo.Settings``

    Returns a ``scipy.optimize.OptimizeResult``: ``x`` and ``fun`` are the best observed,
    ``x_recommended`` and ``fun_recommended`` the minimiser of the posterior mean and its predicted
    value, ``x_iters`` and ``func_vals`` all points with values in the order they came, ``failures``
    the points without and why, ``message`` what ended the search, ``success`` false if all failed.
    """
    whole("n_calls", n_calls, least=1)
    if n_workers is not None:
        whole("n_workers", n_workers, least=1)
    if executor is None and n_workers not in (None, 1):
        raise ValueError(f"n_workers={n_workers} needs an executor: give one, or leave it out")
    if isinstance(bounds, Space) and constraints:
        raise ValueError("a Space has its own constraints: give them to it")
    space = bounds if isinstance(bounds, Space) else Space(bounds, constraints)
    study = Study(
        space,
        Settings(n_initial=n_initial, entropy=entropy, seed=seed, **settings),
        direction=direction,
    )
    notebook = Notebook(study)
    _begin(notebook, x0, y0)
    count, wanted = 0, False

    def watch(notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        nonlocal count, wanted
        count += 1
        wanted = bool(callback is not None and callback(notebook.study)) or wanted

    def stop() -> str | None:
        return f"the callback ended the search after {count} evaluations" if wanted else None

    def submit(entry: Entry) -> Future[Outcome]:
        assert executor is not None  # noqa: S101 (for the type checker)
        return executor.submit(called, fun, notebook.x(entry.point))

    message = Loop(
        notebook,
        submit if executor else inline(lambda entry: called(fun, notebook.x(entry.point))),
        n_workers=n_workers or 1,
        limits=Limits(n_calls, max_failures, time_limit, target, tolerance),
        watch=watch,
        stop=stop,
        patient=False,
    ).run()
    return _result(study, message, count)


def maximize(fun: Callable[[Any], float], bounds: Any, **options: Any) -> Any:
    """Maximise ``fun(x)``: ``minimize`` with every value, target and result in its own sign."""
    return minimize(fun, bounds, direction="maximize", **options)


def called(fun: Callable[[Any], float], x: Any) -> Outcome:
    """What a call of the function comes to: its value, or the reason why there is none."""
    started = time.perf_counter()
    value, reason = None, None
    try:
        value = number(fun(x))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what it raises is its failure
        reason = described(error)
    return Outcome(value, reason, time.perf_counter() - started)


def _begin(notebook: Notebook, x0: Any, y0: ArrayLike | None) -> None:
    """Tell what is known of x0; points whose values are not known are evaluated first."""
    if x0 is None:
        if y0 is not None:
            raise ValueError("y0 needs x0: give the points that the values belong to")
        return
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
    for point, value in zip(points, values, strict=True):
        x = notebook.plain(space.plain_values(point) if space.named else point)
        if value is None:
            notebook.expect(notebook.entry_of(x, "x0"))
        else:
            notebook.told(notebook.entry_of(x, GIVEN), value, source=GIVEN)


def _several(x0: Any) -> list[Any]:
    """One named point or several, each a dict or the values in order, as a list."""
    points = [x0] if isinstance(x0, Mapping | str) or not np.iterable(x0) else list(x0)
    single = not all(isinstance(point, Mapping | list | tuple | np.ndarray) for point in points)
    return [x0] if single else points


def _result(study: Study, message: str, nfev: int) -> Any:
    from scipy.optimize import OptimizeResult  # a third of a second to import

    known, nothing = len(study.y) > 0, (None, np.nan)
    found = study.recommend() if known else None
    result: Any = OptimizeResult()
    result.x, result.fun = study.best_observed if known else nothing
    result.x_iters, result.func_vals = study.X, study.y
    result.x_recommended, result.fun_recommended = (found.x, found.mean) if found else nothing
    result.nfev, result.failures, result.study = nfev, study.failures, study
    result.success, result.message = known, message
    if study.failures and not known:
        first = study.failures[0][1]
        result.message += f"; every evaluation failed, the first by {first!r:.200}"
    return result
