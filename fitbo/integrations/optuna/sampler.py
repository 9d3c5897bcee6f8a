"""``FitboSampler``: fitbo as a sampler of Optuna, with its storages, dashboard and pruners.

    study = optuna.create_study(sampler=FitboSampler(seed=0), storage="sqlite:///study.db")
    study.optimize(objective, n_trials=60)

Each point comes from a ``fitbo.Study`` rebuilt from the trials in the storage, so that any number
of processes can work on one Optuna study:

- complete trials are told, in the study's direction; a value that is not finite is a failure;
- failed trials are failures, and their neighbourhood is avoided;
- running trials are pending, and so are pruned ones, which have no comparable value;
- trials without all parameters of the search space, or with values outside it, are ignored.

The search space has the parameters that all trials share, and those of branches: which choice of
another parameter brings one into being is inferred from the trials (``branches``). The first trial,
and parameters for which no such rule is found, go to ``independent_sampler``. If there are such
parameters, a point of the search space does not determine a trial's value and is worth another
visit: if that space is finite, ``drawn_again`` chooses among all of its points. It also does so in
any finite space whose points have all been tried.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from fitbo.checks import whole
from fitbo.inference.settings import Settings
from fitbo.inference.threads import one_thread
from fitbo.integrations.optuna.trials import (
    CONSTRAINTS,
    PROPOSED,
    Common,
    checked,
    common_of,
    constraints_of,
    others_than,
    search_space,
    vary_beyond,
)
from fitbo.mixture import Array
from fitbo.sampling import Ensemble
from fitbo.search.candidates import exhausted
from fitbo.search.mixed import first_points
from fitbo.space import Space
from fitbo.study import STREAMS, Study

ATTEMPTS = 4  # to find a point unlike any that another process chooses at the same time
FEW = 1024  # points of a finite space: among more, a new one is much like one tried before
logger = logging.getLogger("optuna.fitbo")  # a child of Optuna's: its verbosity and handlers hold


class FitboSampler(BaseSampler):
    """Samples by fitbo's acquisition function over the parameters that the trials have shown.

    Conditional parameters are modelled where a rule says when they exist; one whose range changes,
    or without a rule, is left to the independent sampler.

    Outcome constraints are those of Optuna: what ``constraints_func`` returns for a trial, or what
    the objective gives to ``trial.set_constraint``, holds where it is not positive.

    seed                        the seed of all randomness; drawn if None
    n_startup_trials            trials before the model chooses; after the first, a Sobol design
    independent_sampler         for parameters outside the search space; uniform if None
    warn_independent_sampling   whether to warn of those, once per parameter, after the startup
    constraints_func            called with each trial that has a value, for numbers that are not
                                positive where it is feasible
    settings                    fields of ``fitbo.Settings``, such as ``acquisition="logei"``
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        **settings: Any,
    ) -> None:
        whole("n_startup_trials", n_startup_trials, least=1)
        if "n_initial" in settings:
            raise ValueError("n_initial is not a setting of this sampler: give n_startup_trials")
        if seed is not None and not (isinstance(seed, Integral) and 0 <= seed < 2**32):
            raise ValueError(f"seed must be None or an integer from 0 to 2**32 - 1, got {seed!r}")
        # No trial is repeated to see whether there is noise, unless that is asked for.
        self._settings = Settings(n_initial=1, **{"deterministic": False} | settings)
        self._n_startup = n_startup_trials
        self._seed = _seed() if seed is None else seed
        self._independent = independent_sampler or RandomSampler(seed=seed)
        if constraints_func is not None and not callable(constraints_func):
            raise ValueError(f"constraints_func must be a function, got {constraints_func!r:.60}")
        self._constraints_func = constraints_func
        self._warns = warn_independent_sampling
        self._warned: set[str] = set()
        # The walkers of the last posterior, where the next chains start.
        self._ensemble: tuple[Space, Ensemble] | None = None

    def reseed_rng(self) -> None:
        """A new seed, for a copy of this sampler in another thread or process."""
        self._seed = _seed()
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters of which the trials so far show when they exist."""
        _refuse_several_objectives(study)
        return search_space(study.get_trials(deepcopy=False))

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point, for the parameters of ``search_space``."""
        _refuse_several_objectives(study)
        if not search_space:
            return {}
        others = others_than(study, trial)
        common = common_of(others, search_space)
        for _ in range(ATTEMPTS):
            ours = self._replayed(common, others, study.direction, trial.number)
            point = self._next(ours, trial.number, vary_beyond(others, common.codecs))
            # Two processes that choose at the same time do not see each other's choice. Each writes
            # its own first and only then looks: of two alike, at least one sees the other.
            proposal = common.proposal(point)
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, proposal)
            seen = common.points_of(others)
            others = others_than(study, trial)
            unseen = common.points_of(others) - seen
            if not any(common.alike(point, dict(new)) for new in unseen):
                break
        return common.decode(point)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value of a parameter outside the search space."""
        _refuse_several_objectives(study)
        if self._warns and param_name not in self._warned:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(complete) >= self._n_startup:
                self._warned.add(param_name)
                logger.warning(
                    f"{param_name} is drawn by {type(self._independent).__name__}: FitboSampler "
                    f"models parameters of one range each, of which the trials show when they "
                    f"exist, and not this one; warn_independent_sampling=False silences this"
                )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            broken = checked(self._constraints_func(trial))
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, broken)
        self._independent.after_trial(study, trial, state, values)

    def _next(self, ours: Study, number: int, repeats: bool) -> dict[str, Any]:
        """The point of this number in the design at first, then the model's choice.

        repeats   whether a point is worth another visit before all have been tried
        """
        space, taken, n_told = ours.space, ours.taken, len(ours.y)
        full = exhausted(space, taken)
        level = ours.level and not ours.failures
        if n_told + len(ours.failures) < self._n_startup or n_told == 0 or level:
            # By the trial's number: processes that work at the same time have different ones.
            if full:
                return dict(space.from_cube(space.points[number % len(space.points)]))
            design, seed = self._settings.design, [self._seed, STREAMS["design"]]
            u = first_points(space, design, self._n_startup, number, taken, seed)
            return dict(space.from_cube(u))
        again = full or (repeats and space.size <= FEW)
        point = space.from_cube(drawn_again(ours)) if again else ours.ask()[0]
        if ours.ensemble is not None:
            self._ensemble = space, ours.ensemble
        return dict(point)

    def _replayed(
        self, common: Common, trials: Sequence[FrozenTrial], direction: StudyDirection, number: int
    ) -> Study:
        """A study of fitbo with these trials in it."""
        settings = replace(self._settings, seed=_seed([self._seed, number]))
        every = {t.number: constraints_of(t) for t in trials if t.state == TrialState.COMPLETE}
        names = {name: f"c{i}" for i, name in enumerate(sorted(set().union(*every.values())))}
        ours = Study(
            common.space,
            settings,
            direction=direction.name.lower(),
            outcome_constraints=[f"{alias} <= 0" for alias in names.values()],
        )
        if self._ensemble is not None and self._ensemble[0] == common.space:
            ours.ensemble = self._ensemble[1]
        for trial in trials:
            x = common.point_of(trial)
            if x is None:
                continue
            if trial.state == TrialState.FAIL:
                ours.fail(x, f"trial {trial.number} failed")
            elif trial.state != TrialState.COMPLETE:
                ours.expect(x)
            elif trial.value is None or not math.isfinite(trial.value):
                ours.fail(x, f"trial {trial.number} has the value {trial.value}")
            else:
                broken = {names[name]: value for name, value in every[trial.number].items()}
                ours.tell(x, trial.value, None, dict.fromkeys(names.values()) | broken)
        return ours


@one_thread
def drawn_again(ours: Study) -> Array:
    """The point of a finite space, tried or not, with the lowest value in a posterior draw, (dim,).

    This is Thompson sampling: clearly worse points are left alone, and points that may be better
    are tried again, also by several processes at once. A point takes part with its probability of
    success. The draw is of the marginals, independent for each point: it errs towards exploring.
    """
    U, rng, success = ours.space.points, ours.search_rng(), ours.success()
    if success is not None:
        succeeds = rng.random(len(U)) < success(U)
        U = U[succeeds] if succeeds.any() else U
    return U[np.argmin(ours.fit().surrogate.predict(U).sample(rng, 1))]


def _refuse_several_objectives(study: optuna.Study) -> None:
    n = len(study.directions)
    if n > 1:
        raise ValueError(f"FitboSampler takes one objective, got {n}: use another sampler")


def _seed(entropy: Sequence[int] | None = None) -> int:
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
