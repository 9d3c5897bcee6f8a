"""The improvement of a parabola of a Gaussian, against quadrature and fifty-digit arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.stats import ncx2

from fitbo.acquisition.baselines import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from fitbo.acquisition.improvement import NARROW, _of_parabola, log_improvement, probability
from fitbo.acquisition.normal import scaled
from fitbo.inference.best import thinned
from fitbo.inference.fit import fit
from fitbo.inference.propose import worth
from fitbo.inference.settings import Settings
from fitbo.mixture import Mixture

FLOOR = -1.3
FAR = np.array([-1e4])


def moments(m, v, floor=FLOOR):
    """Mean and variance of floor + g^2/2, g ~ N(m, v)."""
    m, v = np.asarray(m, dtype=np.float64), np.asarray(v, dtype=np.float64)
    return floor + (m * m + v) / 2, m * m * v + v * v / 2


def exact(m, v, best, floor=FLOOR):
    """I by mpmath's quadrature of its definition."""
    with mpmath.workdps(40):
        m, s = mpmath.mpf(m), mpmath.sqrt(mpmath.mpf(v))
        c = mpmath.sqrt(2 * (mpmath.mpf(best) - mpmath.mpf(floor)))
        # In t = (c - g)/s the mass is at small t where m is above c, and about (c - m)/s otherwise.
        peak, width = (c - m) / s, 2 * c / s
        inner = 1 / max(1, -peak)
        marks = [peak + i for i in (-8, -3, 0, 3, 8)] + [inner * i for i in (1, 4, 16, 64)]
        nodes = sorted({0, width, *(p for p in marks if 0 < p < width)})
        return mpmath.quad(
            lambda t: (2 * c * s * t - (s * t) ** 2) / 2 * mpmath.npdf(t, peak), nodes, maxdegree=9
        )


Z = [30.0, 3.0, 0.0, -0.99, -1.01, -6.0, -13.9, -14.1, -24.9, -25.1, -80.0, -1e4]


@pytest.mark.parametrize("z", Z)
def test_the_normal_law_to_fifty_digits(z):
    with mpmath.workdps(60 + int(4 * np.log10(abs(z) + 1)) * 4):
        x = mpmath.mpf(z)
        density, below = mpmath.npdf(x), mpmath.ncdf(x)
        truth = density, below, density + x * below, (1 + x * x) * below + x * density
        at = scaled(np.array([z]))
        for name, value in zip(("density", "below", "h", "k"), truth, strict=True):
            log_got = float(at.log_scale[0] + np.log(getattr(at, name)[0]))
            # log_scale is z^2/2, and rounded
            assert log_got == pytest.approx(float(mpmath.log(value)), rel=1e-15, abs=1e-11), name


@pytest.mark.parametrize("m", [1e-3, 0.3, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("s", [1e-3, 0.05, 0.6, 3.0, 40.0])
@pytest.mark.parametrize("best", [FLOOR + 1e-6, FLOOR + 0.02, -0.5, 4.0])
def test_against_quadrature(m, s, best):
    value, _, _ = log_improvement(*moments(m, s * s), best, np.array(FLOOR))
    # What cannot be told from zero in double precision is the last digits of m^2 and v.
    assert float(value) == pytest.approx(float(mpmath.log(exact(m, s * s, best))), rel=1e-8)


@pytest.mark.parametrize("u", [1e-3, 0.7, 3.0, 13.0, 50.0])
def test_the_expansion_meets_the_formula(u):
    """On both sides of the switch, where e max(1, u) = NARROW: the value and both derivatives."""
    v, sides = 4.0, []
    for side in (1 - 1e-12, 1 + 1e-12):
        c = side * NARROW / max(1.0, u) * np.sqrt(v)
        sides.append(np.array(_of_parabola(u * u * v, v, c * c)))
    np.testing.assert_allclose(sides[0], sides[1], rtol=1e-6)


@pytest.mark.parametrize("m", [1e-3, 0.3, 2.5])
@pytest.mark.parametrize("s", [0.05, 0.6, 40.0])
@pytest.mark.parametrize("best", [FLOOR + 0.02, -0.5, 4.0])
def test_the_probability_is_that_of_a_noncentral_chi_square(m, s, best):
    value, _, _ = probability(*moments(m, s * s), best, np.array(FLOOR))
    truth = ncx2.cdf(2 * (best - FLOOR) / (s * s), 1, (m / s) ** 2)
    assert float(value) == pytest.approx(truth, rel=1e-7, abs=1e-12)


def test_a_wide_parabola_hardly_improves_and_a_gaussian_says_a_quarter():
    p, floor = Mixture(*moments([0.5], [1e6], np.array([-1.0]))), np.array([-1.0])
    assert ProbabilityOfImprovement(0.0, floor)(p) < 2e-3
    assert ProbabilityOfImprovement(0.0)(p) == pytest.approx(0.24, abs=0.01)


@pytest.mark.parametrize("function", [log_improvement, probability])
def test_gradients_by_central_differences(function):
    rng, M = np.random.default_rng(0), 60
    m, v = rng.uniform(0.1, 3.0, M), np.exp(rng.normal(-2.0, 1.5, M))
    floor = -rng.exponential(1.0, M) - 0.01
    mean, var = moments(m, v, floor)
    _, by_mean, by_var = function(mean, var, 0.0, floor)

    def value(mean, var):
        return function(mean, var, 0.0, floor)[0]

    step = 1e-5 * (mean - floor)
    slope = (value(mean + step, var) - value(mean - step, var)) / (2 * step)
    np.testing.assert_allclose(by_mean, slope, rtol=2e-5, atol=1e-6)
    step = 1e-5 * var
    slope = (value(mean, var + step) - value(mean, var - step)) / (2 * step)
    np.testing.assert_allclose(by_var, slope, rtol=2e-5, atol=1e-6)


def test_monte_carlo_of_parabolas():
    rng, n, best = np.random.default_rng(1), 400_000, 0.2
    m, v, floor = np.array([0.1, 1.0, 2.0]), np.array([0.5, 0.1, 1.0]), np.array([-0.3, -1.0, 0.1])
    f = floor + (m + np.sqrt(v) * rng.standard_normal((n, 3))) ** 2 / 2
    drawn = np.maximum(best - f, 0)
    p = Mixture(*moments(m, v, floor))
    error = drawn.std(0).mean() / np.sqrt(n)
    assert abs(ExpectedImprovement(best, floor)(p) - drawn.mean()) < 4 * error
    error = 0.5 / np.sqrt(3 * n)
    assert abs(ProbabilityOfImprovement(best, floor)(p) - (f < best).mean()) < 4 * error
    assert LogExpectedImprovement(best, floor)(p) == pytest.approx(
        np.log(ExpectedImprovement(best, floor)(p)), rel=1e-12
    )


def test_no_sample_gains_more_than_its_floor_allows():
    """A Gaussian of the same moments does, and takes an unknown corner for promising."""
    best, floor = 0.0, np.array([-0.1])
    p = Mixture(*moments([0.5], [4.0], floor))
    assert ExpectedImprovement(best, floor)(p) < 0.1 < ExpectedImprovement(best)(p)


def test_a_floor_far_below_is_no_floor():
    """With eta far away the parabola is a line over the range of the data."""
    floor = np.array([-1e6])
    p = Mixture(np.array([0.3]), np.array([0.04]))
    assert LogExpectedImprovement(0.0, floor)(p) == pytest.approx(
        float(LogExpectedImprovement(0.0)(p)), abs=1e-3
    )


def test_a_minimum_above_what_is_to_be_improved_upon_gives_nothing():
    value, by_mean, by_var = log_improvement(*moments([0.4], [0.1], 0.5), 0.2, np.array([0.5]))
    assert value < -25
    assert np.isfinite([value, by_mean, by_var]).all()


def test_rounding_beside_a_far_floor_leaves_numbers():
    value, by_mean, by_var = log_improvement(np.array([-1e4]), np.array([1e-12]), 0.0, FAR)
    assert np.isfinite([value, by_mean, by_var]).all()


def test_a_floor_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"floor must have shape \(2,\), got \(3,\)"):
        ExpectedImprovement(0.0, [-1.0, -1.0, -1.0])(Mixture([1.0, 2.0], [1.0, 1.0]))


def test_a_study_improves_upon_parabolas():
    """The screening part has its own samples' floors, and a linearised model none."""
    rng = np.random.default_rng(2)
    X, y = rng.random((6, 2)), rng.standard_normal(6)
    for rule in ("moment_matched", "linearised"):
        settings = Settings(acquisition="logei", n_samples=120, rule=rule)
        made = fit(X, y, settings, None, rng)
        few = thinned(made)
        assert few.n_samples < made.surrogate.n_samples
        for surrogate in (made.surrogate, few):
            floor = worth(made, surrogate, settings, rng).acquisition.floor
            if rule == "linearised":
                assert floor is None
            else:
                np.testing.assert_array_equal(floor, surrogate.eta)
