"""One more value for each sample: against dense algebra with the datum, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.surrogate import condition
from fitbo.surrogate.conditioned import knowing
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.kernel import named_kernel
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET

D, N, T = 3, 9, 4


def known(kernel: str, etas: int = 1):
    rng = np.random.default_rng(0)
    X, y = rng.random((N, D)), rng.standard_normal(N)
    shares = 1 if kernel == "additive" else 0
    columns = [rng.uniform(0.2, 0.8, (T, D)), rng.uniform(0.5, 2.0, (T, 1))]
    columns += [np.full((T, 1), 1e-4), rng.uniform(0.2, 1.0, (T, 1)), np.full((T, shares), 1.3)]
    surrogate = condition(X, y, np.log(np.concatenate(columns, 1)), kernel=kernel, etas=etas)
    M = T * etas
    place = rng.random((M, D))
    latent = surrogate._latent(place, False)
    value = np.diagonal(latent.m) + 1.5 * np.sqrt(np.diagonal(latent.v)) * rng.standard_normal(M)
    return surrogate, place, value, rng.random((5, D))


def dense(surrogate, kernel: str, t: int, k: int, place, value, U):
    """Mean and variance of g at U given the data and the one more, by solving all anew."""
    X = np.concatenate([surrogate.X_data, place[None]])
    theta = surrogate.theta[t : t + 1]

    def covariance(A, B):
        rho = named_kernel(kernel).correlation(theta, squared_differences(A, B))
        return theta.signal_variance[0] * rho.reshape(len(A), len(B)) + MEAN_VARIANCE

    own = np.append(surrogate.noise[t], 0.0) + NUGGET * theta.signal_variance[0]
    K, cross = covariance(X, X) + np.diag(own), covariance(U, X)
    L = surrogate.inverse_factor[t]
    g = np.append(np.linalg.inv(L) @ np.linalg.inv(L).T @ surrogate.alpha[t, k], value)
    weights = np.linalg.solve(K, cross.T)
    prior = theta.signal_variance[0] + MEAN_VARIANCE
    return weights.T @ g, prior - np.einsum("bn,nb->b", cross, weights)


@pytest.mark.parametrize("etas", [1, 2])
@pytest.mark.parametrize("kernel", ["matern52", "additive"])
def test_it_is_the_posterior_with_the_datum_appended(kernel: str, etas: int) -> None:
    surrogate, place, value, U = known(kernel, etas)
    made = knowing(surrogate, place, value)
    latent, plain = made._latent(U, False), surrogate._latent(U, False)
    for t in range(T):
        for k in range(etas):
            j, first = t * etas + k, 2 * t * etas + k
            assert_allclose(latent.m[:, first], plain.m[:, j], rtol=1e-12)
            assert_allclose(latent.v[:, first], plain.v[:, j], rtol=1e-12)
            m, v = dense(surrogate, kernel, t, k, place[j], value[j], U)
            assert_allclose(latent.m[:, first + etas], m, rtol=1e-7, atol=1e-7)
            assert_allclose(latent.v[:, first + etas], v, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ["matern52", "additive"])
def test_gradients_by_differences(kernel: str) -> None:
    surrogate, place, value, U = known(kernel, 2)
    made, h = knowing(surrogate, place, value), 1e-6
    latent = made._latent(U, True)
    for i in range(D):
        up, down = (made._latent(U + s * h * np.eye(D)[i], False) for s in (1, -1))
        assert_allclose(latent.dm[:, :, i], (up.m - down.m) / (2 * h), rtol=1e-5, atol=1e-6)
        assert_allclose(latent.dv[:, :, i], (up.v - down.v) / (2 * h), rtol=1e-5, atol=1e-6)


def test_at_its_place_a_sample_is_certain_and_next_to_a_datum_learns_nothing() -> None:
    surrogate, place, value, _ = known("matern52")
    place[1] = surrogate.X_data[0]
    made = knowing(surrogate, place, value)
    latent = made._latent(place, False)
    for j in (0, 2, 3):
        assert_allclose(latent.m[j, 2 * j + 1], value[j], atol=1e-6)
        assert latent.v[j, 2 * j + 1] < 1e-8
    mixture = made.predict(place)
    assert np.isfinite(mixture.means).all()
    assert_allclose(mixture.weights.sum(-1), 1.0)
