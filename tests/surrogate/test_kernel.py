import GPy
import numpy as np
import pytest

from fitbo.surrogate import Hyperparameters
from fitbo.surrogate.differences import parts_gradient, squared_differences, with_ones, x_gradient
from fitbo.surrogate.kernel import KERNELS, named_kernel

from .problems import central_difference

ORACLES = {"rbf": GPy.kern.RBF, "matern32": GPy.kern.Matern32, "matern52": GPy.kern.Matern52}
STATIONARY = {**{name: KERNELS[name] for name in ORACLES}, "rational": KERNELS["additive"].part}


@pytest.fixture(params=STATIONARY)
def stationary(request):
    return STATIONARY[request.param]


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def inputs(kernel, seed=0, M=3, d=4):
    rng = np.random.default_rng(seed)
    shares = kernel.n_shares
    theta = Hyperparameters.unpack(0.5 * rng.standard_normal((M, d + 3 + shares)), d, shares)
    return rng, theta, rng.random((5, d)), rng.random((6, d))


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernels_are_those_of_gpy(name):
    _, theta, X1, X2 = inputs(KERNELS[name])
    rho = KERNELS[name].correlation(theta, squared_differences(X1, X2)).reshape(3, 5, 6)
    for lengthscales, share, values in zip(theta.lengthscales, theta.share, rho, strict=True):
        share, blend = share if np.ndim(share) else (share, 0.0)
        options = {"variance": (1 - share) * (1 - blend), "lengthscale": lengthscales, "ARD": True}
        oracle = ORACLES.get(name, GPy.kern.Matern52)(4, **options)
        if blend:
            oracle = oracle + GPy.kern.RBF(4, **options | {"variance": (1 - share) * blend})
        for i in range(4 if share else 0):
            options = {"lengthscale": lengthscales[i], "power": 2.0, "active_dims": [i]}
            oracle = oracle + GPy.kern.RatQuad(1, variance=share / 4, **options)
        np.testing.assert_allclose(values, oracle.K(X1, X2), rtol=1e-10)


def test_value_alone_agrees_with_value_and_slope(stationary):
    r2 = np.linspace(0, 9, 50)
    np.testing.assert_allclose(
        stationary.value(r2.copy()), stationary.value_and_slope(r2.copy())[0], rtol=1e-14
    )


def test_the_slope_is_the_derivative_in_the_squared_distance(stationary):
    r2, step = np.linspace(0.1, 9, 50), 1e-5
    rho = stationary.value
    expected = (rho(r2 + step) - rho(r2 - step)) / (2 * step)
    slope = stationary.value_and_slope(r2.copy())[1]
    np.testing.assert_allclose(slope, expected, rtol=1e-7)


def gradient(kernel, theta, X, X_data, C):
    """sum_n C[m, n] d rho_m(x_b, x_n)/dx_b, (M, B, d)."""
    shape = len(C), -1, len(X), len(X_data)
    rho, slope, parts = kernel.correlation_and_slopes(theta, squared_differences(X, X_data))
    np.testing.assert_allclose(
        rho, kernel.correlation(theta, squared_differences(X, X_data)), rtol=1e-13
    )
    weighted = slope.reshape(shape)[:, 0] * C[:, None]
    total = x_gradient(weighted, theta.precisions, X, with_ones(X_data))
    if parts is not None:
        parts = parts.reshape(shape)
        total += parts_gradient(parts, theta.precisions, X, X_data, C[:, :, None])[:, 0]
    return total


def test_the_gradient_is_that_of_central_differences(kernel):
    rng, theta, X, X_data = inputs(kernel, 1)
    C = rng.standard_normal((3, 6))

    def total(points):
        rho = kernel.correlation(theta, squared_differences(points, X_data)).reshape(3, -1, 6)
        return np.einsum("mn,mbn->bm", C, rho)

    expected = central_difference(total, X, 1e-5).swapaxes(0, 1)
    actual = gradient(kernel, theta, X, X_data, C)
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


def test_the_gradient_vanishes_on_the_data(kernel):
    """k(x, x_n) is greatest at x = x_n, and the gradient must be finite there, not 0/0."""
    _, theta, X, _ = inputs(kernel, 2)
    for n in range(len(X)):
        actual = gradient(kernel, theta, X[n : n + 1], X[n : n + 1], np.ones((3, 1)))
        np.testing.assert_allclose(actual, 0, atol=1e-13)


def test_near_duplicates_keep_their_distance(stationary):
    """Expanding |x - x'|^2 = |x|^2 - 2 x.x' + |x'|^2 would lose this one altogether."""
    x = np.full((1, 2), 0.7)
    rho = stationary.value(np.ones((1, 2)) @ squared_differences(x, x + 1e-9))
    slope = stationary.value_and_slope(np.zeros(1))[1][0]
    assert 1 - rho[0, 0] == pytest.approx(-slope * 2 * 1e-18, abs=2e-16)


def test_kernels_go_by_name_or_as_themselves():
    assert named_kernel("rbf") is KERNELS["rbf"]
    assert named_kernel(KERNELS["matern32"]) is KERNELS["matern32"]
    with pytest.raises(ValueError, match="smooth, got 'matern'"):
        named_kernel("matern")
