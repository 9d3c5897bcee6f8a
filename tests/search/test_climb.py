"""Maximisation on functions whose maxima are known, and against scipy's L-BFGS-B."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fitbo.search.climb import Counted, apart, ascend
from fitbo.search.mixed import Maximum, maximise
from fitbo.space import Space
from tests.search.functions import Function


def bowl(centre, condition=1e3):
    """A rotated concave quadratic."""
    d = len(centre)
    q, _ = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))
    A = q @ np.diag(np.geomspace(1, condition, d)) @ q.T
    return Function(
        lambda X: -0.5 * np.einsum("bi,ij,bj->b", X - centre, A, X - centre),
        lambda X: -(X - centre) @ A,
    )


def separable(centre):
    """A quadratic whose constrained maximum is the projection of its centre."""
    scale = np.geomspace(1, 100, len(centre))
    return Function(
        lambda X: -0.5 * (scale * (X - centre) ** 2).sum(1), lambda X: -scale * (X - centre)
    )


def branin():
    """Minus Branin on the unit square; three maxima of -0.397887."""

    def split(X):
        return 15 * X[:, 0] - 5, 15 * X[:, 1]

    b, c, t = 5.1 / (4 * np.pi**2), 5 / np.pi, 1 / (8 * np.pi)

    def f(X):
        u, v = split(X)
        return -((v - b * u**2 + c * u - 6) ** 2) - 10 * (1 - t) * np.cos(u) - 10

    def g(X):
        u, v = split(X)
        r = v - b * u**2 + c * u - 6
        du = -2 * r * (c - 2 * b * u) + 10 * (1 - t) * np.sin(u)
        return 15 * np.stack([du, -2 * r], 1)

    return Function(f, g)


def rastrigin(centre):
    """Ten waves a side: about 10^d local maxima, the greatest, 0, at the centre."""
    w = 20 * np.pi
    return Function(
        lambda X: -((X - centre) ** 2 * 20 + 0.1 * (1 - np.cos(w * (X - centre)))).sum(1),
        lambda X: -(40 * (X - centre) + 0.1 * w * np.sin(w * (X - centre))),
    )


def narrow(centre, width=0.02):
    """A spike of which no scan of the whole cube would learn, on a gentle slope away from it."""
    d = len(centre)

    def bump(X):
        return np.exp(-0.5 * ((X - centre) ** 2).sum(1) / width**2)

    return Function(
        lambda X: bump(X) + 1e-3 * X.sum(1),
        lambda X: -bump(X)[:, None] * (X - centre) / width**2 + 1e-3 * np.ones(d),
    )


def cube(dim):
    return Space([(0, 1)] * dim)


def run(function, dim, seed=0, **options):
    return maximise(function, cube(dim), np.random.default_rng(seed), **options)


# ------------------------------------------------------------------------------ known maxima


@pytest.mark.parametrize("dim", [1, 2, 6, 15])
def test_interior_maximum_of_an_ill_conditioned_bowl(dim):
    centre = np.random.default_rng(dim).uniform(0.2, 0.8, dim)
    result = run(bowl(centre), dim)
    assert isinstance(result, Maximum)
    assert result.x.shape == (dim,)
    np.testing.assert_allclose(result.x, centre, atol=1e-4)
    assert result.value == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(
    "centre",
    [
        [0.3, 0.6, 0.5],  # interior
        [-0.4, 0.6, 0.5],  # a face
        [0.2, 1.7, -0.1],  # an edge
        [2.0, -1.0, 1.5],  # a corner
    ],
)
def test_maximum_inside_on_a_face_on_an_edge_at_a_corner(centre):
    centre = np.array(centre)
    result = run(separable(centre), 3)
    np.testing.assert_allclose(result.x, np.clip(centre, 0, 1), atol=1e-5)


def test_a_tilted_bowl_with_its_maximum_on_a_face_agrees_with_scipy():
    """The constrained maximum of a rotated bowl is not the projection of its centre."""
    centre = np.array([1.3, 0.4, -0.2, 0.6])
    function = bowl(centre, condition=30)
    reference = minimize(
        lambda x: -function.f(x[None])[0],
        np.full(4, 0.5),
        jac=lambda x: -function.g(x[None])[0],
        bounds=[(0, 1)] * 4,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    result = run(function, 4)
    np.testing.assert_allclose(result.x, reference.x, atol=1e-5)
    assert result.value == pytest.approx(-reference.fun, abs=1e-9)
    assert abs(result.x - np.clip(centre, 0, 1)).max() > 1e-2


def test_every_climb_on_random_tilted_bowls_ends_where_scipy_ends():
    """Dimensions 1 to 15, condition numbers to 1e4, centres in and out of the cube."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 16))
        function = bowl(rng.uniform(-0.5, 1.5, d), condition=10 ** rng.uniform(0, 4))
        X = rng.random((8, d))
        before = function.f(X)
        counted = Counted(function)
        _, values = ascend(counted, X, 200, 1e-6)
        reference = minimize(
            lambda x, function=function: -function.f(x[None])[0],
            np.full(d, 0.5),
            jac=lambda x, function=function: -function.g(x[None])[0],
            bounds=[(0, 1)] * d,
            method="L-BFGS-B",
            options={"ftol": 1e-16, "gtol": 1e-12},
        )
        assert (-reference.fun - values < 1e-7 * (-reference.fun - before)).all()


def test_branin():
    result = run(branin(), 2)
    assert result.value == pytest.approx(-0.39788735772973816, abs=1e-7)
    maxima = np.array([[5 - np.pi, 12.275], [5 + np.pi, 2.275], [5 + 3 * np.pi, 2.475]]) / 15
    assert abs(maxima - result.x).max(1).min() < 1e-4


def test_the_greatest_of_many_local_maxima():
    for seed in range(5):
        centre = np.random.default_rng(seed).uniform(0.1, 0.9, 2)
        result = run(rastrigin(centre), 2, seed)
        assert result.value > -1e-9


def test_clouds_find_a_spike_beside_an_incumbent():
    function = narrow(np.full(5, 0.3))
    near = np.full((1, 5), 0.33)
    found = run(function, 5, incumbents=near)
    np.testing.assert_allclose(found.x, 0.3, atol=1e-3)
    assert run(function, 5).value < 0.1 < found.value


def test_as_good_as_scipy_from_the_same_scan_in_far_fewer_calls():
    rng = np.random.default_rng(3)
    centres, heights = rng.random((30, 4)), rng.uniform(-1, 1, 30)

    def bumps(X):
        return heights * np.exp(-0.5 * ((X[:, None] - centres) ** 2).sum(2) / 0.04)

    function = Function(
        lambda X: bumps(X).sum(1),
        lambda X: -np.einsum("bk,bkd->bd", bumps(X), X[:, None] - centres) / 0.04,
    )
    ours = run(function, 4)
    climbing_calls = len(function.seen) - 1
    calls = []

    def negative(x):
        calls.append(1)
        return -function.f(x[None])[0], -function.g(x[None])[0]

    scan = function.seen[0]
    starts = scan[np.argsort(-function.f(scan))[:8]]
    theirs = max(
        -minimize(negative, x, jac=True, bounds=[(0, 1)] * 4, method="L-BFGS-B").fun for x in starts
    )
    assert ours.value >= theirs - 1e-8
    assert 2 * climbing_calls < len(calls)


# ------------------------------------------------------------------------------ the bounds


def test_never_evaluates_outside_the_cube():
    function = separable(np.array([3.0, -2.0, 0.5]))
    result = run(function, 3, incumbents=[[1.0, 0.0, 0.5]])
    assert function.points.min() >= 0
    assert function.points.max() <= 1
    assert result.evaluations == len(function.points)


# ------------------------------------------------------------------------------ what to avoid


def test_a_point_to_avoid_is_replaced_by_the_best_distinct_one():
    centre = np.array([0.3, 1.4])
    function = separable(centre)
    avoid = np.array([[0.3, 1.0]])
    result = run(function, 2, avoid=avoid, incumbents=avoid, tolerance=1e-3)
    distance = abs(result.x - avoid[0]).max()
    assert 1e-3 < distance < 0.05
    # The best of all points evaluated that are far enough.
    points = function.points
    allowed = abs(points - avoid[0]).max(1) > 1e-3
    assert result.value >= function.f(points[allowed]).max() - 1e-4


def test_avoiding_a_whole_history_of_maxima():
    function = branin()
    history = np.empty((0, 2))
    for seed in range(8):
        x = run(function, 2, seed, avoid=history, incumbents=history[-1:], tolerance=1e-4).x
        if len(history):
            assert abs(history - x).max(1).min() > 1e-4
        history = np.vstack([history, x])


def test_when_every_point_found_is_avoided_another_is_drawn():
    grid = np.linspace(0, 1, 26)
    avoid = np.stack(np.meshgrid(grid, grid[:21]), -1).reshape(-1, 2)  # all but a strip
    function = Function(lambda X: np.where(X[:, 1] > 0.9, -np.inf, 0.0), lambda X: 0 * X)
    result = run(function, 2, avoid=avoid, tolerance=0.03, n_candidates=2, n_starts=0)
    assert abs(avoid - result.x).max(1).min() > 0.03
    full = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    with pytest.raises(ValueError, match="the 676 points to avoid fill the cube"):
        run(function, 2, avoid=full, tolerance=0.03)


# ------------------------------------------------------------------------------ odd functions


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_never_returned(poison):
    inner = separable(np.array([0.7, 0.2]))

    def poisoned(X):
        return np.where(X[:, 0] > 0.5, poison, inner.f(X))

    function = Function(poisoned, inner.g)
    result = run(function, 2)
    assert result.value == inner.f(result.x[None])[0]
    assert 0.49 < result.x[0] <= 0.5


def test_a_gradient_that_is_not_finite_stops_a_climb_but_not_the_search():
    inner = separable(np.array([0.7, 0.2]))
    function = Function(inner.f, lambda X: np.where(X[:, :1] > 0.5, np.nan, inner.g(X)))
    result = run(function, 2)
    assert np.isfinite(result.value)
    assert abs(result.x - [0.7, 0.2]).max() < 0.1


def test_nan_everywhere_yields_an_admissible_point_of_no_value():
    function = Function(lambda X: np.full(len(X), np.nan), lambda X: X)
    avoid = run(function, 2).x[None]
    result = run(function, 2, avoid=avoid)
    assert result.value == -np.inf
    assert (result.x != avoid[0]).any()


def test_a_constant_function_yields_a_uniform_point():
    function = Function(lambda X: np.zeros(len(X)), np.zeros_like)
    x = np.array([run(function, 2, seed, incumbents=[[0.5, 0.5]]).x for seed in range(200)])
    np.testing.assert_allclose(x.mean(0), 0.5, atol=4 * np.sqrt(1 / 12 / 200))
    np.testing.assert_allclose(x.var(0), 1 / 12, atol=0.03)


@pytest.mark.parametrize("scale", [1e-60, 1e-12, 1e12, 1e60])
def test_the_scale_of_the_function_is_immaterial(scale):
    centre = np.array([0.37, 0.81, 1.2])
    inner = separable(centre)
    function = Function(lambda X: scale * inner.f(X), lambda X: scale * inner.g(X))
    np.testing.assert_allclose(run(function, 3).x, np.clip(centre, 0, 1), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200])
def test_gradients_beyond_arithmetic_end_the_climb_without_a_warning(scale):
    inner = separable(np.array([0.37, 0.81]))
    function = Function(lambda X: scale * inner.f(X), lambda X: scale * inner.g(X))
    result = run(function, 2)
    assert abs(result.x - [0.37, 0.81]).max() < 0.1


def test_a_climb_never_ends_below_its_start():
    function = rastrigin(np.array([0.31, 0.64, 0.5]))
    X = np.random.default_rng(1).random((64, 3))
    before = function.f(X)
    counted = Counted(function)
    reached, values = ascend(counted, X, 100, 1e-6)
    assert (values >= before).all()
    np.testing.assert_array_equal(values, function.f(reached))
    assert abs(function.g(reached)).max() < 1e-3


def test_a_first_step_off_a_spike_is_taken_back():
    """From beside its top, a step of 0.05 lands on the slope that leads away: it gains nothing."""
    function = narrow(np.full(3, 0.3), width=0.005)
    counted = Counted(function)
    reached, _ = ascend(counted, np.full((1, 3), 0.3005), 100, 1e-6)
    np.testing.assert_allclose(reached, 0.3, atol=1e-4)


def test_starts_are_the_best_and_apart():
    X = np.array([[0.5, 0.5], [0.51, 0.5], [0.9, 0.1], [0.1, 0.1], [0.52, 0.5]])
    values = np.array([5.0, 4.0, 3.0, -np.inf, 2.0])
    np.testing.assert_array_equal(apart(X, values, 2), [0, 2])
    # Once every basin has its start, the best of what is left, and never a point of no value.
    np.testing.assert_array_equal(apart(X, values, 3), [0, 2, 1])
    np.testing.assert_array_equal(apart(X, values, 9), [0, 2, 1, 4])


def test_a_kink_does_not_stop_the_search():
    function = Function(lambda X: -abs(X - 0.4).sum(1), lambda X: np.sign(0.4 - X))
    result = run(function, 3, incumbents=[[0.41, 0.38, 0.42]])
    assert result.value > -0.01


# ------------------------------------------------------------------------------ reproducibility


def test_reproducible_by_its_generator():
    first, again, other = (run(branin(), 2, seed, incumbents=[[0.2, 0.9]]) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.x, again.x)
    assert first.value == again.value
    assert first.evaluations == again.evaluations
    assert not np.array_equal(first.x, other.x)


def test_climbing_starts_do_not_influence_one_another():
    """Each row's path is its own: fewer starts end where the same starts ended among more."""
    function = branin()
    X = np.random.default_rng(0).random((6, 2))
    counted = Counted(function)
    kept = X.copy()
    together, _ = ascend(counted, X, 50, 1e-6)
    np.testing.assert_array_equal(X, kept)
    assert abs(together - X).max(1).min() > 1e-3
    alone = [ascend(counted, x[None], 50, 1e-6)[0][0] for x in X]
    np.testing.assert_allclose(together, alone, atol=1e-9)


# ------------------------------------------------------------------------------ validation


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_screened": 0}, "n_candidates and n_screened must be at least 1"),
        ({"n_candidates": 0}, "got 0, 48, 8 and 100"),
        ({"tolerance": 0.0}, "tolerance must lie between 0 and 0.5, got 0.0"),
        ({"incumbents": [0.1, 0.2]}, r"incumbents must have shape \(n, 2\), got shape \(2,\)"),
        ({"avoid": np.zeros((3, 4))}, r"avoid must have shape \(n, 2\), got shape \(3, 4\)"),
        ({"avoid": [[0.5, 1.5]]}, "avoid must lie in the unit cube, got 0.5 to 1.5"),
        ({"incumbents": [[0.5, np.nan]]}, "incumbents must lie in the unit cube"),
        (
            {"function": Function(lambda X: X)},
            r"a function must map shape \(512, 2\) to \(512,\), got \(512, 2\)",
        ),
        (
            {"function": Function(lambda X: X[:, 0], lambda X: X[:, 0])},
            r"value_and_grad must map shape \(8, 2\)",
        ),
    ],
)
def test_validation(options, message):
    arguments = {"function": branin(), "space": cube(2), "rng": np.random.default_rng(0)} | options
    with pytest.raises(ValueError, match=message):
        maximise(**arguments)


def test_a_screen_decides_who_is_seen_and_the_true_value_who_wins():
    value = Function(lambda X: -((X - 0.3) ** 2).sum(1), lambda X: -2 * (X - 0.3))

    def screen(X):
        return -((X - 0.33) ** 2).sum(1)

    rng = np.random.default_rng(0)
    found = maximise(value, cube(3), rng, screen=screen, n_screened=16, n_starts=0)
    assert [len(X) for X in value.seen] == [16]
    all_candidates = maximise(value, cube(3), np.random.default_rng(0), n_starts=0)
    np.testing.assert_array_equal(found.x, all_candidates.x)
    wrong = maximise(value, cube(3), np.random.default_rng(0), screen=lambda X: -screen(X))
    assert wrong.value > -1e-8  # the climb mends what the screen missed
