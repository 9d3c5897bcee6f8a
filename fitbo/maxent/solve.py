"""The density of maximum entropy with given moments, for many problems at once.

======  ===========  =====================================================================
symbol  shape        meaning
======  ===========  =====================================================================
B       int          problems solved together
G       int          Gauss-Legendre-Lobatto nodes, common to all problems
mu      (B, m + 1)   moments E_p[phi_i], mu_0 = 1
a       (B, m + 1)   Lagrange multipliers
q0      (B or 1, G)  prior density at the nodes; flat unless given
======  ===========  =====================================================================

The density is ``q = q0 exp(-(1 + a.phi))``. The paper minimises the dual

    S(a) = int q0 exp(-(1 + a.phi)) du + a.mu,    dS/da = mu - E,    d2S/da2 = E[phi phi^T].

Here a_0 is eliminated in closed form (a_0 = log Z - 1), which leaves the same minimum, a value
that cannot overflow, and covariances in place of second moments:

    S(a) = log Z(a) + sum_{i>0} a_i mu_i,   Z = int q0 exp(-sum_{i>0} a_i phi_i) du.

For *any* a, S(a) = -E_p[log q] + E_p[log q0] >= -KL(p || q0): every iterate is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from fitbo.maxent.basis import Basis, chebyshev_coefficients
from fitbo.maxent.levenberg import levenberg
from fitbo.maxent.linalg import solve_spd
from fitbo.mixture import Array

Prior = Callable[[Array], Array]
TINY = 1e-300  # where a prior vanishes its logarithm must not


@dataclass(frozen=True, eq=False)
class MaxEntDensity:
    """The solution; leading axes are those of the moments.

    entropy      H(q) = 1 + a.mu - E_q[log q0]
    dual         the minimum of S, ridge included: at least -KL(p || q0) for every p with these
                 moments, and H(q) under a flat prior without ridge. Like the entropy it means
                 something only where ``converged``
    residual     max_i |mu_i - E_q[phi_i]|
    gap          the decrease that the last Newton step promised, in nats
    """

    basis: Basis
    multipliers: Array
    entropy: Array
    dual: Array
    residual: Array
    gap: Array
    iterations: np.ndarray
    converged: np.ndarray
    prior: Prior | None = None

    def log_pdf(self, u: ArrayLike) -> Array:
        """log q(u) on [-1, 1], -inf outside. u: (N,) -> (..., N)."""
        u = np.asarray(u, dtype=np.float64)
        inside = abs(u) <= 1
        value = -1 - self.multipliers @ self.basis.values(np.where(inside, u, 0.0)).T
        if self.prior is not None:
            value = value + np.log(np.maximum(self.prior(np.where(inside, u, 0.0)), TINY))
        return np.where(inside, value, -np.inf)

    def pdf(self, u: ArrayLike) -> Array:
        """q(u), (N,) -> (..., N)."""
        return np.exp(self.log_pdf(u))

    def expect(self, f: Callable[[Array], Array]) -> Array:
        """E_q[f(u)] on twice the solver's nodes; f maps (G,) to (G,) or (..., G)."""
        u, w = self.basis.nodes(refine=2)
        return np.asarray((self.pdf(u) * w * f(u)).sum(-1))

    def log_mass(self, refine: int) -> Array:
        """log int q on finer nodes, (...,): 0 unless the solver's own nodes were too few."""
        u, w = self.basis.nodes(refine)
        exponent = self.log_pdf(u) + np.log(w)
        top = exponent.max(-1)
        exponent -= top[..., None]
        np.maximum(exponent, -700.0, out=exponent)
        return np.asarray(top + np.log(np.exp(exponent, out=exponent).sum(-1)))


def solve(
    moments: ArrayLike,
    basis: str | Basis,
    prior: Prior | None = None,
    *,
    jitter: float = 1e-8,
    ridge: ArrayLike = 0.0,
    tol: float = 1e-9,
    gap: float = 0.0,
    max_iterations: int = 200,
    refine: int = 1,
    orthogonal: bool = False,
    start: ArrayLike | None = None,
) -> MaxEntDensity:
    """Damped Newton on the dual of every problem at once. moments: (..., m + 1), mu_0 = 1.

    prior           maps u (G,) to q0(u) >= 0, (G,) or (..., G); its scale does not matter
    jitter          added to the Hessian's diagonal (the paper's 1e-8): the path, not the solution
    ridge           a number or (m,): adds sum_i ridge_i a_i^2 / 2 to the dual, which lets moment i
                    err by ridge_i a_i and bounds the solution even where the moments are at the
                    edge of, or just beyond, what a density can have
    tol, gap        a problem has converged when its gradient is below ``tol`` everywhere, or its
                    expected remaining decrease below ``gap`` nats
    refine          multiplies the number of nodes
    orthogonal      solve one problem at a time by ``fitbo.maxent.levenberg``, slower and with twice
                    the digits, from the multipliers ``start`` (..., m + 1) if given; the jitter is
                    then its own
    """
    mu = np.asarray(moments, dtype=np.float64)
    if mu.ndim == 0 or mu.shape[-1] < 2:
        raise ValueError(f"moments must have shape (..., m + 1) with m >= 1, got {mu.shape}")
    if not np.isfinite(mu).all():
        raise ValueError(f"moments must be finite, got NaN or inf in shape {mu.shape}")
    if not np.allclose(mu[..., 0], 1, rtol=0, atol=1e-9):
        raise ValueError("moments[..., 0] must be 1: divide the moments by the mass")
    if isinstance(basis, str):
        basis = Basis(basis, mu.shape[-1] - 1)
    if basis.size + 1 != mu.shape[-1]:
        raise ValueError(f"moments of shape {mu.shape} do not fit a basis of size {basis.size} + 1")
    if min(jitter, tol, gap) < 0 or min(max_iterations, refine) < 1:
        raise ValueError(
            "jitter, tol and gap must be >= 0 and max_iterations and refine >= 1, got "
            f"{jitter}, {tol}, {gap}, {max_iterations}, {refine}"
        )
    ridges = np.asarray(ridge, dtype=np.float64)
    if ridges.shape not in ((), (basis.size,)) or not (ridges >= 0).all():
        raise ValueError(f"ridge must be a number >= 0 or ({basis.size},) of them, got {ridge!r}")
    lead, flat = mu.shape[:-1], mu.reshape(-1, mu.shape[-1])
    u, w = basis.nodes(refine)
    log_q0 = None
    if prior is not None:
        log_q0 = _log_prior(prior, u, lead)
    dual = _Dual(flat.T, basis, u, w, log_q0, ridges)
    if orthogonal:
        first = np.zeros_like(mu) if start is None else np.asarray(start, dtype=np.float64)
        state = _one_by_one(dual, first.reshape(flat.shape).T, tol, max_iterations)
    else:
        state = _newton(dual, jitter, tol, gap, max_iterations)
    mean = basis.hessian(state.expectations)[0]
    residual = abs(dual.mu - mean).max(0)
    prior_term = 0.0 if log_q0 is None else w @ (dual.density(state.a) * log_q0)
    return MaxEntDensity(
        basis=basis,
        multipliers=(state.a - _first(len(mean))).T.reshape(mu.shape),
        entropy=(_dot(state.a, dual.mu) - prior_term).reshape(lead),
        dual=state.s.reshape(lead),
        residual=residual.reshape(lead),
        gap=state.decrement.reshape(lead),
        iterations=state.iterations.reshape(lead),
        converged=((residual <= tol) | (abs(state.decrement) <= gap)).reshape(lead),
        prior=prior,
    )


def _log_prior(prior: Prior, u: Array, lead: tuple[int, ...]) -> Array:
    """log q0 at the nodes, (G, B)."""
    q0 = np.asarray(prior(u), dtype=np.float64)
    if q0.shape not in (u.shape, (*lead, len(u))):
        raise ValueError(
            f"prior must map shape {u.shape} to itself or {(*lead, len(u))}, got {q0.shape}"
        )
    if not (np.isfinite(q0).all() and (q0 >= 0).all() and (q0.max(-1) > 0).all()):
        raise ValueError("prior must be finite, non-negative and somewhere positive on [-1, 1]")
    log_q0 = np.log(np.maximum(q0, TINY))
    return np.broadcast_to(log_q0, (*lead, len(u))).reshape(-1, len(u)).T


def _first(n: int) -> Array:
    """The column (1, 0, ..., 0)."""
    return np.eye(n, 1)


def _dot(x: Array, y: Array) -> Array:
    """Inner products over the first axis, (m, B), (m, B) -> (B,)."""
    return np.einsum("ib,ib->b", x, y)


class _Dual:
    """S of B problems at fixed nodes. Here the problems are the last axis, which stays contiguous.

    The normaliser is carried as a[0] = log Z, so that q = exp(log q0 - a.phi) integrates to one.
    """

    def __init__(
        self, mu: Array, basis: Basis, u: Array, w: Array, log_q0: Array | None, ridge: Array
    ) -> None:
        self.mu, self.basis, self.log_q0 = mu, basis, log_q0
        self.ridge = np.broadcast_to(ridge, (basis.size,))[:, None]
        self.phi = np.ascontiguousarray(basis.values(u))
        self.products = np.ascontiguousarray((basis.products(u) * w[:, None]).T)
        self.w = w

    def density(self, a: Array, rows: np.ndarray | slice = slice(None)) -> Array:
        """q at the nodes, (m + 1, b) -> (G, b)."""
        exponent = self.phi @ -a
        if self.log_q0 is not None:
            exponent += self.log_q0[:, rows]
        # Where exp(-x) is subnormal it is nothing to us and several times slower. An overflow is
        # the mark of too long a step: S becomes inf and the line search turns back.
        np.maximum(exponent, -700.0, out=exponent)
        with np.errstate(over="ignore"):
            return np.exp(exponent, out=exponent)

    def normalise(self, a: Array, q: Array, rows: np.ndarray | slice) -> tuple[Array, Array]:
        """S and log int q, given any a[0]; sets a[0] to log Z."""
        log_mass = np.log(self.w @ q)
        a[0] += log_mass
        penalty = 0.5 * _dot(self.ridge * a[1:], a[1:])
        return _dot(a, self.mu[:, rows]) + penalty, log_mass

    def derivatives(self, a: Array, expectations: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Gradient mu - E + ridge a (m, b) and Hessian Cov[phi] + ridge I (m, m, b)."""
        second = self.basis.hessian(expectations)
        mean = second[0, 1:]
        hessian = second[1:, 1:] - mean[:, None] * mean
        diagonal = np.einsum("iib->ib", hessian)
        # A floor of rounding size keeps the system solvable when the caller sets jitter = 0.
        diagonal += self.ridge + 4e-16 * diagonal.max(0)
        return self.mu[1:, rows] - mean + self.ridge * a[1:], hessian


@dataclass
class _State:
    """Where the minimisation stands, problems last."""

    a: Array
    s: Array
    expectations: Array
    decrement: Array
    iterations: np.ndarray


def _newton(dual: _Dual, jitter: float, tol: float, gap: float, max_iterations: int) -> _State:
    """Minimise S for every problem by damped Newton steps."""
    a = _start(dual)
    q = dual.density(a)
    s, log_mass = dual.normalise(a, q, slice(None))
    n_problems = len(s)
    state = _State(
        a=a,
        s=s,
        expectations=dual.products @ q / np.exp(log_mass),
        decrement=np.full(n_problems, np.inf),
        iterations=np.zeros(n_problems, dtype=np.intp),
    )
    active = np.arange(n_problems)
    for _ in range(max_iterations):
        gradient, hessian = dual.derivatives(
            state.a[:, active], state.expectations[:, active], active
        )
        diagonal = np.einsum("iib->ib", hessian)
        diagonal += jitter
        step = solve_spd(hessian, -gradient)
        slope = _dot(gradient, step)
        state.decrement[active] = -0.5 * slope
        going = (abs(gradient).max(0) > tol) & (slope < 0)
        active, step, slope = active[going], step[:, going], slope[going]
        # The step of a problem whose gap is already small is taken too: it squares the gap.
        moved = _line_search(dual, state, active, step, slope)
        state.iterations[active] += 1
        active = active[moved & (state.decrement[active] > gap)]
        if not active.size:
            break
    return state


def _one_by_one(dual: _Dual, start: Array, tol: float, max_iterations: int) -> _State:
    """Minimise S for each problem by itself; a converged one has no decrement left."""
    a = np.array(start)
    iterations = np.zeros(a.shape[1], dtype=np.intp)
    decrement = np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        log_measure = np.log(dual.w)
        if dual.log_q0 is not None:
            log_measure = log_measure + dual.log_q0[:, j]
        a[1:, j], gradient, iterations[j] = levenberg(
            dual.phi[:, 1:],
            log_measure,
            dual.mu[1:, j],
            dual.ridge[:, 0],
            a[1:, j],
            tol,
            max_iterations,
        )
        a[0, j] = logsumexp(log_measure - dual.phi[:, 1:] @ a[1:, j])
        decrement[j] = 0.0 if abs(gradient).max() <= tol else np.inf
    q = dual.density(a)
    s, log_mass = dual.normalise(a, q, slice(None))
    return _State(a, s, dual.products @ q / np.exp(log_mass), decrement, iterations)


def _line_search(
    dual: _Dual, state: _State, rows: np.ndarray, step: Array, slope: Array
) -> np.ndarray:
    """Backtrack each problem to sufficient decrease and update it; which ones moved."""
    moved = np.zeros(len(rows), dtype=bool)
    pending = np.arange(len(rows))
    length = 1.0
    while pending.size and length > 1e-10:
        at = rows[pending]
        trial = state.a[:, at]
        trial[1:] += length * step[:, pending]
        q = dual.density(trial, at)
        s, log_mass = dual.normalise(trial, q, at)
        # S is a sum of terms of size |a.mu|: below their rounding no decrease can be seen.
        slack = 1e-15 * (1 + abs(trial[1:]).sum(0))
        good = s <= state.s[at] + 1e-4 * length * slope[pending] + slack
        if not good.all():
            at, s, log_mass = at[good], s[good], log_mass[good]
            trial, q = trial[:, good], q[:, good]
        state.a[:, at], state.s[at] = trial, s
        state.expectations[:, at] = dual.products @ q / np.exp(log_mass)
        moved[pending[good]] = True
        pending = pending[~good]
        length /= 2
    return moved


def _start(dual: _Dual) -> Array:
    """First multipliers: zero under a prior, else a density like p in scale and heavy in its tails.

    Where q starts far below p in the tails the first Newton steps are huge and must be cut, so the
    paper's start a = 0 and the matched Gaussian are both dear.
    """
    if dual.log_q0 is not None or dual.basis.degree < 2:
        return np.zeros_like(dual.mu)
    if dual.basis.n_windows:
        return _scale_mixture_start(dual)
    return _gaussian_start(dual)


def _gaussian_start(dual: _Dual) -> Array:
    """A Gaussian with each problem's mean and twice its variance."""
    start = np.zeros_like(dual.mu)
    to_t = chebyshev_coefficients(dual.basis.family, 2)
    # phi = A (1, u, 2u^2 - 1): invert for E[u] and E[u^2], then for the parabola's coefficients.
    mean, t2 = np.linalg.solve(to_t, dual.mu[:3])[1:]
    variance = np.maximum((t2 + 1) / 2 - mean**2, 1e-8)
    parabola = np.stack([mean**2 + 0.5, -2 * mean, np.full_like(mean, 0.5)]) / (4 * variance)
    start[:3] = np.linalg.solve(to_t.T, parabola)
    return start


def _scale_mixture_start(dual: _Dual) -> Array:
    """The log of a mixture of centred Gaussians with p's even windows, projected on the basis.

    Even windows are linear in the weights of such a mixture, E[even_k] = rho_k/sqrt(rho_k^2 + s^2)
    for each scale s, so on a fixed grid of scales the weights cost one small product.
    """
    from_windows, bells, project = _scale_mixture(dual.basis, len(dual.w))
    windows = dual.mu[dual.basis.degree + 1 :: 2]
    weights = from_windows @ np.concatenate([np.ones_like(windows[:1]), windows])
    weights = np.maximum(weights, 0.01)
    return np.asarray(project @ -np.log(bells @ (weights / weights.sum(0)) + 1e-12))


@lru_cache(maxsize=64)
def _scale_mixture(basis: Basis, n_nodes: int) -> tuple[Array, Array, Array]:
    rho = basis.scales[::2]
    s = 2.5 ** -np.arange(len(rho)) / 8
    u = basis.nodes(n_nodes // len(basis.nodes()[0]))[0]
    even = np.vstack([np.ones_like(s), rho[:, None] / np.hypot(rho[:, None], s)])
    bells = np.exp(-0.5 * (u[:, None] / s) ** 2) / (s * np.sqrt(2 * np.pi))
    # Only the parabola and the windows: higher polynomials would fit the far tails, wildly.
    project = np.zeros((basis.size + 1, len(u)))
    low = np.r_[0:3, basis.degree + 1 : basis.size + 1]
    project[low] = np.linalg.pinv(basis.values(u)[:, low])
    from_windows = np.asarray(np.linalg.pinv(even), dtype=np.float64)
    return from_windows, bells, project
