"""One optimisation: ask for points, tell values, recommend the best.

One iteration reads as the mathematics does:

    samples   = sample(log_posterior(data), start, rng)
    surrogate = condition(data, samples)
    alpha     = lambda U: information_gain(surrogate.predict(U), entropy)
    x_next    = maximise(alpha, space, rng).x

``inference.ledger`` has what was told, ``inference.belief`` what that says about the function; here
is what to do next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fitbo.acquisition.baselines import needs
from fitbo.checks import finite
from fitbo.inference.belief import STREAMS, Belief
from fitbo.inference.best import Recommendation, recommend
from fitbo.inference.exact import repeated
from fitbo.inference.fit import Model
from fitbo.inference.ledger import LARGEST, OPTIMA, SIGNS, averaged, bounded, equal_at_first
from fitbo.inference.local import neighbourhood, promising
from fitbo.inference.pending import believing
from fitbo.inference.propose import propose
from fitbo.inference.region import Region, radius
from fitbo.inference.settings import AUTO, Settings
from fitbo.inference.threads import one_thread
from fitbo.mixture import Array
from fitbo.search.candidates import SAME, Allowed, exhausted, nothing_left, untaken
from fitbo.search.mixed import first_points, further_points
from fitbo.space import Exhausted

LONGER, COMPARED = 8, 512  # points of a longer design for each one taken; and of these at most

__all__ = ["LARGEST", "OPTIMA", "SIGNS", "STREAMS", "Exhausted", "Study", "bounded"]


@dataclass
class Study(Belief):
    """Minimises an expensive function over ``space``, or maximises it: ``direction="maximize"``.

    ``outcome_constraints`` such as ``["temperature <= 80"]`` are about what evaluations measure
    besides their value: see ``inference.outcomes``. With them every step is one in the whole space.

    ``space`` may be given as what a ``Space`` is made of: pairs, or a dict of parameters.
    ``ensemble`` is what the sampler came to when it moved last: pass a saved one to continue a
    study. ``seconds`` is what the last fit, search and recommendation took. A point is an array
    (d,), or a dict if the space has names.
    """

    _nearby: tuple[int, Model, Region] | None = field(default=None, repr=False)

    @property
    def n_initial(self) -> int:
        """Points of the initial design: twice the number of parameters by default."""
        n = self.settings.n_initial
        return 2 * len(self.space.parameters) if n is None else n

    def ask(self, n: int = 1) -> Any:
        """The next n points to evaluate, (n, d) or a list of dicts, none told, pending or failed.

        But for a repetition to see whether there is noise, and where noise makes repetitions worth
        it (``Settings``). If a finite space has fewer left, those; ``Exhausted`` if it has none.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        points: list[Any] = []
        for _ in range(n):
            try:
                x = self._as_given(self._next())
            except Exhausted:
                if not points:
                    raise
                break
            # Pending is x itself, not the point of the cube it came from, which may differ by
            # rounding: a study rebuilt from a record of x must be the same to the last bit.
            self._pending.append(self._note(x))
            points.append(x)
        return points if self.space.named else np.array(points)

    def tell(
        self,
        x: Any,
        y: float | Sequence[float],
        std: float | None = None,
        constraints: Mapping[str, float | None] | None = None,
    ) -> None:
        """The value y at x, a point asked for or any other.

        y            or several values, measured at the same point: their mean counts, with the
                     standard error of the mean (see ``inference.ledger.averaged``)
        std          the value's own standard deviation, besides the noise that all values have
        constraints  by name what the outcome constraints are about; NaN if it is not known, and
                     then the point does not count as one where they hold
        """
        value, error = averaged(y, self.settings.noise_std)
        if std is not None:
            finite("std", std, least=0)
            if std > LARGEST:
                raise ValueError(f"std must be at most {LARGEST:g}, got {std}")
            if not np.isscalar(y) and np.size(y) > 1:
                raise ValueError("std must be left out beside several values: they state their own")
        own = error if std is None else std
        if own is not None and self.settings.deterministic is True:
            raise ValueError(
                f"a value of a deterministic study must be one number without a std, got the "
                f"standard deviation {own:g}: leave out deterministic"
            )
        self._enter(x, value, own, constraints)

    @one_thread
    def recommend(self) -> Recommendation:
        """Where the posterior mean of f is best, with that mean and its standard deviation.

        Without noise it is the best point told: a value that was seen is certain, and where a
        prediction is better the next evaluation goes there anyway. So it is while all values are
        equal. With outcome constraints only points where all hold with a probability of
        ``inference.outcomes.LEVEL`` compete; if there is none, the point where that is most
        probable, or that should break them least.
        """
        fitted = self._judged(self.fit())
        started = time.perf_counter()
        best = self._best()
        if best is not None and (self.acting.deterministic is True or self.level):
            variance = fitted.surrogate.predict(self._cube[best][None]).variance[0]
            deviation = float(fitted.scale.scale * variance**0.5)
            held = 1.0 if self.constraints else None
            found = Recommendation(self._cube[best], self._values[best], deviation, held)
        else:
            found = recommend(fitted, self._rng("recommend"), self.space, self.success())
        self.seconds["recommend"] = time.perf_counter() - started
        return replace(found, x=self._as_given(found.x), mean=self.sign * found.mean)

    @one_thread
    def _next(self) -> Array:
        """The next point of the cube, (d,)."""
        pending, avoid, n = self._rows(self._pending), self._closed(), len(self.taken)
        if exhausted(self.space, avoid):
            raise nothing_left(self.space, avoid)
        if n < self.n_initial or not self._values:
            design = self.space, self.settings.design, self.n_initial
            return first_points(*design, n, self.taken, [self.settings.seed, STREAMS["design"]])
        settings, exploits = self.acting, self._exploits(n)
        if settings.acquisition == "random" and not exploits:  # which needs no model
            seed = [settings.seed, STREAMS["search"], n]
            return first_points(self.space, "uniform", 1, 0, avoid, seed)
        if self.level and (spread := self._spread()) is not None:
            return spread
        if self._in_doubt:
            return self._cube[int(np.argmin(self._values))]
        if exploits:
            settings = replace(settings, acquisition="logei")
        if self._is_local(n):
            # The next lower value is sought there, not the minimum of all: of the regret that
            # remains its mean, which needs no draws of f*.
            nearby = replace(settings, moments=1)
            x = self._search(*self._local(), nearby, pending, avoid)
            # All of a region beyond a corner of the cube is that corner, which may be told already.
            new = untaken(self.space, x[None], avoid, SAME)[0]
            if new and promising(*self._local(), x, bounded(self._values)):
                return x
        if self.constraints and needs(settings.acquisition, "minimum"):
            settings = replace(settings, acquisition="logei")  # a path's minimum may be infeasible
        turn = self._has_regions and not self._is_local(n)
        beyond = self._local()[1].beyond if turn else None
        return self._search(self._judged(self.fit()), None, settings, pending, avoid, beyond)

    @property
    def level(self) -> bool:
        """Whether all values are equal: a plateau, which says nothing of where to go.

        A model of them takes the function for all but constant, and evaluates corners.
        """
        return not self.constraints and equal_at_first(self._values) == len(self._values) > 0

    def _spread(self) -> Array | None:
        """The next point of the initial design made longer, of those that may succeed, (d,).

        None if few are feasible, or have not been taken, or may succeed.
        """
        size, seed = LONGER * (1 + len(self.taken)), [self.settings.seed, STREAMS["design"]]
        free = further_points(self.space, size, self.taken, seed)[:COMPARED]
        success = self.success()
        if success is not None and len(free):
            free = free[success.acceptable(free)]
        return free[0] if len(free) else None

    @property
    def needs_fit(self) -> bool:
        """Whether the next suggestion is sure to need the posterior of all values."""
        n = len(self.taken)
        if n < self.n_initial or not self._values or self.level or self._in_doubt:
            return False
        return not self._is_local(n) and (self.acting.acquisition != "random" or self._exploits(n))

    def _closed(self) -> Array:
        """Points that are not asked for: those taken, or of these the pending and failed ones.

        With noise a value tells more where there is one already: where ``replicates`` allow it, and
        in a finite space of which no point is left.
        """
        taken, settings = self.taken, self.settings
        noisy = settings.deterministic is False or self._stated is not None
        none_left = noisy and exhausted(self.space, taken)
        if none_left or (settings.replicates and self.acting.deterministic is not True):
            return self._rows([*self._pending, *(u for u, _ in self._failed)])
        return taken

    def _search(
        self,
        model: Model,
        region: Region | None,
        settings: Settings,
        pending: Array,
        avoid: Array,
        allowed: Allowed | None = None,
    ) -> Array:
        """Where the acquisition function is largest, in the model's region or where it may be."""
        started = time.perf_counter()
        success, likely = self.success(), np.ones(len(pending), dtype=bool)
        if success is not None and len(pending):
            likely = success.acceptable(pending)
        if region is not None:  # whose model says little about what lies beyond it
            likely &= ~region.beyond(pending)
            pending = region.frame.inward(pending)
        believed = believing(model, pending, settings, likely)
        about = self.space, success, region, allowed
        found, entropy_seconds = propose(believed, settings, avoid, self.search_rng(), *about)
        self.seconds |= {"search": time.perf_counter() - started, "entropy": entropy_seconds}
        return found.x

    @property
    def _has_regions(self) -> bool:
        """Whether there is a trust region: in a space of reals only, without constraints."""
        batched = self.settings.surrogate == "batched"
        return self.space.plain and self._real and bool(self.acting.local) and batched

    def _is_local(self, index: int) -> bool:
        """Whether the evaluation of this index is chosen in the trust region."""
        turn = (index - self.n_initial) % ((self.acting.local or 0) + 1)
        return self._has_regions and turn != 0

    @property
    def _in_doubt(self) -> bool:
        """Whether a point is to be evaluated twice, to see whether there is noise."""
        auto = self.settings.deterministic == AUTO and bool(self.space.continuous.any())
        late = len(self.taken) >= 2 * len(self.space.parameters)  # with whatever design
        return auto and late and not repeated(list(self.taken))

    def _local(self) -> tuple[Model, Region]:
        """The model next to the incumbent and the trust region, once for each number of values."""
        if self._nearby is None or self._nearby[0] != len(self._values):
            X, y = np.array(self._cube), bounded(self._values)
            order = np.arange(len(y)) + self._preceded  # what was asked for, failures included
            first = int(np.count_nonzero(order < self.n_initial))
            if level := equal_at_first(self._values):  # and the first that differs
                first = max(first, level + 1)
            size = radius(X, y, first, lambda i: self._is_local(int(order[i])))
            found = neighbourhood(X, y, self.acting, self._rng("local"), size, self._stated)
            self._nearby = len(y), *found
        return self._nearby[1:]

    def _exploits(self, index: int) -> bool:
        """Whether the evaluation of this index goes to the largest expected improvement.

        The information gain explores only: what is known must also be used.
        """
        return (index - self.n_initial) % ((self.settings.exploit or 0) + 1) != 0

    def search_rng(self) -> np.random.Generator:
        """The random generator of the search for the next point."""
        return self._rng("search")
