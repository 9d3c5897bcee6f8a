"""The entropy of the remaining regret: against quadrature and draws, its slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma
from scipy.stats import gamma

from fitbo.acquisition.baselines import LogExpectedImprovement
from fitbo.acquisition.improvement import log_improvement
from fitbo.acquisition.remaining import SOLVER, RemainingRegret, gamma_entropy
from fitbo.maxent import Basis, solve
from fitbo.mixture import Mixture
from tests.acquisition.differences import assert_slopes

BEST = -1.0
ETA = np.array([-2.3, -2.1, -2.9, -2.6])
MINIMUM = np.array([-1.5, -1.2, -1.05, -1.4])


def parabolas(m: np.ndarray, v: np.ndarray) -> Mixture:
    return Mixture(ETA + 0.5 * (m * m + v), m * m * v + 0.5 * v * v)


def candidates(n: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return 1.2 + rng.random((n, 4)), 0.01 + 0.3 * rng.random((n, 4))


def both(R: np.ndarray, D: np.ndarray) -> np.ndarray:
    """D - R and log D - log R."""
    return np.stack([D - R, np.log(D) - np.log(R)])


@pytest.mark.parametrize("shape", [1e-2, 0.3, 1.0, 5.0, 1e3])
def test_the_entropy_is_the_gamma_laws_of_shape_at_most_one(shape: float) -> None:
    k, H = gamma_entropy(np.array(2.0), np.log(2.0) + digamma(shape) - np.log(shape))
    assert_allclose(k, min(shape, 1.0), rtol=1e-9)
    assert_allclose(H, gamma(k, scale=2.0 / k).entropy(), atol=1e-9)


def test_the_moments_are_those_of_truncated_draws() -> None:
    m, v = candidates()
    alpha = RemainingRegret(BEST, ETA, MINIMUM)
    fall = alpha._falls(parabolas(m, v), both).value
    D = np.broadcast_to(BEST - MINIMUM, m.shape)
    rng = np.random.default_rng(1)
    for b, j in np.ndindex(m.shape):
        f = ETA[j] + 0.5 * (m[b, j] + np.sqrt(v[b, j]) * rng.standard_normal(200_000)) ** 2
        R = np.minimum(BEST, f[f > MINIMUM[j]]) - MINIMUM[j]
        for moment, drawn in ((fall[0], D[b, j] - R), (fall[1], np.log(D[b, j]) - np.log(R))):
            error = 5 * drawn.std() / np.sqrt(len(drawn)) + 1e-4
            assert abs(moment[b, j] - drawn.mean()) < error


def test_one_moment_is_expected_improvement() -> None:
    """E D - E R = EI of the truncated law, and of the law itself where nothing is truncated."""
    other = LogExpectedImprovement(BEST, ETA).value_and_grad(parabolas(*candidates()))
    rung = RemainingRegret(BEST, ETA, MINIMUM, moments=1).value_and_grad(parabolas(*candidates()))
    for mine, theirs in zip(rung, other, strict=True):
        assert_allclose(mine, theirs, rtol=1e-12)
    m, v = candidates()
    mixture = parabolas(m, v)
    untruncated = RemainingRegret(BEST, ETA, ETA)
    improvement = np.exp(log_improvement(mixture.means, mixture.variances, BEST, ETA)[0])
    assert_allclose(untruncated._falls(mixture, both).value[0], improvement, rtol=1e-6)


@pytest.mark.parametrize("faint", [False, True])
def test_the_slopes_are_those_of_differences(faint: bool) -> None:
    m, v = candidates()
    if faint:  # far above the best value, where the gain is below rounding
        m, v = m + 2.0, 0.01 * v + 0.05
    mixture = parabolas(m, v)
    alpha = RemainingRegret(BEST, ETA, MINIMUM)
    value = alpha(mixture)
    assert np.isfinite(value).all()
    assert (value < np.log(1e-7)).all() == faint
    assert_slopes(alpha, mixture, 1e-6, atol=1e-6)


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


@pytest.mark.parametrize("moments", [3, 4, 10])
def test_more_moments_are_the_maximum_entropy_law_of_draws(moments: int) -> None:
    m, v = candidates()
    gain = RemainingRegret(BEST, ETA, MINIMUM, moments)(parabolas(m, v))
    D, rng = BEST - MINIMUM, np.random.default_rng(2)

    def entropy(regrets: list[np.ndarray]) -> float:
        u = (2 * R / D.max() - 1 for R in regrets)
        means = [np.polynomial.legendre.legvander(each, moments).mean(0) for each in u]
        return float(solve(np.mean(means, axis=0), Basis("legendre", moments), **SOLVER).dual)

    before = entropy([D[j : j + 1] for j in range(4)])
    for b in range(len(m)):
        f = ETA + 0.5 * (m[b] + np.sqrt(v[b]) * rng.standard_normal((400_000, 4))) ** 2
        drawn = [np.minimum(BEST, f[f[:, j] > MINIMUM[j], j]) - MINIMUM[j] for j in range(4)]
        assert_allclose(gain[b], before - entropy(drawn), atol=0.02)


def test_candidates_with_weights_of_their_own_have_their_own_law_before() -> None:
    m, v = candidates()
    weights = np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    p, alpha = parabolas(m, v), RemainingRegret(BEST, ETA, MINIMUM, 4)
    alone = [alpha(Mixture(p.means[i], p.variances[i], weights[i])) for i in range(3)]
    assert_allclose(alpha(Mixture(p.means, p.variances, weights)), alone, rtol=1e-7)
    assert np.ptp(alone) > 1e-3


def test_every_further_moment_tightens_the_bound() -> None:
    """-H falls from rung to rung where the law after the evaluation is compared with itself."""
    m, v = candidates()
    mixture, D = parabolas(m, v), BEST - MINIMUM
    entropies = []
    for moments in (3, 4, 7, 10):
        alpha = RemainingRegret(BEST, ETA, MINIMUM, moments)
        u = 2 * D / D.max() - 1
        start = np.polynomial.legendre.legvander(u, moments).mean(0)
        before = solve(start, Basis("legendre", moments), **SOLVER).dual
        entropies.append(before - alpha(mixture))
    assert (np.diff(entropies, axis=0) < 1e-6).all()


@pytest.mark.parametrize("moments", [1, 3, 4, 10])
@pytest.mark.parametrize("faint", [False, True])
def test_slopes_of_every_rung_by_differences(moments: int, faint: bool) -> None:
    m, v = candidates()
    if faint:
        m, v = m + 2.0, 0.01 * v + 0.05
    mixture = parabolas(m, v)
    alpha = RemainingRegret(BEST, ETA, MINIMUM, moments)
    value, by_mean, _ = alpha.value_and_grad(mixture)
    assert np.isfinite(value).all()
    scale = abs(by_mean).max()
    assert_slopes(alpha, mixture, 1e-5, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("moments", [1, 2, 4])
def test_several_draws_of_a_minimum_are_as_many_samples(moments: int) -> None:
    m, v = candidates()
    p, draws = parabolas(m, v), np.stack([MINIMUM, MINIMUM - 0.2, MINIMUM + 0.05])
    alpha = RemainingRegret(BEST, ETA, draws, moments)
    many = Mixture(np.tile(p.means, 3), np.tile(p.variances, 3))
    same = RemainingRegret(BEST, np.tile(ETA, 3), draws.ravel(), moments)
    assert_allclose(alpha(p), same(many), rtol=1e-9)
    assert_slopes(alpha, p, 1e-5, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("moments", [1, 2, 10])
@pytest.mark.parametrize("draws", [1, 3])
def test_every_sample_may_have_a_value_of_its_own_to_improve_upon(moments: int, draws: int) -> None:
    """Only what lies below it counts: as if all were moved by it."""
    targets, p = np.array([-1.0, -1.1, -1.02, -1.0]), parabolas(*candidates())
    minimum = MINIMUM - 0.1 * np.arange(draws)[:, None] if draws > 1 else MINIMUM
    alpha = RemainingRegret(targets, ETA, minimum, moments)
    moved = RemainingRegret(0.0, ETA - targets, minimum - targets, moments)
    assert_allclose(alpha(p), moved(Mixture(p.means - targets, p.variances)), rtol=1e-8)
    assert_slopes(alpha, p, 1e-5, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("moments", [1, 2, 3, 10])
def test_a_sample_that_expects_its_own_bound_leaves_a_finite_gain(moments: int) -> None:
    """best - eta of 1e-9 and less, whose billionth is below the rounding of best."""
    targets, p = np.array([-1.0, ETA[1] + 4e-8, ETA[2], -1.0]), parabolas(*candidates())
    gains = RemainingRegret(targets, ETA, MINIMUM, moments).value_and_grad(p)
    assert all(np.isfinite(gain).all() for gain in gains)


@pytest.mark.parametrize("moments", [0, 31, 2.5])
def test_moments_are_a_number_of_them(moments: float) -> None:
    with pytest.raises(ValueError, match="moments must be"):
        RemainingRegret(BEST, ETA, MINIMUM, moments)


@pytest.mark.parametrize("moments", [4, 10])
def test_a_few_minima_that_are_alike_leave_a_finite_gain(moments: int) -> None:
    """Atoms, whose law has no entropy: one place, or one sample with all of the weight."""
    m, v = candidates()
    p = parabolas(m, v)
    same = RemainingRegret(BEST, ETA, np.full(4, -1.3), moments)
    assert np.isfinite(same.value_and_grad(p)[1]).all()
    weighted = Mixture(p.means, p.variances, np.array([1.0, 0.0, 0.0, 0.0]))
    gains = RemainingRegret(BEST, ETA, MINIMUM, moments).value_and_grad(weighted)
    assert all(np.isfinite(g).all() for g in gains)


@pytest.mark.parametrize("moments", [2, 10])
def test_the_slopes_hold_where_a_component_is_sure_of_an_improvement(moments: int) -> None:
    """m + 8 s < c: a narrow density far from either end of the interval."""
    m = np.array([[1.2, 1.3, 1.7, 1.5], [1.3, 1.1, 1.6, 1.4]])
    v = np.array([[1e-4, 2e-3, 1e-3, 1e-5], [1e-3, 1e-4, 1e-4, 3e-3]])
    mixture = parabolas(m, v)
    assert (0.5 * (m + 8 * np.sqrt(v)) ** 2 < BEST - ETA)[:, 0].all()
    assert_slopes(RemainingRegret(BEST, ETA, MINIMUM, moments), mixture, 1e-8, 1e-4, 1e-5)
