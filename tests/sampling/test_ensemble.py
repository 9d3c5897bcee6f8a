"""The sampler against targets whose moments are known, and its diagnostics against AR(1) chains."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fitbo.sampling import Ensemble, Samples, sample
from fitbo.sampling.chains import (
    autocorrelation,
    drift_statistic,
    effective_sample_size,
    integrated_time,
    split_r_hat,
)
from fitbo.sampling.walkers import resample

P, W = 12, 48


def covariance(n=P, seed=7):
    """A rotated spectrum of condition 100."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    return q @ np.diag(np.logspace(-2, 0, n)) @ q.T


def gaussian(mean, cov):
    precision = np.linalg.inv(cov)
    return lambda x: -0.5 * np.einsum("wi,ij,wj->w", x - mean, precision, x - mean)


def prior(rng, n):
    return 2.0 * rng.standard_normal((n, P))


def ar1(phi, steps, walkers, parameters, seed=3):
    """Stationary AR(1) chains of unit variance, (T, W, P)."""
    rng = np.random.default_rng(seed)
    x = np.empty((steps, walkers, parameters))
    x[0] = rng.standard_normal(x.shape[1:])
    for t in range(1, steps):
        noise = rng.standard_normal(x.shape[1:])
        x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * noise
    return x


def mean_inflation(phi, n, thin=1):
    """n Var[mean of n states, thin apart] of a unit AR(1) chain."""
    k = np.arange(1, n)
    return 1 + 2 * ((1 - k / n) * phi ** (k * thin)).sum()


# ------------------------------------------------------------------------------------- targets


def test_a_correlated_gaussian_in_twelve_dimensions():
    mean, cov = np.linspace(-2, 3, P), covariance()
    rng = np.random.default_rng(0)
    result = sample(gaussian(mean, cov), prior(rng, W), rng, restart=prior, n_samples=4000, thin=15)
    ess = result.diagnostics.effective_sample_size
    assert result.diagnostics.settled
    assert 500 < ess < 4000
    assert result.diagnostics.r_hat < 1.1
    # Whitened, every mean has error 1/sqrt(ess), every covariance about sqrt((1 + [i = j])/ess);
    # 4.5 errors over 90 statistics fail once in 1600 runs.
    white = np.linalg.solve(np.linalg.cholesky(cov), (result.log_theta - mean).T)
    assert abs(white.mean(1)).max() < 4.5 / np.sqrt(ess)
    error = np.sqrt((1 + np.eye(P)) / ess)
    assert (abs(np.cov(white) - np.eye(P)) / error).max() < 4.5
    np.testing.assert_allclose(result.log_density, gaussian(mean, cov)(result.log_theta))


def test_the_ess_tells_the_error_of_the_mean():
    """Over repeated runs the squared error of the mean is var/ESS."""
    cov = covariance()
    root = np.linalg.cholesky(cov)
    z = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        start = rng.standard_normal((W, P)) @ root.T
        result = sample(gaussian(np.zeros(P), cov), start, rng, n_samples=200)
        white = np.linalg.solve(root, result.log_theta.mean(0))
        z.append(white * np.sqrt(result.diagnostics.effective_sample_size))
    # The ESS is the smallest over the parameters, so this errs below one if at all.
    assert 0.4 < np.mean(np.square(z)) < 1.3


def banana(x):
    return -0.5 * x[:, 0] ** 2 - 0.5 * (x[:, 1] - x[:, 0] ** 2) ** 2 / 0.25


def two_modes(x):
    """Weights 0.3 and 0.7, deviations 1 and 0.6, centres 6 apart."""
    centre = np.array([3.0, 0.0])
    far = np.log(0.3) - 0.5 * ((x + centre) ** 2).sum(1)
    near = np.log(0.7 / 0.36) - 0.5 * ((x - centre) ** 2).sum(1) / 0.36
    return np.logaddexp(far, near)


@pytest.mark.parametrize("target", [banana, two_modes])
def test_two_dimensional_targets_against_quadrature(target):
    grid = np.linspace(-9, 15, 601)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    weight = np.exp(target(points))
    weight /= weight.sum()
    functions = [
        lambda x: x[:, 0],
        lambda x: x[:, 1],
        lambda x: x[:, 0] ** 2,
        lambda x: x[:, 1] ** 2,
        lambda x: (x[:, 0] > 0).astype(float),
    ]
    rng = np.random.default_rng(1)
    start = 2 * rng.standard_normal((40, 2))
    result = sample(target, start, rng, n_samples=8000, thin=5)
    ess = result.diagnostics.effective_sample_size
    for f in functions:
        truth = weight @ f(points)
        deviation = np.sqrt(weight @ (f(points) - truth) ** 2)
        assert abs(f(result.log_theta).mean() - truth) < 4 * deviation / np.sqrt(ess)


# ------------------------------------------------------------------- burn-in, restarts, support


def test_a_warm_start_shortens_the_burn_in():
    target = gaussian(np.full(P, 8.0), covariance())
    rng = np.random.default_rng(2)
    cold = sample(target, prior(rng, W), rng, restart=prior)
    warm = sample(target, cold.ensemble.log_theta, rng, restart=prior)
    assert cold.diagnostics.settled
    assert warm.diagnostics.settled
    assert warm.diagnostics.burn_in == 20
    assert cold.diagnostics.burn_in >= 3 * warm.diagnostics.burn_in


def test_resampled_walkers_are_draws_of_the_new_target_at_once():
    """From N(0, S) to a shifted, narrower one: weights do at once what six moves cannot."""
    cov = covariance()
    root = np.linalg.cholesky(cov)
    old, shift = gaussian(np.zeros(P), cov), 0.7 * root[:, 0]
    new = gaussian(shift, 0.8 * cov)
    white = []
    for start_of in (lambda x: Ensemble(x, old(x)), lambda x: x):
        errors = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            x = rng.standard_normal((400, P)) @ root.T
            result = sample(new, start_of(x), rng, n_samples=400, thin=3, min_burn_in=3)
            errors.append(np.linalg.solve(root, result.log_theta.mean(0) - shift))
        white.append(np.square(errors).mean() ** 0.5)
    # 400 draws by weights whose effective share is about 0.2 would err by 0.1 each.
    assert white[0] < 0.12
    assert white[1] > 1.3 * white[0]


def test_systematic_resampling_keeps_expectations_and_counts_survivors():
    rng = np.random.default_rng(5)
    log_w = rng.standard_normal(500)
    w = np.exp(log_w) / np.exp(log_w).sum()
    kept, survivors, whole = resample(log_w, 3, rng)
    assert whole
    assert survivors == pytest.approx(1 / (500 * (w**2).sum()))
    counts = np.bincount(kept, minlength=500)
    assert (abs(counts - 500 * w) < 1).all()  # systematic: never off by one whole copy


def test_weights_too_uneven_are_tempered():
    rng = np.random.default_rng(5)
    log_w = 10.0 * rng.standard_normal(200)
    log_w[:50] = -np.inf
    kept, survivors, whole = resample(log_w, 9, rng)
    assert not whole
    assert survivors == pytest.approx(0.25, abs=0.01)
    assert (kept >= 50).all()
    everyone, survivors, _ = resample(log_w[50:], 75, rng)
    assert survivors == pytest.approx(1.0, abs=1e-3)
    assert len(np.unique(everyone)) > 140


def test_a_target_far_away_takes_a_longer_burn_in():
    target, cov = gaussian(np.full(P, 5.0), covariance()), covariance()
    rng = np.random.default_rng(2)
    x = rng.standard_normal((100, P)) @ np.linalg.cholesky(cov).T
    start = Ensemble(x, gaussian(np.zeros(P), cov)(x))
    result = sample(target, start, rng, thin=3, min_burn_in=3)
    assert result.diagnostics.settled
    assert result.diagnostics.burn_in >= 20
    assert result.diagnostics.survivors == pytest.approx(0.25, abs=0.02)


def test_burn_in_is_bounded_and_says_so():
    target = gaussian(np.full(P, 300.0), 1e-2 * covariance())
    rng = np.random.default_rng(2)
    result = sample(target, prior(rng, W), rng, min_burn_in=5, max_burn_in=30, n_samples=10)
    assert result.diagnostics.burn_in == 30
    assert not result.diagnostics.settled


@pytest.mark.parametrize("how", ["collapsed", "flat line", "outside"])
def test_a_stuck_ensemble_is_restarted_and_recovers(how):
    mean, cov = np.full(P, 0.5), covariance()
    inside = gaussian(mean, cov)

    def target(x):
        return np.where((abs(x) < 6).all(1), inside(x), -np.inf)

    rng = np.random.default_rng(4)
    start = {
        "collapsed": np.full((W, P), 1.0),
        "flat line": np.linspace(0, 1, W)[:, None] * np.ones(P),
        "outside": 50 + prior(rng, W),
    }[how]
    result = sample(target, start, rng, restart=prior, n_samples=2000)
    assert result.diagnostics.restarts == 1
    assert result.diagnostics.settled
    white = np.linalg.solve(np.linalg.cholesky(cov), (result.log_theta - mean).T)
    ess = result.diagnostics.effective_sample_size
    assert ess > 200
    assert abs(white.mean(1)).max() < 4.5 / np.sqrt(ess)
    assert abs(white.var(1) - 1).max() < 4.5 * np.sqrt(2 / ess)


def test_a_collapsed_start_is_restarted_at_once_about_its_best_point():
    """The support lies far from the prior's mass: a cloud elsewhere would find nothing."""
    calls = []

    def target(x):
        calls.append(len(x))
        return np.where((abs(x - 8) < 2).all(1), -0.5 * ((x - 8) ** 2).sum(1) / 0.04, -np.inf)

    rng = np.random.default_rng(4)
    result = sample(target, np.full((W, P), 8.5), rng, restart=prior, n_samples=500)
    assert calls[:2] == [W, W]
    assert result.diagnostics.restarts == 1
    np.testing.assert_allclose(result.log_theta.mean(0), 8, atol=0.1)


def test_an_ensemble_that_accepts_nothing_is_restarted_near_the_best_point():
    """Walkers on isolated spikes of a target whose mass is elsewhere."""
    rng = np.random.default_rng(5)
    start = 5 + prior(rng, W)
    spikes = {tuple(row) for row in start}

    def target(x):
        on_spike = np.array([tuple(row) in spikes for row in x])
        return np.where(on_spike, 1e4, -0.5 * (x**2).sum(1))

    result = sample(target, start, rng, restart=prior, n_samples=100)
    assert result.diagnostics.restarts >= 1


def test_a_walker_left_on_an_island_is_fetched():
    """An island 100 nats down that no move leaves: its weight is e^-100 and not 1/W."""
    cov = 0.04 * np.eye(P)
    mainland = gaussian(np.zeros(P), cov)
    island = gaussian(np.full(P, 30.0), cov)

    def target(x):
        return np.logaddexp(mainland(x), island(x) - 100)

    rng = np.random.default_rng(6)
    start = 0.2 * rng.standard_normal((W, P))
    start[5] += 30
    result = sample(target, start, rng)
    assert result.diagnostics.rescued == 1
    assert result.diagnostics.settled
    assert result.log_theta.max() < 2
    healthy = sample(target, result.ensemble.log_theta, rng)
    assert healthy.diagnostics.rescued == 0


def test_some_walkers_outside_the_support_are_reseated_without_a_restart():
    def target(x):
        return np.where((x > 0).all(1), -x.sum(1), -np.inf)

    rng = np.random.default_rng(6)
    start = rng.standard_normal((20, 3))
    start[0] = 1.0
    result = sample(target, start, rng, n_samples=4000)
    assert result.diagnostics.restarts == 0
    assert (result.log_theta > 0).all()
    error = 4 / np.sqrt(result.diagnostics.effective_sample_size)
    np.testing.assert_allclose(result.log_theta.mean(0), 1, atol=error)


def test_nan_is_a_density_of_zero_and_is_counted():
    def target(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(x[:, 0] < 0, np.nan, -0.5 * (x**2).sum(1))

    rng = np.random.default_rng(8)
    result = sample(target, rng.standard_normal((16, 2)), rng)
    assert (result.log_theta[:, 0] >= 0).all()
    assert np.isfinite(result.log_density).all()
    assert result.diagnostics.invalid > 0


def test_shapes_and_accounting():
    calls = []

    def target(x):
        calls.append(len(x))
        return -0.5 * (x**2).sum(1)

    rng = np.random.default_rng(9)
    for n_samples in (1, 5, 16, 33):
        calls.clear()
        start = rng.standard_normal((16, 3))
        kept = start.copy()
        result = sample(target, start, rng, n_samples=n_samples)
        assert isinstance(result, Samples)
        assert result.log_theta.shape == (n_samples, 3)
        assert result.log_density.shape == (n_samples,)
        assert result.ensemble.log_theta.shape == (16, 3)
        assert result.ensemble.log_density.shape == (16,)
        assert result.diagnostics.evaluations == sum(calls)
        assert result.diagnostics.effective_sample_size <= n_samples
        assert 0.1 < result.diagnostics.acceptance < 0.9
        np.testing.assert_array_equal(start, kept)
    shortest = sample(target, start, rng, n_samples=1, thin=1, min_burn_in=1, max_burn_in=1)
    assert shortest.log_theta.shape == (1, 3)
    assert shortest.diagnostics.effective_sample_size == 1
    # A half-ensemble is one call.
    assert set(calls) == {16, 8}


# --------------------------------------------------------------------------- randomness


def test_bit_for_bit_reproducible_whatever_the_global_state():
    target = gaussian(np.zeros(P), covariance())

    def run(seed):
        rng = np.random.default_rng(seed)
        return sample(target, prior(rng, W), rng, restart=prior)

    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1)  # noqa: NPY002
        first = run(11)
        np.random.seed(2)  # noqa: NPY002
        state = np.random.get_state()  # noqa: NPY002
        second = run(11)
        after = np.random.get_state()  # noqa: NPY002
    finally:
        np.random.set_state(before)  # noqa: NPY002
    np.testing.assert_array_equal(first.log_theta, second.log_theta)
    np.testing.assert_array_equal(first.log_density, second.log_density)
    np.testing.assert_array_equal(first.ensemble.log_theta, second.ensemble.log_theta)
    assert first.diagnostics == second.diagnostics
    np.testing.assert_array_equal(state[1], after[1])
    assert state[2:] == after[2:]
    assert not np.array_equal(first.log_theta, run(12).log_theta)


def test_restarts_are_reproducible_too():
    target = gaussian(np.zeros(P), covariance())
    runs = [
        sample(target, np.ones((W, P)), np.random.default_rng(3), restart=prior) for _ in range(2)
    ]
    assert runs[0].diagnostics.restarts == 1
    np.testing.assert_array_equal(runs[0].log_theta, runs[1].log_theta)


def test_emcee_is_imported_only_when_sampling():
    code = "import sys, fitbo.sampling.ensemble; sys.exit('emcee' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --------------------------------------------------------------------------- diagnostics


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_autocorrelation_time_of_ar1(phi):
    chain = ar1(phi, 4000, 20, 3)
    rho = autocorrelation(chain)
    np.testing.assert_allclose(rho[:20].mean(1), phi ** np.arange(20), atol=0.03)
    np.testing.assert_allclose(integrated_time(rho), (1 + phi) / (1 - phi), rtol=0.1)


@pytest.mark.parametrize(("phi", "steps", "thin"), [(0.9, 4000, 1), (0.9, 4000, 7), (0.98, 30, 5)])
def test_effective_sample_size_of_ar1(phi, steps, thin):
    """Long chains, thinned chains, and chains shorter than their autocorrelation time."""
    walkers = 20 if steps > 100 else 2000
    ess = effective_sample_size(ar1(phi, steps, walkers, 3), thin)
    kept = steps // thin
    np.testing.assert_allclose(ess, walkers * kept / mean_inflation(phi, kept, thin), rtol=0.1)


@pytest.mark.parametrize(("phi", "steps"), [(0.5, 2000), (0.9, 200), (0.95, 60)])
def test_split_r_hat_of_ar1(phi, steps):
    """var = within + the variance v of a half-chain's mean, so R-hat is 1/sqrt(1 - v) nearly."""
    n = steps // 2
    v = mean_inflation(phi, n) / n
    within = (1 - v) * n / (n - 1)
    expected = np.sqrt((n - 1) / n + v / within)
    r_hat = split_r_hat(ar1(phi, steps, 500, 3))
    np.testing.assert_allclose(r_hat - 1, expected - 1, rtol=0.15)


def test_split_r_hat_sees_a_drift_and_separated_walkers():
    chain = ar1(0.5, 400, 20, 2)
    assert (split_r_hat(chain + np.linspace(0, 3, 400)[:, None, None]) > 1.2).all()
    assert (split_r_hat(chain + np.linspace(0, 3, 20)[:, None]) > 1.2).all()


def test_the_drift_statistic_is_small_at_equilibrium_and_grows_with_a_trend():
    at_rest = [drift_statistic(ar1(0.95, 20, W, 1, seed)) for seed in range(200)]
    # |t| > 3 happens to 0.4% of normal statistics with 47 degrees of freedom.
    assert np.mean(np.array(at_rest) > 3) < 0.03
    trend = np.linspace(0, 0.6, 20)[:, None, None]
    moving = [drift_statistic(ar1(0.95, 20, W, 1, seed) + trend) for seed in range(200)]
    assert np.mean(np.array(moving) > 3) > 0.5


def test_diagnostics_of_a_frozen_chain():
    chain = np.broadcast_to(np.random.default_rng(0).standard_normal((8, 2)), (10, 8, 2))
    np.testing.assert_allclose(effective_sample_size(chain), 8)
    assert np.isinf(split_r_hat(chain)).all()
    np.testing.assert_allclose(effective_sample_size(np.ones((10, 8, 2))), 8)
    assert drift_statistic(chain) == 0
    assert drift_statistic(np.arange(10.0)[:, None, None] * np.ones((10, 8, 2))) == np.inf


# --------------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": np.zeros(5)}, r"start must have shape \(W, P\)"),
        ({"start": np.zeros((5, 3))}, "W >= 2 P"),
        ({"start": np.full((8, 3), np.nan)}, "start must be finite"),
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1, got 0"),
        ({"thin": 0}, "thin must be a whole number of at least 1, got 0"),
        ({"min_burn_in": 0}, "min_burn_in must be a whole number of at least 1, got 0"),
        (
            {"min_burn_in": 9, "max_burn_in": 5},
            "max_burn_in must be a whole number of at least 9, got 5",
        ),
        ({"log_density": lambda x: x}, r"log_density must map shape \(8, 3\) to \(8,\)"),
        ({"log_density": lambda x: np.full(len(x), np.inf)}, r"below \+inf"),
        ({"log_density": lambda x: np.full(len(x), -np.inf)}, "-inf at all 168 points"),
        (
            {
                "log_density": lambda x: np.full(len(x), -np.inf),
                "restart": lambda rng, n: np.zeros(n),
            },
            r"restart\(rng, 8\) must return",
        ),
        ({"log_density": lambda x: np.where((x == 0).all(1), 0, -np.inf)}, "all around its best"),
    ],
)
def test_validation(change, message):
    start = np.random.default_rng(0).standard_normal((8, 3))
    start[0] = 0.0
    arguments = {"log_density": lambda x: -0.5 * (x**2).sum(1), "start": start} | change
    with pytest.raises(ValueError, match=message):
        sample(rng=np.random.default_rng(1), **arguments)


def test_a_density_known_at_the_start_is_not_evaluated_again():
    def target(x):
        return -0.5 * (x**2).sum(1)

    start = np.random.default_rng(1).standard_normal((16, 3))
    ensemble = Ensemble(start, target(start))
    new, known = (
        sample(target, ensemble, np.random.default_rng(2), known=known)
        for known in (None, target(start))
    )
    np.testing.assert_array_equal(known.log_theta, new.log_theta)
    assert known.diagnostics.evaluations == new.diagnostics.evaluations - len(start)
