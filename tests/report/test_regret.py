"""Journals in, medians and quartiles out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.report.history import Run, campaign_labels, group, load
from fitbo.report.regret import (
    FLOOR,
    curve,
    held,
    log10,
    over_runs,
    quantile_band,
    quantiles,
    seconds_curve,
    summarise,
)


def write_run(
    root: Path,
    regrets: Sequence[float | None],
    *,
    campaign: str = "demo",
    problem: str = "branin",
    method: str = "FITBO",
    seed: int = 0,
    budget: int | None = None,
    initial: int = 2,
    minimum: float = 0.25,
) -> Path:
    """A journal with these immediate regrets, and their running minima as simple ones."""
    header = {
        "format": 1,
        "fitbo": "0.1.0",
        "campaign": campaign,
        "problem": {"label": problem, "name": problem, "dim": 2, "minimum": minimum},
        "method": {"label": method, "acquisition": "fitbo"},
        "seed": seed,
        "budget": budget or len(regrets),
        "initial": {"design": "sobol", "n": initial},
        "versions": {"python": "3.12.0", "numpy": "2.4.0"},
    }
    lines: list[dict[str, Any]] = [header]
    best = None
    for n, regret in enumerate(regrets, 1):
        if regret is not None:
            best = regret if best is None else min(best, regret)
        modelled = n > initial and best is not None
        lines.append(
            {
                "n": n,
                "x": [0.1, 0.2],
                "y": None if regret is None else minimum + regret,
                "f": None if regret is None else minimum + regret,
                "x_recommended": [0.1, 0.2],
                "f_recommended": None if regret is None else minimum + regret,
                "simple_regret": best,
                "immediate_regret": regret,
                "eta": [minimum + q for q in (-2, -1, -0.5, 0, 0.5)] if modelled else None,
                "mcmc": {"acceptance": 0.4} if modelled else None,
                "seconds": {
                    "mcmc": 0.5 + seed if modelled else 0.0,
                    "search": 0.25 if modelled else 1e-4,
                    "objective": 9.0,
                },
            }
        )
    places = [re.sub(r"\W+", "-", label) for label in (campaign, problem, method)]
    path = root.joinpath(*places) / f"{seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def runs_of(root: Path, *regrets: Sequence[float | None], **options: Any) -> list[Run]:
    for seed, values in enumerate(regrets):
        write_run(root, values, seed=seed, **options)
    return load([root])


def test_a_run_is_what_its_journal_says(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [4.0, 1.0, 2.0, 0.5], budget=5)
    assert (run.campaign, run.problem, run.method, run.seed) == ("demo", "branin", "FITBO", 0)
    assert (run.budget, run.initial, run.minimum, run.complete) == (5, 2, 0.25, False)
    assert_allclose(run.immediate, [4, 1, 2, 0.5])
    assert_allclose(run.simple, [4, 1, 1, 0.5])
    assert_allclose(run.seconds, [np.nan, np.nan, 0.75, 0.75])
    assert np.isnan(run.eta[:2]).all()
    assert_allclose(run.eta[2], [-1.75, -0.75, -0.25, 0.25, 0.75])


def test_a_budget_that_has_grown_is_that_of_all_runs(tmp_path: Path) -> None:
    """Their headers say what it was; another problem, or campaign, has its own."""
    write_run(tmp_path, [3.0, 2.0, 1.0, 0.5], seed=0, budget=2)  # gone on
    write_run(tmp_path, [3.0, 2.0], seed=1, budget=2)  # not yet
    write_run(tmp_path, [3.0], seed=2, budget=5)  # begun since
    write_run(tmp_path, [3.0, 2.0], problem="ackley", budget=2)
    write_run(tmp_path, [3.0, 2.0], campaign="other", budget=2)
    found = {(run.campaign, run.problem, run.seed): run for run in load([tmp_path])}
    assert [found["demo", "branin", seed].budget for seed in range(3)] == [5, 5, 5]
    assert found["demo", "ackley", 0].complete
    assert found["other", "branin", 0].complete
    (tmp_path / "demo" / "branin" / "FITBO" / "2.jsonl").unlink()
    runs = load([tmp_path / "demo" / "branin"])
    assert [run.complete for run in runs] == [True, False]
    assert [(row.runs, row.complete) for row in summarise(group(runs))] == [(2, 1)]
    # One that was stopped on its way to a larger one says so in its rows.
    path = tmp_path / "demo" / "branin" / "FITBO" / "0.jsonl"
    *lines, last = path.read_text().splitlines()
    last = json.dumps({**json.loads(last), "budget": 9})
    path.write_text("\n".join([*lines, last, ""]))
    assert [run.budget for run in load([tmp_path / "demo" / "branin"])] == [9, 9]


def test_a_torn_line_is_dropped_and_a_journal_without_header_or_rows_ignored(
    tmp_path: Path,
) -> None:
    path = write_run(tmp_path, [3.0, 2.0, 1.0], seed=0)
    path.write_text(path.read_text()[:-20])
    write_run(tmp_path, [], seed=1, budget=3)
    (path.parent / "2.jsonl").write_text('{"format": 1, "camp')
    (run,) = load([tmp_path])
    assert len(run) == 2
    assert not run.complete


def test_failed_evaluations(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [None, 3.0, None, 1.0])
    assert_allclose(run.immediate, [np.inf, 3, 3, 1])
    assert_allclose(run.simple, [np.inf, 3, 3, 1])


def test_quartiles_of_the_logarithm(tmp_path: Path) -> None:
    """Five seeds: order statistics; the even case interpolates logarithms, a geometric mean."""
    runs = runs_of(tmp_path, *([10.0 ** (k - 3), 10.0**-k] for k in (3, 1, 5, 2, 4)))
    c = curve(runs)
    assert_allclose(c.median, [0, -3])
    assert_allclose(c.low, [-1, -4])
    assert_allclose(c.high, [1, -2])
    assert_allclose(c.n, [1, 2])
    assert_allclose(curve(runs[:2]).median[0], np.mean([log10(r.immediate[0]) for r in runs[:2]]))


def test_quantiles_are_numpys_and_take_infinities() -> None:
    values = np.random.default_rng(0).standard_normal((7, 4))
    q = (0.05, 0.25, 0.5, 0.9, 1.0)
    assert_allclose(quantiles(values, q), np.quantile(values, q, axis=0))
    assert_allclose(quantiles([1.0, 2.0, np.inf, np.inf]), [1.75, np.inf, np.inf])
    assert_allclose(quantiles([1.0, 2.0, np.inf]), [1.5, 2, np.inf])
    assert_allclose(quantiles([3.0]), [3, 3, 3])


def test_zero_regret_is_floored() -> None:
    assert_allclose(log10([0.0, -1e-14, FLOOR / 2, 1e-3]), [*[np.log10(FLOOR)] * 3, -3])


def test_ragged_ends_are_not_carried_forward() -> None:
    series = [np.array([0.0, -1, -2, -3]), np.array([0.0, -2, -4]), np.array([5.0])]
    c = over_runs(series)
    assert_allclose(c.n, [1, 2, 3])  # at n = 4 one run of three is fewer than half
    assert_allclose(c.count, [3, 2, 2])
    assert_allclose(c.median, [0, -1.5, -3])  # the run that stopped at 5 says nothing of n = 2
    assert c.runs == 3
    assert_allclose(over_runs(series[:2]).median[-1], -3)  # one of two is half: the curve goes on
    assert len(over_runs(series[:2]).n) == 4


def test_eta_and_seconds_over_seeds(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, *[[1.0] * 4] * 3)
    band = quantile_band(runs, "eta")
    assert np.isnan(quantile_band(runs)).all()
    assert np.isnan(band[:2]).all()
    assert_allclose(band[3], [-1.75, -0.75, -0.25, 0.25, 0.75])
    assert_allclose(seconds_curve(runs), [np.nan, np.nan, 1.75, 1.75])


def test_quantiles_of_the_minimum_hold_until_the_next() -> None:
    unknown, known = [np.nan] * 2, [1.0, 2.0]
    values = np.array([unknown, known, unknown, [3.0, 4.0], unknown])
    assert_allclose(held(values), [unknown, known, known, [3, 4], [3, 4]])
    assert len(held(values[:0])) == 0


def test_the_final_table(tmp_path: Path) -> None:
    for seed, last in enumerate([1e-4, 1e-2, 1.0]):
        short = seed == 2
        regrets = [2.0, 5.0, last] if short else [2.0, 2.0, 5.0, last]
        write_run(tmp_path, regrets, seed=seed, budget=4, initial=len(regrets) - 1)
    write_run(tmp_path, [2.0, 0.0], method="Random", initial=2)
    fitbo, random = summarise(group(load([tmp_path])))
    assert (fitbo.problem, fitbo.method, fitbo.runs, fitbo.complete) == (
        "branin",
        "FITBO",
        3,
        2,
    )
    assert_allclose(fitbo.immediate, [1e-3, 1e-2, 1e-1])
    assert_allclose(fitbo.simple, [1e-3, 1e-2, 1e-1])
    assert_allclose(fitbo.success, 2 / 3)
    assert_allclose(fitbo.seconds, 1.75)
    assert_allclose(random.immediate, [FLOOR] * 3)
    assert random.success == 1.0
    assert np.isnan(random.seconds)


def test_campaigns_are_told_apart(tmp_path: Path) -> None:
    write_run(tmp_path, [1.0], campaign="one")
    assert list(group(load([tmp_path]))["branin"]) == ["FITBO"]
    write_run(tmp_path, [1.0], campaign="two")
    both = group(load([tmp_path / "one", tmp_path / "two", tmp_path]))  # each journal once
    assert {m: len(r) for m, r in both["branin"].items()} == {"one / FITBO": 1, "two / FITBO": 1}


def test_campaigns_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for side in "ab":
        write_run(tmp_path / side / "results", [1.0], campaign="same")
    runs = load([tmp_path])
    assert list(campaign_labels(runs).values()) == ["a/results/same", "b/results/same"]
    assert list(group(runs)["branin"]) == ["a/results/same / FITBO", "b/results/same / FITBO"]


def test_scratch_is_a_label_as_any_other(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [1.0, 0.5], method="scratch")
    assert run.method == "scratch"


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"results must be an existing folder, got '.*nowhere'"):
        load([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match=r"results must hold journals .* found none in"):
        load([tmp_path])
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "other.jsonl").write_text('{"key": 1}\n{"n": 1}\n')
    with pytest.raises(ValueError, match=r"other.jsonl:1: format must be 1 or 2, and is missing"):
        load([tmp_path])
