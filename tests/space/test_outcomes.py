"""Outcome constraints as text, and where they hold."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fitbo.space.constraints import ConstraintError
from fitbo.space.outcomes import (
    OutcomeConstraint,
    hold,
    lacking,
    measured,
    names_of,
    outcome_constraints,
)

HEAT = outcome_constraints(["heat <= 80", "heat >= 20", "load<=-1.5e3"])


def test_a_name_a_relation_and_a_number() -> None:
    assert [(c.name, c.sign, c.bound) for c in HEAT] == [
        ("heat", 1.0, 80.0),
        ("heat", -1.0, 20.0),
        ("load", 1.0, -1500.0),
    ]
    assert names_of(HEAT) == ["heat", "load"]
    assert OutcomeConstraint("a>=.5").excess(0.2) == pytest.approx(0.3)
    assert HEAT[0].excess(81.0) == 1.0
    assert HEAT[1].excess(81.0) == -61.0


@pytest.mark.parametrize(
    "text",
    [
        *("heat < 80", "heat == 80", "80 >= heat", "heat <= 80 <= 90", "heat <= ", "<= 3"),
        *("heat <= limit", "2 * heat <= 3", "heat <= 1e", "heat <= nan", "heat <= inf"),
        *("heat <= 1_0", "__import__('os') <= 3", "heat <= 80; 1", "", "h eat <= 2", "heat <= ٣"),
        *("heat <= 1e400", 3, None),
    ],
)
def test_anything_else_is_an_error_of_one_sentence(text: Any) -> None:
    with pytest.raises(ConstraintError, match=r"^outcome constraint .* must"):
        OutcomeConstraint(text)


def test_a_single_text_is_not_a_list() -> None:
    with pytest.raises(ConstraintError, match="must be a list of texts"):
        outcome_constraints("heat <= 80")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"heat": 80.0, "load": -1500.0}, True),
        ({"heat": 80.1, "load": -1500.0}, False),
        ({"heat": 19.0, "load": -1500.0}, False),
        ({"heat": 50.0}, False),
        ({"heat": 50.0, "load": None}, False),
        ({"heat": 50.0, "load": math.nan}, False),
    ],
)
def test_what_is_not_known_does_not_hold(values: dict[str, Any], expected: bool) -> None:
    assert hold(HEAT, values) is expected


def test_what_is_lacking_is_named_with_what_is_there() -> None:
    assert lacking(HEAT, {"heat": math.nan, "load": 1}) is None
    assert "no value of 'load'" in str(lacking(HEAT, {"heat": 1}))
    assert "did you mean 'laod'" in str(lacking(HEAT, {"heat": 1, "laod": 2}))
    assert lacking((), {}) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heat": 1, "load": 2, "hat": 3}, "unknown name 'hat'; did you mean 'heat'"),
        ({"heat": 1}, "no value of 'load'.*NaN if it could not be measured"),
        (None, "no value of 'heat'"),
        ({"heat": "hot", "load": 2}, "constraints.heat must be a number, got 'hot'"),
    ],
)
def test_what_is_told_has_every_name_and_no_other(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measured(HEAT, values)


def test_none_and_infinity_are_not_known() -> None:
    found = measured(HEAT, {"heat": None, "load": -math.inf})
    assert all(map(math.isnan, found.values()))
