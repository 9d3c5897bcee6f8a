"""The gain about eta given theta: against quadrature theta by theta, and by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo import Mixture
from fitbo.acquisition.information import InformationGain
from fitbo.entropy import MM, Quad

K = 4


def thetas(rng, B=3, T=6, alike=False):
    """Mixtures (B, T K); with ``alike``, every theta's is an affine image of one and the same."""
    m = rng.standard_normal((B, 1 if alike else T, K))
    v = np.exp(rng.standard_normal((B, 1 if alike else T, K)))
    location, scale = 10 * rng.standard_normal((B, T, 1)), np.exp(rng.standard_normal((B, T, 1)))
    means, variances = location + scale * m, scale**2 * v
    return Mixture(means.reshape(B, -1), variances.reshape(B, -1))


def theta_by_theta(mixture, entropy):
    """``E_theta H[y | theta] - E H[y | theta, eta]``, one mixture for each theta."""
    means = mixture.means.reshape(-1, K)
    variances = mixture.variances.reshape(-1, K)
    gain = InformationGain(entropy)(Mixture(means, variances))
    return gain.reshape(len(mixture.means), -1).mean(1)


def test_thetas_of_one_shape_are_pooled_exactly() -> None:
    mixture = thetas(np.random.default_rng(0), alike=True)
    entropy = Quad(tol=1e-9)
    gain = InformationGain(entropy, per_theta=K)(mixture)
    assert_allclose(gain, theta_by_theta(mixture, entropy), atol=1e-7)
    # The full gain also counts which theta is true: here, which of six places 10 apart.
    assert (InformationGain(entropy)(mixture) > gain + 0.5).all()


def test_pooling_is_exact_for_moment_matching_and_else_an_upper_bound() -> None:
    mixture = thetas(np.random.default_rng(1))
    assert_allclose(
        InformationGain(MM(), per_theta=K)(mixture), theta_by_theta(mixture, MM()), rtol=1e-12
    )
    entropy = Quad(tol=1e-9)
    pooled = InformationGain(entropy, per_theta=K)(mixture)
    exact = theta_by_theta(mixture, entropy)
    assert (pooled >= exact - 1e-8).all()
    assert (exact > 0).all()


def test_location_and_scale_of_a_theta_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    mixture = thetas(rng)
    shift = np.repeat(rng.standard_normal((3, 6)), K, axis=1)
    scale = np.repeat(np.exp(rng.standard_normal((3, 6))), K, axis=1)
    moved = Mixture(shift + scale * mixture.means, scale**2 * mixture.variances)
    gain = InformationGain("memel", per_theta=K)
    assert_allclose(gain(moved), gain(mixture), atol=1e-9)


@pytest.mark.parametrize(("entropy", "error"), [("quad", 1e-6), ("mm", 1e-6), ("memel", 1e-5)])
def test_gradient_by_differences(entropy: str, error: float) -> None:
    """To the differences' own error; MEMeL's Newton stops at a tolerance, which h magnifies."""
    mixture = thetas(np.random.default_rng(3), B=2, T=3)
    gain = InformationGain(entropy, per_theta=K)
    value, by_mean, by_variance = gain.value_and_grad(mixture)
    assert_allclose(value, gain(mixture), atol=1e-9)
    h = 1e-4
    for j in range(mixture.n_components):
        step = h * np.eye(mixture.n_components)[j]
        up = gain(Mixture(mixture.means + step, mixture.variances))
        down = gain(Mixture(mixture.means - step, mixture.variances))
        assert_allclose(by_mean[:, j], (up - down) / (2 * h), rtol=0, atol=error)
        up = gain(Mixture(mixture.means, mixture.variances * (1 + step)))
        down = gain(Mixture(mixture.means, mixture.variances * (1 - step)))
        slope = (up - down) / (2 * h * mixture.variances[:, j])
        assert_allclose(by_variance[:, j], slope, rtol=0, atol=error)


def test_a_mixture_that_is_not_made_of_thetas_is_refused() -> None:
    with pytest.raises(ValueError, match="a mixture of 24 components must hold 5 for each theta"):
        InformationGain("mm", per_theta=5)(thetas(np.random.default_rng(4)))
    with pytest.raises(ValueError, match="per_theta must be a whole number of at least 1, got 0"):
        InformationGain("mm", per_theta=0)


def test_several_eta_for_each_theta_must_weigh_the_same() -> None:
    with pytest.raises(ValueError, match="must have equal weights"):
        InformationGain("mm", 2)(Mixture([0.0, 1.0, 2.0, 5.0], np.ones(4), [1.0, 0.0, 0.0, 0.0]))
