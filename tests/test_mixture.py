"""Mixture against closed forms, scipy and samples."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fitbo import Mixture
from tests.mixtures import gentle


def test_density_is_the_weighted_sum_of_normals() -> None:
    mixture = gentle(batch=3)
    y = np.linspace(-4, 4, 17)
    expected = sum(
        mixture.weights[:, j, None]
        * stats.norm.pdf(y, mixture.means[:, j, None], mixture.deviations[:, j, None])
        for j in range(mixture.n_components)
    )
    assert_allclose(mixture.pdf(y), expected, rtol=1e-12)
    assert_allclose(mixture.log_pdf(y), np.log(expected), rtol=1e-12)


def test_log_density_survives_where_the_density_underflows() -> None:
    mixture = Mixture([0.0, 1.0], [1.0, 1.0])
    exact = mpmath.log(
        (mpmath.npdf(200, 0, 1) + mpmath.npdf(200, 1, 1)) / 2
    )  # about -19802: exp of it is 0 in double precision
    assert_allclose(mixture.log_pdf([200.0]), [float(exact)], rtol=1e-13)
    assert mixture.pdf([200.0]) == 0.0


def test_zero_weight_components_do_not_matter() -> None:
    one = Mixture([0.5], [2.0])
    two = Mixture([0.5, 99.0], [2.0, 1e-9], [1.0, 0.0])
    assert_allclose(two.log_pdf([0.1, 3.0]), one.log_pdf([0.1, 3.0]), rtol=1e-15)


def test_raw_moments_against_high_precision_integrals() -> None:
    mixture = Mixture([-0.7, 1.3], [0.25, 1.0], [0.3, 0.7])

    def integrand(i: int):
        return lambda y: y**i * (0.3 * mpmath.npdf(y, -0.7, 0.5) + 0.7 * mpmath.npdf(y, 1.3, 1))

    exact = [float(mpmath.quad(integrand(i), np.linspace(-12, 12, 13).tolist())) for i in range(9)]
    assert_allclose(mixture.raw_moments(8), exact, rtol=1e-12)


def test_odd_moments_of_a_centred_gaussian_vanish() -> None:
    # The paper prints a non-zero value for them.
    assert_allclose(Mixture([0.0], [2.0]).raw_moments(7)[1::2], 0, atol=0)
    assert_allclose(Mixture([0.0], [2.0]).raw_moments(6)[::2], [1, 2, 3 * 4, 15 * 8])


def test_central_moments_are_raw_moments_about_the_mean() -> None:
    mixture = gentle(batch=4)
    central = mixture.central_moments(4)
    raw = mixture.raw_moments(4).T
    assert_allclose(central[:, 1], 0, atol=1e-14)
    assert_allclose(central[:, 2], mixture.variance)
    assert_allclose(central[:, 3], raw[3] - 3 * raw[1] * raw[2] + 2 * raw[1] ** 3, atol=1e-12)


def test_samples_have_the_mixtures_moments_and_are_reproducible() -> None:
    mixture = gentle(batch=2, m=3)
    draws = mixture.sample(np.random.default_rng(1), 200_000)
    assert draws.shape == (2, 200_000)
    error = mixture.variance**0.5 / np.sqrt(200_000)
    assert (abs(draws.mean(1) - mixture.mean) < 5 * error).all()
    assert_allclose(draws.var(1), mixture.variance, rtol=0.02)
    assert np.array_equal(draws, mixture.sample(np.random.default_rng(1), 200_000))
    shares = [np.mean(abs(draws[0] - m) < 1e-3) for m in mixture.means[0]]
    assert_allclose(shares, mixture.pdf(mixture.means[0])[0] * 2e-3, rtol=0.2)


def test_frozen_and_apart_from_the_callers_arrays() -> None:
    means = np.zeros(2)
    mixture = Mixture(means, np.ones(2))
    means[0] = 7.0
    assert mixture.means[0] == 0.0
    with pytest.raises(AttributeError):
        mixture.means = means  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        mixture.means[0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1.0), r"means must have shape \(\.\.\., M\) with M >= 1, got shape \(\)"),
        ((np.zeros((2, 0)), np.zeros((2, 0))), r"means must have shape .* got shape \(2, 0\)"),
        (([0.0, np.nan], [1.0, 1.0]), r"means must be finite, .* shape \(2,\)"),
        ((["a"], [1.0]), r"means must be an array of numbers, got \['a'\]"),
        (([0.0], [1.0, 2.0]), r"variances must have the shape of means \(1,\), got \(2,\)"),
        (([0.0], [0.0]), r"variances must be positive, got 0.0 in shape \(1,\)"),
        (([0.0], [np.inf]), r"variances must be finite"),
        (([0.0, 1.0], [1.0, 1.0], [0.5, 0.6]), r"weights must sum to 1, got 1\.1"),
        (([0.0, 1.0], [1.0, 1.0], [1.5, -0.5]), r"weights must be non-negative, got -0\.5"),
        (([0.0, 1.0], [1.0, 1.0], [1.0]), r"weights must have M = 2 entries, got \(1,\)"),
        (
            (np.zeros((2, 2)), np.ones((2, 2)), np.full((3, 2), 0.5)),
            r"weights of shape \(3, 2\) do not broadcast to means of shape \(2, 2\)",
        ),
    ],
)
def test_bad_input_is_one_clear_error(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mixture(*arguments)


def test_other_bad_arguments() -> None:
    mixture = Mixture([0.0], [1.0])
    with pytest.raises(ValueError, match="got a scalar"):
        mixture.pdf(0.0)
    with pytest.raises(ValueError, match="order must be a non-negative integer, got -1"):
        mixture.raw_moments(-1)
    with pytest.raises(ValueError, match="n must be a non-negative integer, got -2"):
        mixture.sample(np.random.default_rng(0), -2)
