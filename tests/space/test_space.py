"""The box and its cube."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.space import DESIGNS, Categorical, Integer, Real, Space


def test_the_cube_maps_to_the_box_and_back() -> None:
    space = Space([(-5, 10), (0, 1e-3)])
    u = np.random.default_rng(0).random((50, 2))
    x = space.from_cube(u)
    assert ((x >= space.low) & (x <= space.high)).all()
    assert_allclose(space.to_cube(x), u, atol=1e-12)
    assert np.array_equal(space.from_cube(np.array([[0, 0], [1, 1]])), [[-5, 0], [10, 1e-3]])


def test_a_logarithmic_range_wider_than_numbers_are() -> None:
    rate = Real(1e-300, 1e10, log=True)
    codes = [rate.encode(x)[0] for x in (1e-300, 1e-145, 1.0, 1e10)]
    np.testing.assert_allclose(codes, [0, 0.5, 300 / 310, 1], rtol=1e-12)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([], r"bounds must be pairs \(low, high\), one per dimension, got \[\]"),
        ([(0, 1, 2)], r"bounds must be pairs \(low, high\)"),
        ([("a", 1)], "bounds must be pairs of numbers"),
        ([(0, np.inf)], "x0: high must be finite, got inf"),
        ([(0, 1), (2, 2)], "x1: low must be below high, got low=2 and high=2"),
    ],
)
def test_bad_bounds(bounds: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space(bounds)


def test_points_outside_are_refused() -> None:
    space = Space([(0, 1), (-1, 1)])
    with pytest.raises(ValueError, match=r"x\[1\] must lie in \(-1.0, 1.0\), got 1.5"):
        space.to_cube([0.5, 1.5])
    with pytest.raises(ValueError, match=r"x must have shape \(\.\.\., 2\), got \(3,\)"):
        space.to_cube([0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="x must be finite"):
        space.to_cube([0.1, np.nan])


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("n", [1, 5, 12])
def test_designs_fill_the_cube_and_repeat_by_seed(name: str, n: int) -> None:
    first, again = (DESIGNS[name](n, 3, np.random.default_rng(7)) for _ in range(2))
    assert first.shape == (n, 3)
    assert ((first >= 0) & (first <= 1)).all()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, DESIGNS[name](n, 3, np.random.default_rng(8)))


def test_sobol_and_latin_are_spread() -> None:
    for name in ("sobol", "latin"):
        points = DESIGNS[name](16, 2, np.random.default_rng(0))
        for axis in points.T:
            assert len(set((axis * 16).astype(int))) == 16


def everything(constraints: tuple = ()) -> Space:
    kinds = {
        "a": Real(-2, 3),
        "rate": Real(1e-6, 10, log=True),
        "n": Integer(-3, 9),
        "step": Integer(1, 12, step=4),
        "k": Integer(1, 1000, log=True),
        "c": Categorical(["x", "y", None, 3]),
        "on": Categorical([True, False]),
        "one": Categorical(["only"]),
    }
    return Space(kinds, constraints)


def test_what_is_evaluated_is_what_is_modelled() -> None:
    space = everything()
    assert space.named
    assert space.dim == 5 + 4 + 1 + 1
    rng = np.random.default_rng(0)
    U = space.snap(rng.random((400, space.dim)))
    assert np.array_equal(space.snap(U), U)
    points = space.from_cube(U)
    back = space.to_cube(points)
    assert_allclose(back, U, atol=1e-13)
    discrete = ~space.continuous
    assert np.array_equal(back[:, discrete], U[:, discrete])
    for point, u in zip(points[:50], U, strict=False):
        assert [type(v) for v in list(point.values())[:5]] == [float, float, int, int, int]
        assert point["step"] in (1, 5, 9)
        assert space.contains(point)
        assert_allclose(space.to_cube(list(point.values())), space.to_cube(point))
        assert space.from_cube(u) == point


def test_values_are_placed_with_equal_chances_and_ends_are_reached() -> None:
    space = everything()
    V = np.stack([np.linspace(0, 1 - 1e-9, 1200)] * len(space.names), 1)
    columns = space.columns(space.place(V))
    for name, count in (("n", 13), ("step", 3), ("c", 4), ("on", 2)):
        _, counts = np.unique(columns[name].astype(str), return_counts=True)
        assert len(counts) == count
        assert counts.max() - counts.min() <= 1
    assert columns["k"].min() == 1
    assert columns["k"].max() == 1000
    decades = np.histogram(np.log10(columns["rate"]), bins=7)[0]
    assert decades.max() - decades.min() <= 1
    ends = space.from_cube(np.array([np.zeros(space.dim), np.ones(space.dim)]))
    assert (ends[0]["a"], ends[1]["a"]) == (-2.0, 3.0)
    assert (ends[0]["rate"], ends[1]["rate"]) == (1e-6, 10.0)
    assert (ends[0]["k"], ends[1]["k"]) == (1, 1000)
    assert (ends[0]["step"], ends[1]["step"]) == (1, 9)


def test_two_choices_are_as_far_apart_as_the_ends_of_a_real() -> None:
    for choices in (["a", "b"], ["a", "b", "c"], list(range(9))):
        space = Space({"c": Categorical(choices)})
        codes = space.to_cube([{"c": c} for c in choices])
        gaps = np.linalg.norm(codes[:, None] - codes, axis=2)
        assert_allclose(gaps[~np.eye(len(choices), dtype=bool)], 1.0)


def test_sizes_and_listing() -> None:
    assert everything().size == np.inf
    space = Space(
        {"n": Integer(1, 3), "c": Categorical(["ab", "z"]), "k": Integer(1, 9, log=True)},
        ["n + k <= 8", "c != 'z' or n == 1"],
    )
    assert space.size == 3 * 2 * 9
    points = space.from_cube(space.points)
    truth = [
        {"n": n, "c": c, "k": k}
        for n in (1, 2, 3)
        for c in ("ab", "z")
        for k in range(1, 10)
        if n + k <= 8 and (c != "z" or n == 1)
    ]
    assert points == truth
    assert Space({"n": Integer(0, 10**9), "m": Integer(0, 10**9)}).size == (10**9 + 1) ** 2
    with pytest.raises(ValueError, match="only 65536 points can be listed, got 1000000001"):
        _ = Space({"n": Integer(0, 10**9)}).points


def test_constraints_of_names_and_of_arrays() -> None:
    space = everything(("a + n <= 5", lambda p: p["c"] != "y"))
    U = space.place(np.random.default_rng(0).random((300, len(space.names))))
    truth = [p["a"] + p["n"] <= 5 and p["c"] != "y" for p in space.from_cube(U)]
    assert space.feasible(U).tolist() == truth
    assert 0 < sum(truth) < 300
    assert [space.contains(p) for p in space.from_cube(U)] == truth
    box = Space([(0, 1)] * 2, ["x0 + x1 <= 1", lambda x: x[0] > 0.1])
    assert box.feasible(np.array([[0.5, 0.4], [0.5, 0.6], [0.05, 0.1]])).tolist() == [1, 0, 0]
    assert not box.plain
    with pytest.raises(ValueError, match=r"does not satisfy 'x0 \+ x1 <= 1'"):
        box.check([0.5, 0.9])

    def broken(p: dict) -> bool:
        return p["nothing"] > 0

    with pytest.raises(ValueError, match=r"the constraint broken failed at .*KeyError"):
        everything((broken,)).feasible(U)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(1, 1), "low must be below high, got low=1 and high=1"),
        (lambda: Real(2, 1), "low must be below high"),
        (lambda: Real(0, 1, log=True), "log needs low > 0, got low=0"),
        (lambda: Real(0, np.inf), "high must be finite"),
        (lambda: Real(0, np.nan), "high must be finite"),
        (lambda: Real("0", 1), "low must be a number, got '0'"),
        (lambda: Real(-1e308, 1e308), "high - low must be finite"),
        (lambda: Integer(3, 3), "low must be below high, got low=3 and high=3"),
        (lambda: Integer(0.5, 3), "low must be an integer, got 0.5"),
        (lambda: Integer(0, 3, step=0), "step must be at least 1, got 0"),
        (lambda: Integer(0, 3, log=True), "log needs low > 0"),
        (lambda: Integer(1, 9, log=True, step=2), "log needs a step of 1, got step=2"),
        (lambda: Integer(0, 2**60), r"high must not exceed 2\^53"),
        (lambda: Integer(True, 3), "low must be a number, got True"),
        (lambda: Categorical([]), "choices must not be empty"),
        (lambda: Categorical(["a", "b", "a"]), "choices must differ, got 'a' twice"),
        (lambda: Categorical("abc"), "choices must be a list, got 'abc'"),
        (lambda: Categorical([1, 1.0]), "choices must differ, got 1.0 twice"),
        (lambda: Categorical([(1, 2)]), r"choices must be strings, numbers.* got \(1, 2\)"),
        (lambda: Categorical([np.nan]), "choices must be finite, got nan"),
        (lambda: Space({}), "a space must have at least one parameter"),
        (lambda: Space({"a": 3}), "a must be a Real, an Integer, a Categorical or a pair"),
        (lambda: Space({"a": (1, 0)}), "a: low must be below high"),
        (lambda: Space({"": (0, 1)}), "the name of a parameter must be a string"),
        (lambda: Space({"a": (0, 1)}, [3]), "a constraint must be an expression or a function"),
        (lambda: Space({"a": (0, 1)}, ["b < 1"]), "cannot use 'b': the parameters are a"),
    ],
)
def test_bad_spaces_are_one_clear_error(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
    assert Categorical([1, True]).size == 2  # true is no number


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"a": 0.5, "n": 1}, "the point has no c: it needs a, n, c"),
        ({"a": 0.5, "n": 1, "c": "x", "z": 1}, "z is not among the parameters a, n, c"),
        ({"a": 1.5, "n": 1, "c": "x"}, r"a: it must lie in \[0, 1\], got 1.5"),
        ({"a": "low", "n": 1, "c": "x"}, "a: it must be a number, got 'low'"),
        ({"a": np.nan, "n": 1, "c": "x"}, "a: it must be finite, got nan"),
        ({"a": 0.5, "n": 1.5, "c": "x"}, "n: it must be an integer, got 1.5"),
        ({"a": 0.5, "n": 7, "c": "x"}, "n: it must be an integer from 1 to 5 in steps of 2, got 7"),
        ({"a": 0.5, "n": 2, "c": "x"}, "n: it must be an integer from 1 to 5 in steps of 2, got 2"),
        ({"a": 0.5, "n": 1, "c": "q"}, "c: it must be one of 'x', 'y', got 'q'"),
        ([0.5, 1], "a point must have the values of a, n, c, got 2 values"),
        (0.5, "a point must be a dict of a, n, c, got 0.5"),
        ("x", "a point must be a dict of a, n, c, got 'x'"),
        ({"a": 1.0, "n": 5, "c": "y"}, r"does not satisfy 'a \+ n < 6'"),
    ],
)
def test_points_that_are_not_of_the_space(point, message: str) -> None:
    kinds = {"a": Real(0, 1), "n": Integer(1, 6, step=2), "c": Categorical(["x", "y"])}
    space = Space(kinds, ["a + n < 6"])
    with pytest.raises(ValueError, match=message):
        space.check(point)
    assert not space.contains(point)


def test_numbers_of_numpy_are_numbers() -> None:
    space = Space({"a": Real(0, 1), "n": Integer(1, 9), "c": Categorical(["x", 2])})
    u = space.check({"a": np.float32(0.5), "n": np.int64(3), "c": np.int64(2)})
    assert space.from_cube(u) == {"a": 0.5, "n": 3, "c": 2}
    assert space.contains({"a": 1, "n": 3.0, "c": np.str_("x")})


def test_spaces_are_compared_and_pickled() -> None:
    import pickle

    first, second = everything(("a < 1",)), everything(("a < 1",))
    assert first == second
    assert first != everything()
    copy = pickle.loads(pickle.dumps(first))  # noqa: S301
    assert copy == first
    assert copy.feasible(copy.place(np.full((1, 8), 0.1)))[0]


def test_a_point_on_a_wall_is_of_the_space_if_its_own_values_say_so() -> None:
    """0.1 is not 0.1 any more after a logarithm and an exponential."""
    space = Space({"a": Real(1e-3, 1, log=True), "b": Real(0, 1)}, ["a + b <= 1"])
    rng = np.random.default_rng(0)
    for a in 10.0 ** rng.uniform(-3, 0, 300):
        assert space.contains({"a": a, "b": 1 - a}) == (a + (1 - a) <= 1)
    U = space.place(rng.random((2000, 2)))
    inside = space.feasible(U)
    assert [space.contains(p) for p in space.from_cube(U)] == inside.tolist()
