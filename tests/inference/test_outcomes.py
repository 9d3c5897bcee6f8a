"""Outcome constraints: their models, the weight of an acquisition, studies that respect them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from fitbo import Settings, Study
from fitbo.acquisition.feasibility import Weighted, learn
from fitbo.inference.outcomes import (
    FINEST,
    LEVEL,
    NOTHING,
    Feasible,
    learn_outcomes,
    scales,
    violation,
)
from fitbo.space import Space
from fitbo.surrogate.hyperparameters import default_prior
from fitbo.surrogate.plain import PlainPosterior, Process
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET
from tests.surrogate.problems import central_difference

CUBE = Space([(0, 1)] * 2)
QUICK = Settings(n_samples=20, n_initial=5, max_burn_in=20)
EXACT = Settings(n_samples=20, n_initial=5, max_burn_in=20, deterministic=True)


def data(n: int = 25, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points, and two excesses: the first holds left of 0.6, the second below a parabola."""
    U = np.random.default_rng(seed).random((n, 2))
    return U, np.stack([100 * (U[:, 0] - 0.6), U[:, 1] - 0.9 + (U[:, 0] - 0.5) ** 2], axis=1)


def noise(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape)


def feasible(n: int = 25, failed: bool = False) -> Feasible:
    U, c = data(n)
    models = learn_outcomes(U, c + 0.05 * noise(c.shape), QUICK, [0])
    gone = np.array([[0.1, 0.1], [0.15, 0.1], [0.1, 0.2]])
    return Feasible(models, learn(CUBE, U, gone) if failed else None)


def test_the_plain_posterior_is_that_of_dense_algebra_and_its_gradient_of_differences() -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(3)
    X, z = rng.random((10, 2)), rng.standard_normal(10)
    prior = default_prior(2)
    log_theta = prior.location + 0.3 * rng.standard_normal((3, 5))
    density = PlainPosterior(X, z, "matern52")
    values, slopes = density.value_and_grad(log_theta)
    assert_allclose(values, density(log_theta), rtol=1e-9)
    for j, theta in enumerate(np.exp(log_theta)):
        a = np.sqrt(5 * (((X[:, None] - X) / theta[:2]) ** 2).sum(-1))
        K = theta[2] * ((1 + a + a * a / 3) * np.exp(-a) + NUGGET * np.eye(10)) + MEAN_VARIANCE
        K += theta[3] * np.eye(10)
        expected = multivariate_normal.logpdf(z, np.zeros(10), K) + prior(log_theta[j : j + 1])[0]
        assert_allclose(values[j], expected, rtol=1e-9)
        new = rng.random((4, 2))
        found = Process.condition(X, z, log_theta[j : j + 1], "matern52").predict(new)
        b = np.sqrt(5 * (((new[:, None] - X) / theta[:2]) ** 2).sum(-1))
        k = theta[2] * (1 + b + b * b / 3) * np.exp(-b) + MEAN_VARIANCE
        assert_allclose(found.m[:, 0], k @ np.linalg.solve(K, z), rtol=1e-8)
        variance = theta[2] + MEAN_VARIANCE - np.vecdot(k, np.linalg.solve(K, k.T).T)
        assert_allclose(found.v[:, 0], variance, rtol=1e-6)
    for i in range(5):
        step = 1e-5 * np.eye(5)[i]
        expected = (density(log_theta + step) - density(log_theta - step)) / 2e-5
        assert_allclose(slopes[:, i], expected, rtol=1e-5, atol=1e-6)


def test_the_probability_is_the_mean_over_thetas_and_the_product_over_constraints() -> None:
    chance = feasible()
    U = np.random.default_rng(1).random((6, 2))
    expected = np.ones(6)
    for each in chance.constraints:
        m, v, *_ = each.process.predict(U)
        expected *= norm.cdf((each.bound - m) / np.sqrt(v + FINEST)).mean(1)
    assert_allclose(chance(U), expected, rtol=1e-10)


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("reference", [None, 0.0])
def test_the_weight_and_its_gradient(failed: bool, reference: float | None) -> None:
    chance = feasible(failed=failed)
    U = np.random.default_rng(2).random((40, 2))
    U = U[chance(U) > 1e-6][:12]
    assert len(U) == 12
    weighted = Weighted(Slanted(), chance, reference)
    value, slope = weighted.value_and_grad(U)
    # Variances of a ten-millionth of the prior's are differences, rounded in either way.
    assert_allclose(weighted(U), value, rtol=1e-7)
    expected = central_difference(weighted, U, 1e-6)
    assert_allclose(slope, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())
    p = chance.probability(U)
    if reference is None and not failed:
        assert_allclose(value, Slanted()(U) + np.log(p), rtol=1e-7)
    if failed:
        assert (chance(U) < p).all()


class Slanted:
    def __call__(self, U: np.ndarray) -> np.ndarray:
        return 1 + U @ [0.5, -0.25]

    def value_and_grad(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self(U), np.tile([0.5, -0.25], (len(U), 1))


def test_far_from_the_bound_the_logarithm_is_finite_and_leads_back() -> None:
    U = np.random.default_rng(0).random((12, 2))
    models = learn_outcomes(U, 1e6 * (U[:, :1] + 0.5), QUICK, [0])  # holds nowhere
    new = np.random.default_rng(1).random((20, 2))
    value, slope = Weighted(NOTHING, Feasible(models), None).value_and_grad(new)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert value.max() < -1000
    assert new[np.argmax(value), 0] < 0.2


def test_the_models_know_where_constraints_hold() -> None:
    chance, (U, c) = feasible(40), data(400, seed=9)
    truth = (c <= 0).all(1)
    assert ((chance(U) > 0.5) == truth).mean() > 0.95
    assert chance.acceptable(U[chance(U) >= LEVEL]).all()


def test_the_scales_keep_the_order_and_the_bound_and_state_their_jacobians() -> None:
    c = np.array([-3.0, 1e9, 0.0, 0.2, -40.0])
    first, second = scales(c)
    for z, bound, _ in (first, second):
        assert (np.argsort(z) == np.argsort(c)).all()
        assert_allclose(z[2], bound)
    assert abs(first.z).max() < 3
    for i in (0, 3, 4):  # dz/dc by differences, of one value among all, times the median of |c|
        moved = c[i] + np.array([-1e-6, 1e-6])
        logs = np.sign(moved) * np.log1p(abs(moved) / 3.0)
        spread = (first.z[4] - first.z[0]) / (np.log1p(1.0) - np.log1p(40 / 3))
        assert_allclose(3.0 * np.diff(logs) / 2e-6 * spread, np.exp(first.log_slope[i]), rtol=1e-5)
        straight = (second.z[1] - second.z[2]) / 1e9
        assert_allclose(3.0 * straight, np.exp(second.log_slope[i]), rtol=1e-9)
    for constant in (np.zeros(3), np.full(3, 7.0)):
        for z, bound, log_slope in scales(constant):
            assert np.isfinite([*z, bound, *log_slope]).all()
            assert (z <= bound).all() == (constant[0] <= 0)


def test_a_linear_constraint_stays_as_it_is_and_one_of_decades_does_not() -> None:
    """A jacobian that was left out, or of the other sign, would choose the same for both."""
    U = np.random.default_rng(4).random((40, 2))
    straight, steep = U[:, :1] - 0.3, np.sinh(12 * (U[:, :1] - 0.3))
    for c, logarithm in ((straight, False), (steep, True)):
        (model,) = learn_outcomes(U, c, EXACT, [0])
        z = model.process.surrogate.covariance.X[:, 0]
        first, second = scales(c[:, 0])
        assert_allclose(z, U[:, 0])
        assert model.bound == (first if logarithm else second).bound


def test_what_is_not_known_is_left_out_and_counts_as_broken() -> None:
    U, c = data(10)
    c[3, 0] = np.nan
    c[:, 1] = np.nan
    (model,) = learn_outcomes(U, c, EXACT, [0])
    assert len(model.process.surrogate.X_data) == 9
    assert (violation(c) == np.inf).all()
    broken = violation(np.array([[-1.0, -1.0], [2.0, -1.0], [np.nan, -1.0]]))
    assert broken[0] == 0 < broken[1] < broken[2] == np.inf


def disc(x: Any) -> dict[str, Any]:
    """The least of x + y where 1 <= |x, y| <= 1.6: -1.6 sqrt 2, on a circle."""
    r = float(np.hypot(*x))
    return {"value": float(x[0] + x[1]), "constraints": {"r": r}}


RING = ["r <= 1.6", "r >= 1"]


def told(study: Study, n: int) -> Study:
    for _ in range(n):
        (x,) = study.ask()
        found = disc(x)
        study.tell(x, study.sign * found["value"], constraints=found["constraints"])
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("settings", [QUICK, EXACT])
def test_a_study_finds_the_best_feasible_point(direction: str, settings: Settings) -> None:
    study = Study([(-2, 2)] * 2, settings, direction=direction, outcome_constraints=RING)
    told(study, 22)
    x, best = study.best_observed
    assert 1 <= np.hypot(*x) <= 1.6
    assert study.sign * best == study._values[study._best() or 0]
    assert study.sign * best < -1.6 * 2**0.5 + 0.1
    assert not study.feasible.all()
    assert min(study._values) < study.sign * best - 0.1  # a lower one is infeasible, and was kept
    found = study.recommend()
    assert found.feasible is not None
    assert found.feasible >= LEVEL
    assert 0.97 <= np.hypot(*found.x) <= 1.63
    assert study.sign * found.mean < -2.0
    assert 0 <= study.remaining() < 1


def test_a_rebuilt_study_asks_for_the_same_to_the_bit() -> None:
    one = told(Study([(-2, 2)] * 2, QUICK, outcome_constraints=RING), 9)
    two = Study([(-2, 2)] * 2, QUICK, outcome_constraints=RING, ensemble=one.ensemble)
    for x, y in zip(one.X, one.y, strict=True):
        two.tell(x, y, constraints=disc(x)["constraints"])
    assert one.ask().tolist() == two.ask().tolist()


def test_while_nothing_is_feasible_the_probability_alone_decides() -> None:
    study = Study([(0, 1)] * 2, EXACT, outcome_constraints=["c <= 0"])
    for x in np.random.default_rng(1).random((8, 2)):
        study.tell(x, 100 * x[0], constraints={"c": 1.5 - x.sum() / 2})  # y rises towards c = 0
    (x,) = study.ask()
    assert x.sum() > 1.8
    assert study.remaining() == np.inf
    with pytest.raises(ValueError, match="needs a point where all outcome constraints hold"):
        _ = study.best_observed
    found = study.recommend()
    assert found.feasible is not None
    assert found.x.sum() > 1.8


def test_failures_and_constraints_work_together() -> None:
    """Evaluations fail right of 0.5 and the constraint holds above 0.5: left and above remains."""
    study = Study([(0, 1)] * 2, QUICK, outcome_constraints=["c >= 0.5"])
    asked = []
    for _ in range(18):
        (x,) = study.ask()
        asked.append(x[0])
        if x[0] > 0.5:
            study.fail(x, "too far")
        else:
            study.tell(x, (x[0] - 0.25) ** 2 + x[1], constraints={"c": x[1]})
    assert sum(first <= 0.5 for first in asked[-6:]) >= 5
    _, best = study.best_observed
    assert best < 0.55
    assert study.recommend().x[0] <= 0.5


@pytest.mark.parametrize("acquisition", ["remaining", "mes", "lcb", "ei", "random", "thompson"])
def test_every_acquisition_takes_them(acquisition: str) -> None:
    settings = Settings(n_samples=20, n_initial=5, max_burn_in=20, acquisition=acquisition)
    study = told(Study([(-2, 2)] * 2, settings, outcome_constraints=RING), 8)
    assert len(study.y) == 8


def test_pending_points_and_mixed_spaces() -> None:
    from fitbo import Categorical, Integer, Real

    space = {"x": Real(0, 1), "n": Integer(1, 5), "c": Categorical(["a", "b"])}
    study = Study(space, QUICK, outcome_constraints=["size <= 3"])
    for _ in range(7):
        (p,) = study.ask()
        study.tell(p, p["x"] - p["n"], constraints={"size": p["n"] + p["x"]})
    points = study.ask(2)
    assert points[0] != points[1]
    assert study.best_observed[0]["n"] <= 3


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (None, "no value of 'r'"),
        ({"r": 1, "s": 2}, "unknown name 's'"),
        ({"r": "wide"}, "constraints.r must be a number"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_entered(constraints: Any, message: str) -> None:
    study = Study([(-2, 2)] * 2, QUICK, outcome_constraints=RING)
    (x,) = study.ask()
    with pytest.raises(ValueError, match=message):
        study.tell(x, 1.0, constraints=constraints)
    assert len(study.y) == 0
    assert len(study.pending) == 1
    with pytest.raises(ValueError, match="unknown name 'r'; the study has none"):
        Study([(0, 1)], QUICK).tell([0.5], 1.0, constraints={"r": 1})


def test_a_nan_is_told_and_does_not_count_as_feasible() -> None:
    study = Study([(-2, 2)] * 2, QUICK, outcome_constraints=RING)
    study.tell([0.1, 0.1], -9.0, constraints={"r": np.nan})
    study.tell([1.0, 0.5], 1.5, constraints={"r": 1.1})
    assert study.best_observed[1] == 1.5
    assert study.y.tolist() == [-9.0, 1.5]


def test_a_constraint_never_measured_leaves_the_probability_unsaid() -> None:
    study = Study([(0, 1)] * 2, EXACT, outcome_constraints=["t <= 0", "u <= 0"])
    for x in np.random.default_rng(2).random((8, 2)):
        study.tell(x, float(x.sum()), constraints={"t": -1.0, "u": np.nan})
    assert study.recommend().feasible is None
    study.tell([0.9, 0.9], 1.8, constraints={"t": -1.0, "u": -1.0})
    assert study.recommend().feasible is not None
