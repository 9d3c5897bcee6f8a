"""Every method against known log-determinants, and against bad input."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from fitbo.logdet import METHODS, LogdetInfo, UnseenEigenvaluesWarning, logdet
from fitbo.logdet.trace import probe_blocks
from tests.logdet.problems import (
    forms,
    grid_eigenvalues,
    grid_laplacian,
    kernel,
    with_spectrum,
)

ESTIMATES = [name for name in METHODS if name != "cholesky"]
WELL = np.linspace(0.5, 2.0, 300)


def within(value: float, info: LogdetInfo, truth: float, bias: float, errors: float = 4) -> None:
    assert abs(value - truth) <= errors * info.standard_error + bias


@pytest.mark.parametrize("method", METHODS)
def test_known_spectrum(method: str) -> None:
    """Condition number 4: every method's bias is small compared with the probes' scatter."""
    value, info = logdet(
        with_spectrum(WELL),
        method,
        n_moments=4 if method == "omxnt" else 30,
        bounds=(0.45, 2.1),
        seed=0,
        return_info=True,
    )
    assert info.method == method
    truth = np.log(WELL).sum()
    # OMxnt converges slowly: after two thousand sweeps it is still off by a seventh.
    within(value, info, truth, bias=0.15 * truth if method == "omxnt" else 0.02)


@pytest.mark.parametrize("method", [name for name in ESTIMATES if name != "omxnt"])
def test_methods_agree_on_equal_probes(method: str) -> None:
    """With the same probes all estimate the mean of z.log(K) z, far within their scatter."""
    K = with_spectrum(WELL)
    signs = next(iter(probe_blocks(len(K), 5, np.random.default_rng(3))))
    eigenvalues, vectors = np.linalg.eigh(K)
    dense = (np.log(eigenvalues)[:, None] * (vectors.T @ signs) ** 2).sum(0).mean()
    options = {"n_moments": 60, "n_probes": 5, "bounds": (0.45, 2.1), "prior": "flat"}
    value = logdet(K, method, seed=3, **options)
    assert_allclose(value, dense, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_scaled_identity(method: str) -> None:
    for K in (3.0 * np.eye(40), 3.0 * sp.eye_array(40)):
        value = logdet(K, method, 10, n_probes=3, seed=0)
        # OMxnt's density is pressed against the end of its grid.
        assert_allclose(value, 40 * np.log(3), rtol=1e-2 if method == "omxnt" else 1e-6)


def test_scaling_adds_n_log_c() -> None:
    K = with_spectrum(WELL)
    for method in METHODS:
        assert_allclose(
            logdet(7.0 * K, method, 8, 5, seed=0) - logdet(K, method, 8, 5, seed=0),
            len(K) * np.log(7),
            rtol=1e-6,
        )


def test_diagonal_matrix_is_exact_for_lanczos_and_ritz() -> None:
    """Signs see every diagonal entry alike, and four distinct ones end the Krylov space."""
    diagonal = np.repeat([0.01, 1.0, 5.0, 40.0], 25)
    K = sp.diags_array(diagonal)
    for options in ({"method": "lanczos"}, {"prior": "ritz"}):
        value, info = logdet(K, seed=0, return_info=True, **options)
        assert_allclose(value, np.log(diagonal).sum(), rtol=1e-8)
        assert_allclose(np.unique(info.density.points.round(9)), [0.01, 1.0, 5.0, 40.0])


def test_one_by_one() -> None:
    for method in METHODS:
        assert_allclose(logdet([[2.5]], method, 6, seed=0), np.log(2.5), rtol=1e-2)


@pytest.mark.parametrize("prior", ["auto", "flat", "ritz"])
@pytest.mark.parametrize("basis", ["legendre", "chebyshev"])
def test_grid_laplacian(prior: str, basis: str) -> None:
    truth = np.log(grid_eigenvalues(40)).sum()
    value, info = logdet(grid_laplacian(40), basis=basis, prior=prior, seed=0, return_info=True)
    within(value, info, truth, bias=0.005 * truth)


@pytest.mark.parametrize("method", ESTIMATES)
def test_forms_of_one_matrix_agree(method: str) -> None:
    """Dense, sparse and matrix-free: the same probes, so the same answer to rounding."""
    K = grid_laplacian(8).toarray()
    values = [
        logdet(form, method, bounds=(0.1, 8.0), n_moments=8, n_probes=4, seed=1, prior="flat")
        for form in forms(K).values()
    ]
    assert_allclose(values, values[0], rtol=1e-9)


def test_ritz_agrees_between_dense_and_sparse() -> None:
    K = grid_laplacian(8).toarray()
    values = [logdet(form, prior="ritz", seed=1) for form in (K, sp.csr_array(K))]
    assert_allclose(values[0], values[1], rtol=1e-8)
    # Without entries the exact traces are not known: a little more scatter, the same truth.
    value, info = logdet(aslinearoperator(K), prior="ritz", seed=1, return_info=True)
    within(value, info, np.log(grid_eigenvalues(8)).sum(), bias=0.01)


def test_integer_and_single_precision_matrices() -> None:
    K = np.array([[4, 1], [1, 3]])
    assert_allclose(logdet(K, "cholesky"), np.log(11))
    assert_allclose(logdet(K.astype(np.float32), "cholesky"), np.log(11), rtol=1e-6)
    assert_allclose(logdet(K, "lanczos", n_probes=200, seed=0), np.log(11), rtol=0.05)


def test_sparse_cholesky_equals_dense() -> None:
    K = grid_laplacian(12)
    assert_allclose(logdet(K, "cholesky"), np.log(grid_eigenvalues(12)).sum(), rtol=1e-12)
    assert_allclose(logdet(K.toarray(), "cholesky"), logdet(K, "cholesky"), rtol=1e-12)


@pytest.mark.parametrize("method", ESTIMATES)
def test_all_use_half_as_many_products_as_moments(method: str) -> None:
    K = with_spectrum(WELL)
    _, info = logdet(
        K, method, n_moments=20, n_probes=6, bounds=(0.4, 2.2), seed=0, return_info=True
    )
    assert info.products == 6 * 10
    _, info = logdet(K, prior="ritz", n_moments=20, n_probes=50, seed=0, return_info=True)
    assert info.products <= 50 * 10


def test_seed_decides_and_generators_are_taken() -> None:
    K = with_spectrum(WELL)
    assert logdet(K, seed=5) == logdet(K, seed=5)
    assert logdet(K, seed=5) != logdet(K, seed=6)
    assert logdet(K, seed=np.random.default_rng(5)) == logdet(K, seed=5)


def test_ill_conditioned_kernel_needs_the_ritz_prior() -> None:
    """The case the prior was made for; the flat prior and Lanczos have large errors."""
    K = kernel(400, 1.5, 1e-8)
    truth = np.linalg.slogdet(K)[1]
    options = {"n_moments": 60, "bounds": (1e-8, None), "seed": 0}
    ritz = abs(logdet(K, prior="ritz", **options) / truth - 1)
    lanczos = abs(logdet(K, "lanczos", **options) / truth - 1)
    assert ritz < 0.03
    assert ritz < 0.3 * lanczos


def test_a_long_run_may_be_blind_to_an_eigenvector() -> None:
    """Eigenvectors (e_i +- e_j) / sqrt 2: signs meet one of each pair and miss the other."""
    K = np.eye(200)
    for i in range(0, 20, 2):
        K[i, i + 1] = K[i + 1, i] = 0.1 + 0.08 * i / 2
    truth = np.linalg.slogdet(K)[1]
    for seed in range(6):
        value, info = logdet(K, prior="ritz", n_moments=20, seed=seed, return_info=True)
        assert info.converged
        within(value, info, truth, bias=0.01 * abs(truth), errors=5)


def test_deflation_is_exact_where_it_should_be() -> None:
    K = kernel(120, 1.0, 1e-4)
    truth = np.linalg.slogdet(K)[1]
    value, info = logdet(K, "lanczos", n_moments=160, deflation=60, seed=0, return_info=True)
    within(value, info, truth, bias=1e-3 * abs(truth))
    assert info.products == 60 + 50 * 60  # pivots, and as many steps as rows are left
    # With one row left nothing is estimated.
    assert_allclose(logdet(K, "lanczos", deflation=119, seed=0), truth, rtol=1e-10)
    sparse = logdet(sp.csr_array(K), "lanczos", n_moments=20, deflation=30, seed=0)
    assert_allclose(sparse, logdet(K, "lanczos", n_moments=20, deflation=30, seed=0), rtol=1e-8)


def test_deflation_moves_the_bracket_with_the_value() -> None:
    """What was taken out exactly is added to both ends."""
    K = kernel(120, 1.0, 1e-4)
    truth = np.linalg.slogdet(K)[1]
    options = {"method": "lanczos", "bounds": (1e-4, None), "seed": 0, "return_info": True}
    value, info = logdet(K, n_moments=10, deflation=30, **options)
    low, high = info.bracket
    assert low < truth < high == value
    # With one row left nothing is uncertain.
    _, info = logdet(K, deflation=119, **options)
    assert_allclose(info.bracket, truth, rtol=1e-10)


def test_info_is_frozen_and_its_density_plottable() -> None:
    K = with_spectrum(WELL)
    value, info = logdet(K, prior="flat", seed=0, return_info=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.products = 0
    assert_allclose(len(K) * info.density.expect(np.log), value)
    assert_allclose(info.density.masses.sum(), 1)
    x = np.linspace(0.5, 2.0, 200)
    assert_allclose(info.density.pdf(x), 1 / 1.5, rtol=0.6)  # the spectrum is flat there
    lower, upper = info.bounds
    fine = np.linspace(lower, upper, 20001)
    assert_allclose(np.trapezoid(info.density.pdf(fine), fine), 1, rtol=1e-3)
    assert_allclose(info.density.cdf([lower, 1.25, upper]), [0, 0.5, 1], atol=0.03)
    edges, heights = info.density.histogram(20)
    assert_allclose(heights.sum() * np.log10(edges[1] / edges[0]), 1)


def test_standard_error_is_that_of_the_scatter() -> None:
    K = with_spectrum(np.geomspace(0.02, 1, 100))
    for options in ({"method": "lanczos"}, {"prior": "ritz"}, {"prior": "flat"}, {}):
        runs = [
            logdet(K, n_moments=20, n_probes=20, seed=s, return_info=True, **options)
            for s in range(12)
        ]
        scatter = np.std([value for value, _ in runs], ddof=1)
        claimed = np.mean([info.standard_error for _, info in runs])
        assert 0.4 < scatter / claimed < 2.0


NAN = np.eye(3)
NAN[1, 1] = np.nan


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), r"K must be a square matrix, got shape \(2, 3\)"),
        (np.ones(4), r"K must be a square matrix, got shape \(4,\)"),
        (np.empty((0, 0)), r"K must have at least one row, got shape \(0, 0\)"),
        (sp.csr_array((0, 0)), "K must have at least one row"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "K must be symmetric, got K_ij - K_ji of up to 0.5"),
        (sp.csr_array(np.array([[1.0, 0.5], [0.0, 1.0]])), "K must be symmetric"),
        (aslinearoperator(np.array([[1.0, 0.5], [0.0, 1.0]])), "K must be symmetric, got x"),
        (NAN, r"K must be finite, got NaN or inf in shape \(3, 3\)"),
        (sp.csr_array(NAN), "K must be finite"),
        (aslinearoperator(NAN), "a product with K must be finite"),
        (np.eye(2) * (1 + 1j), "K must be real, got complex"),
        (aslinearoperator(np.eye(2) * (1 + 1j)), "K must be real, got complex"),
        (np.array([["a", "b"], ["b", "a"]]), "K must hold real numbers"),
        (np.diag([1.0, -1.0]), "K must be positive definite, got a diagonal entry of -1"),
    ],
)
def test_bad_matrices(K: object, message: str) -> None:
    for method in ("meme", "cholesky"):
        with pytest.raises(ValueError, match=message):
            logdet(K, method, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_indefinite_is_detected(method: str) -> None:
    """A positive diagonal and a negative eigenvalue, which only products can show."""
    K = with_spectrum(np.concatenate([[-0.6], np.linspace(0.5, 2, 60)]))
    assert (K.diagonal() > 0).all()
    for form in (K, sp.csr_array(K)) if method != "omxnt" else (K,):
        with pytest.raises(ValueError, match="K must be positive definite"):
            logdet(form, method, seed=0)
    if method == "meme":
        for prior in ("auto", "flat", "ritz"):
            for form in (K, aslinearoperator(K)):
                with pytest.raises(ValueError, match="K must be positive definite"):
                    logdet(form, prior=prior, seed=0)


def test_singular_sparse_matrix() -> None:
    path = sp.csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    with pytest.raises(ValueError, match="K must be positive definite"):
        logdet(path, "cholesky")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lanzcos"}, "method must be one of .* did you mean 'lanczos'"),
        ({"n_moments": 0}, "n_moments must be a whole number of at least 1, got 0"),
        ({"n_probes": 2.5}, "n_probes must be a whole number of at least 1, got 2.5"),
        ({"basis": "sine"}, "basis must be one of power, chebyshev, legendre, got 'sine'"),
        ({"prior": "cauchy"}, "prior must be one of auto, flat, log, ritz or a function"),
        ({"bounds": "wide"}, "bounds must be gershgorin, lanczos or a pair, got 'wide'"),
        ({"bounds": (1.0,)}, r"bounds must be a pair \(lower, upper\)"),
        ({"bounds": (-1.0, 2.0)}, "bounds must be finite and not negative"),
        ({"bounds": (3.0, 2.0)}, "bounds must have 0 <= lower <= upper"),
        ({"bounds": (0.0, 1.0)}, "bounds must hold the spectrum of K, got eigenvalues above 1"),
        ({"bounds": (1.0, 2.5)}, r"bounds\[0\] must lie below the spectrum, got 1"),
        (
            {"prior": "flat", "bounds": (0.0, 1.0)},
            "bounds must hold the spectrum of K, got eigenvalues above 1",
        ),
        (
            {"prior": "flat", "bounds": (1.0, 2.5)},
            "bounds must hold the spectrum of K, got eigenvalues below 1",
        ),
        ({"prior": "log", "bounds": (0.0, None)}, 'prior="log" needs a positive lower bound'),
        ({"deflation": 300}, "deflation must be below n = 300, got 300"),
        ({"method": "lanczos", "bounds": (1.0, None)}, r"bounds\[0\] must lie below the spectrum"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logdet(with_spectrum(WELL), seed=0, **options)


def test_what_needs_entries_says_so() -> None:
    free = LinearOperator((3, 3), matvec=lambda v: 2.0 * v, dtype=np.float64)
    for options in ({"method": "cholesky"}, {"deflation": 1}, {"bounds": "gershgorin"}):
        with pytest.raises(ValueError, match="got a LinearOperator"):
            logdet(free, seed=0, **options)
    assert_allclose(logdet(free, prior="ritz", seed=0), 3 * np.log(2))
    assert_allclose(logdet(free, seed=0), 3 * np.log(2), atol=1e-2)


@pytest.mark.slow
def test_a_million_rows() -> None:
    """The grid whose log-determinant the matrix-tree theorem gives."""
    side = 1000
    truth = np.log(grid_eigenvalues(side)).sum()
    L = grid_laplacian(side)
    value, info = logdet(L, n_moments=30, n_probes=50, prior="flat", seed=0, return_info=True)
    assert abs(value / truth - 1) < 0.005
    assert info.residual < 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenEigenvaluesWarning)  # the smallest of a million
        assert abs(logdet(L, seed=0) / truth - 1) < 0.0005
