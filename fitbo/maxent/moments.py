"""Moments of Gaussians and of their mixtures in any basis, exactly.

For u ~ N(a, s^2) Stein's lemma, E[(u - a) f] = s^2 E[f'], turns each family's three-term recursion
into one for its expectations p_i = E[phi_i], with d_i = E[phi_i'] and e_i = E[phi_i'']:

    power       p_{i+1} = a p_i + i s^2 p_{i-1}
    Legendre    (i+1) p_{i+1} = (2i+1)(a p_i + s^2 d_i) - i p_{i-1},  d_{i+1} = (2i+1) p_i + d_{i-1}
    Chebyshev   p_{i+1} = 2 (a p_i + s^2 d_i) - p_{i-1},              d_{i+1} = (i+1) v_i

where v_i = E[U_i] = 2 p_i + v_{i-2}. Windows, with t = 1 / (rho^2 + s^2) and
W = rho sqrt(t) exp(-a^2 t / 2):

    E[even] = W,    E[odd] = rho a t W.

Gradients: dp_i/da = d_i and, because a Gaussian solves the heat equation, dp_i/d(s^2) = e_i / 2.

These are moments over the whole line. They serve a density on [-1, 1] only while the mass beyond,
times the polynomials' growth there, is negligible. Of a component eight stds inside the edge, the
part t stds beyond it weighs exp(n sqrt(2 t s) - (8 + t)^2/2) at degree n, below 1e-10 while
n^2 s <= 150; and forward recursion loses a factor of about exp(s^2 n^2/2) in accuracy, little while
n s <= 4. Components that pass both tests are recursed. The others are wide and smooth relative to
the nodes, and are integrated there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fitbo.maxent.basis import VANDER, Basis, chebyshev_coefficients
from fitbo.mixture import Array

MAX_STD, MAX_REACH = 4.0, 150.0  # of n s and of n^2 s
BLOCK = 1 << 16  # numbers per array in a block: a handful of arrays stay in cache
NODE_BLOCK = 1 << 20
MINUS_HALF = -0.5 / float(np.log(2.0))  # in units of log 2

Terms = tuple[Any, Any, Any]  # arrays or, where they are constant, numbers


def gaussian_moments(basis: Basis, a: Array, s2: Array) -> Terms:
    """E[phi_i], dE/da and dE/d(s^2) under N(a, s2) on the whole line, each (..., m + 1)."""
    a, s2 = np.broadcast_arrays(a, s2)
    flat = a.reshape(-1), s2.reshape(-1)
    terms = [*_polynomials(basis, *flat), *_windows(basis, *flat)]
    p, d, e = (
        np.stack(np.broadcast_arrays(*term), axis=-1).reshape(*a.shape, basis.size + 1)
        for term in zip(*terms, strict=True)
    )
    return p, d, 0.5 * e


def mixture_moments(basis: Basis, a: Array, s2: Array, weights: Array) -> Array:
    """E[phi_i] under each mixture, (B, M) -> (B, m + 1)."""
    out = np.empty((len(a), basis.size + 1))
    for rows, wide, narrow in _blocks(basis, 1, a, s2, weights):
        block = a[rows], s2[rows], weights[rows]
        _window_moments(basis, *block, out[rows, basis.degree + 1 :])
        _polynomial_moments(basis, out[rows, : basis.degree + 1], *narrow)
        if wide is not None:
            u, w, _, density = _on_nodes(basis, *block[:2], block[2] * wide)
            integrals = VANDER[basis.family](u, basis.degree) * w[:, None]
            out[rows, : basis.degree + 1] += density.sum(-1) @ integrals
    return out


def _parabola(basis: Basis) -> tuple[float, float]:
    """phi_2 = slope u^2 + level."""
    k0, _, k2 = map(float, chebyshev_coefficients(basis.family, 2)[2])
    return 2 * k2, k0 - k2


def mixture_gradient(
    basis: Basis, a: Array, s2: Array, weights: Array, multipliers: Array
) -> tuple[Array, Array]:
    """d/da_j and d/d(s_j^2) of sum_i c_i E[phi_i], c = multipliers (B, m + 1); (B, M) each."""
    by_mean, by_variance = np.empty((2, *a.shape))
    for rows, wide, narrow in _blocks(basis, (basis.n_windows + 1) // 2, a, s2, weights):
        ar, sr, c = a[rows], s2[rows], multipliers[rows]
        mean, variance = by_mean[rows], by_variance[rows]
        mean[:], variance[:] = c[:, 1, None], 0.0
        for i, (_, d, e) in enumerate(_polynomials(basis, *narrow[:2])):
            if i > 1:
                mean += c[:, i, None] * d
                variance += c[:, i, None] * e
        if wide is not None:
            mean *= ~wide
            variance *= ~wide
            u, w, z, density = _on_nodes(basis, ar, sr, wide.astype(np.float64))
            psi = c[:, : basis.degree + 1] @ VANDER[basis.family](u, basis.degree).T * w
            mean += np.einsum("bg,bgm->bm", psi, density * z) / np.sqrt(sr)
            variance += np.einsum("bg,bgm->bm", psi, density * (z * z - 1)) / sr
        if basis.n_windows:
            _add_window_slopes(basis, ar, sr, c[:, basis.degree + 1 :], mean, variance)
        mean *= weights[rows]
        variance *= weights[rows]
        variance *= 0.5
    return by_mean, by_variance


def _polynomials(basis: Basis, a: Array, s2: Array) -> Iterator[Terms]:
    """(p_i, d_i, e_i) for i = 0..degree, each of the shape of a or, where constant, a number."""
    yield 1.0, 0.0, 0.0
    yield a, 1.0, 0.0
    if basis.degree > 1:
        slope, level = _parabola(basis)
        square = a * a
        square += s2
        square *= slope
        square += level
        second = square, 2 * slope * a, 2 * slope
        yield second
        further = {"power": _power, "legendre": _legendre, "chebyshev": _chebyshev}[basis.family]
        yield from further(a, s2, second, basis.degree)


def _power(a: Array, s2: Array, second: Terms, degree: int) -> Iterator[Terms]:
    before, now = a, second[0]
    for i in range(2, degree):
        before2, before, now = before, now, a * now + i * s2 * before
        yield now, (i + 1) * before, i * (i + 1) * before2


def _legendre(a: Array, s2: Array, second: Terms, degree: int) -> Iterator[Terms]:
    before: Terms = (a, 1.0, 0.0)
    now = second
    for i in range(2, degree):
        p = a * now[0] + s2 * now[1]
        p *= (2 * i + 1) / (i + 1)
        p -= i / (i + 1) * before[0]
        d = (2 * i + 1) * now[0] + before[1]
        e = (2 * i + 1) * now[1] + before[2]
        before, now = now, (p, d, e)
        yield now


def _chebyshev(a: Array, s2: Array, second: Terms, degree: int) -> Iterator[Terms]:
    before: Terms = (a, 1.0, 0.0)
    now = second
    # v and v1 hold E[U_i] and E[U_i'] at i, with their values at i - 1 beside them.
    v_before, v = 2 * a, 2 * now[0] + 1
    v1_before: Any = 2.0
    v1 = 2 * now[1]
    for i in range(2, degree):
        p = 2 * (a * now[0] + s2 * now[1]) - before[0]
        before, now = now, (p, (i + 1) * v, (i + 1) * v1)
        v_before, v = v, 2 * p + v_before
        v1_before, v1 = v1, 2 * now[1] + v1_before
        yield now


def _windows(basis: Basis, a: Array, s2: Array) -> Iterator[Terms]:
    """(p, d, e) of each window; odd = -rho d(even)/da, so its terms derive from the even one's."""
    for index, rho in enumerate(basis.scales):
        if index % 2 == 0:
            t, bell = (terms[0] for terms in _bells(basis.scales[index : index + 1], a, s2))
            bell *= rho
            at = a * t
            at2 = a * at
            slope = -at * bell
            bend = t * (at2 - 1) * bell
            yield bell, slope, bend
        else:
            yield -rho * slope, -rho * bend, rho * t * (at2 - 3) * at * bell


def _polynomial_moments(basis: Basis, out: Array, a: Array, s2: Array, weights: Array) -> None:
    """Mixture moments of the polynomials, (B, M) -> (B, degree + 1) in ``out``.

    The first three need only sums of w, w a, w a^2 and w s^2.
    """
    weighted = weights * a
    out[:, 0], out[:, 1] = weights.sum(1), weighted.sum(1)
    if basis.degree > 1:
        slope, level = _parabola(basis)
        square = np.vecdot(weighted, a) + np.vecdot(weights, s2)
        out[:, 2] = slope * square + level * out[:, 0]
    if basis.degree > 2:
        for i, (p, _, _) in enumerate(_polynomials(basis, a, s2)):
            if i > 2:
                out[:, i] = np.vecdot(weights, p)


def _window_moments(basis: Basis, a: Array, s2: Array, weights: Array, out: Array) -> None:
    """Mixture moments of the windows, (B, M) -> (B, n_windows) in ``out``: the hot part."""
    square, weighted = MINUS_HALF * a * a, weights * a
    t, bell, root = np.empty((3, *a.shape))
    for i, rho in enumerate(basis.scales):
        if i % 2 == 0:
            _bell(rho, square, s2, t, bell, root)
            out[:, i] = rho * np.vecdot(bell, weights)
        else:
            bell *= t
            out[:, i] = rho**2 * np.vecdot(bell, weighted)


def _add_window_slopes(
    basis: Basis, a: Array, s2: Array, c: Array, by_mean: Array, by_variance: Array
) -> None:
    """Add sum_i c_i d_i and sum_i c_i e_i over the windows, in place: the hot part of a gradient.

    An even window weighs d = -a t W and e = t (a^2 t - 1) W; the odd one of the same scale
    d = -rho t (a^2 t - 1) W and e = rho a t^2 (a^2 t - 3) W. So with x_k, y_k the two multipliers
    of scale k, times W, and sums over the scales,

        d = sum y t - a (sum x t + a sum y t^2),
        e = -sum x t + a (-3 sum y t^2 + a (sum x t^2 + a sum y t^3)).
    """
    rho = basis.scales
    both = np.zeros((len(a), 2, len(rho[::2])))  # x and y but for W / rho
    both[:, 0] = c[:, ::2] * rho[::2]
    both[:, 1, : len(rho) // 2] = c[:, 1::2] * rho[1::2] ** 2
    t, bells = _bells(rho[::2], a, s2)
    by_scale = bells.transpose(1, 0, 2)
    bells *= t
    xt, yt = np.matmul(both, by_scale).transpose(1, 0, 2)
    bells *= t
    xt2, yt2 = np.matmul(both, by_scale).transpose(1, 0, 2)
    bells *= t
    bend = np.matmul(both[:, 1:], by_scale)[:, 0]  # sum y t^3, then e by Horner's rule
    bend *= a
    bend += xt2
    bend *= a
    bend -= 3 * yt2
    bend *= a
    bend -= xt
    by_variance += bend
    yt2 *= a
    yt2 += xt
    yt2 *= a
    yt -= yt2
    by_mean += yt


def _bells(rho: Array, a: Array, s2: Array) -> tuple[Array, Array]:
    """t = 1/(rho^2 + s^2) and W / rho = sqrt(t) exp(-a^2 t/2) of each rho, (K, *a.shape) each."""
    t, bells = np.empty((2, len(rho), *a.shape))
    square, root = MINUS_HALF * a * a, np.empty(a.shape)
    for k, scale in enumerate(rho):
        _bell(scale, square, s2, t[k], bells[k], root)
    return t, bells


def _bell(rho: float, square: Array, s2: Array, t: Array, bell: Array, root: Array) -> None:
    """t and W / rho of one rho, in the arrays given; overwrites ``root``.

    ``square`` is -a^2/2 in units of log 2: powers of 2 are faster than those of e.
    """
    np.add(s2, rho**2, out=t)
    np.divide(1.0, t, out=t)
    np.multiply(square, t, out=bell)
    np.exp2(bell, out=bell)
    bell *= np.sqrt(t, out=root)


def _blocks(
    basis: Basis, scales: int, *mixtures: Array
) -> Iterator[tuple[slice, np.ndarray | None, tuple[Array, ...]]]:
    """Rows, a mask of the components too wide to recurse, or None, and a, s2, weights without them.

    The arrays of a block, of so many scales at once, stay in cache or, where densities on nodes are
    needed, within 8 MB.
    """
    s2, n = mixtures[1], basis.degree
    limit = min(MAX_STD / n, MAX_REACH / n**2) ** 2
    any_wide = s2.size > 0 and float(s2.max()) > limit
    numbers = NODE_BLOCK // len(_even_nodes(basis)[0]) if any_wide else BLOCK
    step = max(1, numbers // (s2.shape[1] * max(1, scales)))
    for start in range(0, len(s2), step):
        rows = slice(start, start + step)
        block = tuple(array[rows] for array in mixtures)
        wide = block[1] > limit if any_wide else None
        if wide is not None and wide.any():
            yield rows, wide, tuple(np.where(wide, 0.0, array) for array in block)
        else:
            yield rows, None, block


def _on_nodes(
    basis: Basis, a: Array, s2: Array, weights: Array
) -> tuple[Array, Array, Array, Array]:
    """Nodes u and weights (G,), standardised z and weighted densities (B, G, M).

    The std of a wide component is at least about a node spacing at any degree up to 200, so that
    the rule is exact to rounding.
    """
    u, w = _even_nodes(basis)
    s = np.sqrt(s2)
    z = (u[:, None] - a[:, None, :]) / s[:, None, :]
    density = np.exp(-0.5 * z * z) * (weights / (s * np.sqrt(2 * np.pi)))[:, None, :]
    return u, w, z, density


def _even_nodes(basis: Basis) -> tuple[Array, Array]:
    """The nodes of the polynomials alone, which are evenly fine."""
    return Basis(basis.family, basis.degree).nodes()
