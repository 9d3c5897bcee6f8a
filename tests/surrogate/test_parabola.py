"""The model: warp, Jacobian, noise rule, and the two predictive rules."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from fitbo.surrogate import LogPosterior, Surrogate, condition, gpy
from fitbo.surrogate.parabola import LATENT_FLOOR, VARIANCE_FLOOR, Latent, floored
from fitbo.surrogate.warp import (
    MEAN_VARIANCE,
    NUGGET,
    log_jacobian,
    moments_of_f,
    noise_in_g,
    warp,
)

from .problems import gradients, make_problem

RULES = ("linearised", "moment_matched")


def test_the_warp_inverts_the_parabola():
    y, gap = np.array([0.3, -1.0, 2.0]), np.array([0.1, 2.0])
    g = warp(y - y.min(), gap)
    eta = (y.min() - gap)[:, None]
    np.testing.assert_allclose(eta + g**2 / 2, np.broadcast_to(y, (2, 3)))
    assert (g > 0).all()


@pytest.mark.parametrize("eta", [-3.0, 0.0, 5.0])
def test_the_density_of_one_observation_integrates_to_the_branch_g_positive(eta):
    """Noise-free, one point: p(y | eta) over y > eta is P(g > 0) = 1/2, by quadrature.

    Without the Jacobian 1/g the integral diverges with the range.
    """
    s2 = 0.7

    def density(y):
        log_theta = np.log([[0.5, s2, 1e-20, y - eta]])  # the only y is the minimum: gap = y - eta
        return float(np.exp(LogPosterior([[0.4]], [y]).log_likelihood(log_theta)[0]))

    reach = 20 * (s2 + MEAN_VARIANCE)
    near, _ = integrate.quad(density, eta + 1e-12, eta + 1, points=[eta + 1e-6], limit=400)
    far, _ = integrate.quad(density, eta + 1, eta + reach * 10, limit=400)
    assert near + far == pytest.approx(0.5, abs=1e-5)


def test_the_likelihood_is_the_density_of_y_given_eta():
    """Two points against a change of variables made by hand: N(g; 0, K) / (g_1 g_2)."""
    X, y = np.array([[0.2], [0.6]]), np.array([0.5, -0.5])
    lengthscale, s2, noise, gap = 0.3, 0.8, 0.01, 0.4
    g = np.sqrt(2 * (y - (y.min() - gap)))
    a = np.sqrt(5) * 0.4 / lengthscale
    rho = (1 + a + a * a / 3) * np.exp(-a)
    K = s2 * np.array([[1, rho], [rho, 1]]) + MEAN_VARIANCE
    K += np.diag(noise / (g**2 + 2 * np.sqrt(noise)) + NUGGET * s2)
    expected = stats.multivariate_normal(cov=K).logpdf(g) - np.log(g).sum()
    log_theta = np.log([[lengthscale, s2, noise, gap]])
    assert LogPosterior(X, y).log_likelihood(log_theta)[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("equals", [1, 6])
@pytest.mark.parametrize("posterior", [LogPosterior, gpy.LogPosterior])
def test_equals_of_the_lowest_count_once(posterior, equals):
    """As the gap vanishes the density grows as gap^(-1/2), however many counts are alike."""
    rng = np.random.default_rng(0)
    X, y = rng.random((12, 2)), np.arange(12.0)
    y[:equals] = 0.0
    log_gap = np.array([-40.0, -44.0])
    log_theta = np.tile(np.log([0.3, 0.4, 1.0, 1e-4, 1.0]), (2, 1))
    log_theta[:, -1] = log_gap
    at = posterior(X, y, "matern52").log_likelihood(log_theta)
    assert at[1] - at[0] == pytest.approx(2.0, abs=1e-3)
    gap = np.exp(log_gap)
    expected = -np.log(warp(y[equals - 1 :] - y.min(), gap)).sum(1)
    np.testing.assert_allclose(log_jacobian(warp(y - y.min(), gap), y - y.min()), expected)


def test_noise_in_y_has_variance_noise_over_g_squared_in_g():
    rng, eta, noise = np.random.default_rng(0), -0.3, 1e-6
    f = np.array([0.2, 1.0, 3.0])
    g = np.sqrt(2 * (f - eta))
    y = f + np.sqrt(noise) * rng.standard_normal((400_000, 3))
    observed = np.sqrt(2 * (y - eta)).var(0)
    np.testing.assert_allclose(observed, noise / g**2, rtol=0.01)
    np.testing.assert_allclose(noise_in_g(np.array([noise]), g[None])[0], observed, rtol=0.01)


@pytest.mark.parametrize("deviation", [1e-4, 0.1])
def test_noise_in_g_is_bounded_and_of_the_right_size_near_eta(deviation):
    """At f = eta the warped noise is sqrt(2 |e|); first order would give an infinite variance."""
    noise = np.array([deviation**2])
    e = deviation * np.random.default_rng(0).standard_normal(100_000)
    observed = np.sqrt(2 * abs(e)).var()
    at_zero = noise_in_g(noise, np.zeros((1, 1))).item()
    assert at_zero == pytest.approx(deviation / 2)
    assert observed < at_zero < 2.5 * observed


def test_the_moment_matched_rule_has_the_moments_of_f():
    rng, eta = np.random.default_rng(1), np.array([-0.5])
    for m, v in ((0.0, 1.0), (1.0, 0.3), (2.0, 2.0)):
        f = eta + 0.5 * (m + np.sqrt(v) * rng.standard_normal(1_000_000)) ** 2
        mean, variance = moments_of_f("moment_matched", eta, np.array([[m]]), np.array([[v]]))
        assert mean.item() == pytest.approx(f.mean(), abs=5 * f.std() / 1e3)
        assert variance.item() == pytest.approx(f.var(), rel=0.02)


def test_the_linearised_rule_is_the_limit_of_small_variance():
    m, eta = np.array([[1.5]]), np.array([-0.5])
    for v in (1e-3, 1e-6):
        exact = moments_of_f("moment_matched", eta, m, np.array([[v]]))
        linear = moments_of_f("linearised", eta, m, np.array([[v]]))
        assert linear[0].item() == pytest.approx(exact[0].item(), abs=v)
        assert linear[1].item() == pytest.approx(exact[1].item(), rel=v)


@pytest.mark.parametrize("rule", RULES)
def test_prediction_follows_its_rule_by_sampling_g(problem, rule):
    """Draw g at a candidate from dense algebra, square it, and compare the moments of f."""
    surrogate = condition(problem.X, problem.y, problem.log_theta[:1], rule=rule)
    mixture = surrogate.predict(problem.candidates)
    m, v = dense_latent(problem, 0)
    f = surrogate.eta + 0.5 * (m + np.sqrt(v) * problem.rng.standard_normal((200_000, 7))) ** 2
    if rule == "moment_matched":
        assert (abs(mixture.means[:, 0] - f.mean(0)) < 5 * f.std(0) / np.sqrt(200_000)).all()
        np.testing.assert_allclose(mixture.variances[:, 0], f.var(0), rtol=0.05)
    else:
        np.testing.assert_allclose(mixture.means[:, 0], surrogate.eta + m**2 / 2, rtol=1e-9)
        np.testing.assert_allclose(mixture.variances[:, 0], m**2 * v, rtol=1e-8)


def test_noise_adds_its_variance(problem):
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    f = surrogate.predict(problem.candidates)
    y = surrogate.predict(problem.candidates, noise=True)
    np.testing.assert_array_equal(y.means, f.means)
    np.testing.assert_allclose(y.variances, f.variances + surrogate.noise_variance, rtol=1e-12)


def test_far_from_data_the_marginal_mean_returns_to_least_squares():
    """Short lengthscales: the mean of g is the average of the data, and f is not eta."""
    rng = np.random.default_rng(2)
    X, y = rng.random((30, 2)), rng.standard_normal(30)
    log_theta = np.log([[1e-3, 1e-3, 0.5, 1e-8, 0.5]])
    surrogate = condition(X, y, log_theta, rule="linearised")
    g = warp(y - y.min(), np.array([0.5]))[0]
    precision = 1 / (0.5 + 1e-8 / (g**2 + 2e-4))
    m = (precision * g).sum() / (precision.sum() + 1 / MEAN_VARIANCE)
    v = 0.5 + 1 / (precision.sum() + 1 / MEAN_VARIANCE)
    mixture = surrogate.predict(rng.random((1, 2)))
    assert mixture.means.item() == pytest.approx(surrogate.eta.item() + m**2 / 2, rel=1e-7)
    assert mixture.variances.item() == pytest.approx(m**2 * v, rel=1e-7)


def test_a_floored_latent_variance_has_no_gradient():
    latent = floored(
        m=np.ones((2, 1, 1)),
        v=np.array([[-1e-15], [0.5]]),
        dm=np.ones((2, 1, 1, 3)),
        dv=np.ones((2, 1, 3)),
        prior_variance=np.full((2, 1), 2.0),
    )
    np.testing.assert_array_equal(latent.v, [[2 * LATENT_FLOOR, 0.5]])
    np.testing.assert_array_equal(latent.dv[0], [[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(latent.dm[0], np.ones((2, 3)))


class Fixed(Surrogate):
    """Predicts g ~ N(1e-3, 1e-13) everywhere, with unit gradients."""

    def _latent(self, X, gradient):
        one = np.ones((len(X), 1))
        slope = np.ones((len(X), 1, X.shape[1]))
        return Latent(1e-3 * one, 1e-13 * one, slope, slope)


def test_a_floored_variance_of_f_has_no_slope():
    """Linearised m^2 v = 1e-19 is floored, so only the mean moves: dH/dx = dH/dmean m dm/dx."""
    surrogate = Fixed.condition(np.zeros((1, 2)), [0.0], np.zeros((1, 5)), rule="linearised")
    X, one = np.zeros((4, 2)), np.ones((4, 1))

    def functional(mixture):
        np.testing.assert_array_equal(mixture.variances, VARIANCE_FLOOR * one)
        return one[:, 0], 3 * one, 1e15 * one

    _, gradient = surrogate.value_and_grad(X, functional, noise=False)
    np.testing.assert_allclose(gradient, 3e-3)
    np.testing.assert_array_equal(gradients(surrogate, X)[1], 0)


def test_an_unknown_rule_is_named(problem):
    with pytest.raises(ValueError, match="rule must be one of moment_matched, linearised, got 'x'"):
        condition(problem.X, problem.y, problem.log_theta, rule="x")


def dense_latent(problem, j):
    """Mean and variance of g at the candidates for sample j, from np.linalg.solve."""
    d = problem.X.shape[1]
    theta = np.exp(problem.log_theta[j])

    def k(A, B):
        a = np.sqrt(5 * (((A[:, None] - B) / theta[:d]) ** 2).sum(-1))
        return theta[d] * (1 + a + a * a / 3) * np.exp(-a) + MEAN_VARIANCE

    g = np.sqrt(2 * (problem.y - problem.y.min() + theta[d + 2]))
    K = k(problem.X, problem.X) + np.diag(
        theta[d + 1] / (g**2 + 2 * theta[d + 1] ** 0.5) + NUGGET * theta[d]
    )
    cross = k(problem.candidates, problem.X)
    m = cross @ np.linalg.solve(K, g)
    v = theta[d] + MEAN_VARIANCE - np.einsum("bn,nb->b", cross, np.linalg.solve(K, cross.T))
    return m, v


def test_a_sample_of_no_weight_may_predict_anything() -> None:
    """As one whose factor became rounding in the course of bordering."""
    problem = make_problem(8, 2, 3)
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    weights = np.array([0.5, 0.0, 0.5])
    alpha = surrogate.alpha.copy()
    alpha[1] *= 1e92
    wild = replace(surrogate, alpha=alpha, weights=weights).predict(problem.candidates)
    tame = replace(surrogate, weights=weights).predict(problem.candidates)
    np.testing.assert_allclose(wild.mean, tame.mean, rtol=1e-12)
    np.testing.assert_allclose(wild.variance, tame.variance, rtol=1e-12)
