"""Minimisers attain the minimum, and nothing lies below it."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from fitbo.problems import PROBLEMS, Problem, problem, split_name
from fitbo.problems.gp_draw import draw, lowest
from fitbo.space import Space
from fitbo.space.design import sobol
from fitbo.surrogate.kernel import KERNELS

NAMES = [*PROBLEMS, "michalewicz2", "michalewicz10", "ackley2", "levy1", "rosenbrock2"]
GP = [("matern52", 1), ("rbf", 2), ("matern32", 3)]


@pytest.mark.parametrize("name", NAMES)
def test_minimisers_attain_the_minimum(name: str) -> None:
    p = problem(name)
    assert p.minimisers.shape[1] == p.dim
    assert ((p.minimisers >= p.space.low) & (p.minimisers <= p.space.high)).all()
    assert_allclose(p.fun(p.minimisers), p.minimum, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_lies_below_the_minimum(name: str) -> None:
    p = problem(name)
    x = p.space.from_cube(sobol(2**16, p.dim, np.random.default_rng(1)))
    f = p.fun(x)
    assert np.isfinite(f).all()
    slack = 1e-12 * max(1.0, abs(p.minimum))
    assert f.min() >= p.minimum - slack
    starts = [*x[np.argsort(f)[:3]], *p.minimisers]
    for start in starts:
        end = minimize(
            lambda z: p(np.clip(z, p.space.low, p.space.high)),
            start,
            method="Nelder-Mead",
            bounds=p.bounds,
            options={"xatol": 1e-9, "fatol": 1e-13, "maxfev": 1000},
        )
        assert end.fun >= p.minimum - slack


@pytest.mark.parametrize("name", NAMES)
def test_vectorised_equals_pointwise_and_corners_are_finite(name: str) -> None:
    p = problem(name)
    x = p.space.from_cube(np.random.default_rng(0).random((20, p.dim)))
    corners = np.array(np.meshgrid(*p.bounds)).reshape(p.dim, -1).T
    both = np.concatenate([x, corners])
    assert_allclose(p.fun(both), [p(point) for point in both], rtol=1e-13, atol=1e-14)
    assert np.isfinite(p.fun(corners)).all()


@pytest.mark.parametrize(
    ("name", "minimum"),
    [  # from the literature, to the digits printed there
        ("michalewicz2", -1.8013),
        ("michalewicz5", -4.687658),
        ("michalewicz10", -9.66015),
        ("hartmann6", -3.32237),
        ("hartmann3", -3.86278),
        ("branin", 0.397887),
        ("eggholder", -959.6407),
        ("styblinski_tang2", -78.33233),
        ("six_hump_camel", -1.0316),
        ("goldstein_price", np.log(3)),
        ("forrester", -6.02074),
    ],
)
def test_known_minima(name: str, minimum: float) -> None:
    decimals = len(str(minimum).partition(".")[2])
    assert abs(problem(name).minimum - minimum) <= 10.0**-decimals


@pytest.mark.parametrize(
    "name", ["hartmann3", "hartmann6", "six_hump_camel", "forrester", "styblinski_tang", "gp_draw"]
)
def test_the_gradient_vanishes_at_interior_minimisers(name: str) -> None:
    """By differences of fourth order: shows an error of a minimiser that the value hides."""
    p, h = problem(name), 1e-4
    for x in p.minimisers:
        for step in h * np.eye(p.dim):
            f = p.fun(x + np.outer([-2, -1, 1, 2], step))
            assert abs(f @ [1, -8, 8, -1]) / (12 * h) < 1e-7
        assert ((x > p.space.low) & (x < p.space.high)).all()


def test_michalewicz_by_many_digits() -> None:
    """Each coordinate's minimum against forty-digit arithmetic from a scan of the line."""

    def log_depth(x: mpmath.mpf, i: int) -> mpmath.mpf:
        u = i * x**2 / mpmath.pi
        return mpmath.log(mpmath.sin(x)) + 20 * mpmath.log(abs(mpmath.sin(u)))

    p, total, line = problem("michalewicz", dim=6), mpmath.mpf(0), np.linspace(0, np.pi, 20001)
    with mpmath.workdps(40):
        for i in range(1, 7):
            start = line[np.argmax(np.sin(line) * np.sin(i * line**2 / np.pi) ** 20)]
            x = mpmath.findroot(lambda x, i=i: mpmath.diff(lambda z: log_depth(z, i), x), start)
            total -= mpmath.exp(log_depth(x, i))
            assert abs(x - p.minimisers[0, i - 1]) < 1e-13
        assert abs(p.minimum - total) < 1e-14


def test_formulae_at_points_worked_by_hand() -> None:
    e = np.e
    assert_allclose(problem("ackley2")([1.0, 1.0]), 20 - 20 * np.exp(-0.2), rtol=1e-14)
    assert_allclose(problem("ackley1")([0.5]), 20 - 20 * np.exp(-0.1) + e - 1 / e, rtol=1e-14)
    assert problem("rosenbrock", dim=3)([0.0, 0.0, 2.0]) == 1 + 1 + 400
    assert_allclose(problem("rastrigin", dim=2)([0.5, 1.0]), 0.25 + 20 + 1, rtol=1e-14)
    assert problem("styblinski_tang", dim=2)([1.0, 2.0]) == (1 - 16 + 5 + 16 - 64 + 10) / 2
    # w = (0, 1): sin^2 0 + 1 (1 + 10 sin^2 1) + 0
    assert_allclose(problem("levy2")([-3.0, 1.0]), 1 + 10 * np.sin(1) ** 2, rtol=1e-14)
    assert_allclose(problem("branin")([0.0, 0.0]), 36 + 20 - 10 / (8 * np.pi), rtol=1e-14)
    assert_allclose(problem("goldstein_price")([0.0, 0.0]), np.log(20 * 30), rtol=1e-14)
    assert_allclose(problem("six_hump_camel")([1.0, 1.0]), 4 - 2.1 + 1 / 3 + 1, rtol=1e-14)
    assert_allclose(problem("forrester")([1.0]), 16 * np.sin(8), rtol=1e-14)
    assert_allclose(
        problem("eggholder")([0.0, -47.0]), 0.0, atol=1e-12
    )  # both factors vanish there
    assert_allclose(problem("michalewicz1")([1.0]), -np.sin(1) * np.sin(1 / np.pi) ** 20)


@pytest.mark.parametrize(("kernel", "dim"), GP)
def test_the_frequencies_of_a_draw_are_the_kernels(kernel: str, dim: int) -> None:
    """Bochner: E cos(omega . delta) = k(delta); 200 draws of 1024, five standard errors."""
    delta = np.random.default_rng(3).random((8, dim)) / np.sqrt(dim)
    cosines = np.concatenate(
        [np.cos(draw(dim, seed, 0.4, kernel).omega @ delta.T) for seed in range(200)]
    )
    rho = KERNELS[kernel].value((delta**2).sum(1) / 0.4**2)
    error = cosines.std(0) / np.sqrt(len(cosines))
    assert (abs(cosines.mean(0) - rho) < 5 * error).all()


def test_draws_have_zero_mean_and_unit_variance_and_covary() -> None:
    """Over 2000 draws at two points, five standard errors."""
    x = np.array([[0.2, 0.9], [0.4, 0.7]])
    f = np.array([draw(2, seed, 0.4, "rbf")(x) for seed in range(2000)])
    assert abs(f.mean(0)).max() < 5 / np.sqrt(2000)
    assert abs(f.var(0) - 1).max() < 5 * np.sqrt(2 / 2000)
    assert abs((f[:, 0] * f[:, 1]).mean() - np.exp(-0.25)) < 5 * np.sqrt(2 / 2000)


def test_a_draw_is_repeated_by_its_options_and_changed_by_each() -> None:
    x = np.random.default_rng(0).random((5, 2))
    base = problem("gp_draw").fun(x)
    assert np.array_equal(base, problem("gp_draw2", seed=0, kernel="matern52").fun(x))
    for options in ({"seed": 1}, {"lengthscale": 0.5}, {"kernel": "rbf"}):
        assert abs(problem("gp_draw", **options).fun(x) - base).max() > 1e-3


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_gradient_of_a_draw(dim: int) -> None:
    f, x, h = draw(dim, 1, 0.3, "matern52"), np.full(dim, 0.4), 1e-6
    differences = [(f((x + h * e)[None]) - f((x - h * e)[None]))[0] / (2 * h) for e in np.eye(dim)]
    assert_allclose(f.value_and_grad(x)[1], differences, rtol=1e-6, atol=1e-7)
    assert_allclose(f.value_and_grad(x)[0], f(x[None])[0], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 4, 6])
def test_a_search_sixteen_times_as_dense_finds_no_lower_draw(dim: int) -> None:
    for seed in range(3):
        f = draw(dim, seed, 0.3, "matern52")
        assert lowest(f, 2**18, 1024)[1] >= lowest(f)[1] - 1e-10


def test_noise() -> None:
    quiet, noisy = problem("branin"), problem("branin", noise_std=0.5)
    rng = np.random.default_rng(0)
    x = [1.0, 2.0]
    assert quiet.observe(x, rng) == quiet(x) == noisy(x)
    residuals = np.array([noisy.observe(x, rng) - quiet(x) for _ in range(2000)])
    assert abs(residuals.mean()) < 4 * 0.5 / np.sqrt(2000)
    assert 0.46 < residuals.std() < 0.54


@pytest.mark.parametrize("name", PROBLEMS)
def test_names_and_suffixes(name: str) -> None:
    family, p = PROBLEMS[name], problem(name)
    assert p.dim == family.dim
    assert p.space == Space(p.bounds)
    assert p.name == (f"{name}{family.dim}" if family.free else name)
    assert split_name(name) == (name, None)
    if family.free:
        assert split_name(p.name) == split_name(f"{name}_{family.dim}") == (name, family.dim)
    again = problem(p.name)
    assert again.name == p.name
    assert again.minimum == p.minimum
    assert problem(name, dim=family.dim, **family.options).minimum == p.minimum
    assert "\n" not in family.description
    copy = pickle.loads(pickle.dumps(p))  # noqa: S301 (workers of other processes receive it so)
    assert copy(p.minimisers[0]) == p(p.minimisers[0])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hartman6", {}, r"one of michalewicz, .*'hartman6'; did you mean 'hartmann6'"),
        ("Styblinski-Tang", {}, "did you mean 'styblinski_tang'"),
        ("hartmann4", {}, "did you mean 'hartmann"),
        ("nothing at all", {}, "got 'nothing at all'$"),
        ("", {}, "got ''$"),
        ("ackley0", {}, "ackley takes dimensions of at least 1, got dim=0"),
        ("rosenbrock1", {}, "rosenbrock takes dimensions of at least 2, got dim=1"),
        ("gp_draw7", {}, "gp_draw takes dimensions of 1 to 6, got dim=7"),
        ("branin", {"dim": 3}, "branin has dimension 2, got dim=3; leave dim out$"),
        ("hartmann6", {"dim": 3}, "dimension 6, got dim=3; leave dim out, or 'hartmann3'"),
        ("ackley5", {"dim": 4}, "'ackley5' and dim=4 disagree; give the dimension once"),
        ("ackley", {"dim": 2.5}, "dim must be a whole number of at least 1, got 2.5"),
        ("ackley", {"dim": True}, "dim must be a whole number"),
        ("ackley", {"noise_std": -1.0}, "noise_std must be finite and at least 0, got -1"),
        ("ackley", {"m": 3}, "ackley takes the options none, got 'm'"),
        ("gp_draw", {"lengthscales": 1}, "got 'lengthscales'; did you mean 'lengthscale'"),
        ("gp_draw", {"lengthscale": 0.0}, "lengthscale must be a positive number, got 0"),
        ("gp_draw", {"lengthscale": "a"}, "lengthscale must be a positive number, got 'a'"),
        ("gp_draw", {"kernel": "rfb"}, "kernel must be one of rbf, matern52, matern32, got 'rfb'"),
        ("gp_draw", {"seed": 1.5}, "seed must be a whole number of at least 0, got 1.5"),
        ("michalewicz", {"m": 0}, "m must be a whole number of at least 1, got 0"),
    ],
)  # fmt: skip
def test_errors(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        problem(name, **options)


def test_a_point_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x must have shape \(2,\) for branin, got \(3,\)"):
        problem("branin")([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"minimisers must have shape \(k, 1\), got \(2,\)"):
        Problem("own", lambda x: x[:, 0], ((0.0, 1.0),), 0.0, np.zeros(2))
