"""Cosines and sines of many angles at once, in half the time that numpy takes for them.

    x   any shape  angles
    q   integers   quarter turns, rint(2 x/pi)
    t   [-1/2, 1/2]  what is left, in quarter turns: x = (q + t) pi/2

The Taylor series of sin and cos at t pi/2, |t pi/2| <= pi/4, end at the powers 15 and 16: the next
terms are below 5e-17. Then, by the quarter turns,

    q mod 4       0        1        2        3
    cos x      cos t   -sin t   -cos t    sin t
    sin x      sin t    cos t   -sin t   -cos t

numpy computes the two of float64 one angle after another (15 ns each where exp takes 1), which was
a quarter of the time of a suggestion. 2 x/pi is rounded, so the error is that of an angle rounded.
"""

from __future__ import annotations

from math import factorial, pi

import numpy as np

from fitbo.mixture import Array

QUARTER = 0.5 * pi
SINE = [(-1) ** k * QUARTER ** (2 * k + 1) / factorial(2 * k + 1) for k in range(8)]
COSINE = [(-1) ** k * QUARTER ** (2 * k) / factorial(2 * k) for k in range(9)]
CACHED = 1 << 14  # angles at once: their arrays stay in cache


def cos_sin(x: Array) -> tuple[Array, Array]:
    """cos x and sin x, in x's shape."""
    cos, sin = np.empty((2, x.size))
    flat = x.ravel()
    for start in range(0, x.size, CACHED):
        part = slice(start, start + CACHED)
        t = flat[part] * (1 / QUARTER)
        turns = np.rint(t)
        t -= turns
        t2 = t * t
        s, c = _series(SINE, t2), _series(COSINE, t2)
        s *= t
        q = turns.astype(np.int64)
        odd = (q & 1).astype(bool)
        np.multiply(np.where(odd, s, c), 1 - ((q + 1) & 2), out=cos[part])
        np.multiply(np.where(odd, c, s), 1 - (q & 2), out=sin[part])
    return cos.reshape(x.shape), sin.reshape(x.shape)


def _series(coefficients: list[float], t2: Array) -> Array:
    """sum_k a_k t2^k, by Horner's rule."""
    total = coefficients[-1] * t2
    for a in coefficients[-2:0:-1]:
        total += a
        total *= t2
    total += coefficients[0]
    return total
