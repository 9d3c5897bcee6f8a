"""Test functions of global optimisation, with their minima to double precision.

Each function is vectorised, x (B, d) -> (B,). Each maker takes the dimension and returns

    fun, bounds, minimum, minimisers (k, d).

Where a minimum is zero the function is written so that rounding leaves zero, not 1e-16 of a larger
number. Literal minimisers are roots of the gradient at forty digits, rounded to double.

[M92]  Michalewicz, Genetic algorithms + data structures = evolution programs, Springer 1992.
[DS78] Dixon, Szego, The global optimisation problem: an introduction, in Towards Global
       Optimisation 2, North-Holland 1978: Branin, Goldstein-Price, Hartmann, six-hump camel.
[W96]  Whitley, Rana, Dzubera, Mathias, Evaluating evolutionary algorithms, Artificial Intelligence
       85, 1996: Eggholder.
[A87]  Ackley, A connectionist machine for genetic hillclimbing, Kluwer 1987.
[LM85] Levy, Montalvo, The tunneling algorithm for the global minimization of functions, SIAM J.
       Sci. Stat. Comput. 6, 1985.
[R60]  Rosenbrock, An automatic method for finding the greatest or least value of a function,
       Computer Journal 3, 1960.
[R74]  Rastrigin, Systems of extremal control, Nauka 1974.
[ST90] Styblinski, Tang, Experiments in nonconvex optimization, Neural Networks 3, 1990.
[F08]  Forrester, Sobester, Keane, Engineering design via surrogate modelling, Wiley 2008.
[SB]   Surjanovic, Bingham, Virtual library of simulation experiments: test functions and datasets;
       domains and constants are those given there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array

Bounds = list[tuple[float, float]]
Made = tuple[Callable[[Array], Array], Bounds, float, ArrayLike]

# Hartmann [DS78]: alpha_i, A_ij, P_ij. With P[3, 0] of hartmann3 at 0.0381 the minimum is
# -3.8627798; the often quoted -3.8627821 belongs to 0.03815.
HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN3_A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
HARTMANN3_P = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
HARTMANN6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def michalewicz(x: Array, m: int) -> Array:
    """-sum_i sin(x_i) sin^2m(i x_i^2 / pi): d! valleys, flat between, steeper with m."""
    i = np.arange(1, x.shape[1] + 1)
    return -(np.sin(x) * np.sin(i * x**2 / np.pi) ** (2 * m)).sum(1)


def make_michalewicz(dim: int, m: int = 10) -> Made:
    """Separable, so the minimum is the sum of 1-D ones, each found as a root.

    With u = i x^2/pi, term i is positive in each of the i intervals where u runs from k pi to
    (k + 1) pi, and there log sin x + 2m log |sin u| is strictly concave: the second derivative of
    log |sin u| is (2i/pi) (sin(2u)/2 - 2u)/sin^2 u < 0. One root of

        sin u cos x + 2m (2 i x/pi) cos u sin x = 0

    an interval, and the best of i intervals, are thus the global optimum, beyond doubt.
    """
    from scipy.optimize import brentq  # a third of a second to import

    if isinstance(m, bool) or not isinstance(m, int) or m < 1:
        raise ValueError(f"m must be a whole number of at least 1, got {m!r}")

    def slope(x: float, i: int) -> float:
        u = i * x**2 / np.pi
        return float(np.sin(u) * np.cos(x) + 4 * m * i * x / np.pi * np.cos(u) * np.sin(x))

    best = []
    for i in range(1, dim + 1):
        ends = np.pi * np.sqrt(np.arange(i + 1) / i)
        gap = 1e-9 * np.diff(ends)
        roots = [
            brentq(slope, a + g, b - g, args=(i,), xtol=1e-15, rtol=1e-15)
            for a, b, g in zip(ends[:-1], ends[1:], gap, strict=True)
        ]
        depth = [np.sin(x) * np.sin(i * x**2 / np.pi) ** (2 * m) for x in roots]
        best.append(roots[int(np.argmax(depth))])
    fun = partial(michalewicz, m=m)
    return fun, [(0.0, np.pi)] * dim, float(fun(np.array([best]))[0]), [best]


def hartmann(x: Array, A: Array, P: Array) -> Array:
    """-sum_i alpha_i exp(-sum_j A_ij (x_j - P_ij)^2)."""
    return -np.exp(-(A * (x[:, None, :] - P) ** 2).sum(2)) @ HARTMANN_ALPHA


def make_hartmann3(dim: int) -> Made:
    """Four minima [DS78]."""
    x = [0.11458887665506896836, 0.55564889461693004477, 0.85254698468667743762]
    fun = partial(hartmann, A=HARTMANN3_A, P=HARTMANN3_P)
    return fun, [(0.0, 1.0)] * dim, -3.8627797873326625, [x]


def make_hartmann6(dim: int) -> Made:
    """Six minima [DS78]."""
    x = [
        0.20168951100670542433,
        0.15001069182345796879,
        0.47687397422189699032,
        0.27533243049405606824,
        0.31165161660011324245,
        0.65730053406562030606,
    ]
    fun = partial(hartmann, A=HARTMANN6_A, P=HARTMANN6_P)
    return fun, [(0.0, 1.0)] * dim, -3.3223680114155148, [x]


def branin(x: Array) -> Array:
    """(y - 5.1 x^2/(4 pi^2) + 5 x/pi - 6)^2 + 10 (1 - 1/(8 pi)) cos x + 10."""
    a, b = x.T
    parabola = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return parabola**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def make_branin(dim: int) -> Made:
    """cos x = -1 on the parabola: 10/(8 pi), at three points."""
    minimisers = [(-np.pi, 12.275), (np.pi, 2.275), (3 * np.pi, 2.475)]
    return branin, [(-5.0, 10.0), (0.0, 15.0)], 10 / (8 * np.pi), minimisers


def eggholder(x: Array) -> Array:
    """-(y + 47) sin sqrt|x/2 + y + 47| - x sin sqrt|x - y - 47|."""
    a, b = x[:, 0], x[:, 1] + 47
    return -b * np.sin(np.sqrt(abs(a / 2 + b))) - a * np.sin(np.sqrt(abs(a - b)))


def make_eggholder(dim: int) -> Made:
    """The minimiser lies on the edge x = 512."""
    return eggholder, [(-512.0, 512.0)] * 2, -959.64066272085080, [(512.0, 404.23180511375781)]


def ackley(x: Array) -> Array:
    """20 (1 - exp(-r/5)) + e - exp(mean cos 2 pi x_i), r the root mean square of x."""
    r = np.sqrt((x**2).mean(1))
    return -20 * np.expm1(-0.2 * r) - np.e * np.expm1(-2 * (np.sin(np.pi * x) ** 2).mean(1))


def make_ackley(dim: int) -> Made:
    """Zero at the origin."""
    return ackley, [(-32.768, 32.768)] * dim, 0.0, np.zeros((1, dim))


def levy(x: Array) -> Array:
    """w = 1 + (x - 1)/4 and

    sin^2 pi w_1 + sum_{i<d} (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1))
                 + (w_d - 1)^2 (1 + sin^2 2 pi w_d).
    """
    w = (x - 1) / 4  # w - 1 of the formula: the sines below shift by whole turns, or by pi
    ends = np.sin(np.pi * w[:, 0]) ** 2 + w[:, -1] ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return ends + (w[:, :-1] ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)).sum(1)


def make_levy(dim: int) -> Made:
    """Zero at (1, ..., 1)."""
    return levy, [(-10.0, 10.0)] * dim, 0.0, np.ones((1, dim))


def rosenbrock(x: Array) -> Array:
    """sum_{i<d} 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2."""
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(1)


def make_rosenbrock(dim: int) -> Made:
    """Zero at (1, ..., 1)."""
    return rosenbrock, [(-5.0, 10.0)] * dim, 0.0, np.ones((1, dim))


def rastrigin(x: Array) -> Array:
    """sum_i x_i^2 + 10 (1 - cos 2 pi x_i)."""
    return (x**2 + 20 * np.sin(np.pi * x) ** 2).sum(1)


def make_rastrigin(dim: int) -> Made:
    """Zero at the origin."""
    return rastrigin, [(-5.12, 5.12)] * dim, 0.0, np.zeros((1, dim))


def styblinski_tang(x: Array) -> Array:
    """sum_i (x_i^4 - 16 x_i^2 + 5 x_i)/2."""
    return 0.5 * (x * (x * (x**2 - 16) + 5)).sum(1)


def make_styblinski_tang(dim: int) -> Made:
    """Separable; the least root of x^3 - 8 x + 5/4 by Viete's formula."""
    angle = np.arccos(-15 / 64 * np.sqrt(3 / 8)) / 3
    x = float((2 * np.sqrt(8 / 3) * np.cos(angle - 2 * np.pi * np.arange(3) / 3)).min())
    minimiser = np.full((1, dim), x)
    return styblinski_tang, [(-5.0, 5.0)] * dim, float(styblinski_tang(minimiser)[0]), minimiser


def six_hump_camel(x: Array) -> Array:
    """(4 - 2.1 x^2 + x^4/3) x^2 + x y + 4 (y^2 - 1) y^2."""
    a, b = x.T
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + 4 * (b**2 - 1) * b**2


def make_six_hump_camel(dim: int) -> Made:
    """Two of the six minima are global, one the mirror image of the other."""
    x = np.array([0.089842013100318062422, -0.7126564030207396334])
    return six_hump_camel, [(-3.0, 3.0), (-2.0, 2.0)], -1.0316284534898773504, [x, -x]


def goldstein_price(x: Array) -> Array:
    """The natural logarithm of Goldstein and Price's function, which spans six decades."""
    a, b = x.T
    left = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    right = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return np.log1p((a + b + 1) ** 2 * left) + np.log(30 + (2 * a - 3 * b) ** 2 * right)


def make_goldstein_price(dim: int) -> Made:
    """log 3 at (0, -1)."""
    return goldstein_price, [(-2.0, 2.0)] * 2, float(np.log(3)), [(0.0, -1.0)]


def forrester(x: Array) -> Array:
    """(6 x - 2)^2 sin(12 x - 4)."""
    return ((6 * x - 2) ** 2 * np.sin(12 * x - 4))[:, 0]


def make_forrester(dim: int) -> Made:
    """One global and one local minimum, and an inflection between [F08]."""
    return forrester, [(0.0, 1.0)], -6.0207400557670828, [(0.75724875784185587,)]
