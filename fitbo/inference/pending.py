"""What is believed of points whose values are pending, while the next one is chosen.

An acquisition function that measures an improvement is an average over the samples of what each of
them hopes for. There each sample is as if it had seen what it expects itself (``border.expecting``)
and hopes for more than that: what it believes of other places stays as it is.

One that compares the samples, as the information gain does, would go where each of them is sure of
something else. There all are given the same value, the mean of their predictions. Not below the
lowest value seen: an assumed record would move every sample's eta. So has GPy's surrogate, whose
factors cannot be bordered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fitbo.inference.fit import Fit, M, surrogate_of
from fitbo.inference.settings import Settings
from fitbo.mixture import Array
from fitbo.surrogate import Surrogate
from fitbo.surrogate.border import expecting, extended

IMPROVING = ("ei", "logei", "pi", "remaining")


def believing(fit: M, pending: Array, settings: Settings, likely: np.ndarray) -> M:
    """The model as if every pending point (k, d) had a value.

    Where values state their noise, a pending one will state the known level, or what the others do.
    likely (k,): whether it may be what there is to improve upon: not where it will hardly succeed.
    """
    if not len(pending):
        return fit
    surrogate, level = fit.surrogate, None
    if surrogate.stated is not None:
        known = settings.noise_std
        each = np.median(surrogate.stated) if known is None else (known / fit.scale.scale) ** 2
        level = np.full(len(pending), each)
    if settings.acquisition in IMPROVING and isinstance(surrogate, Surrogate):
        return replace(fit, surrogate=expecting(surrogate, pending, likely, level))
    believed = np.maximum(surrogate.predict(pending).mean, fit.lowest)
    z = np.concatenate([fit.scale(fit.y[fit.active]), believed])
    stated = None if level is None else np.concatenate([surrogate.stated, level])
    if isinstance(surrogate, Surrogate):
        grown = extended(surrogate, pending, z, stated)
        return replace(fit, surrogate=replace(grown, weights=surrogate.weights))
    assert isinstance(fit, Fit)  # noqa: S101 (a region's model is never GPy's)
    X = np.concatenate([fit.X[fit.active], pending])
    return replace(fit, surrogate=surrogate_of(X, z, fit.samples.log_theta, settings, stated))
