"""The classifier against independent mathematics, and what it does to an acquisition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import norm

from fitbo.acquisition.feasibility import (
    LEFT_ALONE,
    MEAN,
    MEAN_VARIANCE,
    SIGNAL,
    STEEP,
    Success,
    Weighted,
    hypotheses,
    laplace,
    learn,
    reference_of,
)
from fitbo.space import Categorical, Integer, Real, Space

CUBE = Space([(0, 1)] * 3)


def points(n: int, dim: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, dim))


def covariance(n: int, seed: int = 0) -> np.ndarray:
    U = points(n, seed=seed)
    r2 = ((U[:, None] - U) ** 2).sum(2) / 0.2
    return SIGNAL * np.exp(-0.5 * r2) + MEAN_VARIANCE


def test_the_mode_is_where_an_optimiser_finds_it() -> None:
    K = covariance(8)
    t = np.array([1, 1, -1, 1, -1, 1, 1, 1.0])
    a, R, _ = laplace(K[None], t)
    h = MEAN + K @ a[0]
    precision = np.linalg.inv(K)

    def energy(h: np.ndarray) -> float:
        return 0.5 * (h - MEAN) @ precision @ (h - MEAN) - log_ndtr(t * h).sum()

    found = minimize(energy, np.full(8, MEAN), method="BFGS", options={"gtol": 1e-8})
    assert_allclose(h, found.x, atol=1e-4)
    z = t * h
    ratio = norm.pdf(z) / norm.cdf(z)
    W = ratio * (z + ratio)
    assert_allclose(R[0], np.linalg.inv(K + np.diag(1 / W)), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("t", [[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
def test_the_evidence_is_near_the_integral(t: list[float]) -> None:
    """Two data: p(t) = E[Phi(t_1 h_1) Phi(t_2 h_2)] by quadrature; Laplace is within a fifth."""
    K = covariance(2, seed=3)
    _, _, log_evidence = laplace(K[None], np.array(t))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    e = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1) @ np.linalg.cholesky(K).T + MEAN
    mass = np.outer(weights, weights) / (2 * np.pi)
    truth = (mass * norm.cdf(t[0] * e[..., 0]) * norm.cdf(t[1] * e[..., 1])).sum()
    assert_allclose(np.exp(log_evidence[0]), truth, rtol=0.2)


def test_prediction_against_dense_algebra() -> None:
    """h* given h, averaged over Laplace's Gaussian of h, and Phi over h* by quadrature."""
    U, X = points(12), points(4, seed=8)
    t = np.where(U[:, 0] > 0.6, -1.0, 1.0)
    q = np.array([[4.0, 1.0, 9.0]])

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return SIGNAL * np.exp(-0.5 * (q * (A[:, None] - B) ** 2).sum(2)) + MEAN_VARIANCE

    K = k(U, U)
    a, R, _ = laplace(K[None], t)
    got = Success(U, q, np.array([[SIGNAL]]), np.ones(1), a, R)(X)
    h = MEAN + K @ a[0]
    ratio = norm.pdf(t * h) / norm.cdf(t * h)
    W = np.diag(ratio * (t * h + ratio))
    A = np.linalg.solve(K, k(U, X))
    m = MEAN + A.T @ (h - MEAN)
    posterior = np.linalg.inv(np.linalg.inv(K) + W)
    v = SIGNAL + MEAN_VARIANCE - (A * k(U, X)).sum(0) + (A * (posterior @ A)).sum(0)
    for p, centre, s in zip(got, m, np.sqrt(v), strict=True):
        truth, _ = quad(lambda z, c=centre, s=s: norm.cdf(c + s * z) * norm.pdf(z), -9, 9)
        assert_allclose(p, truth, atol=1e-6)


def test_the_hypotheses_are_a_constant_all_together_each_alone_and_sums() -> None:
    space = Space({"a": Real(0, 1), "c": Categorical(["x", "y", "z"]), "n": Integer(0, 9)})
    q, A = hypotheses(space)
    assert q.shape == (3 + 2 * 3, 5)
    assert q[:3].all()
    alone = [[1, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]
    assert (q[3:] > 0).astype(int).tolist() == alone * 2
    assert A.shape == (1 + 9 + 2 * (1 + 3), 9)
    assert not A[0].any()
    assert set(A.ravel()) == {0.0, SIGNAL}
    assert np.array_equal(A[1:10], SIGNAL * np.eye(9))
    assert sorted((A[10:] > 0).sum(1).tolist()) == [2] * 6 + [3] * 2
    single = hypotheses(Space([(0, 1)]))
    assert single[0].shape == (3, 1)
    assert single[1].shape == (4, 3)


def test_either_of_two_limits_is_learnt() -> None:
    space = Space([(0, 1)] * 6)
    U, X = points(60, 6), points(2000, 6, seed=1)

    def bad(U: np.ndarray) -> np.ndarray:
        return (U[:, 1] > 0.75) | (U[:, 4] < 0.2)

    p = learn(space, U[~bad(U)], U[bad(U)])(X)
    assert ((p < 0.5) == bad(X)).mean() > 0.9


def test_gradient_by_differences() -> None:
    U = points(25)
    failed = U[:, 0] + U[:, 1] > 1.2
    success = learn(CUBE, U[~failed], U[failed])
    X, h = points(6, seed=2), 1e-6
    value, gradient = success.value_and_grad(X)
    steps = h * np.eye(3)
    numeric = np.stack([(success(X + e) - success(X - e)) / (2 * h) for e in steps], 1)
    assert_allclose(gradient, numeric, atol=1e-7)
    assert abs(gradient).max() > 0.1
    assert_allclose(value, success(X))
    assert ((value > 0) & (value < 1)).all()


def test_a_limit_on_one_parameter_is_learnt_in_six_dimensions() -> None:
    space = Space([(0, 1)] * 6)
    U, X = points(50, 6), points(2000, 6, seed=1)
    success = learn(space, U[U[:, 2] <= 0.7], U[U[:, 2] > 0.7])
    p = success(X)
    assert p[X[:, 2] < 0.6].mean() > 0.85
    assert p[X[:, 2] > 0.8].mean() < 0.15


def test_a_choice_that_fails_is_learnt() -> None:
    space = Space({"a": Real(0, 1), "n": Integer(0, 9), "c": Categorical(["x", "y", "z"])})
    U = space.place(points(40))
    bad = np.array([p["c"] == "y" for p in space.from_cube(U)])
    success = learn(space, U[~bad], U[bad])
    x, y = success(space.to_cube([{"a": 0.5, "n": 5, "c": c} for c in ("x", "y")]))
    assert y < 0.2 < 0.8 < x


def test_failures_by_chance_leave_the_search_alone() -> None:
    U = points(60)
    unlucky = np.random.default_rng(5).random(60) < 0.3
    p = learn(CUBE, U[~unlucky], U[unlucky])(points(500, seed=1))
    assert abs(p.mean() - 0.7) < 0.1
    assert np.ptp(p) < 0.35
    success = learn(CUBE, U[~unlucky], U[unlucky])
    assert (p > LEFT_ALONE * success.usual).mean() > 0.95


def test_all_failed_and_one_failed() -> None:
    everywhere = learn(CUBE, np.empty((0, 3)), points(20))(points(50, seed=1))
    assert everywhere.max() < 0.3
    once = learn(CUBE, points(20), points(1, seed=9))
    assert once(points(50, seed=1)).min() > 0.3
    same = points(1)
    again = learn(CUBE, np.repeat(same, 3, 0), np.repeat(same, 2, 0))(same)  # both at one place
    assert 0.2 < again[0] < 0.9


@pytest.mark.parametrize("reference", [0.0, 0.4, None])
def test_weighted_worth_and_its_gradient(reference: float | None) -> None:
    U = points(20)
    failed = U[:, 0] > 0.6
    success = learn(CUBE, U[~failed], U[failed])

    class Worth:
        def __call__(self, X: np.ndarray) -> np.ndarray:
            return np.sin(3 * X).sum(1) - 1.5

        def value_and_grad(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return self(X), 3 * np.cos(3 * X)

    weighted = Weighted(Worth(), success, reference)
    X, h = points(30, seed=4), 1e-6
    got, gradient = weighted.value_and_grad(X)
    assert_allclose(got, weighted(X))
    numeric = np.stack([(weighted(X + e) - weighted(X - e)) / (2 * h) for e in h * np.eye(3)], 1)
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)
    p, plain = success(X), Worth()(X)
    alone = p < LEFT_ALONE * success(U[~failed]).max()
    weight = np.where(alone, p * (p / (LEFT_ALONE * success(U[~failed]).max())) ** STEEP, p)
    assert alone.any()
    assert not alone.all()
    if reference is None:
        assert_allclose(got, plain + np.log(weight))
    else:
        positive = plain > reference
        assert positive.any()
        assert not positive.all()
        # Below the reference 2 - G, as a chance to fail never makes a point better.
        factor = np.where(positive, weight, 2 - weight)
        assert_allclose(got - reference, (plain - reference) * factor, rtol=1e-12, atol=1e-14)


def test_the_worth_of_learning_nothing() -> None:
    assert reference_of("fitbo", 2.0) == 0.0
    assert reference_of("ei", 2.0) == 0.0
    assert reference_of("logei", 2.0) is None
    assert reference_of("lcb", 2.0) == -2.0
