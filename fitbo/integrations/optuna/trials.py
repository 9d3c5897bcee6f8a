"""Optuna's distributions and trials in fitbo's terms: parameters, and points of a space.

A running trial's parameters are stored only as its objective asks for them; where it will be stands
in its system attributes, as ``PROPOSED``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, TrialState

from fitbo.space import Categorical, Integer, Parameter, Real, Space

PROPOSED = "fitbo:proposed"  # system attribute: the point, in the values of our space
ALIKE = 0.01  # in every coordinate of the cube: minimisers of two posteriors of the same data
STATES = (
    TrialState.COMPLETE,
    TrialState.FAIL,
    TrialState.PRUNED,
    TrialState.RUNNING,
)


@dataclass(frozen=True)
class Codec:
    """A distribution of Optuna's as a parameter of ours, and the values there and back."""

    parameter: Parameter
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def codec(distribution: BaseDistribution) -> Codec:
    """Steps of a float become the integers that count them, and a category its choices' places."""
    match distribution:
        case FloatDistribution(low=low, high=high, step=None):
            return Codec(Real(low, high, log=distribution.log), float, float)
        case FloatDistribution(low=low, high=high, step=float(step)):
            return Codec(
                Integer(0, round((high - low) / step)),
                lambda x: round((x - low) / step),
                lambda i: float(min(low + i * step, high)),
            )
        case IntDistribution(low=low, high=high, step=step):
            return Codec(Integer(low, high, log=distribution.log, step=step), int, int)
        case CategoricalDistribution(choices=choices):
            return Codec(
                Categorical(tuple(range(len(choices)))),
                lambda x: int(distribution.to_internal_repr(x)),
                lambda k: choices[k],
            )
    raise ValueError(
        f"the distribution must be a float's, an int's or a category's: {distribution}"
    )


def others_than(study: OptunaStudy, trial: FrozenTrial) -> list[FrozenTrial]:
    """All trials but this one, as the storage has them now."""
    trials = study.get_trials(deepcopy=False, states=STATES)
    return [t for t in trials if t.number != trial.number]


def vary_beyond(
    trials: Sequence[FrozenTrial], search_space: Mapping[str, BaseDistribution]
) -> bool:
    """Whether something else than the parameters of the search space varied in these trials."""
    found = {name for t in trials for name, d in t.distributions.items() if not d.single()}
    return not found <= set(search_space)


def points_of(
    trials: Sequence[FrozenTrial], codecs: Mapping[str, Codec], space: Space
) -> set[tuple[tuple[str, Any], ...]]:
    """Where these trials are, those that are somewhere."""
    found = [point_of(trial, codecs, space) for trial in trials]
    return {tuple(point.items()) for point in found if point is not None}


def alike(space: Space, a: Any, b: Any) -> bool:
    """Whether one of the points a and b would do for both."""
    return bool(abs(space.check(a) - space.check(b)).max() < ALIKE)


def point_of(trial: FrozenTrial, codecs: Mapping[str, Codec], space: Space) -> Any:
    """Where the trial is, or None where that is not known or not of the space."""
    point: Any = trial.system_attrs.get(PROPOSED)
    if set(codecs) <= set(trial.params):
        try:
            point = {name: c.encode(trial.params[name]) for name, c in codecs.items()}
        except ValueError:
            return None
    return point if point is not None and space.contains(point) else None
