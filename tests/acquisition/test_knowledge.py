"""The knowledge gradient: against conditioning on every value that may come, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.acquisition.knowledge import KnowledgeGradient
from fitbo.acquisition.maxvalue import in_g
from fitbo.surrogate import condition
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.kernel import named_kernel
from fitbo.surrogate.links import link
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET
from tests.surrogate.problems import central_difference, make_problem

D = 2


def made(kernel: str = "smooth", thetas: int = 3, etas: int = 2, noise: float = -3.0):
    problem = make_problem(8, D, thetas, kernel=kernel)
    problem.log_theta[:, D + 1] = noise
    surrogate = condition(problem.X, problem.y, problem.log_theta, kernel=kernel, etas=etas)
    return KnowledgeGradient(link(surrogate, problem.rng.random((5, D)))), problem.candidates


def means_after(surrogate, x, places, t):
    """mu at the places after the value at x that is t standard deviations above its mean.

    By solving with the datum appended, anew for each sample.
    """
    kernel, total = surrogate.covariance.kernel, 0.0
    for j in range(surrogate.n_samples):
        i = j // surrogate.etas
        theta = surrogate.theta[i : i + 1]
        X = np.concatenate([surrogate.X_data, x[None]])

        def k(A, B, theta=theta):
            rho = named_kernel(kernel).correlation(theta, squared_differences(A, B))
            return theta.signal_variance[0] * rho.reshape(len(A), len(B)) + MEAN_VARIANCE

        latent = surrogate._latent(x[None], False)
        m, v = latent.m[0, j], latent.v[0, j]
        n = float(in_g(surrogate.noise_variance[i], m * m + v)[0])
        K = k(X, X) + np.diag(np.append(surrogate.noise[i] + NUGGET * theta.signal_variance[0], n))
        L = np.linalg.inv(surrogate.inverse_factor[i])
        g = L @ L.T @ surrogate.alpha.reshape(surrogate.n_samples, -1)[j]
        weights = np.linalg.solve(K, k(X, places))
        mean = np.append(g, m + np.sqrt(v + n) * t) @ weights
        variance = theta.signal_variance[0] + MEAN_VARIANCE - (k(X, places) * weights).sum(0)
        total = total + surrogate.eta[j] + 0.5 * (mean * mean + variance)
    return total / surrogate.n_samples


def test_it_is_the_expected_fall_of_the_lowest_mean() -> None:
    gain, U = made()
    surrogate, places = gain.links.surrogate, gain.links.place
    now = surrogate.predict(places).mean.min()
    t = np.linspace(-5, 5, 401)
    weights = np.exp(-0.5 * t * t) / np.exp(-0.5 * t * t).sum()
    for x, value in zip(U, gain(U), strict=True):
        everywhere = np.concatenate([places, x[None]])
        after = [means_after(surrogate, x, everywhere, each).min() for each in t]
        assert_allclose(np.exp(value), now - weights @ after, rtol=0.05, atol=2e-5)


def test_no_value_is_expected_to_do_harm() -> None:
    for noise in (-9.0, -3.0, 1.0):
        gain, _ = made(noise=noise)
        U = np.random.default_rng(3).random((200, D))
        assert (gain._gain(gain.links(U), gradient=False)[0] > -1e-12).all()


def test_noise_costs_knowledge() -> None:
    """Of one and the same posterior: only what the next value says changes."""
    gain, _ = made("additive")
    surrogate, U = gain.links.surrogate, np.random.default_rng(3).random((50, D))
    before = gain(U)
    surrogate.theta.noise_variance[:] *= 100
    after = gain(U)
    assert (after < before + 1e-6).all()
    assert after.max() < before.max() - 0.5


@pytest.mark.parametrize("kernel", ["matern52", "additive", "smooth"])
def test_the_gradient_by_differences(kernel: str) -> None:
    gain, _ = made(kernel)
    U = np.random.default_rng(5).random((60, D))
    U = U[np.argsort(-gain(U))[:12]]  # where it is not all rounding
    value, slope = gain.value_and_grad(U)
    assert_allclose(value, gain(U), rtol=1e-12)
    by_differences = central_difference(gain, U, 1e-7)
    # A kink of one of the nodes may lie between the two points of a difference.
    close = np.isclose(slope, by_differences, rtol=1e-4, atol=1e-4).all(1)
    assert close.mean() > 0.8


def test_where_nothing_can_be_learnt_it_is_finite() -> None:
    gain, _ = made()
    far = np.full((1, D), 0.5) + 1e4
    value, slope = gain.value_and_grad(far)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
