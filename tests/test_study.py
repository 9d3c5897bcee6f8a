"""Ask, tell, recommend, minimize."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fitbo
from fitbo.acquisition import ACQUISITIONS
from fitbo.entropy import BACKENDS
from fitbo.space import Space
from fitbo.study import Settings, Study

BRANIN_MINIMUM = 0.39788735772973816
BRANIN_BOUNDS = [(-5.0, 10.0), (0.0, 15.0)]
SMALL = {"n_samples": 24}


def branin(x: np.ndarray) -> float:
    a, b = x
    return float(
        (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
        + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a)
        + 10
    )


def bowl(x: np.ndarray) -> float:
    return float(((x - 0.3) ** 2).sum())


def run(study: Study, n: int, fun=bowl) -> Study:
    for _ in range(n):
        x = study.ask()[0]
        study.tell(x, fun(x))
    return study


def test_the_initial_design_is_the_same_however_it_is_asked_for() -> None:
    settings = Settings(n_initial=8, seed=3)
    together = Study(Space([(0, 1)] * 2), settings).ask(8)
    one_by_one = run(Study(Space([(0, 1)] * 2), settings), 8).X
    assert np.array_equal(together, one_by_one)
    assert len(np.unique(together, axis=0)) == 8


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_every_acquisition_proposes_new_points_inside(name: str) -> None:
    settings = Settings(acquisition=name, n_initial=4, **SMALL)
    study = run(Study(Space([(-1, 1), (0, 5)]), settings), 7)
    assert ((study.X >= [-1, 0]) & (study.X <= [1, 5])).all()
    assert len(np.unique(study.X.round(9), axis=0)) == 7


def test_a_study_replayed_from_its_observations_and_ensemble_continues_bit_for_bit() -> None:
    settings = Settings(n_initial=4, seed=5, **SMALL)
    space = Space([(0, 1)] * 2)
    original = run(Study(space, settings), 7)
    ensemble = original.ensemble
    assert ensemble is not None
    replayed = Study(space, settings, ensemble=ensemble.copy())
    for x, y in zip(original.X, original.y, strict=True):
        replayed.tell(x, y)
    run(original, 3)
    run(replayed, 3)
    assert np.array_equal(original.X, replayed.X)
    assert np.array_equal(original.ensemble, replayed.ensemble)  # type: ignore[arg-type]


def test_two_runs_of_one_seed_agree_and_another_seed_differs() -> None:
    runs = [fitbo.minimize(bowl, [(0, 1)] * 2, n_calls=7, seed=s, **SMALL) for s in (1, 1, 2)]
    assert np.array_equal(runs[0].x_iters, runs[1].x_iters)
    assert not np.array_equal(runs[0].x_iters, runs[2].x_iters)


def test_recommending_does_not_change_what_is_asked() -> None:
    settings = Settings(n_initial=4, **SMALL)
    quiet, curious = (run(Study(Space([(0, 1)] * 2), settings), 5) for _ in range(2))
    curious.recommend()
    assert np.array_equal(quiet.ask(), curious.ask())


def test_several_points_at_once_are_distinct_and_spread() -> None:
    study = run(Study(Space([(0, 1)] * 2), Settings(n_initial=6, **SMALL)), 8)
    points = study.ask(4)
    assert points.shape == (4, 2)
    assert len(study.pending) == 4
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(4)
    assert gaps.min() > 1e-3
    for x in points:
        study.tell(x, bowl(x))
    assert len(study.pending) == 0
    assert len(study.y) == 12


def test_recommendation_and_best_observed() -> None:
    study = run(Study(Space([(0, 1)] * 2), Settings(n_initial=10, **SMALL)), 10)
    best, value = study.best_observed
    assert value == study.y.min() == bowl(best)
    recommended = study.recommend()
    assert bowl(recommended.x) < 0.02
    assert abs(recommended.mean - bowl(recommended.x)) < 5 * recommended.deviation + 1e-3
    low, middle, high = study.eta_quantiles()
    assert low <= middle <= high <= study.y.min()


def test_minimize_counts_the_whole_budget() -> None:
    seen: list[int] = []
    calls: list[np.ndarray] = []

    def counted(x: np.ndarray) -> float:
        calls.append(x)
        return bowl(x)

    result = fitbo.minimize(
        counted,
        [(0, 1)] * 2,
        n_calls=6,
        n_initial=4,
        callback=lambda s: seen.append(len(s.y)),
        **SMALL,
    )
    assert result.nfev == len(calls) == 6
    assert seen == [1, 2, 3, 4, 5, 6]
    assert_allclose(result.x_iters, calls)
    assert result.fun == result.func_vals.min() == bowl(result.x)
    assert result.success
    assert "budget of 6" in result.message
    assert result.x_recommended.shape == (2,)
    assert np.isfinite(result.fun_recommended)


def test_what_is_known_already_is_not_paid_for_again() -> None:
    known = np.array([[0.2, 0.2], [0.8, 0.4]])
    with_values = fitbo.minimize(
        bowl, [(0, 1)] * 2, n_calls=3, x0=known, y0=[bowl(x) for x in known], **SMALL
    )
    assert with_values.nfev == 3
    assert len(with_values.func_vals) == 5
    without = fitbo.minimize(bowl, [(0, 1)] * 2, n_calls=3, x0=known, **SMALL)
    assert without.nfev == len(without.func_vals) == 3
    assert_allclose(without.x_iters[:2], known)


def test_a_callback_ends_the_search() -> None:
    result = fitbo.minimize(bowl, [(0, 1)], n_calls=9, callback=lambda s: len(s.y) == 3, **SMALL)
    assert result.nfev == 3
    assert "callback ended" in result.message


def test_a_function_of_ones_own_serves_as_the_entropy() -> None:
    def mm(mixture: fitbo.Mixture) -> np.ndarray:
        return 0.5 * np.log(2 * np.pi * np.e * mixture.variance)

    named, own = (
        fitbo.minimize(bowl, [(0, 1)], n_calls=4, n_initial=3, entropy=e, n_samples=8)
        for e in ("mm", mm)
    )
    assert_allclose(named.x_iters, own.x_iters, atol=1e-3)


@pytest.mark.parametrize(
    "values",
    [
        [1.0] * 7,
        [1e-6, 1e6, 3.0, 1.0, -2.0, 0.5, 0.1],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1e300, 0.0],
        [5.0],
    ],
    ids=["constant", "twelve orders", "outlier", "one value"],
)
def test_hard_data_still_yield_a_point(values: list[float]) -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=1, **SMALL))
    rng = np.random.default_rng(0)
    for value in values:
        study.tell(rng.random(2), value)
    if len(values) > 2:
        study.tell(study.X[0], values[0])  # a duplicate, and a near one
        study.tell(np.clip(study.X[1] + 1e-10, 0, 1), values[1])
    assert np.isfinite(study.ask()).all()
    assert np.isfinite(study.recommend().mean)


def test_bad_input_is_one_clear_error() -> None:
    study = Study(Space([(0, 1)] * 2))
    for call, message in [
        (lambda: study.tell([0.5], 1.0), r"x must have shape \(\.\.\., 2\), got \(1,\)"),
        (lambda: study.tell([0.5, 2.0], 1.0), r"x\[1\] must lie in"),
        (lambda: study.tell([0.5, 0.5], np.nan), "y must be finite, got nan"),
        (lambda: study.tell([0.5, 0.5], "low"), "y must be a number, got 'low'"),
        (lambda: study.ask(0), "n must be at least 1, got 0"),
        (lambda: study.best_observed, "best_observed needs a value"),
        (study.recommend, "a fit needs a value"),
        (lambda: Settings(acquisition="eii"), "acquisition must be one of fitbo, ei"),
        (lambda: Settings(entropy="memell"), "did you mean 'memel'"),
        (lambda: Settings(n_samples=0), "n_samples must be at least 1, got 0"),
        (lambda: fitbo.minimize(bowl, [(0, 1)], n_calls=0), "n_calls must be at least 1"),
        (lambda: fitbo.minimize(bowl, [(0, 1)], y0=[1.0]), "y0 needs x0"),
        (
            lambda: fitbo.minimize(lambda x: np.nan, [(0, 1)], n_calls=1),
            r"fun\(\[.*\]\) cannot be used: y must be finite",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    "entropy", [pytest.param(n, marks=() if n == "memel" else pytest.mark.slow) for n in BACKENDS]
)
def test_branin_to_a_hundredth_in_forty_evaluations(entropy: str) -> None:
    result = fitbo.minimize(
        branin, BRANIN_BOUNDS, n_calls=40, entropy=entropy, seed=0, n_samples=100
    )
    assert branin(result.x_recommended) - BRANIN_MINIMUM < 1e-2
