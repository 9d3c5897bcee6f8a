"""What the values told say: the posterior of the function, of its minimum and of its noise.

    samples   = sample(log_posterior(data), start, rng)
    surrogate = condition(data, samples)
    minima    = surrogate.paths(rng).minima()

All randomness comes from the seed, the purpose and what is known: a fit's from the number of values
told, a search's also from the numbers of points pending and of failures. So a study rebuilt from
its values, failures, pending points and saved ``ensemble`` continues bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fitbo.acquisition.feasibility import Chance, learn
from fitbo.acquisition.remaining import usual_moments
from fitbo.inference.best import incumbents, lowest_mean
from fitbo.inference.exact import verdict
from fitbo.inference.fit import Fit, M, fit
from fitbo.inference.importance import Importance, importance
from fitbo.inference.ledger import Ledger
from fitbo.inference.minimum import Minima, draw_minima
from fitbo.inference.outcomes import Feasible, learn_outcomes, violation
from fitbo.inference.settings import AUTO, Settings
from fitbo.inference.stopping import expected_improvement, expected_regret
from fitbo.inference.threads import one_thread
from fitbo.mixture import Array
from fitbo.sampling import Ensemble

STREAMS = {"design": 0, "mcmc": 1, "search": 2, "recommend": 3, "stop": 4, "local": 5, "minimum": 6}
STREAMS |= {"outcomes": 7}


@dataclass
class Belief(Ledger):
    """The posterior given what was told, each part of it computed once for each number of values.

    ``ensemble`` is what the sampler came to when it moved last: pass a saved one to continue a
    study. ``seconds`` is what the last fit, search and recommendation took.
    """

    settings: Settings = field(default_factory=Settings)
    ensemble: Ensemble | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    _known: tuple[int, Settings, int] | None = field(default=None, repr=False)
    _fit: Fit | None = field(default=None, repr=False)
    _minima: tuple[int, Minima] | None = field(default=None, repr=False)
    _success: tuple[tuple[int, int], Chance | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.settings.acquisition == "remaining" and self.settings.moments is None:
            moments = usual_moments(reals=bool(self.space.continuous.all()))
            self.settings = replace(self.settings, moments=moments)

    @one_thread
    def fit(self) -> Fit:
        """The posterior given all values told; computed once for each number of values."""
        if not self._values:
            raise ValueError("a fit needs a value: tell one first")
        if self._fit is None or self._fit.n != len(self._values):
            X, y = np.array(self._cube), np.array(self._values)
            last = self._fit if self._fit is not None and self._fit.n < len(y) else None
            settings, since = self._acting()
            ensemble = self.ensemble if self.ensemble is None or self.ensemble.n >= since else None
            if last is not None and last.moved < since:
                last = None
            self._fit = fit(X, y, settings, ensemble, self._rng("mcmc"), last, self._stated)
            if self._fit.moved == len(y):
                self.ensemble = self._fit.samples.ensemble
            self.seconds["mcmc"] = self._fit.seconds
        return self._fit

    @property
    def acting(self) -> Settings:
        """The settings, with what repeated values say of noise in place of ``auto``."""
        return self._acting()[0]

    def _acting(self) -> tuple[Settings, int]:
        """The settings, with what repeated values say of noise, and since how many values."""
        if self._known is None or self._known[0] != len(self._values):
            settings, since = self.settings, 0
            if settings.deterministic == AUTO:
                exact, since = verdict(self._cube, self._values, self._stds)
                settings = replace(settings, deterministic=exact)
            if self._real and settings.weighs_knowledge and settings.kernel_name == "additive":
                settings = replace(settings, kernel="smooth")
            self._known = len(self._values), settings, since
        return self._known[1:]

    @property
    def _real(self) -> bool:
        """Whether the space is one of real numbers, without constraints on outcomes."""
        return bool(self.space.continuous.all()) and not self.constraints

    @property
    def _stated(self) -> Array | None:
        """The standard deviations that the values state, (n,); None if none does."""
        return None if np.isnan(self._stds).all() else self.stds

    @one_thread
    def noise_level(self) -> float:
        """The standard deviation of a value about f, in y's units: stated, or its posterior mean.

        Where values state their own, that of what is left beside those.
        """
        known = self.acting.noise_std
        if known is not None or self.acting.deterministic is True:
            return known or 0.0
        return self.fit().noise_level

    @one_thread
    def success(self) -> Chance | None:
        """The probability that an evaluation succeeds and the outcome constraints hold there.

        None while none has failed, and there are no constraints.
        """
        known = len(self._cube), len(self._failed)
        if self._success is None or self._success[0] != known:
            failed, told = self._rows([u for u, _ in self._failed]), self._rows(self._cube)
            found: Chance | None = None
            if self._failed:
                found = learn(self.space, told, failed)
            if self.constraints:
                seed = [self.settings.seed, STREAMS["outcomes"], len(told)]
                models = learn_outcomes(told, self.excess, self.acting, seed)
                found = Feasible(models, found, complete=len(models) == len(self.constraints))
            self._success = known, found
        return self._success[1]

    def _judged(self, model: M) -> M:
        """A model of all values, which knows where the outcome constraints hold."""
        if not self.constraints:
            return model
        return replace(model, feasible=self.feasible, violation=violation(self.excess))

    @one_thread
    def importance(self) -> dict[str, Importance]:
        """Which parameters matter: total effects with 90% intervals, the largest first."""
        return importance(self.fit(), self.space, np.random.default_rng(self.settings.seed))

    @one_thread
    def minima(self) -> Minima:
        """Draws of the minimum and where it lies: the lowest place of a path of every sample."""
        fitted = self.fit()
        if self._minima is None or self._minima[0] != fitted.n:
            rng = self._rng("minimum")
            found = draw_minima(fitted.surrogate, self.space, incumbents(fitted), rng)
            self._minima = fitted.n, found
        return self._minima[1]

    def minimum_quantiles(self, probabilities: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Posterior quantiles of the function's minimum, or of its maximum, in y's units.

        Of its best value, not of its best observation: with noise the two differ, without it the
        minimum is no higher. Outcome constraints are left aside.
        """
        drawn = self.minima().f
        if self.acting.deterministic is True:  # a path passes its values by as much as its nugget
            drawn = np.minimum(drawn, self.fit().lowest)
        return self._quantiles(drawn, probabilities)

    def eta_quantiles(self, probabilities: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Posterior quantiles of eta, the bound of the model's warp, in y's units: a diagnostic.

        It is not the minimum, which lies strictly above it (see ``fitbo.inference.minimum``).
        """
        return self._quantiles(self.fit().surrogate.eta, probabilities)

    def _quantiles(self, draws: Array, probabilities: Sequence[float]) -> Array:
        """Of draws (M,), one for each sample, in y's units."""
        p = np.array(probabilities, dtype=np.float64)
        return self.sign * self.fit().quantiles(draws, p if self.sign > 0 else 1 - p)

    @one_thread
    def remaining(self) -> float:
        """How far the minimum is expected to lie below the best value known, in y's units.

        With noise, below the lowest posterior mean: that of what would be recommended.

        Infinite while all values are equal, which say nothing about its scale, and while no point
        is known where all outcome constraints hold; with those, what one evaluation may gain.
        """
        if len(set(self._values)) == 1 or not self.feasible.any():
            return np.inf
        fitted = self._judged(self.fit())
        if not fitted.has_paths or self.constraints:
            return expected_improvement(fitted, self.space, self._rng("stop"), self.success())
        noisy = self.acting.weighs_knowledge and self._real
        at = lowest_mean(fitted, self.space, self._rng("stop"), self.success()).x if noisy else None
        return expected_regret(fitted, self.minima(), at)

    def _rng(self, purpose: str) -> np.random.Generator:
        seed = [self.settings.seed, STREAMS[purpose], len(self._values)]
        if purpose in ("mcmc", "local", "minimum"):
            seed.append(0)  # the posterior depends on the values only
        else:
            seed += [len(self._pending), *([len(self._failed)] if self._failed else [])]
        return np.random.default_rng(seed)
