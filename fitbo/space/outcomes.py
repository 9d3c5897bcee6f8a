"""Constraints on outcomes: ``temperature <= 80``, about a number that each evaluation measures.

Unlike a constraint of the space it is not known before an evaluation whether it holds. It is a
name, ``<=`` or ``>=``, and a number; nothing is evaluated. Several may be about one name.

    c  (n,)  excess, by how much a value breaks the constraint: value - bound, or bound - value
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fitbo.checks import assign, nearest
from fitbo.space.constraints import LARGEST, ConstraintError

FORM = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]{0,59})\s*(<=|>=)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*",
    re.ASCII,
)


@dataclass(frozen=True)
class OutcomeConstraint:
    """The constraint that ``text`` writes, or a ``ConstraintError``."""

    text: str
    name: str = field(init=False)
    sign: float = field(init=False)  # 1 for <=, -1 for >=
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        found = FORM.fullmatch(self.text) if isinstance(self.text, str) else None
        if found is None:
            raise ConstraintError(
                f"outcome constraint {self.text!r:.80} must be a name, <= or >=, and a number, "
                f"such as 'temperature <= 80'"
            )
        bound = float(found[3])
        if abs(bound) > LARGEST:
            raise ConstraintError(f"outcome constraint {self.text!r:.80} must have a finite bound")
        assign(self, name=found[1], sign=1.0 if found[2] == "<=" else -1.0, bound=bound)

    def excess(self, value: float) -> float:
        """c of a value of the name: not positive where the constraint holds; NaN if not known."""
        return self.sign * (value - self.bound)


def outcome_constraints(texts: Iterable[str]) -> tuple[OutcomeConstraint, ...]:
    """The constraints that these texts write; a ``ConstraintError`` about the first wrong one."""
    if isinstance(texts, str):
        raise ConstraintError(f"outcome constraints must be a list of texts, got {texts!r:.80}")
    return tuple(OutcomeConstraint(text) for text in texts)


def names_of(constraints: Iterable[OutcomeConstraint]) -> list[str]:
    """What evaluations have to measure, each once."""
    return list(dict.fromkeys(constraint.name for constraint in constraints))


def hold(constraints: Sequence[OutcomeConstraint], values: Mapping[str, float | None]) -> bool:
    """Whether all hold; false where one is not known."""
    known = [values.get(constraint.name) for constraint in constraints]
    pairs = zip(constraints, known, strict=True)
    return all(value is not None and each.excess(value) <= 0 for each, value in pairs)


def lacking(constraints: Sequence[OutcomeConstraint], values: Mapping[str, object]) -> str | None:
    """What there is to say if a name has no value, not even NaN; None if all have."""
    for name in names_of(constraints):
        if name not in values:
            there = ", ".join(map(repr, values)) or "none"
            hint = nearest(name, list(values)) or f"; given are {there}"
            return f"there is no value of {name!r}, which an outcome constraint is about{hint}"
    return None


def measured(
    constraints: Sequence[OutcomeConstraint], values: Mapping[str, float | None] | None
) -> dict[str, float]:
    """The values by name as numbers, NaN where not known; a ValueError if they are not those."""
    given, names = dict(values or {}), names_of(constraints)
    for name in given:
        if name not in names:
            hint = f"; expected {', '.join(names)}" if names else "; the study has none"
            hint = nearest(str(name), names) or hint
            raise ValueError(f"constraints has the unknown name {name!r:.60}{hint}")
    wrong = lacking(constraints, given)
    if wrong is not None:
        raise ValueError(f"constraints: {wrong}; NaN if it could not be measured")
    found: dict[str, float] = {}
    for name in names:
        try:
            value = math.nan if given[name] is None else float(given[name])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                f"constraints.{name} must be a number, got {given[name]!r:.60}"
            ) from None
        found[name] = value if math.isfinite(value) else math.nan
    return found
