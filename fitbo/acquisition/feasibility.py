"""How likely an evaluation is to succeed, from where others did and did not.

=============  ============  =================================================================
symbol         shape         meaning
=============  ============  =================================================================
``t``          (n,)          +1 where an evaluation gave a value, -1 where it failed
``h``          (S, n)        the latent function of each hypothesis s, P(success) = Phi(h)
``q``          (G, dim)      1/lengthscale^2 of each component of the covariances
``A``          (S, G)        the components' variances under each hypothesis
``w``          (S,)          the hypotheses' posterior weights
``W``          (S, n)        -d^2 log Phi(t h)/dh^2 at the mode
=============  ============  =================================================================

    h_s ~ GP(MEAN, k_s),   k_s(u, v) = MEAN_VARIANCE + sum_g A_sg exp(-sum_i q_gi (u_i - v_i)^2/2)

A failure says nothing of the objective's value, so it never enters the objective's process; this is
a classifier of its own, Gaussian processes with a probit likelihood by Laplace's approximation [1,
algorithms 3.1 and 3.2]. What makes evaluations fail is not known beforehand: chance alone (a flaky
machine), one parameter beyond a limit, or a region. So a few hypotheses are weighed by their
evidence and averaged: a constant; every parameter on its own, at two lengthscales; their sum, for
several limits of which each suffices; every pair's sum; and all in one distance, at three. There is
nothing to optimise or to draw: the same data give the same weights to the bit.
A flaky machine leaves the constant ahead, and then the search goes on as if nothing had happened.

The acquisition is multiplied by P(success): an evaluation that fails teaches nothing of the
minimum, so that the product is the information *expected*, and for EI and PI the improvement
expected. A logarithm gets log P added. What has no natural zero (a confidence bound, a sample's
mean) is measured from the best value told, and a negative worth is multiplied by 2 - P instead.

[1] Rasmussen, Williams, Gaussian processes for machine learning, 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import log_ndtr, ndtr

from fitbo.acquisition.normal import phi
from fitbo.mixture import LOG_2PI, Array
from fitbo.space import Space

MEAN, MEAN_VARIANCE = 1.0, 1.0  # before any data P(success) = Phi(1/sqrt(2)) = 0.76
SIGNAL = 9.0  # of h: a limit turns P from 0.999 to 0.001 within a lengthscale
ALONE = (0.15, 0.5)  # lengthscales of one parameter that decides by itself
TOGETHER = (0.1, 0.25, 0.6)  # of all of them, times the square root of their number
# Pairs are hypotheses of up to so many parameters and data. They are the most numerous, and with
# more data the sum over all parameters tells by itself which of them matter.
MOST_PAIRED, MOST_DATA_PAIRED = 8, 120
NEGLIGIBLE = 1e-3  # weight below which a hypothesis is left out of predictions
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-10
BLOCK = 256  # candidates at once

Value = Callable[[Array], Array]
ValueAndGrad = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Success:
    """P(success) at points of the cube, (B, dim) -> (B,); made by ``learn``.

    a (S, n): the slope of the log-likelihood at the mode; R (S, n, n): (K + W^-1)^-1.
    """

    U: Array
    precisions: Array
    amplitudes: Array
    weights: Array
    a: Array
    R: Array

    def __call__(self, U: Array) -> Array:
        parts = [U[i : i + BLOCK] for i in range(0, len(U), BLOCK)]
        return np.concatenate([np.empty(0), *(self._block(part, False)[0] for part in parts)])

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        """P (B,) and dP/du (B, dim)."""
        value, gradient = np.empty(len(U)), np.empty(U.shape)
        for start in range(0, len(U), BLOCK):
            rows = slice(start, start + BLOCK)
            value[rows], gradient[rows] = self._block(U[rows], True)
        return value, gradient

    def _block(self, U: Array, gradient: bool) -> tuple[Array, Array]:
        step = U[:, None] - self.U  # (B, n, dim)
        rho = _correlation(self.precisions, step)  # (G, B, n)
        k = np.tensordot(self.amplitudes, rho, 1) + MEAN_VARIANCE  # (S, B, n)
        kR = k @ self.R
        m = MEAN + (k @ self.a[:, :, None])[:, :, 0]
        prior = self.amplitudes.sum(1)[:, None] + MEAN_VARIANCE
        spread = np.sqrt(1 + np.maximum(prior - np.vecdot(kR, k), 0.0))
        z = m / spread
        value = self.weights @ ndtr(z)
        if not gradient:
            return value, np.empty((0, 0))
        # dz = sum_n c_n dk_n with c = a/spread + m kR/spread^3, and dk_n = -sum_g A_g rho_gn q_g
        # (u - u_n); the hypotheses differ in c and A only, so their sum over s comes first.
        density = self.weights[:, None] * phi(z)
        c = self.a[:, None] / spread[:, :, None] + (m / spread**3)[:, :, None] * kR
        mixed = np.einsum("sb,sbn,sg->gbn", density, c, self.amplitudes)
        pull = np.einsum("gbn,bnd->gbd", mixed * rho, step)
        return value, -np.einsum("gbd,gd->bd", pull, self.precisions)


def learn(space: Space, succeeded: Array, failed: Array) -> Success:
    """From where evaluations succeeded (n1, dim) and failed (n2, dim)."""
    U = np.concatenate([succeeded, failed])
    t = np.concatenate([np.ones(len(succeeded)), -np.ones(len(failed))])
    q, A = hypotheses(space, pairs=len(U) <= MOST_DATA_PAIRED)
    K = np.tensordot(A, _correlation(q, U[:, None] - U), 1) + MEAN_VARIANCE
    a, R, log_evidence = laplace(K, t)
    weights = np.exp(log_evidence - log_evidence.max())
    weights /= weights.sum()
    kept = weights >= NEGLIGIBLE
    weights = weights[kept] / weights[kept].sum()
    used = A[kept].any(0)
    used[0] = True  # a component at least, if of no variance
    return Success(U, q[used], A[kept][:, used], weights, a[kept], R[kept])


def hypotheses(space: Space, pairs: bool = True) -> tuple[Array, Array]:
    """Precisions of the components (G, dim), and their variances in each hypothesis (S, G)."""
    together = [np.full(space.dim, 1 / (s * s * space.dim)) for s in TOGETHER]
    n = len(space.parameters) if len(space.parameters) > 1 else 0
    alone = np.zeros((len(ALONE), n, space.dim))
    for j in range(n):
        alone[:, j, space.columns_of[j]] = 1 / np.square(ALONE)[:, None]
    q = np.concatenate([together, alone.reshape(-1, space.dim)])
    one = SIGNAL * np.eye(len(q))
    sums = []
    for scale in range(len(ALONE)):
        first = len(together) + scale * n
        members = range(first, first + n)
        groups = [tuple(members)] if n > 2 else []
        if pairs and n <= MOST_PAIRED:
            groups += combinations(members, 2)
        sums += [one[list(group)].sum(0) for group in groups]
    return q, np.array([np.zeros(len(q)), *one, *sums])


def laplace(K: Array, t: Array) -> tuple[Array, Array, Array]:
    """Mode of each hypothesis: a (S, n), (K + W^-1)^-1 (S, n, n), log evidence (S,).

    ``log Z = -a.(h - MEAN)/2 + sum_i log Phi(t_i h_i) - log det(1 + W^1/2 K W^1/2)/2``
    """
    S, n = K.shape[:2]
    h = np.full((S, n), MEAN)
    for _ in range(NEWTON_STEPS):
        slope, W = _likelihood(t * h)
        slope = slope * t
        root = np.sqrt(W)
        B = np.eye(n) + root[:, :, None] * K * root[:, None]
        b = W * (h - MEAN) + slope
        Kb = (K @ b[:, :, None])[:, :, 0]
        a = b - root * np.linalg.solve(B, (root * Kb)[:, :, None])[:, :, 0]
        new = MEAN + (K @ a[:, :, None])[:, :, 0]
        moved = abs(new - h).max()
        h = new
        if moved < NEWTON_TOLERANCE:
            break
    slope, W = _likelihood(t * h)
    root = np.sqrt(W)
    B = np.eye(n) + root[:, :, None] * K * root[:, None]
    R = root[:, :, None] * np.linalg.inv(B) * root[:, None]
    a = slope * t
    fitted = log_ndtr(t * h).sum(1) - 0.5 * np.vecdot(a, h - MEAN)
    return a, R, fitted - 0.5 * np.linalg.slogdet(B)[1]


def _likelihood(z: Array) -> tuple[Array, Array]:
    """d log Phi(z)/dz = phi/Phi, and minus its slope, ratio (z + ratio), which is positive."""
    ratio = np.exp(-0.5 * (z * z + LOG_2PI) - log_ndtr(z))
    return ratio, np.maximum(ratio * (z + ratio), 1e-12)


def _correlation(precisions: Array, step: Array) -> Array:
    """(G, dim) and differences (A, B, dim) -> (G, A, B)."""
    squared = (step * step).reshape(-1, step.shape[-1])
    return np.exp(-0.5 * precisions @ squared.T).reshape(-1, *step.shape[:2])


@dataclass(frozen=True, eq=False)
class Weighted:
    """A worth, times the probability that there will be one.

    ``reference`` is the worth of learning nothing; None when the worth is a logarithm.
    """

    value: Value
    with_grad: ValueAndGrad
    success: Success
    reference: float | None = 0.0

    def __call__(self, U: Array) -> Array:
        value, p = self.value(U), self.success(U)
        if self.reference is None:
            return value + np.log(p)
        gain = value - self.reference
        return self.reference + gain * np.where(gain > 0, p, 2 - p)

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        """(B,) and (B, dim)."""
        value, slope = self.with_grad(U)
        p, dp = self.success.value_and_grad(U)
        if self.reference is None:
            return value + np.log(p), slope + dp / p[:, None]
        gain = (value - self.reference)[:, None]
        up = gain > 0
        p = p[:, None]
        weighted = slope * np.where(up, p, 2 - p) + gain * np.where(up, dp, -dp)
        return self.reference + (gain * np.where(up, p, 2 - p))[:, 0], weighted


def reference_of(acquisition: str, best: float) -> float | None:
    """What an acquisition is worth where nothing is learnt; see the head of this module."""
    if acquisition == "logei":
        return None
    return -best if acquisition in ("lcb", "thompson") else 0.0
