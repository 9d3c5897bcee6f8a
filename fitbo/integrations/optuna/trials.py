"""Optuna's distributions and trials in fitbo's terms: parameters, and points of a space.

A running trial's parameters are stored only as its objective asks for them; the point that it will
evaluate is in its system attributes, as ``PROPOSED``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna import Study, distributions
from optuna.trial import FrozenTrial, TrialState

from fitbo.space import Categorical, Integer, Parameter, Real, Space

PROPOSED = "fitbo:proposed"  # system attribute: the point, in the values of our space
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
    """The search space that trials share, as a space of ours."""

    codecs: Mapping[str, Codec]

    @cached_property
    def space(self) -> Space:
        return Space({name: c.parameter for name, c in self.codecs.items()})

    def decode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of the space in Optuna's values."""
        return {name: c.decode(point[name]) for name, c in self.codecs.items()}

    def point_of(self, trial: FrozenTrial) -> Any:
        """The trial's point, or None if it is unknown or outside the space."""
        point: Any = trial.system_attrs.get(PROPOSED)
        if set(self.codecs) <= set(trial.params):
            try:
                point = {name: c.encode(trial.params[name]) for name, c in self.codecs.items()}
            except ValueError:
                return None
        return point if point is not None and self.space.contains(point) else None

    def points_of(self, trials: Sequence[FrozenTrial]) -> set[tuple[tuple[str, Any], ...]]:
        """The items of the known points of these trials."""
        found = [self.point_of(trial) for trial in trials]
        return {tuple(point.items()) for point in found if point is not None}

    def alike(self, a: Any, b: Any) -> bool:
        """Whether evaluating one of the points a and b is enough."""
        return bool(abs(self.space.check(a) - self.space.check(b)).max() < ALIKE)


def others_than(study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
    """All trials but this one, as the storage has them now."""
    trials = study.get_trials(deepcopy=False, states=STATES)
    return [t for t in trials if t.number != trial.number]


def vary_beyond(trials: Sequence[FrozenTrial], names: Mapping[str, Any]) -> bool:
    """Whether these trials varied any parameter other than ``names``."""
    varied = {name for t in trials for name, d in t.distributions.items() if not d.single()}
    return not varied <= set(names)
