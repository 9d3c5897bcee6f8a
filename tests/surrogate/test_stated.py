"""Values with a standard deviation of their own, against dense algebra and GPy's own regression."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.surrogate import LogPosterior, Standardiser, condition
from fitbo.surrogate import gpy as on_gpy
from fitbo.surrogate.border import extended
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET, noise_in_g
from tests.surrogate.problems import make_problem

STATED = np.geomspace(1e-4, 0.3, 12)


def dense(problem, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K without noise, the variance of each datum in g, and g, of one theta by plain formulas."""
    X, d = problem.X, problem.X.shape[1]
    theta = np.exp(problem.log_theta[j])
    r = np.sqrt((((X[:, None] - X) / theta[:d]) ** 2).sum(-1))
    a = np.sqrt(5) * r
    K = theta[d] * (1 + a + a * a / 3) * np.exp(-a) + MEAN_VARIANCE
    g = np.sqrt(2 * (problem.y - problem.y.min() + theta[d + 2]))
    e = np.sqrt(theta[d + 1] + STATED)
    return K + NUGGET * theta[d] * np.eye(len(X)), e**2 / (g**2 + 2 * e), g


def test_the_likelihood_is_that_of_dense_algebra() -> None:
    from scipy.stats import multivariate_normal

    problem = make_problem(12, 2, 3)
    found = LogPosterior(problem.X, problem.y, stated=STATED).log_likelihood(problem.log_theta)
    for j, value in enumerate(found):
        K, noise, g = dense(problem, j)
        expected = multivariate_normal.logpdf(g, np.zeros(12), K + np.diag(noise))
        assert_allclose(value, expected - np.log(g).sum(), rtol=1e-9)


def test_its_gradient_is_that_of_differences() -> None:
    problem = make_problem(12, 2, 2)
    density = LogPosterior(problem.X, problem.y, "additive", stated=STATED)
    theta = np.concatenate([problem.log_theta, np.zeros((2, 1))], axis=1)
    _, slopes = density.value_and_grad(theta)
    for i in range(theta.shape[1]):
        step = 1e-5 * np.eye(theta.shape[1])[i]
        expected = (density(theta + step) - density(theta - step)) / 2e-5
        assert_allclose(slopes[:, i], expected, rtol=1e-5, atol=1e-6)


def test_predictions_of_g_are_those_of_heteroscedastic_regression_by_gpy() -> None:
    import GPy

    problem = make_problem(12, 2, 2)
    surrogate = condition(problem.X, problem.y, problem.log_theta, stated=STATED)
    latent = surrogate._latent(problem.candidates, gradient=False)
    for j in range(2):
        _, noise, g = dense(problem, j)
        lengths, s2 = np.exp(problem.log_theta[j, :2]), np.exp(problem.log_theta[j, 2])
        kernel = GPy.kern.Matern52(2, variance=s2, lengthscale=lengths, ARD=True)
        kernel += GPy.kern.Bias(2, variance=MEAN_VARIANCE)
        meta = {"output_index": np.arange(12)[:, None]}
        model = GPy.models.GPHeteroscedasticRegression(problem.X, g[:, None], kernel, meta)
        model.het_Gauss.variance = noise[:, None]
        mean, variance = model.predict_noiseless(problem.candidates)
        assert_allclose(latent.m[:, j], mean[:, 0], rtol=1e-6)
        assert_allclose(latent.v[:, j], variance[:, 0], rtol=1e-5)


def test_the_surrogate_on_gpy_has_them_too() -> None:
    problem = make_problem(12, 2, 3)
    one = condition(problem.X, problem.y, problem.log_theta, stated=STATED)
    at = problem.log_theta[:, [2, 0, 1, 3, 4]]  # GPy has the variance first
    other = on_gpy.condition(problem.X, problem.y, at, "matern52", stated=STATED)
    a, b = one.predict(problem.candidates), other.predict(problem.candidates)
    assert_allclose(a.means, b.means, rtol=1e-6)
    assert_allclose(a.variances, b.variances, rtol=1e-5)


def test_bordering_is_conditioning_and_keeps_what_is_stated() -> None:
    problem = make_problem(12, 2, 4)
    lowest = int(np.argmin(problem.y[:9]))
    assert problem.y[9:].min() > problem.y[lowest]  # so that no gap changes
    start = condition(problem.X[:9], problem.y[:9], problem.log_theta, stated=STATED[:9])
    bordered = extended(start, problem.X[9:], problem.y, STATED)
    whole = condition(problem.X, problem.y, problem.log_theta, stated=STATED)
    assert_allclose(
        bordered.predict(problem.candidates).means, whole.predict(problem.candidates).means
    )
    assert bordered.stated is STATED


def test_nothing_stated_and_zero_stated_are_the_same_to_the_bit() -> None:
    problem = make_problem(12, 2, 4)
    none = condition(problem.X, problem.y, problem.log_theta)
    zero = condition(problem.X, problem.y, problem.log_theta, stated=np.zeros(12))
    assert np.array_equal(none.alpha, zero.alpha)
    assert np.array_equal(none.noise_variance, zero.noise_variance)


def test_a_wide_value_pulls_the_mean_less() -> None:
    problem = make_problem(12, 2, 3)
    exact, wide = np.full(12, 1e-6), np.full(12, 1e-6)
    wide[5] = 4.0
    far = problem.y.copy()
    far[5] += 1.0
    at = problem.X[5:6]

    def pull(stated: np.ndarray) -> float:
        before, after = (
            condition(problem.X, y, problem.log_theta, stated=stated) for y in (problem.y, far)
        )
        return float(after.predict(at).mean[0] - before.predict(at).mean[0])

    assert pull(exact) > 0.5
    assert abs(pull(wide)) < 0.2 * pull(exact)


def test_the_slope_of_the_scale_is_that_of_differences() -> None:
    scale = Standardiser(2.0, 3.0)
    y = np.array([-5.0, 2.0, 16.9, 17.1, 40.0])
    assert_allclose(scale.slope(y), (scale(y + 1e-6) - scale(y - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("stated", [None, np.full(4, 0.25)])
def test_the_noise_in_g_is_of_first_order_and_bounded(stated: np.ndarray | None) -> None:
    noise, g = np.array([0.01]), np.array([[1e-9, 0.5, 2.0, 50.0]])
    e2 = 0.01 + (0.0 if stated is None else 0.25)
    found = noise_in_g(noise, g, stated)[0]
    assert_allclose(found[-1], e2 / g[0, -1] ** 2, rtol=1e-2)
    assert_allclose(found[0], np.sqrt(e2) / 2)
