"""Fits: cold, grown by one value after another, restored, and of a part of many values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fitbo.inference.fit import AGE, MOST, SURVIVORS, chosen, fit
from fitbo.inference.settings import Settings
from fitbo.space import Space
from fitbo.study import Study

SETTINGS = Settings(n_initial=4, n_samples=40, entropy="mm")


def data(n: int, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).random((n, d))
    return X, np.sin(6 * X[:, 0]) + ((X - 0.4) ** 2).sum(1)


def rng(n: int) -> np.random.Generator:
    return np.random.default_rng([7, n])


def test_a_grown_fit_has_not_moved_and_weighs_its_samples() -> None:
    X, y = data(60)
    first = fit(X[:50], y[:50], SETTINGS, None, rng(50))
    assert (first.moved, first.n, first.survivors) == (50, 50, 1.0)
    grown = fit(X[:52], y[:52], SETTINGS, first.samples.ensemble, rng(52), first)
    assert (grown.moved, grown.n) == (50, 52)
    assert grown.samples is first.samples
    assert SURVIVORS <= grown.survivors < 1.0
    assert len(grown.surrogate.X_data) == 52
    assert grown.scale == first.scale


def test_the_walkers_move_when_their_last_move_is_old() -> None:
    X, y = data(60)
    last = fit(X[:48], y[:48], SETTINGS, None, rng(48))
    moves = []
    for n in range(49, 61):
        last = fit(X[:n], y[:n], SETTINGS, last.samples.ensemble, rng(n), last)
        moves.append(last.moved)
    assert all(n - moved <= max(1, AGE * n) for n, moved in zip(range(49, 61), moves, strict=True))
    assert len(set(moves)) < 12


def test_many_values_at_once_are_not_added_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(80)
    last = fit(X[:20], y[:20], SETTINGS, None, rng(20))
    monkeypatch.setattr("fitbo.inference.fit.extended", lambda *_: pytest.fail("it takes long"))
    assert fit(X, y, SETTINGS, last.samples.ensemble, rng(80), last).moved == 80


def test_the_walkers_move_when_few_samples_survive() -> None:
    """A value far below all others was predicted by none, or by few."""
    X, y = data(41)
    y[40] = y[:40].min() - 3 * np.ptp(y[:40])
    last = fit(X[:40], y[:40], SETTINGS, None, rng(40))
    assert fit(X, y, SETTINGS, last.samples.ensemble, rng(41), last).moved == 41


@pytest.mark.parametrize("more", [0, 1, 3])
def test_a_restored_fit_is_the_grown_one_to_the_last_bit(more: int) -> None:
    X, y = data(60)
    last = fit(X[:50], y[:50], SETTINGS, None, rng(50))
    ensemble = last.samples.ensemble
    for n in range(51, 51 + more):
        last = fit(X[:n], y[:n], SETTINGS, ensemble, rng(n), last)
    n = 50 + more
    restored = fit(X[:n], y[:n], SETTINGS, ensemble, rng(n))
    assert restored.moved == last.moved == 50
    for name in ("eta", "inverse_factor", "alpha"):
        assert np.array_equal(getattr(restored.surrogate, name), getattr(last.surrogate, name))
    assert restored.samples.diagnostics == last.samples.diagnostics
    new = np.random.default_rng(2).random((5, 2))
    a, b = restored.surrogate.predict(new), last.surrogate.predict(new)
    assert np.array_equal(a.means, b.means)
    assert np.array_equal(a.weights, b.weights)


def test_an_ensemble_of_another_study_is_not_restored() -> None:
    X, y = data(20)
    ensemble = fit(X, y, SETTINGS, None, rng(20)).samples.ensemble
    late = replace(ensemble, n=30)
    assert fit(X, y, SETTINGS, late, rng(20)).moved == 20


def test_an_ensemble_of_another_kernel_is_not_restored() -> None:
    """As a noisy study has it that an earlier version began."""
    X, y = data(21)
    ensemble = fit(X[:20], y[:20], SETTINGS, None, rng(20)).samples.ensemble
    found = fit(X, y, replace(SETTINGS, kernel="smooth"), ensemble, rng(21))
    assert (found.moved, found.surrogate.theta.share.shape[1]) == (21, 2)


def test_grown_and_moved_posteriors_predict_alike() -> None:
    """Weighing what was drawn before stands for drawing again."""
    X, y = data(70)
    settings = replace(SETTINGS, n_samples=200)
    last = fit(X[:64], y[:64], settings, None, rng(64))
    grown = fit(X[:68], y[:68], settings, last.samples.ensemble, rng(68), last)
    moved = fit(X[:68], y[:68], settings, None, rng(1))
    assert (grown.moved, moved.moved) == (64, 68)
    new = np.random.default_rng(3).random((200, 2))
    a = grown.scale.restore(grown.surrogate.predict(new))
    b = moved.scale.restore(moved.surrogate.predict(new))
    spread = np.sqrt(b.variance)
    assert np.median(abs(a.mean - b.mean) / spread) < 0.3
    assert 0.7 < np.median(np.sqrt(a.variance) / spread) < 1.4


def test_of_many_values_the_model_has_those_near_the_incumbents_and_an_even_part() -> None:
    X, y = data(2000)
    part = chosen(X, y)
    assert len(part) == len(set(part.tolist())) == MOST
    assert np.array_equal(part, np.sort(part))
    best = int(np.argmin(y))
    assert best in part
    distance = abs(X - X[best]).max(1)
    assert set(np.argsort(distance)[: MOST // 8].tolist()) <= set(part.tolist())
    assert y[part].max() > np.quantile(y, 0.99)
    assert np.array_equal(chosen(X[:300], y[:300]), np.arange(300))


def test_random_search_fits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fitbo.inference.belief.fit", lambda *_: pytest.fail("nobody needs a model")
    )
    study = Study(Space([(0, 1)] * 2), Settings(acquisition="random", n_initial=2))
    for _ in range(6):
        (x,) = study.ask()
        study.tell(x, float(x.sum()))
    assert len({tuple(x) for x in study.X.tolist()}) == 6


def test_marks_are_what_they_were_when_they_came_however_a_study_is_rebuilt() -> None:
    """A higher value moves what 1e250 is taken for; a value that is in a fit stays."""
    settings = Settings(n_initial=4, n_samples=24, deterministic=True)
    X = np.random.default_rng(3).random((30, 2))
    study = Study(Space([(0, 1)] * 2), settings)
    values = [1e250 if i % 7 == 3 else float(i + 1) for i in range(len(X))]
    grown = 0
    for i, (x, y) in enumerate(zip(X, values, strict=True)):
        study.tell(x, y)
        fitted = study.fit()
        if i < 8 or fitted.moved == fitted.n:
            continue
        grown += 1
        other = Study(Space([(0, 1)] * 2), settings, ensemble=study.ensemble)
        for each, value in zip(X[: i + 1], values, strict=False):
            other.tell(each, value)
        np.testing.assert_array_equal(other.fit().y, fitted.y)
        np.testing.assert_array_equal(other.fit().surrogate.alpha, fitted.surrogate.alpha)
    assert grown > 3


def test_a_long_burn_in_is_as_long_as_it_must_be_with_many_values() -> None:
    X, y = data(300)
    found = fit(X, y, replace(SETTINGS, min_burn_in=20, max_burn_in=30), None, rng(300))
    assert found.samples.diagnostics.burn_in >= 20
