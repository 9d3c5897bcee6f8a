"""Joint entropy search: against the entropies of dense quadrature, slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.acquisition.joint import JointGain
from fitbo.acquisition.maxvalue import MaxValueGain, in_g
from fitbo.inference.best import Worth
from fitbo.inference.minimum import draw_minima
from fitbo.mixture import Mixture
from fitbo.space import Space
from fitbo.surrogate.conditioned import knowing
from tests.acquisition.differences import assert_slopes
from tests.acquisition.test_maxvalue import convolved, entropy
from tests.surrogate.test_conditioned import known

ETA = np.array([-2.3, -2.1])
MINIMUM = np.array([-1.5, -1.2])


def pairs(etas: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m, v (2, 4) of two samples as they are and knowing, and the eta of each component."""
    m = np.array([[1.9, 1.6, 1.7, 1.4], [1.3, 1.8, 1.4, 1.9]])
    v = np.array([[0.3, 0.1, 0.4, 0.35], [0.2, 0.05, 0.5, 0.1]])
    order = [0, 2, 1, 3] if etas == 2 else [0, 1, 2, 3]
    eta = np.repeat(ETA, 2)
    return m[:, order], v[:, order], eta[order]


def mixture(m: np.ndarray, v: np.ndarray, eta: np.ndarray) -> Mixture:
    return Mixture(eta + 0.5 * (m * m + v), m * m * v + 0.5 * v * v)


def test_it_is_the_fall_of_the_entropy_of_the_observation() -> None:
    m, v, eta = pairs()
    alpha = JointGain(MINIMUM, eta, 0.05)
    gain = alpha(mixture(m, v, eta))
    for b in range(2):
        truth = 0.0
        for j in range(2):
            first, second = 2 * j, 2 * j + 1
            n = float(in_g(alpha.noise, m[b, first] ** 2 + v[b, first])[0])
            c = np.sqrt(2 * (MINIMUM[j] - ETA[j]))
            z = np.linspace(-10, 10, 4001)
            after = entropy(z, convolved(z, m[b, second], v[b, second], n, c))
            truth += 0.5 * (0.5 * np.log(2 * np.pi * np.e * (v[b, first] + n)) - after)
        assert_allclose(gain[b], truth, atol=1e-5)


def test_a_place_that_tells_nothing_leaves_max_value_entropy_search() -> None:
    m, v, eta = pairs()
    m[:, 1::2], v[:, 1::2] = m[:, ::2], v[:, ::2]
    joint = JointGain(MINIMUM, eta, 0.05)
    same = MaxValueGain(MINIMUM, ETA, 0.05)
    object.__setattr__(same, "noise", joint.noise)
    assert_allclose(joint(mixture(m, v, eta)), same(mixture(m[:, ::2], v[:, ::2], ETA)), rtol=1e-9)


@pytest.mark.parametrize("floor", [True, False])
@pytest.mark.parametrize("etas", [1, 2])
def test_slopes_by_differences(etas: int, floor: bool) -> None:
    m, v, eta = pairs(etas)
    p = mixture(m, v, eta)
    alpha = JointGain(MINIMUM, eta if floor else None, 0.01, per_theta=2 * etas)
    assert (alpha(p) > 0).all()
    assert_slopes(alpha, p, 1e-6)


@pytest.mark.parametrize("kernel", ["matern52", "additive"])
def test_the_gradient_in_x_of_the_whole(kernel: str) -> None:
    """With minima of paths, the sign of g and all."""
    surrogate, _, _, U = known(kernel, 2)
    found = draw_minima(surrogate, Space([(0, 1)] * 3), U[:1], np.random.default_rng(0))
    assert_allclose(surrogate.eta + 0.5 * found.g**2, found.f, atol=1e-9)
    made = knowing(surrogate, found.x, found.g)
    worth = Worth(made, JointGain(found.f, made.floor, 1e-4, per_theta=made.etas))
    value, gradient = worth.value_and_grad(U)
    assert_allclose(value, worth(U), rtol=1e-9)
    h = 1e-6
    numeric = np.stack([(worth(U + e) - worth(U - e)) / (2 * h) for e in h * np.eye(3)], 1)
    assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4 * abs(gradient).max())
