"""A model of the neighbourhood of the incumbent: few data, in coordinates of their own.

    active  (m,)    the values next to the incumbent, by the model's own distance
    V       (m, d)  their points in the frame
    H       (d, d)  the Hessian of a quadratic fitted to them

Next to the incumbent a function is simpler than on the whole: its values are of one magnitude, it
is nearly quadratic, and smooth. So the values there get a model of their own, standardised by
themselves, in the frame (straight, or turned to the principal axes of the quadratic) in which they
are most probable at the mode of the posterior; its hyperparameters are drawn from Laplace's
approximation there. Which values are near is decided twice, by the cube's distance and then by that
of the model found. All of it depends on the data alone.
"""

from __future__ import annotations

import numpy as np

from fitbo.acquisition.baselines import ExpectedImprovement
from fitbo.inference.fit import BOUND, Model, part, stated, surrogate_of
from fitbo.inference.region import DONE, Frame, Region, region_of
from fitbo.inference.settings import Settings
from fitbo.mixture import Array
from fitbo.sampling.laplace import climb, laplace_ensemble
from fitbo.surrogate import Standardiser
from fitbo.surrogate.batched import LogPosterior

BASE, PER_DIMENSION = 10, 5  # values in the model
THETAS = 32
ROUGH, ITERATIONS = 15, 25  # of the climb to the mode, for the distance and for the model
ACCURACY = 1e-5  # relative, of its log-density
RIDGE = 1e-6  # of the quadratic


def neighbourhood(
    X: Array,
    y: Array,
    settings: Settings,
    rng: np.random.Generator,
    size: float,
    stds: Array | None = None,
) -> tuple[Model, Region]:
    """The model of the values next to the incumbent, and the trust region of that size."""
    model, frame = local_fit(X, y, settings, rng, stds)
    lengthscales: Array = model.surrogate.theta.lengthscales
    return model, region_of(frame, np.exp(np.log(lengthscales).mean(0)), size)


def promising(model: Model, region: Region, x: Array, y: Array) -> bool:
    """Whether the model expects an improvement at x (d,) that is worth an evaluation.

    y (n,): all values told, for what is worth one.
    """
    mixture = model.surrogate.predict(region.frame.inward(x[None]))
    gain = ExpectedImprovement(model.best, model.surrogate.floor)(mixture)[0]
    return bool(gain * model.scale.scale > DONE * (np.median(y) - y.min()))


def local_fit(
    X: Array, y: Array, settings: Settings, rng: np.random.Generator, stds: Array | None = None
) -> tuple[Model, Frame]:
    """The posterior given those of y (n,) at X (n, d) next to the incumbent, in the frame.

    stds (n,): what the values state, NaN for nothing.
    """
    n, d = X.shape
    x = X[int(np.argmin(y))]
    m = min(n, BASE + PER_DIMENSION * d)
    metric, starts = np.eye(d), list[Array]()
    for iterations in (ROUGH, ITERATIONS):
        active = nearest(X, x, metric, m)
        scale = Standardiser.fit(y[active])
        own = stated(scale, y[active], part(stds, active), settings)
        found = frames_about(x, X[active], scale(y[active]), own, settings, starts, iterations)
        _, frame, density, modes = max(found, key=lambda each: each[0])
        metric, starts = frame.M / np.exp(modes[0, :d])[:, None], [each[3] for each in found]
    thetas = draws(density, modes, rng)
    surrogate = surrogate_of(density.X, density.y, thetas, settings, density.stated)
    return Model(density.X, y[active], scale, surrogate), frame


def frames_about(
    x: Array,
    X: Array,
    z: Array,
    stated: Array | None,
    settings: Settings,
    starts: list[Array],
    iterations: int,
) -> list[tuple[float, Frame, LogPosterior, Array]]:
    """Frames about x, straight and turned, with log p of z at X, the density and its mode (1, P).

    ``starts`` are modes (1, P) in frames of before, the prior's if there are none.
    """
    frames = [Frame.straight(x, X)]
    if x.size > 1 and len(X) > 2 * x.size:
        H = curvature(frames[0].inward(X), z)
        frames.append(frames[0].turned(np.linalg.eigh(H)[1], X))
    found = []
    for i, frame in enumerate(frames):
        V = frame.inward(X)
        density = LogPosterior(V, z, settings.kernel_name, noise=settings.noise, stated=stated)
        start = starts[i] if i < len(starts) else density._prior.location[None]
        modes, values = climb(density.value_and_grad, start, BOUND, iterations, ACCURACY)
        found.append((float(values[0]), frame, density, modes))
    return found


def nearest(X: Array, x: Array, metric: Array, m: int) -> np.ndarray:
    """The m points of X (n, d) nearest to x by |metric (X - x)|, in their order."""
    distance = np.square((X - x) @ metric.T).sum(1)
    return np.sort(np.argsort(distance, kind="stable")[:m])


def draws(density: LogPosterior, modes: Array, rng: np.random.Generator) -> Array:
    """Samples (THETAS, P): of Laplace's approximation, resampled by the ratio of densities."""
    scale = density._prior.scale
    drawn = laplace_ensemble(density.value_and_grad, modes, scale, 2 * THETAS, rng)
    log_weights = density(drawn.log_theta) - drawn.log_density
    weights = np.exp(log_weights - log_weights.max())
    at = (rng.random() + np.arange(THETAS)) / THETAS * weights.sum()
    return drawn.log_theta[np.searchsorted(np.cumsum(weights), at).clip(max=len(weights) - 1)]


def curvature(V: Array, z: Array) -> Array:
    """The Hessian H of a quadratic fitted to z (m,) at V (m, d), low values weighing most.

    With the weight w_i = 1/(1/100 + excess_i/median excess) of each value, and a ridge on H, which
    decides where the data are fewer than the coefficients.
    """
    d = V.shape[1]
    i, j = np.triu_indices(d)
    terms = np.concatenate([np.ones((len(V), 1)), V, V[:, i] * V[:, j]], axis=1)
    excess = z - z.min()
    middle = np.median(excess)
    w = 1 / (0.01 + excess / (middle if middle > 0 else 1.0))
    ridge = np.where(np.arange(terms.shape[1]) > d, RIDGE * w.sum(), 0.0)
    normal = (terms.T * w) @ terms + np.diag(ridge)
    c = np.linalg.lstsq(normal, (terms.T * w) @ z, rcond=None)[0][d + 1 :]
    H = np.zeros((d, d))
    H[i, j] += c
    H[j, i] += c
    return H
