"""Frames and regions: coordinates there and back, gradients, sizes that follow from the values."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.inference import region as R
from fitbo.inference.local import curvature, local_fit, nearest
from fitbo.inference.settings import Settings

D = 3


class Quadratic:
    """|A (u - c)|^2 and its gradient."""

    A, c = np.array([[1.0, 2, 0], [0, 1, -1], [0.5, 0, 3]]), np.array([0.4, 0.6, 0.3])

    def __call__(self, U: np.ndarray) -> np.ndarray:
        return np.square((U - self.c) @ self.A.T).sum(1)

    def value_and_grad(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self(U), 2 * (U - self.c) @ self.A.T @ self.A


def turned() -> tuple[R.Frame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((9, D))
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]
    return R.Frame.straight(X[0], X).turned(Q, X), X


def test_a_frame_leads_there_and_back_and_holds_its_points() -> None:
    frame, X = turned()
    V = frame.inward(X)
    assert_allclose(abs(V).max(0), 1.0)
    assert_allclose(V[0], 0.0, atol=1e-15)
    assert_allclose(frame.outward(V), X, atol=1e-14)


@pytest.mark.parametrize("kind", ["framed", "within"])
def test_gradients_pass_through(kind: str) -> None:
    frame, _ = turned()
    region = R.region_of(frame, np.array([0.3, 1.0, 2.0]), 0.2)
    function = Quadratic()
    wrapped = R.Framed(function, frame) if kind == "framed" else R.Within(function, region)
    W, h = np.random.default_rng(1).random((20, D)), 1e-6
    value, slope = wrapped.value_and_grad(W)
    assert_allclose(value, wrapped(W))
    for i in range(D):
        step = h * np.eye(D)[i]
        difference = (wrapped(W + step) - wrapped(W - step)) / (2 * h)
        assert_allclose(slope[:, i], difference, rtol=1e-5, atol=1e-5)


def test_sides_follow_the_lengthscales_and_their_mean_is_the_size() -> None:
    frame = R.Frame(np.full(2, 0.5), np.diag([4.0, 0.5]), np.diag([0.25, 2.0]))
    half = R.region_of(frame, np.array([0.4, 0.2]), 0.01).half
    in_cube = half * np.array([0.25, 2.0])
    assert_allclose(np.sqrt(in_cube.prod()), 0.01)
    assert_allclose(in_cube[0] / in_cube[1], 0.4 * 0.25 / (0.2 * 2.0))


def test_points_of_the_region_are_known_to_it() -> None:
    frame, _ = turned()
    region = R.region_of(frame, np.ones(D), 0.05)
    W = np.random.default_rng(2).random((50, D))
    U = region._free(W)
    assert_allclose(region.inward(U), W, atol=1e-12)
    assert not len(region.inward(frame.outward(3 * region.half[None])))
    assert ((region.outward(W) >= 0) & (region.outward(W) <= 1)).all()


@pytest.mark.parametrize(("size", "left_alone"), [(0.2, 0.2), (1e-3, R.CLOSE)])
def test_beyond_a_region_is_what_a_grown_one_leaves_out(size: float, left_alone: float) -> None:
    frame, _ = turned()
    lengthscales = np.array([0.3, 1.0, 2.0])
    region, grown = (R.region_of(frame, lengthscales, each) for each in (size, left_alone))
    W = np.random.default_rng(3).uniform(-0.5, 1.5, (400, D))
    inside = ((W > 0) & (W < 1)).all(1)
    assert 10 < inside.sum() < 100
    assert (region.beyond(grown._free(W)) == ~inside).all()


def test_the_size_doubles_with_success_and_shrinks_without() -> None:
    def size(*more: float, at: float = 0.5) -> float:
        """Of four values of a design and more, of which every second one is local."""
        y = np.array([5.0, 4.0, 6.0, 9.0, *more])
        X = np.full((len(y), 2), 0.5)
        X[4:] = at
        return R.radius(X, y, 4, lambda i: i % 2 == 1)

    assert size() == R.FIRST
    # the fifth is global, whatever it finds nearby; the sixth is local
    assert size(1.0) == R.FIRST
    assert size(7.0, 3.0) == pytest.approx(R.FIRST * R.GROWTH)
    assert size(7.0, 4.5) == pytest.approx(R.FIRST * R.SHRINK)
    assert size(7.0, 4.0 - 1e-9) == pytest.approx(R.FIRST * R.SHRINK)
    assert size(*np.full(200, 9.0)) == R.LEAST
    assert size(*(4.0 - np.arange(1, 60))) == R.MOST
    # a better value elsewhere begins anew, one nearby does not
    assert size(*np.full(9, 9.0), 3.0, at=0.9) == R.FIRST
    assert size(*np.full(9, 9.0), 3.0) < R.FIRST


def test_a_step_far_beyond_the_region_was_not_one_in_it() -> None:
    y = np.array([5.0, 4.0, *np.full(41, 9.0)])
    near, far = np.full((len(y), 2), 0.5), np.full((len(y), 2), 0.5)
    far[-20:] = 0.95
    shrunk, kept = (R.radius(X, y, 2, lambda i: True) for X in (near, far))
    assert kept == pytest.approx(R.FIRST * R.SHRINK**21)
    assert shrunk == R.LEAST < kept < 0.45 / R.ELONGATED


def test_the_curvature_is_that_of_a_quadratic() -> None:
    rng = np.random.default_rng(3)
    V = rng.uniform(-1, 1, (25, D))
    A = rng.standard_normal((D, D))
    H = A @ A.T
    z = 2.0 + V @ rng.standard_normal(D) + 0.5 * np.einsum("ni,ij,nj->n", V, H, V)
    assert_allclose(curvature(V, z), H, rtol=1e-2, atol=1e-2)


def test_the_nearest_are_by_the_metric() -> None:
    X = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [0.5, 0.5]])
    assert list(nearest(X, X[0], np.eye(2), 2)) == [0, 1]
    assert list(nearest(X, X[0], np.diag([10.0, 1.0]), 2)) == [0, 2]


def test_a_long_turned_valley_gets_a_long_turned_region() -> None:
    """Condition 1e4 along the diagonal: the longest side is that of the valley."""
    rng = np.random.default_rng(4)
    X = rng.random((20, 2))
    along, across = (X - 0.5) @ [1, 1] / np.sqrt(2), (X - 0.5) @ [1, -1] / np.sqrt(2)
    y = along**2 + 1e4 * across**2
    model, frame = local_fit(X, y, Settings(deterministic=True), np.random.default_rng(5))
    lengthscales = np.exp(np.log(model.surrogate.theta.lengthscales).mean(0))
    region = R.region_of(frame, lengthscales, 0.1)
    axes = frame.inverse * region.half  # columns: the sides, in the cube
    sides = np.linalg.norm(axes, axis=0)
    longest = axes[:, int(np.argmax(sides))] / sides.max()
    assert sides.max() / sides.min() > 10
    assert abs(longest @ [1, 1]) / np.sqrt(2) > 0.99
