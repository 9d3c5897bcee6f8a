"""Spaces whose constraints leave a millionth of the cube, or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from fitbo import Categorical, Integer, Real, Settings, Space, Study
from fitbo.search.hidden import descend, hidden_points, wander

UNIT = Real(0, 1)
SIX = dict.fromkeys("abcdef", UNIT)
BOX = [f"{0.05 * i + 0.1} <= {name} <= {0.05 * i + 0.2}" for i, name in enumerate(SIX)]
# Of each the share of the cube that is feasible is 1e-6 or a little more or less.
TINY: dict[str, Space] = {
    "interval": Space({"x": UNIT}, ["x >= 0.314159", "x <= 0.31416"]),
    "band": Space({"x": UNIT, "y": UNIT}, ["x + y >= 1", "x + y <= 1.000001"]),
    "disc": Space({"x": UNIT, "y": UNIT}, ["(x - 0.7)**2 + (y - 0.2)**2 <= 3e-7"]),
    "box": Space(SIX, BOX),
    "valley": Space(
        {"x": Real(-2, 2), "y": Real(-2, 2)}, ["(1 - x)**2 + 100 * (y - x*x)**2 <= 1e-4"]
    ),
    "either": Space(
        {"x": UNIT, "n": Integer(1, 1000), "c": Categorical(["a", "b", "c"])},
        ["c == 'b'", "n == 617 or n == 3", "0.5 <= x <= 0.501"],
    ),
    "integers": Space({"n": Integer(1, 10**6), "m": Integer(1, 10**6)}, ["n + 2*m == 777777"]),
    "logarithm": Space({"x": Real(1e-6, 1, log=True), "y": UNIT}, ["-3 <= log(x) + y <= -2.99999"]),
    "undefined": Space({"x": Real(-9, 1), "y": UNIT}, ["log(x) > -1e-6", "not y > 1e-5"]),
}


@pytest.mark.parametrize("name", TINY)
def test_a_study_goes_on_where_a_millionth_is_feasible(name: str) -> None:
    """From the design on, and with the model: different points, each of them feasible."""
    space = TINY[name]
    study = Study(space, Settings(n_initial=3, n_samples=16, deterministic=False))
    seen = []
    for i in range(5):
        point = study.ask()[0]
        assert space.contains(point)
        seen.append(str(point))
        study.tell(point, float(i))
    assert len(set(seen)) == 5


@pytest.mark.parametrize("name", TINY)
def test_rejection_finds_none_of_them(name: str) -> None:
    space = TINY[name]
    U = space.place(np.random.default_rng(0).random((1 << 14, len(space.parameters))))
    assert space.feasible(U).sum() <= 2
    held = (space.violations(U) == 0).all(1)
    assert (held == space.feasible(U)).all()


def test_hit_and_run_follows_a_sheet_from_end_to_end() -> None:
    space, rng = TINY["band"], np.random.default_rng(1)
    U = wander(space, space.feasible, descend(space, rng), rng)
    assert space.feasible(U).all()
    assert U[:, 0].min() < 0.1
    assert U[:, 0].max() > 0.9


def test_both_of_two_far_apart_are_found() -> None:
    """A choice of n that is right is kept, and both of those that are right are reached."""
    space, rng = TINY["either"], np.random.default_rng(2)
    found = space.from_cube(hidden_points(space, space.feasible, np.empty((0, space.dim)), rng))
    assert {point["n"] for point in found} == {3, 617}
    assert {point["c"] for point in found} == {"b"}


@pytest.mark.parametrize(
    "constraints",
    [
        ["x > 0.9", "x < 0.1"],
        ["x + y > 2.1"],
        ["x**2 + y**2 <= -1e-9"],
        ["log(x - 2) < 0"],
        [lambda point: False],
    ],
)
def test_constraints_that_contradict_one_another_are_one_error(constraints: list[object]) -> None:
    study = Study(Space({"x": UNIT, "y": UNIT}, constraints), Settings(n_initial=3))
    with pytest.raises(ValueError, match="no point that satisfies the constraints was found"):
        study.ask()


def test_the_excess_says_how_far_a_constraint_is_from_true() -> None:
    space = Space(
        {"x": Real(0, 10), "y": Real(0, 10), "c": Categorical(["a", "b"])},
        [
            "x <= 3",
            "x > 3 and y >= 7",
            "x == 4 or y == 4",
            "not x < 6",
            "c == 'b'",
            "c != 'b' or y < 2",
            "sqrt(x - 8) >= 1",
            "x in [1, 2]",
        ],
    )
    far = space.violations(space.to_cube({"x": 5.0, "y": 6.0, "c": "a"})[None])[0]
    assert far == pytest.approx([2, 1, 1, 1, 1, 0, np.inf, 1])
