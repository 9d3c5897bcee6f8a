"""Stochastic Lanczos quadrature.

k steps of Lanczos from a probe z give a tridiagonal T whose eigenvalues theta_i and weights
w_i = (first component of the i-th eigenvector)^2 are Gauss's quadrature for the measure of z:

    z.f(K) z ~ |z|^2 sum_i w_i f(theta_i),    exact for polynomials of degree 2k - 1.

As every even derivative of log is negative, Gauss's rule overestimates the log-determinant; with a
lower bound a of the spectrum, Radau's rule, which puts a node at a, underestimates it. The truth
for the given probes lies between, and so does every density with the same moments.

References: Ubaru, Chen & Saad (2017); Golub & Meurant (2010), chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.operator import Operator, indefinite
from fitbo.logdet.trace import Task, probe_blocks, standard_error
from fitbo.mixture import Array

KRYLOV = 1 << 27  # numbers in the bases kept at once for reorthogonalisation: 1 GB
VANISHING = 0.01  # share of what has no sign: Ritz values are rounded up to it
BREAKDOWN = 1e-13  # relative to the largest entry of T: the Krylov space is invariant


@dataclass(frozen=True, eq=False)
class Ritz:
    """Quadratures of d probes.

    alpha, beta     T's diagonals, (d, k) each; beta[:, -1] couples to the step not taken
    steps           how many of the k were taken before breakdown, (d,)
    """

    alpha: Array
    beta: Array
    steps: np.ndarray

    @property
    def width(self) -> int:
        """k, of the longest run."""
        return self.alpha.shape[1]

    def join(self, other: Ritz) -> Ritz:
        """The runs of both."""
        width = max(self.width, other.width)
        alpha, beta = (
            np.concatenate([np.pad(part, [(0, 0), (0, width - part.shape[1])]) for part in parts])
            for parts in ((self.alpha, other.alpha), (self.beta, other.beta))
        )
        return Ritz(alpha, beta, np.concatenate([self.steps, other.steps]))

    def nodes(self, lower: float | None = None) -> tuple[Array, Array]:
        """theta and w, (d, k) each, weight 0 in unused places; ``lower`` adds Radau's node."""
        d, width = self.alpha.shape
        theta = np.ones((d, width + (lower is not None)))
        weights = np.zeros_like(theta)
        for j, k in enumerate(self.steps):
            diagonal, off = self.alpha[j, :k], self.beta[j, : k - 1]
            link = self.beta[j, k - 1]
            # A run that broke down is exact already; another node would only be noise.
            if lower is not None and link > BREAKDOWN * abs(diagonal).max():
                diagonal, off = radau(diagonal, off, link, lower)
            values, vectors = eigh_tridiagonal(diagonal, off)
            theta[j], weights[j, : len(values)] = values[-1], vectors[0] ** 2
            theta[j, : len(values)] = values
        return theta, weights

    def gauss(self, task: Task) -> tuple[Array, Array]:
        """Gauss's ``nodes``, rounded up to the task's lower bound.

        Ritz values lie within the spectrum: one below 0, or below the lower bound, is an error.
        """
        theta, weights = self.nodes()
        lower, floor = task.bounds.lower, task.operator.sign * theta.max()
        smallest = theta[weights > 0].min()
        if smallest <= -floor:
            raise indefinite(f"a Ritz value of {smallest:.3g}")
        theta = np.maximum(theta, VANISHING * floor)
        if theta[weights > 0].min() < lower - task.operator.rounding * theta.max():
            raise _above_the_spectrum(lower)
        return np.maximum(theta, lower), weights


def ritz(operator: Operator, steps: int, n_probes: int, rng: np.random.Generator) -> Ritz:
    """Lanczos from ``n_probes`` Rademacher probes, fully reorthogonalised, in blocks."""
    n = operator.n
    steps = min(steps, n)
    blocks = [
        run(operator, probes, steps)
        for probes in probe_blocks(n, n_probes, rng, most=max(1, KRYLOV // (n * (steps + 1))))
    ]
    parts = zip(*((b.alpha, b.beta, b.steps) for b in blocks), strict=True)
    return Ritz(*(np.concatenate(part) for part in parts))


def run(
    operator: Operator, probes: Array, steps: int, enough: Callable[[Ritz], bool] | None = None
) -> Ritz:
    """Lanczos from the probes (n, d), all at once; it ends early once ``enough`` of the runs."""
    n, d = probes.shape
    alpha, beta = np.zeros((2, d, steps))
    taken = np.full(d, steps)
    basis = np.empty((d, steps, n))
    current = probes / np.linalg.norm(probes, axis=0)
    active = np.arange(d)
    for k in range(steps):
        basis[active, k] = current.T
        image = operator @ current
        following = np.empty_like(current)
        for column, j in enumerate(active):
            known, v = basis[j, : k + 1], image[:, column]
            overlap = known @ v
            alpha[j, k] = overlap[k]
            v = v - overlap @ known
            v -= (known @ v) @ known  # twice is enough
            beta[j, k] = np.linalg.norm(v)
            following[:, column] = v / max(beta[j, k], 1e-300)
        scale = abs(alpha[active, : k + 1]).max(1)
        alive = beta[active, k] > BREAKDOWN * scale
        taken[active[~alive]] = k + 1
        active, current = active[alive], following[:, alive]
        if not active.size:
            break
        if enough is not None:
            far = Ritz(alpha[:, : k + 1], beta[:, : k + 1], np.minimum(taken, k + 1))
            if enough(far):
                return far
    return Ritz(alpha, beta, taken)


def radau(diagonal: Array, off: Array, link: float, lower: float) -> tuple[Array, Array]:
    """T with one more row, chosen so that ``lower`` is an eigenvalue.

    The new corner is lower + link^2 e_k.(T - lower)^-1 e_k, whose last factor is 1 / delta_k with
    the pivots delta_i = alpha_i - lower - beta_{i-1}^2 / delta_{i-1} of T - lower.
    """
    pivot, link_before = np.inf, 0.0
    for a, b in zip(diagonal, np.append(off, 0.0), strict=True):
        pivot = a - lower - link_before**2 / pivot
        if pivot <= 0:  # by Sylvester's law, each such pivot is a Ritz value below ``lower``
            raise _above_the_spectrum(lower)
        link_before = b
    return np.append(diagonal, lower + link * link / pivot), np.append(off, link)


def _above_the_spectrum(lower: float) -> ValueError:
    return ValueError(
        f"bounds[0] must lie below the spectrum, got {lower:.3g}, above a Ritz value; lower it"
    )


def estimate(task: Task) -> tuple[float, LogdetInfo]:
    """log det K = (n/d) sum over probes and nodes of w log theta; n_moments / 2 steps per probe."""
    n, lower = task.operator.n, task.bounds.lower
    quadrature = ritz(task.operator, (task.n_moments + 1) // 2, task.n_probes, task.rng)
    theta, weights = quadrature.gauss(task)
    values = n * (weights * np.log(theta)).sum(1)
    value = float(values.mean())
    bracket = None
    if lower > 0:
        nodes, radau = quadrature.nodes(lower)
        bracket = float(n * (radau * np.log(np.maximum(nodes, lower))).sum(1).mean()), value
    used = weights > 0
    density = SpectralDensity.from_atoms(theta[used], weights[used] / task.n_probes)
    error = standard_error(values)
    return value, task.info("lanczos", error, density=density, bracket=bracket)
