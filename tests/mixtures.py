"""Seeded mixtures for the tests: gentle ones, and ones made to break things."""

from __future__ import annotations

import numpy as np

from fitbo.mixture import Mixture


def gentle(seed: int = 0, batch: int = 5, m: int = 6) -> Mixture:
    """Overlapping components of like widths."""
    rng = np.random.default_rng(seed)
    return Mixture(
        rng.normal(size=(batch, m)),
        rng.uniform(0.3, 1.0, (batch, m)) ** 2,
        rng.dirichlet(np.ones(m), batch),
    )


def heavy_tailed(seed: int = 0, batch: int = 5, m: int = 50) -> Mixture:
    """One core with stds over two decades, like the predictions of many lengthscale samples."""
    rng = np.random.default_rng(seed)
    s = np.exp(rng.normal(size=(batch, m)) * rng.uniform(0.3, 1.2, (batch, 1)))
    return Mixture(s * rng.normal(size=(batch, m)), s**2)


def narrow_and_wide() -> Mixture:
    """90% with std 0.03 and 10% with std 1: ten moments of a flat prior err by 0.7 nats."""
    return Mixture(np.zeros(2), [0.03**2, 1.0], [0.9, 0.1])


def far_clusters(distance: float = 100.0) -> Mixture:
    """Two separate Gaussians: the entropy is that of one plus log 2."""
    return Mixture([0.0, distance], [1.0, 1.0])


def adversarial(rng: np.random.Generator, batch: int) -> Mixture:
    """Any number of components, any scales within sixteen decades, weights that may vanish."""
    m = int(rng.choice([1, 2, 3, 5, 20, 100]))
    decades = rng.choice([0.1, 1.0, 3.0, 8.0], size=(batch, 1))
    s = 10.0 ** (decades * rng.uniform(-1, 1, (batch, m)))
    spread = 10.0 ** (decades * rng.uniform(-1, 1, (batch, 1)))
    means = spread * rng.standard_t(2, (batch, m)) + 10.0 ** rng.uniform(-8, 3, (batch, 1))
    if rng.random() < 0.2:
        means[:, : m // 2] = means[:, :1]
        s[:, : m // 2] = s[:, :1]
    alpha = float(rng.choice([0.02, 0.3, 3.0]))
    weights = rng.gamma(alpha, size=(batch, m)) + 1e-300
    weights[weights < 1e-12 * weights.max(1, keepdims=True)] = 0.0
    return Mixture(means, s**2, weights / weights.sum(1, keepdims=True))
