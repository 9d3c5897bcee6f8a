"""The slopes of an acquisition function in the moments of the mixture, by central differences."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from fitbo.acquisition import Acquisition
from fitbo.mixture import Mixture


def assert_slopes(
    alpha: Acquisition, p: Mixture, h: float, rtol: float = 1e-4, atol: float = 1e-7
) -> None:
    """That the slopes in every mean and variance are those of differences, h to either side."""
    _, by_mean, by_variance = alpha.value_and_grad(p)
    for j in range(p.n_components):
        e = h * np.eye(p.n_components)[j]
        up, down = (alpha(Mixture(p.means + s, p.variances)) for s in (e, -e))
        assert_allclose(by_mean[:, j], (up - down) / (2 * h), rtol=rtol, atol=atol)
        up, down = (alpha(Mixture(p.means, p.variances + s)) for s in (e, -e))
        assert_allclose(by_variance[:, j], (up - down) / (2 * h), rtol=rtol, atol=atol)
