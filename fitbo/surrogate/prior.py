"""Priors of the hyperparameters, for x in the unit cube and standardised y.

The entries of ``log_theta`` are independent and normal, ``log theta ~ N(mu, sigma^2)``.

=====================  ====================  =======  =============================================
parameter              median e^mu           sigma    why
=====================  ====================  =======  =============================================
lengthscale l_i        sqrt(d)/2             1.25     Distances in the cube grow as sqrt(d), so a
                                                      location that does not follow them makes
                                                      every function in high d look like noise
                                                      [1]. [1] puts the median at 4.1 sqrt(d) and
                                                      the mode at 0.2 sqrt(d), because it maximises
                                                      the density; a sampler sees the median, so
                                                      it goes between the two. Two deviations
                                                      reach from 0.04 sqrt(d) to 6 sqrt(d): from
                                                      dozens of oscillations to an idle input.
signal variance s^2    1/2                   1        Var y = 1 and y - eta of 1 to 3 give
                                                      Var g = 1/(2 (y - eta)) to first order, 0.2
                                                      to 0.5; the variance of the process exceeds
                                                      that of its values in a bounded cube.
noise variance         e^-9 = 1.2e-4         3        Most objectives are exact, some are not: two
                                                      deviations reach from 3e-7, which the nugget
                                                      would give anyway, to 0.05, noise of a
                                                      quarter of the data's deviation.
gap y_min - eta        3/10                  2        A good part of a deviation after the initial
                                                      design, a hundredth when the search is over:
                                                      two deviations reach from 0.005 to 16, where
                                                      the parabola is as good as linear. The data
                                                      bound the gap weakly, so the median matters:
                                                      at 1/10 eta leans towards y_min early on.
additive odds          1                     2        For an additive kernel, w/(1 - w) of its share
                                                      w: two deviations reach from 2% to 98%.
=====================  ====================  =======  =============================================

[1] Hvarfner, Hellsten, Nardi, Vanilla Bayesian optimization performs great in high dimensions,
    ICML 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import LOG_2PI, Array
from fitbo.surrogate.hyperparameters import as_samples

LENGTHSCALE = (np.log(0.5), 1.25)  # before log sqrt(d) is added
SIGNAL = (np.log(0.5), 1.0)
NOISE = (-9.0, 3.0)
GAP = (np.log(0.3), 2.0)
SHARE = (0.0, 2.0)


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent normals on ``log_theta``: ``location`` and ``scale`` of shape (P,)."""

    location: Array
    scale: Array

    def __post_init__(self) -> None:
        if self.location.ndim != 1 or self.scale.shape != self.location.shape:
            raise ValueError(
                f"location and scale must share a shape (P,), got {self.location.shape} "
                f"and {self.scale.shape}"
            )
        if not (self.scale > 0).all():
            raise ValueError(f"scale must be positive, got {self.scale.min()}")

    def __call__(self, log_theta: ArrayLike) -> Array:
        """The log-density in ``log_theta``, (M, P) -> (M,)."""
        z = (as_samples(log_theta, self.location.size) - self.location) / self.scale
        return -0.5 * np.vecdot(z, z) - np.sum(np.log(self.scale) + 0.5 * LOG_2PI)

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """n independent draws of ``log_theta``, (n, P)."""
        return self.location + self.scale * rng.standard_normal((n, self.location.size))


def default_prior(d: int, n_shares: int = 0) -> Prior:
    """The table above, for ``log_theta`` of d + 3 + n_shares entries."""
    if d < 1:
        raise ValueError(f"d must be at least 1, got {d}")
    per_dimension = (LENGTHSCALE[0] + 0.5 * np.log(d), LENGTHSCALE[1])
    table = np.array([per_dimension] * d + [SIGNAL, NOISE, GAP] + [SHARE] * n_shares)
    return Prior(table[:, 0], table[:, 1])
