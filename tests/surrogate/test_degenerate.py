"""Inputs that break Gaussian processes: nothing here may raise, warn, or return NaN."""

from dataclasses import replace

import numpy as np
import pytest

from fitbo.entropy import MM
from fitbo.surrogate import KERNELS, LogPosterior, Standardiser, condition, gpy

RNG = np.random.default_rng(0)
SPREAD = RNG.random((12, 2))
ORDINARY = RNG.standard_normal(12)

CASES = {
    "one point": (SPREAD[:1], ORDINARY[:1]),
    "two equal points": (SPREAD[[0, 0]], ORDINARY[[0, 0]]),
    "all points equal, y different": (np.tile(SPREAD[:1], (12, 1)), ORDINARY),
    "duplicates": (np.tile(SPREAD, (3, 1)), np.tile(ORDINARY, 3)),
    "contradictory duplicates": (np.tile(SPREAD, (2, 1)), RNG.standard_normal(24)),
    "near duplicates": (
        np.concatenate([SPREAD, SPREAD + 1e-12, SPREAD + 1e-7]),
        np.tile(ORDINARY, 3),
    ),
    "constant y": (SPREAD, np.full(12, 3.0)),
    "constant zero y": (SPREAD, np.zeros(12)),
    "twelve orders of magnitude": (SPREAD, np.logspace(-6, 6, 12)),
    "both signs, twelve orders": (SPREAD, np.logspace(-6, 6, 12) * np.tile([1, -1], 6)),
    "one outlier": (SPREAD, np.append(ORDINARY[:11], 1e12)),
    "one low outlier": (SPREAD, np.append(ORDINARY[:11], -1e12)),
    "near the largest double": (SPREAD, ORDINARY * 1e300),
    "near the smallest double": (SPREAD, ORDINARY * 1e-300),
    "a line of points": (np.column_stack([np.linspace(0, 1, 40)] * 2), np.linspace(0, 1, 40)),
}
EXTREMES = np.array(
    [
        [50.0, 50.0, 50.0, -50.0, -50.0],
        [-50.0, -50.0, -50.0, 50.0, 50.0],
        [10.0, 10.0, 10.0, -50.0, -30.0],
        [3.0, 3.0, 0.0, -40.0, 0.0],
        [np.nan, 0.0, 0.0, 0.0, 0.0],
        [np.inf, 0.0, 0.0, -np.inf, 0.0],
        [1e5, -1e5, 0.0, 0.0, 0.0],
    ]
)


VARIANTS = [(case, True) for case in CASES] + [
    (case, False)
    for case in CASES
    if "largest" not in case  # raw, g^4 would overflow
]


def extremes(n_columns):
    """Odds of one where there is a share."""
    return np.pad(EXTREMES, ((0, 0), (0, n_columns - EXTREMES.shape[1])))


@pytest.fixture(params=VARIANTS, ids=lambda v: f"{v[0]}-{'standardised' if v[1] else 'raw'}")
def data(request):
    case, scaled = request.param
    X, y = CASES[case]
    return X, Standardiser.fit(y)(y) if scaled else y


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_density_is_a_number_or_minus_infinity(data, kernel):
    log_posterior = LogPosterior(*data, kernel=kernel)
    value = log_posterior(log_posterior.sample_prior(np.random.default_rng(1), 30))
    assert not np.isnan(value).any()
    assert np.isfinite(value).mean() > 0.9  # ordinary samples must not be given up
    extreme = log_posterior(extremes(log_posterior.n_parameters))
    assert not np.isnan(extreme).any()
    assert (extreme < np.inf).all()
    assert (extreme[4:] == -np.inf).all()


@pytest.mark.parametrize("rule", ["linearised", "moment_matched"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_conditioning_predicts_something_finite(data, kernel, rule):
    X, y = data
    draws = LogPosterior(X, y, kernel=kernel).sample_prior(np.random.default_rng(2), 10)
    log_theta = np.concatenate([draws, extremes(draws.shape[1])[2:4]])
    surrogate = condition(X, y, log_theta, kernel=kernel, rule=rule)
    X_new = np.concatenate([X[:3], np.random.default_rng(3).random((4, 2))])
    for noise in (False, True):
        mixture = surrogate.predict(X_new, noise)  # a Mixture refuses NaN, inf and v <= 0
        assert mixture.means.shape == (len(X_new), 12)
    value, gradient = surrogate.value_and_grad(X_new, MM().value_and_grad)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(surrogate.jitter).all()


@pytest.mark.parametrize("case", ["one point", "duplicates", "constant y"])
def test_gpy_survives_them_too(case):
    X, y = CASES[case]
    z = Standardiser.fit(y)(y)
    log_posterior = gpy.LogPosterior(X, z)
    draws = log_posterior.sample_prior(np.random.default_rng(4), 4)
    assert np.isfinite(log_posterior(draws)).all()
    assert np.isfinite(gpy.condition(X, z, draws).predict(X).means).all()


def test_the_message_tells_of_a_raised_diagonal_and_is_silent_otherwise(problem):
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    assert surrogate.message == ""
    raised = replace(surrogate, jitter=np.array([0, 0, 1e-4, 0, 1e-9]))
    assert "1 of 5 covariances were not positive definite" in raised.message
    assert "1e-04" in raised.message
    assert "near-duplicate" in raised.message
