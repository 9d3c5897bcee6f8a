"""MEMe: the log-determinant under the maximum-entropy spectral density.

The moments of the spectrum, by probes, are those of a density q on [lower, upper]; of all such
densities MEMe takes the one nearest to a prior q0, and

    log det K ~ n E_q[log lambda].

======  ============  ======================================================================
symbol  shape         meaning
======  ============  ======================================================================
u       (G,)          2 (lambda - lower) / (upper - lower) - 1, in [-1, 1]
phi_i   (G, m + 1)    polynomials in u: powers, Chebyshev's or Legendre's
q0      (G,)          prior: flat in lambda (the paper's), flat in log lambda, or a function
======  ============  ======================================================================

The logarithm and the priors are steep where lambda is small, so the integration nodes are graded:
panels that shrink geometrically towards lower. The paper's grid of 1e-4 on [0, 1] sees nothing
below 1e-4.

``prior="ritz"``, which takes q0 from long Lanczos runs, is in ``fitbo.logdet.ritz``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from fitbo.logdet.bounds import Bounds
from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.operator import Operator
from fitbo.logdet.trace import SEEN, chebyshev_moments, in_family, regressed_log, standard_error
from fitbo.maxent import Basis, MaxEntDensity, solve
from fitbo.maxent.basis import lobatto
from fitbo.mixture import Array

Prior = Callable[[Array], Array]

GRADING = 4.0  # each panel towards lower is this much shorter than the one before
FINEST = 1e-13  # length of the last panel, when nothing larger is known
PANEL_NODES = 12
NODES_PER_DEGREE = 4.0  # over the whole interval, shared out as the polynomials oscillate
RESIDUAL = 1e-8
# Ridges to try in turn when there is none to be had without: a spectrum of few or isolated
# eigenvalues has no density with its moments, and a faint ridge gives the nearest there is. Each
# solve starts from the one before.
RIDGES = (1e-8, 1e-10, 1e-12)
REFINED = 4
TOLERANCE = 1e-10
EASY, MAX_ITERATIONS = 40, 150


@dataclass(frozen=True)
class GradedBasis(Basis):
    """Polynomials in u, integrated on panels graded towards u = -1.

    ``finest`` is the length of the last panel: lower / upper is enough where that is known.
    """

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
        # T_k(u) = cos(k arccos u) turns k times as often as the angle does.
        angle = np.arccos(np.clip(1 - high, -1, 1)) - np.arccos(np.clip(1 - low, -1, 1))
        n = PANEL_NODES + int(np.ceil(NODES_PER_DEGREE * degree * angle / np.pi))
        x, w = lobatto(refine * n)
        points.append(low + 0.5 * (high - low) * (1 + x) - 1)
        weights.append(0.5 * (high - low) * w)
    return np.concatenate(points), np.concatenate(weights)


def spectral_prior(prior: str | Prior, bounds: Bounds) -> Prior | None:
    """q0 as a function of u; None where it is flat."""
    if callable(prior):

        def given(u: Array) -> Array:
            return np.asarray(prior(bounds.from_unit(u)), dtype=np.float64)

        return given
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
    plain = solve(mu, family, q0, tol=TOLERANCE, max_iterations=EASY, orthogonal=True)
    if plain.converged and abs(plain.log_mass(2)) < RESIDUAL:
        return plain, 1
    best, start = plain, None
    for ridge in RIDGES:
        density = solve(
            mu,
            family,
            q0,
            ridge=ridge,
            tol=TOLERANCE,
            max_iterations=MAX_ITERATIONS,
            refine=REFINED,
            orthogonal=True,
            start=start,
        )
        if start is not None and not density.converged:
            break
        best, start = density, density.multipliers
        if density.residual <= RESIDUAL:
            break
    return best, REFINED


def spectral_density(density: MaxEntDensity, bounds: Bounds, refine: int = 1) -> SpectralDensity:
    """A MaxEnt density in u as one in lambda, of mass one, on the nodes it was solved on.

    The printed algorithm integrates a q of mass one up to its tolerance only; here it is scaled.
    """
    u, w = density.basis.nodes(refine)
    masses = density.pdf(u) * w
    half_width = 0.5 * (bounds.upper - bounds.lower)

    def pdf(points: ArrayLike) -> Array:
        unit = bounds.to_unit(np.asarray(points, dtype=np.float64))
        return density.pdf(unit) / (half_width * masses.sum())

    points = bounds.from_unit(u)
    points = np.maximum(points, 1e-300)  # the end itself, of no weight, when lower = 0
    return SpectralDensity.from_atoms(points, masses, pdf)


def meme(
    operator: Operator,
    n_moments: int,
    n_probes: int,
    bounds: Bounds,
    rng: np.random.Generator,
    basis: str = "legendre",
    prior: str | Prior = "flat",
) -> tuple[float, LogdetInfo]:
    """n E_q[log lambda] from ``n_moments`` moments; half as many products a probe.

    The standard error is that of the linearised estimate: by the envelope theorem's twin, a change
    of the moments changes E_q[log lambda] by their regression c = Cov_q[phi]^-1 Cov_q[phi, log].
    """
    n = operator.n
    if bounds.upper - bounds.lower <= 1e-12 * bounds.upper:  # K is a multiple of I
        value = n * float(np.log(bounds.upper))
        return value, LogdetInfo("meme", operator.products, 0.0, bounds.pair)
    chebyshev = chebyshev_moments(operator, bounds, n_moments, n_probes, rng)
    start = time.perf_counter()
    density, refine = maxent_spectrum(in_family(chebyshev.mean(0), basis), basis, bounds, prior)
    spectrum = spectral_density(density, bounds, refine)
    seconds = time.perf_counter() - start
    value = n * spectrum.expect(np.log)
    residual = float(density.residual)
    return value, LogdetInfo(
        method="meme",
        products=operator.products,
        standard_error=_standard_error(spectrum, bounds, chebyshev, n),
        bounds=bounds.pair,
        n_moments=n_moments,
        density=spectrum,
        entropy=float(density.entropy) + float(np.log(0.5 * (bounds.upper - bounds.lower))),
        residual=residual,
        converged=residual <= RESIDUAL,
        solve_seconds=seconds,
    )


def _standard_error(spectrum: SpectralDensity, bounds: Bounds, moments: Array, n: int) -> float:
    """Scatter over probes of the regression of log lambda on the moments, (d, m + 1)."""
    phi = chebvander(bounds.to_unit(spectrum.points), moments.shape[1] - 1)
    fit = regressed_log(spectrum.points, spectrum.masses, phi, SEEN)
    return n * standard_error(moments @ fit)
