"""Covariances with places given the data: against dense algebra, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.surrogate import KERNELS, condition
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.kernel import named_kernel
from fitbo.surrogate.links import link
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET
from tests.surrogate.problems import central_difference, make_problem

D, ETAS = 3, 2


def linked(kernel: str, places: int = 4):
    problem = make_problem(9, D, 3, kernel=kernel)
    surrogate = condition(problem.X, problem.y, problem.log_theta, kernel=kernel, etas=ETAS)
    return surrogate, link(surrogate, problem.rng.random((places, D))), problem.candidates


@pytest.mark.parametrize("kernel", KERNELS)
def test_they_are_the_posterior_covariances(kernel: str) -> None:
    surrogate, links, U = linked(kernel)
    found, plain = links(U), surrogate._latent(U, False)
    assert_allclose(found.m.reshape(len(U), -1), plain.m, rtol=1e-12)
    assert_allclose(np.repeat(found.v, ETAS, axis=1), plain.v, rtol=1e-12)
    X = surrogate.X_data
    for t in range(3):
        theta = surrogate.theta[t : t + 1]

        def k(A, B, theta=theta):
            rho = named_kernel(kernel).correlation(theta, squared_differences(A, B))
            return theta.signal_variance[0] * rho.reshape(len(A), len(B)) + MEAN_VARIANCE

        own = surrogate.noise[t] + NUGGET * theta.signal_variance[0]
        explained = k(U, X) @ np.linalg.solve(k(X, X) + np.diag(own), k(X, links.place))
        assert_allclose(found.c[:, t], k(U, links.place) - explained, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_by_differences(kernel: str) -> None:
    _, links, U = linked(kernel)
    found = links(U, gradient=True)
    for name in ("m", "v", "c"):
        by_differences = central_difference(lambda X, n=name: getattr(links(X), n), U, 1e-6)
        assert_allclose(getattr(found, f"d{name}"), by_differences, atol=1e-7)
