"""The improvement still to be expected, against a dense grid."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from fitbo.acquisition.feasibility import Success, learn
from fitbo.inference.fit import Model
from fitbo.inference.stopping import expected_improvement
from fitbo.space import Space
from fitbo.surrogate import Rule, Standardiser, condition

SPACE = Space([(0, 1)])
GRID = np.linspace(0, 1, 1001)[:, None]
X = np.array([[0.0], [0.1], [0.5], [0.62], [1.0]])
Y = 7 + 3 * np.array([1.0, 0.5, -0.4, -0.3, 1.2])  # a scale that R must be given back in


def known_fit(rule: Rule, gaps: tuple[float, ...]) -> Model:
    """Five values, and a sample for each gap, of as many lengthscales."""
    scale = Standardiser.fit(Y)
    n = len(gaps)
    theta = np.column_stack([np.linspace(0.15, 0.3, n), np.full(n, 0.7), np.full(n, 1e-3), gaps])
    return Model(X, Y, scale, condition(X, scale(Y), np.log(theta), kernel="rbf", rule=rule))


def gains(fit: Model) -> tuple[np.ndarray, np.ndarray]:
    """E_j[max(b - f(x), 0)] over the grid, (G, M), by the law of f itself; and b - eta_j, (M,)."""
    b = fit.surrogate.predict(X).mean.min()
    if fit.surrogate.rule == "linearised":
        mixture = fit.surrogate.predict(GRID)
        z = (b - mixture.means) / mixture.deviations
        each = mixture.deviations * (z * norm.cdf(z) + norm.pdf(z))
    else:  # f = eta + g^2/2, with g at the midpoints of equal shares of its law
        latent = fit.surrogate._latent(GRID, gradient=False)
        e = norm.ppf((np.arange(2000) + 0.5) / 2000)
        g = latent.m[..., None] + np.sqrt(latent.v)[..., None] * e
        f = fit.surrogate.eta[:, None] + g * g / 2
        each = np.maximum(b - f, 0).mean(-1)
    return each, b - fit.surrogate.eta


def over_the_grid(fit: Model, success: Success | None, capped: bool) -> float:
    """R, the cap at the x found without it."""
    each, most = gains(fit)
    chance = np.ones(len(GRID)) if success is None else success(GRID)
    weight = chance if success is None else success.weight(chance)[0]
    best = np.argmax(weight * each.mean(1))
    gain = np.minimum(each[best], most) if capped else each[best]
    return fit.scale.scale * chance[best] * gain.mean()


def remaining(fit: Model, success: Success | None = None) -> float:
    return expected_improvement(fit, SPACE, np.random.default_rng(0), success)


def failures() -> Success:
    """Around x = 0.3, where there is the most to be gained."""
    return learn(SPACE, X, np.array([[0.27], [0.31], [0.35]]))


@pytest.mark.parametrize("success", [None, failures()], ids=["none failed", "some failed"])
def test_no_sample_gains_more_than_its_minimum_allows(success: Success | None) -> None:
    """Of a Gaussian that reaches below eta; one sample is bound, one is not."""
    fit = known_fit("linearised", (0.02, 0.1, 2.0))
    expected = over_the_grid(fit, success, capped=True)
    assert expected < 0.8 * over_the_grid(fit, success, capped=False)
    # The place is the maximum's without the cap, so with it R feels the grid to first order.
    assert_allclose(remaining(fit, success), expected, rtol=1e-2)


def test_a_parabola_knows_its_minimum() -> None:
    fit = known_fit("moment_matched", (0.02, 0.1, 2.0))
    expected = over_the_grid(fit, None, capped=True)
    assert expected == over_the_grid(fit, None, capped=False)
    assert_allclose(remaining(fit), expected, rtol=1e-3)


@pytest.mark.parametrize("rule", ["moment_matched", "linearised"])
def test_what_may_fail_counts_by_its_chance(rule: Rule) -> None:
    """Where the search would look: neither at the plain maximum's place nor of its value."""
    fit, success = known_fit(rule, (1.0, 2.0)), failures()
    expected = over_the_grid(fit, success, capped=True)
    each, _ = gains(fit)
    plain = np.argmax(each.mean(1))
    there = fit.scale.scale * success(GRID)[plain] * each[plain].mean()
    assert there < 0.9 * expected < 0.9 * 0.9 * over_the_grid(fit, None, capped=True)
    assert_allclose(remaining(fit, success), expected, rtol=1e-3)
