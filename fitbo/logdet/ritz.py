"""MEMe with a prior from Ritz values: many short Lanczos runs tilt what a few long ones resolve.

A probe costs one product per step. Short runs from many probes give the low moments of the spectrum
with little noise, but not where the small eigenvalues lie; a long run from one probe resolves
those, with the noise of one probe. Maximum relative entropy combines the two:

    minimise KL(q || q0)    subject to    E_q[phi_i] = mu_i,  i = 1..m,

where q0 is the Ritz measure of the long runs (atoms x_g with masses w_g), with a thousandth of that
of the short ones, and mu the moments of all the runs. As q0 is atomic the solution is a tilt,
q_g = w_g exp(-a.phi(x_g)) / Z, and no smoothing enters. To first order this is the regression
estimator of multilevel Monte Carlo.

Two moments are known exactly where K has entries, tr K and tr K^2 = ||K||_F^2. The probes get the
most nearly equal weights that reproduce both (calibration, in survey sampling); every other moment
is taken with the same weights.

    x, w    (G,)      atoms of q0 and their masses
    psi     (G, r)    the directions of span{T_1..T_m} that q0 can tell apart, orthonormal in q0
    omega   (d,)      weights of the probes, summing to one
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fitbo.logdet import lanczos
from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.operator import Operator
from fitbo.logdet.trace import Task, regressed_log
from fitbo.logdet.unseen import judged, unseen
from fitbo.maxent import Basis, solve
from fitbo.maxent.basis import VANDER
from fitbo.maxent.levenberg import levenberg
from fitbo.mixture import Array

CHEBYSHEV = VANDER["chebyshev"]
LONG_RUNS = 2
LONG_SHARE = 0.4  # of the products
LONG_KRYLOV = lanczos.KRYLOV // 2
RESOLVED = 1e-6  # a direction whose std under q0 is below this share of the largest is noise
# In units of a direction's variance: the ridge bounds the tilt, and biases it by a thousandth. The
# larger ones are for moments that no tilt of q0 has.
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
# The mass of q0 from the short runs. An eigenvector on few coordinates may be orthogonal to the
# signs of every long run, and a tilt cannot raise an atom that is missing.
SHORT_SHARE = 1e-3
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Atoms(Basis):
    """psi = (T(u) - E_q0[T]) R, R (m, r), as a ``Basis`` whose nodes are the atoms u of q0."""

    u: Array = field(default_factory=lambda: np.empty(0))
    masses: Array = field(default_factory=lambda: np.empty(0))
    mean: Array = field(default_factory=lambda: np.empty(0))
    whiten: Array = field(default_factory=lambda: np.empty(0))

    @property
    def size(self) -> int:
        return self.whiten.shape[1]

    def nodes(self, refine: int = 1) -> tuple[Array, Array]:
        return self.u, self.masses

    def values(self, u: Array) -> Array:
        psi = (CHEBYSHEV(u, len(self.mean))[..., 1:] - self.mean) @ self.whiten
        return np.concatenate([np.ones((*psi.shape[:-1], 1)), psi], axis=-1)


def atoms(theta: Array, masses: Array, upper: float, degree: int) -> Atoms:
    """q0 and the directions it resolves among T_1..T_degree on [0, upper]."""
    u = 2 * theta / upper - 1
    phi = CHEBYSHEV(u, degree)[:, 1:]
    mean = masses @ phi
    weighted = (phi - mean) * np.sqrt(masses)[:, None]
    _, stds, directions = np.linalg.svd(weighted, full_matrices=False)
    # A spectrum of one point has no direction at all; a null one does no harm.
    kept = max(1, int((stds > RESOLVED * max(stds[0], 1e-300)).sum()))
    scale = np.maximum(stds[:kept], 1e-12)
    return Atoms("chebyshev", 1, u=u, masses=masses, mean=mean, whiten=directions[:kept].T / scale)


def calibrate(known: Array, targets: Array) -> Array:
    """Probe weights nearest to equal, in entropy, with sum_j omega_j known_kj = targets_k.

    (k, d), (k,) -> (d,). Weights omega_j ~ exp(-b.known_j) are positive, so the weighted measure
    still is one. The last targets are dropped while no such weights exist.
    """
    n_probes = known.shape[1]
    equal = np.full(n_probes, 1 / n_probes)
    for count in range(len(targets), 0, -1):
        scatter = known[:count].std(1)
        kept = scatter > 1e-12 * abs(targets[:count])  # else every probe has it right already
        if not kept.any():
            return equal
        c = ((known[:count] - targets[:count, None])[kept] / scatter[kept, None]).T
        zero = np.zeros(c.shape[1])
        b, gradient, _ = levenberg(c, np.log(equal), zero, zero, zero, tol=1e-10, most=50)
        if abs(gradient).max() <= 1e-8:
            weights = np.exp(-c @ b)
            return np.asarray(weights / weights.sum())
    return equal


def plan(n: int, n_moments: int, n_probes: int) -> tuple[int, int, int, int]:
    """(short runs, their steps, long runs, their steps) within n_probes x steps products."""
    steps = min((n_moments + 1) // 2, n)
    budget = n_probes * steps
    long_steps = min(n, int(LONG_SHARE * budget) // LONG_RUNS, max(LONG_KRYLOV // n, steps))
    if long_steps <= steps or n_probes <= LONG_RUNS:
        return n_probes, steps, 0, steps
    return (budget - LONG_RUNS * long_steps) // steps, steps, LONG_RUNS, long_steps


@dataclass(frozen=True, eq=False)
class Evidence:
    """Runs from d probes, the shortest first, and what they say of the low moments.

    runs     (theta, w), (., k) each, of every length of run
    upper    the largest Ritz value
    known    (2, d)    E[lambda], E[lambda^2] by each probe
    omega    (d,)      the probes' weights: calibrated where K has entries, else equal
    """

    runs: list[tuple[Array, Array]]
    upper: float
    degree: int
    known: Array
    omega: Array

    def by_probe(self, f: Callable[[Array], Array]) -> Array:
        """E[f] by each probe's own quadrature, (..., d)."""
        return _by_probe(self.runs, f)

    @property
    def exact(self) -> Array | None:
        """The moments that the weights were calibrated to, None where they are equal."""
        return self.known if np.ptp(self.omega) > 0 else None


def _by_probe(runs: list[tuple[Array, Array]], f: Callable[[Array], Array]) -> Array:
    return np.concatenate([(w[..., None] * f(t)).sum(1) for t, w in runs]).T


def gather(
    operator: Operator, runs: list[tuple[Array, Array]], degree: int, calibrated: bool = True
) -> Evidence:
    """``Evidence`` of moments to ``degree``, calibrated where K has entries."""
    known = _by_probe(runs, lambda t: np.stack([t, t * t], axis=-1))
    omega = np.full(known.shape[1], 1 / known.shape[1])
    diagonal = operator.diagonal() if calibrated else None
    squares = operator.squared_norm() if calibrated else None
    if diagonal is not None and squares is not None:
        omega = calibrate(known, np.array([diagonal.mean(), squares / operator.n]))
    upper = max(float(theta.max()) for theta, _ in runs)
    return Evidence(runs, upper, degree, known, omega)


def estimate(task: Task) -> tuple[float, LogdetInfo]:
    """n E_q[log lambda] under the tilt; Ritz values below ``bounds.lower`` are moved up to it."""
    n_short, steps, n_long, long_steps = plan(task.operator.n, task.n_moments, task.n_probes)
    long = short = lanczos.ritz(task.operator, steps, n_short, task.rng)
    runs = [short.gauss(task)]
    if n_long:
        long = lanczos.ritz(task.operator, long_steps, n_long, task.rng)
        runs.append(long.gauss(task))
    value, info = tilt(task, gather(task.operator, runs, 2 * steps - 1), n_long)
    return value, judged(info, long, task, unseen(long, task))


def tilt(task: Task, evidence: Evidence, n_long: int) -> tuple[float, LogdetInfo]:
    """The estimate with q0 from the last of the evidence's runs, ``n_long`` of them or all."""
    n, upper, degree, omega = task.operator.n, evidence.upper, evidence.degree, evidence.omega
    start = time.perf_counter()
    theta, weights = evidence.runs[0]
    fine, fine_weights = evidence.runs[-1]
    x = np.concatenate([fine[fine_weights > 0], theta[weights > 0]])
    long_masses = (1 - SHORT_SHARE) * fine_weights[fine_weights > 0] / len(fine)
    masses = np.concatenate([long_masses, SHORT_SHARE * weights[weights > 0] / len(theta)])
    q0 = atoms(x, masses / masses.sum(), upper, degree)
    per_probe = evidence.by_probe(lambda t: CHEBYSHEV(2 * t / upper - 1, degree)[..., 1:])
    mu = np.concatenate([[1.0], (per_probe @ omega - q0.mean) @ q0.whiten])
    for ridge in RIDGES:
        density = solve(mu, q0, ridge=ridge, tol=TOLERANCE, max_iterations=100, orthogonal=True)
        if density.converged:
            break
    tilted = density.pdf(q0.u) * q0.masses
    tilted /= tilted.sum()
    seconds = time.perf_counter() - start
    phi = CHEBYSHEV(2 * x / upper - 1, degree)
    return n * float(tilted @ np.log(x)), task.info(
        "meme",
        _standard_error(n, x, tilted, phi, per_probe, evidence.exact, n_long),
        bounds=(task.bounds.lower, upper),
        n_moments=degree,
        density=SpectralDensity.from_atoms(x, tilted),
        entropy=-float(tilted @ np.log(np.maximum(tilted, 1e-300) / q0.masses)),
        residual=float(density.residual),
        # Of the problem with its ridge, which leaves a residual of ridge times the multipliers.
        converged=bool(density.converged),
        solve_seconds=seconds,
        prior="ritz",
    )


def _standard_error(
    n: int, x: Array, tilted: Array, phi: Array, moments: Array, exact: Array | None, n_long: int
) -> float:
    """Of the linearised estimate, from its two independent parts.

    log lambda = g + rest, with g its regression on the moments under q. g is averaged over all
    probes, and what the ``exact`` moments do not explain of it scatters; the rest is seen by the
    long runs alone, too few to show a scatter, so it is taken at its bound: for signs, the variance
    of z.f(K) z is at most 2 n E[f^2].
    """
    fit = regressed_log(x, tilted, phi, RESOLVED)
    rest = np.log(x) - phi @ fit
    coarse = n * scatter(fit[1:] @ moments, exact)
    fine = 2 * n * float(tilted @ rest**2) / (n_long or moments.shape[1])
    return float(np.sqrt(coarse**2 + fine))


def scatter(g: Array, exact: Array | None) -> float:
    """Standard error of the mean of g (d,) over probes, of what ``exact`` (2, d) does not explain.

    nan where fewer than three degrees of freedom are left.
    """
    rows = np.ones((1, len(g))) if exact is None else np.vstack([np.ones(len(g)), exact])
    freedom = len(g) - len(rows)
    if freedom < 3:
        return float("nan")
    rows = rows / abs(rows).max(1, keepdims=True)  # else K's units decide which of them count
    rest = g - np.linalg.lstsq(rows.T, g, rcond=None)[0] @ rows
    return float(np.sqrt(rest @ rest / freedom / len(g)))
