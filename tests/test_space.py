"""The box and its cube."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.design import DESIGNS
from fitbo.space import Space


def test_the_cube_maps_to_the_box_and_back() -> None:
    space = Space([(-5, 10), (0, 1e-3)])
    u = np.random.default_rng(0).random((50, 2))
    x = space.from_cube(u)
    assert ((x >= space.low) & (x <= space.high)).all()
    assert_allclose(space.to_cube(x), u, atol=1e-12)
    assert np.array_equal(space.from_cube(np.array([[0, 0], [1, 1]])), [[-5, 0], [10, 1e-3]])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([], r"bounds must be pairs \(low, high\), one a dimension, got \[\]"),
        ([(0, 1, 2)], r"bounds must be pairs \(low, high\)"),
        ([("a", 1)], "bounds must be pairs of numbers"),
        ([(0, np.inf)], "bounds must be finite"),
        ([(0, 1), (2, 2)], r"bounds\[1\] must have low < high, got \(2, 2\)"),
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
