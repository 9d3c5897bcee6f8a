"""What a method is given, and moments of the spectrum by random probes.

With probes z of independent signs, E[z.f(K) z] = tr f(K). Moments are taken in Chebyshev
polynomials of the shifted matrix A = (2 K - upper - lower) / (upper - lower), whose recursion
T_{i+1} z = 2 A T_i z - T_{i-1} z never grows, and whose products

    2 T_i T_j = T_{i+j} + T_{|i-j|}

give two moments for each product with K:

    z.T_{2i} z = 2 |T_i z|^2 - |z|^2,    z.T_{2i+1} z = 2 (T_i z).(T_{i+1} z) - z.T_1 z.

The other families follow linearly, phi_i = sum_j A_ij T_j with sum_j |A_ij| = 1 for both Legendre
polynomials and powers, so no accuracy is lost.

    d     int           probes
    m     int           moments beyond the zeroth; ceil(m / 2) products per probe
    mu    (d, m + 1)    z.phi_i(A) z / n for each probe; mu_0 = 1

The paper's 'random unit vectors' have E[z z^T] = I/n; signs have E[z z^T] = I.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.info import LogdetInfo
from fitbo.logdet.operator import Operator, indefinite
from fitbo.maxent.basis import chebyshev_coefficients, chebyshev_products
from fitbo.maxent.solve import Prior
from fitbo.mixture import Array

BLOCK = 1 << 24  # numbers in a block of probes: 128 MB
SEEN = 1e-5  # relative: directions of less scatter are decided by the ridge, not by the moments


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given, ``estimate(task) -> (log det K, LogdetInfo)``."""

    operator: Operator
    n_moments: int
    n_probes: int
    bounds: Bounds
    rng: np.random.Generator
    basis: str  # this and the prior are MEMe's
    prior: str | Prior

    def moments(self, on: Bounds) -> Array:
        """The ``chebyshev_moments`` on an interval that contains the spectrum."""
        return chebyshev_moments(self.operator, on, self.n_moments, self.n_probes, self.rng)

    def info(self, method: str, standard_error: float, **fields: Any) -> LogdetInfo:
        """How it was estimated, with the task's own bounds and n_moments unless given others."""
        fields = {"bounds": self.bounds.pair, "n_moments": self.n_moments, **fields}
        return LogdetInfo(method, self.operator.products, standard_error, **fields)

    def multiple_of_identity(self, method: str) -> tuple[float, LogdetInfo] | None:
        """n log upper where the bounds leave nothing else, else None."""
        lower, upper = self.bounds.pair
        if upper - lower > 1e-12 * upper:
            return None
        return self.operator.n * float(np.log(upper)), self.info(method, 0.0, n_moments=0)


def probe_blocks(
    n: int, n_probes: int, rng: np.random.Generator, most: int | None = None
) -> Iterator[Array]:
    """Blocks (n, b) of Rademacher probes, each from its own stream: block sizes do not matter."""
    streams = rng.spawn(n_probes)
    step = min(max(1, BLOCK // n), most or n_probes)
    for start in range(0, n_probes, step):
        block = np.empty((n, min(step, n_probes - start)))
        for column, stream in enumerate(streams[start : start + step]):
            signs = np.unpackbits(np.frombuffer(stream.bytes((n + 7) // 8), dtype=np.uint8))
            block[:, column] = 2.0 * signs[:n] - 1.0
        yield block


def chebyshev_moments(
    operator: Operator, bounds: Bounds, m: int, n_probes: int, rng: np.random.Generator
) -> Array:
    """z.T_i(A) z / n for i = 0..m and every probe, (d, m + 1); ceil(m / 2) products each."""
    blocks = [_block(operator, bounds, z, m) for z in probe_blocks(operator.n, n_probes, rng)]
    moments = np.concatenate(blocks)
    check_support(moments.mean(0), bounds, operator.rounding)
    return moments


def _block(operator: Operator, bounds: Bounds, z: Array, m: int) -> Array:
    half_width = 0.5 * (bounds.upper - bounds.lower)
    centre = 0.5 * (bounds.upper + bounds.lower)

    def shifted(v: Array) -> Array:
        """A v."""
        out = operator @ v
        out -= centre * v
        out /= half_width
        return out

    mu = np.empty((z.shape[1], m + 1))
    mu[:, 0] = 1.0
    if half_width <= 1e-14 * centre:  # K = centre I: any A will do
        return np.where(np.arange(m + 1) % 2, 0.0, np.ones_like(mu))
    previous, current = z, shifted(z)
    first = np.einsum("nb,nb->b", z, current) / operator.n
    mu[:, 1] = first
    for i in range(1, (m + 1) // 2 + 1):
        if 2 * i <= m:
            mu[:, 2 * i] = 2 * np.einsum("nb,nb->b", current, current) / operator.n - 1.0
        if 2 * i + 1 > m:
            break
        following = shifted(current)
        following *= 2
        following -= previous
        mu[:, 2 * i + 1] = 2 * np.einsum("nb,nb->b", current, following) / operator.n - first
        previous, current = current, following
    return mu


def in_family(chebyshev: Array, family: str) -> Array:
    """Moments in another family from those in Chebyshev's, (..., m + 1) -> (..., m + 1)."""
    if family == "chebyshev":
        return chebyshev
    return chebyshev @ chebyshev_coefficients(family, chebyshev.shape[-1] - 1).T


def check_support(mu: Array, bounds: Bounds, rounding: float) -> None:
    """An error if no spectrum within the bounds has these Chebyshev moments.

    A measure on [-1, 1] has E[(1 +- u) p(u)^2] >= 0 for every polynomial p, that is, positive
    semidefinite matrices E[(1 +- u) T_i T_j]. The sign that fails tells the end. ``rounding`` is
    the share of the largest moment by which they may err.
    """
    k = (len(mu) - 2) // 2
    if k < 0:
        return
    r = np.arange(2 * k + 1)
    for end, edge, sign in (("below", bounds.lower, 1.0), ("above", bounds.upper, -1.0)):
        # (1 + s u) weighs moment r as mu_r + s (mu_{r+1} + mu_{|r-1|}) / 2.
        weighed = mu[r] + sign * 0.5 * (mu[r + 1] + mu[abs(r - 1)])
        matrix = chebyshev_products(weighed, k + 1)
        if np.linalg.eigvalsh(matrix)[0] < -rounding * max(1.0, abs(matrix).max()):
            if edge == 0:
                raise indefinite("moments that only a matrix with negative eigenvalues can have")
            raise outside(end, edge)


def outside(end: str, edge: float) -> ValueError:
    """The error for bounds that K's products contradict."""
    return ValueError(
        f"bounds must hold the spectrum of K, got eigenvalues {end} {edge:.4g}; widen them"
    )


def regressed_log(points: Array, masses: Array, phi: NDArray[Any], seen: float) -> Array:
    """Coefficients of log lambda's regression on phi (G, m + 1) under the masses, (m + 1,).

    It is what the moments say of the log-determinant, and turns their scatter into its own.
    Directions of phi with less than a share ``seen`` of the largest scatter are left out.
    """
    root = np.sqrt(masses)
    return np.linalg.lstsq(phi * root[:, None], np.log(points) * root, rcond=seen)[0]


def standard_error(values: Array) -> float:
    """Of the mean over probes; nan for a single one."""
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
