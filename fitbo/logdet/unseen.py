"""What Lanczos runs have not seen of the spectrum, in units of the log-determinant.

After k steps from a probe, Gauss's rule gives G_k = n sum_i w_i log theta_i. It falls with k to the
value G of the probe's own measure, so the estimate is too large by G_k - G. Two figures for that:

    G_k - R_k               with R_k by Radau's rule with its node at a: an upper bound, if no
                            eigenvalue lies below a
    d_2^2 / (d_1 - d_2)     Aitken's, with d_1 = G_{k/2} - G_{k/sqrt 2}, d_2 = G_{k/sqrt 2} - G_k:
                            exact where G_k - G = c k^-p, too large where it falls faster than that

The smaller of the two is taken. a is the caller's lower bound, or the rounding of the largest Ritz
value if that is larger: K's own entries do not determine smaller eigenvalues, nor does dense
algebra. Ritz values at the rounding are therefore counted as unseen, each with log(1 / eps).

    G_k, R_k    float    of one run, k <= its steps
    theta, w    (k,)     its nodes and weights
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh_tridiagonal

from fitbo.logdet.info import LogdetInfo
from fitbo.logdet.lanczos import BREAKDOWN, VANISHING, Ritz, radau
from fitbo.logdet.operator import SIGN
from fitbo.logdet.trace import Task
from fitbo.mixture import Array

EPS = float(np.finfo(np.float64).eps)
HISTORY = 8  # steps from which G_k has a history to speak of
RATIO = 0.8  # the largest d_2 / d_1 that is believed: p = 0.64
SETTLED = 0.05  # share of the noise: less than that is not worth a product, nor a warning
ALARM = 1.5  # standard errors


def unseen(runs: Ritz, task: Task) -> float:
    """How far the runs' mean G_k may lie above the truth for the same probes, in nats."""
    of_runs = [_of_run(runs, j, task) for j in range(len(runs.steps))]
    lost, most, *values = np.mean(of_runs, axis=0)
    return float(lost + max(min(most, aitken(*values)), 0.0))


def noise(runs: Ritz, task: Task) -> float:
    """(2 n Var[log lambda] / n_probes)^1/2 by the runs' nodes.

    It bounds the standard error of the mean of z.log(K) z over ``n_probes`` sign vectors.
    """
    theta, w = runs.nodes()
    log = np.log(np.maximum(theta, EPS * theta.max()))
    mean = (w * log).sum(1, keepdims=True)
    variance = float((w * (log - mean) ** 2).sum(1).mean())
    return float(np.sqrt(2 * task.operator.n * variance / task.n_probes))


def judged(info: LogdetInfo, runs: Ritz, task: Task, hidden: float) -> LogdetInfo:
    """``info`` with ``unseen``, a standard error where the probes were too few, and a warning.

    It warns where what is unseen is more than 1.5 standard errors and more than SETTLED.
    """
    scale = noise(runs, task)
    error = scale if np.isnan(info.standard_error) else info.standard_error
    warning = None
    if hidden > max(ALARM * error, SETTLED * scale):
        theta, w = runs.nodes()
        smallest = max(theta[w > 0].min() / theta.max(), EPS)
        warning = (
            f"log det K may lie {hidden:.3g} below the estimate, whose standard error is "
            f"{error:.2g}: Lanczos runs of {runs.steps.max()} steps have not resolved the smallest "
            f"eigenvalues, those of {smallest:.0e} of the largest and below. Pass a lower bound "
            "(bounds=(lower, None); for a kernel matrix, the noise variance), more n_moments or "
            'n_probes, or method="cholesky" if K fits in memory'
        )
    return replace(info, standard_error=error, unseen=hidden, warning=warning)


def aitken(first: float, second: float, third: float) -> float:
    """What is left after ``third``, of G_{k/2}, G_{k/sqrt 2} and G_k."""
    d_1, d_2 = first - second, second - third
    if d_2 <= 0:
        return 0.0
    ratio = min(d_2 / d_1, RATIO) if d_1 > 0 else RATIO
    return d_2 * ratio / (1 - ratio)


def _of_run(runs: Ritz, j: int, task: Task) -> tuple[float, float, float, float, float]:
    """What is lost to rounding, G_k - R_k, G_{k/2}, G_{k/sqrt 2}, G_k."""
    n, k, lower = task.operator.n, int(runs.steps[j]), task.bounds.lower
    alpha, beta = runs.alpha[j, :k], runs.beta[j, :k]
    theta, w = _nodes(alpha, beta)
    sign = task.operator.sign
    vanishing = VANISHING * sign * theta[-1]
    lost = n * float(w[theta < vanishing].sum()) * -np.log(EPS) if lower < vanishing else 0.0
    floor = max(lower, vanishing)

    def gauss(steps: float) -> float:
        x, weights = _nodes(alpha[: round(steps)], beta)
        return n * float(weights @ np.log(np.maximum(x, floor)))

    value = gauss(k)
    if k == n or beta[-1] <= BREAKDOWN * abs(alpha).max():
        return lost, 0.0, value, value, value  # the run has ended, and is exact
    a = max(lower, EPS * sign / SIGN * theta[-1])
    most = value - n * np.log(a)
    try:
        x, weights = _nodes(*radau(alpha, beta[:-1], beta[-1], a))
        most = min(most, value - n * float(weights @ np.log(np.maximum(x, a))))
    except ValueError:  # a Ritz value below a: Radau's rule has no node there
        pass
    if k < HISTORY:
        return lost, most, value + most, value + most, value
    return lost, most, gauss(k / 2), gauss(k / np.sqrt(2)), value


def _nodes(diagonal: Array, off: Array) -> tuple[Array, Array]:
    theta, vectors = eigh_tridiagonal(diagonal, off[: len(diagonal) - 1])
    return np.asarray(theta, dtype=np.float64), vectors[0] ** 2
