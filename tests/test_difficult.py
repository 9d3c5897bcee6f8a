"""Functions that a smooth model does not expect: whole runs, told nothing about noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import optuna
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fitbo
from fitbo.inference.ledger import equal_at_first
from fitbo.inference.settings import Settings
from fitbo.integrations.optuna import FitboSampler
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
    assert result.fun == result.fun_recommended == 7.0
    assert_array_equal(result.x_recommended, result.x)


# --- Values that are all equal ------------------------------------------------------------------


def test_values_that_are_equal_at_first() -> None:
    assert [equal_at_first(y) for y in ([], [1.0], [1.0, 2.0])] == [0, 0, 0]
    assert [equal_at_first(y) for y in ([1.0, 1.0], [3.0, 3.0, 3.0, 1.0, 3.0])] == [2, 3]


@pytest.mark.parametrize("limit", [0.5, 0.2])
def test_on_a_plateau_the_design_goes_on_where_evaluations_succeed(limit: float) -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=4, deterministic=False, **SMALL))
    failed = []
    for _ in range(60):
        x = study.ask()[0]
        failed.append(bool(x[0] > limit))
        if failed[-1]:
            study.fail(x, "tripped")
        else:
            study.tell(x, 1.0)
    assert sum(failed[:20]) >= 2
    assert sum(failed[20:]) <= 6  # of 20 or 32 at random
    assert len(np.unique(study.taken, axis=0)) == 60


def test_where_no_point_is_new_a_plateau_has_replicates() -> None:
    """Three feasible points of too many to be listed."""
    space = Space({"a": Integer(0, 299), "b": Integer(0, 299)}, ["a + b <= 1"])
    study = Study(space, Settings(n_initial=2, deterministic=False, replicates=True, **SMALL))
    for _ in range(6):
        study.tell(study.ask()[0], 1.0)
    assert len(study.y) == 6


def test_the_design_of_an_optuna_study_goes_on_too() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    design = []
    for n in (4, 16):
        study = optuna.create_study(sampler=FitboSampler(seed=1, n_startup_trials=n, **SMALL))
        study.optimize(lambda t: 0 * sum(t.suggest_float(k, 0, 1) for k in "ab"), n_trials=16)
        design.append([trial.params for trial in study.trials])
    assert design[0] == design[1]


def test_the_first_value_that_differs_ends_the_plateau_and_its_steps_shrink_no_region() -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=4, deterministic=True, **SMALL))
    for _ in range(12):
        study.tell(study.ask()[0], 1.0)
    near = study.X[0] + 0.01  # a step that a region would have made too
    study.tell(near, 0.5)
    assert not study.level
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
