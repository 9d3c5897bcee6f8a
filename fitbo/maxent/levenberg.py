"""The MaxEnt dual of one hard problem, by Levenberg-Marquardt on an orthogonal factorisation.

The batched Newton of ``fitbo.maxent.solve`` forms the Hessian H = Cov_q[phi]. Where the density is
all near one end of the domain, or a sum of peaks, H is singular to rounding long before the moments
are matched. Here, with masses q_g at the nodes,

    A = sqrt(q) (phi - E_q[phi]),  (G, m),      H = A^T A,

a step solves (H + lambda I) s = -g from the QR factorisation of A over sqrt(lambda) I, which keeps
twice the digits, and its effect on the dual is computed as a difference,

    S(a + s) - S(a) = log E_q[exp(-t)] + s.g,    t = (phi - E_q[phi]) s,    E_q[t] = 0,

which does not drown in the rounding of a.mu. lambda follows the ratio of gained to promised
decrease.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from fitbo.mixture import Array

FIRST, LEAST, MOST = 1e-3, 1e-30, 1e6  # lambda
SMALL = 1.0  # t below which the difference is taken by expm1


def levenberg(
    phi: Array, log_measure: Array, mu: Array, ridge: Array, a: Array, tol: float, most: int
) -> tuple[Array, Array, int]:
    """Multipliers a (m,), gradient (m,) and steps of: min log Z(a) + a.mu + sum ridge a^2 / 2.

    phi            functions at the nodes without the constant, (G, m)
    log_measure    log(w q0) at the nodes, (G,)
    """
    damping = FIRST
    log_q, q = _masses(phi, log_measure, a)
    mean = q @ phi
    gradient = mu - mean + ridge * a
    for iteration in range(most):
        if abs(gradient).max() <= tol:
            return a, gradient, iteration
        centred = phi - mean
        weighted = np.sqrt(q)[:, None] * centred
        while True:
            rows = np.vstack([weighted, np.diag(np.sqrt(ridge + damping))])
            r = np.linalg.qr(rows, "r")
            step = solve_triangular(r, solve_triangular(r, -gradient, trans="T"))
            promised = 0.5 * float(damping * step @ step - gradient @ step)
            t = centred @ step
            # ridge (a + s)^2 / 2 beyond its linear part, which the gradient holds.
            gained = -_increase(log_q, q, t) - float(gradient @ step + 0.5 * ridge @ step**2)
            if gained > 0.1 * promised:
                break
            damping *= 4
            if damping > MOST or promised <= 0:
                return a, gradient, iteration
        a = a + step
        log_q, q = _masses(phi, log_measure, a)
        mean = q @ phi
        gradient = mu - mean + ridge * a
        if gained > 0.5 * promised:
            damping = max(damping / 8, LEAST)
    return a, gradient, most


def _masses(phi: Array, log_measure: Array, a: Array) -> tuple[Array, Array]:
    """log q and q at the nodes, of total mass one."""
    log_q = log_measure - phi @ a
    log_q -= logsumexp(log_q)
    return log_q, np.exp(np.maximum(log_q, -700.0))


def _increase(log_q: Array, q: Array, t: Array) -> float:
    """log E_q[exp(-t)] for E_q[t] = 0, to the last digit where t is small."""
    if abs(t).max() < SMALL:
        return float(np.log1p(q @ (np.expm1(-t) + t)))
    return float(logsumexp(log_q - t))
