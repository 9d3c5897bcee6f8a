"""Acquisitions against quadrature, Monte Carlo, central differences and fifty-digit arithmetic."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from fitbo.acquisition import Acquisition, InformationGain, information_gain
from fitbo.acquisition.baselines import (
    ACQUISITIONS,
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
    MaxValueEntropySearch,
    ProbabilityOfImprovement,
    Random,
    Thompson,
    acquisition,
)
from fitbo.acquisition.maxvalue import MaxValueGain
from fitbo.acquisition.remaining import RemainingRegret
from fitbo.entropy import Quad
from fitbo.mixture import Mixture

B, M = 6, 5
BEST = -0.4
ETA = np.linspace(-3.0, -1.0, M)
# Joint entropy search compares pairs of components (``test_joint``), and what f* says of the
# samples depends on all of them (``test_marginal``).
PLAIN = [name for name in ACQUISITIONS if name not in ("jes", "mes-marginal")]


def mixture(equal=False, seed=0, batch=(B,)):
    rng = np.random.default_rng(seed)
    shape = (*batch, M)
    weights = None if equal else rng.dirichlet(np.ones(M), batch)
    return Mixture(rng.standard_normal(shape), rng.uniform(0.05, 2.0, shape), weights)


def make(name):
    facts = {"entropy": Quad(tol=1e-12), "best": BEST, "eta": ETA, "beta": 2.0}
    if name in ("remaining", "mes"):  # of parabolas
        facts |= {"floor": ETA - 5, "minimum": ETA}
    return acquisition(name, **facts, rng=np.random.default_rng(3))


def average(p, f):
    """sum_j w_j f(m_j, s_j, j), one row at a time: the slow and obvious way."""
    return np.array(
        [
            sum(w * f(m, np.sqrt(v), j) for j, (m, v, w) in enumerate(zip(*row, strict=True)))
            for row in zip(p.means, p.variances, p.weights, strict=True)
        ]
    )


# ------------------------------------------------------------------------- all acquisitions


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("name", PLAIN)
def test_gradients_by_central_differences(name, equal):
    p, acq, step = mixture(equal), make(name), 1e-5
    value, by_mean, by_variance = acq.value_and_grad(p)
    np.testing.assert_allclose(value, acq(p), rtol=1e-12, atol=1e-14)
    for j in range(M):
        e = step * np.eye(M)[j]
        up = acq(Mixture(p.means + e, p.variances, p.weights))
        down = acq(Mixture(p.means - e, p.variances, p.weights))
        np.testing.assert_allclose(by_mean[:, j], (up - down) / (2 * step), rtol=1e-6, atol=1e-8)
        up = acq(Mixture(p.means, p.variances + e, p.weights))
        down = acq(Mixture(p.means, p.variances - e, p.weights))
        np.testing.assert_allclose(
            by_variance[:, j], (up - down) / (2 * step), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("name", PLAIN)
def test_shapes_and_batches(name):
    p, acq = mixture(batch=(3, 2)), make(name)
    assert isinstance(acq, Acquisition)
    value, by_mean, by_variance = acq.value_and_grad(p)
    assert value.shape == (3, 2)
    assert by_mean.shape == by_variance.shape == (3, 2, M)
    one = Mixture(p.means[1, 1], p.variances[1, 1], p.weights[1, 1])
    np.testing.assert_allclose(acq(one), value[1, 1], rtol=1e-9)
    none = Mixture(np.empty((0, M)), np.empty((0, M)))
    assert acq(none).shape == (0,)


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"thompson", "random"}))
def test_a_component_of_no_weight_does_not_count(name):
    p = mixture()
    weights = p.weights.copy()
    weights[:, 1] = 0
    weights /= weights.sum(1, keepdims=True)
    full = Mixture(p.means, p.variances, weights)
    keep = [0, 2, 3, 4]
    rest = Mixture(p.means[:, keep], p.variances[:, keep], weights[:, keep])
    acq = make(name)
    # Both see the same noise: what is too fine to count depends on the minima.
    resolved = MaxValueGain(ETA[keep]).noise
    others = {
        "mes": lambda: replace(MaxValueGain(ETA[keep], ETA[keep] - 5), noise=acq.noise - resolved),
        "mes-eta": lambda: MaxValueEntropySearch(ETA[keep]),
        "remaining": lambda: RemainingRegret(BEST, ETA[keep] - 5, ETA[keep]),
    }
    other = others.get(name, lambda: acq)()
    for a, b in zip(acq.value_and_grad(full), other.value_and_grad(rest), strict=True):
        np.testing.assert_allclose(a[..., keep] if a.ndim == 2 else a, b, rtol=1e-8, atol=1e-10)


# ------------------------------------------------------------------------- information gain


def test_information_gain_is_the_mutual_information_of_y_and_j():
    """I(y; j) = E[log N_j(y) - log p(y)], by brute force."""
    p, rng, n = mixture(batch=(3,)), np.random.default_rng(5), 200_000
    for b in range(3):
        j = rng.choice(M, n, p=p.weights[b])
        y = rng.normal(p.means[b, j], p.deviations[b, j])
        row = Mixture(p.means[b], p.variances[b], p.weights[b])
        gains = stats.norm.logpdf(y, p.means[b, j], p.deviations[b, j]) - row.log_pdf(y)
        error = gains.std() / np.sqrt(n)
        assert abs(information_gain(row, "quad") - gains.mean()) < 4 * error


def test_information_gain_is_not_negative_nor_above_the_entropy_of_the_weights():
    p = mixture(batch=(200,), seed=2)
    gain = information_gain(p, "quad")
    assert (gain > -1e-8).all()
    assert (gain < stats.entropy(p.weights, axis=1) + 1e-8).all()


def test_components_far_apart_tell_all():
    p = Mixture(1e4 * np.arange(4.0), np.ones(4))
    assert information_gain(p, "quad") == pytest.approx(np.log(4), abs=1e-8)


@pytest.mark.parametrize("entropy", ["quad", "mm", "vub", "memel", "meme", "memec"])
def test_information_gain_vanishes_when_the_components_coincide(entropy):
    p = Mixture(np.full((3, M), 0.7), np.array([[1e-4], [1.0], [1e4]]) * np.ones(M))
    np.testing.assert_allclose(information_gain(p, entropy), 0, atol=1e-5)


def test_any_entropy_will_do():
    p = mixture()
    expected = information_gain(p, "quad")
    assert information_gain(p).shape == (B,)
    np.testing.assert_allclose(information_gain(p, Quad()), expected)
    np.testing.assert_allclose(InformationGain(lambda q: Quad()(q))(p), expected)
    with pytest.raises(ValueError, match="did you mean 'memel'"):
        InformationGain("memell")


# ------------------------------------------------------------------------- improvement


def test_expected_improvement_against_quadrature():
    def truth(m, s, _):
        density = stats.norm(m, s).pdf
        low = min(m, BEST) - 12 * s
        return quad(lambda y: (BEST - y) * density(y), low, BEST, epsabs=1e-13, limit=200)[0]

    p = mixture()
    expected = average(p, truth)
    np.testing.assert_allclose(ExpectedImprovement(BEST)(p), expected, rtol=1e-8)
    np.testing.assert_allclose(LogExpectedImprovement(BEST)(p), np.log(expected), atol=1e-8)


def test_improvements_against_monte_carlo():
    p, n = mixture(), 200_000
    y = p.sample(np.random.default_rng(1), n)
    for acq, draws in (
        (ExpectedImprovement(BEST), np.maximum(BEST - y, 0)),
        (ProbabilityOfImprovement(BEST), (y < BEST).astype(float)),
    ):
        assert (abs(acq(p) - draws.mean(1)) < 4 * draws.std(1) / np.sqrt(n)).all()


def exact_log_h(z):
    z = mpmath.mpf(z)
    return mpmath.log(mpmath.npdf(z) + z * mpmath.ncdf(z))


@pytest.mark.parametrize("z", [30.0, 5.0, 0.0, -0.99, -1.01, -5.0, -24.9, -25.1, -40.0, -1e3, -1e5])
def test_log_expected_improvement_and_its_slopes_to_fifty_digits(z):
    s = 0.3
    with mpmath.workdps(60 + int(2 * np.log10(abs(z) + 1)) * 4):
        # ncdf loses digits to cancellation in z Phi + phi: hence the working precision above.
        log_h = float(exact_log_h(z))
        h = mpmath.npdf(z) + mpmath.mpf(z) * mpmath.ncdf(z)
        by_mean = float(-mpmath.ncdf(z) / h) / s
        by_variance = float(mpmath.npdf(z) / h) / (2 * s * s)
    p = Mixture([-z * s], [s * s])
    value, dm, dv = LogExpectedImprovement(0.0).value_and_grad(p)
    assert value == pytest.approx(log_h + np.log(s), rel=1e-13, abs=1e-13)
    assert dm[0] == pytest.approx(by_mean, rel=1e-12)
    assert dv[0] == pytest.approx(by_variance, rel=1e-12, abs=1e-300)


def test_log_expected_improvement_orders_what_underflows():
    means = np.linspace(60, 40, 50)[:, None] + np.array([0.0, 3.0])
    p = Mixture(means, np.ones_like(means))
    assert (ExpectedImprovement(0.0)(p) == 0).any()
    value, by_mean, by_variance = LogExpectedImprovement(0.0).value_and_grad(p)
    assert np.isfinite(value).all()
    assert (np.diff(value) > 0).all()
    assert (by_mean <= 0).all()
    assert (by_variance >= 0).all()
    assert (by_mean[:, 0] < -1).all()


def test_log_expected_improvement_is_the_log_of_the_average():
    p = mixture(seed=4)
    np.testing.assert_allclose(
        LogExpectedImprovement(BEST)(p), np.log(ExpectedImprovement(BEST)(p)), rtol=1e-12
    )


# ------------------------------------------------------------------------- the others


@pytest.mark.parametrize("kind", [ExpectedImprovement, LogExpectedImprovement])
@pytest.mark.parametrize("parabolic", [True, False])
def test_every_component_may_have_a_value_of_its_own_to_improve_upon(kind, parabolic):
    rng = np.random.default_rng(3)
    means, variances = 1 + rng.random((B, M)), 0.1 + rng.random((B, M))
    best, floor = 0.5 + 0.4 * rng.random(M), -1 - rng.random(M) if parabolic else None
    moved = None if floor is None else floor - best
    own = kind(best, floor)(Mixture(means, variances))
    np.testing.assert_allclose(own, kind(0.0, moved)(Mixture(means - best, variances)), rtol=1e-9)


def test_lower_confidence_bound_counts_disagreement():
    p = mixture()
    sigma = np.sqrt((p.weights * (p.variances + p.means**2)).sum(1) - p.mean**2)
    np.testing.assert_allclose(LowerConfidenceBound(2.25)(p), 1.5 * sigma - p.mean)
    agree = Mixture(np.zeros(2), np.ones(2))
    differ = Mixture([-1.0, 1.0], np.ones(2))
    bound = LowerConfidenceBound()
    assert bound(differ) > bound(agree)


def test_max_value_entropy_search_is_the_entropy_lost_to_truncation():
    """H[N(m, s^2)] - H[N(m, s^2) given y > eta_j], by scipy's truncated normal."""

    def truth(m, s, j):
        law = stats.truncnorm((ETA[j] - m) / s, np.inf, loc=m, scale=s)
        lost = quad(lambda y: -law.pdf(y) * law.logpdf(y), ETA[j], max(m, ETA[j]) + 12 * s)[0]
        return stats.norm(m, s).entropy() - lost

    p = mixture()
    np.testing.assert_allclose(MaxValueEntropySearch(ETA)(p), average(p, truth), rtol=1e-6)


def test_max_value_entropy_search_prefers_low_and_uncertain():
    acq = MaxValueEntropySearch(np.array(-1.0))
    low, high = Mixture([-0.5], [0.1]), Mixture([1.0], [0.1])
    assert acq(low) > acq(high) > 0
    assert acq(Mixture([1.0], [1.0])) > acq(high)


@pytest.mark.parametrize("gamma", [35.0, 3.0, 0.0, -0.99, -1.01, -10.0, -24.9, -25.1, -1e3, -1e7])
def test_max_value_entropy_search_to_fifty_digits(gamma):
    def a(x):
        return x * mpmath.npdf(x) / (2 * mpmath.ncdf(x)) - mpmath.log(mpmath.ncdf(x))

    with mpmath.workdps(80):
        value, slope = float(a(mpmath.mpf(gamma))), float(mpmath.diff(a, mpmath.mpf(gamma)))
    got, by_mean, _ = MaxValueEntropySearch(np.array([0.0])).value_and_grad(Mixture([gamma], [1.0]))
    assert got == pytest.approx(value, rel=1e-12)
    assert by_mean[0] == pytest.approx(slope, rel=1e-11)


def test_thompson_draws_a_sample_by_its_weight_and_keeps_it():
    weights = np.array([0.1, 0.0, 0.6, 0.3, 0.0])
    p = Mixture(np.tile(np.arange(M, dtype=float), (B, 1)), np.ones((B, M)), weights)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(2000):
        acq = Thompson(rng)
        first = acq(p)
        assert (first == first[0]).all()
        np.testing.assert_array_equal(first, acq(p))
        drawn.append(int(-first[0]))
    frequencies = np.bincount(drawn, minlength=M) / len(drawn)
    np.testing.assert_allclose(frequencies, weights, atol=4 * np.sqrt(0.25 / 2000))
    assert frequencies[1] == frequencies[4] == 0


def test_random_prefers_nothing():
    assert not Random()(mixture()).any()


# ------------------------------------------------------------------------- registry, validation


def test_a_fact_that_is_missing_or_a_name_that_is_wrong():
    with pytest.raises(ValueError, match="did you mean 'logei'"):
        acquisition("log-ei")
    with pytest.raises(ValueError, match=r"'ei' needs best, got \['beta'\]"):
        acquisition("ei", beta=1.0)
    assert acquisition("lcb", best=1.0) == LowerConfidenceBound()
    assert acquisition("fitbo") == InformationGain()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ExpectedImprovement(np.nan), "best must be finite, got nan"),
        (lambda: LogExpectedImprovement(np.inf), "best must be finite, got inf"),
        (lambda: ProbabilityOfImprovement("x"), "best must be finite, got 'x'"),
        (lambda: ExpectedImprovement(0.0, np.array([np.nan])), "floor must be finite"),
        (lambda: LowerConfidenceBound(-1.0), "beta must be finite and at least 0, got -1.0"),
        (lambda: MaxValueEntropySearch(np.array([np.nan])), "eta must be finite"),
        (lambda: MaxValueEntropySearch(np.zeros(3))(mixture()), r"eta must have shape \(5,\)"),
    ],
)
def test_validation(build, message):
    with pytest.raises(ValueError, match=message):
        build()
