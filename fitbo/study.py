"""One optimisation: ask for points, tell values, recommend a minimiser.

One iteration reads as the mathematics does:

    samples   = sample(log_posterior(data), start, rng)
    surrogate = condition(data, samples)
    alpha     = lambda X: information_gain(surrogate.predict(X), entropy)
    x_next    = maximise(alpha, rng).x

All randomness of iteration n comes from (seed, n, purpose), n the number of values told, so a study
rebuilt from its observations and its saved ``ensemble`` continues bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fitbo.acquisition import ACQUISITIONS, acquisition
from fitbo.design import DESIGNS
from fitbo.entropy import Entropy, backend
from fitbo.maximise import maximise
from fitbo.mixture import Array, Mixture
from fitbo.sampling import Samples, sample
from fitbo.space import Space
from fitbo.surrogate import LogPosterior, Rule, Standardiser, Surrogate, condition

Purpose = Literal["design", "mcmc", "search", "recommend"]
STREAMS: dict[Purpose, int] = {"design": 0, "mcmc": 1, "search": 2, "recommend": 3}
WALKERS_PER_PARAMETER = 3
SAME = 1e-9  # points of the cube closer than this in every coordinate are one


@dataclass(frozen=True)
class Settings:
    """How a study chooses.

    acquisition   a name from ``fitbo.acquisition.ACQUISITIONS``
    entropy       a backend's name, a backend, or a function of a mixture; for ``fitbo``
    n_initial     points of the initial design; twice the dimension if None
    n_samples     M, hyperparameter samples
    rule          how g's Gaussian becomes f's: ``moment_matched`` or ``linearised``
    resolution    for ``fitbo``: see ``Study._indistinct``
    """

    acquisition: str = "fitbo"
    entropy: str | Entropy | Callable[[Mixture], Array] = "memel"
    n_initial: int | None = None
    design: str = "sobol"
    n_samples: int = 200
    kernel: str = "matern52"
    rule: Rule = "moment_matched"
    resolution: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("acquisition", ACQUISITIONS), ("design", DESIGNS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        backend(self.entropy)
        if self.n_initial is not None and self.n_initial < 1:
            raise ValueError(f"n_initial must be at least 1, got {self.n_initial}")
        if self.n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {self.n_samples}")
        if self.seed < 0:
            raise ValueError(f"seed must be a non-negative integer, got {self.seed}")


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The minimiser of the posterior mean, what it is predicted to be worth, and how surely."""

    x: Array
    mean: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Fit:
    """The posterior given the first n values: samples, surrogate and the scale of y."""

    n: int
    samples: Samples
    surrogate: Surrogate
    scale: Standardiser
    seconds: float


@dataclass
class Study:
    """Minimises an expensive function over ``space``; the only object here that changes.

    ``ensemble`` (W, P) is the sampler's last state; give the one saved to continue a study.
    """

    space: Space
    settings: Settings = field(default_factory=Settings)
    ensemble: Array | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    _cube: list[Array] = field(default_factory=list, repr=False)
    _values: list[float] = field(default_factory=list, repr=False)
    _pending: list[Array] = field(default_factory=list, repr=False)
    _fit: Fit | None = field(default=None, repr=False)

    @property
    def n_initial(self) -> int:
        """Points of the initial design."""
        return self.settings.n_initial or 2 * self.space.dim

    @property
    def X(self) -> Array:
        """Points told, (n, d)."""
        return self.space.from_cube(np.array(self._cube).reshape(-1, self.space.dim))

    @property
    def y(self) -> Array:
        """Values told, (n,)."""
        return np.array(self._values)

    @property
    def pending(self) -> Array:
        """Points asked for and not told, (k, d)."""
        return self.space.from_cube(np.array(self._pending).reshape(-1, self.space.dim))

    @property
    def best_observed(self) -> tuple[Array, float]:
        """The lowest value told and where."""
        if not self._values:
            raise ValueError("best_observed needs a value: tell one first")
        i = int(np.argmin(self._values))
        return self.X[i], self._values[i]

    def ask(self, n: int = 1) -> Array:
        """The next n points to evaluate, (n, d), distinct from all told and pending."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        points = []
        for _ in range(n):
            point = self._next()
            self._pending.append(point)
            points.append(point)
        return self.space.from_cube(np.array(points))

    def tell(self, x: ArrayLike, y: float) -> None:
        """The value y at x (d,): of a point asked for, or of any other."""
        u = self.space.to_cube(x)
        if u.shape != (self.space.dim,):
            raise ValueError(f"x must have shape ({self.space.dim},), got {np.shape(x)}")
        try:
            value = float(y)
        except (TypeError, ValueError):
            raise ValueError(f"y must be a number, got {y!r:.80}") from None
        if not np.isfinite(value):
            raise ValueError(f"y must be finite, got {value}")
        near = [i for i, point in enumerate(self._pending) if abs(point - u).max() < SAME]
        if near:
            # The point as it was asked for, free of the rounding of two changes of units.
            u = self._pending.pop(near[0])
        self._cube.append(u)
        self._values.append(value)

    def fit(self) -> Fit:
        """The posterior given all that has been told; computed once for each number of values."""
        n = len(self._values)
        if n == 0:
            raise ValueError("a fit needs a value: tell one first")
        if self._fit is None or self._fit.n != n:
            started = time.perf_counter()
            settings = self.settings
            rng = self._rng("mcmc")
            scale = Standardiser.fit(self.y)
            X, z = np.array(self._cube), scale(self.y)
            density = LogPosterior(X, z, kernel=settings.kernel)
            if self.ensemble is None or self.ensemble.shape[1] != density.n_parameters:
                walkers = 2 * ((WALKERS_PER_PARAMETER * density.n_parameters + 1) // 2)
                self.ensemble = density.sample_prior(rng, walkers)
            samples = sample(
                density,
                self.ensemble,
                rng,
                restart=density.sample_prior,
                n_samples=settings.n_samples,
            )
            self.ensemble = samples.ensemble
            surrogate = condition(
                X, z, samples.log_theta, kernel=settings.kernel, rule=settings.rule
            )
            self._fit = Fit(n, samples, surrogate, scale, time.perf_counter() - started)
            self.seconds["mcmc"] = self._fit.seconds
        return self._fit

    def recommend(self) -> Recommendation:
        """The minimiser of the posterior mean of f, with its mean and deviation."""
        started = time.perf_counter()
        fit = self.fit()

        def value(U: Array) -> Array:
            return -fit.surrogate.predict(U).mean

        def value_and_grad(U: Array) -> tuple[Array, Array]:
            return fit.surrogate.value_and_grad(U, _negative_mean, noise=False)

        rng = self._rng("recommend")
        found = maximise(
            value, value_and_grad, self.space.dim, rng, incumbents=self._incumbents(), n_starts=4
        )
        mixture = fit.surrogate.predict(found.x[None])
        self.seconds["recommend"] = time.perf_counter() - started
        return Recommendation(
            x=self.space.from_cube(found.x),
            mean=float(fit.scale.inverse(mixture.mean[0])),
            deviation=float(fit.scale.scale * mixture.variance[0] ** 0.5),
        )

    def eta_quantiles(self, probabilities: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Posterior quantiles of the unknown minimum, in y's units."""
        fit = self.fit()
        return fit.scale.inverse(np.quantile(fit.surrogate.eta, list(probabilities)))

    def _next(self) -> Array:
        """The next point of the cube, (d,)."""
        index = len(self._cube) + len(self._pending)
        if index < self.n_initial or not self._values:
            design = DESIGNS[self.settings.design]
            size = max(self.n_initial, index + 1)
            return design(size, self.space.dim, np.random.default_rng([self.settings.seed, 0]))[
                index
            ]
        fit = self.fit()
        started = time.perf_counter()
        surrogate = self._with_pending(fit)
        rng = self._rng("search")
        blur = self._indistinct(surrogate) if self.settings.acquisition == "fitbo" else 0.0
        choose = acquisition(
            self.settings.acquisition,
            entropy=self.settings.entropy,
            best=float(fit.scale(min(self._values))),
            eta=surrogate.eta,
            rng=rng,
        )
        spent = 0.0

        def timed(mixture: Mixture) -> tuple[Array, Array, Array]:
            nonlocal spent
            since = time.perf_counter()
            result = choose.value_and_grad(_blurred(mixture, blur))
            spent += time.perf_counter() - since
            return result

        def value(U: Array) -> Array:
            nonlocal spent
            mixture = surrogate.predict(U)
            since = time.perf_counter()
            result = choose(_blurred(mixture, blur))
            spent += time.perf_counter() - since
            return result

        def value_and_grad(U: Array) -> tuple[Array, Array]:
            return surrogate.value_and_grad(U, timed, noise=False)

        found = maximise(
            value,
            value_and_grad,
            self.space.dim,
            rng,
            incumbents=self._incumbents(),
            avoid=np.array(self._cube + self._pending),
        )
        self.seconds["search"] = time.perf_counter() - started
        self.seconds["entropy"] = spent
        return found.x

    def _with_pending(self, fit: Fit) -> Surrogate:
        """The surrogate as if every pending point had come out at its own predicted mean."""
        if not self._pending:
            return fit.surrogate
        settings = self.settings
        U = np.array(self._pending)
        believed = np.maximum(fit.surrogate.predict(U).mean, fit.scale(min(self._values)))
        X = np.concatenate([np.array(self._cube), U])
        z = np.concatenate([fit.scale(self.y), believed])
        return condition(X, z, fit.samples.log_theta, kernel=settings.kernel, rule=settings.rule)

    def _indistinct(self, surrogate: Surrogate) -> float:
        """The variance below which differences between samples are not worth an evaluation.

        The gain counts any disagreement, and samples disagree about tiny variances next to the
        data, and about the noise itself, by factors: it would be maximal where nothing can be
        learnt of the minimum. So every sample is given the same noise, their mean, and details
        finer than ``resolution`` times the typical gap y_min - eta are blurred.
        """
        best = float(self.fit().scale(min(self._values)))
        gap = float(np.median(best - surrogate.eta))
        return float(surrogate.noise_variance.mean()) + (self.settings.resolution * gap) ** 2

    def _incumbents(self) -> Array:
        """The few best points told, where the search looks more closely."""
        return np.array(self._cube)[np.argsort(self._values)[:3]]

    def _rng(self, purpose: Purpose) -> np.random.Generator:
        seed = [self.settings.seed, STREAMS[purpose], len(self._values), len(self._pending)]
        return np.random.default_rng(seed)


def _blurred(mixture: Mixture, variance: float) -> Mixture:
    if variance == 0:
        return mixture
    return Mixture(mixture.means, mixture.variances + variance, mixture.weights)


def _negative_mean(mixture: Mixture) -> tuple[Array, Array, Array]:
    return -mixture.mean, -mixture.weights, np.zeros_like(mixture.means)
