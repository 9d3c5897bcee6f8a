"""Paths are draws of the posterior: of its moments, its covariances, through its data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.surrogate import condition, named_kernel
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.hyperparameters import Hyperparameters
from fitbo.surrogate.paths import draw_paths
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET

KERNELS = ["rbf", "matern32", "matern52", "additive"]
N, D = 10, 2


def surrogate(kernel: str, copies: int = 1, etas: int = 1, log_noise: float = -9.0):
    rng = np.random.default_rng(0)
    X = rng.random((N, D))
    y = np.sin(5 * X[:, 0]) + X[:, 1] ** 2
    y = (y - y.mean()) / y.std()
    log_theta = [np.log(0.4), np.log(0.7), 0.2, log_noise, np.log(0.8)]
    log_theta += [0.3] * named_kernel(kernel).n_shares
    return X, y, condition(X, y, np.tile(log_theta, (copies, 1)), kernel=kernel, etas=etas)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_spectrum_is_that_of_the_kernel(kernel: str) -> None:
    rng = np.random.default_rng(1)
    k = named_kernel(kernel)
    theta = Hyperparameters.unpack(
        [[np.log(0.4), np.log(1.5), 0, 0, 0] + [0.5] * k.n_shares], D, k.n_shares
    )
    omega, a = k.spectrum(theta, 100_000, rng)
    assert_allclose((a * a).sum(1), 1.0)
    X1, X2 = rng.random((3, D)), rng.random((4, D))
    difference = (X1[:, None] - X2).reshape(-1, D)
    features = (a[0] ** 2 * np.cos(difference @ omega[0].T)).sum(1)
    # 100,000 features err by 1/sqrt(2 * 100,000) = 0.0022 in one standard deviation
    assert_allclose(features, k.correlation(theta, squared_differences(X1, X2))[0], atol=0.01)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_are_the_correlations_of_pairs_and_their_slopes(kernel: str) -> None:
    rng = np.random.default_rng(2)
    k = named_kernel(kernel)
    log_theta = 0.3 * rng.standard_normal((3, D + 3 + k.n_shares))
    theta = Hyperparameters.unpack(log_theta, D, k.n_shares)
    X, data = rng.random((3, D)), rng.random((5, D))
    r2 = (X[:, :, None] - data.T) ** 2 * theta.precisions[:, :, None]
    rho, slopes = k.rows(theta.share, r2.copy())
    for j in range(3):
        table = squared_differences(X[j : j + 1], data)
        expected, slope, parts = k.correlation_and_slopes(theta[j : j + 1], table)
        assert_allclose(rho[j], expected[0], rtol=1e-13)
        by_part = slope[0] if parts is None else slope[0] + parts[0]
        assert_allclose(np.broadcast_to(slopes[j], (D, 5)), np.broadcast_to(by_part, (D, 5)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_moments_are_those_of_the_prediction(kernel: str) -> None:
    _, _, s = surrogate(kernel, copies=4000)
    X = np.random.default_rng(3).random((6, D))
    f = draw_paths(s, np.random.default_rng(4))(X)[:, 0]
    mixture = s.predict(X)
    mean, std = mixture.means[:, 0], mixture.deviations[:, 0]
    # 4000 draws: the mean errs by std/63, a standard deviation by 1/89 of itself and its kurtosis
    assert_allclose(f.mean(0), mean, atol=5 * std.max() / 63)
    assert_allclose(f.std(0), std, rtol=0.1)


def test_the_covariance_is_that_of_dense_algebra() -> None:
    X, y, s = surrogate("matern52", copies=6000)
    new = np.random.default_rng(5).random((4, D))
    g = np.sqrt(2 * (draw_paths(s, np.random.default_rng(6))(new)[:, 0] - s.eta[:, None]))
    theta, k = s.theta[:1], named_kernel("matern52")

    def covariance(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        rho = k.correlation(theta, squared_differences(A, B)).reshape(len(A), len(B))
        return theta.signal_variance[0] * rho + MEAN_VARIANCE

    K = covariance(X, X) + np.diag(s.noise[0] + NUGGET * theta.signal_variance[0])
    c = covariance(new, X)
    dense = covariance(new, new) - c @ np.linalg.solve(K, c.T)
    sd = np.sqrt(np.diag(dense))
    positive = (c @ np.linalg.solve(K, np.sqrt(2 * (y - s.eta[0])))) / sd > 4  # |g| is g
    assert positive.sum() >= 2
    near = np.ix_(positive, positive)
    assert_allclose(
        np.cov(g.T)[near] / np.outer(sd, sd)[near], (dense / np.outer(sd, sd))[near], atol=0.08
    )


def test_a_path_passes_through_data_without_noise() -> None:
    X, y, s = surrogate("additive", copies=5, etas=3, log_noise=-30.0)
    assert_allclose(
        draw_paths(s, np.random.default_rng(7))(X), np.broadcast_to(y, (5, 3, N)), atol=1e-3
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_paths_have_their_values_and_gradients(kernel: str) -> None:
    _, _, s = surrogate(kernel, copies=4, etas=2)
    paths = draw_paths(s, np.random.default_rng(8))
    rng = np.random.default_rng(9)
    path, X, h = rng.integers(0, 8, 12), rng.random((12, D)), 1e-5
    f, slope = paths.rows(X, path)
    assert_allclose(f, paths(X).reshape(8, 12)[path, np.arange(12)], rtol=1e-10)
    for i in range(D):
        step = h * np.eye(D)[i]
        difference = (paths.rows(X + step, path)[0] - paths.rows(X - step, path)[0]) / (2 * h)
        assert_allclose(slope[:, i], difference, rtol=1e-4, atol=1e-6)
