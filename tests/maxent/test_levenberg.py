"""The solver for one hard problem, against the batched one, scipy, and its own promises."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from scipy.special import logsumexp

from fitbo.logdet.meme import GradedBasis
from fitbo.maxent import Basis, solve
from fitbo.maxent.levenberg import levenberg


def problem(n_nodes: int = 60, m: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((n_nodes, m))
    target = rng.random(n_nodes)
    return phi, np.log(rng.random(n_nodes)), (target / target.sum()) @ phi


def test_it_finds_scipy_s_minimum() -> None:
    phi, log_measure, mu = problem()
    ridge = np.array([0.0, 1e-3, 0.0, 0.1, 0.0])

    def dual(a: np.ndarray) -> float:
        return float(logsumexp(log_measure - phi @ a) + a @ mu + 0.5 * ridge @ a**2)

    a, gradient, _ = levenberg(phi, log_measure, mu, ridge, np.zeros(5), tol=1e-12, most=50)
    assert abs(gradient).max() <= 1e-12
    assert_allclose(a, optimize.minimize(dual, np.zeros(5), tol=1e-12).x, atol=1e-5)
    assert_allclose(optimize.approx_fprime(a, dual, 1e-7), 0, atol=1e-5)


def test_it_agrees_with_the_batched_newton() -> None:
    basis = Basis("legendre", 12)
    u, w = basis.nodes(4)
    p = w * (np.exp(-20 * (u - 0.3) ** 2) + 0.3)
    mu = (p / p.sum()) @ basis.values(u)
    batch = np.stack([mu, 0.5 * (mu + np.eye(13)[0])])
    newton = solve(batch, basis)
    orthogonal = solve(batch, basis, orthogonal=True)
    assert_allclose(orthogonal.entropy, newton.entropy, atol=1e-9)
    assert_allclose(orthogonal.multipliers, newton.multipliers, atol=1e-4)
    assert_allclose(orthogonal.dual, newton.dual, atol=1e-9)
    assert orthogonal.converged.all()
    again = solve(batch, basis, orthogonal=True, start=orthogonal.multipliers)
    assert (again.iterations == 0).all()


def test_it_goes_where_the_hessian_cannot() -> None:
    """Small eigenvalues and a few isolated ones: at the minimum the residual is ridge a."""
    x = np.concatenate([np.geomspace(1e-6, 1e-2, 200), [0.1, 0.35, 0.99]])
    basis = GradedBasis("legendre", 40)
    mu = basis.values(2 * x - 1).mean(0)

    def missing(**options: bool) -> float:
        density = solve(mu, basis, ridge=1e-10, jitter=0.0, tol=1e-10, refine=4, **options)
        return float(abs(density.residual - 1e-10 * abs(density.multipliers[1:]).max()))

    assert missing(orthogonal=True) < 1e-10
    assert missing() > 1e-8


def test_infeasible_moments_are_not_called_converged() -> None:
    density = solve([1.0, 0.5, 0.1], "power", max_iterations=50, orthogonal=True)
    assert not density.converged
    assert density.residual > 1e-3


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_steps_never_raise_the_dual(scale: float) -> None:
    phi, log_measure, mu = problem()
    phi, mu = scale * phi, scale * mu
    zero = np.zeros(5)
    values = []
    for most in range(8):
        a, _, _ = levenberg(phi, log_measure, mu, zero, zero, tol=1e-14, most=most)
        values.append(logsumexp(log_measure - phi @ a) + a @ mu)
    assert (np.diff(values) <= 1e-12).all()
    assert values[-1] < values[0]
