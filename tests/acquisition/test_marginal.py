"""Theta as a nuisance: moments against draws, the gain of a joint law, slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from fitbo.acquisition.marginal import MarginalGain, Truncated, log_densities
from fitbo.entropy import Quad
from fitbo.mixture import Mixture
from tests.acquisition.differences import assert_slopes

ETA = np.array([-2.3, -2.1, -2.9, -2.6])
QUAD = Quad(tol=1e-11)


def draws(n: int = 6) -> np.ndarray:
    """f* of four samples, (n, 4)."""
    rng = np.random.default_rng(1)
    return ETA + np.exp(np.array([-0.3, -0.1, 0.4, 0.1]) + 0.2 * rng.standard_normal((n, 4)))


def candidates() -> Mixture:
    rng = np.random.default_rng(0)
    m, v = 1.2 + rng.random((3, 4)), 0.01 + 0.3 * rng.random((3, 4))
    return Mixture(ETA + 0.5 * (m * m + v), m * m * v + 0.5 * v * v)


CASES = [(1.5, 0.3, 1.0), (1.0, 0.2, 1.3), (0.05, 1.0, 1.2), (2.0, 0.01, 1.6), (1.0, 0.01, 1.7)]


@pytest.mark.parametrize("case", CASES[:4])
def test_moments_of_the_truncated_parabola_are_those_of_draws(case) -> None:
    m, v, c = case
    g = m + np.sqrt(v) * np.random.default_rng(0).standard_normal(2_000_000)
    f = 0.5 * g[abs(g) >= c] ** 2
    cut = Truncated.of(*map(np.array, case))
    assert abs(cut.mean - f.mean()) < 5 * f.std() / np.sqrt(len(f))
    assert_allclose(cut.variance, f.var(), rtol=0.02)


@pytest.mark.parametrize("case", CASES)
def test_slopes_of_the_truncated_moments_by_differences(case) -> None:
    m, v, c = map(np.array, case)
    cut, h = Truncated.of(m, v, c), 1e-6
    up, down = Truncated.of(m + h, v, c), Truncated.of(m - h, v, c)
    assert_allclose(cut.mean_m, (up.mean - down.mean) / (2 * h), rtol=1e-5, atol=1e-7)
    assert_allclose(cut.variance_m, (up.variance - down.variance) / (2 * h), rtol=1e-5, atol=1e-7)
    up, down = Truncated.of(m, v + h, c), Truncated.of(m, v - h, c)
    assert_allclose(cut.mean_v, (up.mean - down.mean) / (2 * h), rtol=1e-5, atol=1e-7)
    assert_allclose(cut.variance_v, (up.variance - down.variance) / (2 * h), rtol=1e-5, atol=1e-7)


def test_the_density_of_the_minimum_is_a_normal_one_of_its_logarithm() -> None:
    found, values = draws(), np.array([-2.25, -1.5, -1.0])
    gaps = np.log(found - ETA)
    variance = (1 + 1 / 6) * gaps.var(0, ddof=1).mean()
    above = values[:, None] - ETA
    with np.errstate(invalid="ignore", divide="ignore"):
        truth = norm.logpdf(np.log(above), gaps.mean(0), np.sqrt(variance)) - np.log(above)
    got = log_densities(values, found, ETA)
    assert_allclose(got[above > 0], truth[above > 0])
    assert (got[above <= 0] == -np.inf).all()


def test_the_posterior_of_theta_is_by_bayes_and_averages_to_the_weights_before() -> None:
    alpha = MarginalGain(draws(), ETA)
    w = np.array([0.1, 0.2, 0.3, 0.4])
    found = alpha.posterior(w)
    assert_allclose(found.sum(-1), 1.0)
    assert_allclose(
        found[2] / found[2, 0],
        w * np.exp(alpha.log_density[2]) / (w[0] * np.exp(alpha.log_density[2, 0])),
    )
    assert found.mean(0).min() > 0


def test_where_nothing_is_cut_off_it_is_what_y_tells_about_theta_through_the_minimum() -> None:
    """Far above f*: I(y; q), q the index of the value, of a joint law of q, theta and y."""
    rng = np.random.default_rng(3)
    m, v = 3 + 0.5 * rng.random((2, 4)), np.full((2, 4), 0.02)
    p = Mixture(ETA + 0.5 * (m * m + v), m * m * v + 0.5 * v * v)
    alpha = MarginalGain(draws(), ETA, 0.01, entropy=QUAD)
    after = alpha.posterior(p.weights)
    y = np.linspace(-5, 15, 40001)
    for b in range(2):
        each = np.stack(
            [
                norm.pdf(y, a, np.sqrt(s + 0.01))
                for a, s in zip(p.means[b], p.variances[b], strict=True)
            ]
        )
        given = after[b] @ each

        def entropy(density: np.ndarray) -> float:
            return float(-np.trapezoid(density * np.log(np.maximum(density, 1e-300)), y))

        truth = entropy(given.mean(0)) - np.mean([entropy(row) for row in given])
        assert truth > 0.01
        assert_allclose(alpha(p)[b], truth, rtol=1e-2)


@pytest.mark.parametrize("entropy", [QUAD, "mm"])
def test_slopes_by_differences(entropy) -> None:
    p = candidates()
    alpha = MarginalGain(draws(), ETA, 0.01, entropy=entropy)
    assert_slopes(alpha, p, 1e-5, atol=1e-6)


def test_one_draw_for_each_sample_will_do_and_weights_of_none_are_no_trouble() -> None:
    p = candidates()
    one = MarginalGain(draws(1)[0], ETA)
    assert np.isfinite(one(p)).all()
    alone = Mixture(p.means, p.variances, np.array([0.0, 0.0, 1.0, 0.0]))
    assert all(np.isfinite(a).all() for a in MarginalGain(draws(), ETA).value_and_grad(alone))
    with pytest.raises(ValueError, match="floor must be finite"):
        MarginalGain(draws(), None)


def test_the_prior_of_theta_is_the_weights_of_the_samples() -> None:
    """The law of f* is that of the weighted draws, so that theta is what it was before."""
    rng = np.random.default_rng(0)
    eta, where = np.full(20, -3.0), np.repeat([-1.0, -2.0], 10)
    F = where + 0.05 * rng.standard_normal((4, 20))
    w = np.repeat([0.099, 0.001], 10)
    gain = MarginalGain(F, eta, entropy=QUAD, weights=w)
    assert abs(gain.posterior(w).mean(-2)[:10].sum() - 0.99) < 0.03
