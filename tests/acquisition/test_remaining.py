"""The entropy of the remaining regret: against quadrature and draws, its slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma
from scipy.stats import gamma

from fitbo.acquisition.improvement import log_improvement
from fitbo.acquisition.remaining import RemainingRegret, gamma_entropy
from fitbo.mixture import Mixture

BEST = -1.0
ETA = np.array([-2.3, -2.1, -2.9, -2.6])
MINIMUM = np.array([-1.5, -1.2, -1.05, -1.4])


def parabolas(m: np.ndarray, v: np.ndarray) -> Mixture:
    return Mixture(ETA + 0.5 * (m * m + v), m * m * v + 0.5 * v * v)


def candidates(n: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return 1.2 + rng.random((n, 4)), 0.01 + 0.3 * rng.random((n, 4))


@pytest.mark.parametrize("shape", [1e-2, 0.3, 1.0, 5.0, 1e3])
def test_the_entropy_is_the_gamma_laws_of_shape_at_most_one(shape: float) -> None:
    k, H = gamma_entropy(np.array(2.0), np.log(2.0) + digamma(shape) - np.log(shape))
    assert_allclose(k, min(shape, 1.0), rtol=1e-9)
    assert_allclose(H, gamma(k, scale=2.0 / k).entropy(), atol=1e-9)


def test_the_moments_are_those_of_truncated_draws() -> None:
    m, v = candidates()
    alpha = RemainingRegret(BEST, ETA, MINIMUM)
    D, fall, _, _ = alpha._moments(parabolas(m, v))
    assert_allclose(D, np.broadcast_to(BEST - MINIMUM, D.shape))
    rng = np.random.default_rng(1)
    for b, j in np.ndindex(m.shape):
        f = ETA[j] + 0.5 * (m[b, j] + np.sqrt(v[b, j]) * rng.standard_normal(200_000)) ** 2
        R = np.minimum(BEST, f[f > MINIMUM[j]]) - MINIMUM[j]
        for moment, drawn in ((fall[0], D[b, j] - R), (fall[1], np.log(D[b, j]) - np.log(R))):
            error = 5 * drawn.std() / np.sqrt(len(drawn)) + 1e-4
            assert abs(moment[b, j] - drawn.mean()) < error


def test_one_moment_is_expected_improvement() -> None:
    """E D - E R = EI of the truncated law, and of the law itself where nothing is truncated."""
    m, v = candidates()
    mixture = parabolas(m, v)
    untruncated = RemainingRegret(BEST, ETA, ETA)
    improvement = np.exp(log_improvement(mixture.means, mixture.variances, BEST, ETA)[0])
    assert_allclose(untruncated._moments(mixture)[1][0], improvement, rtol=1e-6)


@pytest.mark.parametrize("faint", [False, True])
def test_the_slopes_are_those_of_differences(faint: bool) -> None:
    m, v = candidates()
    if faint:  # far above the best value, where the gain is below rounding
        m, v = m + 2.0, 0.01 * v + 0.05
    mixture = parabolas(m, v)
    alpha = RemainingRegret(BEST, ETA, MINIMUM)
    value, by_mean, by_variance = alpha.value_and_grad(mixture)
    assert np.isfinite(value).all()
    assert (value < np.log(1e-7)).all() == faint
    h = 1e-6
    for j in range(4):
        step = h * np.eye(4)[j]
        up, down = (alpha(Mixture(mixture.means + s, mixture.variances)) for s in (step, -step))
        assert_allclose(by_mean[:, j], (up - down) / (2 * h), rtol=1e-4, atol=1e-6)
        up, down = (alpha(Mixture(mixture.means, mixture.variances + s)) for s in (step, -step))
        assert_allclose(by_variance[:, j], (up - down) / (2 * h), rtol=1e-4, atol=1e-6)


def test_the_faint_gain_continues_the_full_one() -> None:
    m = np.full((60, 4), 1.6) + np.linspace(0.0, 2.5, 60)[:, None]
    value = RemainingRegret(BEST, ETA, MINIMUM)(parabolas(m, np.full_like(m, 0.05)))
    assert value[0] > np.log(1e-3)
    assert value[-1] < np.log(1e-10)
    assert (np.diff(value) < 0).all()
    assert abs(np.diff(value, 3)).max() < 0.05  # no jump where one formula takes over


def test_a_minimum_at_or_above_the_best_value_is_moved_below_it() -> None:
    m, v = candidates()
    alpha = RemainingRegret(BEST, ETA, np.array([BEST, BEST + 1, ETA[2] - 1, -1.2]))
    assert (alpha.minimum < BEST).all()
    assert (alpha.minimum >= ETA).all()
    assert np.isfinite(alpha(parabolas(m, v))).all()
