"""The designs of ``benchmarks/constrained.py`` are those of the literature; its table is right."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import minimize

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def constrained(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("constrained")


@pytest.mark.parametrize("name", ["beam", "vessel"])
def test_the_minimiser_attains_the_minimum_and_nothing_lies_below(
    constrained: ModuleType, name: str
) -> None:
    design = constrained.DESIGNS[name]
    low, high = np.array(design.bounds).T
    value, measured = design.fun(design.minimiser)
    assert value == pytest.approx(design.minimum, rel=1e-6)
    size = np.array([1e4, 1e4, 1.0, 1.0, 1e4]) if name == "beam" else np.array([1.0, 1.0, 1e6])
    assert (np.array(constrained.excess(design, measured)) / size).max() < 1e-6

    def slack(u: np.ndarray) -> np.ndarray:
        point = low + np.clip(u, 0, 1) * (high - low)
        return -np.array(constrained.excess(design, design.fun(point)[1])) / size

    start = (np.array(design.minimiser) - low) / (high - low)
    rng = np.random.default_rng(0)
    for _ in range(5):
        found = minimize(
            lambda u: design.fun(low + np.clip(u, 0, 1) * (high - low))[0] / design.minimum,
            np.clip(start + 0.02 * rng.standard_normal(4), 0, 1),
            method="SLSQP",
            bounds=[(0, 1)] * 4,
            constraints={"type": "ineq", "fun": slack},
        )
        if found.success and slack(found.x).min() > -1e-7:
            assert found.fun > 1 - 1e-5


def test_a_run_counts_what_is_feasible_and_near(constrained: ModuleType) -> None:
    design = constrained.DESIGNS["beam"]
    values = np.array([np.inf, 3.0, np.inf, 1.80, 1.79, 1.9])
    found = constrained.summary(design, values, 1.0)
    assert found["best"] == "1.79"
    assert found["reached"] == "4"
    assert found["feasible"] == "4"
    rows = [{"problem": "beam", "method": "fitbo", "seed": "0", "budget": "6"} | found]
    assert "| beam | fitbo | 1 | 1 | 4 | 1.79, 1.79 | 1.7249 | 67% |" in constrained.table(rows)


def test_what_was_run_is_not_run_again(
    constrained: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["constrained.py", "--seeds", "1", "--budget", "9", "--problems", "vessel"]
    arguments += ["--only", "fitbo", "--output", str(tmp_path)]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", arguments)
        constrained.main()
    header, *runs = (tmp_path / "runs.csv").read_text().splitlines()
    assert header.startswith("problem,method,seed,budget,best")
    assert len(runs) == 1
