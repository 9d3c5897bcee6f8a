"""Moments, bounds, quadratures and densities, each against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import LinearOperator

from fitbo.logdet import logdet
from fitbo.logdet.bounds import Bounds, gershgorin, lanczos_ends, resolve
from fitbo.logdet.deflation import Deflated
from fitbo.logdet.lanczos import ritz
from fitbo.logdet.meme import RESIDUAL, maxent_spectrum, spectral_density
from fitbo.logdet.omxnt import scale_iteratively
from fitbo.logdet.operator import as_operator
from fitbo.logdet.ritz import calibrate, plan
from fitbo.logdet.taylor import unit_powers
from fitbo.logdet.trace import chebyshev_moments, in_family, probe_blocks
from fitbo.maxent.basis import VANDER
from tests.logdet.problems import grid_eigenvalues, grid_laplacian, kernel, with_spectrum

EIGENVALUES = np.geomspace(0.05, 3.0, 60)
K = with_spectrum(EIGENVALUES)
BOUNDS = Bounds(0.01, 3.2)


@pytest.mark.parametrize("family", ["chebyshev", "legendre", "power"])
@pytest.mark.parametrize("m", [1, 2, 7, 8])
def test_moments_of_each_probe_are_its_quadratic_forms(family: str, m: int) -> None:
    """z.phi_i(A) z / n by dense eigenvectors, and ceil(m / 2) products."""
    op = as_operator(K)
    found = in_family(chebyshev_moments(op, BOUNDS, m, 3, np.random.default_rng(4)), family)
    (z,) = probe_blocks(60, 3, np.random.default_rng(4))
    values, vectors = np.linalg.eigh(K)
    weights = (vectors.T @ z) ** 2 / 60
    assert_allclose(found, weights.T @ VANDER[family](BOUNDS.to_unit(values), m), atol=1e-12)
    assert op.products == 3 * -(-m // 2)


def test_moments_are_unbiased() -> None:
    """The mean over many probes is the trace, within its standard error; at 10,000 probes."""
    found = chebyshev_moments(as_operator(K), BOUNDS, 6, 10_000, np.random.default_rng(0))
    truth = VANDER["chebyshev"](BOUNDS.to_unit(EIGENVALUES), 6).mean(0)
    error = found.std(0, ddof=1)[1:] / 100
    assert (abs(found.mean(0) - truth)[1:] < 4 * error).all()
    assert (error < 0.005).all()


def test_probes_are_signs_and_do_not_depend_on_the_blocks() -> None:
    (whole,) = probe_blocks(33, 5, np.random.default_rng(1))
    parts = list(probe_blocks(33, 5, np.random.default_rng(1), most=2))
    assert set(np.unique(whole)) == {-1.0, 1.0}
    assert [part.shape[1] for part in parts] == [2, 2, 1]
    assert (np.hstack(parts) == whole).all()


def test_unit_powers() -> None:
    u = np.linspace(-1, 1, 7)
    phi = np.polynomial.chebyshev.chebvander(u, 9)
    for sign in (1.0, -1.0):
        expected = ((1 + sign * u) / 2)[:, None] ** np.arange(10)
        assert_allclose(phi @ unit_powers(9, sign).T, expected, atol=1e-13)
    assert_allclose(abs(unit_powers(30)).sum(1), 1)


def test_bounds_hold() -> None:
    for matrix in (K, grid_laplacian(9), kernel(50, 0.4, 1e-3)):
        op = as_operator(matrix)
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        low, high = np.linalg.eigvalsh(dense)[[0, -1]]
        assert gershgorin(op)[0] <= low
        assert gershgorin(op)[1] >= high * (1 - 1e-12)
        inner, upper = lanczos_ends(op, np.random.default_rng(0))
        assert upper >= high * (1 - 1e-12)
        assert inner >= low * (1 - 1e-12)
    assert gershgorin(as_operator(grid_laplacian(9)))[1] == pytest.approx(8.0)
    given = resolve(as_operator(K), (0.02, None), np.random.default_rng(0))
    assert given.lower == 0.02


def test_lanczos_matches_twice_as_many_moments_as_steps() -> None:
    theta, weights = ritz(as_operator(K), 5, 2, np.random.default_rng(3)).nodes()
    (z,) = probe_blocks(60, 2, np.random.default_rng(3))
    values, vectors = np.linalg.eigh(K)
    truth = (vectors.T @ z) ** 2 / 60
    for power in range(10):
        assert_allclose((weights * theta**power).sum(1), truth.T @ values**power, rtol=1e-9)
    assert abs((weights * theta**10).sum(1) / (truth.T @ values**10) - 1).max() > 1e-9


def test_radau_and_gauss_bracket_every_probe() -> None:
    quadrature = ritz(as_operator(K), 6, 8, np.random.default_rng(3))
    (z,) = probe_blocks(60, 8, np.random.default_rng(3))
    values, vectors = np.linalg.eigh(K)
    truth = ((vectors.T @ z) ** 2 / 60).T @ np.log(values)
    gauss, radau = (
        (w * np.log(t)).sum(1) for t, w in (quadrature.nodes(), quadrature.nodes(lower=0.04))
    )
    assert (radau < truth).all()
    assert (truth < gauss).all()
    assert_allclose(quadrature.nodes(lower=0.04)[0].min(1), 0.04, rtol=1e-10)


def test_lanczos_stays_orthogonal_over_many_steps() -> None:
    """Without reorthogonalisation copies of the large eigenvalues would appear."""
    hard = with_spectrum(np.concatenate([np.geomspace(1e-6, 1e-2, 90), [1.0, 10.0, 100.0]]))
    theta, weights = ritz(as_operator(hard), 93, 1, np.random.default_rng(0)).nodes()
    assert (theta > 50).sum() == 1
    assert_allclose(weights.sum(), 1)
    assert_allclose(theta.max(), 100.0)


def test_deflated_operator_is_the_schur_complement() -> None:
    matrix = kernel(40, 1.0, 1e-3)
    op = Deflated(as_operator(matrix), 7)
    S = op @ np.eye(33)
    assert_allclose(
        np.log(op.pivots).sum() + np.linalg.slogdet(S)[1], np.linalg.slogdet(matrix)[1], rtol=1e-9
    )
    assert_allclose(op.diagonal(), S.diagonal(), atol=1e-12)
    assert_allclose(op.squared_norm(), (S * S).sum(), rtol=1e-9)
    assert np.linalg.eigvalsh(S)[0] >= np.linalg.eigvalsh(matrix)[0] * (1 - 1e-6)
    assert np.linalg.eigvalsh(S)[-1] < np.linalg.eigvalsh(matrix)[-1]


def grid_moments(m: int, family: str) -> tuple[np.ndarray, Bounds, np.ndarray]:
    """Exact moments of a grid's spectrum: without probes only the MaxEnt step is tested."""
    eigenvalues = grid_eigenvalues(300)
    bounds = Bounds(0.0, 8.0)
    return VANDER[family](bounds.to_unit(eigenvalues), m).mean(0), bounds, eigenvalues


@pytest.mark.parametrize("family", ["legendre", "chebyshev"])
def test_meme_is_stable_to_two_hundred_moments(family: str) -> None:
    moments, bounds, eigenvalues = grid_moments(200, family)
    truth = np.log(eigenvalues).mean()
    entropies = []
    for m in (2, 5, 10, 20, 40, 80, 120, 160, 200):
        density, refine = maxent_spectrum(moments[: m + 1], family, bounds)
        assert density.residual < RESIDUAL
        entropies.append(float(density.entropy))
        if m >= 20:
            value = spectral_density(density, bounds, refine).expect(np.log)
            assert_allclose(value, truth, rtol=1e-3)
    assert (np.diff(entropies) < 0).all()


def test_meme_entropy_never_rises_and_omxnt_s_does() -> None:
    moments, bounds, _ = grid_moments(15, "chebyshev")
    ours, theirs = [], []
    for m in range(1, 16):
        mu = in_family(moments[: m + 1], "legendre")
        ours.append(float(maxent_spectrum(mu, "legendre", bounds)[0].entropy))
        _, p, _ = scale_iteratively(moments[: m + 1] @ unit_powers(m).T, n_sweeps=200)
        theirs.append(-float(p[p > 0] @ np.log(p[p > 0] * len(p) / 2)))
    assert (np.diff(ours) < 1e-9).all()
    assert (np.diff(theirs) > 1e-6).any()


def test_omxnt_solves_a_small_problem() -> None:
    """One moment, mean 0.3 on [0, 1]: the density is exponential, and scaling converges to it."""
    x, masses, residual = scale_iteratively([1.0, 0.3], n_sweeps=5000)
    assert residual < 1e-7
    assert_allclose(masses @ x, 0.3, atol=1e-7)
    slope = np.diff(np.log(masses))
    assert_allclose(slope, slope[0], rtol=1e-6)


def test_priors() -> None:
    """With the moments of q0 itself, q = q0; and log is the function 1 / lambda."""
    bounds = Bounds(0.01, 1.0)
    x = np.geomspace(0.01, 1, 200_001)  # equal steps in log: flat in log lambda
    moments = VANDER["legendre"](bounds.to_unit(x), 8)
    mu = np.trapezoid(moments, np.log(x), axis=0) / np.log(100)
    for prior in ("log", lambda points: 1 / points):
        density, refine = maxent_spectrum(mu, "legendre", bounds, prior)
        found = spectral_density(density, bounds, refine)
        assert_allclose(found.expect(np.log), np.log(0.1), atol=1e-6)
        at = np.array([0.02, 0.1, 0.7])
        assert_allclose(found.pdf(at), 1 / (at * np.log(100)), rtol=1e-5)


def test_calibration_meets_its_targets_with_positive_weights() -> None:
    rng = np.random.default_rng(0)
    known = np.stack([1 + 0.1 * rng.standard_normal(20), 2 + 0.3 * rng.standard_normal(20)])
    weights = calibrate(known, np.array([1.02, 2.05]))
    assert_allclose(known @ weights, [1.02, 2.05], rtol=1e-8)
    assert_allclose(weights.sum(), 1)
    assert (weights > 0).all()
    # A target that no weights can reach is dropped, the first kept.
    weights = calibrate(known, np.array([1.02, 9.0]))
    assert_allclose(known[0] @ weights, 1.02, rtol=1e-8)
    assert_allclose(calibrate(known, np.array([9.0, 9.0])), 1 / 20)
    assert_allclose(calibrate(np.ones((2, 5)), np.ones(2)), 1 / 5)


@pytest.mark.parametrize("n", [3, 40, 1000, 10**7])
def test_plan_spends_no_more_than_it_has(n: int) -> None:
    for n_moments in (1, 8, 60):
        for n_probes in (1, 2, 5, 50):
            short, steps, long, long_steps = plan(n, n_moments, n_probes)
            assert short >= 1
            assert short * steps + long * long_steps <= n_probes * -(-n_moments // 2)
            assert max(steps, long_steps) <= n


def single(matrix: np.ndarray) -> LinearOperator:
    """The same matrix behind products in single precision."""
    coarse = matrix.astype(np.float32)

    def product(v: np.ndarray) -> np.ndarray:
        return coarse @ v.astype(np.float32)

    return LinearOperator(matrix.shape, matvec=product, matmat=product, dtype=np.float32)


@pytest.mark.parametrize("method", ["meme", "chebyshev", "taylor", "omxnt", "lanczos"])
def test_products_in_single_precision(method: str) -> None:
    """As good as those in double precision, up to their own rounding."""
    matrix = with_spectrum(np.geomspace(0.5, 3.0, 60))
    of_double = LinearOperator(matrix.shape, matvec=lambda v: matrix @ v)
    value = logdet(single(matrix), method, seed=0)
    assert value == pytest.approx(logdet(of_double, method, seed=0), abs=2e-3)


@pytest.mark.parametrize("options", [{"prior": "ritz"}, {"method": "lanczos", "n_moments": 4}])
def test_a_lower_bound_above_the_spectrum_is_refused(options: dict) -> None:
    logdet(K, bounds=(EIGENVALUES[0], None), seed=0, **options)
    for lower in (1.2 * EIGENVALUES[20], EIGENVALUES[40], 2.9):
        with pytest.raises(ValueError, match="must lie below the spectrum"):
            logdet(K, bounds=(lower, None), seed=0, **options)


def test_a_run_that_has_ended_does_not_hide_a_wrong_bound() -> None:
    """Signs are the eigenvectors of this one: the first step is the last."""
    with pytest.raises(ValueError, match="must lie below the spectrum"):
        logdet(np.array([[2.0, 1], [1, 2]]), "lanczos", n_probes=3, seed=1, bounds=(1.5, None))


@pytest.mark.parametrize("rank", [20, 40, 80, 150, 250])
def test_a_right_lower_bound_is_right_of_the_remainder_too(rank: int) -> None:
    """Even where K, and so its rounding, is a million times larger than the remainder."""
    x = np.random.default_rng(0).standard_normal((300, 1))
    matrix = np.exp(-((x - x.T) ** 2)) + 1e-8 * np.eye(300)
    truth = np.linalg.slogdet(matrix)[1]
    value, info = logdet(
        matrix, n_probes=20, deflation=rank, bounds=(1e-8, None), seed=0, return_info=True
    )
    assert value == pytest.approx(truth, abs=5 * info.standard_error + 1e-3)


@pytest.mark.parametrize("method", ["meme", "chebyshev", "taylor", "omxnt", "lanczos"])
def test_a_singular_matrix_has_no_remainder(method: str) -> None:
    with pytest.raises(ValueError, match="positive definite, got a remainder of trace"):
        logdet(np.ones((3, 3)), method, deflation=1, seed=0)


def test_a_huge_pivot_does_not_make_the_remainder_rounding() -> None:
    """Boundary conditions imposed by a penalty make such matrices."""
    value = logdet(np.diag([1e20, 1.0, 2.0, 3.0, 4.0]), "lanczos", deflation=1, seed=0)
    assert value == pytest.approx(np.log(24e20), rel=1e-12)


def test_products_for_the_bounds_count_when_deflating_too() -> None:
    options = {"bounds": "lanczos", "prior": "flat", "seed": 0, "return_info": True}
    plain, deflated = (logdet(K, deflation=k, **options)[1].products for k in (0, 5))
    assert deflated == plain + 5
