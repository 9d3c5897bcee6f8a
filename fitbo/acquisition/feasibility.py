"""The probability that an evaluation succeeds, from where others succeeded and failed.

    t  (n,)      +1 where an evaluation gave a value, -1 where it failed
    h  (S, n)    the latent function of each hypothesis s, P(success) = Phi(h)
    q  (G, dim)  1/lengthscale^2 of each component of the covariances
    A  (S, G)    the components' variances under each hypothesis
    w  (S,)      the hypotheses' posterior weights
    W  (S, n)    -d^2 log Phi(t h)/dh^2 at the mode

    h_s ~ GP(MEAN, k_s),   k_s(u, v) = MEAN_VARIANCE + sum_g A_sg exp(-sum_i q_gi (u_i - v_i)^2/2)

A failure says nothing about the objective's value, so it never enters the objective's process. This
is a separate classifier: Gaussian processes with a probit likelihood by Laplace's approximation
[1, algorithms 3.1 and 3.2]. The cause of failures is not known beforehand: chance (a flaky
machine), one parameter beyond a limit, or a region. So a few hypotheses are weighted by their
evidence and averaged: a constant; every parameter by itself, at two lengthscales; their sum, for
several limits of which each suffices; every pair's sum; and all in one distance, at three. Nothing
is optimised or drawn: the same data give the same weights to the bit. With a flaky machine the
constant leads, and the search goes on as if nothing had happened.

The acquisition function is multiplied by P(success): a failed evaluation teaches nothing about the
minimum, so the product is the *expected* information, and for EI and PI the expected improvement.
That alone does not keep a search away from where it has failed: improvements differ by orders of
magnitude, and next to a failure, where nothing is learnt about f, they stay as large as they were.
So a point whose P is below a share ``LEFT_ALONE`` of what is usual where evaluations succeeded is
left alone, until its P has risen by what was learnt near it: the weight is

    G(P) = P min(1, P/(LEFT_ALONE P0))^STEEP,    P0 = max_i P(u_i)

which is P itself with a flaky machine, whose P is much the same everywhere. A logarithm gets log G
added. What has no natural zero (a confidence bound, a sample's mean) is measured from the best
value told, and a negative worth is multiplied by 2 - G instead.

[1] Rasmussen, Williams, Gaussian processes for machine learning, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr

from fitbo.acquisition.normal import phi
from fitbo.mixture import LOG_2PI, Array
from fitbo.space import Differentiable, Space
from fitbo.surrogate.gp import blocks

MEAN, MEAN_VARIANCE = 1.0, 1.0  # before any data P(success) = Phi(1/sqrt(2)) = 0.76
SIGNAL = 9.0  # of h: a limit turns P from 0.999 to 0.001 within a lengthscale
ALONE = (0.15, 0.5)  # lengthscales of one parameter that decides by itself
TOGETHER = (0.1, 0.25, 0.6)  # of all of them, times the square root of their number
# Pairs are hypotheses for up to so many parameters and data. They are the most numerous, and with
# more data the sum over all parameters shows which of them matter.
MOST_PAIRED, MOST_DATA_PAIRED = 8, 120
NEGLIGIBLE = 1e-3  # weight below which a hypothesis is left out of predictions
LEFT_ALONE, STEEP = 2 / 3, 20.0
TINY = 1e-300  # so that a weight has a logarithm
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-10
BLOCK = 256  # candidates at once


@dataclass(frozen=True, eq=False)
class Success:
    """P(success) at points of the cube, (B, dim) -> (B,); made by ``learn``.

    a (S, n): the slope of the log-likelihood at the mode; R (S, n, n): (K + W^-1)^-1; usual: P0.
    """

    U: Array
    precisions: Array
    amplitudes: Array
    weights: Array
    a: Array
    R: Array
    usual: float = 1.0

    def __call__(self, U: Array) -> Array:
        return self._evaluate(U, gradient=False)[0]

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        """P (B,) and dP/du (B, dim)."""
        return self._evaluate(U, gradient=True)

    def acceptable(self, U: Array) -> np.ndarray:
        """What may be recommended, (B,): what is more likely than not to succeed."""
        return self(U) > 0.5

    def log_weight(self, U: Array, gradient: bool = False) -> tuple[Array, Array]:
        """log G at U (B, dim), (B,), and its slope (B, dim), which is empty unless ``gradient``."""
        if not gradient:
            return np.log(self.weight(self(U))[0]), np.empty((len(U), 0))
        p, dp = self.value_and_grad(U)
        weight, by_p = self.weight(p)
        return np.log(weight), (by_p / weight)[:, None] * dp

    def weight(self, p: Array) -> tuple[Array, Array]:
        """G at P = p (B,), and dG/dP (B,)."""
        share = np.minimum(1.0, p / (LEFT_ALONE * self.usual)) ** STEEP
        return np.maximum(p * share, TINY), share * np.where(share < 1, 1 + STEEP, 1.0)

    def _evaluate(self, U: Array, gradient: bool) -> tuple[Array, Array]:
        value, slope = np.empty(len(U)), np.zeros(U.shape)
        for rows in blocks(len(U), BLOCK):
            step = U[rows, None] - self.U  # (B, n, dim)
            rho = _correlation(self.precisions, step)  # (G, B, n)
            k = np.tensordot(self.amplitudes, rho, 1) + MEAN_VARIANCE  # (S, B, n)
            kR = k @ self.R
            m = MEAN + (k @ self.a[:, :, None])[:, :, 0]
            prior = self.amplitudes.sum(1)[:, None] + MEAN_VARIANCE
            spread = np.sqrt(1 + np.maximum(prior - np.vecdot(kR, k), 0.0))
            z = m / spread
            value[rows] = self.weights @ ndtr(z)
            if not gradient:
                continue
            # dz = sum_n c_n dk_n with c = a/spread + m kR/spread^3, and dk_n = -sum_g A_g rho_gn
            # q_g (u - u_n); the hypotheses differ in c and A only, so their sum comes first.
            density = self.weights[:, None] * phi(z)
            c = self.a[:, None] / spread[:, :, None] + (m / spread**3)[:, :, None] * kR
            mixed = np.einsum("sb,sbn,sg->gbn", density, c, self.amplitudes)
            pull = np.einsum("gbn,bnd->gbd", mixed * rho, step)
            slope[rows] = -np.einsum("gbd,gd->bd", pull, self.precisions)
        return value, slope


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
    used[0] = True  # at least one component, if only of no variance
    found = Success(U, q[used], A[kept][:, used], weights, a[kept], R[kept])
    return replace(found, usual=float(found(succeeded if len(succeeded) else U).max()))


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

    def expanded(h: Array) -> tuple[Array, Array, Array, Array]:
        """Slope of the log-likelihood, W and its root (S, n), B = 1 + W^1/2 K W^1/2 (S, n, n)."""
        slope, W = _likelihood(t * h)
        root = np.sqrt(W)
        return slope * t, W, root, np.eye(len(t)) + root[:, :, None] * K * root[:, None]

    def times(matrix: Array, vector: Array) -> Array:
        return (matrix @ vector[:, :, None])[:, :, 0]

    h = np.full(K.shape[:2], MEAN)
    for _ in range(NEWTON_STEPS):  # algorithm 3.1
        slope, W, root, B = expanded(h)
        b = W * (h - MEAN) + slope
        a = b - root * np.linalg.solve(B, (root * times(K, b))[:, :, None])[:, :, 0]
        before, h = h, MEAN + times(K, a)
        if abs(h - before).max() < NEWTON_TOLERANCE:
            break
    a, _, root, B = expanded(h)
    R = root[:, :, None] * np.linalg.inv(B) * root[:, None]
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


class Chance(Protocol):
    """The probability that an evaluation is of use, (B, dim) -> (B,), and the weight of that."""

    def __call__(self, U: Array) -> Array: ...

    def log_weight(self, U: Array, gradient: bool = False) -> tuple[Array, Array]:
        """The logarithm of the weight (B,), and its slope (B, dim) if ``gradient``."""
        ...

    def acceptable(self, U: Array) -> np.ndarray:
        """What may be recommended, (B,)."""
        ...


@dataclass(frozen=True, eq=False)
class Weighted:
    """A worth, weighted by the chance that the evaluation is of use: for ``Success``, G.

    ``reference`` is the worth of learning nothing; None if the worth is a logarithm.
    """

    worth: Differentiable
    success: Chance
    reference: float | None = 0.0

    def __call__(self, U: Array) -> Array:
        value = self.worth(U)
        log_weight, _ = self.success.log_weight(U)
        if self.reference is None:
            return value + log_weight
        gain, weight = value - self.reference, np.exp(log_weight)
        return self.reference + gain * np.where(gain > 0, weight, 2 - weight)

    def value_and_grad(self, U: Array) -> tuple[Array, Array]:
        """(B,) and (B, dim)."""
        value, slope = self.worth.value_and_grad(U)
        log_weight, dlog = self.success.log_weight(U, gradient=True)
        if self.reference is None:
            return value + log_weight, slope + dlog
        weight = np.exp(log_weight)
        dweight = weight[:, None] * dlog
        gain = value - self.reference
        factor = np.where(gain > 0, weight, 2 - weight)
        return self.reference + gain * factor, slope * factor[:, None] + abs(gain)[
            :, None
        ] * dweight


def reference_of(acquisition: str, best: float, moments: int = 2) -> float | None:
    """The value of an acquisition function where nothing is learnt; see the head of this module."""
    if acquisition == "logei" or (acquisition == "remaining" and moments <= 2):  # logarithms
        return None
    return -best if acquisition in ("lcb", "thompson") else 0.0
