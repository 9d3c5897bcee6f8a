"""Beside a point whose value is pending there is less to be had, by any acquisition function."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fitbo import Settings, Study
from fitbo.acquisition.baselines import ACQUISITIONS
from fitbo.inference.fit import M
from fitbo.inference.pending import IMPROVING, believing
from fitbo.inference.propose import shown
from fitbo.mixture import Array

SMALL = {"n_samples": 40, "max_burn_in": 40, "deterministic": True}
WITHOUT_WORTH = {"random", "thompson"}  # of these the one knows nothing, the other a mean


def told(**settings: object) -> Study:
    study = Study([(0, 1)] * 2, Settings(**(SMALL | settings)))  # type: ignore[arg-type]
    for x in np.random.default_rng(5).random((9, 2)):
        study.tell(x, float(((x - 0.3) ** 2).sum() + 0.1 * np.sin(9 * x[0])))
    return study


@pytest.mark.parametrize("acquisition", sorted(set(ACQUISITIONS) - WITHOUT_WORTH))
def test_beside_a_pending_point_there_is_less_to_be_had(acquisition: str) -> None:
    """On average over four posteriors: where f* is drawn, its draws differ."""
    changes = []
    for seed in range(4):
        study = told(acquisition=acquisition, local=0, seed=seed)
        x, fit = study.ask(), study.fit()
        believed = believing(fit, x, study.acting, np.array([True]))
        before, after = (
            shown(each, study.acting, np.random.default_rng(1), study.space)(
                np.clip(x + 0.002, 0, 1)
            )
            for each in (fit, believed)
        )
        changes.append(after[0] - before[0])
    assert np.mean(changes) < 0


@pytest.mark.parametrize("acquisition", ["fitbo", "mes-marginal", "lcb", "logei"])
def test_points_of_a_batch_are_apart(acquisition: str) -> None:
    study = told(acquisition=acquisition, local=0, exploit=0)
    pairs = combinations(study.ask(4), 2)
    assert min(abs(a - b).max() for a, b in pairs) > 0.02


@pytest.mark.parametrize("acquisition", IMPROVING)
def test_what_will_hardly_succeed_is_not_what_there_is_to_improve_upon(acquisition: str) -> None:
    study = told(acquisition=acquisition)
    grid = np.random.default_rng(2).random((500, 2))
    lowest = grid[[np.argmin(study.fit().surrogate.predict(grid).mean)]]
    for likely, lower in ((True, True), (False, False)):
        fit = believing(study.fit(), lowest, study.acting, np.array([likely]))
        assert (np.min(fit.surrogate.target(fit.best)) < fit.best) == lower


def test_what_a_study_lets_count_of_its_pending_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one that will hardly succeed nor, for the region's model, one that lies beyond it."""
    counted: list[list[bool]] = []

    def noted(model: M, pending: Array, settings: Settings, likely: np.ndarray) -> M:
        counted.append(likely.tolist())
        return believing(model, pending, settings, likely)

    monkeypatch.setattr("fitbo.study.believing", noted)
    study, far = told(), [0.99, 0.99]
    near = list(study.best_observed[0] + 0.001)
    study.expect(near)
    study.expect(far)
    assert study._is_local(len(study.taken))
    assert study._local()[1].beyond(np.array([near, far])).tolist() == [False, True]
    study.ask()
    assert counted[0] == [True, False]

    counted.clear()
    study = told(local=0)
    for x in ([0.95, 0.95], [0.9, 0.98], [0.98, 0.9], [0.93, 0.9], [0.9, 0.92]):
        study.fail(x, "tripped")
    study.expect(near)
    study.expect(far)
    study.ask()
    assert counted == [[True, False]]
