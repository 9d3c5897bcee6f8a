"""Parameters that exist under a condition: ``Real(0, 1, when="optimiser == 'sgd'")``.

A condition is an expression (see ``constraints``) in the names of other parameters. A parameter is
active where its condition is true and all the parameters that this names are active. An inactive
one is absent from the point; in the cube its coordinates have one fixed value, ``ASLEEP``, wherever
it is inactive, so that nothing the model sees depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fitbo.mixture import Array
from fitbo.space.constraints import NUMBER, ConstraintError, Expression, Kind
from fitbo.space.parameters import Categorical, Parameter

ASLEEP = 0.5  # as far from one end as from the other
NOWHERE = 0.0  # of a category with several coordinates: as far from each choice


@dataclass(frozen=True)
class Rule:
    """When the parameter of this index is active; ``needs`` are those that its condition names."""

    index: int
    condition: Expression
    needs: tuple[int, ...]

    def __call__(self, columns: Mapping[str, Any], active: np.ndarray) -> np.ndarray:
        """Where it is active, (n,), given the columns of values and what is active, (n, P)."""
        return self.condition(columns) & active[:, self.needs].all(1)


def kinds_of(names: Sequence[str], parameters: Sequence[Parameter]) -> dict[str, Kind]:
    """What an expression may do with each name: the choices of a category, or a number."""
    return {
        name: p.choices if isinstance(p, Categorical) else NUMBER
        for name, p in zip(names, parameters, strict=True)
    }


def rules_of(names: Sequence[str], parameters: Sequence[Parameter]) -> tuple[Rule, ...]:
    """The conditions of a space, in an order in which each comes after those that it needs."""
    found: dict[int, Rule] = {}
    kinds = kinds_of(names, parameters)
    for i, (name, parameter) in enumerate(zip(names, parameters, strict=True)):
        if parameter.when is None:
            continue
        others = {other: kind for other, kind in kinds.items() if other != name}
        try:
            condition = Expression(parameter.when, others)
        except ConstraintError as error:
            text = str(error).removeprefix("constraint ")
            raise ConstraintError(f"{name}: when {text}") from None
        found[i] = Rule(i, condition, needed(condition, names))
    ordered: list[Rule] = []
    while found:
        free = [rule for rule in found.values() if not set(rule.needs) & set(found)]
        if not free:
            cycle = ", ".join(names[i] for i in found)
            raise ConstraintError(f"the conditions of {cycle} depend on one another: drop one")
        ordered += free
        for rule in free:
            del found[rule.index]
    return tuple(ordered)


def needed(expression: Expression, names: Sequence[str]) -> tuple[int, ...]:
    """The indices of the parameters that an expression names."""
    return tuple(i for i, name in enumerate(names) if name in expression.names)


def activity(rules: Iterable[Rule], columns: Mapping[str, Any], n: int) -> np.ndarray:
    """Which parameters are active at n points, (n, P); columns of inactive ones hold anything."""
    active = np.ones((n, len(columns)), dtype=bool)
    for rule in rules:
        active[:, rule.index] = rule(columns, active)
    return active


def asleep(parameters: Sequence[Parameter]) -> Array:
    """The coordinates of the cube where every parameter is inactive, (dim,)."""
    return np.concatenate(
        [np.full(p.width, ASLEEP if p.width == 1 else NOWHERE) for p in parameters]
    )


def check_existing(
    rules: Iterable[Rule],
    names: Sequence[str],
    columns: Mapping[str, Any],
    values: Mapping[str, Any],
) -> None:
    """An error unless a point's values have a conditional parameter exactly where that exists."""
    active = np.ones((1, len(names)), dtype=bool)
    for rule in rules:
        name, exists = names[rule.index], bool(rule(columns, active)[0])
        active[0, rule.index] = exists
        condition = f"{rule.condition.text!r:.80}"
        if exists and name not in values:
            raise ValueError(f"the point has no {name}, which exists when {condition}")
        if not exists and name in values:
            raise ValueError(f"{name} must be left out: it only exists when {condition}")
