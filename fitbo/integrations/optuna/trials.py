"""Optuna's distributions and trials in fitbo's terms: parameters, and points of a space.

A running trial's parameters are stored only as its objective asks for them; the point that it will
evaluate is in its system attributes, as ``PROPOSED``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from optuna import Study, distributions
from optuna.distributions import BaseDistribution
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial, TrialState

from fitbo.integrations.optuna.branches import Branch, branches
from fitbo.space import Categorical, Integer, Parameter, Real, Space

PROPOSED = "fitbo:proposed"  # system attribute: the point, in the values of our space
CONSTRAINTS = "constraints"  # system attribute of Optuna's: what constraints_func returned
ALIKE = 0.01  # in every coordinate of the cube: minimisers of two posteriors of the same data
STATES = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.RUNNING)


@dataclass(frozen=True)
class Codec:
    """A distribution of Optuna's as a parameter of ours, with values translated both ways."""

    parameter: Parameter
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def codec(distribution: distributions.BaseDistribution) -> Codec:
    """A float with a step becomes the count of steps, and a category the index of its choice."""
    match distribution:
        case distributions.FloatDistribution(low=low, high=high, step=None):
            return Codec(Real(low, high, log=distribution.log), float, float)
        case distributions.FloatDistribution(low=low, high=high, step=float(step)):
            return Codec(
                Integer(0, round((high - low) / step)),
                lambda x: round((x - low) / step),
                lambda i: float(min(low + i * step, high)),
            )
        case distributions.IntDistribution(low=low, high=high, step=step):
            return Codec(Integer(low, high, log=distribution.log, step=step), int, int)
        case distributions.CategoricalDistribution(choices=choices):
            return Codec(
                Categorical(tuple(range(len(choices)))),
                lambda x: int(distribution.to_internal_repr(x)),
                lambda k: choices[k],
            )
    raise ValueError(f"expected a distribution of floats, ints or categories, got {distribution}")


@dataclass(frozen=True)
class Common:
    """The search space of the trials, as a space of ours: what all share, and what branches have.

    With conditions our names are p0, p1, ..., which can be written in an expression.
    """

    codecs: Mapping[str, Codec]
    conditions: Mapping[str, Branch] = field(default_factory=dict)

    @cached_property
    def _alias(self) -> dict[str, str]:
        return {name: f"p{i}" if self.conditions else name for i, name in enumerate(self.codecs)}

    @cached_property
    def space(self) -> Space:
        parameters = {}
        for name, codec in self.codecs.items():
            parameters[self._alias[name]] = codec.parameter
            rule = self.conditions.get(name)
            if rule is not None:
                encode = self.codecs[rule.parent].encode
                when = rule.written(self._alias[rule.parent], encode)
                parameters[self._alias[name]] = replace(codec.parameter, when=when)
        return Space(parameters)

    def decode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of the space in Optuna's names and values."""
        there = {name: point[p] for name, p in self._alias.items() if p in point}
        return {name: self.codecs[name].decode(value) for name, value in there.items()}

    def point_of(self, trial: FrozenTrial) -> Any:
        """The trial's point, or None if it is unknown or outside the space."""
        ours = [self._proposed(trial)]
        if all(name in trial.params or name in self.conditions for name in self.codecs):
            there = {name: c for name, c in self.codecs.items() if name in trial.params}
            try:
                point = {self._alias[n]: c.encode(trial.params[n]) for n, c in there.items()}
            except ValueError:
                return None
            # A trial that is under way, or was broken off, may not have asked for all of it.
            ours = [point, *(ours if trial.state != TrialState.COMPLETE else [])]
        return next((x for x in ours if x is not None and self.space.contains(x)), None)

    def proposal(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of the space by Optuna's names, as ``PROPOSED`` has it."""
        return {name: point[p] for name, p in self._alias.items() if p in point}

    def _proposed(self, trial: FrozenTrial) -> Any:
        proposed: Any = trial.system_attrs.get(PROPOSED)
        if proposed is None or not set(proposed) <= set(self.codecs):
            return None
        return {self._alias[name]: value for name, value in proposed.items()}

    def points_of(self, trials: Sequence[FrozenTrial]) -> set[tuple[tuple[str, Any], ...]]:
        """The items of the known points of these trials."""
        found = [self.point_of(trial) for trial in trials]
        return {tuple(point.items()) for point in found if point is not None}

    def alike(self, a: Any, b: Any) -> bool:
        """Whether evaluating one of the points a and b is enough."""
        return bool(abs(self.space.check(a) - self.space.check(b)).max() < ALIKE)


def shared_by(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that all trials share, with more than one value."""
    # Not by IntersectionSearchSpace, which caches by an id that all studies in memory share.
    return {n: d for n, d in intersection_search_space(list(trials)).items() if not d.single()}


def search_space(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that all trials share, and those for which a rule says when they exist."""
    space = shared_by(trials)
    rules = branches(trials, space)
    known = {n: d for t in trials for n, d in t.distributions.items() if n in rules}
    return space | {name: known[name] for name in rules}


def common_of(trials: Sequence[FrozenTrial], space: Mapping[str, BaseDistribution]) -> Common:
    """The space of these parameters, with the rules that the trials show."""
    shared = {name: d for name, d in shared_by(trials).items() if name in space} or space
    rules = {n: rule for n, rule in branches(trials, shared).items() if n in space}
    return Common({n: codec(d) for n, d in space.items() if n in shared or n in rules}, rules)


def others_than(study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
    """All trials but this one, as the storage has them now."""
    trials = study.get_trials(deepcopy=False, states=STATES)
    return [t for t in trials if t.number != trial.number]


def vary_beyond(trials: Sequence[FrozenTrial], names: Mapping[str, Any]) -> bool:
    """Whether these trials varied any parameter other than ``names``."""
    varied = {name for t in trials for name, d in t.distributions.items() if not d.single()}
    return not varied <= set(names)


def checked(broken: Any) -> tuple[float, ...]:
    """What a constraints_func returned, as numbers; or an error, which costs no value."""
    try:
        numbers = tuple(float(value) for value in broken)
    except (TypeError, ValueError):
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"constraints_func must return finite numbers, got {broken!r:.80}")
    return numbers


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """What the trial says of its constraints: of constraints_func, and of ``set_constraint``."""
    attributes, prefix = trial.system_attrs, f"{CONSTRAINTS}:"
    found = {str(i): value for i, value in enumerate(attributes.get(CONSTRAINTS) or ())}
    named = {key: value for key, value in attributes.items() if key.startswith(prefix)}
    return {name: float(value) for name, value in (found | named).items()}
