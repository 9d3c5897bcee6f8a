"""The solver against closed forms, itself, and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize

from fitbo.maxent import FAMILIES, Basis, gaussian_moments, mixture_moments, solve
from fitbo.maxent.dual import Dual, solve_spd


def moments_of(basis: Basis, density, refine: int = 4) -> np.ndarray:
    u, w = basis.nodes(refine)
    p = density(u) * w
    return (p / p.sum()) @ basis.values(u)


@pytest.mark.parametrize("family", FAMILIES)
def test_uniform_moments_give_the_uniform_density(family: str) -> None:
    basis = Basis(family, 6)
    density = solve(moments_of(basis, np.ones_like), basis)
    assert_allclose(density.entropy, np.log(2), rtol=1e-9)
    assert_allclose(density.pdf([-0.9, 0.0, 0.5]), 0.5, rtol=1e-5)
    assert density.converged


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exponential_family_member_is_recovered(family: str) -> None:
    """p = exp(polynomial of degree 4) is its own MaxEnt density from four moments."""

    def p(u: np.ndarray) -> np.ndarray:
        return np.exp(-3 * u**4 + 2 * u**2 - u)

    basis = Basis(family, 4)
    mass = integrate.quad(p, -1, 1)[0]
    truth = integrate.quad(lambda u: -p(u) / mass * np.log(p(u) / mass), -1, 1)[0]
    density = solve(moments_of(basis, p), basis, tol=1e-12)
    assert_allclose(density.entropy, truth, atol=1e-10)
    u = np.linspace(-1, 1, 9)
    assert_allclose(density.pdf(u), p(u) / mass, rtol=1e-6)
    assert_allclose(density.expect(lambda u: u**2), moments_of(Basis("power", 2), p)[2], rtol=1e-9)
    assert density.residual <= 1e-12


def test_two_moments_give_a_truncated_gaussian() -> None:
    basis = Basis("legendre", 2)
    mu, _, _ = gaussian_moments(basis, np.array(0.1), np.array(0.01))
    density = solve(mu, basis, tol=1e-12)
    assert_allclose(density.entropy, 0.5 * np.log(2 * np.pi * np.e * 0.01), atol=1e-10)


def test_multipliers_are_the_gradient_of_the_entropy() -> None:
    """The envelope theorem, dH/dmu_i = a_i: what every MEMe gradient rests on."""
    basis = Basis("chebyshev", 5)
    mu = moments_of(
        basis, lambda u: np.exp(-3 * (u - 0.2) ** 2) + 0.3 * np.exp(-9 * (u + 0.5) ** 2)
    )
    a = solve(mu, basis, tol=1e-13).multipliers
    h = 1e-5
    for i in range(1, 6):
        e = h * np.eye(6)[i]
        ends = solve(np.stack([mu + e, mu - e]), basis, tol=1e-13).entropy
        assert_allclose((ends[0] - ends[1]) / (2 * h), a[i], rtol=1e-5, atol=1e-6)


def test_the_printed_dual_has_the_same_minimum_by_scipy() -> None:
    """The printed dual, with its a_0 and exp(-(1 + a.phi)), minimised by scipy instead."""
    basis = Basis("legendre", 4)
    u, w = basis.nodes()
    phi = basis.values(u)
    mu = moments_of(basis, lambda u: 1.5 + u + np.cos(3 * u))

    def printed(a: np.ndarray) -> tuple[float, np.ndarray]:
        q = w * np.exp(-(1 + phi @ a))
        return q.sum() + a @ mu, mu - q @ phi

    found = optimize.minimize(printed, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-9})
    density = solve(mu, basis)
    assert_allclose(density.multipliers, found.x, atol=1e-6)
    assert_allclose(density.entropy, found.fun, atol=1e-10)


def test_entropy_never_rises_with_a_moment_and_tends_to_the_truth() -> None:
    def p(u: np.ndarray) -> np.ndarray:
        return np.exp(-40 * (u - 0.4) ** 2) + 0.5 * np.exp(-90 * (u + 0.3) ** 2)

    mass = integrate.quad(p, -1, 1, epsabs=1e-13)[0]
    truth = integrate.quad(lambda u: -p(u) / mass * np.log(p(u) / mass), -1, 1, epsabs=1e-12)[0]
    for family in ("legendre", "chebyshev"):
        values = [
            float(solve(moments_of(Basis(family, m), p), Basis(family, m), jitter=1e-10).entropy)
            for m in range(2, 40, 3)
        ]
        assert (np.diff(values) < 1e-8).all()
        assert values[-1] == pytest.approx(truth, abs=1e-4)
        assert min(values) > truth - 1e-7


def test_prior_is_the_answer_to_its_own_moments() -> None:
    """Maximum relative entropy: with moments of q0 itself, q = q0 and KL = 0."""

    def log_q0(u: np.ndarray) -> np.ndarray:
        return -5 * (u - 0.3) ** 2 + np.sin(4 * u)

    def q0(u: np.ndarray) -> np.ndarray:
        return np.exp(log_q0(u))

    basis = Basis("legendre", 5)
    density = solve(moments_of(basis, q0), basis, prior=q0)
    u = np.linspace(-1, 1, 7)
    mass = integrate.quad(lambda u: np.exp(log_q0(u)), -1, 1)[0]
    assert_allclose(density.pdf(u), np.exp(log_q0(u)) / mass, rtol=1e-6)
    truth = integrate.quad(lambda u: -np.exp(log_q0(u)) / mass * (log_q0(u) - np.log(mass)), -1, 1)
    assert_allclose(density.entropy, truth[0], atol=1e-8)
    assert_allclose(density.dual, np.log(mass), atol=1e-8)


def test_prior_shifts_the_answer_towards_itself() -> None:
    basis = Basis("power", 2)
    mu = moments_of(basis, np.ones_like)
    tilted = solve(mu, basis, prior=lambda u: np.exp(3 * u**3))
    assert tilted.pdf([0.9]) != pytest.approx(0.5, rel=0.05)
    assert_allclose(tilted.expect(lambda u: u), 0, atol=1e-8)
    assert_allclose(tilted.expect(lambda u: u**2), 1 / 3, atol=1e-8)


def test_batch_equals_singles_and_keeps_its_shape() -> None:
    basis = Basis("legendre", 6, 4)
    rng = np.random.default_rng(0)
    a, s2 = rng.uniform(-0.2, 0.2, (4, 10)), rng.uniform(0.02, 0.1, (4, 10)) ** 2
    mu, _, _ = gaussian_moments(basis, a, s2)
    together = solve(mu, basis)
    assert together.entropy.shape == (4, 10)
    assert together.multipliers.shape == (4, 10, 11)
    assert together.pdf([0.0, 0.5]).shape == (4, 10, 2)
    alone = np.array([[solve(x, basis).entropy for x in row] for row in mu])
    assert_allclose(together.entropy, alone, atol=1e-10)


def mixtures_of(basis: Basis, batch: int) -> np.ndarray:
    """Moments of mixtures of ten, of widths that differ by a factor of thirty."""
    rng = np.random.default_rng(5)
    a, s2 = 0.1 * rng.normal(size=(batch, 10)), rng.uniform(0.004, 0.12, (batch, 10)) ** 2
    return mixture_moments(basis, a, s2, np.full((batch, 10), 0.1))


@pytest.mark.parametrize("batch", [5, 80])
def test_a_solve_may_begin_where_another_ended(batch: int) -> None:
    basis = Basis("legendre", 2, 8)
    mu = mixtures_of(basis, batch)
    cold = solve(mu, basis, jitter=1e-12, gap=1e-10)
    before = cold.multipliers.copy()
    warm = solve(mu, basis, jitter=1e-12, gap=1e-10, start=cold.multipliers)
    assert warm.iterations.max() <= 1 < cold.iterations.min()
    assert_allclose(warm.dual, cold.dual, rtol=0, atol=1e-9)
    assert np.array_equal(before, cold.multipliers)


def test_a_solve_stops_when_no_more_than_the_gap_is_left() -> None:
    basis = Basis("legendre", 2, 8)
    mu = mixtures_of(basis, 200)
    least = solve(mu, basis, jitter=1e-12, tol=1e-13).dual
    steps = []
    for gap in (1e-6, 1e-8, 1e-10):
        density = solve(mu, basis, jitter=1e-12, gap=gap)
        assert density.converged.all()
        assert (density.gap <= gap).all()
        assert (density.dual - least < 3 * gap + 1e-12).all()
        steps.append(density.iterations.sum())
    assert steps[0] < steps[1] < steps[2]


def test_many_moments_stay_stable() -> None:
    def p(u: np.ndarray) -> np.ndarray:
        return np.exp(-30 * (u - 0.1) ** 2) + 0.2 * np.exp(-4 * u**2)

    basis = Basis("legendre", 200)
    density = solve(moments_of(basis, p), basis)
    assert density.residual < 1e-8
    mass = integrate.quad(p, -1, 1)[0]
    truth = integrate.quad(lambda u: -p(u) / mass * np.log(p(u) / mass), -1, 1)[0]
    assert_allclose(density.entropy, truth, atol=1e-7)


def test_jitter_changes_the_path_and_ridge_the_answer() -> None:
    basis = Basis("legendre", 6)
    mu = moments_of(basis, lambda u: np.exp(-9 * u**2) + 0.1)
    reference = solve(mu, basis).entropy
    assert_allclose(
        solve(mu, basis, jitter=1e-4, max_iterations=2000).entropy, reference, atol=1e-9
    )
    assert_allclose(solve(mu, basis, jitter=0.0).entropy, reference, atol=1e-9)
    ridged = solve(mu, basis, ridge=1e-3)
    assert ridged.dual > reference
    assert ridged.residual > 1e-5
    error = mu[1:] - [ridged.expect(lambda u, i=i: basis.values(u)[:, i]) for i in range(1, 7)]
    assert_allclose(error, -1e-3 * ridged.multipliers[1:], atol=1e-8)
    u, w = basis.nodes(refine=2)
    assert_allclose(ridged.entropy, -w @ (ridged.pdf(u) * ridged.log_pdf(u)), atol=1e-9)


def test_unattainable_moments_are_reported_not_hidden() -> None:
    """E[u^2] < E[u]^2 has no density; the dual has no minimum."""
    density = solve([1.0, 0.5, 0.1], "power", max_iterations=50)
    assert not density.converged
    assert density.residual > 1e-3


def test_log_mass_sees_unresolved_nodes() -> None:
    basis = Basis("legendre", 2)
    smooth, _, _ = gaussian_moments(basis, np.array(0.01), np.array(0.08**2))
    assert abs(solve(smooth, basis).log_mass(3)) < 1e-9
    needle, _, _ = gaussian_moments(basis, np.array(0.01), np.array(0.004**2))
    assert abs(solve(needle, basis).log_mass(3)) > 1e-3


def test_a_prior_may_vanish_and_must_be_a_density() -> None:
    half = solve([1.0, 0.5, 0.3], "power", prior=lambda u: np.where(u > 0, 1.0, 0.0))
    assert np.isfinite(half.entropy)
    assert half.pdf([-0.5]) < 1e-200
    for prior, message in [
        (lambda u: -np.ones_like(u), "prior must be finite, non-negative"),
        (lambda u: np.full_like(u, np.nan), "prior must be finite"),
        (lambda u: np.ones(3), r"prior must map shape .* got \(3,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            solve([1.0, 0.5, 0.3], "power", prior=prior)


def test_a_failed_step_is_not_called_convergence() -> None:
    for batch in (1, 40):
        density = solve(np.tile(0.3 ** np.arange(60), (batch, 1)), "power", jitter=0.0)
        assert not density.converged.any()


@pytest.mark.parametrize(("n", "b"), [(1, 50), (7, 40), (24, 33), (30, 50), (5, 3)])
def test_solve_spd_against_lapack(n: int, b: int) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(b, n, n))
    a = root @ root.swapaxes(1, 2) + 0.1 * np.eye(n)
    right = rng.normal(size=(b, n))
    expected = np.linalg.solve(a, right[:, :, None])[:, :, 0]
    found = solve_spd(np.concatenate([a, right[:, None]], axis=1).transpose(1, 2, 0).copy())
    assert_allclose(found.T, expected, rtol=1e-8)


@pytest.mark.parametrize(("n", "b"), [(1, 150), (7, 20), (7, 150), (24, 150), (30, 150)])
def test_solve_spd_takes_another_right_side(n: int, b: int) -> None:
    """By LAPACK where it is faster, and by a Cholesky over the batch."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(b, n, n))
    a = root @ root.swapaxes(1, 2) + 0.1 * np.eye(n)
    right = rng.normal(size=(2, b, n))
    expected = np.linalg.solve(a, right[..., None])[..., 0]
    systems = np.concatenate([a, right[0][:, None]], axis=1).transpose(1, 2, 0).copy()
    assert_allclose(solve_spd(systems).T, expected[0], rtol=1e-8, atol=1e-8)
    systems[-1] = right[1].T
    assert_allclose(solve_spd(systems, factored=True).T, expected[1], rtol=1e-8, atol=1e-8)


def test_a_bent_newton_step_is_of_third_order() -> None:
    """From a distance h of the minimum a Newton step ends within h^2, its correction within h^3."""
    basis = Basis("legendre", 3, 2)
    u, w = basis.nodes()
    a = np.array([0.0, 0.3, 2.0, -0.5, -1.0, 0.7])
    q = w * np.exp(-basis.values(u) @ a)
    mu = basis.values(u).T @ (q / q.sum())
    errors = []
    for h in (0.1, 0.05):
        dual = Dual.of(mu[:, None], basis, 1, None, np.zeros(()))
        start = a[:, None] + h * np.array([[0.0, 1.0, -1.0, 0.5, 1.0, -0.5]]).T
        _, density = dual.evaluate(start)
        _, systems = dual.derivatives(start, density, jitter=0.0)
        step = solve_spd(systems).copy()
        bend, size2 = dual.bend(step, density, systems)
        newton = start[1:] + step[1:] - a[1:, None]
        errors.append([abs(newton).max(), abs(newton + bend).max(), np.sqrt(size2[0])])
    order = np.log2(np.array(errors[0]) / errors[1])
    assert_allclose(order, [2, 3, 1], atol=0.3)


def test_a_gap_is_reached_although_a_ridge_holds_the_residual() -> None:
    basis = Basis("legendre", 6)
    mu = moments_of(basis, lambda u: np.exp(-9 * u**2) + 0.1)
    least = solve(mu, basis, ridge=1e-3, tol=1e-13)
    loose = solve(mu, basis, ridge=1e-3, tol=1e-2, gap=1e-12)
    assert loose.residual > 1e-5
    assert loose.converged
    assert loose.dual - least.dual < 3e-12


@pytest.mark.parametrize(
    ("moments", "options", "message"),
    [
        (1.0, {}, r"moments must have shape \(\.\.\., m \+ 1\) with m >= 1, got \(\)"),
        ([1.0], {}, r"got \(1,\)"),
        ([1.0, np.nan], {}, r"moments must be finite, got NaN or inf in shape \(2,\)"),
        ([0.9, 0.0], {}, r"moments\[\.\.\., 0\] must be 1"),
        (
            [1.0, 0.0, 0.3],
            {"basis": Basis("power", 3)},
            r"\(3,\) do not fit a basis of size 3 \+ 1",
        ),
        ([1.0, 0.0], {"jitter": -1.0}, "jitter, tol and gap must be >= 0"),
        ([1.0, 0.0], {"ridge": -1.0}, "ridge must be a number >= 0"),
        ([1.0, 0.0], {"basis": "sine"}, "basis must be one of power, chebyshev, legendre"),
    ],
)
def test_bad_input(moments: object, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(moments, **{"basis": "power", **options})  # type: ignore[arg-type]


def test_moments_that_no_density_under_the_prior_has_do_not_converge() -> None:
    """A mean of -1/2, where the prior lives on u > 0."""

    def right(u: np.ndarray) -> np.ndarray:
        return (u > 0).astype(np.float64)

    assert not solve([1.0, -0.5], "legendre", prior=right).converged
    assert solve([1.0, 0.4], "legendre", prior=right).converged


def test_the_scale_of_a_prior_shows_in_the_dual_alone() -> None:
    plain = solve([1.0, 0.2], "legendre", prior=lambda u: np.exp(-u))
    thousandfold = solve([1.0, 0.2], "legendre", prior=lambda u: 1e3 * np.exp(-u))
    assert thousandfold.entropy == pytest.approx(plain.entropy, abs=1e-9)
    assert thousandfold.dual == pytest.approx(plain.dual + np.log(1e3), abs=1e-9)
