"""The knowledge gradient: by how much one more value, with its noise, lowers what is recommended.

    a        (P, d)      places that may be recommended: minimisers of draws, the best; and then x
    m_a      (T, K, P)   mean of g at the places, of each sample; f = eta + g^2/2
    m, v, c              of g at x, and its covariance with the places (``surrogate.links``)
    n        (B, T, K)   variance of the noise in g at x (``maxvalue.in_g``)
    b_a      (B, T, K, P)  c_a / sqrt(v + n)
    t        (N,)        nodes, of a standard normal

What is recommended after an evaluation is the point of the lowest posterior mean, and the regret
that remains is R = f(there) - f*. Its mean falls by what the lowest mean falls by [1]:

    E R = min_a mu_a - E f*   ->   E_y min_a mu_a(y) - E f*.

So this is the first rung of the ladder of ``remaining`` where values have noise; without noise what
is recommended is the best value told, and the rung is expected improvement. An evaluation need not
be where the minimum is expected: on a slope, where values differ by more than their noise, it may
tell more about where the minimum lies.

The value seen at x, z = g + noise, is m + sqrt(v + n) t with t ~ N(0, 1). Given it, g(a) has the
mean m_a + b_a t and its variance less b_a^2, so that the mean of f there is

    mu_a + m_a b_a t + b_a^2 (t^2 - 1)/2,

a parabola in t. Averaged over the samples, t being the same for all (each expects the value by its
own law), with S = E[m_a b_a] and Q = E[b_a^2]/2:

    alpha(x) = log(min_a mu_a - E_t min_a (mu_a + S_a t + Q_a (t^2 - 1))).

The minimum is never above min_a mu_a on average, so the argument is not negative. The expectation
is by a trapezoidal rule, whose nodes see the same kinks from one x to the next; the slopes of each
node are those of its minimum.

[1] Frazier, Powell, Dayanik, The knowledge-gradient policy for correlated normal beliefs, INFORMS
    Journal on Computing 21 (2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fitbo.acquisition.maxvalue import in_g
from fitbo.acquisition.normal import phi
from fitbo.mixture import Array
from fitbo.surrogate.gp import blocks
from fitbo.surrogate.links import Linked, Links

NODES = np.linspace(-5.0, 5.0, 41)
WEIGHTS = phi(NODES) / phi(NODES).sum()
BEND = NODES * NODES - WEIGHTS @ (NODES * NODES)  # whose mean is zero, as that of t^2 - 1
TINY = 1e-15  # the rounding of mu
BLOCK = 64  # candidates at once


@dataclass(frozen=True, eq=False)
class KnowledgeGradient:
    """log alpha at points of the cube, (B, d) -> (B,), and its gradient."""

    links: Links

    @cached_property
    def _weights(self) -> Array:
        """Of the samples, (T, K)."""
        surrogate = self.links.surrogate
        T, K, _ = surrogate.alpha.shape
        w = surrogate.sample_weights
        return np.full((T, K), 1 / (T * K)) if w is None else w.reshape(T, K)

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """m_a (T, K, P) and mu_a (P,)."""
        at = self.links(self.links.place)
        return at.m.transpose(1, 2, 0), self._mean(at)

    def _mean(self, at: Linked) -> Array:
        """mu, the mean of f over the samples, (B,)."""
        eta = self.links.surrogate.eta.reshape(self._weights.shape)
        f = eta + 0.5 * (at.m * at.m + at.v[:, :, None])
        return np.einsum("tk,btk->b", self._weights, f)

    def __call__(self, U: Array) -> Array:
        return self._evaluate(U, gradient=False)[0]

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        """(B, d) -> (B,), (B, d)."""
        return self._evaluate(U, gradient=True)

    def _evaluate(self, U: Array, gradient: bool) -> tuple[Array, Array]:
        value, slope = np.empty(len(U)), np.zeros(U.shape)
        for rows in blocks(len(U), BLOCK):
            gain, by_x = self._gain(self.links(U[rows], gradient), gradient)
            value[rows] = np.log(np.maximum(gain, TINY))
            if gradient:
                slope[rows] = np.where(gain > TINY, 1 / np.maximum(gain, TINY), 0.0)[:, None] * by_x
        return value, slope

    def _gain(self, at: Linked, gradient: bool) -> tuple[Array, Array]:
        """alpha (B,), not its logarithm, and its gradient (B, d), or nothing."""
        (m_a, mu_a), w = self._places, self._weights
        m, v, c = at.m, at.v[:, :, None], at.c
        noise = self.links.surrogate.noise_variance[:, None]
        n, by_g2 = in_g(noise, m * m + v)
        r = 1 / np.sqrt(v + n)
        wr, wr2 = w * r, w * r * r
        pull, square = np.einsum("btk,tkp->btp", wr, m_a), wr2.sum(2)[:, :, None]
        # The places, and x itself, whose covariance with itself is v.
        S = np.column_stack([(c * pull).sum(1), (wr * m * v).sum((1, 2))])
        Q = 0.5 * np.column_stack([(c * c * square).sum(1), (wr2 * v * v).sum((1, 2))])
        mu = np.column_stack([np.broadcast_to(mu_a, (len(m), len(mu_a))), self._mean(at)])
        after = mu[:, :, None] + S[:, :, None] * NODES + Q[:, :, None] * BEND
        lowest = after.argmin(1)
        gain = mu_a.min() - np.take_along_axis(after, lowest[:, None], 1)[:, 0] @ WEIGHTS
        if not gradient:
            return gain, np.empty((len(gain), 0))
        chosen = (lowest[:, None] == np.arange(mu.shape[1])[:, None]) * WEIGHTS  # (B, P + 1, N)
        by_mu, by_S, by_Q = chosen.sum(2)[:, -1], chosen @ NODES, chosen @ BEND
        (s_a, s_x), (q_a, q_x) = ((a[:, None, :-1], a[:, -1, None, None]) for a in (by_S, by_Q))
        by_c = s_a * pull + q_a * c * square
        by_D = -0.5 * wr * r * r * (np.einsum("btp,tkp->btk", s_a * c, m_a) + s_x * m * v)
        by_D -= 0.5 * wr2 * r * r * ((q_a * c * c).sum(2)[:, :, None] + q_x * v * v)
        by_m = by_mu[:, None, None] * w * m + s_x * wr * v + 2 * by_D * by_g2 * m
        by_v = 0.5 * by_mu[:, None, None] * w + s_x * wr * m + q_x * wr2 * v + by_D * (1 + by_g2)
        slope = np.einsum("btp,btpd->bd", by_c, at.dc) + np.einsum("btk,btkd->bd", by_m, at.dm)
        slope += np.einsum("bt,btd->bd", by_v.sum(2), at.dv)
        return gain, -slope
