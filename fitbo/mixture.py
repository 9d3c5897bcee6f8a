"""One-dimensional Gaussian mixtures, a batch at a time.

=========  ===========  ==================================================
symbol     shape        meaning
=========  ===========  ==================================================
``M``      int          components of each mixture
``means``  (..., M)     component means m_j
``variances``  (..., M) component variances v_j = s_j^2 > 0
``weights``  (..., M)   w_j >= 0, summing to one
=========  ===========  ==================================================

Leading axes are a batch: one ``Mixture`` holds as many mixtures as there are candidate points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2 * np.pi))
WEIGHT_TOLERANCE = 1e-6  # weights in single precision sum to one only this closely
FARTHEST = 1e150  # in standard deviations: its square does not overflow


@dataclass(frozen=True, eq=False, init=False)
class Mixture:
    """``p(y) = sum_j w_j N(y; m_j, v_j)``; equal weights unless given."""

    means: Array
    variances: Array
    weights: Array

    def __init__(
        self, means: ArrayLike, variances: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        m, v = _finite("means", means), _finite("variances", variances)
        if m.ndim == 0 or m.shape[-1] == 0:
            raise ValueError(f"means must have shape (..., M) with M >= 1, got shape {m.shape}")
        if v.shape != m.shape:
            raise ValueError(f"variances must have the shape of means {m.shape}, got {v.shape}")
        if not (v > 0).all():
            raise ValueError(f"variances must be positive, got {v.min()} in shape {v.shape}")
        if weights is None:
            w = np.broadcast_to(np.full(m.shape[-1], 1 / m.shape[-1]), m.shape)
        else:
            w = _finite("weights", weights)
            if w.ndim == 0 or w.shape[-1] != m.shape[-1]:
                raise ValueError(f"weights must have M = {m.shape[-1]} entries, got {w.shape}")
            if not (w >= 0).all():
                raise ValueError(f"weights must be non-negative, got {w.min()} in shape {w.shape}")
            total = w.sum(-1)
            if not (abs(total - 1) < WEIGHT_TOLERANCE).all():
                worst = total.flat[np.argmax(abs(total - 1))]
                raise ValueError(f"weights must sum to 1, got {worst} in shape {w.shape}")
            w /= total[..., None]
            try:
                w = np.broadcast_to(w, m.shape)
            except ValueError:
                raise ValueError(
                    f"weights of shape {w.shape} do not broadcast to means of shape {m.shape}"
                ) from None
        for name, value in (("means", m), ("variances", v), ("weights", w)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.means.shape[:-1]

    @property
    def n_components(self) -> int:
        return self.means.shape[-1]

    @cached_property
    def deviations(self) -> Array:
        """Component standard deviations s_j, (..., M)."""
        s = np.sqrt(self.variances)
        s.flags.writeable = False
        return s

    @cached_property
    def mean(self) -> Array:
        """E[y], (...,)."""
        return np.einsum("...m,...m->...", self.weights, self.means)

    @cached_property
    def variance(self) -> Array:
        """Var[y] = sum_j w_j (v_j + (m_j - E[y])^2), (...,)."""
        spread = self.variances + (self.means - self.mean[..., None]) ** 2
        return np.einsum("...m,...m->...", self.weights, spread)

    def log_pdf(self, y: ArrayLike) -> Array:
        """log p(y) by log-sum-exp. y: (..., N) -> (..., N), batch axes broadcast."""
        y = _finite("y", y)
        if y.ndim == 0:
            raise ValueError("y must have shape (..., N), got a scalar: wrap it in a list")
        z = (y[..., None] - self.means[..., None, :]) / self.deviations[..., None, :]
        np.clip(z, -FARTHEST, FARTHEST, out=z)
        with np.errstate(divide="ignore"):  # log 0 = -inf is the right log-weight
            log_w = np.log(self.weights) - 0.5 * (LOG_2PI + np.log(self.variances))
        terms = log_w[..., None, :] - 0.5 * z * z
        top = terms.max(-1)  # finite, as some weight is positive
        return top + np.log(np.exp(terms - top[..., None]).sum(-1))

    def pdf(self, y: ArrayLike) -> Array:
        """p(y). y: (..., N) -> (..., N)."""
        return np.exp(self.log_pdf(y))

    def raw_moments(self, order: int) -> Array:
        """E[y^i] for i = 0..order, (..., order + 1)."""
        return self._moments(self.means, order)

    def central_moments(self, order: int) -> Array:
        """E[(y - E[y])^i] for i = 0..order, (..., order + 1)."""
        return self._moments(self.means - self.mean[..., None], order)

    def _moments(self, a: Array, order: int) -> Array:
        """Stein's lemma, e_{i+1} = a e_i + i v e_{i-1}, averaged over the components.

        The paper's closed form is wrong: it lacks the normaliser ``sqrt(2 pi) s``, and its zeta_i
        do not vanish for odd i.
        """
        if order < 0:
            raise ValueError(f"order must be a non-negative integer, got {order}")
        out = np.empty((*self.batch_shape, order + 1))
        previous, current = np.zeros_like(a), np.ones_like(a)
        for i in range(order + 1):
            out[..., i] = np.einsum("...m,...m->...", self.weights, current)
            previous, current = current, a * current + i * self.variances * previous
        return out

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """n independent draws from each mixture, (..., n)."""
        if n < 0:
            raise ValueError(f"n must be a non-negative integer, got {n}")
        edges = np.cumsum(self.weights, axis=-1)
        u = rng.random((*self.batch_shape, n)) * edges[..., -1:]
        which = np.empty(u.shape, dtype=np.intp)
        for index in np.ndindex(self.batch_shape):
            which[index] = np.searchsorted(edges[index], u[index], side="right")
        which = np.minimum(which, self.n_components - 1)
        means = np.take_along_axis(self.means, which, -1)
        return means + np.take_along_axis(self.deviations, which, -1) * rng.standard_normal(u.shape)


def quantile(x: Array, p: Array | float, weights: Array | None = None) -> Array:
    """Quantiles of x (M,), interpolated; of weights (M,), the least value that has p below it."""
    how: Any = {} if weights is None else {"weights": weights, "method": "inverted_cdf"}
    return np.asarray(np.quantile(x, p, **how))


def exp_in_place(x: Array) -> Array:
    """exp(x) in x itself, floored at exp(-700): below, it is subnormal, negligible and slow."""
    if x.size and x.min() < -700.0:  # looking costs less than a floor that is seldom needed
        np.maximum(x, -700.0, out=x)
    return np.exp(x, out=x)


def _finite(name: str, value: ArrayLike) -> Array:
    """A float64 copy, so that freezing it cannot freeze the caller's array."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {value!r:.80}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or inf in shape {array.shape}")
    return array
