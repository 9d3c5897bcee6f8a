"""``minimize`` and ``maximize`` with what comes with a value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fitbo

QUICK: dict[str, Any] = {"n_samples": 20, "n_initial": 5, "max_burn_in": 20}


def cost(x: Any) -> dict[str, Any]:
    return {"value": float(x.sum()), "std": 0.01, "constraints": {"sum": float(x.sum())}}


def limited(fun: Any = cost, **more: Any) -> Any:
    options = QUICK | {"n_calls": 10, "seed": 3, "outcome_constraints": ["sum >= 0.8"]} | more
    return fitbo.minimize(fun, [(0, 1)] * 2, **options)


def test_the_result_is_feasible_and_says_how_likely(tmp_path: Path) -> None:
    result = limited(journal=tmp_path / "run.jsonl")
    assert result.success
    assert 0.8 <= result.fun < 1.0
    assert min(result.func_vals) < 0.8
    assert result.feasible >= 0.9
    assert "feasible with" in str(result)
    assert list(result.to_dataframe().columns) == ["x0", "x1", "value", "sum", "reason"]
    again = limited(journal=tmp_path / "run.jsonl", n_calls=12)
    whole = limited(n_calls=12)
    assert again.x_iters.tolist() == whole.x_iters.tolist()
    with pytest.raises(ValueError, match="outcome_constraints"):
        limited(journal=tmp_path / "run.jsonl", outcome_constraints=["sum >= 0.9"])


def test_maximise_has_its_own_sign() -> None:
    options: dict[str, Any] = QUICK | {"n_calls": 10, "seed": 3}
    result = fitbo.maximize(cost, [(0, 1)] * 2, outcome_constraints=["sum <= 1.2"], **options)
    assert 1.0 < result.fun <= 1.2
    assert max(result.func_vals) > 1.2


def test_where_nothing_is_feasible_the_result_says_so() -> None:
    result = limited(outcome_constraints=["sum >= 3"])
    assert not result.success
    assert result.x is None
    assert math.isnan(result.fun)
    assert "the outcome constraints hold at no point evaluated" in result.message
    assert result.x_recommended.sum() > 1.5
    assert len(result.func_vals) == 10


def test_the_noise_of_single_values_reaches_the_study() -> None:
    result = limited()
    assert np.allclose(result.study.stds, 0.01)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"outcome_constraints": ["sum > 3"]}, "must be a name, <= or >=, and a number"),
        ({"outcome_constraints": "sum >= 3"}, "must be a list of texts"),
        ({"x0": [[0.5, 0.5]], "y0": [1.0]}, "y0 must be left out with outcome_constraints"),
        ({"noise_std": 0}, "noise_std must be positive"),
    ],
)
def test_bad_arguments_are_one_sentence(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        limited(**more)


def test_a_function_that_forgets_a_constraint_is_stopped() -> None:
    result = limited(lambda x: float(x.sum()))
    assert not result.success
    assert result.nfev == 3
    assert "no value of 'sum'" in result.message
