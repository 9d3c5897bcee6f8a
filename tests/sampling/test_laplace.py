"""Modes, curvatures and draws of the approximation that a cold sampler starts from."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_t

from fitbo.sampling import sample
from fitbo.sampling.laplace import FREEDOM, climb, covariance_at, laplace_ensemble
from fitbo.surrogate import LogPosterior, Standardiser

CENTRE = np.array([1.0, -2.0, 0.5])
PRECISION = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])


def normal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = x - CENTRE
    return -0.5 * np.einsum("wi,ij,wj->w", z, PRECISION, z), -z @ PRECISION


def two_modes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal Gaussians at -4 and 4, of unit variance."""
    a, b = -0.5 * (x[:, 0] - 4) ** 2, -0.5 * (x[:, 0] + 4) ** 2
    top = np.logaddexp(a, b)
    slope = -np.exp(a - top) * (x[:, 0] - 4) - np.exp(b - top) * (x[:, 0] + 4)
    return top, slope[:, None]


def test_a_gaussian_is_found_exactly() -> None:
    modes, values = climb(normal, np.array([[5.0, 5.0, 5.0], [0.0, 0.0, 0.0]]), 30.0)
    assert len(modes) == 1
    assert_allclose(modes[0], CENTRE, atol=1e-3)
    assert_allclose(values, 0.0, atol=1e-6)
    covariance = covariance_at(normal, modes[0], np.full(3, 2.0))
    assert_allclose(covariance, np.linalg.inv(PRECISION), rtol=1e-6)


def test_the_best_climb_is_kept_whatever_its_height() -> None:
    """1e21 + 12 is 1e21."""
    high = lambda x: (np.full(len(x), 1e21), np.zeros_like(x))  # noqa: E731
    modes, values = climb(high, np.zeros((2, 3)), 30.0)
    assert modes.shape == (1, 3)
    assert values == [1e21]


def test_no_direction_is_wider_than_the_prior() -> None:
    flat = lambda x: (np.zeros(len(x)), np.zeros_like(x))  # noqa: E731
    assert_allclose(covariance_at(flat, np.zeros(2), np.array([1.5, 3.0])), np.diag([2.25, 9.0]))


def test_the_ensemble_states_the_density_that_it_is_drawn_from() -> None:
    drawn = laplace_ensemble(normal, CENTRE[None], np.full(3, 2.0), 4000, np.random.default_rng(0))
    law = multivariate_t(CENTRE, np.linalg.inv(PRECISION), df=FREEDOM)
    assert_allclose(drawn.log_density, law.logpdf(drawn.log_theta), rtol=1e-6)
    weights = np.exp(normal(drawn.log_theta)[0] - drawn.log_density)
    weights /= weights.sum()
    assert_allclose(weights @ drawn.log_theta, CENTRE, atol=0.05)
    spread = (drawn.log_theta - CENTRE).T @ (weights[:, None] * (drawn.log_theta - CENTRE))
    assert_allclose(spread, np.linalg.inv(PRECISION), atol=0.05)


def test_both_modes_are_drawn_from() -> None:
    modes, _ = climb(two_modes, np.array([[3.0], [-3.0], [5.0]]), 30.0)
    assert_allclose(np.sort(modes[:, 0]), [-4.0, 4.0], atol=1e-3)
    drawn = laplace_ensemble(two_modes, modes, np.ones(1), 400, np.random.default_rng(1))
    assert 0.4 < np.mean(drawn.log_theta > 0) < 0.6


def test_a_cold_start_leads_to_the_posterior_of_a_long_chain() -> None:
    """Means within half a posterior standard deviation, and spreads within a third."""
    from fitbo.inference.fit import cold_start

    rng = np.random.default_rng(2)
    X = rng.random((40, 2))
    y = np.sin(5 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.standard_normal(40)
    density = LogPosterior(X, Standardiser.fit(y)(y), kernel="matern52")
    options = {"restart": density.sample_prior, "n_samples": 400}
    start, known = cold_start(density, density.sample_prior(rng, 2), 100, rng)
    short = sample(density, start, rng, known=known, thin=10, min_burn_in=20, **options)
    assert short.diagnostics.settled
    assert short.diagnostics.evaluations < 10_000
    first = density.sample_prior(rng, 100)
    long = sample(density, first, rng, thin=100, min_burn_in=1500, max_burn_in=1500, **options)
    spread = long.log_theta.std(0)
    assert (abs(short.log_theta.mean(0) - long.log_theta.mean(0)) < 0.5 * spread).all()
    assert_allclose(short.log_theta.std(0), spread, rtol=0.35)


def test_fewer_walkers_than_weights_are_resampled_to_the_law_of_the_weights() -> None:
    from fitbo.sampling.walkers import resample

    x = np.linspace(-4, 4, 4000)
    kept, survivors, whole = resample(-0.5 * (x - 1) ** 2, 1, np.random.default_rng(0), walkers=200)
    assert kept.shape == (200,)
    assert whole
    assert survivors > 1  # in effect there are more than are kept
    assert_allclose([x[kept].mean(), x[kept].std()], [1, 1], atol=0.02)


def test_a_cold_start_states_a_density_that_its_walkers_are_near() -> None:
    """Where a draw for each walker is too few, several are resampled: then nothing is tempered."""
    from fitbo.inference.fit import cold_start
    from fitbo.sampling.walkers import resample

    rng = np.random.default_rng(5)
    X = rng.random((30, 3))
    density = LogPosterior(X, Standardiser.fit(X[:, 0])(np.sin(9 * X[:, 0])), kernel="matern52")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        start, known = cold_start(density, density.sample_prior(rng, 2), 40, rng)
        assert_allclose(known, density(start.log_theta), rtol=1e-9)
        ratio = known - start.log_density
        assert resample(ratio, density.n_parameters, rng)[2]
