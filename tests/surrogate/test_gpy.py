"""The GPy surrogate: agreement with the batched path, and kernels that path does not have."""

import sys
from subprocess import run

import GPy
import numpy as np
import pytest

from fitbo.entropy import MM
from fitbo.inference.settings import Settings
from fitbo.space import Space
from fitbo.study import Study
from fitbo.surrogate import LogPosterior, condition, gpy
from fitbo.surrogate.hyperparameters import GAP, NOISE

from .problems import central_difference, gradients, make_problem

KERNELS = {
    "sum": lambda: GPy.kern.Matern52(2, ARD=True) + GPy.kern.StdPeriodic(2),
    "product": lambda: GPy.kern.RBF(2) * GPy.kern.StdPeriodic(2, period=0.7),
    "nonstationary": lambda: GPy.kern.Linear(2, ARD=True) + GPy.kern.Matern32(2),
    "ratquad": lambda: GPy.kern.RatQuad(2, ARD=True),
    "expression": lambda: "matern52 + periodic*linear",
}


def in_gpys_order(log_theta, d):
    """GPy's stationary kernels put the variance before the lengthscales."""
    return np.concatenate([log_theta[:, d : d + 1], log_theta[:, :d], log_theta[:, d + 1 :]], 1)


@pytest.mark.parametrize("rule", ["linearised", "moment_matched"])
@pytest.mark.parametrize("name", ["rbf", "matern32", "matern52"])
def test_it_agrees_with_the_batched_path(problem, name, rule):
    log_theta = in_gpys_order(problem.log_theta, 3)
    np.testing.assert_allclose(
        gpy.LogPosterior(problem.X, problem.y, name).log_likelihood(log_theta),
        LogPosterior(problem.X, problem.y, name).log_likelihood(problem.log_theta),
        rtol=1e-8,
    )
    slow = gpy.condition(problem.X, problem.y, log_theta, name, rule=rule)
    fast = condition(problem.X, problem.y, problem.log_theta, name, rule=rule)
    expected, actual = fast.predict(problem.candidates), slow.predict(problem.candidates)
    np.testing.assert_allclose(actual.means, expected.means, rtol=1e-8)
    np.testing.assert_allclose(actual.variances, expected.variances, rtol=1e-8)
    pairs = [
        *zip(gradients(slow, problem.candidates), gradients(fast, problem.candidates), strict=True),
        *zip(
            slow.value_and_grad(problem.candidates, MM().value_and_grad),
            fast.value_and_grad(problem.candidates, MM().value_and_grad),
            strict=True,
        ),
    ]
    for gradient, reference in pairs:
        np.testing.assert_allclose(gradient, reference, rtol=1e-8, atol=1e-8 * abs(reference).max())


@pytest.mark.parametrize("name", KERNELS)
def test_any_kernel_samples_conditions_and_differentiates(name):
    problem = make_problem(n=10, d=2, M=1)
    kernel = KERNELS[name]()
    log_posterior = gpy.LogPosterior(problem.X, problem.y, kernel)
    location = log_posterior._prior.location
    draws = location + 0.2 * problem.rng.standard_normal((3, location.size))
    assert np.isfinite(log_posterior(draws)).all()
    surrogate = gpy.condition(problem.X, problem.y, draws, kernel)
    value, gradient = surrogate.value_and_grad(problem.candidates, MM().value_and_grad)
    expected = central_difference(
        lambda X: MM()(surrogate.predict(X, noise=True)), problem.candidates, 1e-5
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)
    assert value.shape == (7,)


def test_the_prior_sits_on_the_kernel_as_built():
    kernel = GPy.kern.RBF(1, variance=2.0, lengthscale=0.3)
    prior = gpy.LogPosterior([[0.1]], [0.0], kernel)._prior
    np.testing.assert_allclose(prior.location, [np.log(2), np.log(0.3), NOISE[0], GAP[0]])
    np.testing.assert_allclose(prior.scale, [gpy.KERNEL_SCALE] * 2 + [NOISE[1], GAP[1]])


def test_fixed_parameters_stay_put_and_the_users_kernel_is_untouched():
    problem = make_problem(n=6, d=1, M=1)
    kernel = GPy.kern.RBF(1) + GPy.kern.StdPeriodic(1, period=0.25)
    kernel.std_periodic.period.fix()
    before = kernel.param_array.copy()
    log_posterior = gpy.LogPosterior(problem.X, problem.y, kernel)
    assert log_posterior.n_parameters == kernel.size - 1 + 2
    draws = log_posterior.sample_prior(problem.rng, 3)
    assert np.isfinite(log_posterior(draws)).all()
    surrogate = gpy.condition(problem.X, problem.y, draws, kernel)
    surrogate.predict(problem.candidates)
    assert float(surrogate.covariance.kernel.std_periodic.period[0]) == 0.25
    np.testing.assert_array_equal(kernel.param_array, before)


def test_values_outside_the_support_have_density_minus_infinity():
    value = gpy.LogPosterior([[0.1]], [0.0], "rbf")([[np.nan, 0, 0, 0], [0, 0, 0, 0]])
    assert value[0] == -np.inf
    assert np.isfinite(value[1])


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        ("matern52 + cosine", "got 'cosine'"),
        (3, "GPy kernel or an expression"),
        (GPy.kern.RBF(3), "input_dim 2 to suit X, got 3"),
    ],
)
def test_bad_kernels_are_named(kernel, match):
    with pytest.raises(ValueError, match=match):
        gpy.LogPosterior(np.zeros((1, 2)), np.zeros(1), kernel)


def test_a_prior_of_the_wrong_length_is_named():
    prior = gpy.LogPosterior([[0.1]], [0.0], "rbf")._prior
    with pytest.raises(
        ValueError, match=r"5 entries for this kernel and X of shape \(1, 2\), got 4"
    ):
        gpy.LogPosterior(np.zeros((1, 2)), np.zeros(1), "rbf", prior=prior)


def test_gpy_is_imported_only_when_an_expression_needs_it():
    code = "import sys, fitbo.surrogate.gpy; sys.exit('GPy' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_study_on_a_gpy_kernel_proposes_points():
    settings = Settings(
        surrogate="gpy", kernel="matern52 + periodic", n_initial=4, n_samples=8, deterministic=False
    )
    study = Study(Space([(0, 1)]), settings)
    for _ in range(6):
        x = study.ask()[0]
        study.tell(x, float(np.sin(12 * x[0])))
    assert len(np.unique(study.X)) == 6
    assert study.fit().samples.log_theta.shape[1] == 2 + 3 + 2
    assert 0 <= study.recommend().x[0] <= 1
    with pytest.raises(ValueError, match="kernel must combine"):
        Settings(surrogate="gpy", kernel="matern52 + nothing")


@pytest.mark.parametrize("etas", [1, 3])
@pytest.mark.parametrize("module", [None, gpy])
def test_some_of_the_thetas_predict_as_they_did_among_all(problem, module, etas):
    make = condition if module is None else gpy.condition
    theta = problem.log_theta if module is None else in_gpys_order(problem.log_theta, 3)
    whole = make(problem.X, problem.y, theta, etas=etas)
    part = whole[1::2]
    assert part.n_samples == etas * len(theta[1::2])
    chosen = np.arange(whole.n_samples).reshape(-1, etas)[1::2].ravel()
    expected, actual = whole.predict(problem.candidates), part.predict(problem.candidates)
    np.testing.assert_allclose(actual.means, expected.means[:, chosen], rtol=1e-12)
    np.testing.assert_allclose(actual.variances, expected.variances[:, chosen], rtol=1e-12)


def test_several_etas_agree_with_the_batched_path(problem):
    fast = condition(problem.X, problem.y, problem.log_theta, etas=4)
    slow = gpy.condition(problem.X, problem.y, in_gpys_order(problem.log_theta, 3), etas=4)
    np.testing.assert_allclose(slow.eta, fast.eta, rtol=1e-8)
    for expected, actual in zip(
        gradients(fast, problem.candidates), gradients(slow, problem.candidates), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-8 * abs(expected).max())
