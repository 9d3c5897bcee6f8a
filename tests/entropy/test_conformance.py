"""What every backend must satisfy: values within the tolerance it declares, invariances exactly."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.entropy import BACKENDS, MC, Huber, MEMe, MEMeC, MEMeL, Quad
from fitbo.mixture import Mixture
from tests.mixtures import adversarial, far_clusters, gentle, heavy_tailed, narrow_and_wide

BACKENDS_UNDER_TEST = [
    *(backend() for backend in BACKENDS.values()),
    Quad(tol=1e-5),
    Huber(order=0),
    Huber(order=2, split=4),
    MEMe(6, windows=0),
    MEMeL(2),
    MEMeL(7),
    MEMeL(30),
    MEMeL(12, windows=0),
    MEMeC(40),
]
UPPER_BOUNDS = [backend for backend in BACKENDS_UNDER_TEST if backend.upper_bound]
TRUTH = Quad(tol=1e-10)
INVARIANCE = 1e-9  # rounding: however rough an entropy, it is as rough after a change of units

every_backend = pytest.mark.parametrize("backend", BACKENDS_UNDER_TEST, ids=str)
every_bound = pytest.mark.parametrize("backend", UPPER_BOUNDS, ids=str)


def transformed(mixture: Mixture, factor: float = 1.0, shift: float = 0.0) -> Mixture:
    return Mixture(factor * mixture.means + shift, factor**2 * mixture.variances, mixture.weights)


def scatter(backend, estimates: int = 1) -> float:
    """Three standard errors of so many independent estimates; 0 for a backend without draws."""
    return 3 * 0.7 * (estimates / backend.n_samples) ** 0.5 if isinstance(backend, MC) else 0.0


@every_backend
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (3.0, 0.2), (-1e8, 1e-2), (1e-9, 1e6)])
def test_a_single_gaussian(backend, mean: float, std: float) -> None:
    exact = 0.5 * np.log(2 * np.pi * np.e * std**2)
    error = scatter(backend) or backend.tolerance
    assert_allclose(backend(Mixture([mean], [std**2])), exact, rtol=0, atol=error)


@every_backend
def test_a_shift_changes_nothing(backend) -> None:
    mixture = gentle()
    moved = backend(transformed(mixture, shift=37.0))
    assert_allclose(moved, backend(mixture), rtol=0, atol=INVARIANCE)


@every_backend
@pytest.mark.parametrize("factor", [1e-8, 0.3, -1.0, -25.0, 1e8])
def test_scaling_adds_the_log_of_the_factor(backend, factor: float) -> None:
    mixture = gentle()
    scaled = backend(transformed(mixture, factor=factor))
    expected = backend(mixture) + np.log(abs(factor))
    # A reflected draw is not the draw of the reflected mixture.
    error = INVARIANCE if factor > 0 else max(INVARIANCE, scatter(backend, 2))
    assert_allclose(scaled, expected, rtol=0, atol=error)


@every_backend
def test_the_order_of_components_does_not_matter(backend) -> None:
    """Except for the component that each uniform of Monte Carlo chooses."""
    mixture = gentle()
    order = np.random.default_rng(0).permutation(mixture.n_components)
    shuffled = Mixture(
        mixture.means[:, order], mixture.variances[:, order], mixture.weights[:, order]
    )
    error = max(INVARIANCE, scatter(backend, 2))
    assert_allclose(backend(shuffled), backend(mixture), rtol=0, atol=error)


@every_backend
def test_splitting_a_weight_changes_nothing(backend) -> None:
    mixture = gentle()
    twice = Mixture(
        np.concatenate([mixture.means, mixture.means], axis=1),
        np.concatenate([mixture.variances, mixture.variances], axis=1),
        np.concatenate([0.3 * mixture.weights, 0.7 * mixture.weights], axis=1),
    )
    error = max(INVARIANCE, scatter(backend, 2))
    assert_allclose(backend(twice), backend(mixture), rtol=0, atol=error)


@every_backend
def test_coincident_components_are_one(backend) -> None:
    one = backend(Mixture([0.4], [0.09]))
    many = backend(Mixture(np.full(40, 0.4), np.full(40, 0.09)))
    assert_allclose(many, one, rtol=0, atol=INVARIANCE)


@every_backend
def test_a_batch_is_its_singles(backend) -> None:
    mixture = heavy_tailed(batch=6)
    together = backend.value_and_grad(mixture)
    for i in range(6):
        alone = backend.value_and_grad(
            Mixture(mixture.means[i], mixture.variances[i], mixture.weights[i])
        )
        assert alone[0].shape == ()
        # A solve may stop one step earlier or later; no digit that matters changes.
        assert_allclose(together[0][i], alone[0], rtol=0, atol=min(1e-6, backend.tolerance))
        for whole, single in zip(together[1:], alone[1:], strict=True):
            assert_allclose(whole[i], single, rtol=1e-3, atol=1e-4 * abs(single).max())


@every_backend
def test_batch_shapes_are_kept(backend) -> None:
    mixture = gentle(batch=6)
    shaped = Mixture(
        *(getattr(mixture, n).reshape(2, 3, 6) for n in ("means", "variances", "weights"))
    )
    value, by_mean, by_variance = backend.value_and_grad(shaped)
    assert value.shape == (2, 3)
    assert by_mean.shape == by_variance.shape == (2, 3, 6)
    assert_allclose(backend(shaped), value, rtol=0, atol=1e-12)


@every_backend
@pytest.mark.parametrize("make", [gentle, heavy_tailed], ids=lambda f: f.__name__)
def test_gradients_against_central_differences(backend, make) -> None:
    mixture = make(seed=4, batch=3, m=6)
    _, by_mean, by_variance = backend.value_and_grad(mixture)
    # Quadrature and Newton stop at a tolerance, which a smaller step would magnify.
    h = 1e-3 if isinstance(backend, MEMe | Quad) else 1e-5
    scale = abs(by_mean * mixture.deviations).max(1)
    for j in range(6):
        step = h * mixture.deviations * np.eye(6)[j]
        ends = [
            backend(Mixture(mixture.means + t * step, mixture.variances, mixture.weights))
            for t in (-2, -1, 1, 2)
        ]
        slope = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * h)
        error = by_mean[:, j] * mixture.deviations[:, j] - slope
        assert (abs(error) < 1e-4 * scale + 1e-6).all()
        grow = 1 + h * np.eye(6)[j]
        ends = [
            backend(Mixture(mixture.means, mixture.variances * grow**t, mixture.weights))
            for t in (-2, -1, 1, 2)
        ]
        slope = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * np.log(1 + h))
        error = by_variance[:, j] * mixture.variances[:, j] - slope
        assert (abs(error) < 1e-4 * scale + 2e-6).all()


@every_backend
def test_an_empty_batch(backend) -> None:
    value, by_mean, by_variance = backend.value_and_grad(Mixture(np.ones((0, 3)), np.ones((0, 3))))
    assert value.shape == (0,)
    assert by_mean.shape == by_variance.shape == (0, 3)


@every_backend
@pytest.mark.parametrize("m", [1, 2, 1000])
def test_any_number_of_components(backend, m: int) -> None:
    value, by_mean, by_variance = backend.value_and_grad(heavy_tailed(batch=2, m=m))
    assert np.isfinite(value).all()
    assert np.isfinite(by_mean).all()
    assert np.isfinite(by_variance).all()


@every_backend
def test_gradients_agree_with_the_invariances(backend) -> None:
    """sum_j dH/dm_j = 0 by shift; sum_j m_j dH/dm_j + 2 v_j dH/dv_j = 1 by scale."""
    mixture = gentle(batch=4)
    _, by_mean, by_variance = backend.value_and_grad(mixture)
    assert_allclose(by_mean.sum(1), 0, atol=max(1e-9, 10 * getattr(backend, "tol", 0.0)))
    scaled = (mixture.means * by_mean + 2 * mixture.variances * by_variance).sum(1)
    assert_allclose(scaled, 1, atol=max(1e-8, 10 * getattr(backend, "tol", 0.0)))


@every_bound
@pytest.mark.parametrize(
    "mixture",
    [
        gentle(batch=20),
        heavy_tailed(batch=20),
        narrow_and_wide(),
        far_clusters(),
        far_clusters(1e5),
    ],
    ids=["gentle", "heavy-tailed", "narrow-and-wide", "far clusters", "very far clusters"],
)
def test_upper_bounds_lie_above_the_truth(backend, mixture: Mixture) -> None:
    assert (backend(mixture) >= TRUTH(mixture) - backend.tolerance).all()


@pytest.mark.parametrize("kind", [MEMeL, MEMeC])
def test_more_moments_never_raise_the_bound_and_lead_to_the_truth(kind) -> None:
    mixture = Mixture(*(np.concatenate(x) for x in zip(*_three_kinds(), strict=True)))
    values = np.array([kind(m)(mixture) for m in (*range(2, 21, 2), 30, 50, 100, 200)])
    assert (np.diff(values, axis=0) < 1e-6).all()
    gap = values - TRUTH(mixture)
    assert (gap > -1e-6).all()
    assert (gap[-1] < [1e-5, 1e-3, 1e-2]).all()
    assert (gap[-1] < 0.02 * gap[0]).all()


def _three_kinds() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Gentle, heavy-tailed, and narrow-and-wide, six components each."""
    kinds = [gentle(batch=1), heavy_tailed(batch=1, m=6)]
    rows = [(k.means, k.variances, k.weights) for k in kinds]
    narrow = narrow_and_wide()
    repeat = [np.repeat(getattr(narrow, n), 3)[None] for n in ("means", "variances", "weights")]
    return [*rows, (repeat[0], repeat[1], repeat[2] / 3)]


@every_backend
def test_adversarial_mixtures(backend) -> None:
    """Nothing but finite numbers, no warning; the long run of 10,000 is marked slow."""
    _survive(backend, batches=4 if isinstance(backend, MEMe) else 12)


@pytest.mark.slow
@every_backend
def test_ten_thousand_adversarial_mixtures(backend) -> None:
    _survive(backend, batches=157)


def _survive(backend, batches: int) -> None:
    rng = np.random.default_rng(11)
    for _ in range(batches):
        mixture = adversarial(rng, 64)  # enough for the batched linear algebra
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, by_mean, by_variance = backend.value_and_grad(mixture)
        assert np.isfinite(value).all()
        assert np.isfinite(by_mean).all()
        assert np.isfinite(by_variance).all()
        if backend.upper_bound:
            felt = mixture.weights > 0
            far = abs(mixture.means - mixture.means[:, :1]).max(1) + mixture.deviations.max(1)
            smallest = np.where(felt, mixture.deviations, np.inf).min(1)
            # A mean moved by its own rounding error moves H by about this much.
            rounding = 1e-14 * (far + abs(mixture.means).max(1)) / smallest
            assert (value >= TRUTH(mixture) - backend.tolerance - rounding).all()
