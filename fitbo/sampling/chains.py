"""Diagnostics of a chain: drift, autocorrelation, effective sample size, split R-hat.

    chain  (T, W, P)  W walkers of P parameters at T steps
    rho    (T, P)     autocorrelation of each parameter at lags 0 .. T - 1
    tau    (P,)       1 + 2 sum_t rho_t, the integrated autocorrelation time

[1] Gelman et al., Bayesian data analysis, 3rd ed., 11.4: split R-hat.
[2] Sokal, Monte Carlo methods in statistical mechanics (1996): the window of the sum in tau.
"""

from __future__ import annotations

import numpy as np

from fitbo.mixture import Array

SOKAL = 5.0  # the sum in tau stops at the first lag beyond this many tau


def drift_statistic(chain: Array) -> float:
    """Largest |t| of the change between the two halves of a chain, (T, W, P) -> scalar.

    ``t = mean_w(d) / (std_w(d)/sqrt(W))`` with d each walker's change. Walkers are independent at
    equilibrium, so |t| is then of order one however slowly they move; a common trend makes it grow
    as sqrt(W).
    """
    half = len(chain) // 2
    if half == 0:
        return float(np.inf)
    change = chain[-half:].mean(0) - chain[:half].mean(0)
    trend, error = abs(change.mean(0)), change.std(0, ddof=1) / np.sqrt(len(change))
    # A parameter that no walker changed has not drifted; one that all changed alike has.
    unanimous = np.where(trend > 0, np.inf, 0.0)
    return float(np.divide(trend, error, out=unanimous, where=error > 0).max())


def autocorrelation(chain: Array) -> Array:
    """``rho_t = E[(x_s - mean)(x_{s+t} - mean)] / var``, (T, W, P) -> (T, P).

    Mean and variance are those of the whole ensemble: each walker's own would hide every
    correlation longer than the chain.
    """
    n = len(chain)
    centred = chain - chain.mean((0, 1))
    spectrum = np.fft.rfft(centred, n=2 * n, axis=0)
    product = np.fft.irfft(abs(spectrum) ** 2, n=2 * n, axis=0)[:n].mean(1)
    covariance = product / (n - np.arange(n))[:, None]
    moved = covariance[0] > 0
    # A parameter that never moved is correlated with itself at every lag.
    return np.where(moved, covariance / np.where(moved, covariance[0], 1.0), 1.0)


def integrated_time(rho: Array) -> Array:
    """``tau = 1 + 2 sum_t rho_t`` over Sokal's window [2], (T, P) -> (P,), at least 1."""
    tau = 2 * np.cumsum(rho, axis=0) - 1
    return np.maximum(np.take_along_axis(tau, _window(rho)[None], 0)[0], 1.0)


def effective_sample_size(chain: Array, thin: int = 1) -> Array:
    """The independent draws that would estimate the mean as well as every ``thin``-th state, (P,).

    With L = T // thin ensembles kept, ``W L / (1 + 2 sum_{k<L} (1 - k/L) rho_{k thin})``: exact for
    independent walkers however short the chain, and W if no walker moved.
    """
    n, walkers, _ = chain.shape
    rho = autocorrelation(chain)
    kept = n // thin
    k = np.arange(1, kept)
    felt = np.where(k[:, None] * thin <= _window(rho), rho[k * thin], 0.0)
    inflation = 1 + 2 * ((1 - k / kept)[:, None] * felt).sum(0)
    return walkers * kept / np.maximum(inflation, 1.0)


def split_r_hat(chain: Array) -> Array:
    """Split R-hat with the walkers as chains, each cut in half [1], (T, W, P) -> (P,).

    ``sqrt(((n - 1)/n W + B/n) / W)`` with n = T // 2, W the mean variance within the half-chains
    and B/n the variance of their means.
    """
    n = len(chain) // 2
    if n < 2:
        return np.full(chain.shape[2], np.inf)
    halves = np.concatenate([chain[:n], chain[-n:]], axis=1)
    within = halves.var(0, ddof=1).mean(0)
    between = halves.mean(0).var(0, ddof=1)
    moved = within > 0
    ratio = (n - 1) / n + between / np.where(moved, within, 1.0)
    return np.where(moved, np.sqrt(ratio), np.inf)


def _window(rho: Array) -> np.ndarray:
    """The first lag beyond ``SOKAL`` tau, or the last lag of all, (T, P) -> (P,)."""
    beyond = np.arange(len(rho))[:, None] >= SOKAL * (2 * np.cumsum(rho, axis=0) - 1)
    return np.where(beyond.any(0), beyond.argmax(0), len(rho) - 1)
