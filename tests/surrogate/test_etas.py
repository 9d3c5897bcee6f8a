"""Several etas for each theta: against the posterior itself, and against one sample per eta."""

import numpy as np
import pytest

from fitbo.surrogate import LogPosterior, condition

from .problems import central_difference, gradients, make_problem

K = 5


def nearly_exact(problem):
    """The problem's samples with noise too small to matter, where sharing a factor is exact."""
    log_theta = problem.log_theta.copy()
    log_theta[:, -2] = -40.0
    return log_theta


def gaps_of(surrogate, problem):
    return (problem.y.min() - surrogate.eta).reshape(-1, surrogate.etas)


def test_etas_are_quantiles_of_their_posterior_given_theta():
    problem = make_problem(n=14, d=3, M=5)
    log_theta = nearly_exact(problem)
    gaps = gaps_of(condition(problem.X, problem.y, log_theta, etas=K), problem)
    assert gaps.shape == (5, K)
    density = LogPosterior(problem.X, problem.y)
    nodes = np.linspace(log_theta[:, -1].min() - 1, log_theta[:, -1].max() + 1, 2001)
    for theta, found in zip(log_theta, gaps, strict=True):
        table = np.repeat(theta[None], len(nodes), axis=0)
        table[:, -1] = nodes
        p = np.exp(density(table) - density(table).max())
        below = np.cumsum(p) / p.sum()
        shares = np.interp(np.log(found), nodes, below)
        # A table of 24 linear pieces against one of 2000.
        np.testing.assert_allclose(shares, (np.arange(K) + 0.5) / K, atol=0.02)


@pytest.mark.parametrize("rule", ["moment_matched", "linearised"])
def test_they_predict_as_one_sample_per_eta_does(rule):
    problem = make_problem(n=14, d=3, M=5)
    log_theta = nearly_exact(problem)
    shared = condition(problem.X, problem.y, log_theta, rule=rule, etas=K)
    apart = np.repeat(log_theta, K, axis=0)
    apart[:, -1] = np.log(gaps_of(shared, problem)).ravel()
    single = condition(problem.X, problem.y, apart, rule=rule)
    expected, actual = single.predict(problem.candidates), shared.predict(problem.candidates)
    np.testing.assert_allclose(actual.means, expected.means, rtol=1e-7)
    np.testing.assert_allclose(actual.variances, expected.variances, rtol=1e-6)
    for want, got in zip(
        gradients(single, problem.candidates), gradients(shared, problem.candidates), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * abs(want).max())


def test_gradients_by_differences():
    problem = make_problem(n=14, d=3, M=5)
    surrogate = condition(problem.X, problem.y, problem.log_theta, etas=K)
    slopes = gradients(surrogate, problem.candidates)
    for name, gradient in zip(("means", "variances"), slopes, strict=True):
        expected = central_difference(
            lambda X, name=name: getattr(surrogate.predict(X), name), problem.candidates, 1e-5
        )
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * abs(expected).max())


def test_noise_is_added_to_every_eta():
    problem = make_problem(n=14, d=3, M=5)
    surrogate = condition(problem.X, problem.y, problem.log_theta, etas=K)
    without = surrogate.predict(problem.candidates).variances
    with_noise = surrogate.predict(problem.candidates, noise=True).variances
    added = np.repeat(np.exp(problem.log_theta[:, -2]), K)
    np.testing.assert_allclose(
        with_noise - without, np.broadcast_to(added, without.shape), rtol=1e-6
    )
