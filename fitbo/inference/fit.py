"""From data to the posterior: samples of the hyperparameters and the surrogate they make.

samples   = sample(log_posterior(data), start, rng)
surrogate = condition(data, samples)

**Cold**, without an ensemble, the sampler starts from draws about the modes of the posterior
(``sampling.laplace``), found on a part of the data and refined on all, and resampled by what they
are worth.

**Warm**, one more value borders the factors of the surrogate and multiplies the weights of its
thetas by their predictive densities (``surrogate.border``), which costs n^2 where a single
likelihood costs n^3. The walkers are moved when too few thetas survive in effect, or when their
last move is ``AGE`` of the data old; then the ensemble of that last move, resampled by what has
been learnt since, is where the sampler starts.

**Large**, beyond ``MOST`` values, the model is of a part of them: those next to the incumbents, and
an even choice of the rest, so that it stays exact where the search is and keeps the shape of the
whole. The part is chosen anew at each move, and grows by what is told until the next.

The sampler moves theta and eta together. Its thetas are kept; eta, of which the acquisition needs
several values for each theta, is taken anew from its posterior given theta.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from fitbo.checks import assign
from fitbo.inference.ledger import bounded
from fitbo.inference.settings import Settings
from fitbo.mixture import Array, quantile
from fitbo.sampling import Ensemble, Samples, sample
from fitbo.sampling.laplace import climb, laplace_ensemble
from fitbo.sampling.walkers import resample
from fitbo.surrogate import Parabola, Standardiser, named_surrogate
from fitbo.surrogate.batched import LogPosterior, Surrogate
from fitbo.surrogate.border import extended
from fitbo.surrogate.kernel import named_kernel

WALKERS = 60  # at least, and three for each parameter
WALKERS_PER_PARAMETER = 3
COLD_BURN_IN = 10  # steps at least from a cold start, where they cost little, and allowed always
CHEAP = 64  # values, up to which they do
POOL = 4  # draws about the modes for each walker
SURVIVORS = 0.5  # share of the thetas that must survive, in effect, between two moves
AGE = 1 / 16  # of the data may have come since the last move
MOST = 512  # values in the model
ENTRIES = 1 << 22  # of the factors of all thetas: with many data, fewer thetas, who differ less
FEWEST = 16  # thetas at least
NEAR = 0.5  # share of them that are next to the incumbents
STARTS, ROUGH, FINISH = 3, 128, 20  # climbs, values that they see, iterations on all of the data
M = TypeVar("M", bound="Model")

LOST = 0.1  # share of the walkers that must survive, in effect, to start from them
BOUND = 30.0  # on |log theta| of a mode


@dataclass(frozen=True, eq=False)
class Model:
    """A surrogate of y (n,) at X (n, d), with its scale; all, or ``active`` (a,), are in it."""

    X: Array
    y: Array
    scale: Standardiser
    surrogate: Parabola
    active: np.ndarray = field(default_factory=lambda: np.arange(0), kw_only=True)
    feasible: np.ndarray | None = field(default=None, kw_only=True)  # (n,), and what is broken,
    violation: Array | None = field(default=None, kw_only=True)  # (n,); None: no constraints

    def __post_init__(self) -> None:
        if not len(self.active):
            assign(self, active=np.arange(self.n))

    @property
    def n(self) -> int:
        """The number of values."""
        return len(self.y)

    @property
    def best(self) -> float:
        """The lowest value, standardised; with outcome constraints, of those that are feasible."""
        if self.feasible is None or not self.feasible.any():
            return self.lowest
        return float(self.scale(self.y[self.feasible].min()))

    @property
    def lowest(self) -> float:
        """The lowest value of all, standardised."""
        return float(self.scale(self.y.min()))

    @property
    def order(self) -> np.ndarray:
        """The values from the best, (n,): first the feasible ones, then by what they break."""
        if self.violation is None:
            return np.argsort(self.y, kind="stable")
        return np.lexsort((self.y, self.violation))

    @property
    def noise_level(self) -> float:
        """The posterior mean of the standard deviation of the noise, in y's units.

        Beside what values state themselves.
        """
        deviations = np.sqrt(self.surrogate.theta.noise_variance)
        return float(self.scale.scale * np.average(deviations, weights=self.surrogate.weights))

    def quantiles(self, draws: Array, probabilities: Array) -> Array:
        """Of draws (M,), one for each sample, in y's units."""
        return self.scale.inverse(quantile(draws, probabilities, self.surrogate.sample_weights))

    @property
    def has_paths(self) -> bool:
        """Whether the process can be drawn: GPy's kernels have no spectrum here."""
        surrogate = self.surrogate
        return isinstance(surrogate, Surrogate) and bool(surrogate.covariance.kernel.has_paths)


@dataclass(frozen=True, eq=False)
class Fit(Model):
    """The posterior given the data: a model, and the samples that made its surrogate.

    moved  the number of values at which the walkers were moved last
    """

    samples: Samples
    seconds: float = 0.0
    moved: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.moved:
            assign(self, moved=self.n)

    @property
    def survivors(self) -> float:
        """The share of the thetas that survive, in effect: 1 / (T sum w^2)."""
        w = self.surrogate.weights
        return 1.0 if w is None else float(1 / (len(w) * np.square(w).sum()))


def fit(
    X: Array,
    y: Array,
    settings: Settings,
    ensemble: Ensemble | None,
    rng: np.random.Generator,
    last: Fit | None = None,
    stds: Array | None = None,
) -> Fit:
    """The posterior given X (n, d) in the cube and y (n,), of standard deviations ``stds`` (n,).

    Values are ``bounded`` by those told until then, each once and for all until the walkers move,
    so that a study that is rebuilt has the same. ``last`` is a fit to fewer of these values, and
    ``ensemble`` what its walkers were when they moved last; None: from nothing.
    """
    started = time.perf_counter()
    if last is None and ensemble is not None and 0 < ensemble.n <= len(y):
        last = _restored(X, bounded(y[: ensemble.n]), stds, settings, ensemble)
    if last is not None and isinstance(last.surrogate, Surrogate):
        size = len(last.active) + len(y) - last.n
        if len(y) - last.moved <= max(1.0, AGE * size):
            since = [float(bounded(y[: i + 1])[i]) for i in range(last.n, len(y))]
            grown = np.concatenate([last.y, since])
            found = _grown(X, grown, stds, settings, last) if since else last
            if found.survivors >= SURVIVORS:
                return replace(found, seconds=time.perf_counter() - started)
    moved = _moved(X, bounded(y), stds, settings, ensemble, rng)
    return replace(moved, seconds=time.perf_counter() - started)


def stated(scale: Standardiser, y: Array, stds: Array | None, settings: Settings) -> Array | None:
    """The variances that values y (n,) state on the scale, (n,): their own, or the known level.

    None if there is neither. stds (n,): their own standard deviations, NaN for none.
    """
    if stds is None or settings.deterministic is True:
        if settings.noise_std is None:
            return None
        stds = np.full(len(y), np.nan)
    usual = settings.noise_std or 0.0
    return np.square(np.where(np.isnan(stds), usual, stds) * scale.slope(y))


def _restored(
    X: Array, y: Array, stds: Array | None, settings: Settings, ensemble: Ensemble
) -> Fit | None:
    """The fit as it was when the walkers moved last, to the first values, y (n,)."""
    n, samples = ensemble.n, ensemble.samples
    if samples is None or settings.surrogate != "batched":
        return None
    if samples.shape[1] != X.shape[1] + 3 + named_kernel(settings.kernel_name).n_shares:
        return None  # of another kernel, as it was in an earlier version
    stds = None if stds is None else stds[:n]
    scale, active, surrogate = _conditioned(X[:n], y, stds, samples, settings)
    kept = Samples(samples, np.full(len(samples), np.nan), ensemble, ensemble.diagnostics)  # type: ignore[arg-type]
    return Fit(X[:n], y, scale, surrogate, kept, moved=n, active=active)


def _conditioned(
    X: Array, y: Array, stds: Array | None, samples: Array, settings: Settings
) -> tuple[Standardiser, np.ndarray, Parabola]:
    """Scale, values in the model, and the surrogate of all samples, given y at X."""
    active = chosen(X, y)
    scale = Standardiser.fit(y[active])
    own = stated(scale, y[active], part(stds, active), settings)
    return scale, active, surrogate_of(X[active], scale(y[active]), samples, settings, own)


def _grown(X: Array, y: Array, stds: Array | None, settings: Settings, last: Fit) -> Fit:
    """The last fit with the values that have come since."""
    active = np.concatenate([last.active, np.arange(last.n, len(y))])
    own = stated(last.scale, y[active], part(stds, active), settings)
    surrogate = extended(last.surrogate, X[last.n :], last.scale(y[active]), own)  # type: ignore[arg-type]
    return replace(last, X=X, y=y, surrogate=surrogate, active=active)


def _moved(
    X: Array,
    y: Array,
    stds: Array | None,
    settings: Settings,
    ensemble: Ensemble | None,
    rng: np.random.Generator,
) -> Fit:
    """The posterior by the sampler, started from the ensemble of the last move or from nothing."""
    active = chosen(X, y)
    scale = Standardiser.fit(y[active])
    z, own = scale(y[active]), stated(scale, y[active], part(stds, active), settings)
    model = named_surrogate(settings.surrogate)
    density = model.LogPosterior(
        X[active], z, settings.kernel_name, noise=settings.noise, stated=own
    )
    thetas = -(-settings.n_samples // settings.etas)
    thetas = min(thetas, max(FEWEST, ENTRIES // len(z) ** 2))
    walkers = max(WALKERS, thetas, WALKERS_PER_PARAMETER * density.n_parameters)
    walkers += walkers % 2
    if ensemble is not None and ensemble.log_theta.shape != (walkers, density.n_parameters):
        ensemble = None  # of another model
    start: Any = ensemble
    log_p: Array | None = None
    if isinstance(density, LogPosterior):
        about = density.sample_prior(rng, STARTS - 1) if ensemble is None else None
        if ensemble is not None:
            log_p = density(ensemble.log_theta)
            if lost(log_p - ensemble.log_density):
                about = ensemble.log_theta[[np.argmax(log_p)]]
        if about is not None:
            start, log_p = cold_start(density, about, walkers, rng)
            ensemble = None
    elif ensemble is None:
        start = density.sample_prior(rng, walkers)
    quick = ensemble is not None or len(z) > CHEAP
    least = settings.min_burn_in if quick else max(settings.min_burn_in, COLD_BURN_IN)
    samples = sample(
        density,
        start,
        rng,
        known=log_p,
        restart=density.sample_prior,
        n_samples=thetas,
        thin=settings.thin,
        min_burn_in=least,
        max_burn_in=max(
            least, COLD_BURN_IN, int(settings.max_burn_in * min(1, ROUGH / len(z)) ** 2)
        ),
    )
    noted = replace(
        samples.ensemble, n=len(y), samples=samples.log_theta, diagnostics=samples.diagnostics
    )
    surrogate = surrogate_of(X[active], z, samples.log_theta, settings, own)
    samples = replace(samples, ensemble=noted)
    return Fit(X, y, scale, surrogate, samples, moved=len(y), active=active)


def part(stds: Array | None, of: np.ndarray) -> Array | None:
    """Those of these indices, if there are any at all."""
    return None if stds is None else stds[of]


def lost(log_weights: Array) -> bool:
    """Whether so few walkers would survive in effect that the modes are sought anew."""
    w = np.exp(log_weights - log_weights.max())
    return not w.sum() ** 2 > LOST * len(w) * np.square(w).sum()


def cold_start(
    density: LogPosterior, about: Array, walkers: int, rng: np.random.Generator
) -> tuple[Ensemble, Array]:
    """Draws of the posterior, found about its modes next to the prior's and to ``about`` (k, P).

    One for each walker, if enough of them would survive resampling by the ratio of the densities;
    else several for each, resampled, if enough of those do; else the first, to be moved. With the
    posterior's log-densities (W,) there.
    """
    prior = density._prior
    starts = np.concatenate([prior.location[None], about])
    if len(density.y) > ROUGH:
        few = chosen(density.X, density.y, ROUGH)
        own = part(density.stated, few)
        rough = replace(density, X=density.X[few], y=density.y[few], stated=own)
        starts, _ = climb(rough.value_and_grad, starts, BOUND)
        modes, _ = climb(density.value_and_grad, starts[:2], BOUND, FINISH)
    else:
        modes, _ = climb(density.value_and_grad, starts, BOUND)
    pool = laplace_ensemble(density.value_and_grad, modes, prior.scale, POOL * walkers, rng)
    x, log_q = pool.log_theta, pool.log_density
    log_p = density(x[:walkers])
    if not resample(log_p - log_q[:walkers], density.n_parameters, rng)[2]:
        log_p = np.concatenate([log_p, density(x[walkers:])])
        kept, _, whole = resample(log_p - log_q, density.n_parameters, rng, walkers)
        if whole:
            return Ensemble(x[kept], log_p[kept]), log_p[kept]
    return Ensemble(x[:walkers], log_q[:walkers]), log_p[:walkers]


def chosen(X: Array, y: Array, most: int = MOST) -> np.ndarray:
    """Which values are in the model, in order: all, or ``most`` of them."""
    n = len(y)
    if n <= most:
        return np.arange(n)
    order = np.argsort(y, kind="stable")
    incumbents = X[order[:3]]
    distance = abs(X[:, None] - incumbents).max(2).min(1)
    near = np.argsort(distance, kind="stable")[: int(NEAR * most)]
    rest = np.setdiff1d(order, near, assume_unique=True)
    rest = order[np.isin(order, rest)]  # from the lowest to the highest, of which evenly many
    even = rest[np.linspace(0, len(rest) - 1, most - len(near)).astype(np.intp)]
    return np.sort(np.concatenate([near, even]))


def surrogate_of(
    X: Array, z: Array, samples: Array, settings: Settings, stated: Array | None = None
) -> Parabola:
    """The settings' surrogate given z (n,) at X (n, d), what they state, and samples (T, P)."""
    model = named_surrogate(settings.surrogate)
    options = {"kernel": settings.kernel_name, "rule": settings.rule, "etas": settings.etas}
    surrogate: Parabola = model.condition(X, z, samples, **options, stated=stated)
    return surrogate
