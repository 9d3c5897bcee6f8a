"""``logdet(K)`` with no options: right, or it says that it is not; at any scale of K."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from fitbo.logdet import METHODS, LogdetInfo, UnseenEigenvaluesWarning, logdet
from tests.logdet.problems import (
    benign,
    forms,
    grid_laplacian,
    hopeless,
    kernel,
    stationary,
    true_logdet,
    with_spectrum,
)

BENIGN, HOPELESS = benign(), hopeless()


def quietly(K: Any, **options: Any) -> tuple[float, LogdetInfo]:
    """The answer, whether it comes with a warning or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenEigenvaluesWarning)
        return logdet(K, return_info=True, **options)


@pytest.mark.parametrize("name", BENIGN)
def test_right_and_silent_where_the_products_suffice(name: str) -> None:
    """Any warning would be an error here."""
    K = BENIGN[name]
    truth = true_logdet(K)
    for form in (K, aslinearoperator(K)):
        for seed in range(3):
            value, info = logdet(form, seed=seed, return_info=True)
            assert info.warning is None
            assert info.products <= 750
            assert abs(value - truth) <= 5 * info.standard_error + 2e-3 * K.shape[0]


@pytest.mark.parametrize("name", [*list(BENIGN)[::2], *(f"hopeless {name}" for name in HOPELESS)])
def test_never_much_worse_than_the_better_prior(name: str) -> None:
    K = BENIGN[name] if name in BENIGN else HOPELESS[name.removeprefix("hopeless ")]
    truth = true_logdet(K)
    seeds = range(2) if name in BENIGN else range(1)  # an error of bias needs no average
    default, flat, ritz = (
        np.mean([abs(quietly(K, prior=prior, seed=s)[0] - truth) for s in seeds])
        for prior in ("auto", "flat", "ritz")
    )
    errors = [quietly(K, seed=s)[1].standard_error for s in seeds]
    assert default <= 1.3 * min(flat, ritz) + 2 * np.mean(errors)


@pytest.mark.parametrize(
    ("dimension", "lengthscale", "noise"),
    [(1, 0.3, 1e-7), (2, 1.0, 1e-6), (4, 3.0, 1e-8), (3, 5.0, 1e-9)],
)
def test_kernels_of_large_condition(dimension: int, lengthscale: float, noise: float) -> None:
    """Beyond 1e7 the flat prior, once the default, errs by a quarter and more."""
    K = stationary(400, dimension, lengthscale, noise, np.inf)
    truth = true_logdet(K)
    assert np.linalg.cond(K) > 1e7
    default, flat = (np.abs(quietly(K, prior=p, seed=0)[0] / truth - 1) for p in ("auto", "flat"))
    assert default < 0.03
    assert flat > 0.2


@pytest.mark.parametrize("name", HOPELESS)
def test_nearly_singular_matrices_are_warned_of(name: str) -> None:
    K = HOPELESS[name]
    truth = true_logdet(K)
    for options in ({"seed": 0}, {"seed": 1}, {"seed": 0, "prior": "ritz"}):
        with pytest.warns(UnseenEigenvaluesWarning, match="may lie .* below the estimate") as given:
            value, info = logdet(K, return_info=True, **options)
        assert given[0].filename == __file__
        assert str(given[0].message) == info.warning
        assert info.unseen > 1.5 * info.standard_error
        # Most of what is missing was announced.
        assert value - truth <= 2 * info.unseen + 4 * info.standard_error


def test_the_warning_appears_wherever_the_stated_error_is_wrong() -> None:
    """Spectra of all conditions, at a tenth of the default's products."""
    warned = missed = 0
    for decades in range(1, 16):
        for shape in (1.0, 3.0, 0.3):
            exponents = -decades * np.linspace(0, 1, 120) ** shape
            K = with_spectrum(10.0**exponents, seed=decades)
            value, info = quietly(K, n_moments=10, n_probes=15, seed=decades)
            off = value - np.log(10) * exponents.sum()
            warned += info.warning is not None
            missed += info.warning is None and abs(off) > 5 * info.standard_error + 0.1
    assert missed == 0
    assert 15 <= warned <= 35


def test_a_lower_bound_takes_the_warning_away() -> None:
    """A caller who knows the noise knows that nothing lies below it."""
    K = stationary(200, 2, 0.5, 1e-9, np.inf)
    with pytest.warns(UnseenEigenvaluesWarning):
        free, unbounded = logdet(K, seed=0, return_info=True)
    value, info = logdet(K, bounds=(1e-9, None), seed=0, return_info=True)
    assert value == pytest.approx(free, rel=1e-3)
    assert abs(value - true_logdet(K)) < 3 * info.standard_error
    assert info.unseen < 0.1 * unbounded.unseen


def test_what_was_chosen_is_told() -> None:
    K = BENIGN["geometric 1000"]
    assert logdet(K, seed=0, return_info=True)[1].prior == "ritz"
    few = {"n_moments": 20, "n_probes": 10}
    assert quietly(with_spectrum(np.geomspace(1e-4, 1, 300)), seed=0, **few)[1].prior == "flat"
    for prior in ("flat", "ritz"):
        assert logdet(K, prior=prior, seed=0, return_info=True)[1].prior == prior
    options = {"bounds": (1e-3, None), "seed": 0, "return_info": True}
    assert logdet(K, prior="log", **options)[1].prior == "log"
    assert logdet(K, prior=lambda x: 1 / x, **options)[1].prior == "function"
    assert logdet(K, "lanczos", seed=0, return_info=True)[1].prior is None
    assert logdet(K, prior="flat", seed=0, return_info=True)[1].unseen is None


def test_the_same_seed_gives_the_same_result() -> None:
    for K in (BENIGN["Wishart"], BENIGN["Laplacian, squared"], HOPELESS["geometric 1e12"]):
        (first, one), (second, two) = quietly(K, seed=7), quietly(K, seed=7)
        assert first == second
        assert (one.standard_error, one.unseen) == (two.standard_error, two.unseen)
        assert first != quietly(K, seed=8)[0]


@pytest.mark.parametrize("form", ["dense", "operator", "deflated", "much deflated"])
def test_no_more_products_than_asked(form: str) -> None:
    pivots = {"deflated": 20, "much deflated": 70}.get(form, 0)
    for K in (kernel(90, 1.0, 1e-6), with_spectrum(np.linspace(0.5, 2, 90)), grid_laplacian(9)):
        for n_moments in (1, 7, 30):
            for n_probes in (1, 2, 3, 12):
                given = aslinearoperator(K) if form == "operator" else K
                options = {"n_moments": n_moments, "n_probes": n_probes, "deflation": pivots}
                _, info = quietly(given, seed=0, **options)
                assert info.products <= pivots + n_probes * -(-n_moments // 2)
                assert np.isfinite(info.standard_error)


def test_deflation() -> None:
    K = stationary(300, 2, 1.0, 1e-5, np.inf)
    value, info = logdet(K, deflation=40, seed=0, return_info=True)
    assert abs(value - true_logdet(K)) < 4 * info.standard_error


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-30, 1e100, 1e306])
@pytest.mark.parametrize(
    ("method", "prior"), [("meme", "auto"), ("meme", "ritz"), *((m, "flat") for m in METHODS)]
)
def test_any_scale(scale: float, method: str, prior: str) -> None:
    """log det(c K) = log det K + n log c, for the bounds too, in every form of K."""
    K = with_spectrum(np.geomspace(0.05, 3.0, 40))
    n_moments = 3 if method == "omxnt" else 12
    options = {"method": method, "prior": prior, "n_moments": n_moments, "n_probes": 20, "seed": 0}
    for plain, scaled in zip(forms(K).values(), forms(scale * K).values(), strict=True):
        if method == "cholesky" and isinstance(plain, LinearOperator):
            continue
        for low in (0.0, 0.04):
            value = logdet(plain, bounds=(low, None), **options)
            found, info = logdet(scaled, bounds=(low * scale, None), return_info=True, **options)
            assert_allclose(found, value + len(K) * np.log(scale), rtol=1e-7)
            if low and method == "lanczos":
                assert info.bracket[0] <= found <= info.bracket[1]
            if prior == "auto":
                points = np.log(info.density.points) + np.log(info.scale)
                assert_allclose(len(K) * (info.density.masses @ points), found, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e304])
def test_benign_matrices_at_any_scale(scale: float) -> None:
    for name, K in list(BENIGN.items())[::3]:
        largest = abs(K).max()
        if largest * scale < 1e307:
            value, info = logdet(K * scale, seed=0, return_info=True)
            off = value - true_logdet(K) - K.shape[0] * np.log(scale)
            assert abs(off) <= 5 * info.standard_error + 2e-3 * K.shape[0], name


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e5, 1e20, 1e300])
def test_the_standard_error_has_no_units(scale: float) -> None:
    """What the exact low moments explain of the scatter, they explain in any units of K."""
    K = stationary(100, 2, 0.3, 1e-3, np.inf)
    _, info = logdet(K, seed=0, return_info=True)
    _, scaled = logdet(scale * K, seed=0, return_info=True)
    assert info.prior == scaled.prior == "ritz"
    assert_allclose(scaled.standard_error, info.standard_error, rtol=1e-3)


def test_eigenvalues_beyond_the_largest_double() -> None:
    """All entries are finite; the largest eigenvalue, 6e309, is not."""
    K = 1e308 * (np.full((60, 60), 1.0) + 0.5 * np.eye(60))
    truth = np.log(60.5) + 59 * np.log(0.5) + 60 * np.log(1e308)
    for form in (K, aslinearoperator(K)):
        assert_allclose(logdet(form, seed=0), truth, rtol=1e-4)
    assert_allclose(logdet(K, "cholesky"), truth, rtol=1e-12)
    with pytest.raises(ValueError, match="prior cannot be a function where eigenvalues"):
        logdet(K, prior=lambda x: np.ones_like(x), seed=0)
    assert_allclose(logdet(np.diag([1e308, 1e-20]), "cholesky"), 288 * np.log(10), rtol=1e-12)


def test_subnormal_and_vanishing_matrices() -> None:
    tiny = 2.0**-1070
    assert_allclose(logdet(tiny * np.eye(5), seed=0), -5 * 1070 * np.log(2), rtol=1e-12)
    with pytest.raises(ValueError, match="K must be positive definite, got a diagonal entry of 0"):
        logdet(np.zeros((3, 3)), seed=0)
    with pytest.raises(ValueError, match="K must be positive definite"):
        logdet(aslinearoperator(np.zeros((3, 3))), seed=0)
    with pytest.raises(ValueError, match="bounds must be of the size of K's eigenvalues"):
        logdet(1e-300 * np.eye(5), bounds=(None, 1e300), seed=0)


def test_functions_as_priors_see_the_eigenvalues_of_K() -> None:
    K = 1e60 * with_spectrum(np.geomspace(0.05, 3.0, 40))
    options = {"bounds": (0.04e60, None), "seed": 0}
    by_function = logdet(K, prior=lambda x: np.where(x > 1e50, 1 / x, np.nan), **options)
    assert_allclose(by_function, logdet(K, prior="log", **options), rtol=1e-9)


def test_products_in_single_precision_and_a_wide_spectrum() -> None:
    """Ritz values below the rounding of single precision are unseen, whatever their sign."""
    K = with_spectrum(np.geomspace(1e-10, 1, 100)).astype(np.float32)

    def product(v: np.ndarray) -> np.ndarray:
        return K @ v.astype(np.float32)

    coarse = LinearOperator(K.shape, matvec=product, matmat=product, dtype=np.float32)
    with pytest.warns(UnseenEigenvaluesWarning):
        logdet(coarse, seed=0)


def test_sparse_input_is_not_changed() -> None:
    K = sp.csr_array(1e200 * grid_laplacian(5))
    before = K.copy()
    logdet(K, seed=0)
    assert (before != K).nnz == 0
