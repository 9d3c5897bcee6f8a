"""What is sampled: the packing of ``log_theta``.

==================  =======  ===============================================================
symbol              shape    meaning
==================  =======  ===============================================================
``M``               int      hyperparameter samples; the leading axis everywhere
``d``               int      dimensions of the unit cube
``P``               int      d + 3, or d + 4 with a share, the length of one sample
``log_theta``       (M, P)   (log l_1 .. log l_d, log s^2, log noise, log gap[, log odds])
``lengthscales``    (M, d)   l, in units of the cube's side
``signal_variance``  (M,)    s^2, the prior variance of g about its constant mean
``noise_variance``  (M,)     variance of an observation y about f, on standardised y
``gap``             (M,)     y_min - eta > 0, on standardised y
``share``           (M,)     w, of s^2 that is additive, with odds w/(1 - w); 0 if not sampled
==================  =======  ===============================================================

Sampling the gap and not eta keeps ``eta < y_min`` for every real ``log_theta``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array

# |log_theta| beyond which nothing is evaluated: e^60 squared is far from overflow, and every prior
# here has its mass many tens of deviations inside.
SUPPORT = 60.0


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """M samples by name; the shapes are in the table above."""

    lengthscales: Array
    signal_variance: Array
    noise_variance: Array
    gap: Array
    share: Array

    @classmethod
    def unpack(cls, log_theta: ArrayLike, d: int, n_shares: int = 0) -> Hyperparameters:
        """log_theta (M, d + 3 + n_shares) -> named arrays; ``n_shares`` is 0 or 1."""
        theta = np.exp(log_parameters(log_theta, n_parameters(d, n_shares)))
        odds = theta[:, d + 3] if n_shares else np.zeros(len(theta))
        return cls(theta[:, :d], theta[:, d], theta[:, d + 1], theta[:, d + 2], odds / (1 + odds))

    def __getitem__(self, samples: slice) -> Hyperparameters:
        """Some of the samples."""
        return Hyperparameters(
            self.lengthscales[samples],
            self.signal_variance[samples],
            self.noise_variance[samples],
            self.gap[samples],
            self.share[samples],
        )

    @property
    def precisions(self) -> Array:
        """1/l^2, (M, d)."""
        return 1 / (self.lengthscales * self.lengthscales)


def n_parameters(d: int, n_shares: int = 0) -> int:
    """P = d + 3 + n_shares."""
    return d + 3 + n_shares


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
    """``log_theta`` as float64 of shape (M, n_columns), whatever its values."""
    array = np.asarray(log_theta, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise ValueError(f"log_theta must have shape (M, {n_columns}), got {array.shape}")
    return array


def inside_support(log_theta: Array) -> np.ndarray:
    """(M, P) -> (M,): whether the whole sample is finite and within the support."""
    return np.asarray((abs(log_theta) <= SUPPORT).all(axis=1))
