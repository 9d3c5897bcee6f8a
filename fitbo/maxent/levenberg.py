"""The MaxEnt dual of one hard problem, by Levenberg-Marquardt on an orthogonal factorisation.

The batched Newton of ``fitbo.maxent.solve`` forms the Hessian H = Cov_q[phi]. Where the density
crowds one end of the domain, or is a sum of peaks, H is singular to rounding long before the
moments match. Here, with masses q_g at the nodes,

    A = sqrt(q) (phi - E_q[phi]),  (G, m),      H = A^T A,

a step solves (H + lambda I) s = -g from the QR factorisation of A over sqrt(lambda) I, which keeps
twice the digits, and its effect on the dual is computed as a difference,

    S(a + s) - S(a) = log E_q[exp(-t)] + s.g,    t = (phi - E_q[phi]) s,    E_q[t] = 0,

free of the rounding of a.mu. lambda follows the ratio of actual to predicted decrease.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from fitbo.mixture import Array, exp_in_place

FIRST, LEAST, MOST = 1e-3, 1e-30, 1e6  # lambda
SMALL = 1.0  # t below which the difference is taken by expm1


def levenberg(
    phi: Array, log_measure: Array, mu: Array, ridge: Array, a: Array, tol: float, most: int
) -> tuple[Array, Array, int]:
    """Multipliers a (m,), gradient (m,) and steps of min_a log Z(a) + a.mu + sum ridge a^2 / 2.

    phi            functions at the nodes without the constant, (G, m)
    log_measure    log(w q0) at the nodes, (G,)
    """

    def at(a: Array) -> tuple[Array, Array, Array, Array]:
        """log q and q at the nodes, of total mass one, E_q[phi], and the gradient."""
        log_q = log_measure - phi @ a
        log_q -= logsumexp(log_q)
        q = exp_in_place(log_q.copy())
        mean = q @ phi
        return log_q, q, mean, mu - mean + ridge * a

    damping = FIRST
    log_q, q, mean, gradient = at(a)
    for iteration in range(most):
        if abs(gradient).max() <= tol:
            return a, gradient, iteration
        centred = phi - mean
        weighted = np.sqrt(q)[:, None] * centred
        while True:
            rows = np.vstack([weighted, np.diag(np.sqrt(ridge + damping))])
            r = np.linalg.qr(rows, "r")
            step = solve_triangular(r, solve_triangular(r, -gradient, trans="T"))
            predicted = 0.5 * float(damping * step @ step - gradient @ step)
            # ridge (a + s)^2 / 2 beyond its linear part, which is in the gradient.
            quadratic = float(gradient @ step + 0.5 * ridge @ step**2)
            actual = -_increase(log_q, q, centred @ step) - quadratic
            if actual > 0.1 * predicted:
                break
            damping *= 4
            if damping > MOST or predicted <= 0:
                return a, gradient, iteration
        a = a + step
        log_q, q, mean, gradient = at(a)
        if actual > 0.5 * predicted:
            damping = max(damping / 8, LEAST)
    return a, gradient, most


def _increase(log_q: Array, q: Array, t: Array) -> float:
    """log E_q[exp(-t)] for E_q[t] = 0, to the last digit where t is small."""
    if abs(t).max() < SMALL:
        return float(np.log1p(q @ (np.expm1(-t) + t)))
    return float(logsumexp(log_q - t))
