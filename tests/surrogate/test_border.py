"""A bordered surrogate is the one that is conditioned on all of its data; its weights are right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.surrogate import LogPosterior, condition
from fitbo.surrogate.border import expecting, extended

N, K, D = 30, 3, 4


def data(lowest_is_new: bool, equals: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """With so many values, of the old and of the new ones, equal to the lowest old one."""
    rng = np.random.default_rng(3)
    X, y = rng.random((N + K, D)), rng.standard_normal(N + K)
    y[np.argsort(y[:N])[: equals + 1]] = y[N : N + equals] = y[:N].min()
    if lowest_is_new:
        y[N + 1] = y[:N].min() - 0.02
    return X, y


def samples(X: np.ndarray, y: np.ndarray, kernel: str) -> np.ndarray:
    """Near the middle of the prior, where no covariance is near singular."""
    density = LogPosterior(X[:N], y[:N], kernel=kernel)
    rng = np.random.default_rng(4)
    drawn = density._prior.location + 0.5 * rng.standard_normal((12, density.n_parameters))
    drawn[:, D + 1] = -4.0  # noise enough for the smoothest kernel
    return drawn


def with_eta_kept(log_theta: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same thetas, the gap being that to the new minimum."""
    moved = log_theta.copy()
    eta = y[:N].min() - np.exp(log_theta[:, D + 2])
    moved[:, D + 2] = np.log(y.min() - eta)
    return moved


@pytest.mark.parametrize("kernel", ["additive", "matern52", "rbf"])
@pytest.mark.parametrize("lowest_is_new", [False, True])
def test_predictions_are_those_of_conditioning_on_all(kernel: str, lowest_is_new: bool) -> None:
    X, y = data(lowest_is_new)
    log_theta = samples(X, y, kernel)
    bordered = extended(condition(X[:N], y[:N], log_theta, kernel=kernel), X[N:], y)
    whole = condition(X, y, with_eta_kept(log_theta, y), kernel=kernel)
    new = np.random.default_rng(5).random((20, D))
    a, b = bordered.predict(new), whole.predict(new)
    assert_allclose(a.means, b.means, rtol=1e-7)
    assert_allclose(a.variances, b.variances, rtol=1e-6)
    assert_allclose(bordered.inverse_factor, whole.inverse_factor, atol=1e-6)
    assert_allclose(bordered.eta, whole.eta)


@pytest.mark.parametrize("kernel", ["additive", "matern52"])
@pytest.mark.parametrize("etas", [1, 3])
def test_to_see_what_is_expected_is_to_be_conditioned_on_it(kernel: str, etas: int) -> None:
    """Each sample by itself on values of its own; only what it is sure of changes."""
    X, y = data(False)
    log_theta = samples(X, y, kernel)
    before = condition(X[:N], y[:N], log_theta, kernel=kernel, etas=etas)
    after = expecting(before, X[N:], np.array([True, True, False]))
    new = np.random.default_rng(5).random((20, D))
    a, b = before._latent(new, False), after._latent(new, False)
    assert_allclose(b.m, a.m, rtol=1e-12)
    assert (b.v < a.v).all()
    assert after.weights is before.weights
    assert_allclose(after.eta, before.eta)
    latent = before._latent(X[N:], False)
    values = before.eta + 0.5 * latent.m**2
    counted = values[:2].min(0)
    assert_allclose(after.expected, counted.reshape(-1, etas))
    assert_allclose(after.target(0.3), np.minimum(0.3, counted))
    assert expecting(before, X[N:], np.zeros(K, dtype=bool)).target(0.3).tolist() == [0.3] * len(
        before.eta
    )
    assert_allclose(after[::2].expected, after.expected[::2])
    if etas > 1:
        return
    predicted = after.predict(new)
    for j in range(len(log_theta)):
        all_y = np.concatenate([y[:N], values[:, j]])
        own = with_eta_kept(log_theta[j : j + 1], all_y)
        alone = condition(X, all_y, own, kernel=kernel).predict(new)
        assert_allclose(predicted.means[:, j], alone.means[:, 0], rtol=1e-7)
        assert_allclose(predicted.variances[:, j], alone.variances[:, 0], rtol=1e-6)


@pytest.mark.parametrize("kernel", ["additive", "matern52"])
@pytest.mark.parametrize("lowest_is_new", [False, True])
@pytest.mark.parametrize("equals", [0, 1, 3])
def test_the_weights_are_ratios_of_posteriors_of_theta_and_eta(
    kernel: str, lowest_is_new: bool, equals: int
) -> None:
    """In log gap the density of eta has the factor gap, which changes with the minimum."""
    X, y = data(lowest_is_new, equals)
    log_theta = samples(X, y, kernel)
    bordered = extended(condition(X[:N], y[:N], log_theta, kernel=kernel), X[N:], y)
    gained = np.log(bordered.weights)
    after = with_eta_kept(log_theta, y)
    ratio = LogPosterior(X, y, kernel=kernel)(after) - after[:, D + 2]
    ratio -= LogPosterior(X[:N], y[:N], kernel=kernel)(log_theta) - log_theta[:, D + 2]
    assert_allclose(gained - gained.mean(), ratio - ratio.mean(), atol=1e-5)


def test_one_at_a_time_is_all_at_once_to_the_last_bit() -> None:
    X, y = data(True)
    start = condition(X[:N], y[:N], samples(X, y, "additive"), kernel="additive")
    together, each = extended(start, X[N:], y), start
    for i in range(N, N + K):
        each = extended(each, X[i : i + 1], y[: i + 1])
    for name in ("eta", "inverse_factor", "alpha", "weights"):
        assert np.array_equal(getattr(each, name), getattr(together, name)), name


def test_a_theta_whose_eta_was_undercut_has_no_weight() -> None:
    X, y = data(False)
    log_theta = samples(X, y, "matern52")
    gap = np.exp(log_theta[:, D + 2])
    y[N] = y[:N].min() - np.median(gap)
    bordered = extended(condition(X[:N], y[:N], log_theta), X[N:], y)
    assert bordered.weights is not None
    assert np.array_equal(bordered.weights > 0, gap > np.median(gap))
    assert np.isfinite(bordered.predict(X).means).all()
    y[N] = y[:N].min() - 2 * gap.max()  # and here none has: the first stands for all
    nothing = extended(condition(X[:N], y[:N], log_theta), X[N:], y)
    assert nothing.weights is not None
    assert nothing.weights.tolist() == [1.0] + [0.0] * 11
    assert np.isfinite(nothing.predict(X).means).all()


def test_weights_reach_the_mixture_and_a_part_of_it() -> None:
    from dataclasses import replace

    X, y = data(False)
    weights = np.arange(1.0, 13.0) / 78
    whole = replace(condition(X, y, samples(X, y, "matern52"), etas=2), weights=weights)
    assert_allclose(whole.predict(X[:1]).weights[0], np.repeat(weights / 2, 2))
    part = whole[::3]
    assert part.weights is not None
    assert_allclose(part.weights, weights[::3] / weights[::3].sum())
