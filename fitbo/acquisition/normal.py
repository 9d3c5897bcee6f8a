"""The normal distribution where it underflows, as improvement and truncation need it.

    phi, Phi  density and distribution of x ~ N(0, 1)
    h(z)      phi(z) + z Phi(z) = E max(z + x, 0)
    k(z)      (1 + z^2) Phi(z) + z phi(z) = E max(z + x, 0)^2
    R(t)      Phi(-t)/phi(t), Mills' ratio
    q(t)      1 - t R(t)

In the tail, z = -t,

    h(-t) = phi(t) q(t),            q = 1/t^2 - 3/t^4 + 15/t^6 - ...
    k(-t) = phi(t) (R - t q),       R - t q = 2/t^3 - 12/t^5 + 90/t^7 - ...

so that, divided by phi, all stay finite where they themselves are zero in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from fitbo.mixture import LOG_2PI, Array

SERIES_FROM = 25.0  # beyond, 1 - t R(t) cancels more than its series errs: both below 1e-13
SECOND_FROM = 14.0  # for R - t q, which cancels once more: both below 1e-11
ORDERS = range(9, 0, -1)  # of the terms of the series, from the last


@dataclass(frozen=True, eq=False)
class Scaled:
    """phi, Phi, h and k at some z, each to be multiplied by e^log_scale: 1, or phi in the tail."""

    log_scale: Array
    density: Array
    below: Array
    h: Array
    k: Array


def scaled(z: Array) -> Scaled:
    """All of them, each computed without cancellation."""
    tail = z < -1
    t = np.maximum(-z, 1.0)
    R, q = mills(t)
    front = np.maximum(z, -1.0)
    below, density = ndtr(front), phi(front)
    return Scaled(
        np.where(tail, -0.5 * (z * z + LOG_2PI), 0.0),
        np.where(tail, 1.0, density),
        np.where(tail, R, below),
        np.where(tail, q, density + front * below),
        np.where(tail, _second(t, R, q), (1 + front * front) * below + front * density),
    )


def phi(z: Array) -> Array:
    """The standard normal density."""
    return np.exp(-0.5 * (z * z + LOG_2PI))


def mills(t: Array) -> tuple[Array, Array]:
    """R(t) and q(t) for t >= 0, to a relative 1e-13 each."""
    R = np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2))
    q = 1 - t * R
    if (t >= SERIES_FROM).any():
        u = 1 / np.maximum(t, SERIES_FROM) ** 2
        q = np.where(t < SERIES_FROM, q, u * _series(u, [2 * n + 1 for n in ORDERS]))
    return R, q


def _second(t: Array, R: Array, q: Array) -> Array:
    """R - t q."""
    second = R - t * q
    if (t >= SECOND_FROM).any():
        far = np.maximum(t, SECOND_FROM)
        u = 1 / far**2
        series = _series(u, [(n + 1) * (2 * n + 1) / n for n in ORDERS])
        second = np.where(t < SECOND_FROM, second, 2 * series * u / far)
    return second


def _series(u: Array, ratios: list[float]) -> Array:
    """``1 - r_1 u (1 - r_2 u (1 - ...))``, the ratios of successive terms from the last."""
    total = np.ones_like(u)
    for ratio in ratios:
        total = 1 - ratio * u * total
    return total


def truncation_gain(gamma: Array) -> tuple[Array, Array]:
    """``a = gamma lambda/2 - log Phi``, lambda = phi/Phi at gamma, and a'(gamma).

    In the tail gamma = -t, log Phi = log R - t^2/2 - log(2 pi)/2 and gamma + lambda = q/R, so the
    two t^2/2 cancel on paper: a = -t q/(2 R) - log R + log(2 pi)/2.
    """
    t = np.maximum(-gamma, 1.0)
    R, q = mills(t)
    front = np.maximum(gamma, -1.0)
    ratio = phi(front) / ndtr(front)
    tail = gamma < -1
    a = np.where(
        tail,
        0.5 * LOG_2PI - np.log(R) - 0.5 * t * q / R,
        0.5 * front * ratio - log_ndtr(front),
    )
    slope = np.where(
        tail, -0.5 * _second(t, R, q) / R**2, -0.5 * ratio * (1 + front * (front + ratio))
    )
    return a, slope
