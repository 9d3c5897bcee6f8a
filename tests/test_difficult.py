"""Functions that a smooth model does not expect: whole runs, told nothing about noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fitbo
from fitbo.inference.ledger import equal_at_first
from fitbo.inference.settings import Settings
from fitbo.space import Integer, Space
from fitbo.space.design import sobol
from fitbo.study import STREAMS, Study

Function = Callable[[np.ndarray], float]
CENTRE = np.array([0.37, 0.61])
SMALL = {"n_samples": 24}


def square(x: np.ndarray) -> float:
    """Squared distance from the centre."""
    return float(((np.asarray(x) - CENTRE) ** 2).sum())


# The function, and what 30 evaluations must reach; at random 1 to 50% of runs would.
DIFFICULT: dict[str, tuple[Function, float]] = {
    "steps": (lambda x: float(np.floor(12 * np.sqrt(square(x)))), 0.0),
    "a low plateau": (lambda x: max(square(x), 0.005), 0.005),
    "a high plateau": (lambda x: min(square(x), 0.05), 1e-4),
    "counts": (lambda x: float(np.floor(200 * square(x) + 3)), 3.0),
    "twelve decades": (lambda x: 10 ** (14 * square(x) ** 0.5 - 6), 1e-5),
    "outliers": (lambda x: square(x) + 1e9 * (abs(x[0] - 0.9) < 0.07), 1e-6),
    "on a face": (lambda x: float(x[0] + (x[1] - 0.61) ** 2), 1e-6),
    "in a corner": (lambda x: float(x[0] - x[1]), -1.0),
}


@pytest.mark.parametrize("name", DIFFICULT)
def test_difficult_functions(name: str) -> None:
    f, enough = DIFFICULT[name]
    result = fitbo.minimize(f, [(0, 1)] * 2, n_calls=30, seed=2, **SMALL)
    assert result.fun <= enough
    assert f(result.x_recommended) <= enough
    repeated = len(result.x_iters) - len(np.unique(result.x_iters, axis=0))
    assert repeated == 1  # to see whether there is noise


def test_a_constant_function_is_sampled_evenly_to_the_end() -> None:
    result = fitbo.minimize(lambda x: 7.0, [(0, 1)] * 2, n_calls=20, seed=0, **SMALL)
    rng = np.random.default_rng([0, STREAMS["design"]])
    assert_allclose(result.x_iters, sobol(20, 2, rng), atol=1e-12)
    low, middle, high = result.study.minimum_quantiles()
    assert low <= middle <= high <= 7.0 + 1e-6
    assert result.fun == 7.0
    assert_allclose(result.fun_recommended, 7.0, rtol=1e-9)


# --- Values that are all equal ------------------------------------------------------------------


def test_values_that_are_equal_at_first() -> None:
    assert [equal_at_first(y) for y in ([], [1.0], [1.0, 2.0])] == [0, 0, 0]
    assert [equal_at_first(y) for y in ([1.0, 1.0], [3.0, 3.0, 3.0, 1.0, 3.0])] == [2, 3]


def test_on_a_plateau_the_design_goes_on_where_evaluations_succeed() -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=4, **SMALL))
    for _ in range(30):
        x = study.ask()[0]
        if x[0] > 0.5:
            study.fail(x, "tripped")
        else:
            study.tell(x, 1.0)
    failed = [sum(x[0] > 0.5 for x, _ in study.failures[:n]) for n in (5, None)]
    assert 3 <= failed[0] <= failed[1] <= 8  # of 15 at random


def test_the_first_value_that_differs_ends_the_plateau_and_its_steps_shrink_no_region() -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=4, deterministic=True, **SMALL))
    for _ in range(12):
        study.tell(study.ask()[0], 1.0)
    near = study.X[0] + 0.01  # a step that a region would have made too
    study.tell(near, 0.5)
    assert not study._level
    alone = Study(Space([(0, 1)] * 2), Settings(n_initial=13, deterministic=True, **SMALL))
    for x, y in zip(study.X, study.y, strict=True):
        alone.tell(x, y)
    assert_array_equal(study._local()[1].half, alone._local()[1].half)
    assert abs(study.ask()[0] - near).max() > 0


@pytest.mark.parametrize("deterministic", ["auto", True, False])
def test_a_finite_plateau_is_tried_once_and_then_ends_or_is_averaged(
    deterministic: bool | str,
) -> None:
    settings = Settings(n_initial=2, deterministic=deterministic, **SMALL)
    study = Study(Space({"n": Integer(0, 5)}), settings)
    for _ in range(6):
        study.tell(study.ask()[0], 1.0)
    assert {x["n"] for x in study.X} == set(range(6))
    if deterministic is False:
        assert 0 <= study.ask()[0]["n"] <= 5
    else:
        with pytest.raises(fitbo.study.Exhausted):
            study.ask()
