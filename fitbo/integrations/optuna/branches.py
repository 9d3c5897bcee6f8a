"""Which parameters a define-by-run objective asks for, as the trials so far show it.

Optuna knows no conditions: a parameter is there if the objective asked for it. From the complete
trials a rule is inferred for each parameter that only some of them have:

    a category c      where c was one of these choices, never where it was another
    a number n        where n was above, or below, all values without it

A rule has to agree with every complete trial. It may be wrong about what no trial has shown yet; a
parameter that is asked for nevertheless goes to the independent sampler, and the next trial knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

Space = Mapping[str, BaseDistribution]


@dataclass(frozen=True)
class Branch:
    """A parameter exists where ``parent`` does, ``in`` some choices or ``>`` or ``<`` a value."""

    parent: str
    relation: Literal["in", ">", "<"]
    values: tuple[Any, ...]

    def written(self, alias: str, encoded: Any) -> str:
        """The condition, in another name for the parent, and its values as they are there."""
        values = [encoded(value) for value in self.values]
        return f"{alias} {self.relation} {values if self.relation == 'in' else values[0]!r}"


def branches(trials: Sequence[FrozenTrial], shared: Space) -> dict[str, Branch]:
    """The parameters beyond those shared by all for which there is a rule, parents first."""
    complete = [t for t in trials if t.state == TrialState.COMPLETE]
    space: dict[str, BaseDistribution] = dict(shared)
    left: dict[str, BaseDistribution] = {}
    changing: set[str] = set()
    for trial in complete:
        for name, distribution in trial.distributions.items():
            if left.setdefault(name, distribution) != distribution:
                changing.add(name)
    left = {n: d for n, d in left.items() if n not in {*shared, *changing} and not d.single()}
    found: dict[str, Branch] = {}
    while True:
        new = {name: _rule(name, complete, space) for name in left if name not in found}
        known = {name: rule for name, rule in new.items() if rule is not None}
        if not known:
            return found
        found |= known
        space |= {name: left[name] for name in known}


def _rule(name: str, trials: Sequence[FrozenTrial], space: Space) -> Branch | None:
    """A rule that agrees with every trial; by a category if there is one, of the fewest choices."""
    order = sorted(space, key=lambda parent: _preference(space[parent]))
    return next((rule for parent in order if (rule := _by(name, parent, trials, space))), None)


def _preference(distribution: BaseDistribution) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    return float("inf")


def _by(name: str, parent: str, trials: Sequence[FrozenTrial], space: Space) -> Branch | None:
    there = [t for t in trials if parent in t.params]
    if any(name in t.params for t in trials if parent not in t.params):
        return None
    # By their internal representation, which is the index of a category's choice.
    value = space[parent].to_internal_repr
    on = {value(t.params[parent]) for t in there if name in t.params}
    off = {value(t.params[parent]) for t in there if name not in t.params}
    if not on:
        return None
    external = space[parent].to_external_repr
    if isinstance(space[parent], CategoricalDistribution):
        return None if on & off else Branch(parent, "in", tuple(external(v) for v in sorted(on)))
    if not off or min(on) > max(off):
        return Branch(parent, ">", (external(max(off)),)) if off else None
    return Branch(parent, "<", (external(min(off)),)) if max(on) < min(off) else None
