"""The equations of ``unseen`` and ``auto``, each against dense algebra."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.logdet import auto, lanczos, meme, ritz
from fitbo.logdet.bounds import Bounds
from fitbo.logdet.operator import ORDINARY, as_operator
from fitbo.logdet.trace import Task, in_family, probe_blocks
from fitbo.logdet.unseen import ALARM, EPS, aitken, judged, noise, unseen
from tests.logdet.problems import grid_laplacian, kernel, with_spectrum

N = 120
EIGENVALUES = np.geomspace(1e-5, 2.0, N)
K = with_spectrum(EIGENVALUES)


def task_of(matrix: np.ndarray, n_probes: int = 50, lower: float = 0.0) -> Task:
    rng = np.random.default_rng(3)
    return Task(as_operator(matrix), 30, n_probes, Bounds(lower, np.inf), rng, "legendre", "auto")


def dense_quadratic_forms(matrix: np.ndarray, n_probes: int) -> np.ndarray:
    """z.log(K) z of each probe."""
    (z,) = probe_blocks(len(matrix), n_probes, np.random.default_rng(3))
    values, vectors = np.linalg.eigh(matrix)
    return np.log(values) @ (vectors.T @ z) ** 2


def runs_of(matrix: np.ndarray, steps: int, n_probes: int) -> lanczos.Ritz:
    return lanczos.ritz(as_operator(matrix), steps, n_probes, np.random.default_rng(3))


def gauss(runs: lanczos.Ritz, n: int) -> np.ndarray:
    theta, w = runs.nodes()
    return n * (w * np.log(theta)).sum(1)


def test_gauss_falls_to_the_truth_of_the_probe() -> None:
    truth = dense_quadratic_forms(K, 4)
    values = [gauss(runs_of(K, k, 4), N) for k in (2, 4, 8, 16, 32, 64, 120)]
    assert (np.diff(values, axis=0) <= 1e-9).all()
    assert_allclose(values[-1], truth, rtol=1e-8)


@pytest.mark.parametrize("power", [0.7, 1.0, 2.0, 3.0])
def test_aitken_is_exact_for_powers(power: float) -> None:
    def value(k: float) -> float:
        return -70.0 + 5.0 * k**-power

    left = aitken(value(50), value(100 / np.sqrt(2)), value(100))
    assert_allclose(left, value(100) + 70.0, rtol=1e-8)
    d_1, d_2 = value(50) - value(100 / np.sqrt(2)), value(100 / np.sqrt(2)) - value(100)
    assert_allclose(left, d_2**2 / (d_1 - d_2), rtol=1e-10)


def test_aitken_is_too_large_where_the_fall_is_faster_and_finite_where_it_speeds_up() -> None:
    values = [np.exp(-k / 20) for k in (50, 100 / np.sqrt(2), 100)]
    assert aitken(*values) > values[-1]
    assert aitken(3.0, 2.0, 0.0) == pytest.approx(8.0)  # d_2 times 0.8 / 0.2
    assert aitken(1.0, 1.0, 1.0) == 0.0


@pytest.mark.parametrize("steps", [8, 15, 30, 60])
def test_radau_bounds_what_is_unseen(steps: int) -> None:
    """G - unseen with the true lower bound; and unseen is never more than Radau's G_k - R_k."""
    runs, truth = runs_of(K, steps, 6), dense_quadratic_forms(K, 6)
    hidden = unseen(runs, task_of(K, lower=EIGENVALUES[0] * (1 - 1e-9)))
    theta, w = runs.nodes(lower=EIGENVALUES[0] * (1 - 1e-9))
    radau = N * (w * np.log(theta)).sum(1)
    assert (radau <= truth + 1e-8).all()
    assert 0 <= hidden <= (gauss(runs, N) - radau).mean() + 1e-8


@pytest.mark.parametrize("matrix", [K, kernel(N, 0.5, 1e-4), grid_laplacian(11).toarray()])
def test_unseen_tells_what_is_left_within_a_factor(matrix: np.ndarray) -> None:
    truth = dense_quadratic_forms(matrix, 6).mean()
    for steps in (10, 16, 24, 36):
        runs = runs_of(matrix, steps, 6)
        left = gauss(runs, len(matrix)).mean() - truth
        assert 0.3 * left <= unseen(runs, task_of(matrix)) <= 20 * left + 0.5


def test_a_run_that_has_ended_has_seen_all() -> None:
    few = with_spectrum(np.repeat([1e-9, 1e-4, 1.0], 20))
    assert unseen(runs_of(few, 10, 3), task_of(few)) == 0.0
    assert unseen(runs_of(few, 2, 3), task_of(few)) > 10


def test_what_is_zero_to_rounding_counts_in_full() -> None:
    """Five eigenvalues of 1e-17: each with log(1 / eps), by a probe that sees each alike."""
    few = np.diag(np.repeat([1e-17, 1.0], [5, 55]))
    assert_allclose(unseen(runs_of(few, 10, 3), task_of(few)), 5 * np.log(1 / EPS), rtol=1e-6)
    assert unseen(runs_of(few, 10, 3), task_of(few, lower=1e-13)) == 0.0


def test_noise_is_that_of_the_logarithm_s_variance() -> None:
    """(2 n Var[log lambda] / n_probes)^1/2, which bounds the scatter of z.log(K) z."""
    expected = np.sqrt(2 * N * np.log(EIGENVALUES).var() / 50)
    assert_allclose(noise(runs_of(K, N, 20), task_of(K)), expected, rtol=0.1)
    scatter = dense_quadratic_forms(K, 400).std() / np.sqrt(50)
    assert 0.7 * expected < scatter < 1.1 * expected


def test_judgement() -> None:
    """A warning beyond 1.5 standard errors and beyond a twentieth of the noise."""
    task, runs = task_of(K), runs_of(K, 15, 4)
    scale = noise(runs, task)
    for error, hidden, warned in (
        (1.0, 1.01 * ALARM, True),
        (1.0, 0.99 * ALARM, False),
        (1e-9, 0.051 * scale, True),
        (1e-9, 0.049 * scale, False),
    ):
        info = judged(task.info("meme", error), runs, task, hidden)
        assert (info.warning is not None) == warned
        assert (info.unseen, info.standard_error) == (hidden, error)
    assert judged(task.info("meme", np.nan), runs, task, 0.0).standard_error == scale


@pytest.mark.parametrize("steps", [1, 5, 15, 30])
@pytest.mark.parametrize("n_probes", [1, 2, 3, 5, 50])
def test_shares_spend_what_they_have(steps: int, n_probes: int) -> None:
    for n in (30, 1000, 10**7):
        n_first, most = auto.first_runs(n, steps, n_probes)
        assert 1 <= n_first <= n_probes
        assert steps <= most <= n
        for reached in {steps, min(steps + 1, most), most}:
            n_long, n_short = auto.shares(n_probes, steps, n_first, reached)
            assert n_long >= n_first
            assert n_long * reached + n_short * steps <= n_probes * steps
            if reached > steps:
                assert n_long * reached <= 0.4 * n_probes * steps
                assert n_short >= 1
        looks = sorted(auto.looking(steps, most))
        assert looks[0] == steps
        assert all(b <= max(1.25 * a + 1, a + 1) for a, b in pairwise(looks))


def test_a_run_may_end_once_it_is_enough() -> None:
    (z,) = probe_blocks(N, 2, np.random.default_rng(3))
    whole = lanczos.run(as_operator(K), z, 30)
    part = lanczos.run(as_operator(K), z, 30, lambda runs: runs.width == 12)
    assert part.width == 12
    assert (part.steps == 12).all()
    assert_allclose(part.alpha, whole.alpha[:, :12])
    assert_allclose(part.beta, whole.beta[:, :12])
    both = part.join(whole)
    assert both.width == 30
    for found, one in zip(gauss(both, N), [*gauss(part, N), *gauss(whole, N)], strict=True):
        assert_allclose(found, one)


def test_runs_are_longer_where_the_condition_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """To 0.4 of the products in two runs, which is 150 steps."""
    lengths: list[int] = []

    def shares(n_probes: int, steps: int, n_first: int, reached: int) -> tuple[int, int]:
        lengths.append(reached)
        return plain(n_probes, steps, n_first, reached)

    plain = auto.shares
    monkeypatch.setattr(auto, "shares", shares)
    for kappa in (1e1, 1e2, 1e3, 1e4, 1e8):
        auto.estimate(task_of(with_spectrum(np.geomspace(1 / kappa, 1, 400))))
    assert (lengths[0], lengths[-1]) == (15, 150)
    assert (np.diff(lengths) >= 0).all()
    assert 15 < lengths[2] < lengths[3] < 150


@pytest.mark.parametrize("hidden", [0.0, 1.0, 5.0, 20.0, 300.0])
def test_flat_is_taken_within_what_is_unseen_only(hidden: float) -> None:
    """G - unseen <= F <= G, with F by the flat density of the long runs' own moments."""
    chosen = []
    for matrix in (K, with_spectrum(np.geomspace(1e-3, 1, N)), kernel(N, 1.5, 1e-6)):
        task, n = task_of(matrix), len(matrix)
        runs = [runs_of(matrix, 6, 5).gauss(task), runs_of(matrix, 12, 2).gauss(task)]
        evidence = ritz.gather(task.operator, runs, 11)
        bounds = Bounds(0.0, evidence.upper * (1 + 1e-10))
        theta, w = runs[-1]
        G = n * (w * np.log(theta)).sum(1).mean()
        moments = (w[..., None] * ritz.CHEBYSHEV(bounds.to_unit(theta), 11)).sum(1).mean(0)
        density, refine = meme.maxent_spectrum(in_family(moments, "legendre"), "legendre", bounds)
        F = n * meme.spectral_density(density, bounds, refine).expect(np.log)
        answer = auto.flat(task, evidence, hidden)
        assert (answer is not None) == (G - hidden <= F <= G)
        chosen.append(answer is not None)
    assert any(chosen) == (hidden > 0)
    assert not all(chosen)


def test_scatter_is_the_standard_error_of_a_regression() -> None:
    """With intercept and two exact moments known, the residual has d - 3 degrees of freedom."""
    rng = np.random.default_rng(0)
    exact = rng.standard_normal((2, 40))
    g = 3 + exact.T @ [2.0, -1.0] + 0.1 * rng.standard_normal(40)
    assert_allclose(ritz.scatter(g, None), g.std(ddof=1) / np.sqrt(40))
    X = np.column_stack([np.ones(40), *exact])
    residual = g - X @ np.linalg.solve(X.T @ X, X.T @ g)
    assert_allclose(ritz.scatter(g, exact), np.sqrt(residual @ residual / 37 / 40))
    assert np.isnan(ritz.scatter(g[:5], exact[:, :5]))


@pytest.mark.parametrize("power", [-1000, -300, -129, -128, 0, 128, 129, 300, 1015])
def test_scaling_by_a_power_of_two_is_exact(power: int) -> None:
    """K / 2^e with its largest entry within 2^-128 and 2^129."""
    operator = as_operator(np.ldexp(K, power))
    assert np.array_equal(np.ldexp(operator.matrix, operator.exponent - power), K)
    size = np.log2(abs(operator.matrix).max())
    assert -ORDINARY <= size < ORDINARY + 1
    if abs(power) < ORDINARY - 1:
        assert operator.exponent == 0


def test_ritz_values_of_a_small_matrix_are_not_taken_for_rounding() -> None:
    """Where a run ends early, its unused places must not look like eigenvalues of 1."""
    small = 1e-20 * np.diag(np.repeat([1.0, 3.0], 10))
    theta, _ = runs_of(small, 10, 2).nodes()
    assert_allclose(theta.max(), 3e-20)
