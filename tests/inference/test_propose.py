"""What the gain is blurred by, and that nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fitbo.acquisition import ACQUISITIONS, information_gain
from fitbo.inference.best import blurred
from fitbo.inference.fit import Model
from fitbo.inference.propose import indistinct, worth
from fitbo.inference.settings import Settings
from fitbo.mixture import Mixture
from fitbo.space import Integer, Real, Space
from fitbo.study import Study
from fitbo.surrogate import Standardiser, condition
from fitbo.surrogate.conditioned import knowing
from tests.mixtures import gentle

# Skewed, so that a mean is no median.
NOISE = np.array([1e-3, 2e-3, 9e-3])
GAP = np.array([0.1, 0.2, 1.5])


def known_fit() -> Model:
    """Six values in 2-D, and three samples whose noise and gap are those above."""
    rng = np.random.default_rng(0)
    X, y = rng.random((6, 2)), rng.standard_normal(6)
    scale = Standardiser.fit(y)
    theta = np.column_stack([np.full((3, 2), 0.5), np.ones(3), NOISE, GAP])
    surrogate = condition(X, scale(y), np.log(theta), kernel="rbf")
    return Model(X, y, scale, surrogate)


@pytest.mark.parametrize("resolution", [0.0, 0.3, 2.0])
def test_the_blur_is_the_mean_noise_and_the_median_gap_at_the_resolution(resolution: float) -> None:
    """mean noise + (resolution median gap)^2 = 0.004 + (0.2 resolution)^2."""
    blur = indistinct(known_fit(), Settings(resolution=resolution))
    assert_allclose(blur, 0.004 + (0.2 * resolution) ** 2, rtol=1e-12)


def test_to_blur_is_to_raise_every_variance_alike() -> None:
    mixture = gentle()
    result = blurred(mixture, 0.25)
    assert_array_equal(result.means, mixture.means)
    assert_array_equal(result.variances, mixture.variances + 0.25)
    assert_allclose(result.weights, mixture.weights, rtol=1e-14)
    assert blurred(mixture, 0.0) is mixture


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_the_gain_alone_is_blurred(name: str) -> None:
    """An improvement is one of f, however small: for the others there is nothing to blur."""
    fit, settings = known_fit(), Settings(acquisition=name)
    minima, surrogate = fit.surrogate.eta, fit.surrogate
    if name == "jes":
        surrogate = knowing(surrogate, fit.X[:3] + 0.1, np.ones(3))
    made = worth(fit, surrogate, settings, np.random.default_rng(0), minima)
    assert made.blur == (indistinct(fit, settings) if name == "fitbo" else 0.0)


def test_the_worth_is_that_of_the_blurred_mixture_of_f() -> None:
    """Of f: the samples' own noises are in none of it, so all of them have the same."""
    fit = known_fit()
    settings = Settings(entropy="quad")
    plain = worth(fit, fit.surrogate, settings, np.random.default_rng(0))
    made = replace(plain, blur=0.1)
    U = np.random.default_rng(1).random((4, 2))
    of_f = fit.surrogate.predict(U)
    expected = made.acquisition(Mixture(of_f.means, of_f.variances + 0.1))
    assert_allclose(made(U), expected, rtol=1e-12)
    value, gradient = made.value_and_grad(U)
    assert_allclose(value, expected, rtol=1e-9)
    h = 1e-4
    numeric = np.stack([(made(U + e) - made(U - e)) / (2 * h) for e in h * np.eye(2)], 1)
    assert_allclose(gradient, numeric, atol=1e-5)
    assert abs(plain(U) - expected).max() > 1e-3


def test_the_papers_fitbo_is_the_gain_of_y_by_the_linearised_samples_alone() -> None:
    settings = Settings(acquisition="fitbo-paper", n_samples=20, n_initial=4, exploit=3)
    assert (settings.etas, settings.exploit, settings.local) == (1, 0, 0)
    study = Study(Space([(0, 1)] * 2), settings)
    rng = np.random.default_rng(0)
    for x in rng.random((8, 2)):
        study.tell(x, float(np.square(x - 0.3).sum() + 0.1 * rng.standard_normal()))
    fitted, U = study.fit(), rng.random((5, 2))
    surrogate = fitted.surrogate
    f = surrogate.predict(U)
    y = Mixture(f.means, f.variances + surrogate.noise_variance, f.weights)
    expected = information_gain(y, settings.entropy)
    assert worth(fitted, surrogate, settings, rng)(U) == pytest.approx(expected)
    assert surrogate.rule == "linearised"


@pytest.mark.parametrize(
    ("name", "moments"),
    [("remaining", 2), ("remaining", 4), ("mes", 2), ("jes", 2), ("mes-marginal", 2)],
)
def test_an_acquisition_about_the_minimum_goes_on_in_regions_and_with_points_pending(
    name: str, moments: int
) -> None:
    """And the same seed gives the same points."""

    def points() -> np.ndarray:
        settings = Settings(
            acquisition=name, moments=moments, n_samples=20, deterministic=True, local=1
        )
        study = Study([(0, 1), (0, 1)], settings)
        for _ in range(5):
            X = study.ask(2)
            study.tell(X[0], float(((X[0] - 0.3) ** 2).sum()))
        return np.concatenate([study.X, study.pending])

    X = points()
    assert ((X >= 0) & (X <= 1)).all()
    assert len(np.unique(X, axis=0)) == len(X)
    assert_array_equal(X, points())


def test_where_inputs_are_integers_the_regret_that_remains_is_expected_improvement() -> None:
    """Its law has an atom at zero there; with real inputs the second rung is another."""
    chosen: dict[str, list[Any]] = {"integers": [], "reals": []}
    for kind, inputs in {"integers": Integer(0, 1000), "reals": Real(0, 1000)}.items():
        for name in ("remaining", "logei"):
            settings = Settings(acquisition=name, n_samples=20, deterministic=True, local=0)
            study = Study({"a": inputs, "b": inputs}, settings)
            for a, b in np.random.default_rng(3).integers(0, 1000, (8, 2)).tolist():
                study.tell({"a": a, "b": b}, np.sin(a / 90) + (b - 300) ** 2 / 1e5)
            chosen[kind].append(study.ask()[0])
    assert chosen["integers"][0] == chosen["integers"][1]
    assert chosen["reals"][0] != chosen["reals"][1]


def test_without_paths_max_value_entropy_search_is_about_eta() -> None:
    pytest.importorskip("GPy")
    chosen = []
    for name in ("mes", "mes-eta"):
        settings = Settings(acquisition=name, n_samples=4, surrogate="gpy", kernel="rbf")
        study = Study([(0, 1)], settings)
        for x in (0.1, 0.5, 0.9):
            study.tell([x], (x - 0.3) ** 2)
        chosen.append(study.ask()[0])
    assert_array_equal(chosen[0], chosen[1])


def test_of_a_gaussian_f_the_first_rung_is_all_there_is_of_the_ladder() -> None:
    study = Study([(0, 1)] * 2, Settings(n_samples=20, rule="linearised", deterministic=True))
    for _ in range(7):
        x = study.ask()[0]
        study.tell(x, float(((x - 0.3) ** 2).sum()))
    assert len(np.unique(study.X, axis=0)) == 7
    with pytest.raises(ValueError, match="rule must be 'moment_matched'"):
        Settings(acquisition="mes-marginal", rule="linearised")
