"""The hyperparameters: how a sample ``log_theta`` is packed, and its prior.

    M                int     hyperparameter samples; the leading axis everywhere
    d                int     dimensions of the unit cube
    P                int     d + 3, and one more for each share: the length of one sample
    log_theta        (M, P)  (log l_1 .. log l_d, log s^2, log noise, log gap[, log odds..])
    lengthscales     (M, d)  l, in units of the cube's side
    signal_variance  (M,)    s^2, the prior variance of g about its constant mean
    noise_variance   (M,)    variance of an observation y about f, on standardised y
    gap              (M,)    y_min - eta > 0, on standardised y
    share            (M,)    w, the additive share of s^2, with odds w/(1 - w); 0 if not sampled;
                             (M, 2) with b beside it, the smooth share of the rest

Sampling the gap instead of eta keeps ``eta < y_min`` for every real ``log_theta``.

**Prior**, for x in the unit cube and standardised y: independent ``log theta ~ N(mu, sigma^2)``.

    parameter            median e^mu   sigma  two standard deviations reach
    lengthscale l_i      sqrt(d)/2     1.25   0.04 sqrt(d), dozens of waves, to 6 sqrt(d), no effect
    signal variance s^2  1/2           1      0.07 to 4
    noise variance       e^-9, 1.2e-4  3      3e-7, which the nugget would give anyway, to 0.05
    gap y_min - eta      3/10          2      0.005 to 16, where the parabola is as good as linear
    additive odds        1             2      a share w of 2% to 98%: the odds are w/(1 - w)
    smooth odds          1             4      a share b of 0.03% to 99.97%: all but one or the other

- Distances in the cube grow as sqrt(d), so a lengthscale that does not follow them makes every
  function in high d look like noise [1]. [1] puts the median at 4.1 sqrt(d) and the mode at
  0.2 sqrt(d), because it maximises the density; a sampler sees the median, so it lies between.
- Var y = 1 and y - eta of 1 to 3 give Var g = 1/(2 (y - eta)) to first order, 0.2 to 0.5; the
  variance of the process exceeds that of its values in a bounded cube.
- Most objectives are exact, some have noise: up to a quarter of the data's standard deviation.
- The gap is a good part of a standard deviation after the initial design, a hundredth at the end.
  The data bound it weakly, so its median matters: at 1/10 eta leans towards y_min early on.

[1] Hvarfner, Hellsten, Nardi, Vanilla Bayesian optimization performs great in high dimensions,
    ICML 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import whole
from fitbo.mixture import LOG_2PI, Array

# |log_theta| beyond which nothing is evaluated: e^60 squared is far from overflow, and every prior
# here has its mass many tens of standard deviations inside.
SUPPORT = 60.0

LENGTHSCALE = (np.log(0.5), 1.25)  # before log sqrt(d) is added
SIGNAL = (np.log(0.5), 1.0)
NOISE = (-9.0, 3.0)
GAP = (np.log(0.3), 2.0)
SHARES = ((0.0, 2.0), (0.0, 4.0))


@dataclass(frozen=True, eq=False)
class Theta:
    """M samples of the hyperparameters that every model has, whatever its kernel."""

    noise_variance: Array
    gap: Array

    def __getitem__(self, samples: slice) -> Self:
        """Some of the samples."""
        return type(self)(**{f.name: getattr(self, f.name)[samples] for f in fields(self)})


@dataclass(frozen=True, eq=False)
class Hyperparameters(Theta):
    """M samples by name; the shapes are in the table above."""

    lengthscales: Array
    signal_variance: Array
    share: Array

    @classmethod
    def unpack(cls, log_theta: ArrayLike, d: int, n_shares: int = 0) -> Hyperparameters:
        """log_theta (M, d + 3 + n_shares) -> named arrays; ``n_shares`` is 0, 1 or 2."""
        theta = np.exp(log_parameters(log_theta, d + 3 + n_shares))
        odds = theta[:, d + 3 :] if n_shares else np.zeros((len(theta), 1))
        if n_shares < 2:
            odds = odds[:, 0]
        return cls(theta[:, d + 1], theta[:, d + 2], theta[:, :d], theta[:, d], odds / (1 + odds))

    @property
    def precisions(self) -> Array:
        """1/l^2, (M, d)."""
        return 1 / (self.lengthscales * self.lengthscales)


def log_parameters(log_theta: ArrayLike, n_columns: int) -> Array:
    """``log_theta`` as a float64 array of shape (M, n_columns) inside the support, or an error."""
    array = as_samples(log_theta, n_columns)
    if not inside_support(array).all():
        raise ValueError(
            f"log_theta must be finite and within +-{SUPPORT:g}, got values outside in shape "
            f"{array.shape}: condition on samples of finite log-density"
        )
    return array


def as_samples(log_theta: ArrayLike, n_columns: int) -> Array:
    """``log_theta`` as a float64 array of shape (M, n_columns), whatever its values."""
    array = np.asarray(log_theta, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise ValueError(f"log_theta must have shape (M, {n_columns}), got {array.shape}")
    return array


def inside_support(log_theta: Array) -> np.ndarray:
    """(M, P) -> (M,): whether the whole sample is finite and within the support."""
    return np.asarray((abs(log_theta) <= SUPPORT).all(axis=1))


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
        return -0.5 * np.vecdot(z, z) - self._log_volume

    @cached_property
    def _log_volume(self) -> float:
        return float(np.sum(np.log(self.scale) + 0.5 * LOG_2PI))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """n independent draws of ``log_theta``, (n, P)."""
        return self.location + self.scale * rng.standard_normal((n, self.location.size))


def default_prior(d: int, n_shares: int = 0) -> Prior:
    """The table above, for ``log_theta`` of d + 3 + n_shares entries."""
    whole("d", d, least=1)
    per_dimension = (LENGTHSCALE[0] + 0.5 * np.log(d), LENGTHSCALE[1])
    table = np.array([per_dimension] * d + [SIGNAL, NOISE, GAP] + list(SHARES[:n_shares]))
    return Prior(table[:, 0], table[:, 1])
