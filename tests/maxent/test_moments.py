"""Moments of Gaussians against quadrature, and their gradients against finite differences."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.polynomial import legendre
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import eval_chebyt as chebyt
from scipy.special import eval_legendre as leg

from fitbo.maxent import FAMILIES, Basis, gaussian_moments, mixture_gradient, mixture_moments

RULE = legendre.leggauss(600)


def integrated(basis: Basis, a: float, s: float, inside: bool = False) -> np.ndarray:
    """E[phi_i] under N(a, s^2) on 600 Gauss-Legendre nodes; over [-1, 1] only if ``inside``."""
    low, high = a - 14 * s, a + 14 * s
    if inside:
        low, high = max(low, -1.0), min(high, 1.0)
    x, w = RULE
    u = (low + high) / 2 + (high - low) / 2 * x
    w = w * (high - low) / 2 * stats.norm.pdf(u, a, s)
    evaluate = {"power": lambda i: u**i, "chebyshev": chebyt, "legendre": leg}[basis.family]
    rows = [
        evaluate(i) if basis.family == "power" else evaluate(i, u) for i in range(basis.degree + 1)
    ]
    for k, rho in enumerate(basis.scales):
        rows.append(np.exp(-((u / rho) ** 2) / 2) * (u / rho if k % 2 else 1))
    return np.array(rows) @ w


def test_the_reference_itself_in_high_precision() -> None:
    basis = Basis("legendre", 4, 2)
    with mpmath.workdps(30):
        exact = mpmath.quad(
            lambda u: mpmath.legendre(4, u) * mpmath.npdf(u, 0.3, 0.11), mpmath.linspace(-1, 2, 13)
        )
    assert_allclose(integrated(basis, 0.3, 0.11)[4], float(exact), atol=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("a", "s"), [(0.3, 0.11), (-0.8, 0.02), (0.0, 0.4)])
def test_recursions_against_quadrature(family: str, a: float, s: float) -> None:
    basis = Basis(family, 6, 4)
    moments, _, _ = gaussian_moments(basis, np.array(a), np.array(s * s))
    assert_allclose(moments, integrated(basis, a, s), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("family", ["chebyshev", "legendre"])
def test_recursion_is_accurate_up_to_its_limit(family: str) -> None:
    """The widest component that is recursed, in the middle and at the edge, as on [-1, 1]."""
    for degree in (30, 60, 120, 200):
        basis = Basis(family, degree)
        s = 0.999 * min(4 / degree, 150 / degree**2, 1 / 8)
        for a in (0.0, 1 - 8 * s):
            moments, _, _ = gaussian_moments(basis, np.array(a), np.array(s * s))
            assert abs(moments - integrated(basis, a, s, inside=True)).max() < 2e-10


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_of_the_moments(family: str) -> None:
    basis = Basis(family, 9, 6)
    rng = np.random.default_rng(0)
    a, s2 = rng.uniform(-0.5, 0.5, 20), rng.uniform(0.01, 0.12, 20) ** 2
    _, by_a, by_s2 = gaussian_moments(basis, a, s2)
    h = 1e-5
    up, down = (gaussian_moments(basis, a + d, s2)[0] for d in (h, -h))
    assert_allclose(by_a, (up - down) / (2 * h), rtol=2e-6, atol=2e-6)
    step = h * s2
    up, down = (gaussian_moments(basis, a, s2 + d)[0] for d in (step, -step))
    assert_allclose(by_s2, (up - down) / (2 * step[:, None]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("degree", [6, 80])
@pytest.mark.parametrize("family", ["chebyshev", "legendre"])
def test_mixture_moments_recurse_or_integrate_to_the_same(family: str, degree: int) -> None:
    """Wide components are integrated on nodes, narrow ones recursed: both must be right."""
    basis = Basis(family, degree, 2)
    a, s2 = np.array([[0.1, -0.2, 0.3]]), np.array([[0.1, 0.01, 0.06]]) ** 2
    weights = np.array([[0.2, 0.5, 0.3]])
    moments = mixture_moments(basis, a, s2, weights)[0]
    picked = [0, 1, 2, 5, degree // 2, degree, degree + 1, degree + 2]
    exact = sum(
        w * integrated(basis, m, v**0.5, inside=True)[picked]
        for m, v, w in zip(a[0], s2[0], weights[0], strict=True)
    )
    assert_allclose(moments[picked], exact, atol=1e-11)


@pytest.mark.parametrize("degree", [6, 80])
def test_mixture_gradient(degree: int) -> None:
    basis = Basis("legendre", degree, 3)
    rng = np.random.default_rng(1)
    a, s2 = rng.uniform(-0.3, 0.3, (4, 5)), rng.uniform(0.01, 0.08, (4, 5)) ** 2
    weights = rng.dirichlet(np.ones(5), 4)
    c = rng.normal(size=(4, basis.size + 1)) / np.arange(1, basis.size + 2) ** 2

    def total(a: np.ndarray, s2: np.ndarray) -> np.ndarray:
        return (c * mixture_moments(basis, a, s2, weights)).sum(1)

    by_mean, by_variance = mixture_gradient(basis, a, s2, weights, c)
    h = 1e-6
    for j in range(5):
        e = np.eye(5)[j]
        slope = (total(a + h * e, s2) - total(a - h * e, s2)) / (2 * h)
        assert_allclose(by_mean[:, j], slope, rtol=1e-6, atol=1e-7)
        d = 1e-4 * s2 * e
        slope = (total(a, s2 + d) - total(a, s2 - d)) / (2e-4 * s2[:, j])
        assert_allclose(by_variance[:, j], slope, rtol=1e-5, atol=1e-5)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    basis = Basis("legendre", 5, 4)
    rng = np.random.default_rng(2)
    a, s2 = rng.uniform(-0.3, 0.3, (50, 7)), rng.uniform(0.01, 0.1, (50, 7)) ** 2
    weights = np.full((50, 7), 1 / 7)
    whole = mixture_moments(basis, a, s2, weights)
    monkeypatch.setattr("fitbo.maxent.moments.BLOCK", 10)
    assert np.array_equal(whole, mixture_moments(basis, a, s2, weights))
