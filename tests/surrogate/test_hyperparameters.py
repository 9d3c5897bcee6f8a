import numpy as np
import pytest

from fitbo.surrogate import Hyperparameters, LogPosterior
from fitbo.surrogate.hyperparameters import SUPPORT


def test_unpack_names_the_columns_in_order():
    log_theta = np.log([[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]])
    theta = Hyperparameters.unpack(log_theta, d=2)
    np.testing.assert_allclose(theta.lengthscales, [[1, 2], [6, 7]])
    np.testing.assert_allclose(theta.signal_variance, [3, 8])
    np.testing.assert_allclose(theta.noise_variance, [4, 9])
    np.testing.assert_allclose(theta.gap, [5, 10])
    np.testing.assert_allclose(theta.precisions, [[1, 1 / 4], [1 / 36, 1 / 49]])
    np.testing.assert_allclose(theta[1:].gap, [10])


def test_the_share_follows_from_its_odds():
    log_theta = np.log([[1.0, 2.0, 3.0, 4.0, 0.25], [6.0, 7.0, 8.0, 9.0, 3.0]])
    np.testing.assert_allclose(Hyperparameters.unpack(log_theta, 1, n_shares=1).share, [0.2, 0.75])
    np.testing.assert_array_equal(Hyperparameters.unpack(log_theta, 2).share, [0, 0])


@pytest.mark.parametrize("shape", [(5,), (3, 4), (3, 6), (1, 3, 5)])
def test_a_wrong_shape_is_named(shape):
    with pytest.raises(ValueError, match=r"shape \(M, 5\), got"):
        Hyperparameters.unpack(np.zeros(shape), d=2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.01 * SUPPORT])
def test_samples_outside_the_support_cannot_be_unpacked_but_have_density_minus_infinity(value):
    log_theta = np.zeros((2, 5))
    log_theta[1, 3] = value
    with pytest.raises(ValueError, match="within"):
        Hyperparameters.unpack(log_theta, d=2)
    density = LogPosterior(np.array([[0.1, 0.2], [0.7, 0.4]]), np.array([0.0, 1.0]))(log_theta)
    assert np.isfinite(density[0])
    assert density[1] == -np.inf
