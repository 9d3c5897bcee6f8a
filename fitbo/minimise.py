"""``minimize``: one call for a function of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.entropy import Entropy
from fitbo.mixture import Array, Mixture
from fitbo.space import Space
from fitbo.study import Settings, Study


def minimize(
    fun: Callable[[Array], float],
    bounds: Sequence[tuple[float, float]],
    *,
    n_calls: int = 100,
    n_initial: int | None = None,
    entropy: str | Entropy | Callable[[Mixture], Array] = "memel",
    seed: int = 0,
    callback: Callable[[Study], bool | None] | None = None,
    x0: ArrayLike | None = None,
    y0: ArrayLike | None = None,
    **settings: Any,
) -> Any:
    """Minimise ``fun(x)``, x (d,), over ``bounds`` in ``n_calls`` evaluations in all.

    x0, y0     points to begin with, (k, d) or (d,), and their values if known; points without
               values are evaluated first and count as calls, values given do not
    n_initial  points of the initial design, x0 among them; twice the dimension if None
    callback   called with the study after each value; a true result ends the search
    settings   the other fields of ``fitbo.study.Settings``

    Returns a ``scipy.optimize.OptimizeResult``: ``x`` and ``fun`` are the best observed,
    ``x_recommended`` and ``fun_recommended`` the minimiser of the posterior mean and its predicted
    value, ``x_iters`` and ``func_vals`` every evaluation in order.
    """
    from scipy.optimize import OptimizeResult  # a third of a second to import

    if n_calls < 1:
        raise ValueError(f"n_calls must be at least 1, got {n_calls}")
    study = Study(
        Space(bounds), Settings(n_initial=n_initial, entropy=entropy, seed=seed, **settings)
    )
    queue = _begin(study, x0, y0)
    message, nfev = f"the budget of {n_calls} evaluations is spent", 0
    while nfev < n_calls:
        x = queue.pop(0) if queue else study.ask()[0]
        try:
            study.tell(x, fun(x))
        except ValueError as error:
            raise ValueError(f"fun({x.tolist()}) cannot be used: {error}") from error
        nfev += 1
        if callback is not None and callback(study):
            message = f"the callback ended the search after {nfev} evaluations"
            break
    best, value = study.best_observed
    recommended = study.recommend()
    result = OptimizeResult()
    result.update(
        {
            "x": best,
            "fun": value,
            "x_iters": study.X,
            "func_vals": study.y,
            "x_recommended": recommended.x,
            "fun_recommended": recommended.mean,
            "nfev": nfev,
            "message": message,
            "success": True,
            "study": study,
        }
    )
    return result


def _begin(study: Study, x0: ArrayLike | None, y0: ArrayLike | None) -> list[Array]:
    """Tell what is known of x0; the points whose values are not."""
    if x0 is None:
        if y0 is not None:
            raise ValueError("y0 needs x0: give the points that the values belong to")
        return []
    X = np.atleast_2d(np.asarray(x0, dtype=np.float64))
    study.space.to_cube(X)
    if y0 is None:
        return list(X)
    y = np.atleast_1d(np.asarray(y0, dtype=np.float64))
    if y.shape != (len(X),):
        raise ValueError(f"y0 must have shape ({len(X)},) for x0 of shape {X.shape}, got {y.shape}")
    for point, value in zip(X, y, strict=True):
        study.tell(point, value)
    return []
