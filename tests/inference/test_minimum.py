"""Minima of paths: those of dense joint draws, and of functions whose prior is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp

from fitbo.inference.minimum import draw_minima, lowest
from fitbo.inference.region import Frame, region_of
from fitbo.inference.settings import Settings
from fitbo.space import Real, Space
from fitbo.study import Study
from fitbo.surrogate import condition
from fitbo.surrogate.differences import squared_differences
from fitbo.surrogate.hyperparameters import Hyperparameters
from fitbo.surrogate.kernel import named_kernel
from fitbo.surrogate.warp import MEAN_VARIANCE

ETA, SIGNAL, MEAN = -4.0, 0.5, 2.5  # a g that stays on the branch of the data


def sample(d: int, gap: float) -> np.ndarray:
    """The hyperparameters by which the functions below are made."""
    return np.log([*np.full(d, 0.3 * np.sqrt(d)), SIGNAL, 1e-9, gap])


def function(d: int, rng: np.random.Generator):
    """A draw of eta + g^2/2 with a Matern-5/2 g, by many features."""
    kernel = named_kernel("matern52")
    theta = Hyperparameters.unpack(sample(d, 1.0)[None], d)
    omega, a = kernel.spectrum(theta, 1000, rng)
    u, v = np.sqrt(SIGNAL) * a[0] * rng.standard_normal((2, a.shape[1]))

    def f(X: np.ndarray) -> np.ndarray:
        phase = X @ omega[0].T
        g = MEAN + np.cos(phase) @ u + np.sin(phase) @ v
        return ETA + 0.5 * g * g

    return f


def true_minimum(f, d: int, rng: np.random.Generator) -> float:
    X = rng.random((4000, d))
    values = f(X)
    for scale in 0.1 * 0.7 ** np.arange(30):
        best = X[np.argsort(values)[:10]]
        X = np.clip(np.repeat(best, 40, 0) + scale * rng.standard_normal((400, d)), 0, 1)
        X = np.concatenate([best, X])
        values = f(X)
    return float(values.min())


@pytest.mark.parametrize("d", [1, 2, 4])
def test_intervals_cover_as_often_as_they_say(d: int) -> None:
    rng, draws, paths = np.random.default_rng(d), 100, 100
    inside = np.zeros(2)
    for _ in range(draws):
        f = function(d, rng)
        X = rng.random((6 * d, d))
        y = f(X)
        log_theta = np.tile(sample(d, y.min() - ETA), (paths, 1))
        surrogate = condition(X, y, log_theta, kernel="matern52")
        minima = draw_minima(surrogate, Space([(0, 1)] * d), X[[np.argmin(y)]], rng)
        truth = true_minimum(f, d, rng)
        for i, tail in enumerate((0.25, 0.05)):
            low, high = np.quantile(minima.f, [tail, 1 - tail])
            inside[i] += low <= truth <= high
    for count, share in zip(inside, (0.5, 0.9), strict=True):
        assert abs(count - draws * share) < 3 * np.sqrt(draws * share * (1 - share))


def test_minima_are_those_of_dense_joint_draws() -> None:
    """In one dimension a fine grid is all there is."""
    rng = np.random.default_rng(0)
    f = function(1, rng)
    X = np.array([[0.1], [0.35], [0.8], [0.95]])
    y = f(X)
    surrogate = condition(X, y, np.tile(sample(1, y.min() - ETA), (1500, 1)), kernel="matern52")
    minima = draw_minima(surrogate, Space([(0, 1)]), X[:1], rng)
    grid = np.linspace(0, 1, 300)[:, None]
    theta, kernel = surrogate.theta[:1], named_kernel("matern52")

    def covariance(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        rho = kernel.correlation(theta, squared_differences(A, B)).reshape(len(A), len(B))
        return SIGNAL * rho + MEAN_VARIANCE

    K = covariance(X, X) + np.diag(surrogate.noise[0])
    gain = np.linalg.solve(K, covariance(X, grid)).T
    mean = gain @ np.sqrt(2 * (y - ETA))
    values, vectors = np.linalg.eigh(covariance(grid, grid) - gain @ covariance(X, grid))
    root = vectors * np.sqrt(np.maximum(values, 0))
    g = mean[:, None] + root @ rng.standard_normal((300, 1500))
    dense = (ETA + 0.5 * g * g).min(0)
    assert ks_2samp(minima.f, dense).pvalue > 0.01
    assert (minima.f <= y.min() + 1e-3).all()


def test_the_place_is_where_the_minimum_is_and_inside() -> None:
    rng = np.random.default_rng(1)
    f = function(2, rng)
    X = rng.random((12, 2))
    y = f(X)
    surrogate = condition(X, y, np.tile(sample(2, y.min() - ETA), (30, 1)), kernel="matern52")
    whole = draw_minima(surrogate, Space([(0, 1)] * 2), X[:1], np.random.default_rng(2))
    assert ((whole.x >= 0) & (whole.x <= 1)).all()
    frame = Frame(X[0], np.eye(2), np.eye(2))
    region = region_of(frame, np.ones(2), 0.1)
    moved = condition(X - X[0], y, np.tile(sample(2, y.min() - ETA), (30, 1)), kernel="matern52")
    part = draw_minima(moved, Space([(0, 1)] * 2), X[:1], np.random.default_rng(3), region)
    assert (abs(part.x - X[0]) <= 0.1 + 1e-12).all()
    assert part.f.mean() > whole.f.mean()


def test_the_lowest_are_apart() -> None:
    C = np.array([[0.1, 0.1], [0.11, 0.1], [0.9, 0.9], [0.5, 0.5]])
    values = np.array([[0.0, 0.1, 0.5, 0.9], [3.0, 2.0, 1.0, 0.0]])
    assert lowest(C, values, 2).tolist() == [[0, 2], [3, 2]]


def test_a_mixed_space_has_minima_that_can_be_evaluated() -> None:
    space = Space({"a": Real(0, 1), "b": Real(0, 1)}, constraints=["a + b <= 1"])
    study = Study(space)
    rng = np.random.default_rng(4)
    for a, b in 0.5 * rng.random((8, 2)):
        study.tell({"a": a, "b": b}, (a - 0.9) ** 2 + (b - 0.9) ** 2)
    minima = study.minima()
    assert (minima.x.sum(1) <= 1 + 1e-9).all()
    low, middle, high = study.minimum_quantiles()
    assert low <= middle <= high
    assert study.minimum_quantiles([0.5])[0] == middle
    assert_allclose(middle, 2 * 0.4**2, atol=0.1)
    assert study.remaining() > 0


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_without_noise_the_minimum_is_no_higher_than_the_lowest_value(direction: str) -> None:
    """With it a low value may be luck."""
    sign = 1.0 if direction == "minimize" else -1.0
    X = np.random.default_rng(0).random((25, 2))
    y = sign * ((X - 0.4) ** 2).sum(1)
    quantiles = {}
    for deterministic in (True, False):
        settings = Settings(n_samples=40, deterministic=deterministic)
        study = Study([(0, 1)] * 2, settings, direction=direction)
        for x, value in zip(X, y, strict=True):
            study.tell(x, value)
        quantiles[deterministic] = sign * study.minimum_quantiles((0.05, 0.5, 0.95))[:: int(sign)]
    low, _, high = quantiles[True]
    assert low <= 0.0 <= high <= (sign * y).min() + 1e-12
    assert (np.diff(quantiles[False]) >= 0).all()
