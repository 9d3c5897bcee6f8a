"""The sampler in real studies of Optuna's, and by Optuna's own test cases for samplers."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial  # noqa: E402

from fitbo.inference.settings import Settings  # noqa: E402
from fitbo.integrations.optuna.sampler import FitboSampler, drawn_again  # noqa: E402
from fitbo.integrations.optuna.trials import PROPOSED, Common, codec  # noqa: E402
from fitbo.space import Categorical, Space  # noqa: E402
from fitbo.study import Study  # noqa: E402

SMALL = {"n_samples": 16, "entropy": "mm"}
optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(autouse=True)
def _its_own_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def mixed(trial: Any) -> float:
    x = trial.suggest_float("x", 0, 1)
    rate = trial.suggest_float("rate", 1e-5, 1, log=True)
    half = trial.suggest_float("half", 0, 5, step=0.5)
    n = trial.suggest_int("n", 1, 9)
    k = trial.suggest_int("k", 1, 1000, log=True)
    c = trial.suggest_categorical("c", ["a", None, 3])
    return float(
        (x - 0.3) ** 2
        + 0.1 * np.log10(rate / 1e-2) ** 2
        + 0.1 * (half - 2.5) ** 2
        + 0.05 * (n - 4) ** 2
        + 0.1 * np.log10(k / 30) ** 2
        + (0.0 if c is None else 0.5)
    )


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_study_of_all_distributions_beats_random_in_both_directions(direction: str) -> None:
    sign = 1 if direction == "minimize" else -1

    def best(sampler: Any) -> float:
        study = optuna.create_study(direction=direction, sampler=sampler)
        study.optimize(lambda t: sign * mixed(t), n_trials=30)
        assert len(study.trials) == 30
        return sign * study.best_value

    ours = best(FitboSampler(seed=0, n_startup_trials=8, **SMALL))
    rivals = [best(optuna.samplers.RandomSampler(seed=s)) for s in range(5)]
    assert ours < np.median(rivals)


def test_a_seed_repeats_and_another_does_not() -> None:
    def points(seed: int) -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=FitboSampler(seed=seed, n_startup_trials=4, **SMALL))
        study.optimize(mixed, n_trials=7)
        return [t.params for t in study.trials]

    assert points(1) == points(1)
    assert points(1) != points(2)


def test_without_a_seed_no_two_samplers_are_alike() -> None:
    def points() -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=FitboSampler(n_startup_trials=2, **SMALL))
        study.optimize(mixed, n_trials=4)
        return [t.params for t in study.trials]

    ours, others = points(), points()
    assert all(a != b for a, b in zip(ours, others, strict=True))


DISTRIBUTIONS = {"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)}


def done(x: float, n: int, state: Any = TrialState.COMPLETE, value: float | None = None) -> Any:
    return create_trial(
        state=state, params={"x": x, "n": n}, distributions=DISTRIBUTIONS, value=value
    )


def seeded_study(**changes: Any) -> Any:
    sampler = FitboSampler(seed=3, n_startup_trials=4, **{**SMALL, **changes})
    study = optuna.create_study(sampler=sampler)
    rng = np.random.default_rng(0)
    for n, x in zip([1, 2, 3, 4, 5, 3], rng.random(6), strict=True):
        study.add_trial(done(x, n, value=(x - 0.4) ** 2 + 0.1 * (n - 3) ** 2))
    return study


def test_running_and_failed_trials_are_respected() -> None:
    """The sampler's study, rebuilt, has them where they are."""
    study = seeded_study()
    first = study.ask(DISTRIBUTIONS)
    second = study.ask(DISTRIBUTIONS)
    assert first.params != second.params
    for x in (0.9, 0.95):
        study.add_trial(done(x, 2, TrialState.FAIL))
    study.add_trial(done(0.2, 2, TrialState.PRUNED))
    study.add_trial(done(0.1, 1, value=np.inf))
    sampler = study.sampler
    common = Common({name: codec(d) for name, d in DISTRIBUTIONS.items()})
    ours = sampler._replayed(common, study.trials, study.direction, 99)
    assert len(ours.y) == 6
    assert ours.pending == [first.params, second.params, {"x": pytest.approx(0.2), "n": 2}]
    reasons = [reason for _, reason in ours.failures]
    assert reasons == ["trial 8 failed", "trial 9 failed", "trial 11 has the value inf"]
    success = ours.success()
    assert success is not None
    near, far = success(common.space.to_cube([{"x": 0.93, "n": 2}, {"x": 0.4, "n": 4}]))
    assert near < far


def test_a_running_trial_is_known_by_what_was_proposed() -> None:
    """Before its objective has asked for all of its parameters."""
    study = seeded_study()
    trial, other = study.ask(), study.ask()
    trial.suggest_float("x", 0, 1)
    other.suggest_float("x", 0, 1)
    first, second = (t.system_attrs[PROPOSED] for t in study.trials[-2:])
    assert list(trial.params) == ["x"]
    assert set(first) == {"x", "n"}
    assert first != second
    assert trial.suggest_int("n", 1, 5) == first["n"]


def test_of_two_that_choose_alike_at_one_time_one_chooses_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other's choice is written after ours was made and before ours is."""
    study = seeded_study()
    other = study.ask()
    chosen: list[Any] = []
    next_point = FitboSampler._next

    def with_a_rival(*args: Any) -> Any:
        chosen.append(next_point(*args))
        if len(chosen) == 1:
            study._storage.set_trial_system_attr(other._trial_id, PROPOSED, chosen[0])
        return chosen[-1]

    monkeypatch.setattr(FitboSampler, "_next", with_a_rival)
    trial = study.ask(DISTRIBUTIONS)
    assert len(chosen) == 2
    assert trial.params == chosen[1] != chosen[0]
    assert study.trials[-1].system_attrs[PROPOSED] == chosen[1]


def test_a_finite_space_is_gone_through_before_anything_repeats() -> None:
    study = optuna.create_study(sampler=FitboSampler(seed=0, n_startup_trials=3, **SMALL))

    def objective(trial: Any) -> float:
        return trial.suggest_int("n", 1, 4) + len(trial.suggest_categorical("c", ["a", "bb"]))

    study.optimize(objective, n_trials=8)
    assert len({tuple(t.params.items()) for t in study.trials}) == 8
    study.optimize(objective, n_trials=2)  # and then Optuna may repeat
    assert len(study.trials) == 10


def svm_or_forest(trial: Any) -> float:
    if trial.suggest_categorical("k", ["svm", "rf"]) == "svm":
        return 1 + (trial.suggest_float("C", 1e-3, 10, log=True) - 1) ** 2
    return 100.0 + trial.suggest_int("d", 1, 9)


def test_in_a_conditional_space_the_better_branch_is_tried_again() -> None:
    study = optuna.create_study(sampler=FitboSampler(seed=0, n_startup_trials=6, **SMALL))
    study.optimize(svm_or_forest, n_trials=20)
    branches = [t.params["k"] for t in study.trials]
    assert 2 <= branches[:6].count("svm") <= 4
    assert branches[8:].count("svm") >= 11


def test_a_finite_space_need_not_be_gone_through_when_more_decides() -> None:
    def objective(trial: Any) -> float:
        a, b = (trial.suggest_categorical(name, list(range(4))) for name in "ab")
        return a + b + trial.suggest_float(f"x{a}", 0, 1)

    study = optuna.create_study(sampler=FitboSampler(seed=0, n_startup_trials=8, **SMALL))
    study.optimize(objective, n_trials=20)
    points = [(t.params["a"], t.params["b"]) for t in study.trials]
    assert len(set(points[:8])) >= 7  # the first of all may come again
    assert len(set(points)) < 16
    assert np.mean(np.sum(points[8:], axis=1)) < np.mean(np.sum(points[:8], axis=1)) - 0.5


def test_where_values_are_noisy_an_exhausted_space_is_tried_again_where_it_is_low() -> None:
    rng = np.random.default_rng(0)
    study = optuna.create_study(sampler=FitboSampler(seed=0, n_startup_trials=3, **SMALL))
    study.optimize(
        lambda t: (t.suggest_int("n", 1, 4) - 3) ** 2 + 0.2 * rng.standard_normal(), n_trials=20
    )
    assert sum(t.params["n"] == 3 for t in study.trials[4:]) >= 10


def test_what_fails_is_seldom_tried_again() -> None:
    ours = Study(Space({"c": Categorical(("good", "bad", "broken"))}), Settings(n_samples=16))
    for y in (0.0, 0.1, -0.1):
        ours.tell({"c": "good"}, y)
        ours.tell({"c": "bad"}, y + 5)
        for _ in range(3):
            ours.fail({"c": "broken"}, "no value")
    found = []
    for _ in range(20):
        found.append(ours.space.from_cube(drawn_again(ours))["c"])
        ours.fail({"c": "broken"}, "no value")  # another draw, of the same fit
    assert found.count("good") >= 18


def test_it_is_said_once_that_a_parameter_is_drawn_independently() -> None:
    def said(**arguments: Any) -> list[str]:
        messages: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("optuna.fitbo")
        logger.addHandler(handler)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            sampler = FitboSampler(seed=0, n_startup_trials=4, **arguments, **SMALL)
            study = optuna.create_study(sampler=sampler)
            study.optimize(svm_or_forest, n_trials=4)
            assert not messages
            for branch in ("svm", "rf", "svm"):
                study.enqueue_trial({"k": branch})
            study.optimize(svm_or_forest, n_trials=3)
        finally:
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            logger.removeHandler(handler)
        return messages

    # d was there once in four trials. C is modelled, and drawn only where the model chose the other
    # branch than the one that was enqueued.
    messages = [m.split(":")[0] for m in said()]
    assert "d is drawn by RandomSampler" in messages
    assert len(set(messages)) == len(messages)
    assert not said(warn_independent_sampling=False)


def test_a_trial_outside_the_space_does_not_count() -> None:
    study = optuna.create_study(sampler=FitboSampler(seed=0, n_startup_trials=2, **SMALL))
    study.enqueue_trial({"x": 5.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1) ** 2, n_trials=5)
    first, *rest = (t.params["x"] for t in study.trials)
    assert first == 5
    assert all(0 <= x <= 1 for x in rest)


@pytest.mark.parametrize("names", ["xx", "xy"])
def test_one_sampler_for_two_studies_in_memory(names: str) -> None:
    sampler = FitboSampler(seed=0, n_startup_trials=2, **SMALL)
    for name in names:
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda t, name=name: t.suggest_float(name, 0, 1) ** 2, n_trials=4)
        assert [set(t.params) for t in study.trials] == 4 * [{name}]
        assert [PROPOSED in t.system_attrs for t in study.trials] == [False, True, True, True]


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-1, 3),
        FloatDistribution(1e-5, 1e3, log=True),
        FloatDistribution(0.1, 0.9, step=0.1),
        FloatDistribution(-2.5, 2.5, step=0.5),
        IntDistribution(-3, 13, step=4),
        IntDistribution(1, 500, log=True),
        CategoricalDistribution(["a", None, 2, True, 1.5]),
        CategoricalDistribution([1, 2]),
    ],
    ids=str,
)
def test_values_travel_there_and_back(distribution: Any) -> None:
    c = codec(distribution)
    space = Space({"p": c.parameter})
    for point in space.from_cube(space.place(np.linspace(0, 1, 41)[:, None])):
        value = c.decode(point["p"])
        assert distribution._contains(distribution.to_internal_repr(value))
        assert c.encode(value) == pytest.approx(point["p"], rel=1e-12)


def test_bad_input() -> None:
    with pytest.raises(
        ValueError, match="n_startup_trials must be a whole number of at least 1, got 0"
    ):
        FitboSampler(n_startup_trials=0)
    with pytest.raises(ValueError, match="acquisition must be one of"):
        FitboSampler(acquisition="eii")
    with pytest.raises(
        ValueError, match="n_initial is not a setting of this sampler: give n_startup"
    ):
        FitboSampler(n_initial=3)
    for seed in (-1, 0.5, 2**32, "1"):
        with pytest.raises(ValueError, match=r"seed must be None or an integer from 0 to 2\*\*32"):
            FitboSampler(seed=seed, independent_sampler=optuna.samplers.RandomSampler())


WORKER = """
import sys, warnings
import optuna
from fitbo.integrations.optuna import FitboSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    n = trial.suggest_int("n", 1, 9)
    if x > 0.9:
        raise RuntimeError("too hot")
    return (x - 0.3) ** 2 + 0.05 * (n - 4) ** 2

study = optuna.load_study(
    study_name="both", storage=sys.argv[1],
    sampler=FitboSampler(seed=5, n_startup_trials=6, n_samples=16, entropy="mm"),
)
study.optimize(objective, n_trials=10, catch=(RuntimeError,))
"""


def test_two_processes_on_one_sqlite_study(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(study_name="both", storage=storage)
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, storage], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=80)
        assert worker.returncode == 0, errors
    study = optuna.load_study(study_name="both", storage=storage)
    assert len(study.trials) == 20
    assert {t.state for t in study.trials} <= {TrialState.COMPLETE, TrialState.FAIL}
    points = {(t.params["x"], t.params["n"]) for t in study.trials if t.number > 1}
    assert len(points) == 18
    assert study.best_value < 0.1


class _Ours:
    @pytest.fixture
    def sampler(self) -> Callable[[], Any]:
        return lambda: FitboSampler(seed=0, n_startup_trials=2, **SMALL)


try:
    from optuna.testing import pytest_samplers as published
except ImportError:  # Optuna publishes its own cases since its version 5

    @pytest.mark.skip(reason="this Optuna publishes no test cases for samplers")
    def test_published_cases() -> None: ...

else:

    class TestBasic(_Ours, published.BasicSamplerTestCase):
        pass

    class TestRelative(_Ours, published.RelativeSamplerTestCase):
        pass

    class TestSingleOnly(_Ours, published.SingleOnlySamplerTestCase):
        pass
