"""The engine as statistics: is the posterior the posterior, and does it mean what it says?"""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import norm, qmc

from fitbo.acquisition import information_gain
from fitbo.inference.settings import Settings
from fitbo.mixture import Mixture
from fitbo.sampling import sample
from fitbo.space import Space
from fitbo.study import Study
from fitbo.surrogate import LogPosterior, Standardiser, condition


def toy() -> tuple[np.ndarray, np.ndarray]:
    X = np.linspace(0, 1, 7)[:, None]
    y = np.sin(5 * X[:, 0]) + 0.5 * X[:, 0]
    return X, Standardiser.fit(y)(y)


def test_sampler_against_nested_quadrature_in_two_hyperparameters() -> None:
    """Length-scale and gap of a 1-D toy, the other two fixed; moments and quantiles by a grid."""
    density = LogPosterior(*toy())

    def two(log_theta: np.ndarray) -> np.ndarray:
        full = np.column_stack(
            [
                log_theta[:, 0],
                np.zeros(len(log_theta)),
                np.full(len(log_theta), -8),
                log_theta[:, 1],
            ]
        )
        return density(full)

    a, b = np.linspace(-4, 4, 161), np.linspace(-12, 4, 161)
    grid = np.stack(np.meshgrid(a, b, indexing="ij"), -1).reshape(-1, 2)
    mass = np.exp(two(grid) - two(grid).max())
    mass /= mass.sum()
    mean = mass @ grid
    sd = np.sqrt(mass @ (grid - mean) ** 2)
    rng = np.random.default_rng(0)
    found = sample(two, rng.normal(-1, 0.5, (20, 2)), rng, n_samples=4000, thin=5)
    ess = found.diagnostics.effective_sample_size
    assert ess > 300
    assert_allclose(found.log_theta.mean(0), mean, atol=float(4 * sd.max() / np.sqrt(ess)))
    assert_allclose(found.log_theta.std(0), sd, rtol=0.15)
    marginal = mass.reshape(161, 161).sum(0).cumsum()
    for p in (0.1, 0.5, 0.9):
        edge = b[np.searchsorted(marginal, p)]
        assert (
            abs((found.log_theta[:, 1] < edge).mean() - p) < 4 * np.sqrt(p * (1 - p) / ess) + 0.02
        )


def test_two_hundred_samples_against_a_long_reference_chain() -> None:
    """What one iteration keeps, warm-started as in a study, against 8,000 states."""
    density = LogPosterior(*toy())
    rng = np.random.default_rng(1)
    start = density.sample_prior(rng, 16)
    long = sample(density, start, rng, restart=density.sample_prior, n_samples=8_000, thin=10)
    ensemble, kept = long.ensemble, []
    for seed in range(12):
        short = sample(density, ensemble, np.random.default_rng([2, seed]), n_samples=200)
        ensemble = short.ensemble
        kept.append(short.log_theta.mean(0))
    sd = long.log_theta.std(0)
    error = abs(np.mean(kept, axis=0) - long.log_theta.mean(0)) / sd
    assert (error < 0.25).all()


def test_information_gain_against_brute_force() -> None:
    """Mutual information of sample index and y: E_j E_{y|j}[log N_j(y) - log p(y)]."""
    rng = np.random.default_rng(0)
    mixture = Mixture(rng.normal(size=5), rng.uniform(0.2, 1.5, 5) ** 2)
    draws = 200_000
    j = rng.integers(0, 5, draws)
    y = mixture.means[j] + mixture.deviations[j] * rng.standard_normal(draws)
    gains = norm.logpdf(y, mixture.means[j], mixture.deviations[j]) - mixture.log_pdf(y)
    error = gains.std() / np.sqrt(draws)
    assert abs(gains.mean() - information_gain(mixture, "quad")) < 4 * error
    assert information_gain(mixture, "memel") > gains.mean() - 4 * error


def gp_draw(rng: np.random.Generator, dim: int, lengthscale: float, size: int = 700):
    """A Matern-5/2 draw on Sobol points of the cube, (size, dim) and (size,)."""
    X = qmc.Sobol(dim, rng=rng).random_base2(10)[:size]
    r = np.sqrt(5 * ((X[:, None] - X[None]) ** 2).sum(2)) / lengthscale
    K = (1 + r + r * r / 3) * np.exp(-r) + 1e-10 * np.eye(size)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(size)


def coverage(levels: tuple[float, ...], draws: int) -> np.ndarray:
    """Share of held-out values inside the predictive mixture's central intervals."""
    inside = []
    for seed in range(draws):
        rng = np.random.default_rng([9, seed])
        X, f = gp_draw(rng, 2, 0.35, size=300)
        study = Study(Space([(0, 1)] * 2), Settings(n_initial=1, n_samples=100, seed=seed))
        for x, value in zip(X[:24], f[:24], strict=True):
            study.tell(x, value)
        fit = study.fit()
        mixture = fit.surrogate.predict(X[24:])
        z = (fit.scale(f[24:, None]) - mixture.means) / mixture.deviations
        cdf = norm.cdf(z).mean(1)
        inside.append([(abs(cdf - 0.5) < level / 2).mean() for level in levels])
    return np.mean(inside, axis=0)


def test_predictive_mixture_is_calibrated() -> None:
    half, most = coverage((0.5, 0.9), draws=8)
    assert 0.4 < half < 0.75
    assert 0.84 < most < 0.99


def test_eta_covers_the_true_minimum_in_most_of_forty_draws() -> None:
    covered = []
    for seed in range(40):
        rng = np.random.default_rng([5, seed])
        X, f = gp_draw(rng, 2, 0.3)
        study = Study(Space([(0, 1)] * 2), Settings(n_initial=1, n_samples=200, seed=seed))
        for x, value in zip(X[:25], f[:25], strict=True):
            study.tell(x, value)
        low, high = study.eta_quantiles((0.025, 0.975))
        covered.append(low <= f.min() <= high)
    assert np.mean(covered) >= 0.85


def test_conditioning_reproduces_noise_free_data() -> None:
    X, z = toy()
    density = LogPosterior(X, z)
    rng = np.random.default_rng(3)
    samples = sample(density, density.sample_prior(rng, 16), rng, restart=density.sample_prior)
    mixture = condition(X, z, samples.log_theta).predict(X)
    assert_allclose(mixture.mean, z, atol=0.1)
