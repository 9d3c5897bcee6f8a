"""The conditional benchmark: both forms of its spaces are one, and its ranks are ranks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import optuna
import pytest

from fitbo import Space

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def conditional() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("conditional", FOLDER / "conditional.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


@pytest.mark.parametrize("problem", ["svm", "mlp"])
def test_what_optuna_is_asked_for_is_what_the_space_has(
    conditional: ModuleType, problem: str
) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = Space(conditional.SPACES[problem])
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen: set[frozenset[str]] = set()
    for _ in range(60):
        point = conditional.SUGGESTED[problem](study.ask())
        space.check(point)
        seen.add(frozenset(point))
    U = space.place(np.random.default_rng(0).random((200, len(space.names))))
    assert {frozenset(point) for point in space.from_cube(U)} == seen
    assert np.isfinite(conditional.loss(problem, space.from_cube(U[0])))


def test_ranks_share_ties_and_wait_for_all(conditional: ModuleType) -> None:
    def row(method: str, seed: int, best: float) -> dict[str, object]:
        return {"problem": "svm", "method": method, "seed": seed, "best": best}

    rows = [row("a", 0, 1.0), row("b", 0, 1.0), row("a", 1, 3.0), row("b", 1, 2.0), row("a", 2, 1)]
    found = conditional.ranks(rows)
    assert found["a"].tolist() == [1.5, 2.0]
    assert found["b"].tolist() == [1.5, 1.0]
