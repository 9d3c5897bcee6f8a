"""What each backend promises beyond the common suite."""

from __future__ import annotations

import tracemalloc

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fitbo.entropy import BACKENDS, MC, MM, VUB, Custom, Huber, MEMe, MEMeC, MEMeL, Quad, backend
from fitbo.mixture import Mixture
from tests.mixtures import far_clusters, gentle, heavy_tailed, narrow_and_wide


def high_precision(mixture: Mixture) -> float:
    """-int p log p in 30 digits, for one mixture."""
    parts = list(zip(mixture.means, mixture.deviations, mixture.weights, strict=True))
    with mpmath.workdps(30):

        def integrand(y):
            p = sum(
                mpmath.mpf(w) * mpmath.npdf(y, mpmath.mpf(m), mpmath.mpf(s)) for m, s, w in parts
            )
            return -p * mpmath.log(p) if p > 0 else mpmath.mpf(0)

        points = sorted(
            {float(m + k * s) for m, s, _ in parts for k in (-11, -7, -4, -2, 0, 2, 4, 7, 11)}
        )
        return float(mpmath.quad(integrand, points))


@pytest.mark.parametrize(
    "mixture",
    [
        Mixture([0.0, 1.0, 1.5], [1.0, 0.04, 0.5], [0.5, 0.2, 0.3]),
        narrow_and_wide(),
        Mixture([0.0, 0.3], [1.0, 1e-10], [0.5, 0.5]),
    ],
    ids=["three", "narrow and wide", "range over sigma 1e5"],
)
def test_quad_against_high_precision(mixture: Mixture) -> None:
    exact = high_precision(mixture)
    assert_allclose(Quad(tol=1e-8)(mixture), exact, rtol=0, atol=1e-8)
    assert_allclose(Quad(tol=1e-11)(mixture), exact, rtol=0, atol=1e-10)


def test_quad_keeps_to_the_tolerance_it_is_given() -> None:
    mixture = heavy_tailed(batch=50)
    truth = Quad(tol=1e-12)(mixture)
    for tol in (1e-3, 1e-6, 1e-9):
        assert abs(Quad(tol=tol)(mixture) - truth).max() < tol


def test_quad_of_separate_clusters_adds_the_entropy_of_the_choice() -> None:
    one = 0.5 * np.log(2 * np.pi * np.e)
    assert_allclose(Quad()(far_clusters(1e5)), one + np.log(2), atol=1e-8)


def test_quad_works_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = heavy_tailed(batch=7, m=20)
    whole = Quad().value_and_grad(mixture)
    monkeypatch.setattr("fitbo.entropy.quadrature.BLOCK", 400)
    for a, b in zip(whole, Quad().value_and_grad(mixture), strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_mm_is_the_gaussian_of_equal_variance() -> None:
    mixture = gentle()
    assert_allclose(MM()(mixture), stats.norm(scale=mixture.variance**0.5).entropy(), rtol=1e-13)


def test_mc_is_unbiased_and_common_random_numbers_are_common() -> None:
    mixture = gentle(batch=1)
    truth = Quad()(mixture)
    runs = np.array([MC(400, seed=s)(mixture)[0] for s in range(60)])
    assert abs(runs.mean() - truth) < 4 * runs.std() / np.sqrt(60)
    assert MC(50, seed=3)(mixture) == MC(50, seed=3)(mixture)
    assert MC(50, seed=3) == MC(50, seed=3)
    assert MC(50, seed=3)(mixture) != MC(50, seed=4)(mixture)


@pytest.mark.parametrize("n", [100, 400])
def test_mc_errs_by_its_standard_error(n: int) -> None:
    """sqrt(Var log p) = sqrt(1/2) of a Gaussian, and 0.7 of gentle mixtures, over sqrt(n)."""
    mixture = gentle(batch=8)
    truth = Quad()(mixture)
    one = Mixture([0.0], [1.0])
    draws = [MC(n, seed=s) for s in range(200)]
    exact = 0.5 * np.log(2 * np.pi * np.e)
    rms = np.sqrt(np.mean([(mc(one) - exact) ** 2 for mc in draws]))
    assert_allclose(rms, np.sqrt(0.5 / n), rtol=0.15)
    rms = np.sqrt(np.mean([(mc(mixture) - truth) ** 2 for mc in draws]))
    assert_allclose(rms, 0.7 / np.sqrt(n), rtol=0.15)


def test_vub_against_the_formula_written_out() -> None:
    m, v, w = [0.0, 0.7], [1.0, 0.25], [0.4, 0.6]

    def kl(i: int, j: int) -> float:
        return 0.5 * (np.log(v[j] / v[i]) + (v[i] + (m[i] - m[j]) ** 2) / v[j] - 1)

    expected = sum(
        w[i]
        * (
            0.5 * np.log(2 * np.pi * np.e * v[i])
            - np.log(sum(w[j] * np.exp(-kl(i, j)) for j in range(2)))
        )
        for i in range(2)
    )
    assert_allclose(VUB()(Mixture(m, v, w)), expected, rtol=1e-13)


def test_vub_is_exact_for_clusters_far_apart() -> None:
    assert_allclose(VUB()(far_clusters()), 0.5 * np.log(2 * np.pi * np.e) + np.log(2), rtol=1e-12)


def test_huber_against_the_formula_written_out() -> None:
    mixture = Mixture([0.0, 0.7], [1.0, 0.25], [0.4, 0.6])
    h = 1e-4
    y = mixture.means[:, None] + h * np.array([-1, 0, 1])
    log_p = mixture.log_pdf(y.reshape(-1)).reshape(2, 3)
    bend = (log_p[:, 0] - 2 * log_p[:, 1] + log_p[:, 2]) / h**2
    zeroth = -(mixture.weights * log_p[:, 1]).sum()
    second = zeroth - 0.5 * (mixture.weights * mixture.variances * bend).sum()
    assert_allclose(Huber(order=0)(mixture), zeroth, rtol=1e-12)
    assert_allclose(Huber(order=2)(mixture), second, rtol=1e-6)


def test_splitting_brings_huber_nearer_the_truth() -> None:
    mixture = gentle(batch=20)
    truth = Quad()(mixture)
    errors = [abs(Huber(2, split=k)(mixture) - truth).mean() for k in (1, 3, 6)]
    assert errors[0] > 3 * errors[1] > 3 * errors[2]


def test_two_moments_of_memel_are_moment_matching() -> None:
    mixture = heavy_tailed()
    assert_allclose(MEMeL(2)(mixture), MM()(mixture), atol=1e-8)


def test_ten_moments_see_a_narrow_core() -> None:
    """The flat prior misses by most of a nat here; the windows by a few hundredths."""
    mixture = narrow_and_wide()
    truth = Quad()(mixture)
    assert MEMeL(10)(mixture) - truth < 0.06
    assert MEMeL(10, windows=0)(mixture) - truth > 0.5


def test_families_share_one_answer() -> None:
    mixture = heavy_tailed(batch=10)
    values = [kind(10)(mixture) for kind in (MEMe, MEMeL, MEMeC)]
    assert_allclose(values[0], values[1], atol=1e-4)
    assert_allclose(values[2], values[1], atol=1e-5)


def test_a_solve_that_fails_falls_back_and_says_so() -> None:
    """Four needles: no density with many moments can follow them on any affordable nodes."""
    needles = Mixture(np.array([-1.0, -0.3, 0.37, 1.0]), np.full(4, 1e-14))
    value, info = MEMeL(30).value_and_info(needles)
    assert info.n_moments < 30
    assert np.isfinite(value)
    assert value >= Quad()(needles) - MEMeL.tolerance
    assert value <= MM()(needles) + 1e-6
    easy, info = MEMeL(30).value_and_info(gentle())
    assert (info.n_moments == 30).all()
    assert (info.iterations > 0).all()
    assert (info.residual < 1e-4).all()
    assert np.isfinite(easy).all()


@pytest.mark.parametrize("backend", [MEMeL(140), MEMeC(120), MEMeL(120, windows=0)], ids=str)
@pytest.mark.parametrize("distance", [20.2, 28.0, 40.0])
def test_many_moments_of_components_at_the_edge(backend: MEMe, distance: float) -> None:
    """Whole-line moments would grow past the edge of the domain here and break the bound."""
    mixture = Mixture([-distance, distance], [1.0, 1.0])
    gap = backend(mixture) - Quad(1e-11)(mixture)
    assert -1e-7 < gap < 0.2


@pytest.mark.parametrize("n_moments", [10, 30])
@pytest.mark.parametrize("weight", [0.0, 1e-16])
def test_components_without_weight_do_not_stretch_the_domain(n_moments: int, weight: float) -> None:
    bare = Mixture([0.0, 1.0], [1.0, 1.0])
    burdened = Mixture([0.0, 1.0, 1e16], [1.0, 1.0, 1.0], [0.5, 0.5 - weight, weight])
    value, by_mean, by_variance = MEMeL(n_moments).value_and_grad(burdened)
    assert_allclose(value, MEMeL(n_moments)(bare), atol=1e-8)
    assert by_mean[2] == by_variance[2] == 0.0


@pytest.mark.parametrize(
    ("backend", "mixture"),
    [
        (MEMeL(10), heavy_tailed(batch=20_000, m=3)),
        (MEMeL(100), heavy_tailed(batch=40, m=400)),
        (MC(20_000), heavy_tailed(batch=2, m=1000)),
        (VUB(), heavy_tailed(batch=2, m=3000)),
        (Quad(), heavy_tailed(batch=200, m=400)),
    ],
    ids=lambda x: str(x) if not isinstance(x, Mixture) else "",
)
def test_memory_is_bounded(backend, mixture: Mixture) -> None:
    tracemalloc.start()
    backend.value_and_grad(mixture)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_memory_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = heavy_tailed(batch=90, m=11)
    whole = MEMeL().value_and_grad(mixture)
    monkeypatch.setattr("fitbo.entropy.meme.BLOCK", 121 * 40)
    for a, b in zip(whole, MEMeL().value_and_grad(mixture), strict=True):
        assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_names_backends_and_functions_are_equally_welcome() -> None:
    mixture = gentle(batch=3)
    assert isinstance(backend("memel"), MEMeL)
    mine = MEMeL(7)
    assert backend(mine) is mine
    by_hand = backend(lambda mixture: 0.5 * np.log(2 * np.pi * np.e * mixture.variance))
    assert isinstance(by_hand, Custom)
    for a, b in zip(by_hand.value_and_grad(mixture), MM().value_and_grad(mixture), strict=True):
        assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: backend("mmel"), r"one of quad, .*, got 'mmel'; did you mean 'memel'\?"),
        (lambda: backend("zzz"), r"got 'zzz'$"),
        (lambda: backend(3), "a name or a callable of a mixture, got 3"),  # type: ignore[arg-type]
        (lambda: backend(MM), "a name or a callable of a mixture, got <class"),  # type: ignore[arg-type]
        (lambda: Quad(tol=0.0), r"tol must lie between 1e-13 and 0\.1 nats, got 0\.0"),
        (lambda: MC(0), "n_samples must be a whole number of at least 1, got 0"),
        (lambda: Huber(order=1), "order must be 0 or 2, got 1"),
        (lambda: Huber(split=0), "split must be a whole number of at least 1, got 0"),
        (lambda: Huber(split=17), "split must be at most 16, got 17"),
        (lambda: MEMeL(1), "n_moments must be a whole number of at least 2, got 1"),
        (lambda: MEMeL(10.5), r"n_moments must be a whole number of at least 2, got 10\.5"),  # type: ignore[arg-type]
        (lambda: MEMeL(windows=-1), "windows must be a whole number of at least 0, got -1"),
        (
            lambda: backend(lambda mixture: np.zeros(7))(gentle(batch=2)),
            r"must return shape \(2,\), got \(7,\)",
        ),
    ],
)
def test_bad_input_is_one_clear_error(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_registry_names() -> None:
    assert list(BACKENDS) == ["quad", "mm", "mc", "vub", "huber", "meme", "memel", "memec"]


@pytest.mark.parametrize("backend", [VUB(), Huber(), MC(1000)])
def test_a_far_component_may_come_first(backend) -> None:
    """Its rounding must not be that of all the others."""
    far, near = [1e17], [0.0, 3.0]
    first = Mixture(far + near, np.ones(3), [1e-3, 0.4995, 0.4995])
    last = Mixture(near + far, np.ones(3), [0.4995, 0.4995, 1e-3])
    tolerance = 0.3 if isinstance(backend, MC) else 1e-12  # strata fall otherwise
    assert_allclose(backend(first), backend(last), atol=tolerance)
    if backend.upper_bound:
        assert backend(first) > Quad()(Mixture(near, np.ones(2))) * 0.999


@pytest.mark.parametrize("backend", [VUB(), Huber(), MC()])
@pytest.mark.parametrize("absent", [(1e80, 1.0), (0.0, 1e-200), (0.0, 1e200)])
def test_a_component_without_weight_changes_nothing(backend, absent: tuple[float, float]) -> None:
    mean, variance = absent
    without = Mixture([0.0, 3.0], np.ones(2))
    value, *gradient = backend.value_and_grad(
        Mixture([mean, 0.0, 3.0], [variance, 1.0, 1.0], [0.0, 0.5, 0.5])
    )
    expected, *slopes = backend.value_and_grad(without)
    assert_allclose(value, expected, rtol=1e-12)
    for found, slope in zip(gradient, slopes, strict=True):
        assert_allclose(found, [0.0, *slope], atol=1e-12)
