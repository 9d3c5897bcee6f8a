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

Here a_0 is eliminated in closed form (a_0 = log Z - 1): the minimum is the same, the value cannot
overflow, and covariances take the place of second moments:

    S(a) = log Z(a) + sum_{i>0} a_i mu_i,   Z = int q0 exp(-sum_{i>0} a_i phi_i) du.

For *any* a, S(a) = -E_p[log q] + E_p[log q0] >= -KL(p || q0): every iterate is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from fitbo.maxent.basis import Basis
from fitbo.maxent.dual import Dual, dot, first_multipliers, solve_spd
from fitbo.maxent.levenberg import levenberg
from fitbo.mixture import Array, exp_in_place

Prior = Callable[[Array], Array]
TINY = 1e-300  # floor of a prior, so that its logarithm is finite
STRAY = 1e-9  # mass of a density that is tolerated where its prior vanishes
# A Newton step that promises the decrease d, with a correction of relative size r, leaves about
# 2 to 10 d r^4 to do, measured on mixtures' moments, and hardly ever as much as LEFT d r^4.
LEFT, LEFT_LEAST = 30.0, 1e-6
TRIES = 4  # step lengths tried at once after a full step that failed


@dataclass(frozen=True, eq=False)
class MaxEntDensity:
    """The solution; leading axes are those of the moments.

    entropy      H(q) = 1 + a.E_q[phi] - E_q[log q0]
    dual         the minimum of S, ridge included: at least -KL(p || q0) for every p with these
                 moments, and H(q) under a flat prior without ridge. Like the entropy it is
                 meaningful only where ``converged``
    residual     max_i |mu_i - E_q[phi_i]|
    gap          the decrease that was still to come after the last Newton step, estimated, in nats
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
        u = np.where(inside, u, 0.0)
        value = -1 - self.multipliers @ self.basis.values(u).T
        if self.prior is not None:
            value = value + np.log(np.maximum(self.prior(u), TINY))
        return np.where(inside, value, -np.inf)

    def pdf(self, u: ArrayLike) -> Array:
        """q(u), (N,) -> (..., N)."""
        return np.exp(self.log_pdf(u))

    def expect(self, f: Callable[[Array], Array]) -> Array:
        """E_q[f(u)] on twice the solver's nodes; f maps (G,) to (G,) or (..., G)."""
        u, w = self.basis.nodes(refine=2)
        return np.asarray((self.pdf(u) * w * f(u)).sum(-1))

    def log_mass(self, refine: int) -> Array:
        """log int q on finer nodes, (...,): 0 unless the solver had too few nodes."""
        u, w = self.basis.nodes(refine)
        flat = self.multipliers.reshape(-1, self.multipliers.shape[-1])
        exponent = self.basis.values(u) @ -flat.T
        exponent -= 1
        if self.prior is not None:
            exponent += _log_prior(self.prior, u, self.multipliers.shape[:-1])
        with np.errstate(over="ignore"):  # of a density that is not one: its mass is inf
            log_mass = np.log(w @ exp_in_place(exponent))
        return np.asarray(log_mass.reshape(self.multipliers.shape[:-1]))


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
    """Damped Newton on the dual of every problem at once, each step bent to third order.

    moments         (..., m + 1), mu_0 = 1

    prior           maps u (G,) to q0(u) >= 0, (G,) or (..., G). A factor c changes neither the
                    density nor its entropy, and adds log c to the dual
    jitter          added to the Hessian's diagonal (the paper's 1e-8): the path, not the solution
    ridge           a number or (m,): adds sum_i ridge_i a_i^2 / 2 to the dual, which lets moment i
                    err by ridge_i a_i and bounds the solution even where the moments are at the
                    edge of, or just beyond, what a density can have
    tol, gap        a problem has converged when its residual is at most ``tol``, or its expected
                    remaining decrease at most ``gap`` nats; it is worked on until its gradient is
                    at most ``tol`` and, if a gap is asked for, until that is reached
    refine          multiplies the number of nodes
    orthogonal      solve one problem at a time by ``fitbo.maxent.levenberg``, slower and with twice
                    the digits; ``jitter`` is not used
    start           multipliers (..., m + 1) to begin from
    """
    mu = np.asarray(moments, dtype=np.float64)
    if mu.ndim == 0 or mu.shape[-1] < 2:
        raise ValueError(f"moments must have shape (..., m + 1) with m >= 1, got {mu.shape}")
    if not np.isfinite(mu).all():
        raise ValueError(f"moments must be finite, got NaN or inf in shape {mu.shape}")
    if not (abs(mu[..., 0] - 1) <= 1e-9).all():
        raise ValueError(f"moments[..., 0] must be 1, got {mu[..., 0]!s:.80}; divide by the mass")
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
    log_q0 = None if prior is None else _log_prior(prior, u, lead)
    dual = Dual.of(np.ascontiguousarray(flat.T), basis, refine, log_q0, ridges)
    if start is not None:
        first = np.array(np.asarray(start, dtype=np.float64).reshape(flat.shape).T, order="C")
    elif orthogonal:
        first = np.zeros_like(dual.mu)
    else:
        first = first_multipliers(dual)
    if orthogonal:
        state = _one_by_one(dual, first, tol, max_iterations)
    else:
        state = _newton(dual, first, jitter, tol, gap, max_iterations)
    mean = dual.means @ state.q
    residual = abs(dual.mu - mean).max(0)
    converged = (residual <= tol) | (abs(state.decrement) <= gap)
    prior_term: Array | float = 0.0
    if log_q0 is not None:
        prior_term = w @ (state.q * log_q0)
        # Mass where the prior has none: no density under this prior has these moments.
        converged &= w @ (state.q * (log_q0 <= np.log(TINY))) <= max(tol, STRAY)
    return MaxEntDensity(
        basis=basis,
        multipliers=(state.a - np.eye(len(mean), 1)).T.reshape(mu.shape),  # a_0 = log Z - 1
        entropy=(dot(state.a, mean) - prior_term).reshape(lead),
        dual=state.s.reshape(lead),
        residual=residual.reshape(lead),
        gap=state.decrement.reshape(lead),
        iterations=state.iterations.reshape(lead),
        converged=converged.reshape(lead),
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


@dataclass
class _State:
    """The current point of the minimisation, problems last."""

    a: Array
    s: Array
    q: Array
    decrement: Array
    iterations: np.ndarray

    @classmethod
    def start(cls, dual: Dual, a: Array, decrement: Array, iterations: np.ndarray) -> _State:
        """The state at ``a``, whose a[0] is set to log Z."""
        return cls(a, *dual.evaluate(a), decrement, iterations)

    def at(self, which: np.ndarray) -> _State:
        """Some of the problems."""
        return _State(*(array.take(which, axis=-1) for array in vars(self).values()))

    def move(self, which: np.ndarray, a: Array, s: Array, q: Array) -> None:
        """Put some of the problems elsewhere."""
        self.a[:, which], self.s[which], self.q[:, which] = a, s, q

    def put(self, which: np.ndarray, other: _State) -> None:
        """Overwrite some of the problems."""
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[..., which] = theirs


def _newton(
    dual: Dual, start: Array, jitter: float, tol: float, gap: float, max_iterations: int
) -> _State:
    """Minimise S for every problem by damped Newton steps, bent to third order."""
    n = dual.mu.shape[1]
    found = _State.start(dual, start, np.full(n, np.inf), np.zeros(n, dtype=np.intp))
    state, active = replace(found), np.arange(n)
    for _ in range(max_iterations):
        gradient, systems = dual.derivatives(state.a, state.q, jitter)
        step = solve_spd(systems).copy()
        slope = dot(gradient, step[1:])
        state.decrement = -0.5 * slope
        # A ridge may hold the residual above tol, however small the gradient: then the gap decides.
        going = (abs(gradient).max(0) > tol) | ((state.decrement > gap) & (gap > 0))
        going &= slope < 0
        state.iterations += going
        bend, size2 = dual.bend(step, state.q, systems)
        length = _line_search(dual, state, going, step[1:], bend, slope)
        left = np.minimum(np.maximum(LEFT * size2**2, LEFT_LEAST), 1.0)
        state.decrement[length == 1] *= left[length == 1]
        going = (length > 0) & (state.decrement > gap)
        if not going.all():
            done, others = np.flatnonzero(~going), np.flatnonzero(going)
            found.put(active[done], state.at(done))
            dual, state, active = dual.at(others), state.at(others), active[others]
            if not active.size:
                break
    found.put(active, state)
    return found


def _one_by_one(dual: Dual, start: Array, tol: float, max_iterations: int) -> _State:
    """Minimise S for each problem by itself; the decrement is 0 where it converged, else inf."""
    a = start
    iterations = np.zeros(a.shape[1], dtype=np.intp)
    decrement = np.zeros(a.shape[1])
    phi, ridge = dual.phi[:, 1:], dual.ridge[:, 0]
    for j in range(a.shape[1]):
        log_measure = np.log(dual.w)
        if dual.log_q0 is not None:
            log_measure = log_measure + dual.log_q0[:, j]
        a[1:, j], gradient, iterations[j] = levenberg(
            phi, log_measure, dual.mu[1:, j], ridge, a[1:, j], tol, max_iterations
        )
        a[0, j] = logsumexp(log_measure - phi @ a[1:, j])
        decrement[j] = 0.0 if abs(gradient).max() <= tol else np.inf
    return _State.start(dual, a, decrement, iterations)


def _line_search(
    dual: Dual, state: _State, going: np.ndarray, step: Array, bend: Array, slope: Array
) -> Array:
    """Move each problem along a + t step + t^2 bend, t = 1, 1/2, ..., to sufficient decrease.

    Returns the t of each, 0 where it did not move.
    """
    start = replace(state)

    def trial(which: slice | np.ndarray, t: Any) -> tuple[Array, Array, Array, np.ndarray]:
        """Some problems' a, S and q at t, a number or one each, and whether S fell enough."""
        a = np.array(start.a[:, which])
        a[1:] += t * (step[:, which] + t * bend[:, which])
        s, q = dual.at(which).evaluate(a)
        # S is a sum of terms of size |a.mu|: a decrease below their rounding is invisible.
        slack = 1e-15 * (1 + abs(a[1:]).sum(0))
        return a, s, q, s <= start.s[which] + 1e-4 * t * slope[which] + slack

    # Most problems take the full step, so all of them do, and the others are put back.
    state.a, state.s, state.q, enough = trial(slice(None), 1.0)
    length = (going & enough).astype(np.float64)
    back = np.flatnonzero(length == 0)
    state.move(back, start.a[:, back], start.s[back], start.q[:, back])
    pending, longest = back[going[back]], 0.5
    while pending.size and longest > 1e-10:
        # Few are left: to try several lengths in one call costs less than in several calls.
        n, t = len(pending), np.repeat(longest * 0.5 ** np.arange(TRIES), len(pending))
        a, s, q, enough = trial(np.tile(pending, TRIES), t)
        tries = enough.reshape(TRIES, n)
        moves = tries.any(0)
        best = (tries.argmax(0) * n + np.arange(n))[moves]  # the first, and so the longest
        state.move(pending[moves], a[:, best], s[best], q[:, best])
        length[pending[moves]] = t[best]
        pending, longest = pending[~moves], longest * 0.5**TRIES
    return length
