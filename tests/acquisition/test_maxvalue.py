"""Max-value entropy search about f*: against dense quadrature and draws, slopes by differences."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.acquisition.maxvalue import FAR, MaxValueGain, in_g, spread, truncation
from fitbo.acquisition.normal import truncation_gain
from fitbo.mixture import Mixture
from tests.acquisition.differences import assert_slopes

ETA = np.array([-2.3, -2.1, -2.9, -2.6])
MINIMUM = np.array([-1.5, -1.2, -1.05, -1.4])
# m, v, n, c: noise of any size, f* above, at and below the mean, and at the tip of the parabola
CASES = [
    (1.5, 0.3, 0.01, 1.0),
    (1.5, 0.3, 2.0, 1.0),
    (1.5, 0.3, 1e-6, 1.0),
    (1.0, 0.2, 0.1, 1.3),
    (0.3, 0.5, 0.05, 0.4),
    (0.05, 1.0, 0.3, 1.2),
    (2.0, 0.01, 0.01, 1.6),
    (1.0, 0.01, 0.02, 1.7),  # beyond MOST, where c does not count
]


def convolved(z: np.ndarray, m: float, v: float, n: float, c: float) -> np.ndarray:
    """The density of g + noise, g truncated to |g| >= c, as the convolution that it is: on z."""
    s = np.sqrt(v)
    t, w = np.polynomial.legendre.leggauss(400)
    density, mass = np.zeros_like(z), 0.0
    for low, high in ((c, max(m, c) + 12 * s), (min(m, -c) - 12 * s, -c)):
        g = 0.5 * (high + low) + 0.5 * (high - low) * t
        p = 0.5 * (high - low) * w * np.exp(-0.5 * (g - m) ** 2 / v)
        density += np.exp(-0.5 * (z[:, None] - g) ** 2 / n) @ p / np.sqrt(2 * np.pi * n)
        mass += p.sum()
    return density / mass


def entropy(z: np.ndarray, p: np.ndarray) -> float:
    return float(-np.trapezoid(p * np.log(np.maximum(p, 1e-300)), z))


@pytest.mark.parametrize("case", [case for case in CASES[:-1] if case[2] > 1e-4])
def test_the_gain_is_the_fall_of_the_entropy_of_truncated_g_plus_noise(case) -> None:
    m, v, n, c = case
    wide = 12 * np.sqrt(v + n)
    z = np.linspace(-max(m, c) - wide, max(m, c) + wide, 4001)
    before = 0.5 * np.log(2 * np.pi * np.e * (v + n))
    truth = before - entropy(z, convolved(z, m, v, n, c))
    assert_allclose(truncation(*map(np.array, case)).value, truth, atol=1e-5)


def test_without_noise_it_is_the_truncated_gaussians_to_thirty_digits() -> None:
    m, v, c = 0.7, 0.4, 0.9
    with mpmath.workdps(30):
        s = mpmath.sqrt(v)
        Z = mpmath.ncdf((m - c) / s) + mpmath.ncdf((-m - c) / s)

        def p(g):
            return mpmath.npdf(g, m, s) / Z

        pieces = ([-12, -c], [c, 12])
        after = -sum(mpmath.quad(lambda g: p(g) * mpmath.log(p(g)), piece) for piece in pieces)
        truth = mpmath.log(2 * mpmath.pi * mpmath.e * v) / 2 - after
    got = truncation(*map(np.array, (m, v, 1e-24, c))).value
    assert_allclose(got, float(truth), atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_slopes_of_the_truncation_by_differences(case) -> None:
    found = truncation(*map(np.array, case), nodes=60)
    for i, slope in enumerate(found[1:]):
        h = 1e-5 * case[i]
        up, down = (list(case) for _ in range(2))
        up[i], down[i] = case[i] + h, case[i] - h
        ends = [truncation(*map(np.array, x), nodes=60).value for x in (up, down)]
        assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-7)


def test_a_gaussian_without_noise_is_as_in_the_literature() -> None:
    mean, var, minimum = np.array([[0.3], [-1.0]]), np.array([[0.5], [2.0]]), np.array([-0.6])
    got = MaxValueGain(minimum)(Mixture(mean, var))
    assert_allclose(got, truncation_gain((mean - minimum) / np.sqrt(var))[0][:, 0], atol=1e-8)
    assert FAR * 1e-13 < 1e-8


def test_noise_leaves_less_to_be_learnt() -> None:
    m, v, c = (np.array(x) for x in (1.5, 0.3, 1.0))
    gains = [float(truncation(m, v, np.array(n), c).value) for n in (1e-9, 1e-3, 0.1, 1.0, 100.0)]
    assert (np.diff(gains) < 0).all()
    assert gains[-1] < 1e-2 * gains[0]


def parabolas(m: np.ndarray, v: np.ndarray, eta: np.ndarray) -> Mixture:
    return Mixture(eta + 0.5 * (m * m + v), m * m * v + 0.5 * v * v)


def test_the_information_is_that_of_draws_of_y_itself() -> None:
    """With additive noise in y, not in g: relative entropies, which do not depend on the map.

    The gain less what the two Gaussian terms of z differ by is KL(q || p), here of y by histogram.
    """
    m, v, eta, minimum, noise = 2.0, 0.25, -3.0, -1.4, 0.02
    rng = np.random.default_rng(0)
    g = m + np.sqrt(v) * rng.standard_normal(2_000_000)
    f = eta + 0.5 * g * g
    y = f + np.sqrt(noise) * rng.standard_normal(len(f))
    edges = np.linspace(y.min(), y.max(), 200)
    p = np.histogram(y, edges)[0] / len(y)
    kept = y[f >= minimum]
    q = np.histogram(kept, edges)[0] / len(kept)
    relative = np.sum(q[q > 0] * np.log(q[q > 0] / p[q > 0]))
    c = np.sqrt(2 * (minimum - eta))
    n = float(in_g(noise, np.array(m * m + v))[0])
    gain = float(truncation(*map(np.array, (m, v, n, c))).value)
    outside = g[f >= minimum]
    gaussian = 0.5 * (v - np.mean((outside - m) ** 2)) / (v + n)
    assert_allclose(gain - gaussian, relative, rtol=0.05)


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.3])
def test_slopes_in_the_moments_by_differences(noise: float) -> None:
    rng = np.random.default_rng(0)
    mixture = parabolas(1.2 + rng.random((3, 4)), 0.01 + 0.3 * rng.random((3, 4)), ETA)
    assert_slopes(MaxValueGain(MINIMUM, ETA, noise), mixture, 1e-6)


def test_what_a_path_excludes_next_to_the_data_is_no_gain() -> None:
    """f* found 1e-6 of its spread too high, where f is known to 1e-9 of it: nothing is learnt."""
    at = parabolas(np.full((1, 4), 1.3), np.full((1, 4), 1e-20), ETA)
    minimum = at.means[0] + 1e-6 * spread(MINIMUM)
    assert abs(MaxValueGain(minimum, ETA)(at)[0]) < 1e-3


def test_a_minimum_below_eta_is_moved_there() -> None:
    alpha = MaxValueGain(ETA - 1, ETA)
    assert (alpha.minimum >= ETA).all()
    mixture = parabolas(np.full((2, 4), 1.0), np.full((2, 4), 0.1), ETA)
    assert np.isfinite(alpha(mixture)).all()
    with pytest.raises(ValueError, match="noise must be finite and at least 0"):
        MaxValueGain(MINIMUM, ETA, -1.0)
