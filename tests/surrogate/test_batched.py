"""The batched path against GPy's own models, dense algebra and central differences."""

import tracemalloc

import GPy
import numpy as np
import pytest

from fitbo import Mixture
from fitbo.entropy import MM, VUB, MEMeL
from fitbo.surrogate import Hyperparameters, LogPosterior, batched, condition, parabola, posterior
from fitbo.surrogate.warp import MEAN_VARIANCE, NUGGET, moments_of_f, warp

from .problems import central_difference, gradients, make_problem

KERNELS = {
    "rbf": GPy.kern.RBF,
    "matern32": GPy.kern.Matern32,
    "matern52": GPy.kern.Matern52,
    "additive": GPy.kern.Matern52,
}
GPY_JITTER = 1e-8  # what GPy's exact inference adds to every noise variance
SHAPES = [(1, 1, 1), (2, 1, 3), (14, 3, 5), (40, 6, 4)]


def gpy_model(problem, kernel, j):
    """GPy's regression on the warped data of sample j, with the noise of each datum fixed."""
    n, d = problem.X.shape
    theta = Hyperparameters.unpack(problem.log_theta, d, int(kernel == "additive"))[j : j + 1]
    g = warp(problem.y - problem.y.min(), theta.gap)[0]
    s2, share = theta.signal_variance[0], theta.share[0]
    whole, lengthscales = (1 - share) * s2, theta.lengthscales[0]
    part = KERNELS[kernel](d, variance=whole, lengthscale=lengthscales, ARD=True)
    if kernel == "additive":
        for i, lengthscale in enumerate(lengthscales):
            options = {"lengthscale": lengthscale, "power": 2.0, "active_dims": [i]}
            part = part + GPy.kern.RatQuad(1, variance=share * s2 / d, **options)
    full = part + GPy.kern.Bias(d, variance=MEAN_VARIANCE)
    index = {"output_index": np.arange(n)[:, None]}
    likelihood = GPy.likelihoods.HeteroscedasticGaussian(index)
    noise = theta.noise_variance[0] / (g**2 + 2 * np.sqrt(theta.noise_variance[0]))
    likelihood.variance[:] = (noise + NUGGET * s2 - GPY_JITTER)[:, None]
    model = GPy.core.GP(
        problem.X,
        g[:, None],
        kernel=full,
        likelihood=likelihood,
        inference_method=GPy.inference.latent_function_inference.ExactGaussianInference(),
        Y_metadata=index,
    )
    return model, g


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_likelihood_is_gpys(kernel, shape):
    problem = make_problem(*shape, kernel=kernel)
    value = LogPosterior(problem.X, problem.y, kernel=kernel).log_likelihood(problem.log_theta)
    for j in range(shape[2]):
        model, g = gpy_model(problem, kernel, j)
        assert value[j] == pytest.approx(model.log_likelihood() - np.log(g).sum(), rel=1e-8)


@pytest.mark.parametrize("rule", ["linearised", "moment_matched"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_mean_variance_and_their_gradients_are_gpys(kernel, shape, rule):
    problem = make_problem(*shape, kernel=kernel)
    surrogate = condition(problem.X, problem.y, problem.log_theta, kernel=kernel, rule=rule)
    mixture = surrogate.predict(problem.candidates)
    d_means, d_variances = gradients(surrogate, problem.candidates)
    for j in range(shape[2]):
        model, _ = gpy_model(problem, kernel, j)
        m, v = model._raw_predict(problem.candidates)
        dm, dv = model.predictive_gradients(problem.candidates)
        dm = dm[:, :, 0]
        mean, variance = moments_of_f(rule, surrogate.eta[j], m[:, 0], v[:, 0])
        np.testing.assert_allclose(mixture.means[:, j], mean, rtol=1e-8)
        np.testing.assert_allclose(mixture.variances[:, j], variance, rtol=1e-8)
        by_v = 0.5 * dv if rule == "moment_matched" else 0
        close(d_means[:, j], m * dm + by_v)
        by_v = (m**2 + v if rule == "moment_matched" else m**2) * dv
        close(d_variances[:, j], 2 * m * v * dm + by_v)


def close(actual, expected):
    """To 1e-8 of the largest entry: single entries of a gradient may pass through zero."""
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8 * abs(expected).max())


def test_the_posterior_adds_the_prior(problem):
    log_posterior = LogPosterior(problem.X, problem.y)
    draws = log_posterior.sample_prior(problem.rng, 5)
    difference = log_posterior(draws) - log_posterior.log_likelihood(draws)
    np.testing.assert_allclose(difference, log_posterior._prior(draws), rtol=1e-9)


@pytest.mark.parametrize(
    ("lengthscale", "noise", "least_condition"), [(0.3, 1e-4, 1e6), (2.0, 1e-9, 1e10)]
)
def test_the_explicit_inverse_factor_is_as_accurate_as_a_solve(lengthscale, noise, least_condition):
    """Against long doubles: v to 1e-12, m to 1e-8; triangular solves do no better."""
    rng = np.random.default_rng(0)
    X, X_new = rng.random((60, 2)), rng.random((50, 2))
    y = np.sin(5 * X).sum(1)
    log_theta = np.log([[lengthscale, lengthscale, 0.5, noise, 0.3]])
    m, v, *_ = condition(X, y, log_theta)._latent(X_new, gradient=False)
    mean, variance, condition_number = extended_precision(X, y, X_new, log_theta)
    assert condition_number > least_condition
    assert abs(v[:, 0] - variance).max() < 3e-12
    assert abs(m[:, 0] - mean).max() < 3e-8


def extended_precision(X, y, X_new, log_theta):
    """m, v and cond(K) by a Cholesky in long doubles."""
    l1, l2, s2, noise, gap = np.exp(np.asarray(log_theta[0], dtype=np.longdouble))

    def k(A, B):
        scale = np.array([l1, l2])
        difference = (A[:, None].astype(np.longdouble) - B) / scale
        a = np.sqrt(5 * (difference**2).sum(-1))
        return s2 * (1 + a + a * a / 3) * np.exp(-a) + MEAN_VARIANCE

    g = np.sqrt(2 * (y.astype(np.longdouble) - y.min() + gap))
    K = k(X, X) + np.diag(noise / (g**2 + 2 * np.sqrt(noise)) + NUGGET * s2)
    right = np.column_stack([g, k(X, X_new)])
    L = np.zeros_like(K)
    z = np.zeros_like(right)
    for i in range(len(K)):
        for j in range(i):
            L[i, j] = (K[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
        L[i, i] = np.sqrt(K[i, i] - L[i, :i] @ L[i, :i])
        z[i] = (right[i] - L[i, :i] @ z[:i]) / L[i, i]
    m = z[:, 1:].T @ z[:, 0]
    v = s2 + MEAN_VARIANCE - (z[:, 1:] ** 2).sum(0)
    return m, v, np.linalg.cond(K.astype(np.float64))


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("rule", ["linearised", "moment_matched"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_central_differences(kernel, rule, noise):
    problem = make_problem(14, 3, 5, kernel=kernel)
    surrogate = condition(problem.X, problem.y, problem.log_theta, kernel=kernel, rule=rule)
    d_means, d_variances = gradients(surrogate, problem.candidates, noise)
    for gradient, name in ((d_means, "means"), (d_variances, "variances")):
        expected = central_difference(
            lambda X, name=name: getattr(surrogate.predict(X, noise), name),
            problem.candidates,
            1e-5,
        )
        atol = 1e-7 * abs(expected).max()
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=atol)


@pytest.mark.parametrize("entropy", [MM(), VUB(), MEMeL()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("noise", [False, True])
def test_value_and_grad_is_the_chain_rule(problem, entropy, noise):
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    value, gradient = surrogate.value_and_grad(problem.candidates, entropy.value_and_grad, noise)
    mixture = surrogate.predict(problem.candidates, noise)
    np.testing.assert_allclose(value, entropy(mixture), rtol=1e-9)
    _, by_mean, by_variance = entropy.value_and_grad(mixture)
    d_means, d_variances = gradients(surrogate, problem.candidates, noise)
    expected = np.einsum("bm,bmd->bd", by_mean, d_means)
    expected += np.einsum("bm,bmd->bd", by_variance, d_variances)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)


def test_value_and_grad_by_central_differences(problem):
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    _, gradient = surrogate.value_and_grad(problem.candidates, MM().value_and_grad)
    expected = central_difference(
        lambda X: MM()(surrogate.predict(X, noise=True)), problem.candidates, 1e-5
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_predictions_on_noise_free_data_stay_finite():
    """On a datum without noise v is rounding and may fall on either side of zero."""
    rng = np.random.default_rng(0)
    X = rng.random((5, 2))
    y = np.array([0.0, 1.0, 0.3, -1.0, 0.5])
    surrogate = condition(X, y, np.log([[1e3, 1e3, 1e-6, 1e-20, 1e-9]]), rule="linearised")
    mixture = surrogate.predict(X)
    assert (mixture.variances > 0).all()
    value, gradient = surrogate.value_and_grad(X, MM().value_and_grad, noise=False)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


def test_results_do_not_depend_on_the_blocks(monkeypatch):
    problem = make_problem(n=12, d=2, M=7)
    X = problem.rng.random((11, 2))

    def everything():
        surrogate = condition(problem.X, problem.y, problem.log_theta)
        mixture = surrogate.predict(X)
        density = LogPosterior(problem.X, problem.y)(problem.log_theta)
        return (
            mixture.means,
            mixture.variances,
            *surrogate.value_and_grad(X, MM().value_and_grad),
            *gradients(surrogate, X),
            density,
        )

    expected = everything()
    for size in (1, 12 * 2 * 3, 12 * 12 * 3):
        for module, name in (
            (parabola, "BLOCK"),
            (batched, "CACHED"),
            (batched, "WIDE"),
            (parabola, "CONDITION_BLOCK"),
            (posterior, "BLOCK"),
        ):
            monkeypatch.setattr(module, name, size)
        for actual, value in zip(everything(), expected, strict=True):
            np.testing.assert_allclose(actual, value, rtol=1e-9, atol=1e-11)


def test_memory_is_bounded_in_the_candidates(monkeypatch):
    problem = make_problem(n=40, d=3, M=50)
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    X = problem.rng.random((3000, 3))  # an (M, B, n) array would be 48 MB, an (M, B, d) one 3.6
    monkeypatch.setattr(parabola, "BLOCK", 1 << 16)
    tracemalloc.start()
    surrogate.value_and_grad(X, MM().value_and_grad)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6


def test_no_candidates_give_an_empty_mixture(problem):
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    mixture = surrogate.predict(np.empty((0, 3)))
    assert isinstance(mixture, Mixture)
    assert mixture.means.shape == (0, 5)


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.zeros((2, 3)), np.zeros(3), "same length"),
        (np.zeros(3), np.zeros(3), "X must have shape"),
        (np.zeros((3, 1)), np.zeros((3, 1)), "y must have shape"),
        (np.full((3, 1), np.nan), np.zeros(3), "X must be finite"),
        (np.zeros((3, 1)), np.full(3, np.inf), "y must be finite"),
        (np.zeros((0, 1)), np.zeros(0), "n >= 1"),
    ],
)
def test_bad_data_are_named(X, y, match):
    with pytest.raises(ValueError, match=match):
        LogPosterior(X, y)


def test_bad_candidates_and_priors_are_named(problem):
    surrogate = condition(problem.X, problem.y, problem.log_theta)
    with pytest.raises(ValueError, match=r"\(B, 3\), got \(2, 2\)"):
        surrogate.predict(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="prior must have 6 entries"):
        LogPosterior(problem.X, problem.y, prior=LogPosterior([[0.0]], [0.0])._prior)


@pytest.mark.parametrize("kernel", ["additive", "matern52", "matern32", "rbf"])
@pytest.mark.parametrize("ties", [False, True])
def test_the_gradient_of_the_log_posterior_by_differences(kernel: str, ties: bool) -> None:
    rng = np.random.default_rng(8)
    X, y = rng.random((25, 3)), rng.standard_normal(25)
    if ties:
        y[[2, 7]] = y.min()
    density = LogPosterior(X, y, kernel=kernel)
    where = density._prior.location + 0.7 * rng.standard_normal((4, density.n_parameters))
    where[:, 4] = -3.0  # noise enough for differences to be accurate
    values, slopes = density.value_and_grad(where)
    np.testing.assert_allclose(values, density(where), rtol=1e-9, atol=1e-6)
    for i in range(density.n_parameters):
        step = np.zeros(density.n_parameters)
        step[i] = 1e-5
        numeric = (density(where + step) - density(where - step)) / 2e-5
        np.testing.assert_allclose(slopes[:, i], numeric, rtol=1e-4, atol=1e-3)


def test_beyond_the_support_there_is_no_gradient() -> None:
    rng = np.random.default_rng(9)
    density = LogPosterior(rng.random((6, 2)), rng.standard_normal(6))
    values, slopes = density.value_and_grad(np.full((1, density.n_parameters), 100.0))
    assert values[0] == -np.inf
    assert not slopes.any()
