from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from fitbo.surrogate import default_prior
from fitbo.surrogate.kernel import named_kernel


def make_problem(
    n: int, d: int, M: int, seed: int = 0, kernel: str = "matern52"
) -> SimpleNamespace:
    """Data from a smooth function, moderate hyperparameters, and candidates away from the data.

    Noise of e^-4 keeps condition numbers near 1e4: GPy forms K^-1 and expands |x - x'|^2, so beyond
    that two right answers need not share eight digits.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(4 * X).sum(1) + 0.5 * (X**2).sum(1)
    y = (y - y.mean()) / (y.std() or 1.0)
    centre = default_prior(d, named_kernel(kernel).n_shares).location.copy()
    centre[d + 1] = -4.0
    log_theta = centre + 0.4 * rng.standard_normal((M, centre.size))
    return SimpleNamespace(X=X, y=y, log_theta=log_theta, candidates=rng.random((7, d)), rng=rng)


def central_difference(function, X, step):
    """d function(X)[b, ...]/dX[b, i] for a function of each row alone: (B, ..., d)."""
    columns = []
    for i in range(X.shape[1]):
        shift = np.zeros(X.shape[1])
        shift[i] = step
        columns.append((function(X + shift) - function(X - shift)) / (2 * step))
    return np.stack(columns, axis=-1)


def gradients(surrogate, X, noise=False):
    """d means/dx and d variances/dx of ``predict``, (B, M, d) each, by its ``value_and_grad``."""

    def of(name, j):
        def functional(mixture):
            one = np.zeros_like(mixture.means)
            one[:, j] = 1.0
            slopes = (one, 0 * one) if name == "means" else (0 * one, one)
            return getattr(mixture, name)[:, j], *slopes

        return surrogate.value_and_grad(X, functional, noise)[1]

    each = range(surrogate.n_samples)
    return tuple(np.stack([of(n, j) for j in each], axis=1) for n in ("means", "variances"))
