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

import numpy as np

from fitbo.maxent.basis import VANDER, Basis
from fitbo.mixture import Array

MAX_STD, MAX_REACH = 4.0, 150.0  # of n s and of n^2 s
BLOCK = 1 << 14  # numbers per array in a block: a handful of arrays fit the second-level cache
NODE_BLOCK = 1 << 20

Terms = tuple[Array, Array, Array]


def gaussian_moments(basis: Basis, a: Array, s2: Array) -> Terms:
    """E[phi_i], dE/da and dE/d(s^2) under N(a, s2) on the whole line, each (..., m + 1)."""
    a, s2 = np.broadcast_arrays(a, s2)
    flat = a.reshape(-1), s2.reshape(-1)
    terms = [*_polynomials(basis, *flat), *_windows(basis, *flat)]
    p, d, e = (
        np.stack(term, axis=-1).reshape(*a.shape, basis.size + 1)
        for term in zip(*terms, strict=True)
    )
    return p, d, 0.5 * e


def mixture_moments(basis: Basis, a: Array, s2: Array, weights: Array) -> Array:
    """E[phi_i] under each mixture, (B, M) -> (B, m + 1)."""
    out = np.empty((len(a), basis.size + 1))
    for rows, wide, narrow in _blocks(basis, a, s2, weights):
        for i, (p, _, _) in enumerate(_polynomials(basis, *narrow[:2])):
            out[rows, i] = np.vecdot(narrow[2], p)
        block = a[rows], s2[rows], weights[rows]
        _window_moments(basis, *block, out[rows, basis.degree + 1 :])
        if wide is not None:
            u, w, _, density = _on_nodes(basis, *block[:2], block[2] * wide)
            integrals = VANDER[basis.family](u, basis.degree) * w[:, None]
            out[rows, : basis.degree + 1] += density.sum(-1) @ integrals
    return out


def mixture_gradient(
    basis: Basis, a: Array, s2: Array, weights: Array, multipliers: Array
) -> tuple[Array, Array]:
    """d/da_j and d/d(s_j^2) of sum_i c_i E[phi_i], c = multipliers (B, m + 1); (B, M) each."""
    by_mean, by_variance = np.zeros_like(a), np.zeros_like(a)
    for rows, wide, narrow in _blocks(basis, a, s2, weights):
        ar, sr, c = a[rows], s2[rows], multipliers[rows]
        for i, (_, d, e) in enumerate(_polynomials(basis, *narrow[:2])):
            if i > 0:
                by_mean[rows] += c[:, i, None] * d
            if i > 1:
                by_variance[rows] += c[:, i, None] * e
        if wide is not None:
            by_mean[rows] *= ~wide
            by_variance[rows] *= ~wide
            u, w, z, density = _on_nodes(basis, ar, sr, wide.astype(np.float64))
            psi = c[:, : basis.degree + 1] @ VANDER[basis.family](u, basis.degree).T * w
            by_mean[rows] += np.einsum("bg,bgm->bm", psi, density * z) / np.sqrt(sr)
            by_variance[rows] += np.einsum("bg,bgm->bm", psi, density * (z * z - 1)) / sr
        of_windows = c[:, basis.degree + 1 :]
        _add_window_slopes(basis, ar, sr, of_windows, by_mean[rows], by_variance[rows])
        by_mean[rows] *= weights[rows]
        by_variance[rows] *= 0.5 * weights[rows]
    return by_mean, by_variance


def _polynomials(basis: Basis, a: Array, s2: Array) -> Iterator[Terms]:
    """(p_i, d_i, e_i) for i = 0..degree, each of the shape of a."""
    recursion = {"power": _power, "legendre": _legendre, "chebyshev": _chebyshev}[basis.family]
    return recursion(a, s2, basis.degree)


def _power(a: Array, s2: Array, degree: int) -> Iterator[Terms]:
    before2, before, now = np.zeros_like(a), np.zeros_like(a), np.ones_like(a)
    yield now, before, before
    for i in range(degree):
        before2, before, now = before, now, a * now + i * s2 * before
        yield now, (i + 1) * before, i * (i + 1) * before2


def _legendre(a: Array, s2: Array, degree: int) -> Iterator[Terms]:
    zero = np.zeros_like(a)
    before, now = (zero, zero, zero), (np.ones_like(a), zero, zero)
    yield now
    for i in range(degree):
        p = a * now[0] + s2 * now[1]
        p *= (2 * i + 1) / (i + 1)
        p -= i / (i + 1) * before[0]
        d = (2 * i + 1) * now[0] + before[1]
        e = (2 * i + 1) * now[1] + before[2]
        before, now = now, (p, d, e)
        yield now


def _chebyshev(a: Array, s2: Array, degree: int) -> Iterator[Terms]:
    zero, one = np.zeros_like(a), np.ones_like(a)
    yield one, zero, zero
    before, now = (one, zero, zero), (a, one, zero)
    # v and v1 hold E[U_i] and E[U_i'] at i, with their values at i - 1 beside them.
    v_before, v = one, 2 * a
    v1_before, v1 = zero, np.full_like(a, 2.0)
    yield now
    for i in range(1, degree):
        p = 2 * (a * now[0] + s2 * now[1]) - before[0]
        before, now = now, (p, (i + 1) * v, (i + 1) * v1)
        v_before, v = v, 2 * p + v_before
        v1_before, v1 = v1, 2 * now[1] + v1_before
        yield now


def _windows(basis: Basis, a: Array, s2: Array) -> Iterator[Terms]:
    """(p, d, e) of each window; odd = -rho d(even)/da, so its terms derive from the even one's."""
    for index, rho in enumerate(basis.scales):
        if index % 2 == 0:
            t, at, bell = _bell(rho, a, s2)
            bell *= rho
            at2 = a * at
            slope = -at * bell
            bend = t * (at2 - 1) * bell
            yield bell, slope, bend
        else:
            yield -rho * slope, -rho * bend, rho * t * (at2 - 3) * at * bell


def _window_moments(basis: Basis, a: Array, s2: Array, weights: Array, out: Array) -> None:
    """Mixture moments of the windows, (B, M) -> (B, n_windows) in ``out``: the hot part."""
    for index in range(0, basis.n_windows, 2):
        rho = float(basis.scales[index])
        _, at, bell = _bell(rho, a, s2)
        bell *= weights
        out[:, index] = rho * bell.sum(1)
        if index + 1 < basis.n_windows:
            out[:, index + 1] = rho * rho * np.vecdot(at, bell)


def _add_window_slopes(
    basis: Basis, a: Array, s2: Array, c: Array, by_mean: Array, by_variance: Array
) -> None:
    """Add sum_i c_i d_i and sum_i c_i e_i over the windows, in place: the hot part of a gradient.

    An even window weighs d = -a t W and e = t (a^2 t - 1) W; the odd one of the same scale
    d = -rho t (a^2 t - 1) W and e = rho a t^2 (a^2 t - 3) W.
    """
    for index in range(0, basis.n_windows, 2):
        rho = float(basis.scales[index])
        t, at, bell = _bell(rho, a, s2)
        at2 = a * at
        bend = (at2 - 1) * t
        even = (rho * c[:, index, None]) * bell
        by_mean -= at * even
        by_variance += bend * even
        if index + 1 < basis.n_windows:
            odd = (rho * rho * c[:, index + 1, None]) * bell
            by_mean -= bend * odd
            at2 -= 3
            at2 *= at
            at2 *= t
            by_variance += at2 * odd


def _bell(rho: float, a: Array, s2: Array) -> Terms:
    """t = 1/(rho^2 + s^2), a t, and W / rho = sqrt(t) exp(-a^2 t/2)."""
    t = s2 + rho * rho
    np.divide(1.0, t, out=t)
    at = a * t
    bell = a * at
    bell *= -0.5
    np.exp(bell, out=bell)
    bell *= np.sqrt(t)
    return t, at, bell


def _blocks(
    basis: Basis, *mixtures: Array
) -> Iterator[tuple[slice, np.ndarray | None, tuple[Array, ...]]]:
    """Rows, a mask of the components too wide to recurse, or None, and a, s2, weights without them.

    The arrays of a block stay in cache or, where densities on nodes are needed, within 8 MB.
    """
    s2, n = mixtures[1], basis.degree
    all_wide = s2 > min(MAX_STD / n, MAX_REACH / n**2) ** 2
    numbers = NODE_BLOCK // len(_even_nodes(basis)[0]) if all_wide.any() else BLOCK
    step = max(1, numbers // s2.shape[1])
    for start in range(0, len(s2), step):
        rows = slice(start, start + step)
        wide, block = all_wide[rows], tuple(array[rows] for array in mixtures)
        if wide.any():
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
