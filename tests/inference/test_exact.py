"""A point evaluated twice tells whether there is noise."""

from __future__ import annotations

import numpy as np
import pytest

from fitbo.inference.exact import repeated, verdict
from fitbo.inference.settings import NO_NOISE, Settings
from fitbo.mixture import Array
from fitbo.space import Space
from fitbo.study import Study

A, B, C = (np.array([v]) for v in (0.1, 0.2, 0.3))
SMALL = {"n_samples": 20, "n_initial": 4, "max_burn_in": 20}


@pytest.mark.parametrize(
    ("points", "values", "expected"),
    [
        ([A, B], [1.0, 2.0], (False, 0)),
        ([A, B, A], [1.0, 2.0, 1.0], (True, 3)),
        ([A, B, A], [1.0, 2.0, 1.0 + 1e-15], (False, 0)),
        ([A, B, A, C], [1.0, 1.0, 1.0, 2.0], (False, 0)),  # so coarse that it may be chance
        ([A, B, A, C], [1.0, 2.0, 1.0, 1.0], (True, 3)),  # a tie that came later
        ([A, B, A, C, C], [1.0, 2.0, 1.0, 3.0, 4.0], (False, 5)),
    ],
)
def test_equal_values_at_one_point_say_that_there_is_no_noise(
    points: list[Array], values: list[float], expected: tuple[bool, int]
) -> None:
    assert verdict(points, values) == expected


def test_a_repetition_is_of_the_same_point_to_the_last_bit() -> None:
    assert repeated([A, B, A.copy()])
    assert not repeated([A, B, A + 1e-15])


def value(x: Array, noise: float, rng: np.random.Generator) -> float:
    return float(np.square(x - 0.3).sum()) + noise * float(rng.standard_normal())


def told(noise: float, n: int, **options: object) -> Study:
    study, rng = Study(Space([(0, 1)] * 2), Settings(**SMALL, **options)), np.random.default_rng(1)  # type: ignore[arg-type]
    for _ in range(n):
        x = study.ask()[0]
        study.tell(x, value(x, noise, rng))
    return study


def again(study: Study, **options: object) -> Study:
    """A study that has only been told the values of another."""
    fresh = Study(study.space, Settings(**SMALL, **options))  # type: ignore[arg-type]
    for x, y in zip(study.X, study.y, strict=True):
        fresh.tell(x, y)
    return fresh


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_best_of_the_design_is_asked_for_once_more_and_no_other_point(noise: float) -> None:
    study = told(noise, 7)
    best = int(np.argmin(study.y[:4]))
    assert (study.X[4] == study.X[best]).all()
    assert len(np.unique(study.X, axis=0)) == 6


def test_without_noise_the_study_goes_on_as_one_that_was_told_so() -> None:
    study = again(told(0.0, 6))
    said = again(study, deterministic=True)
    assert (study.ask()[0] == said.ask()[0]).all()
    assert study.recommend().mean == study.y.min()
    assert study.fit().surrogate.noise_variance.max() < 1e-9


def test_with_noise_it_is_inferred_and_there_is_no_region() -> None:
    study = again(told(0.1, 6))
    said = again(study, deterministic=False)
    assert (study.ask()[0] == said.ask()[0]).all()
    assert study.fit().surrogate.noise_variance.max() > 1e-6


def test_a_fit_made_before_it_was_known_is_forgotten() -> None:
    study = told(0.0, 4)
    study.fit()
    assert study.ensemble is not None
    assert study.ensemble.n == 4
    x = study.ask()[0]
    study.tell(x, value(x, 0.0, np.random.default_rng(1)))
    thetas = study.fit().surrogate.theta, again(study).fit().surrogate.theta
    assert (thetas[0].lengthscales == thetas[1].lengthscales).all()


def test_a_repetition_that_fails_is_not_asked_for_again() -> None:
    study = told(0.0, 4)
    x = study.ask()[0]
    study.fail(x, "the machine was off")
    assert (study.ask()[0] != x).any()


def test_pending_repetitions_are_not_doubled() -> None:
    study = told(0.0, 4)
    points = study.ask(3)
    assert len(np.unique(np.concatenate([study.X, points]), axis=0)) == 6


def test_what_auto_means_for_the_settings() -> None:
    assert Settings().noise is None
    assert Settings().local is None
    assert Settings(deterministic=True).noise == NO_NOISE
    with pytest.raises(ValueError, match="deterministic must be True, False or 'auto', got 'yes'"):
        Settings(deterministic="yes")
