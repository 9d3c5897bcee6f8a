"""MEMe: the log-determinant under the maximum-entropy spectral density.

The moments of the spectrum, by probes, are those of a density q on [lower, upper]; of all such
densities MEMe takes the one nearest to a prior q0, and

    log det K ~ n E_q[log lambda].

    u       (G,)          2 (lambda - lower) / (upper - lower) - 1, in [-1, 1]
    phi_i   (G, m + 1)    polynomials in u: powers, Chebyshev's or Legendre's
    q0      (G,)          prior: flat in lambda (the paper's), flat in log lambda, or a function

The logarithm and the priors are steep where lambda is small, so the integration nodes are graded:
panels that shrink geometrically towards lower. The paper's grid of 1e-4 on [0, 1] resolves nothing
below 1e-4.

``prior="ritz"``, which takes q0 from long Lanczos runs, is in ``fitbo.logdet.ritz``; the default,
which chooses, in ``fitbo.logdet.auto``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.trace import SEEN, Task, in_family, regressed_log, standard_error
from fitbo.maxent import Basis, MaxEntDensity, solve
from fitbo.maxent.basis import lobatto
from fitbo.maxent.solve import Prior
from fitbo.mixture import Array

GRADING = 4.0  # each panel towards lower is this much shorter than the one before
FINEST = 1e-13  # length of the last panel, when nothing larger is known
PANEL_NODES = 12
NODES_PER_DEGREE = 4.0  # over the whole interval, distributed as the polynomials oscillate
RESIDUAL = 1e-8
# Ridges to try in turn where the solve without one fails: a spectrum of few or isolated eigenvalues
# has no density with its moments, and a faint ridge gives the nearest. Each solve starts from the
# one before.
RIDGES = (1e-8, 1e-10, 1e-12)
REFINED = 4
EASY: Any = {"orthogonal": True, "tol": 1e-10, "max_iterations": 40}
HARD: Any = {**EASY, "max_iterations": 150, "refine": REFINED}


@dataclass(frozen=True)
class GradedBasis(Basis):
    """Polynomials in u, integrated on panels graded towards u = -1, the last ``finest`` long."""

    finest: float = FINEST

    def nodes(self, refine: int = 1) -> tuple[Array, Array]:
        """Gauss-Legendre-Lobatto nodes and weights of every panel, (G,) each."""
        return _graded(self.degree, self.finest, refine)


@lru_cache(maxsize=64)
def _graded(degree: int, finest: float, refine: int) -> tuple[Array, Array]:
    n_panels = max(1, int(np.ceil(np.log(2 / finest) / np.log(GRADING))))
    # Panels in s = 1 + u, so that small s keep their digits.
    edges = np.concatenate([[0.0], 2 * GRADING ** -np.arange(n_panels, -1, -1.0)])
    points, weights = [], []
    for low, high in pairwise(edges):
        # T_k(u) = cos(k arccos u) oscillates k times as often as the angle does.
        angle = np.arccos(np.clip(1 - high, -1, 1)) - np.arccos(np.clip(1 - low, -1, 1))
        n = PANEL_NODES + int(np.ceil(NODES_PER_DEGREE * degree * angle / np.pi))
        x, w = lobatto(refine * n)
        points.append(low + 0.5 * (high - low) * (1 + x) - 1)
        weights.append(0.5 * (high - low) * w)
    return np.concatenate(points), np.concatenate(weights)


def spectral_prior(prior: str | Prior, bounds: Bounds) -> Prior | None:
    """q0 as a function of u; None where it is flat."""
    if callable(prior):
        return lambda u: np.asarray(prior(bounds.from_unit(u)), dtype=np.float64)
    if prior == "flat":
        return None
    if bounds.lower <= 0:
        raise ValueError(
            'prior="log" needs a positive lower bound of the spectrum, got bounds of '
            f"{bounds.pair}; pass bounds=(lower, None), for a kernel matrix the noise variance"
        )
    return lambda u: 1 / bounds.from_unit(u)


def maxent_spectrum(
    moments: ArrayLike, basis: str, bounds: Bounds, prior: str | Prior = "flat"
) -> tuple[MaxEntDensity, int]:
    """The density in u with these moments of ``basis``, (m + 1,), and its nodes' refinement."""
    mu = np.asarray(moments, dtype=np.float64)
    finest = max(FINEST, bounds.lower / bounds.upper / GRADING)
    family = GradedBasis(basis, len(mu) - 1, finest=finest)
    q0 = spectral_prior(prior, bounds)
    plain = solve(mu, family, q0, **EASY)
    if plain.converged and abs(plain.log_mass(2)) < RESIDUAL:
        return plain, 1
    best, start = plain, None
    for ridge in RIDGES:
        density = solve(mu, family, q0, ridge=ridge, start=start, **HARD)
        if start is not None and not density.converged:
            break
        best, start = density, density.multipliers
        if density.residual <= RESIDUAL:
            break
    return best, REFINED


def spectral_density(density: MaxEntDensity, bounds: Bounds, refine: int = 1) -> SpectralDensity:
    """A MaxEnt density in u as one in lambda, of mass one, on the nodes it was solved on.

    The paper's q has mass one only up to its solver's tolerance; here it is scaled.
    """
    u, w = density.basis.nodes(refine)
    masses = density.pdf(u) * w
    half_width = 0.5 * (bounds.upper - bounds.lower)

    def pdf(points: ArrayLike) -> Array:
        unit = bounds.to_unit(np.asarray(points, dtype=np.float64))
        return density.pdf(unit) / (half_width * masses.sum())

    points = np.maximum(bounds.from_unit(u), 1e-300)  # the end itself, of no weight, at lower = 0
    return SpectralDensity.from_atoms(points, masses, pdf)


def estimate(task: Task) -> tuple[float, LogdetInfo]:
    """n E_q[log lambda] from ``n_moments`` moments; half as many products per probe."""
    if exact := task.multiple_of_identity("meme"):
        return exact
    moments = task.moments(task.bounds)
    return answer(task, moments, moments.mean(0), task.bounds, standard_error, task.prior)


def answer(
    task: Task,
    moments: Array,
    mean: Array,
    bounds: Bounds,
    error: Callable[[Array], float],
    prior: str | Prior,
) -> tuple[float, LogdetInfo]:
    """n E_q[log lambda] for the probes' Chebyshev moments (d, m + 1) and their mean (m + 1,).

    The standard error is that of the linearised estimate: a change of the moments changes
    E_q[log lambda] by their regression c = Cov_q[phi]^-1 Cov_q[phi, log]. ``error`` is that of the
    mean of one number per probe, (d,).
    """
    n = task.operator.n
    start = time.perf_counter()
    mu = in_family(mean, task.basis)
    density, refine = maxent_spectrum(mu, task.basis, bounds, prior)
    spectrum = spectral_density(density, bounds, refine)
    seconds = time.perf_counter() - start
    phi = chebvander(bounds.to_unit(spectrum.points), len(mu) - 1)
    fit = regressed_log(spectrum.points, spectrum.masses, phi, SEEN)
    residual = float(density.residual)
    return n * spectrum.expect(np.log), task.info(
        "meme",
        n * error(moments @ fit),
        bounds=bounds.pair,
        n_moments=len(mu) - 1,
        density=spectrum,
        entropy=float(density.entropy) + float(np.log(0.5 * (bounds.upper - bounds.lower))),
        residual=residual,
        converged=residual <= RESIDUAL,
        solve_seconds=seconds,
        prior=prior if isinstance(prior, str) else "function",
    )
