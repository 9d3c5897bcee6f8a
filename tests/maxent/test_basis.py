"""Bases: products linearise, nodes integrate, families agree."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.maxent import FAMILIES, Basis
from fitbo.maxent.basis import chebyshev_coefficients, lobatto

BASES = [Basis(f, 7, k) for f in FAMILIES for k in (0, 1, 4, 8)]


@pytest.mark.parametrize("basis", BASES, ids=str)
def test_hessian_is_the_second_moment_of_the_values(basis: Basis) -> None:
    u, w = basis.nodes()
    q = np.random.default_rng(0).random((3, len(u))) * w
    values = basis.values(u)
    direct = np.einsum("bg,gj,gk->jkb", q, values, values)
    assert_allclose(basis.hessian(basis.products(u).T @ q.T), direct, atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_start_with_one_and_u(family: str) -> None:
    values = Basis(family, 3).values(np.array([-1.0, 0.2, 1.0]))
    assert_allclose(values[:, 0], 1)
    assert_allclose(values[:, 1], [-1, 0.2, 1])


def test_windows_are_even_and_odd_at_shrinking_scales() -> None:
    basis = Basis("legendre", 2, 4, ratio=4.0)
    assert_allclose(basis.scales, [0.25, 0.25, 0.0625, 0.0625])
    u = np.array([0.25, 0.0625])
    windows, mirrored = basis.values(u)[:, 3:], basis.values(-u)[:, 3:]
    assert_allclose(windows[0, :2], np.exp(-0.5))
    assert_allclose(windows[1, 2:], np.exp(-0.5))
    assert_allclose(mirrored, windows * [1, -1, 1, -1])


def test_lobatto_is_exact_to_degree_2n_minus_3_and_has_the_ends() -> None:
    x, w = lobatto(9)
    assert x[0] == -1.0
    assert x[-1] == 1.0
    for degree in range(16):
        assert_allclose(w @ x**degree, (1 + (-1) ** degree) / (degree + 1), atol=1e-14)
    assert abs(w @ x**16 - 2 / 17) > 1e-7


@pytest.mark.parametrize("basis", [*BASES, Basis("legendre", 200, 8)], ids=str)
def test_nodes_integrate_their_own_products(basis: Basis) -> None:
    coarse, fine = basis.nodes(), basis.nodes(2)
    assert_allclose(coarse[1].sum(), 2, rtol=1e-13)
    assert abs(coarse[0]).max() <= 1
    one, other = (w @ basis.products(u) for u, w in (coarse, fine))
    assert_allclose(one, other, atol=1e-6)


def test_chebyshev_coefficients_reproduce_each_family() -> None:
    u = np.linspace(-1, 1, 11)
    t = Basis("chebyshev", 12).values(u)
    for family in FAMILIES:
        expected = Basis(family, 12).values(u)
        assert_allclose(t @ chebyshev_coefficients(family, 12).T, expected, atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fourier", 3), "basis must be one of power, chebyshev, legendre, got 'fourier'"),
        (("power", 0), "needs degree >= 1 and n_windows >= 0, got 0, 0"),
        (("power", 2, -1), "got 2, -1"),
        (("power", 2, 2, 1.0), r"ratio must exceed 1, got 1\.0"),
    ],
)
def test_bad_bases(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Basis(*arguments)
