"""Joint entropy search: what y tells about the minimum and its place, of each sample's path.

    x*, f*    (M, d), (M,)  each sample's minimiser and minimum, of a draw of the whole process
    m, v      (..., M)  g ~ N(m, v) at the candidate given the data
    m', v'    (..., M)  the same given also g(x*) = +-sqrt(2 (f* - eta)), the path's sign
    n         (..., M)  variance of the noise in g; z = g + noise is what is observed

Given x* and f*, g(x) follows from a rank-one update of its posterior (``surrogate.conditioned``)
and cannot lie below f* [1, 2]. With z and the truncation of ``maxvalue``,

    H[z] - H[z | x*, f*] = log((v + n)/(v' + n))/2 + (H[z'] - H[z' | |g'| >= c]),

z' = g' + noise with g' ~ N(m', v'): what the place tells, and what the bound then adds. It is
averaged over the samples, so it is fully Bayesian: each theta has its own paths. The noise is that
of the law before, so that both entropies are of the same observation.

At x* itself v' = 0, and without noise the first term has no bound: a path's place is a point, and
whoever evaluates there learns a real number. What tells the places apart is not that number's last
digit, so values finer than ``RESOLUTION`` of the spread of f* count as noise.

[1] Hvarfner, Hutter, Nardi, Joint entropy search for maximally-informed Bayesian optimization,
    NeurIPS 2022.
[2] Tu, Gandy, Kantas, Shafei, Joint entropy search for multi-objective Bayesian optimization,
    NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fitbo.acquisition.improvement import by_moments, parabola
from fitbo.acquisition.maxvalue import FAR, MaxValueGain, in_g, truncation
from fitbo.checks import whole
from fitbo.entropy.protocol import Gradient
from fitbo.mixture import Array, Mixture

RESOLUTION = 0.1


@dataclass(frozen=True, eq=False)
class JointGain(MaxValueGain):
    """``sum_j w_j (H[z] - H[z | x*_j, f*_j])`` of the mixture of a ``Conditioned`` surrogate.

    The mixture has 2 M components, and so have floor and noise; minimum (M,). Of the ``per_theta``
    components of a theta the first half are as they are, the other half know x* and f*.
    """

    finest: ClassVar[float] = RESOLUTION

    per_theta: int = 2

    def __post_init__(self) -> None:
        whole("per_theta", self.per_theta, least=2)
        minimum = np.asarray(self.minimum, dtype=np.float64)
        half = self.per_theta // 2
        twice = np.repeat(minimum.reshape(-1, 1, half), 2, axis=1).ravel()
        object.__setattr__(self, "minimum", twice)
        super().__post_init__()

    def value_and_grad(self, mixture: Mixture) -> Gradient:
        value, by_mean, by_variance = self._of_pairs(mixture.means, mixture.variances)
        w = 2 * mixture.weights  # those of a pair are equal, and sum to the sample's
        first = self._halves(w)[0]
        return np.einsum("...m,...m->...", first, value), w * by_mean, w * by_variance

    def _of_pairs(self, mean: Array, var: Array) -> Gradient:
        """The gain of each sample (..., M), and its slopes in all moments (..., 2 M)."""
        noise = self._halves(np.broadcast_to(self.noise, mean.shape))[0]
        if self.floor is None:
            before, after = self._halves(var)
            minimum, c = self._halves(self.minimum)[0], FAR * np.sqrt(after)
            gain = truncation(self._halves(mean)[1] - minimum + c, after, noise, c, self.nodes)
            wide, left = before + noise, after + noise
            value = gain.value + 0.5 * np.log(wide / left)
            by_mean = self._joined(np.zeros_like(value), gain.m)
            return value, by_mean, self._joined(0.5 / wide, gain.v - 0.5 / left)
        a, m2, v, c2 = parabola(mean, var, self.minimum, self.floor)
        (g2, after2), (before, after) = self._halves(m2), self._halves(v)
        c, m = np.sqrt(self._halves(c2)[0]), np.sqrt(after2)
        n, by_g2 = in_g(noise, g2 + before)
        gain = truncation(m, after, n, c, self.nodes)
        wide, left = before + n, after + n
        value = gain.value + 0.5 * np.log(wide / left)
        by_n = (gain.n + 0.5 / wide - 0.5 / left) * by_g2
        by_m2 = self._joined(by_n, gain.m / (2 * m))
        by_v = self._joined(by_n + 0.5 / wide, gain.v - 0.5 / left)
        return value, *by_moments(a, m2, by_m2, by_v)

    def _halves(self, a: Array) -> tuple[Array, Array]:
        """(..., 2 M) -> as they are and knowing, (..., M) each."""
        pairs = a.reshape(*a.shape[:-1], -1, 2, self.per_theta // 2)
        shape = *a.shape[:-1], -1
        return pairs[..., 0, :].reshape(shape), pairs[..., 1, :].reshape(shape)

    def _joined(self, first: Array, second: Array) -> Array:
        """The inverse of ``_halves``."""
        half = self.per_theta // 2
        pair = (a.reshape(*a.shape[:-1], -1, half) for a in (first, second))
        return np.stack(list(pair), axis=-2).reshape(*first.shape[:-1], -1)
