import numpy as np
import pytest
from scipy import stats

from fitbo.surrogate.gp import (
    BORDER,
    JITTERS,
    LIKELIHOOD_JITTER,
    blocks,
    cholesky,
    inverse_factor,
    inverses_of,
    log_likelihood,
)


def definite(rng, M, n, floor=0.1):
    root = rng.standard_normal((M, n, n))
    return root @ root.swapaxes(1, 2) + floor * np.eye(n)


def bordered(K, r):
    M, n = r.shape
    out = np.zeros((M, n + 1, n + 1))
    out[:, :n, :n], out[:, n, :n], out[:, n, n] = K, r, BORDER
    return out


def test_the_bordered_factor_gives_the_gaussian_log_density():
    rng = np.random.default_rng(0)
    K, r = definite(rng, 5, 7), rng.standard_normal((5, 7))
    expected = [
        stats.multivariate_normal(cov=matrix).logpdf(row) for matrix, row in zip(K, r, strict=True)
    ]
    np.testing.assert_allclose(log_likelihood(bordered(K, r)), expected, rtol=1e-12)


def test_only_the_lower_triangle_is_read():
    rng = np.random.default_rng(1)
    stack = bordered(definite(rng, 3, 6), rng.standard_normal((3, 6)))
    expected = log_likelihood(stack)
    rows, columns = np.triu_indices(7, 1)
    stack[:, rows, columns] = np.nan
    np.testing.assert_array_equal(log_likelihood(stack), expected)


def test_jitter_goes_to_the_failing_matrices_alone():
    rng = np.random.default_rng(2)
    K = definite(rng, 9, 4)
    K[3], K[7] = np.ones((4, 4)) - 1e-9 * np.eye(4), 1e8 * np.ones((4, 4)) - 10 * np.eye(4)
    L, jitter = cholesky(K)
    good = np.delete(np.arange(9), [3, 7])
    assert (jitter[good] == 0).all()
    np.testing.assert_array_equal(L[good], np.linalg.cholesky(K[good]))
    for bad in (3, 7):  # the smallest level that exceeds the negative eigenvalue's share
        assert JITTERS[0] < jitter[bad] <= 1e-6
        raised = K[bad] + jitter[bad] * np.diag(np.diag(K[bad]))
        np.testing.assert_allclose(L[bad] @ L[bad].T, raised, rtol=1e-10)


def test_jitter_does_not_depend_on_the_scales_of_the_diagonal():
    correlation = np.ones((1, 3, 3))
    scale = np.array([1e-6, 1.0, 1e6])
    expected = cholesky(correlation - 1e-8 * np.eye(3))[1]
    assert cholesky((correlation - 1e-8 * np.eye(3)) * np.outer(scale, scale))[1] == expected


def test_the_hopeless_have_density_minus_infinity_and_spare_the_others():
    rng = np.random.default_rng(3)
    stack = bordered(definite(rng, 4, 3), rng.standard_normal((4, 3)))
    expected = log_likelihood(stack)
    stack[1, :3, :3] = [[1, 2, 0], [2, 1, 0], [0, 0, 1]]  # needs a jitter of one
    stack[2, 1, 0] = np.nan
    value = log_likelihood(stack)
    assert (value[[1, 2]] == -np.inf).all()
    np.testing.assert_array_equal(value[[0, 3]], expected[[0, 3]])
    L, jitter = cholesky(stack, LIKELIHOOD_JITTER)
    assert (jitter[[1, 2]] == np.inf).all()
    assert np.isnan(L[[1, 2], -1, -1]).all()


def test_conditioning_inverts_and_says_what_it_took():
    rng = np.random.default_rng(4)
    K = definite(rng, 3, 20)
    inverse, jitter = inverse_factor(K)
    assert abs(inverse @ np.linalg.cholesky(K) - np.eye(20)).max() < 1e-12
    assert (np.triu(inverse, 1) == 0).all()
    assert (jitter == 0).all()


def test_any_finite_covariance_conditions():
    inverse, jitter = inverse_factor(np.ones((2, 30, 30)))
    assert np.isfinite(inverse).all()
    assert (jitter > 0).all()


@pytest.mark.parametrize("size", [0, 1, 3, 10, 11])
def test_blocks_cover_the_range_once(size):
    covered = np.concatenate([np.arange(10)[rows] for rows in blocks(10, size)])
    np.testing.assert_array_equal(covered, np.arange(10))
    assert list(blocks(0, size)) == []


def test_a_square_stays_one_where_the_inverse_is_rounding():
    """r^T K^-1 r is |L^-1 r|^2; some are negative by K^-1, and make a likelihood of any size."""
    rng = np.random.default_rng(0)
    B, w = rng.standard_normal((200, 30, 4)), 1e3 * rng.standard_normal((200, 4, 1))
    K = 1e6 * B @ B.swapaxes(1, 2) + 3e-9 * np.eye(30)
    r = (1e3 * B @ w)[:, :, 0]  # so that the square is |w|^2
    log_det, inverse, A, square = inverses_of(K.copy(), r)
    sound = np.isfinite(log_det)
    assert sound.sum() > 100
    np.testing.assert_allclose(square[sound], np.square(w).sum((1, 2))[sound], rtol=1e-3)
    assert (np.vecdot(r, np.vecdot(inverse, r[:, None]))[sound] < 0).any()
    # Where K is well conditioned, all agree.
    K = np.eye(30) + 0.1 * B[:, :, :1] @ B[:, :, :1].swapaxes(1, 2)
    log_det, inverse, A, square = inverses_of(K.copy(), r)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(K)[1], rtol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(K), atol=1e-13)
    np.testing.assert_allclose(A, np.linalg.solve(K, r[:, :, None])[:, :, 0], rtol=1e-9)
    np.testing.assert_allclose(square, np.vecdot(r, A), rtol=1e-12)
