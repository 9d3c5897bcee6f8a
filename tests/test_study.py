"""Ask, tell, recommend, minimize."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fitbo
from fitbo.acquisition import ACQUISITIONS
from fitbo.entropy import BACKENDS
from fitbo.inference.settings import Settings
from fitbo.space import Categorical, Integer, Real, Space
from fitbo.study import Exhausted, Study

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
    settings = Settings(acquisition=name, n_initial=4, deterministic=False, **SMALL)
    study = run(Study(Space([(-1, 1), (0, 5)]), settings), 7)
    assert ((study.X >= [-1, 0]) & (study.X <= [1, 5])).all()
    assert len(np.unique(study.X.round(9), axis=0)) == 7


def test_a_study_replayed_from_its_observations_and_ensemble_continues_bit_for_bit() -> None:
    settings = Settings(n_initial=4, seed=5, **SMALL)
    space = Space([(0, 1)] * 2)
    original = run(Study(space, settings), 8)
    ensemble = original.ensemble
    assert ensemble is not None
    replayed = Study(space, settings, ensemble=ensemble)
    for x, y in zip(original.X, original.y, strict=True):
        replayed.tell(x, y)
    run(original, 3)
    run(replayed, 3)
    assert np.array_equal(original.X, replayed.X)
    assert original.ensemble is not None
    assert replayed.ensemble is not None
    assert np.array_equal(original.ensemble.log_theta, replayed.ensemble.log_theta)


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
        (lambda: Settings(acquisition="eii"), "acquisition must be one of fitbo, fitbo-paper, ei"),
        (lambda: Settings(entropy="memell"), "did you mean 'memel'"),
        (lambda: Settings(acquisition="log-ei"), "did you mean 'logei'"),
        (lambda: Settings(n_samples=0), "n_samples must be a whole number of at least 1, got 0"),
        (lambda: Settings(n_samples="a"), "n_samples must be a whole number of at least 1"),
        (lambda: Settings(n_initial=True), "n_initial must be a whole number of at least 0"),
        (lambda: Settings(etas=2.5), "etas must be a whole number of at least 1, got 2.5"),
        (lambda: Settings(exploit=1.5), "exploit must be a whole number of at least 0, got 1.5"),
        (lambda: Settings(seed=None), "seed must be a whole number of at least 0, got None"),
        (lambda: Settings(beta=np.inf), "beta must be finite and at least 0, got inf"),
        (lambda: Settings(resolution=-1.0), "resolution must be finite and at least 0, got -1.0"),
        (lambda: fitbo.minimize(bowl, [(0, 1)], n_calls=0), "n_calls must be a whole number"),
        (lambda: fitbo.minimize(bowl, [(0, 1)], y0=[1.0]), "y0 needs x0"),
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


MIXED = {
    "a": Real(0, 1),
    "rate": Real(1e-4, 1, log=True),
    "n": Integer(1, 9),
    "c": Categorical(["x", "y", "z"]),
}


def mixed(p: dict) -> float:
    return float(
        (p["a"] - 0.3) ** 2
        + 0.2 * np.log10(p["rate"] / 1e-2) ** 2
        + 0.05 * (p["n"] - 6) ** 2
        + {"x": 0.3, "y": 0.0, "z": 0.8}[p["c"]]
    )


def test_named_points_are_dicts_all_along() -> None:
    space = Space(MIXED, ["a + n <= 7", lambda p: p["c"] != "z"])
    study = Study(space, Settings(**SMALL))
    assert study.n_initial == 8
    for _ in range(14):
        (point,) = study.ask()
        assert study.pending == [point]
        assert study.is_pending(point)
        space.check(point)
        study.tell(point, mixed(point))
    assert len(study.X) == 14
    assert all(space.contains(p) for p in study.X)
    best, value = study.best_observed
    assert mixed(best) == value
    recommended = study.recommend()
    space.check(recommended.x)
    assert mixed(recommended.x) < np.median(study.y)
    three = study.ask(3)
    assert len(three) == 3 == len(study.pending)
    assert len({tuple(p.values()) for p in three}) == 3
    study.tell(list(three[0].values()), 1.0)  # values in order do as well
    assert len(study.pending) == 2


def test_constraints_on_arrays() -> None:
    def outside(x: np.ndarray) -> bool:
        return bool(((x - 0.3) ** 2).sum() > 0.01)

    result = fitbo.minimize(
        bowl, [(0, 1)] * 2, n_calls=12, constraints=["x0 + x1 <= 1", outside], seed=1, **SMALL
    )
    for x in [*result.x_iters, result.x_recommended]:
        assert x.sum() <= 1 + 1e-12
        assert ((x - 0.3) ** 2).sum() > 0.01 - 1e-12
    assert result.x_iters.shape == (12, 2)
    assert bowl(result.x_recommended) < 0.05


def test_a_finite_space_is_asked_once_and_then_exhausted() -> None:
    space = Space({"n": Integer(1, 4), "c": Categorical(["x", "y", "z"])}, ["n < 4 or c == 'x'"])
    study = Study(space, Settings(n_initial=3, **SMALL))
    seen = []
    for i in range(8):
        (point,) = study.ask()
        seen.append(tuple(point.values()))
        if i == 4:
            study.fail(point, "tripped")
        else:
            study.tell(point, float(point["n"]))
    assert len(study.ask(5)) == 2  # all that is left
    seen += [tuple(p.values()) for p in study.pending]
    assert sorted(seen) == sorted(tuple(p.values()) for p in space.from_cube(space.points))
    assert len(set(seen)) == 10
    with pytest.raises(fitbo.Exhausted, match="the space is exhausted: each of its 10 points"):
        study.ask()
    study.forget(study.pending[0])
    assert len(study.ask()) == 1


def fragile(study: Study, n: int) -> Study:
    for _ in range(n):
        (point,) = study.ask()
        if point["a"] > 0.6:
            study.fail(point, f"a = {point['a']:.3f}")
        else:
            study.tell(point, mixed(point))
    return study


def test_failures_are_kept_apart_from_values_and_avoided() -> None:
    study = fragile(Study(Space(MIXED), Settings(seed=1, **SMALL)), 24)
    assert len(study.y) + len(study.failures) == 24
    assert study.fit().n == len(study.y)
    assert np.isfinite(study.y).all()
    early = sum(p["a"] > 0.6 for p, _ in study.failures[:8])
    assert all(reason == f"a = {p['a']:.3f}" for p, reason in study.failures)
    assert early >= 1
    success = study.success()
    assert success is not None
    good, bad = success(study.space.to_cube([{**study.X[0], "a": a} for a in (0.2, 0.95)]))
    assert bad < 0.3 < 0.6 < good
    assert study.recommend().x["a"] < 0.7
    # At random 4 in 10 would fail; the model has 16 points to do better with.
    assert len(study.failures) - sum(1 for p in _first(study, 8) if p["a"] > 0.6) <= 3


def _first(study: Study, n: int) -> list[dict]:
    return Study(study.space, study.settings).ask(n)


def test_a_study_of_everything_is_replayed_bit_for_bit() -> None:
    """Values, failures, a point forgotten and points pending; from plain records of them."""
    space = Space(MIXED, ["a + n <= 9"])
    settings = Settings(n_initial=6, seed=5, **SMALL)
    original = fragile(Study(space, settings), 10)
    before = original.ensemble  # what the fit that comes next starts from
    forgotten, kept = original.ask(2)
    original.forget(forgotten)
    replayed = Study(space, settings, ensemble=before)
    for point, value in zip(original.X, original.y, strict=True):
        replayed.tell(dict(point), float(value))
    for point, reason in original.failures:
        replayed.fail(point, reason)
    replayed.expect(kept)
    first = original.ask()
    assert first == replayed.ask()
    for s in (original, replayed):
        s.tell(first[0], 0.5)
        fragile(s, 2)
    assert original.X == replayed.X
    assert np.array_equal(original.y, replayed.y)
    assert original.failures == replayed.failures
    assert original.pending == replayed.pending


def test_a_posterior_does_not_depend_on_what_is_pending_or_failed() -> None:
    settings = Settings(n_initial=4, **SMALL)
    quiet, busy = (run(Study(Space([(0, 1)] * 2), settings), 6) for _ in range(2))
    busy.expect([0.1, 0.1])
    busy.fail([0.9, 0.9], "tripped")
    assert np.array_equal(quiet.fit().samples.log_theta, busy.fit().samples.log_theta)


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_every_acquisition_lives_with_failures(name: str) -> None:
    study = run(Study(Space([(0, 1)] * 2), Settings(acquisition=name, n_initial=4, **SMALL)), 5)
    study.fail([0.9, 0.9], "tripped")
    study.fail([0.8, 0.95], "tripped")
    (x,) = study.ask()
    assert ((x >= 0) & (x <= 1)).all()
    assert study.success() is not None


def test_pending_points_that_are_given_back() -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=6))
    points = study.ask(4)
    study.forget(points[1])
    more = study.ask(3)
    everything = np.concatenate([study.pending])
    assert len(everything) == 6
    gaps = abs(everything[:, None] - everything).max(2) + np.eye(6)
    assert gaps.min() > 1e-6
    assert len(more) == 3
    with pytest.raises(ValueError, match="only a pending point can be forgotten"):
        study.forget([0.123, 0.456])
    # Bounds whose units leave little of the cube are no obstacle to recognising a point.
    far = Study(Space([(1e15, 1e15 + 4)]), Settings(n_initial=4))
    for x in far.ask(4):
        far.tell(x, 1.0)
    assert len(far.pending) == 0


@pytest.mark.parametrize("seed", range(3))
def test_remaining_improvement_is_what_remains(seed: int) -> None:
    """Of a bowl whose minimum is zero: the best value itself, to a quarter.

    At the points of a design: where a search ends it knows less than it happens to have reached.
    """
    settings = Settings(n_initial=15, seed=seed, deterministic=True, **SMALL)
    study = run(Study(Space([(0, 1)] * 2), settings), 15)
    assert 0.75 * study.y.min() < study.remaining() < 1.25 * study.y.min()
    study.tell([0.3, 0.3], 0.0)
    assert study.remaining() < 1e-3


def test_equal_values_say_nothing_of_what_remains() -> None:
    """A plateau of a million is no reason to stop at a tolerance of ten."""
    found = fitbo.minimize(
        lambda x: 1e6, [(0, 1)] * 2, n_calls=7, n_initial=4, tolerance=10.0, **SMALL
    )
    assert found.nfev == 7


def test_many_values_equal_to_the_lowest_leave_room_below() -> None:
    """Counts, with a wide basin of 12 and a narrower one of 0: many values equal the lowest."""

    def count(x: np.ndarray) -> float:
        wide = 4 * ((x - [0.25, 0.3]) ** 2).sum() + 0.3
        narrow = 14 * ((x - [0.8, 0.75]) ** 2).sum()
        return float(np.floor(40 * min(wide, narrow, 1.5)))

    settings = Settings(seed=0, n_initial=4)
    study = Study(Space([(0, 1)] * 2), settings)
    for x in ([0.25, 0.3], [0.2, 0.3], [0.3, 0.25], [0.28, 0.35], [0.24, 0.27], [0.0, 0.9]):
        study.tell(x, count(np.array(x)))
    study.fit()
    low, _, _ = study.eta_quantiles()
    assert np.count_nonzero(study.y == study.y.min()) > 2
    assert study.y.min() - low > 0.1


@pytest.mark.parametrize(
    "x0",
    [[0.3, 0.01, 6, "y"], [(0.3, 0.01, 6, "y")], ({"a": 0.3, "rate": 0.01, "n": 6, "c": "y"},)],
)
def test_points_to_begin_with_may_be_values_in_order(x0) -> None:
    """One or several: the function is given the dict that it expects."""
    result = fitbo.minimize(mixed, MIXED, n_calls=1, x0=x0, **SMALL)
    assert result.failures == []
    assert result.x == {"a": 0.3, "rate": 0.01, "n": 6, "c": "y"}


def test_minimize_takes_a_space_by_names() -> None:
    x0 = [{"a": 0.3, "rate": 0.01, "n": 6, "c": "y"}, {"a": 0.9, "rate": 0.5, "n": 2, "c": "z"}]
    result = fitbo.minimize(mixed, MIXED, n_calls=12, x0=x0, constraints=["n >= 2"], **SMALL)
    assert result.x_iters[:2] == x0
    assert result.fun == 0.0
    assert result.x == x0[0]
    assert all(p["n"] >= 2 for p in result.x_iters)
    known = fitbo.minimize(
        mixed, Space(MIXED), n_calls=2, x0=x0[0], y0=mixed(x0[0]), n_initial=2, **SMALL
    )
    assert known.nfev == 2
    assert len(known.func_vals) == 3
    for call, message in [
        (lambda: fitbo.minimize(mixed, MIXED, x0={"a": 0.3}), "the point has no rate, n, c"),
        (lambda: fitbo.minimize(mixed, MIXED, constraints=["q < 1"]), "cannot use 'q'"),
        (lambda: fitbo.minimize(mixed, Space(MIXED), constraints=["n < 1"]), "its own constraints"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_after_each_gain_three_evaluations_are_the_largest_improvements() -> None:
    space = Space([(0, 1)] * 2)
    options: dict[str, Any] = {"n_initial": 4, "seed": 3, "deterministic": False, **SMALL}
    study = run(Study(space, Settings(acquisition="fitbo", **options)), 4)

    def asked(**settings: Any) -> Any:
        """What another study makes of the same posterior."""
        other = Study(space, Settings(**settings, **options), _fit=study.fit())
        for x, y in zip(study.X, study.y, strict=True):
            other.tell(x, y)
        return other.ask()[0]

    for turn in range(5):
        gain = asked(acquisition="fitbo", exploit=0)
        improvement = asked(acquisition="logei")
        assert abs(gain - improvement).max() > 1e-6
        chosen = study.ask()[0]
        assert_allclose(chosen, improvement if turn % 4 else gain, atol=1e-12)
        study.tell(chosen, bowl(chosen))
    # What is pending or has failed has had its turn.
    four = Study(space, Settings(acquisition="fitbo", **options))
    for x in four.ask(4):
        four.tell(x, bowl(x))
    gain, improvement = four.ask(2)
    four.fail(gain, "broken")
    assert [four._exploits(index) for index in range(4, 9)] == [False, True, True, True, False]
    assert abs(gain - improvement).max() > 1e-6


HOSTILE = {
    "constant": [1e300] * 6,
    "one outlier": [0.3, 0.1, 1e200, 0.2, 0.4, 0.5],
    "few and an outlier": [0.3, 1e200, 0.2],
    "large": [3e299, 1e299, 2e299, 5e299, 4e299, 1.5e299],
    "smallest": [0.0, 5e-324, 0.0, 5e-324, 0.0, 0.0],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_recommendation_is_among_values_of_any_size(name: str) -> None:
    """A constant 1e300 was recommended as 1e150, and one outlier of 1e200 made -5.6e148."""
    study = Study(Space([(0, 1)]), Settings(n_samples=12, seed=0))
    values = np.array(HOSTILE[name])
    for x, y in zip(np.linspace(0.05, 0.95, len(values)), values, strict=True):
        study.tell([x], y)
    found, low = study.recommend(), np.sort(values)[: len(values) // 2 + 1]
    span = max(np.ptp(low), 1e-6 * abs(low).max(), 1e-300)
    assert low[0] - 2 * span <= found.mean <= low[-1] + 2 * span
    assert np.isfinite(found.deviation)


# --- Without noise ------------------------------------------------------------------------------


def test_in_the_region_the_regret_that_remains_is_expected_improvement() -> None:
    """One point in the whole space of its own, then two in the region as by log-EI."""
    asked = []
    for name in ("remaining", "logei"):
        settings = Settings(n_initial=4, deterministic=True, acquisition=name, **SMALL)
        study = Study(Space([(0, 1)] * 2), settings)
        for x in np.random.default_rng(0).random((4, 2)):
            study.tell(x, branin(15 * x))
        alone = study.ask()[0]
        study.forget(alone)
        study.tell([0.4, 0.2], branin(np.array([6.0, 3.0])))
        asked.append((alone, study.ask()[0]))
    (far, near), (far_ei, near_ei) = asked
    assert abs(far - far_ei).max() > 1e-4
    assert_array_equal(near, near_ei)


def test_without_noise_two_of_three_evaluations_are_local_and_the_best_is_recommended() -> None:
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=4, deterministic=True, **SMALL))
    assert [study._is_local(i) for i in range(4, 8)] == [False, True, True, False]
    run(study, 16)
    best, value = study.best_observed
    found = study.recommend()
    assert_allclose(found.x, best, rtol=1e-12)
    assert found.mean == value
    assert value < 1e-6  # a bowl is a quadratic
    low, _, high = study.minimum_quantiles()
    assert low - 1e-3 < 0.0 < high + 1e-3


def test_a_step_of_the_whole_cubes_turn_leaves_the_region_alone() -> None:
    """Where the minimum is known to eight digits one would be spent on the ninth otherwise."""
    study = Study(Space([(0, 1)] * 2), Settings(n_initial=4, deterministic=True, **SMALL))
    turns = 0
    for i in range(19):
        x = study.ask()[0]
        if i >= 4 and not study._is_local(i):
            turns += 1
            assert study._local()[1].beyond(x[None])[0]
        study.tell(x, bowl(x))
    assert turns == 5
    assert study.best_observed[1] < 1e-6


def test_where_a_region_is_all_of_the_cube_a_step_is_found_none_the_less() -> None:
    study = Study(Space([(0, 1)]), Settings(n_initial=2, deterministic=True, **SMALL))
    for x in (0.2, 0.5):
        study.tell([x], (x - 0.45) ** 2)
    model, region = study._local()
    everywhere = replace(region, half=np.full(1, 1e3))
    study._nearby = 2, model, everywhere
    assert not everywhere.beyond(np.linspace(0, 1, 9)[:, None]).any()
    assert not study._is_local(2)
    assert 0 <= study.ask()[0, 0] <= 1


def test_a_rebuilt_study_has_the_same_region() -> None:
    settings = Settings(n_initial=4, deterministic=True, **SMALL)
    study = run(Study(Space([(0, 1)] * 2), settings), 9)
    other = Study(Space([(0, 1)] * 2), settings, ensemble=study.ensemble)
    for x, y in zip(study.X, study.y, strict=True):
        other.tell(x, y)
    for _ in range(4):
        x, again = study.ask()[0], other.ask()[0]
        assert_array_equal(x, again)
        study.tell(x, bowl(x))
        other.tell(again, bowl(again))


def test_regions_are_for_reals_without_noise() -> None:
    deterministic = Settings(deterministic=True)
    assert deterministic.local == 2
    assert Settings(deterministic=False).local == 0
    assert Study(Space([(0, 1)]), deterministic)._has_regions
    assert not Study(Space({"n": Integer(0, 9)}), deterministic)._has_regions
    assert not Study(Space([(0, 1)]), Settings())._has_regions


def noisy_values(study: Study, n: int) -> Study:
    rng = np.random.default_rng(0)
    for _ in range(n):
        x = study.ask()[0]
        study.tell(x, float((x["n"] - 2) ** 2 + 0.5 * rng.standard_normal()))
    return study


def test_a_finite_space_goes_on_if_the_objective_is_noisy() -> None:
    space = Space({"n": Integer(0, 3)})
    settings = Settings(n_samples=20, n_initial=2, deterministic=False)
    study = noisy_values(Study(space, settings), 10)
    assert {x["n"] for x in study.X} == {0, 1, 2, 3}
    # Where it is low is where another value tells most.
    assert sum(x["n"] in (1, 2, 3) for x in study.X[4:]) == 6
    assert sum(x["n"] == 2 for x in study.X[4:]) >= 2
    with pytest.raises(Exhausted):
        noisy_values(Study(space, replace(settings, deterministic=True)), 5)


@pytest.mark.parametrize("replicates", [False, True])
def test_replicates_before_a_space_is_exhausted_are_a_choice(replicates: bool) -> None:
    settings = Settings(n_samples=20, n_initial=4, deterministic=False, replicates=replicates)
    rng, study = np.random.default_rng(0), Study(Space({"n": Integer(0, 15)}), settings)
    for _ in range(14):
        x = study.ask()[0]
        study.tell(x, float(abs(x["n"] - 10) + 3 * rng.standard_normal()))
    told = [x["n"] for x in study.X]
    assert (len(set(told)) < len(told)) == replicates


def test_what_is_recommended_without_noise_is_the_point_that_was_told() -> None:
    """To the last bit: from the cube it may come back rounded, and have another value."""
    settings = Settings(n_initial=4, deterministic=True, **SMALL)
    study = run(Study(Space([(-0.7, 1.3), (0.1, 0.9)]), settings), 5)
    given = [[0.1, 0.3], [1 / 3, 0.123456789], [0.7, 0.8]]
    for x in given:
        study.tell(x, -1.0 - x[0])
    assert study.recommend().x.tolist() == study.best_observed[0].tolist() == given[2]


def test_a_finite_space_goes_on_if_values_state_their_noise() -> None:
    study = Study(Space({"n": Integer(0, 2)}), Settings(n_samples=20, n_initial=3))
    for _ in range(5):
        x = study.ask()[0]
        study.tell(x, float(x["n"]), std=0.5)
    assert {x["n"] for x in study.X} == {0, 1, 2}


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("deterministic", [True, "auto"])
def test_a_minimum_in_a_corner_is_evaluated_once(d: int, deterministic: bool | str) -> None:
    """All of a region beyond the corner is the corner; one point is evaluated twice by ``auto``."""
    study = Study([(0, 1)] * d, Settings(deterministic=deterministic, **SMALL))
    run(study, 24, lambda x: float(x.sum()))
    assert len(np.unique(study.X, axis=0)) == 24 - (deterministic == "auto")
    assert study.best_observed[1] == 0.0


def test_a_region_follows_the_steps_that_were_made_in_it_whatever_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nearby: list[bool] = []
    search = Study._search

    def noted(study: Study, model: Any, region: Any, *rest: Any) -> Any:
        nearby.append(region is not None)
        return search(study, model, region, *rest)

    monkeypatch.setattr(Study, "_search", noted)
    study = Study([(0, 1)] * 2, Settings(n_initial=5, deterministic=True, **SMALL))
    chosen: list[bool] = []  # of each value whether the region was asked
    for i in range(18):
        nearby.clear()
        x = study.ask()[0]
        if i in (1, 7, 8):
            study.fail(x, "crash")
            continue
        study.tell(x, bowl(x))
        chosen.append(bool(nearby) and nearby[0])
    told_local: list[bool] = []

    def seen(X: np.ndarray, y: np.ndarray, first: int, local: Any) -> float:
        told_local.extend([False] * first + [local(i) for i in range(first, len(y))])
        return 0.1

    monkeypatch.setattr("fitbo.study.radius", seen)
    study._nearby = None
    study._local()
    assert told_local == chosen
    assert any(chosen)
