"""Search over mixed and constrained spaces, against exhaustive search and known optima."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.search.candidates import clouds_about, distinct, exhausted, neighbours, untaken
from fitbo.search.climb import Counted, apart, ascend
from fitbo.search.mixed import first_points, maximise
from fitbo.space import DESIGNS, Categorical, Exhausted, Integer, Real, Space
from tests.search.functions import Function

NONE = np.empty((0, 1))


def mixed(constraints: tuple = ()) -> Space:
    kinds = {
        "a": Real(0, 1),
        "b": Real(0, 1),
        "n": Integer(0, 10),
        "k": Integer(1, 100, log=True),
        "c": Categorical(["x", "y", "z"]),
    }
    return Space(kinds, constraints)


def hill(space: Space, top: dict) -> Function:
    """A concave function of the cube but for interactions, with its gradient."""
    peak = space.to_cube(top)
    scale = np.linspace(1, 4, space.dim)
    return Function(lambda U: -(scale * (U - peak) ** 2).sum(1), lambda U: -2 * scale * (U - peak))


TOP = {"a": 0.321, "b": 0.777, "n": 7, "k": 13, "c": "y"}


@pytest.mark.parametrize("screened", [True, False])
def test_the_top_of_a_mixed_hill(screened: bool) -> None:
    space = mixed()
    value, rng = hill(space, TOP), np.random.default_rng(0)
    found = maximise(value, space, rng, screen=value if screened else None)
    point = space.from_cube(found.x)
    assert {k: point[k] for k in "nkc"} == {k: TOP[k] for k in "nkc"}
    assert_allclose([point["a"], point["b"]], [TOP["a"], TOP["b"]], atol=1e-4)
    assert np.array_equal(space.snap(found.x), found.x)


def test_a_finite_space_of_many_hills_against_exhaustive_search() -> None:
    space = Space({"n": Integer(0, 30), "m": Integer(0, 30), "c": Categorical(list("abcd"))})
    rng = np.random.default_rng(1)
    peaks, heights = space.points[rng.integers(0, len(space.points), 12)], rng.uniform(1, 2, 12)

    def value(U: np.ndarray) -> np.ndarray:
        assert np.array_equal(space.snap(U), U)
        bumps = np.exp(-20 * ((U[:, None] - peaks) ** 2).sum(2))
        return (heights * bumps).max(1)

    order = np.argsort(-value(space.points))
    taken = np.empty((0, space.dim))
    for rank in range(5):  # the best of all, then the best of what is left
        found = maximise(value, space, np.random.default_rng(rank), avoid=taken)
        assert_allclose(found.value, value(space.points[order[rank]][None])[0])
        assert found.evaluations < len(space.points) / 2
        taken = np.vstack([taken, found.x])


def test_a_small_finite_space_is_gone_through_in_order_of_worth() -> None:
    space = Space({"n": Integer(0, 3), "c": Categorical(["a", "b", "c"])}, ["n != 2"])
    assert len(space.points) == 9
    rng = np.random.default_rng(0)
    worth = {u.tobytes(): v for u, v in zip(space.points, rng.normal(size=9), strict=True)}

    def value(U: np.ndarray) -> np.ndarray:
        return np.array([worth[u.tobytes()] for u in U])

    taken, values = np.empty((0, space.dim)), []
    for _ in range(9):
        assert not exhausted(space, taken)
        found = maximise(value, space, rng, avoid=taken)
        taken, values = np.vstack([taken, found.x]), [*values, found.value]
    assert values == sorted(worth.values(), reverse=True)
    assert exhausted(space, taken)
    with pytest.raises(Exhausted, match="each of its 9 points has been asked for"):
        maximise(value, space, rng, avoid=taken)


@pytest.mark.parametrize(
    ("constraints", "optimum"),
    [
        (("a + b <= 0.8", "n <= 5"), {"n": 5, "k": 13, "c": "y"}),
        (("c != 'y'",), {"n": 7, "k": 13}),
        ((lambda p: p["a"] ** 2 + p["b"] ** 2 <= 0.25,), {"n": 7, "k": 13, "c": "y"}),
    ],
)
def test_constraints_hold_and_the_wall_is_reached(constraints: tuple, optimum: dict) -> None:
    space = mixed(constraints)
    value = hill(space, TOP)
    seen: list[np.ndarray] = []

    def watched(U: np.ndarray) -> np.ndarray:
        seen.append(U)
        return value(U)

    watched.value_and_grad = value.value_and_grad  # type: ignore[attr-defined]
    found = maximise(watched, space, np.random.default_rng(0))
    assert space.feasible(np.concatenate(seen)).all()
    point = space.from_cube(found.x)
    space.check(point)
    assert {k: point[k] for k in optimum} == optimum
    # Against a dense scan of the two real coordinates with the others at their best.
    grid = np.repeat(found.x[None], 101**2, axis=0)
    grid[:, :2] = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), -1).reshape(-1, 2)
    grid = grid[space.feasible(grid)]
    assert found.value > value(grid).max() - 0.01


EMPTY = np.empty((0, 2))


def test_a_sliver_is_found_and_so_is_an_equality() -> None:
    sliver = Space({"a": Real(0, 1), "b": Real(0, 1)}, ["abs(a - 0.4) + abs(b - 0.6) < 0.01"])

    value = Function(lambda U: U[:, 0], lambda U: np.eye(1, 2) * np.ones((len(U), 1)))
    found = maximise(value, sliver, np.random.default_rng(0))
    sliver.check(sliver.from_cube(found.x))
    assert found.x[0] > 0.4
    firsts = np.empty((0, 2))
    for i in range(8):
        point = first_points(sliver, "sobol", 8, i, firsts, [0, 0])
        sliver.check(sliver.from_cube(point))
        firsts = np.vstack([firsts, point])
    assert len(distinct(firsts)) == 8
    equality = Space({"a": Real(0, 1), "b": Real(0, 1)}, ["a + b == 1"])
    equality.check(equality.from_cube(maximise(value, equality, np.random.default_rng(0)).x))
    equality.check(equality.from_cube(first_points(equality, "sobol", 4, 0, EMPTY, [0, 0])))
    nothing = Space({"a": Real(0, 1), "b": Real(0, 1)}, ["a > 0.9", "a < 0.1"])
    with pytest.raises(ValueError, match="no point that satisfies the constraints was found"):
        maximise(value, nothing, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no point that satisfies the constraints was found"):
        first_points(nothing, "sobol", 4, 0, EMPTY, [0, 0])
    # One feasible point that is known is enough to go on from, if there is anything about it.
    crack = Space({"a": Real(0, 1), "b": Real(0, 1)}, ["abs(a - 0.4) + abs(b - 0.6) < 0.002"])
    known = np.array([[0.4, 0.6]])
    found = maximise(value, crack, np.random.default_rng(1), incumbents=known, avoid=known)
    crack.check(crack.from_cube(found.x))
    nothing = Space({"n": Integer(1, 5)}, ["n > 5"])
    with pytest.raises(ValueError, match="none of the 5 points of the space satisfies"):
        first_points(nothing, "sobol", 4, 0, np.empty((0, 1)), [0, 0])


def test_a_full_cube_takes_one_scan_and_one_ascent() -> None:
    space = Space([(0, 1)] * 3)
    value = hill(space, [0.2, 0.5, 0.9])  # type: ignore[arg-type]
    here = maximise(value, space, np.random.default_rng(5))
    scan = DESIGNS["sobol"](512, 3, np.random.default_rng(5))
    counted = Counted(value)
    starts = apart(scan, counted.value(scan), 8)
    tops, heights = ascend(counted, scan[starts], 100, 1e-6)
    assert np.array_equal(here.x, tops[np.argmax(heights)])
    assert here.evaluations == counted.evaluations


def test_where_no_value_is_finite_any_untaken_point_does() -> None:
    space = mixed()
    taken = space.place(np.random.default_rng(1).random((5, 5)))
    nothing = Function(lambda U: np.full(len(U), np.nan))
    found = maximise(nothing, space, np.random.default_rng(0), avoid=taken)
    assert found.value == -np.inf
    assert untaken(space, found.x[None], taken, 1e-6)[0]


def test_what_is_allowed_gives_way_only_when_nothing_is() -> None:
    space = Space([(0, 1)] * 2)
    value = hill(space, [0.8, 0.5])  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    found = maximise(value, space, rng, allowed=lambda U: U[:, 0] < 0.5)
    assert 0.45 < found.x[0] < 0.5
    assert_allclose(found.x[1], 0.5, atol=0.02)
    anyway = maximise(value, space, rng, allowed=lambda U: np.zeros(len(U), bool))
    assert_allclose(anyway.x, [0.8, 0.5], atol=1e-4)


def test_what_is_allowed_gives_way_where_all_of_it_is_taken() -> None:
    space = Space([(0, 1)] * 2)
    found = maximise(
        hill(space, [0.8, 0.5]),  # type: ignore[arg-type]
        space,
        np.random.default_rng(0),
        allowed=lambda U: U.sum(1) > 2 - 1e-9,
        incumbents=[[0.99, 0.99]],
        avoid=[[1.0, 1.0]],
    )
    assert (found.x < 1).any()


@pytest.mark.parametrize("design", DESIGNS)
def test_first_points_are_feasible_distinct_and_stable(design: str) -> None:
    space = mixed(("a + b <= 1", "n * k <= 300", "c != 'z'"))
    points = np.empty((0, space.dim))
    for i in range(12):
        points = np.vstack([points, first_points(space, design, 12, i, points, [4, 0])])
    assert space.feasible(points).all()
    assert np.array_equal(space.snap(points), points)
    assert len(distinct(points)) == 12
    again = [first_points(space, design, 12, i, points[:i], [4, 0]) for i in range(12)]
    assert np.array_equal(points, again)
    # A point that was given back is asked for again in its turn, and never one that is out.
    without = np.delete(points, 3, axis=0)
    last = first_points(space, design, 12, 11, without, [4, 0])
    assert untaken(space, last[None], without, 1e-9)[0]


def test_first_points_of_a_finite_space_go_through_all_of_it() -> None:
    space = Space({"n": Integer(1, 4), "c": Categorical([True, False])}, ["n > 1 or c == True"])
    points = np.empty((0, space.dim))
    for i in range(7):
        points = np.vstack([points, first_points(space, "sobol", 3, i, points, [0, 0])])
    assert len(distinct(points)) == 7 == len(space.points)
    with pytest.raises(Exhausted):
        first_points(space, "sobol", 3, 7, points, [0, 0])


def test_neighbours_differ_in_one_parameter_and_clouds_stay_inside() -> None:
    space = mixed()
    U = space.place(np.random.default_rng(0).random((4, 5)))
    near, owner = neighbours(space, U)
    assert np.array_equal(space.snap(near), near)
    for u, row in zip(near, owner, strict=True):
        moved = [c for c in space.columns_of if not np.array_equal(u[c], U[row][c])]
        assert len(moved) == 1
    choices = {space.from_cube(u)["c"] for u in near[owner == 0]}
    assert choices == {"x", "y", "z"}
    clouds = clouds_about(space, U, 300, np.random.default_rng(1))
    assert ((clouds >= 0) & (clouds <= 1)).all()
    snapped = space.snap(clouds)
    assert len({space.from_cube(u)["c"] for u in snapped}) == 3
    assert len({space.from_cube(u)["n"] for u in snapped}) > 5
