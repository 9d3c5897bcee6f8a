"""``FitboSampler``: fitbo as a sampler of Optuna, with its storages, dashboard and pruners.

    study = optuna.create_study(sampler=FitboSampler(seed=0), storage="sqlite:///study.db")
    study.optimize(objective, n_trials=60)

Every trial's point comes from a ``fitbo.study.Study`` made afresh from the trials in the storage,
so that any number of processes may work on one Optuna study:

- complete trials are told, with the sign of the direction; one whose value is not finite failed;
- failed trials are failures, and where they are is avoided;
- running trials are pending, and so are pruned ones: somebody has been there, and there is no value
  that could be compared with the others'. A sampler writes the point it proposes into the trial's
  system attributes, for a running trial's parameters are stored only as the objective asks for
  them, and then looks whether another process has proposed the same meanwhile;
- trials without all parameters of the common search space, or with values outside it, do not count.

The first trial of all, and parameters that not every trial has, go to ``independent_sampler``. If
there are such parameters, a point of the common space does not decide a trial's value alone and is
worth another visit: where that space is finite, ``drawn_again`` chooses among all of its points. So
it does in any finite space whose points have all been tried.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from fitbo.inference.settings import Settings
from fitbo.inference.threads import one_thread
from fitbo.integrations.optuna.trials import (
    PROPOSED,
    Codec,
    alike,
    codec,
    others_than,
    point_of,
    points_of,
    vary_beyond,
)
from fitbo.mixture import Array
from fitbo.sampling import Ensemble
from fitbo.search.candidates import exhausted
from fitbo.search.mixed import first_points
from fitbo.space import Space
from fitbo.study import STREAMS, Study

ATTEMPTS = 4  # at a point that no other process has chosen at the same time, or one like it
FEW = 1024  # points of a finite space: among more a new one is much like one tried before
logger = logging.getLogger("optuna.fitbo")  # Optuna's child: its verbosity and handlers hold


class FitboSampler(BaseSampler):
    """Samples by fitbo's acquisition over the parameters that all trials share.

    Only those are modelled: a conditional parameter, or one whose range changes, is left to the
    independent sampler, and branches are compared by their mean, not by the best they could reach.

    seed                        of all randomness; drawn if None
    n_startup_trials            trials before the model chooses; but for the first they are a Sobol
                                design
    independent_sampler         for whatever is not in the common search space; uniform if None
    warn_independent_sampling   whether to say so, once for each parameter, after the startup
    settings                    fields of ``fitbo.Settings``, as ``acquisition="logei"``
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        **settings: Any,
    ) -> None:
        if n_startup_trials < 1:
            raise ValueError(f"n_startup_trials must be at least 1, got {n_startup_trials}")
        for name in ("seed", "n_initial"):
            if name in settings:
                raise ValueError(f"{name} is the sampler's own: it is not one of the settings")
        if seed is not None and not (isinstance(seed, Integral) and 0 <= seed < 2**32):
            raise ValueError(f"seed must be None or an integer from 0 to 2**32 - 1, got {seed!r}")
        self._settings = Settings(n_initial=1, **settings)
        self._n_startup = n_startup_trials
        self._seed = _drawn_seed() if seed is None else seed
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._warns = warn_independent_sampling
        self._warned: set[str] = set()
        # The walkers of the last posterior, to start the next from; nothing depends on them but
        # the time that the next takes and its draws.
        self._ensemble: tuple[Space, Ensemble] | None = None

    def reseed_rng(self) -> None:
        """A new seed, for a copy of this sampler in another thread or process."""
        self._seed = _drawn_seed()
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: OptunaStudy, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that all trials so far have had, and that have more than one value."""
        _refuse_several_objectives(study)
        # Afresh, for what IntersectionSearchSpace keeps is one study's, and it knows a study by an
        # id that all studies in memory share.
        common = intersection_search_space(study.get_trials(deepcopy=False))
        return {name: d for name, d in common.items() if not d.single()}

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point, for the parameters of ``search_space``."""
        _refuse_several_objectives(study)
        if not search_space:
            return {}
        codecs = {name: codec(distribution) for name, distribution in search_space.items()}
        space = Space({name: c.parameter for name, c in codecs.items()})
        others = others_than(study, trial)
        for _ in range(ATTEMPTS):
            ours = self._replayed(space, codecs, others, study.direction, trial.number)
            point = self._next(ours, trial.number, vary_beyond(others, search_space))
            # Two processes that choose at one time do not see each other's choice. Each says what
            # it chose and only then looks: of two that chose alike at least one sees the other.
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, point)
            seen = points_of(others, codecs, space)
            others = others_than(study, trial)
            unseen = points_of(others, codecs, space) - seen
            if not any(alike(space, point, dict(new)) for new in unseen):
                break
        return {name: c.decode(point[name]) for name, c in codecs.items()}

    def sample_independent(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value of a parameter that the search space has not got."""
        _refuse_several_objectives(study)
        if self._warns and param_name not in self._warned:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(complete) >= self._n_startup:
                self._warned.add(param_name)
                logger.warning(
                    f"{param_name} is drawn by {type(self._independent).__name__}: FitboSampler "
                    f"models what all trials share, and not every trial has it with this range; "
                    f"warn_independent_sampling=False silences this"
                )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._independent.after_trial(study, trial, state, values)

    def _next(self, ours: Study, number: int, repeats: bool) -> dict[str, Any]:
        """The design's point of this number at first, then the model's choice.

        repeats   whether a point is worth another visit while others have had none
        """
        space, taken, n_told = ours.space, ours.taken, len(ours.y)
        full = exhausted(space, taken)
        if n_told + len(ours.failures) < self._n_startup or n_told == 0:
            # By number and not by count: two processes at work at a time have two numbers.
            if full:
                return dict(space.from_cube(space.points[number % len(space.points)]))
            design, seed = self._settings.design, [self._seed, STREAMS["design"]]
            u = first_points(space, design, self._n_startup, number, taken, seed)
            return dict(space.from_cube(u))
        if full or (repeats and space.size <= FEW):
            point = space.from_cube(drawn_again(ours))
        else:
            point = ours.ask()[0]
        if ours.ensemble is not None:
            self._ensemble = space, ours.ensemble
        return dict(point)

    def _replayed(
        self,
        space: Space,
        codecs: Mapping[str, Codec],
        trials: Sequence[FrozenTrial],
        direction: StudyDirection,
        number: int,
    ) -> Study:
        """fitbo's study as the trials have it."""
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        ours = Study(space, replace(self._settings, seed=seed))
        if self._ensemble is not None and self._ensemble[0] == space:
            ours.ensemble = self._ensemble[1]
        sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
        for trial in trials:
            x = point_of(trial, codecs, space)
            if x is None:
                continue
            if trial.state == TrialState.COMPLETE:
                value = trial.value
                if value is None or not math.isfinite(value):
                    ours.fail(x, f"trial {trial.number} has the value {value}")
                else:
                    ours.tell(x, sign * value)
            elif trial.state == TrialState.FAIL:
                ours.fail(x, f"trial {trial.number} failed")
            else:
                ours.expect(x)
        return ours


@one_thread
def drawn_again(ours: Study) -> Array:
    """The point of a finite space, tried or not, that is lowest in a draw of the posterior, (dim,).

    Thompson's rule: what is surely worse is left alone, and what may be better is tried again, also
    by several processes at once. A point takes part with its probability of success. The draw is
    of the marginals, a point's value independent of its neighbours': it errs towards exploring.
    """
    U, rng, success = ours.space.points, ours.search_rng(), ours.success()
    if success is not None:
        succeeds = rng.random(len(U)) < success(U)
        U = U[succeeds] if succeeds.any() else U
    return U[np.argmin(ours.fit().surrogate.predict(U).sample(rng, 1))]


def _refuse_several_objectives(study: OptunaStudy) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"FitboSampler minimises or maximises one objective, got {len(study.directions)}: "
            f"use another sampler for several"
        )


def _drawn_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])
