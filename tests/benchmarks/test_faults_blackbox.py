"""The fault run's own arithmetic: a judge that cannot say no is none."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fitbo.runs.study import seed_of

FILE = Path(__file__).parents[2] / "benchmarks" / "faults_blackbox.py"


@pytest.fixture(scope="module")
def faults() -> ModuleType:
    spec = importlib.util.spec_from_file_location("faults_blackbox", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_function_attains_its_minimum(faults: ModuleType) -> None:
    least = faults.function(0.114614, 0.555649, 0.852547, "plain")
    assert least == pytest.approx(faults.MINIMUM, abs=1e-6)


def test_three_in_ten_fail_and_each_fault_occurs(faults: ModuleType) -> None:
    fates = [faults.fate(seed_of(0, n)) for n in range(4000)]
    assert 0.27 < sum(fate is not None for fate in fates) / 4000 < 0.33
    assert set(fates) == {None, *faults.FAULTS}


Tamper = Callable[[list[dict[str, Any]]], Any]


@pytest.mark.parametrize(
    ("tamper", "unaccounted", "wrong"),
    [
        (lambda rows: None, 0, 0),
        (lambda rows: rows.pop(), 2, 0),  # asked for and lost, and the budget not spent
        (lambda rows: rows.append(rows[-1]), 2, 0),
        (lambda rows: rows[-1].update(event="failed", reason="bad luck"), 0, 1),
        (lambda rows: rows[-1].update(value=-3.0), 0, 1),
    ],
)
def test_a_journal_that_is_not_right_is_found_out(
    faults: ModuleType, tamper: Tamper, unaccounted: int, wrong: int, tmp_path: Path
) -> None:
    point = {"x": 0.1, "y": 0.5, "z": 0.8, "kind": "worse"}
    rows: list[dict[str, Any]] = []
    number = 0
    while number < 9 or faults.fate(seed_of(4, number)) is not None:  # until one succeeds, after 9
        number += 1
        fault = faults.fate(seed_of(4, number))
        end = {"event": "told", "value": faults.function(**point)}
        if fault is not None:
            end = {"event": "failed", "reason": faults.REASONS[fault]}
        rows += [{"event": "asked", "id": number, "point": point}]
        rows += [{"id": number, "point": point} | end]
    tamper(rows)
    journal = tmp_path / "study.jsonl"
    journal.write_text("\n".join(json.dumps(row) for row in [{}, *rows]) + "\n")
    result = faults.checked("fitbo", 4, journal, number)
    assert (result.unaccounted, result.wrong) == (unaccounted, wrong)
