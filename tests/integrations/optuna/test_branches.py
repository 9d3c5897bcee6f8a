"""Conditional parameters in define-by-run spaces: the rules that trials show, and their use."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from fitbo.integrations.optuna import FitboSampler
from fitbo.integrations.optuna.branches import Branch, branches
from fitbo.integrations.optuna.trials import PROPOSED, common_of, search_space, shared_by

SMALL: dict[str, Any] = {"n_samples": 20, "min_burn_in": 4, "max_burn_in": 40}
optuna.logging.set_verbosity(optuna.logging.ERROR)


def machine(trial: optuna.Trial) -> float:
    """A support vector machine's parameters: which exist depends on its kernel."""
    kernel = trial.suggest_categorical("the kernel", ["linear", "rbf", "poly"])
    C = trial.suggest_float("C", 1e-3, 1e3, log=True)
    value = abs(math.log10(C) - 1)
    if kernel != "linear":
        gamma = trial.suggest_float("gamma", 1e-4, 1.0, log=True)
        value += (math.log10(gamma) + 2) ** 2 - 1
    if kernel == "poly":
        value += trial.suggest_int("degree", 2, 5) / 5
    return value


def layers(trial: optuna.Trial) -> float:
    n = trial.suggest_int("n layers", 1, 4)
    return sum(trial.suggest_int(f"units {i}", 4, 64, log=True) for i in range(n)) / n


def nested(trial: optuna.Trial) -> float:
    value = trial.suggest_float("x", 0, 1)
    a = trial.suggest_categorical("a", [None, "b"])
    if a == "b" and trial.suggest_categorical("c", [True, False]):
        value -= trial.suggest_float("d", 0, 1)
    return value


def shown(objective: Callable[[optuna.Trial], float], n: int = 30) -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=n)
    return study


def rules(objective: Callable[[optuna.Trial], float]) -> dict[str, Branch]:
    trials = shown(objective).trials
    return branches(trials, shared_by(trials))


def test_the_rules_of_categories() -> None:
    assert rules(machine) == {
        "gamma": Branch("the kernel", "in", ("rbf", "poly")),
        "degree": Branch("the kernel", "in", ("poly",)),
    }


def test_the_rules_of_a_number() -> None:
    found = rules(layers)
    assert found == {f"units {i}": Branch("n layers", ">", (i,)) for i in range(1, 4)}


def test_rules_within_branches() -> None:
    found = rules(nested)
    assert found == {"c": Branch("a", "in", ("b",)), "d": Branch("c", "in", (True,))}
    assert list(found) == ["c", "d"], "parents first"


def test_what_chance_decides_has_no_rule_and_a_range_that_changes_none_either() -> None:
    def arbitrary(trial: optuna.Trial) -> float:
        x = trial.suggest_categorical("x", ["a", "b"])
        if trial.number % 3 == 0:
            trial.suggest_float("y", 0, 1)
        if x == "b":
            trial.suggest_float("z", 0, 1 + trial.number % 2)
        return 0.0

    trials = shown(arbitrary).trials
    assert set(search_space(trials)) == {"x"}


@pytest.mark.parametrize("objective", [machine, layers, nested])
def test_every_trial_is_a_point_of_the_space_and_travels_back(
    objective: Callable[[optuna.Trial], float],
) -> None:
    trials = shown(objective).trials
    common = common_of(trials, search_space(trials))
    assert set(common.codecs) == {name for trial in trials for name in trial.params}
    for trial in trials:
        point = common.point_of(trial)
        assert point is not None
        assert common.decode(point) == pytest.approx(trial.params)


def test_a_trial_that_broke_off_is_known_by_its_proposal() -> None:
    study = shown(machine)
    common = common_of(study.trials, search_space(study.trials))
    for state in (TrialState.RUNNING, TrialState.FAIL):
        trial = optuna.trial.create_trial(
            state=state,
            params={"the kernel": "rbf", "C": 1.0},
            distributions={n: study.trials[0].distributions[n] for n in ("the kernel", "C")},
            system_attrs={PROPOSED: {"the kernel": 1, "C": 1.0, "gamma": 0.1}},
        )
        assert common.decode(common.point_of(trial)) == {
            "the kernel": "rbf",
            "C": 1.0,
            "gamma": 0.1,
        }


def test_the_parameters_of_branches_are_modelled() -> None:
    independent: list[str] = []

    class Watching(optuna.samplers.RandomSampler):
        def sample_independent(self, study: Any, trial: Any, name: str, dist: Any) -> Any:
            independent.append(name)
            return super().sample_independent(study, trial, name, dist)

    sampler = FitboSampler(
        seed=1, n_startup_trials=10, independent_sampler=Watching(seed=1), **SMALL
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(machine, n_trials=28)
    assert len(independent) < 10, "only what the first trials had not shown"
    best = study.best_params
    assert best["the kernel"] in ("rbf", "poly")
    assert math.log10(best["gamma"]) == pytest.approx(-2, abs=0.4)
    late = [trial.params for trial in study.trials[14:] if "gamma" in trial.params]
    assert len(late) >= 8
    near = sum(abs(math.log10(params["gamma"]) + 2) < 0.5 for params in late)
    assert near >= len(late) / 2, "a uniform draw is that near in a quarter of them"
