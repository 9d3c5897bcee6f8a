"""Where an ensemble starts that has no past: draws about the modes of the density.

    modes        (k, P)     local maxima of the log-density, found from several starts
    precision    (k, P, P)  -d^2 log p at each, made definite
    weights      (k,)       exp(log p) sqrt(det(2 pi covariance)): the mass about each mode

The ensemble is drawn from the mixture of multivariate t laws about the modes, whose log-density it
states. A sampler resamples it by the ratio of the two densities (see ``ensemble``), so that the
approximation decides how many moves are needed, and not what they lead to. The t law has heavier
tails than a Gaussian: a posterior that is wider than its curvature says is still covered.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp

from fitbo.mixture import Array
from fitbo.sampling.ensemble import Ensemble

ValueAndGrad = Callable[[Array], tuple[Array, Array]]

FREEDOM = 8.0  # degrees of freedom of the t laws
DIFFERENCE = 1e-3  # step of the Hessian by differences of gradients
SAME_MODE = 0.1  # distance, in every coordinate, within which two maxima are one
NEGLIGIBLE = 12.0  # nats below the best mode at which another is left out
ITERATIONS = 60


def climb(
    function: ValueAndGrad,
    starts: Array,
    bound: float,
    iterations: int = ITERATIONS,
    accuracy: float = 1e-7,
) -> tuple[Array, Array]:
    """Local maxima from each start by L-BFGS, (k, P), and their log-densities (k,), best first.

    ``accuracy``: the relative gain of an iteration below which a climb ends.
    """
    from scipy.optimize import minimize  # a third of a second to import

    def negative(x: Array) -> tuple[float, Array]:
        value, slope = function(x[None])
        return (-float(value[0]), -slope[0]) if np.isfinite(value[0]) else (1e12, np.zeros(x.size))

    found = [
        minimize(
            negative,
            np.clip(start, -bound, bound),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-bound, bound)] * start.size,
            options={"maxiter": iterations, "ftol": accuracy},
        )
        for start in starts
    ]
    order = np.argsort([each.fun for each in found], kind="stable")
    kept: list[int] = []
    for i in order:
        near = any(abs(found[i].x - found[j].x).max() < SAME_MODE for j in kept)
        if not near and found[i].fun <= found[order[0]].fun + NEGLIGIBLE:
            kept.append(int(i))
    return np.array([found[i].x for i in kept]), -np.array([found[i].fun for i in kept])


def covariance_at(function: ValueAndGrad, mode: Array, scale: Array) -> Array:
    """The inverse of the negative Hessian, (P, P), no direction wider than ``scale`` (P,).

    The Hessian is of central differences of the gradient, in units of ``scale``: there a precision
    below one, or a negative one, is taken for one.
    """
    steps = DIFFERENCE * np.diag(scale)
    slopes = function(np.concatenate([mode + steps, mode - steps]))[1]
    rows = (slopes[len(mode) :] - slopes[: len(mode)]) / (2 * DIFFERENCE)
    precision = 0.5 * (rows * scale + (rows * scale).T)
    values, vectors = np.linalg.eigh(precision)
    half = scale[:, None] * vectors / np.sqrt(np.maximum(values, 1.0))
    return half @ half.T


def laplace_ensemble(
    function: ValueAndGrad, modes: Array, scale: Array, walkers: int, rng: np.random.Generator
) -> Ensemble:
    """``walkers`` draws from the mixture of t laws about the modes, with its log-density."""
    values = function(modes)[0]
    roots = np.linalg.cholesky(np.array([covariance_at(function, m, scale) for m in modes]))
    log_roots = np.log(np.einsum("kii->ki", roots)).sum(1)
    log_weights = values + log_roots
    log_weights -= logsumexp(log_weights)
    P = modes.shape[1]
    which = rng.choice(len(modes), walkers, p=np.exp(log_weights))
    wide = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, walkers))[:, None]
    x = wide * rng.standard_normal((walkers, P))
    for k, (mode, root) in enumerate(zip(modes, roots, strict=True)):
        x[which == k] = mode + x[which == k] @ root.T
    z = np.linalg.solve(roots, (x - modes[:, None]).swapaxes(1, 2))
    q = np.square(z).sum(1)
    log_t = (
        gammaln(0.5 * (FREEDOM + P))
        - gammaln(0.5 * FREEDOM)
        - 0.5 * P * np.log(FREEDOM * np.pi)
        - log_roots[:, None]
        - 0.5 * (FREEDOM + P) * np.log1p(q / FREEDOM)
    )
    return Ensemble(x, logsumexp(log_t + log_weights[:, None], axis=0))
