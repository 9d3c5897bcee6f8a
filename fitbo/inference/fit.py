"""From data to the posterior: samples of the hyperparameters and the surrogate they make.

samples   = sample(log_posterior(data), start, rng)
surrogate = condition(data, samples)

The sampler moves theta and eta together. Its thetas are kept; eta, of which the acquisition needs
several values for each theta, is taken anew from its posterior given theta.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from fitbo.inference.settings import Settings
from fitbo.mixture import Array
from fitbo.sampling import Ensemble, Samples, sample
from fitbo.surrogate import Parabola, Standardiser, named_surrogate

WALKERS = 100  # at least, and three for each parameter
WALKERS_PER_PARAMETER = 3
COLD_BURN_IN = 20  # steps at least, if started from the prior
COLD_THIN = 10


@dataclass(frozen=True, eq=False)
class Fit:
    """The posterior given y (n,) at X (n, d) in the cube: scale of y, samples, surrogate."""

    X: Array
    y: Array
    scale: Standardiser
    samples: Samples
    surrogate: Parabola
    seconds: float

    @property
    def n(self) -> int:
        """The number of values."""
        return len(self.y)

    @property
    def best(self) -> float:
        """The lowest value, standardised."""
        return float(self.scale(self.y.min()))


def fit(
    X: Array, y: Array, settings: Settings, ensemble: Ensemble | None, rng: np.random.Generator
) -> Fit:
    """The posterior given X (n, d) in the cube and y (n,), started from the last ensemble."""
    started = time.perf_counter()
    model = named_surrogate(settings.surrogate)
    scale = Standardiser.fit(y)
    z = scale(y)
    density = model.LogPosterior(X, z, kernel=settings.kernel_name)
    thetas = -(-settings.n_samples // (settings.etas or 1))
    walkers = max(WALKERS, thetas, WALKERS_PER_PARAMETER * density.n_parameters)
    walkers += walkers % 2
    if ensemble is not None and ensemble.log_theta.shape != (walkers, density.n_parameters):
        ensemble = None  # of another model
    warm = ensemble is not None
    samples = sample(
        density,
        ensemble or density.sample_prior(rng, walkers),
        rng,
        restart=density.sample_prior,
        n_samples=thetas,
        thin=settings.thin if warm else max(settings.thin, COLD_THIN),
        min_burn_in=settings.min_burn_in if warm else max(settings.min_burn_in, COLD_BURN_IN),
        max_burn_in=max(settings.max_burn_in, COLD_BURN_IN),
    )
    surrogate = _surrogate(X, z, samples, settings)
    return Fit(X, y, scale, samples, surrogate, time.perf_counter() - started)


def _surrogate(X: Array, z: Array, samples: Samples, settings: Settings) -> Parabola:
    model = named_surrogate(settings.surrogate)
    options = {"kernel": settings.kernel_name, "rule": settings.rule, "etas": settings.etas}
    surrogate: Parabola = model.condition(X, z, samples.log_theta, **options)
    return surrogate


def believing(fit: Fit, pending: Array, settings: Settings) -> Fit:
    """The fit as if the value of every pending point (k, d) were its predicted mean.

    Not below the lowest value seen: an assumed record would move every sample's minimum.
    """
    if not len(pending):
        return fit
    believed = np.maximum(fit.surrogate.predict(pending).mean, fit.best)
    X = np.concatenate([fit.X, pending])
    z = np.concatenate([fit.scale(fit.y), believed])
    return replace(fit, surrogate=_surrogate(X, z, fit.samples, settings))
