"""Optuna's constraints and known noise in ``FitboSampler``."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from fitbo.integrations.optuna import FitboSampler  # noqa: E402

QUICK: dict[str, Any] = {"n_samples": 20, "max_burn_in": 20, "n_startup_trials": 5}
optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial: Any) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_user_attr("broken", [0.8 - x - y])
    return x + y


def broken(trial: Any) -> list[float]:
    return trial.user_attrs["broken"]


def named(trial: Any) -> float:
    value = objective(trial)
    trial.set_constraint("floor", 0.8 - value)
    return value


def feasible(study: Any) -> list[float]:
    found = [t for t in study.trials if t.user_attrs["broken"][0] <= 0]
    return [t.value for t in found]


def test_constraints_func_keeps_the_search_where_it_holds() -> None:
    sampler = FitboSampler(seed=0, constraints_func=broken, **QUICK)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=14)
    assert 0.8 <= min(feasible(study)) < 0.85
    assert study.best_value >= 0.8  # Optuna's own, which knows the constraints from the trials


@pytest.mark.skipif(not hasattr(optuna.trial.Trial, "set_constraint"), reason="of Optuna 5")
def test_set_constraint_is_the_same() -> None:
    study = optuna.create_study(sampler=FitboSampler(seed=0, **QUICK))
    study.optimize(named, n_trials=14)
    assert 0.8 <= min(feasible(study)) < 0.85


def test_directions_and_failures_too() -> None:
    def other(trial: Any) -> float:
        value = objective(trial)
        if value > 1.5:
            raise RuntimeError("too much")
        return -value

    sampler = FitboSampler(seed=1, constraints_func=broken, **QUICK)
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(other, n_trials=12, catch=(RuntimeError,))
    done = [t for t in study.trials if t.value is not None and t.user_attrs["broken"][0] <= 0]
    assert -0.95 < max(t.value for t in done) <= -0.8


@pytest.mark.parametrize("returned", [[float("nan")], ["far"], 3.0])
def test_what_is_no_number_is_an_error_that_costs_no_value(returned: Any) -> None:
    sampler = FitboSampler(seed=0, constraints_func=lambda trial: returned, **QUICK)
    study = optuna.create_study(sampler=sampler)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="must return finite numbers"):
        study.optimize(objective, n_trials=1)
    assert study.trials[0].value is not None


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="constraints_func must be a function"):
        FitboSampler(constraints_func=[1])
    with pytest.raises(ValueError, match="noise_std must be positive"):
        FitboSampler(noise_std=-1)
