import GPy
import numpy as np
import pytest

from fitbo.surrogate.kernel import KERNELS, covariance, covariance_vjp, named_kernel

from .problems import central_difference

ORACLES = {"rbf": GPy.kern.RBF, "matern32": GPy.kern.Matern32, "matern52": GPy.kern.Matern52}


RATIONAL = KERNELS["additive"].part


@pytest.fixture(params=[*ORACLES, "rational"])
def kernel(request):
    return KERNELS.get(request.param, RATIONAL)


def inputs(seed=0, M=3, d=4):
    rng = np.random.default_rng(seed)
    lengthscales = np.exp(0.5 * rng.standard_normal((M, d)))
    return rng, lengthscales, np.exp(rng.standard_normal(M)), rng.random((5, d)), rng.random((6, d))


@pytest.mark.parametrize("name", ORACLES)
def test_the_kernels_are_those_of_gpy(name):
    _, lengthscales, s2, X1, X2 = inputs()
    K = covariance(KERNELS[name], lengthscales, s2, X1, X2)
    for m in range(len(s2)):
        oracle = ORACLES[name](4, variance=s2[m], lengthscale=lengthscales[m], ARD=True)
        np.testing.assert_allclose(K[m], oracle.K(X1, X2), rtol=1e-10)


def test_value_alone_agrees_with_value_and_slope(kernel):
    r2 = np.linspace(0, 9, 50)
    np.testing.assert_allclose(
        kernel.value(r2.copy()), kernel.value_and_slope(r2.copy())[0], rtol=1e-14
    )


def test_the_slope_is_the_derivative_in_the_squared_distance(kernel):
    r2, step = np.linspace(0.1, 9, 50), 1e-5
    rho = kernel.value
    expected = (rho(r2 + step) - rho(r2 - step)) / (2 * step)
    slope = kernel.value_and_slope(r2.copy())[1]
    np.testing.assert_allclose(slope, expected, rtol=1e-7)


def test_the_vector_jacobian_product_is_that_of_central_differences(kernel):
    rng, lengthscales, s2, X, X_data = inputs(1)
    C = rng.standard_normal((3, 5, 6))

    def total(points):
        return np.einsum("mbn,mbn->b", C, covariance(kernel, lengthscales, s2, points, X_data))

    np.testing.assert_allclose(
        covariance_vjp(kernel, lengthscales, s2, X, X_data, C),
        central_difference(total, X, 1e-5),
        rtol=1e-7,
        atol=1e-9,
    )


def test_the_gradient_vanishes_on_the_data(kernel):
    """k(x, x_n) is greatest at x = x_n, and the gradient must be finite there, not 0/0."""
    _, lengthscales, s2, X, _ = inputs(2)
    C = np.broadcast_to(np.eye(5), (3, 5, 5))
    gradient = covariance_vjp(kernel, lengthscales, s2, X, X, C)
    np.testing.assert_allclose(gradient, 0, atol=1e-13)


def test_near_duplicates_keep_their_distance(kernel):
    """Expanding |x - x'|^2 = |x|^2 - 2 x.x' + |x'|^2 would lose this one altogether."""
    x = np.full((1, 2), 0.7)
    r2 = 2 * 1e-18
    K = covariance(kernel, np.ones((1, 2)), np.ones(1), x, x + 1e-9)
    slope = kernel.value_and_slope(np.zeros(1))[1][0]
    assert 1 - K[0, 0, 0] == pytest.approx(-slope * r2, abs=2e-16)


def test_kernels_go_by_name_or_as_themselves():
    assert named_kernel("rbf") is KERNELS["rbf"]
    assert named_kernel(KERNELS["matern32"]) is KERNELS["matern32"]
    with pytest.raises(ValueError, match="additive, got 'matern'"):
        named_kernel("matern")
