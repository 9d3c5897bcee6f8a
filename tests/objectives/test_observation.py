"""What comes with a value: its standard deviation, and what outcome constraints are about."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitbo.objectives import CommandObjective, Failed, PythonObjective, Value, evaluate
from fitbo.objectives.outcome import Observation, observed

MODEL = """\
def f(x):
    return {"value": x, "std": 0.5, "constraints": {"heat": 3 * x, "gone": float("nan")}}
"""


def test_a_number_and_a_mapping() -> None:
    assert observed(3) == Observation(3.0)
    assert observed({"value": np.float64(2)}) == Observation(2.0)
    found = observed({"value": 1, "std": np.float32(0.5), "constraints": {"a": np.array([2.0])}})
    assert found == Observation(1.0, 0.5, {"a": 2.0})
    assert observed({"value": 1, "std": math.nan}) == Observation(1.0)
    assert observed({"value": 1, "std": None, "constraints": None}) == Observation(1.0)
    unknown = observed({"value": 1, "constraints": {"a": None, "b": math.inf}}).constraints
    assert all(map(math.isnan, unknown.values()))


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ({"value": 1, "sdt": 2}, "unknown key 'sdt'; did you mean 'std'?"),
        ({"std": 2}, "no key 'value'; its keys are"),
        ({"value": 1, "std": -2}, "std must be at least 0, got -2"),
        ({"value": 1, "std": "2"}, "expected a number, got str"),
        ({"value": math.nan, "std": 2}, "the value is nan"),
        ({"value": 1, "constraints": [1]}, "constraints must be a mapping"),
        ({"value": 1, "constraints": {"a": "hot"}}, "expected a number, got str"),
    ],
)
def test_what_is_wrong_is_a_failure_of_one_line(returned: Any, reason: str) -> None:
    with pytest.raises(Failed) as error:
        observed(returned)
    assert reason in str(error.value)


@pytest.mark.parametrize("isolate", [False, True])
def test_a_function_by_its_name(tmp_path: Path, isolate: bool) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    objective = PythonObjective("./model.py:f", isolate=isolate, base=tmp_path)
    outcome = evaluate(objective, {"x": 2.0}, 0, tmp_path / "scratch")
    assert (outcome.value, outcome.std) == (2.0, 0.5)
    assert outcome.constraints["heat"] == 6.0
    assert math.isnan(outcome.constraints["gone"])


@pytest.mark.parametrize(
    ("value", "printed", "expected"),
    [
        (Value(stdout="json"), '{"value": 2, "std": 0.1}', (2.0, 0.1, {"value": 2.0, "std": 0.1})),
        (Value(stdout="json", key="loss"), '{"loss": 2, "std": 7}', (2.0, None, None)),
        (Value(stdout="json", key="loss"), '{"loss": {"value": 2, "std": 7}}', (2.0, 7.0, None)),
        (
            Value(stdout="json", key="loss"),
            '{"loss": 2, "heat": 81.5, "unit": "K", "ok": true, "none": null}',
            (2.0, None, {"heat": 81.5, "loss": 2.0}),
        ),
        (
            Value(stdout="json"),
            '{"value": 2, "constraints": {"heat": 81.5}}',
            (2.0, None, {"heat": 81.5}),
        ),
    ],
)
def test_further_keys_of_a_program_s_json(
    tmp_path: Path, value: Value, printed: str, expected: tuple[Any, ...]
) -> None:
    braces = printed.replace("{", "{{").replace("}", "}}")
    command = (sys.executable, "-c", f"print({braces!r})", "{x}")
    objective = CommandObjective(command, value=value)
    outcome = evaluate(objective, {"x": 2.0}, 0, tmp_path / "scratch")
    assert outcome.reason is None
    assert (outcome.value, outcome.std) == expected[:2]
    for name, number in (expected[2] or {}).items():
        assert outcome.constraints[name] == number
    assert not {"unit", "ok"} & set(outcome.constraints)
